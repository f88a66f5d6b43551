"""Where the mean field goes: trajectories of p, and the fixed points at which they end."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float

from jaxpu.theory.meanfield import Setting, slope
from jaxpu.types import Scalar

WIDEST, POINTS, MOST = 10.0, 801, 5
NOISE = 3e-6  # rounding of slopes that are 0 in exact arithmetic
HALVINGS = 20


class FixedPoints(NamedTuple):
    """Fixed points of one setting from small p to large, padded with NaN; see :func:`fixed_points`."""

    p: Float[Array, "*grid most"]
    stable: Bool[Array, "*grid most"]
    step_limit: Float[Array, "*grid most"]


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
