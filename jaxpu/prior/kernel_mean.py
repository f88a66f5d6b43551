"""KM1 and KM2: how far can P be subtracted from U before the rest stops being a distribution?"""

import math
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import pdist, squareform

from jaxpu.prior.tails import Labeled, Weights

MOST = 300
"""Rows of P and of U that are used, at random: the cost grows with their cube."""

WIDTHS = np.logspace(-1, 1, 5)
LAMBDA, PRECISION = 10.0, 0.02


class Embedded(NamedTuple):
    """P and U as weights on the same points, and the kernel between these.

    Attributes:
        kernel: K (k, k). mixture: weights of U (k,), sum 1. component: weights of P (k,), sum 1.
        n: the smaller of n_P and n_U.
    """

    kernel: Float[np.ndarray, "k k"]
    mixture: Float[np.ndarray, " k"]
    component: Float[np.ndarray, " k"]
    n: float

    @property
    def distance(self) -> float:
        """‖φ(U) − φ(P)‖."""
        return norm_of(self.kernel, self.mixture - self.component)


def kernel_mean(
    x: Float[np.ndarray, "n d"],
    labeled: Labeled,
    weight: Weights | None = None,
    *,
    rule: Literal["km1", "km2"] = "km2",
    random_state: int | np.random.Generator = 0,
) -> float:
    """Kernel mean matching: π = 1 − 1 / λ at the λ where d(λ) begins to rise.

    d(λ) = min_{v in the simplex} ‖λ φ(U) + (1 − λ) φ(P) − Σ v_i φ(x_i)‖ is 0 while λ U − (λ − 1) P is a distribution.
    The rise begins where d' exceeds ν: KM1 ν = 1 / √min(n_P, n_U), KM2 ν = .8 d'(1) + .2 ‖φ(U) − φ(P)‖. The kernel is
    Gaussian on standardised features, its width that of .1 to 10 times the median distance with the largest ‖φ(U) −
    φ(P)‖.

    Args:
        x: features (n, d). labeled: where a row is of P. weight: how often each row counts.
        rule: of the threshold. random_state: of the at most 300 rows of P and of U that are used.

    Source: Ramaswamy, Scott and Tewari, Mixture Proportion Estimation via Kernel Embeddings of Distributions, ICML
    2016; KM1 and KM2 as named there.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(np.repeat([2.0, 2.0, -2.0], 100))[:, None]
        >>> abs(kernel_mean(x, np.arange(300) < 100, rule="km1") - 0.5) < 0.1
        True
    """
    found = embed(x, labeled, weight, np.random.default_rng(random_state))
    if found.distance < 1e-8:
        return 1.0
    nu = min(0.9 * found.distance, 1 / math.sqrt(found.n))
    if rule == "km2":
        slope = (distance_at(found, 1.05)[0] - distance_at(found, 1.0)[0]) / 0.05
        nu = 0.8 * slope + 0.2 * found.distance
    low, high = 1.0, LAMBDA
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if distance_at(found, middle)[1] > nu else (middle, high)
    return 1 - 2 / (low + high)


def embed(x: np.ndarray, labeled: Labeled, weight: Weights | None, rng: np.random.Generator) -> Embedded:
    """At most 300 rows of each, and the kernel whose width tells U and P apart best."""
    weight = np.ones(len(labeled)) if weight is None else weight
    chosen = [np.flatnonzero(of & (weight > 0)) for of in (labeled, ~labeled)]
    rows = np.concatenate([np.sort(rng.choice(of, MOST, replace=False)) if len(of) > MOST else of for of in chosen])
    w, of_p = weight[rows], labeled[rows]
    points = x[rows].astype(float)
    mean = np.average(points, axis=0, weights=w)
    sd = np.sqrt(np.average((points - mean) ** 2, axis=0, weights=w))
    squared = squareform(pdist((points - mean) / np.where(sd > 0, sd, 1), "sqeuclidean"))
    component, mixture = (np.where(side, w, 0.0) / w[side].sum() for side in (of_p, ~of_p))
    width = math.sqrt(_weighted_median(squared, np.outer(w, w))) or 1.0
    kernels = (np.exp(-squared / (2 * (factor * width) ** 2)) for factor in WIDTHS)
    kernel = max(kernels, key=lambda k: norm_of(k, mixture - component))
    return Embedded(kernel, mixture, component, float(min(w[of_p].sum(), w[~of_p].sum())))


def distance_at(found: Embedded, scale: float) -> tuple[float, float]:
    """d(λ) and its derivative, ⟨residual, φ(U) − φ(P)⟩ / d by the envelope theorem; 0 where d is.

    Example:
        >>> two = Embedded(np.eye(2), np.array([0.5, 0.5]), np.array([1.0, 0.0]), 2)  # λU + (1 − λ)P = (1 − λ/2, λ/2)
        >>> [round(d, 4) for d in distance_at(two, 2.0)], [round(d, 4) for d in distance_at(two, 4.0)]
        ([0.0, 0.0], [1.4142, 0.7071])
    """
    target = scale * found.mixture + (1 - scale) * found.component
    residual = target - nearest(found.kernel, target)
    d = norm_of(found.kernel, residual)
    if d < 1e-7:
        return 0.0, 0.0
    return d, float(residual @ found.kernel @ (found.mixture - found.component)) / d


def nearest(kernel: Float[np.ndarray, "k k"], target: Float[np.ndarray, " k"], steps: int = 1500) -> np.ndarray:
    """Minimise (v − target)ᵀ K (v − target) over the simplex, by accelerated projected gradients with restarts.

    Source: Beck and Teboulle, SIAM Journal on Imaging Sciences 2009; O'Donoghue and Candès, Foundations of
    Computational Mathematics 2015.
    """
    v = np.ones(len(target))
    for _ in range(10):
        v = kernel @ v / np.linalg.norm(kernel @ v)
    size = float(np.max(kernel @ v / v))  # Collatz-Wielandt: an upper bound of the largest eigenvalue of K > 0
    image = kernel @ target
    v = ahead = onto_simplex(target)
    momentum = 1.0
    for _ in range(steps):
        after = onto_simplex(ahead - (kernel @ ahead - image) / size)
        move = after - v
        if np.abs(move).sum() < 1e-9:
            return after
        if (ahead - after) @ move > 0:
            momentum = 1.0
        next_momentum = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        v, ahead = after, after + (momentum - 1) / next_momentum * move
        momentum = next_momentum
    return v


def onto_simplex(v: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """The nearest vector that is nonnegative and sums to 1.

    Source: Duchi, Shalev-Shwartz, Singer and Chandra, ICML 2008.

    Example:
        >>> onto_simplex(np.array([1.0, 0.5, -3.0])).tolist()
        [0.75, 0.25, 0.0]
    """
    descending = -np.sort(-v)
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(v) + 1)
    return np.maximum(v - excess[np.count_nonzero(descending > excess) - 1], 0)


def norm_of(kernel: np.ndarray, v: np.ndarray) -> float:
    """‖Σ v_i φ(x_i)‖."""
    return math.sqrt(max(0.0, float(v @ kernel @ v)))


def _weighted_median(values: np.ndarray, weight: np.ndarray) -> float:
    order = np.argsort(values, axis=None)
    reached = np.cumsum(weight.ravel()[order])
    return float(values.ravel()[order[np.searchsorted(reached, reached[-1] / 2)]])
