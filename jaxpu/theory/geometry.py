"""The shape of the losses that drive p: value, slope and curvature over p and the target μ, in the logit.

Networks move logits, so all derivatives are with respect to z, p = σ(z): a slope in p that explodes as p → 0
is multiplied by dp/dz = p (1 - p). Everything is differentiated from the losses that training uses; the closed
forms below are what it is tested against.

=================  ===================================  =====================  ========================
                   slope dL/dz                          fixed point            curvature there
=================  ===================================  =====================  ========================
log-MSE            -2 (log μ - log p)(1 - p)            p = μ                  2 (1 - μ)²
point process      (p - μ)(1 - p)                       p = μ                  μ (1 - μ)²
pudra              (p - π)(1 - p)                       p = π                  π (1 - π)²
pudra_naive        (2 p - 1)(1 - p)                     p = 1/2                1/8
variational        0                                    everywhere             0
=================  ===================================  =====================  ========================

So with a small target μ ≈ 0 the gradient of the point process is at most p (1 - p) ≤ 1/4, while that of log-MSE is
2 log(p/μ)(1 - p), without bound: of the two it is log-MSE that pushes p → 0 the harder.
"""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxpu import mixup
from jaxpu.errors import unknown
from jaxpu.methods import RISKS, resolve
from jaxpu.methods.risks import options_of
from jaxpu.types import ScalarLike


class Shape(NamedTuple):
    """A loss along the logit: its value, dL/dz and d²L/dz²."""

    value: Float[Array, "*grid"]
    slope: Float[Array, "*grid"]
    curvature: Float[Array, "*grid"]


class FixedPoint(NamedTuple):
    """Where a loss has no slope; ``stable`` where its slope rises through 0, so that p comes back."""

    p: float
    stable: bool


@functools.partial(jax.jit, static_argnames="name")
def penalty_shape(name: str, p: Float[Array, "..."], mu: Float[Array, "..."] | ScalarLike) -> Shape:
    """A mixup penalty at prediction p and target μ, which is held fixed as in training.

    Args:
        name: ``log_mse`` or ``point_process``. p: predictions in (0, 1). mu: targets in (0, 1], broadcast with p.

    Raises:
        ValueError: for an unknown penalty, with the choices.

    Example:
        >>> shape = penalty_shape("point_process", jnp.array([0.4]), jnp.array([0.1]))
        >>> round(float(shape.slope[0]), 4)  # (p - μ)(1 - p)
        0.18
    """
    if name not in mixup.PENALTIES:
        raise ValueError(f"unknown penalty {name!r}; choose from {', '.join(mixup.PENALTIES)}")
    p, mu = jnp.broadcast_arrays(jnp.asarray(p), jnp.asarray(mu))

    def loss(z: Array, log_mu: Array) -> Array:
        return mixup.PENALTIES[name](log_mu[None], jax.nn.log_sigmoid(z)[None])[0]

    return _shape(loss, p, jnp.log(mu))


@functools.partial(jax.jit, static_argnames="name")
def risk_shape(name: str, p: Float[Array, "..."], prior: Float[Array, "..."] | ScalarLike) -> Shape:
    """A base risk where every row of P and of U has the same prediction p: the mean field.

    Args:
        name: one of :data:`jaxpu.methods.RISKS`; an oracle, which sees true labels, at a share π of positives.
        p: predictions in (0, 1). prior: the class prior π, broadcast with p.

    Raises:
        ValueError: for an unknown risk, with the choices.

    Example:
        >>> shape = risk_shape("pudra", jnp.array([0.4, 0.3]), 0.4)
        >>> [round(float(s), 4) + 0.0 for s in shape.slope]  # (p - π)(1 - p)
        [0.0, -0.07]
    """
    if name not in RISKS:
        raise ValueError(unknown("risk", name, RISKS))
    p, prior = jnp.broadcast_arrays(jnp.asarray(p), jnp.asarray(prior, p.dtype))
    one_each, context = jnp.array([1, 0]), options_of(name).context

    def loss(z: Array, prior: Array) -> Array:
        if "y" in context:  # an oracle, whose risk is a mean over the classes
            each = [resolve(name)(z[None], one_each[1:], y=jnp.array([label])) for label in (1, 0)]
            return prior * each[0] + (1 - prior) * each[1]
        return resolve(name)(jnp.stack([z, z]), one_each, **{"prior": prior} if "prior" in context else {})

    return _shape(loss, p, prior)


def sign_changes(
    slope: Callable[[np.ndarray], np.ndarray], points: int = 2000, widest: float = 12.0
) -> list[FixedPoint]:
    """Find every p where a slope changes sign, by a grid over the logit and bisection.

    Args:
        slope: maps (n,) predictions to (n,) slopes dL/dz. points: of the grid. widest: its largest |logit|.

    Returns:
        The places, from small p to large; none where the slope is 0 everywhere or never changes sign.

    Example:
        >>> [round(point.p, 3) for point in sign_changes(lambda p: (p - 0.3) * (1 - p))]
        [0.3]
    """
    z = np.linspace(-widest, widest, points)
    values = np.asarray(slope(_sigmoid(z)), dtype=np.float64)
    found = []
    known = np.flatnonzero(values)  # where the slope is exactly 0 on the grid, look between its neighbours
    for left, right in itertools.pairwise(known):
        if np.sign(values[left]) == np.sign(values[right]):
            continue
        low, high = z[left], z[right]
        for _ in range(40):
            middle = (low + high) / 2
            same = np.sign(slope(np.array([_sigmoid(middle)]))[0]) == np.sign(values[left])
            low, high = (middle, high) if same else (low, middle)
        found.append(FixedPoint(float(_sigmoid((low + high) / 2)), bool(values[left] < 0)))
    return found


def _sigmoid(z: np.ndarray | float) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-np.asarray(z, dtype=np.float64))))


def _shape(loss: Callable[[Array, Array], Array], p: Array, other: Array) -> Shape:
    z = jnp.log(p) - jnp.log1p(-p)
    derivatives = (loss, jax.grad(loss), jax.grad(jax.grad(loss)))
    flat = [jax.vmap(f)(z.ravel(), other.ravel()).reshape(p.shape) for f in derivatives]
    return Shape(*flat)
