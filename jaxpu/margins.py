"""Margins of k logits a row: the log odds of each class against all others together.

The margin of class k is m = z_k - log Σ exp z_j over the other classes, so that σ(m) = p_k and σ(-m) = 1 - p_k with all
digits on both sides.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from jaxpu.types import ClassLabels


def one_hot(labels: ClassLabels, classes: int) -> Bool[Array, "n k"]:
    """True at the label's class; nowhere if the label is no class.

    Example:
        >>> one_hot(jnp.array([1, -1]), 2).tolist()
        [[False, True], [False, False]]
    """
    return labels[:, None] == jnp.arange(classes)[None, :]


def own_margin(logits: Float[Array, "n k"], hit: Bool[Array, "n k"]) -> Float[Array, "n 1"]:
    """The margin of the class of each row that is hit.

    From differences to the largest of the others: a shift of all logits costs no digits.

    Example:
        >>> own_margin(jnp.array([[0.0, 2.0]]), jnp.array([[True, False]])).tolist()
        [[-2.0]]
    """
    others = jnp.where(hit, -jnp.inf, logits)
    largest = jax.lax.stop_gradient(others.max(axis=-1, keepdims=True))
    own = jnp.where(hit, logits - largest, 0).sum(axis=-1, keepdims=True)
    return own - jnp.log(jnp.exp(others - largest).sum(axis=-1, keepdims=True))


def all_margins(logits: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """The margins of all classes.

    Without k sums over k - 1 others: taking one off the sum loses digits for the largest p only.

    Example:
        >>> all_margins(jnp.array([[0.0, 2.0]])).tolist()
        [[-2.0, 2.0]]
    """
    top = one_hot(jnp.argmax(logits, axis=-1), logits.shape[1])
    shifted = logits - jax.lax.stop_gradient(logits.max(axis=-1, keepdims=True))
    power = jnp.exp(shifted)
    others = power.sum(axis=-1, keepdims=True) - power  # at least 1 but for the largest
    return jnp.where(top, own_margin(logits, top), shifted - jnp.log(jnp.where(top, 1, others)))
