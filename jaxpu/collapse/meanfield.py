"""Mean-field dynamics: training reduced to one number, the mean prediction p, for every member of the family.

All rows share one logit z, p = σ(z), so the batch is described by π, the share of labelled rows and the law of λ:

    J(z)    = base(z; π) + E_λ[ weight · penalty(μ(p, λ), p) ],      μ held fixed as in training
    z_{t+1} = z_t - η dJ/dz

The slope comes from :mod:`jaxpu.methods.objective`, the code that training runs, so every preset and every number of
:class:`~jaxpu.methods.objective.Hyper` may vary over a grid; the grid is one vectorised computation. For the pudra risk
with the point-process penalty the fixed point is known,

    p* = (π + κ) / (1 + κ),     κ = a E[w λ^b (1 - λ)],   b = 1 with weight_by_lambda, else 0,

so the soft label (a = 0) leaves p* = π: in the mean field it adds nothing, neither a pull to 0 nor a second fixed
point. A network differs from its mean field where rows differ from each other: p(x_mix) is not p(x), and positives
and negatives move apart.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float
from scipy import special

from jaxpu.config import TrainingConfig
from jaxpu.methods import METHODS, PENALTIES, Method, objective
from jaxpu.methods.objective import Hyper, Objective
from jaxpu.types import Scalar, ScalarLike

ROWS = 100
WIDEST, POINTS, MOST = 10.0, 801, 5
NOISE = 3e-6  # rounding of slopes that are 0 in exact arithmetic
HALVINGS = 20


class FixedPoints(NamedTuple):
    """Fixed points of one setting from small p to large, padded with NaN; see :func:`fixed_points`."""

    p: Float[Array, "*grid most"]
    stable: Bool[Array, "*grid most"]
    step_limit: Float[Array, "*grid most"]


def beta_nodes(alpha: float, k: int = 32) -> Float[np.ndarray, " k"]:
    """Give k equally likely values of λ ~ Beta(α, α): its quantiles at (i + ½)/k. α = inf gives λ = ½.

    Raises:
        ValueError: α is not positive.

    Example:
        >>> nodes = beta_nodes(0.3)
        >>> [round(float(m), 3) for m in ((nodes * (1 - nodes)).mean(), 0.3 / (2 * (2 * 0.3 + 1)))]  # E[λ (1 - λ)]
        [0.094, 0.094]
    """
    if not alpha > 0:
        raise ValueError(f"alpha must be positive, got {alpha}: without mixup there is no λ")
    if np.isinf(alpha):
        return np.full(k, 0.5, np.float32)
    return special.betaincinv(alpha, alpha, (np.arange(k) + 0.5) / k).astype(np.float32)


@functools.cache
def family() -> Objective:
    """The risks and penalties of all presets: what a grid may vary over.

    >>> len(family().penalties)
    2
    """
    return Objective(objective.branches_of(METHODS.values()), PENALTIES[1:])


def setting(method: Method, prior: float, *, lr: float = 1.0) -> Hyper:
    """The numbers of a preset, or of one with other numbers, at a class prior and a learning rate: a point of a grid.

    A number that moves along the epochs is at its start.

    >>> float(setting(METHODS["vpudra_softlabel"], 0.4).anchor)
    0.0
    """
    hyper = objective.hyper_of(method, TrainingConfig(lr=lr), prior, objective=family())
    return jax.tree.map(np.asarray, objective.at(hyper, 0, 2))


def slope(z: ScalarLike, hyper: Hyper, lams: Float[Array, " k"], labeled_share: ScalarLike = 0.04) -> Scalar:
    """dJ/dz where every row has the logit z.

    Args:
        z: the logit. hyper: the method's numbers. lams: equally likely values of λ; empty = no mixup.
        labeled_share: share of rows that are labelled positives (only the empirical π̂ sees it).

    Example:
        >>> hyper = setting(METHODS["pudra"], 0.4)
        >>> round(float(slope(0.0, hyper, jnp.zeros(0))), 4)  # (p - π)(1 - p) at p = ½
        0.05
    """
    # rows of a kind are alike: one of each, weighted by its share. Labelled, unlabelled positive, unlabelled negative
    labeled, labels = jnp.array([1.0, 0.0, 0.0]), jnp.array([1.0, 1.0, 0.0])
    positive = jnp.maximum(hyper.prior, labeled_share)
    weights = ROWS * jnp.stack([jnp.asarray(labeled_share), positive - labeled_share, 1 - positive])

    def loss(z: Scalar) -> Scalar:
        base, _ = objective.base_risk(family(), hyper, jnp.full(3, z), labeled, weights, y=labels.astype(jnp.int32))
        if not lams.size:
            return base

        two, one_of_each, both = jnp.full(2, z), jnp.array([1.0, 0.0]), jnp.ones(2)

        def term(lam: Scalar) -> Scalar:
            return objective.penalty(family(), hyper, two, jnp.arange(2), two, lam, one_of_each, both)[0]

        return base + jax.vmap(term)(lams).mean()

    return jax.grad(loss)(jnp.asarray(z, jnp.float32))


@functools.partial(jax.jit, static_argnames="steps")
def iterate(
    start: Float[Array, "*grid"], hyper: Hyper, lams: Float[Array, "*grid k"], steps: int
) -> Float[Array, "*grid steps"]:
    """Follow p over ``steps`` steps of size ``hyper.lr`` from p = ``start``, for a whole grid at once.

    Args:
        start: where p starts. hyper: every entry of the grid's shape. lams: λ of each point of the grid.
        steps: how many.

    Example:
        >>> one = jax.tree.map(lambda v: jnp.asarray(v)[None], setting(METHODS["pudra"], 0.3, lr=1.0))
        >>> p = iterate(jnp.array([1e-4]), one, jnp.zeros((1, 0)), 2000)
        >>> round(float(p[0, -1]), 3)
        0.3
    """

    def run(start: Scalar, hyper: Hyper, lams: Array) -> Array:
        def step(z: Scalar, _: None) -> tuple[Scalar, Scalar]:
            z = z - hyper.lr * slope(z, hyper, lams)
            return z, jax.nn.sigmoid(z)

        return lax.scan(step, jnp.log(start) - jnp.log1p(-start), length=steps)[1]

    return _over_grid(run, start.ndim)(start, hyper, lams)


@functools.partial(jax.jit)
def fixed_points(hyper: Hyper, lams: Float[Array, "*grid k"]) -> FixedPoints:
    """All p where dJ/dz = 0 and changes sign, for a whole grid at once: at most five each.

    A slope that is 0 everywhere (the variational risk with a soft label) has none: every p is at rest there,
    and nothing brings p back. ``step_limit`` is 2 / (d²J/dz²): a larger learning rate oscillates away from it
    (NaN where the point repels at any rate).

    Example:
        >>> one = jax.tree.map(lambda v: jnp.asarray(v)[None], setting(METHODS["vpudra_pp"], 0.4))
        >>> found = fixed_points(one, jnp.asarray(beta_nodes(0.3))[None])
        >>> kappa = 0.3 / (2 * (2 * 0.3 + 1))
        >>> round(float(found.p[0, 0]), 3), round((0.4 + kappa) / (1 + kappa), 3)
        (0.451, 0.451)
    """
    return _over_grid(_fixed_points, lams.ndim - 1)(hyper, lams)


def _fixed_points(hyper: Hyper, lams: Array) -> FixedPoints:
    @jax.jit  # so that it is traced once
    def at(z: Scalar) -> Scalar:
        return slope(z, hyper, lams)

    z = jnp.linspace(-WIDEST, WIDEST, POINTS)
    values = jax.vmap(at)(z)
    sign = jnp.sign(jnp.where(jnp.abs(values) < NOISE, 0.0, values))
    # a root that lies on the grid belongs to the interval above it
    sign = lax.associative_scan(lambda a, b: jnp.where(b == 0, a, b), sign)
    found = jnp.flatnonzero(sign[:-1] * sign[1:] < 0, size=MOST, fill_value=-1)

    def refine(place: Array) -> tuple[Scalar, Bool[Array, ""], Scalar]:
        def halve(_: Array, ends: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
            low, high = ends
            middle = (low + high) / 2
            same = jnp.sign(at(middle)) == sign[place]
            return jnp.where(same, middle, low), jnp.where(same, high, middle)

        low, high = lax.fori_loop(0, HALVINGS, halve, (z[place], z[place + 1]))
        root = (low + high) / 2
        curvature = (at(root + 0.05) - at(root - 0.05)) / 0.1
        return jax.nn.sigmoid(root), curvature > 0, jnp.where(curvature > 0, 2 / curvature, jnp.nan)

    p, stable, limit = jax.vmap(refine)(found)
    there = found >= 0
    return FixedPoints(jnp.where(there, p, jnp.nan), stable & there, jnp.where(there, limit, jnp.nan))


def _over_grid(function, dimensions: int):
    for _ in range(dimensions):
        function = jax.vmap(function)
    return function
