"""Margin losses ℓ(m): the price of the margin m = y z for a label y = ±1, below 1/2 where the sign is right.

A positive row pays ℓ(z), a row taken as negative pays ℓ(-z). uPU and nnPU (:mod:`jaxpu.losses.pu`) are risks
of such a loss. The functions work elementwise and keep the shape and dtype of their input.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


def sigmoid(margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Sigmoid loss ℓ(m) = σ(-m), bounded and symmetric: ℓ(m) + ℓ(-m) = 1.

    Its gradient vanishes on both sides. The usual choice for nnPU (Kiryo et al., NeurIPS 2017).

    Example:
        >>> float(sigmoid(jnp.array(0.0)))
        0.5
    """
    return jax.nn.sigmoid(-margin)


def logistic(margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Logistic loss ℓ(m) = log(1 + e⁻ᵐ) = -log σ(m), convex, with ℓ(m) - ℓ(-m) = -m.

    That difference being linear makes uPU convex (du Plessis et al., ICML 2015).

    Example:
        >>> round(float(logistic(jnp.array(0.0))), 4)
        0.6931
    """
    return jax.nn.softplus(-margin)


def squared(margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Squared loss ℓ(m) = (m - 1)² / 4: it also punishes margins beyond 1.

    Example:
        >>> squared(jnp.array([-1.0, 0.0, 1.0, 3.0])).tolist()
        [1.0, 0.25, 0.0, 1.0]
    """
    return jnp.square(margin - 1) / 4


def savage(margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Savage loss ℓ(m) = σ(-m)², bounded (Masnadi-Shirazi and Vasconcelos, NeurIPS 2008).

    The paper writes it as 1 / (1 + e²ᵛ)² with v half the logit; the margin here is the logit itself.

    Example:
        >>> float(savage(jnp.array(0.0)))
        0.25
    """
    return jnp.square(jax.nn.sigmoid(-margin))


def zero_one(margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Zero-one loss ℓ(m) = (1 - sign m) / 2, for evaluation only: its gradient is zero.

    A margin of exactly 0 counts as half an error, ℓ(0) = 1/2, so that ℓ(m) + ℓ(-m) = 1 everywhere.

    Example:
        >>> zero_one(jnp.array([-2.0, 0.0, 2.0])).tolist()
        [1.0, 0.5, 0.0]
    """
    return (1 - jnp.sign(margin)) / 2


# The order is part of the interface: a position in this dict serves as a traced index in lax.switch.
SURROGATES: dict[str, Callable[[Array], Array]] = {
    "sigmoid": sigmoid,
    "logistic": logistic,
    "squared": squared,
    "savage": savage,
}
"""The surrogates that can be trained with, by name."""
