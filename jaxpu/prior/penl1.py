"""PEN-L1: the share θ of P that fits into U, with a penalty where θ P exceeds U."""

import numpy as np
from jaxtyping import Float

from jaxpu.prior.tails import Labeled, Scores, Weights, checked

CENTERS, THETAS, FOLDS = 100, 101, 5
WIDTHS = (0.02, 0.05, 0.1, 0.2, 0.5)
RIDGES = tuple(np.logspace(-3, 1, 9).tolist())


def pen_l1(z: Scores, labeled: Labeled, weight: Weights | None = None, *, random_state: int = 0) -> float:
    """The θ in [0, 1] at which the penalised L1 divergence of θ P from U is least.

    penL1(θ) = (1 / λ) Σ_l max(0, β_l)² − θ + 1 with β_l = θ mean_P φ_l − mean_U φ_l. The φ_l are Gaussians of the rank
    of the score (so that only the order of scores matters) around quantiles of all ranks. It is the maximum of
    Σ α_l β_l − (λ / 2) Σ α_l² over α ≥ 0, reached at α_l = max(0, β_l) / λ, written without the half as in the paper.
    Width and λ are those with the least (λ / 2) Σ α_l² − Σ α_l β'_l on five held-out folds, α from the others, for
    every θ anew. The term with λ belongs to it: without, the smallest λ would always win.

    Args:
        z: scores (n,). labeled: where a row is of P. weight: how often each row counts. random_state: of the folds.

    Source: du Plessis, Niu and Sugiyama, Class-Prior Estimation for Learning from Positive and Unlabeled Data, Machine
    Learning 2017; there on features.

    Example:
        >>> z = np.random.default_rng(0).normal(np.repeat([3.0, 3.0, -3.0], 400))
        >>> abs(pen_l1(z, np.arange(1200) < 400) - 0.5) < 0.1
        True
    """
    weight = checked(z, labeled, weight)
    at = ranks(z, weight)
    centers = np.linspace(0, 1, CENTERS)
    fold = np.random.default_rng(random_state).permutation(len(z)) % FOLDS
    theta = np.linspace(0, 1, THETAS)
    best, divergence = np.full(THETAS, np.inf), np.zeros(THETAS)
    for width in WIDTHS:
        phi = np.exp(-((at[:, None] - centers) ** 2) / (2 * width**2))
        held = [_excess(phi, labeled, weight * (fold == k), theta) for k in range(FOLDS)]
        rest = [_excess(phi, labeled, weight * (fold != k), theta) for k in range(FOLDS)]
        positive = np.maximum(0, _excess(phi, labeled, weight, theta))
        linear = -np.mean([np.sum(np.maximum(0, r) * h, axis=1) for r, h in zip(rest, held, strict=True)], axis=0)
        curvature = np.mean([np.sum(np.maximum(0, r) ** 2, axis=1) for r in rest], axis=0)
        for ridge in RIDGES:
            # the whole objective on held-out rows: −αᵀβ' + (λ / 2) αᵀα
            risk = linear / ridge + curvature / (2 * ridge)
            better = risk < best
            best = np.where(better, risk, best)
            divergence = np.where(better, np.sum(positive**2, axis=1) / ridge - theta + 1, divergence)
    return float(theta[np.argmin(divergence)])


def ranks(z: Scores, weight: Weights) -> Float[np.ndarray, " n"]:
    """The middle of each row's place in the order of all, in (0, 1).

    Example:
        >>> ranks(np.array([5.0, 7.0, 7.0]), np.array([2.0, 1.0, 1.0])).tolist()
        [0.25, 0.75, 0.75]
    """
    values, group = np.unique(z, return_inverse=True)
    total = np.bincount(group, weight, len(values))
    return ((np.cumsum(total) - total / 2) / total.sum())[group]


def _excess(phi: np.ndarray, labeled: Labeled, weight: Weights, theta: np.ndarray) -> Float[np.ndarray, "t l"]:
    """β_l of every θ; 0 where a fold has no row of P or U."""
    n_p, n_u = weight[labeled].sum(), weight[~labeled].sum()
    if not n_p or not n_u:
        return np.zeros((len(theta), phi.shape[1]))
    return theta[:, None] * (weight[labeled] @ phi[labeled] / n_p) - weight[~labeled] @ phi[~labeled] / n_u
