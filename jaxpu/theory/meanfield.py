"""Mean-field dynamics: training reduced to one number, the mean prediction p, for every member of the family.

All rows share one logit z, p = σ(z), so a batch is described by π, the share φ of labeled rows and the law of λ:

    J(z)    = base(z; π) + E_λ[ weight · penalty(μ(p, λ), p) ],      μ held fixed as in training
    z_{t+1} = z_t - η dJ/dz

The slope comes from :mod:`jaxpu.methods.objective`, the code that training runs, so every method and every number of
:class:`~jaxpu.methods.objective.Hyper` may vary over a grid; the grid is one vectorised computation. For the pudra risk
with the point-process penalty the fixed point is known,

    p* = (π + κ) / (1 + κ),     κ = a E[w λ^b (1 - λ)],   b = 1 with weight_by_lambda, else 0,

so the soft label (a = 0) leaves p* = π: in the mean field it adds nothing, neither a slope towards 0 nor a second
fixed point. With the prior of the batch, φ stands in place of π. A network differs from its mean field where its rows
differ: p(x_mix) is not p(x), and positives and negatives move apart.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float

from jaxpu.methods import objective
from jaxpu.theory.points import Setting
from jaxpu.types import Scalar, ScalarLike

ROWS = 64
"""Rows of the batches that stand for all."""

WIDEST, POINTS, MOST = 10.0, 801, 5
NOISE = 3e-6  # rounding of slopes that are 0 in exact arithmetic
HALVINGS = 20


class FixedPoints(NamedTuple):
    """Fixed points of one setting from small p to large, padded with NaN; see :func:`fixed_points`."""

    p: Float[Array, "*grid most"]
    stable: Bool[Array, "*grid most"]
    step_limit: Float[Array, "*grid most"]


def slope(z: ScalarLike, setting: Setting, lams: Float[Array, " k"]) -> Scalar:
    """dJ/dz where every row has the logit z.

    Batches have a whole number of labeled rows, and of positives; the slope is that of batches of :data:`ROWS` rows
    with the next numbers below and above, weighted so that their mean is the setting's. So it is exact for all risks
    that are linear in these numbers. At least one row is labeled and one is not: training skips other batches.

    Args:
        z: the logit. setting: one point of a grid. lams: equally likely values of λ; empty = no mixup.

    Example:
        >>> from jaxpu.methods import METHODS
        >>> from jaxpu.theory import setting
        >>> round(float(slope(0.0, setting(METHODS["pudra"], 0.4), jnp.zeros(0))), 4)  # (p - π)(1 - p) at p = ½
        0.05
    """
    return jax.grad(_loss)(jnp.asarray(z, jnp.float32), jax.tree.map(jnp.asarray, setting), lams)


def _loss(z: Scalar, setting: Setting, lams: Array) -> Scalar:
    hyper, share = setting.hyper, setting.labeled_share
    place, rows = jnp.arange(ROWS), jnp.ones(ROWS)

    def risk(labeled: Scalar, positive: Scalar) -> Scalar:
        s, y = ((place < count).astype(jnp.float32) for count in (labeled, positive))
        return objective.base_risk(setting.objective, hyper, jnp.full(ROWS, z), s, rows, y=y.astype(jnp.int32))[0]

    shares = (share, share + (1 - share) * hyper.prior)
    counts, weights = zip(*(_around(ROWS * jnp.asarray(part)) for part in shares), strict=True)
    risks = jax.vmap(lambda k: jax.vmap(lambda n: risk(k, n))(counts[1]))(counts[0])
    base = weights[0] @ risks @ weights[1]
    if not lams.size or not setting.objective.penalties:
        return base
    two, one_of_each, both = jnp.full(2, z), jnp.array([1.0, 0.0]), jnp.ones(2)

    def term(lam: Scalar) -> Scalar:
        return objective.penalty(setting.objective, hyper, two, jnp.arange(2), two, lam, one_of_each, both)[0]

    return base + jax.vmap(term)(lams).mean()


def _around(count: Scalar) -> tuple[Float[Array, " 2"], Float[Array, " 2"]]:
    """Two whole numbers next to each other, and their weights of sum 1 with which their mean is ``count``."""
    below = jnp.clip(jnp.floor(count), 1, ROWS - 2)
    return jnp.stack([below, below + 1]), jnp.stack([below + 1 - count, count - below])


@functools.partial(jax.jit, static_argnames="steps")
def iterate(
    start: Float[Array, "*grid"], setting: Setting, lams: Float[Array, "*grid k"], steps: int
) -> Float[Array, "*grid steps"]:
    """Follow p over ``steps`` steps of size ``setting.hyper.lr`` from p = ``start``, for a whole grid at once.

    Args:
        start: where p starts. setting: every entry of the grid's shape. lams: λ of each point of the grid.
        steps: how many.

    Example:
        >>> from jaxpu.methods import METHODS
        >>> from jaxpu.theory import grid
        >>> p = iterate(jnp.array([1e-4]), grid(METHODS["pudra"], 0.3, lr=1.0), jnp.zeros((1, 0)), 2000)
        >>> round(float(p[0, -1]), 3)
        0.3
    """

    def run(start: Scalar, setting: Setting, lams: Array) -> Array:
        def step(z: Scalar, _: None) -> tuple[Scalar, Scalar]:
            z = z - setting.hyper.lr * slope(z, setting, lams)
            return z, jax.nn.sigmoid(z)

        return lax.scan(step, jnp.log(start) - jnp.log1p(-start), length=steps)[1]

    return _over_grid(run, start.ndim)(start, setting, lams)


@jax.jit
def fixed_points(setting: Setting, lams: Float[Array, "*grid k"]) -> FixedPoints:
    """All p where dJ/dz = 0 and changes sign, for a whole grid at once: at most five each.

    A slope that is 0 everywhere (the variational risk with a soft label) has none: every p is at rest there,
    and nothing brings p back. ``step_limit`` is 2 / (d²J/dz²): a larger learning rate oscillates away from it
    (NaN where the point repels at any rate).

    Example:
        >>> from jaxpu.methods import METHODS
        >>> from jaxpu.theory import beta_nodes, grid
        >>> found = fixed_points(grid(METHODS["vpudra_pp"], 0.4), jnp.asarray(beta_nodes(0.3))[None])
        >>> kappa = 0.3 / (2 * (2 * 0.3 + 1))
        >>> round(float(found.p[0, 0]), 3), round((0.4 + kappa) / (1 + kappa), 3)
        (0.451, 0.451)
    """
    return _over_grid(_fixed_points, lams.ndim - 1)(setting, lams)


def _fixed_points(setting: Setting, lams: Array) -> FixedPoints:
    @jax.jit  # so that it is traced once
    def at(z: Scalar) -> Scalar:
        return slope(z, setting, lams)

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
