"""Margin losses ℓ(m): the price of the margin m = y z for a label y = ±1.

A positive row pays ℓ(z), a row taken as negative pays ℓ(-z). uPU and nnPU (:mod:`jaxpu.losses.pu`) are risks
of such a loss, and so are the losses of :mod:`jaxpu.losses.classification`, binary or not: there σ(m) = p_y is the
probability of the label, and m its log odds. The functions work elementwise and keep the shape and dtype of
their input.

``SURROGATES`` names them, each at the default of its option; :func:`chosen` sets it, and any other function, such as
``functools.partial(bonus, floor=0.1)``, is a margin loss that ``upu``, ``nnpu`` and ``pn`` accept as it is.
"""

import functools
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxpu.checks import check_range
from jaxpu.types import ScalarLike

Surrogate: TypeAlias = str | Callable[[Array], Array]
"""A margin loss, by name or as a function."""

SLOPES = ("tangent", "unit")
"""How :func:`encouraging` goes on beyond its log end."""


def sigmoid(margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Sigmoid loss ℓ(m) = σ(-m), bounded and symmetric: ℓ(m) + ℓ(-m) = 1.

    Its gradient vanishes on both sides. The usual choice for nnPU (Kiryo et al., NeurIPS 2017). It is the mean
    absolute error ``classification.mae``, 1 - p_y.

    Example:
        >>> float(sigmoid(jnp.array(0.0)))
        0.5
    """
    return jax.nn.sigmoid(-margin)


def logistic(margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Logistic loss ℓ(m) = log(1 + e⁻ᵐ) = -log σ(m), convex, with ℓ(m) - ℓ(-m) = -m.

    That difference being linear makes uPU convex (du Plessis et al., ICML 2015). It is the cross-entropy, -log p_y.

    Example:
        >>> round(float(logistic(jnp.array(0.0))), 4)
        0.6931
    """
    return jax.nn.softplus(-margin)


def squared(margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Squared loss ℓ(m) = (m - 1)² / 4 of the margin, not of a probability: it also punishes margins beyond 1.

    The factor ¼ makes ℓ(-1) = 1. Public code for nnPU also has (m - 1)² / 2, twice this one. Of a factor on the whole
    risk Adam sees next to nothing; against weight decay, a penalty or nnPU's β it counts.

    Example:
        >>> squared(jnp.array([-1.0, 0.0, 1.0, 3.0])).tolist()
        [1.0, 0.25, 0.0, 1.0]
    """
    return jnp.square(margin - 1) / 4


def savage(margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Savage loss ℓ(m) = σ(-m)², bounded (Masnadi-Shirazi and Vasconcelos, NeurIPS 2008).

    The paper writes it as 1 / (1 + e²ᵛ)² with v half the logit; the margin here is the logit itself. It is the
    mean squared error ``classification.mse``, (1 - p_y)², and goes from 1 to 0. Public code for nnPU also has
    4 / (1 + eᵐ)², four times this one: see :func:`squared` for what a factor does.

    Example:
        >>> float(savage(jnp.array(0.0)))
        0.25
    """
    return jnp.square(jax.nn.sigmoid(-margin))


def mae_mse(margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Sum of :func:`sigmoid` and :func:`savage`: absolute and squared error of p_y.

    Example:
        >>> float(mae_mse(jnp.array(0.0)))
        0.75
    """
    return sigmoid(margin) + savage(margin)


def bonus(margin: Float[Array, "*shape"], *, floor: ScalarLike = 0.0) -> Float[Array, "*shape"]:
    """Cross-entropy and bonus ℓ(m) = -log σ(m) + log max(σ(-m), f); with f = 0 simply ℓ(m) = -m.

    Raises:
        ValueError: a Python number as ``floor`` outside [0, 1].

    Example:
        >>> bonus(jnp.array([-2.0, 1.0, 5.0])).tolist()
        [2.0, -1.0, -5.0]
    """
    check_range("floor", floor, 0, 1)
    floor = jnp.asarray(floor, margin.dtype)
    log_floor = jnp.log(jnp.where(floor > 0, floor, 1))
    below = margin <= jnp.where(floor > 0, jnp.log1p(-floor) - log_floor, jnp.inf)
    return jnp.where(below, -margin, jax.nn.softplus(-margin) + log_floor)


def encouraging(
    margin: Float[Array, "*shape"], *, log_end: ScalarLike = 0.75, slope: str = "tangent"
) -> Float[Array, "*shape"]:
    """Encouraging loss: ℓ(m) = -m while p = σ(m) ≤ LE, beyond it -log p + log(1 - LE) - s (p - LE).

    s is 1 / (1 - LE) for the "tangent" and 1 for the "unit" slope. LE = 1 is :func:`bonus` with floor 0; LE = 0 is
    -log p - p with either slope. :func:`jaxpu.losses.encouraging` says more.

    Raises:
        ValueError: a Python number as ``log_end`` outside [0, 1]; a slope that does not exist.

    Example:
        >>> [round(loss, 4) for loss in encouraging(jnp.array([-2.0, 1.0, 5.0])).tolist()]
        [2.0, -1.0, -2.3528]
    """
    if slope not in SLOPES:
        raise ValueError(f"slope is {slope!r}, expected one of {list(SLOPES)}")
    check_range("log_end", log_end, 0, 1)
    # 1 - LE before the cast: near 1 a Python number still has all its digits.
    left = jnp.asarray(1 - log_end, margin.dtype)
    in_log = margin <= jnp.log1p(-left) - jnp.log(left)
    left = jnp.where(left > 0, left, 1)  # LE = 1 has no linear part, and must not make NaN of it
    steepness = 1 / left if slope == "tangent" else 1
    line = jnp.log(left) + steepness * (jax.nn.sigmoid(-margin) - left)
    return jnp.where(in_log, -margin, jax.nn.softplus(-margin) + line)


def focal(margin: Float[Array, "*shape"], *, gamma: ScalarLike = 2.0) -> Float[Array, "*shape"]:
    """Focal loss ℓ(m) = -σ(-m)^γ log σ(m); γ = 0 is :func:`logistic` (Lin et al., ICCV 2017).

    Raises:
        ValueError: a negative or infinite Python number as ``gamma``.

    Example:
        >>> [round(loss, 4) for loss in focal(jnp.array([-2.0, 0.0, 5.0])).tolist()]
        [1.6501, 0.1733, 0.0]
    """
    check_range("gamma", gamma, 0)
    missed = jnp.where(margin < -1e15, -1e15, margin)  # the factor is 1 there: its slope of 0 meets an endless loss
    factor = jnp.exp(jnp.asarray(gamma, margin.dtype) * jax.nn.log_sigmoid(-missed))
    return factor * jax.nn.softplus(-margin)


def zero_one(margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Zero-one loss ℓ(m) = (1 - sign m) / 2, for evaluation only: its gradient is zero.

    A margin of exactly 0 counts as half an error, ℓ(0) = 1/2, so that ℓ(m) + ℓ(-m) = 1 everywhere.

    Example:
        >>> zero_one(jnp.array([-2.0, 0.0, 2.0])).tolist()
        [1.0, 0.5, 0.0]
    """
    return (1 - jnp.sign(margin)) / 2


SURROGATES: dict[str, Callable[[Array], Array]] = {
    "sigmoid": sigmoid,
    "logistic": logistic,
    "squared": squared,
    "savage": savage,
    "mae_mse": mae_mse,
    "bonus": bonus,
    "encouraging": encouraging,
    "encouraging_unit": functools.partial(encouraging, slope="unit"),
    "focal": focal,
}
"""The surrogates that can be trained with, by name."""


def chosen(surrogate: Surrogate, *, log_end: ScalarLike = 0.75, focus: ScalarLike = 2.0) -> Callable[[Array], Array]:
    """The margin loss of a name, with its option: ``log_end`` of ``encouraging``, ``focus`` is the γ of ``focal``.

    A function is taken as it is. The other losses have no option, and use neither.

    Raises:
        ValueError: no surrogate of that name; when it is called, a Python number out of its range.

    Example:
        >>> round(float(chosen("focal", focus=0.0)(jnp.array(0.0))), 4)
        0.6931
    """
    if not isinstance(surrogate, str):
        return surrogate
    if surrogate not in SURROGATES:
        raise ValueError(f"surrogate is {surrogate!r}, expected a function or one of {list(SURROGATES)}")
    options = {"encouraging": {"log_end": log_end}, "encouraging_unit": {"log_end": log_end}, "focal": {"gamma": focus}}
    return functools.partial(SURROGATES[surrogate], **options.get(surrogate, {}))


def binary_entropy(z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Entropy H(p) = -p log p - (1 - p) log(1 - p) of p = σ(z), from log 2 at z = 0 to 0 at both ends.

    Example:
        >>> [round(h, 4) for h in binary_entropy(jnp.array([0.0, 3.0, -200.0])).tolist()]
        [0.6931, 0.1909, 0.0]
    """
    return soft_cross_entropy(z, jax.nn.sigmoid(z))


def soft_cross_entropy(z: Float[Array, "*shape"], y: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Cross-entropy H(y, p) = -y log p - (1 - y) log(1 - p) of p = σ(z) with a label between 0 and 1.

    Example:
        >>> round(float(soft_cross_entropy(jnp.array(0.0), jnp.array(0.3))), 4)
        0.6931
    """
    return -y * jax.nn.log_sigmoid(z) - (1 - y) * jax.nn.log_sigmoid(-z)
