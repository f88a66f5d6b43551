"""The convex combination at the heart of mixup."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Num

from jaxpu.types import Rows, Scalar


def mix(
    x: Num[Array, "n *features"], partner: Rows, lam: float | Scalar | Float[Array, " n"]
) -> Float[Array, "n *features"]:
    """Mix every row with its partner, x_mix = λ x + (1 - λ) x[partner] (Zhang et al., ICLR 2018).

    λ = 1 gives x and λ = 0 the partner exactly, as long as all features are finite; fill padding with finite
    numbers.

    Args:
        x: one row an example, shape (n, ...); integers become float32, a floating dtype is kept.
        partner: indices into the batch, shape (n,).
        lam: λ, one for the batch or one a row.

    Raises:
        ValueError: ``partner`` is not of shape (n,), or ``lam`` neither a scalar nor of shape (n,).

    Example:
        >>> mix(jnp.array([[0.0], [4.0]]), jnp.array([1, 1]), 0.75).tolist()
        [[1.0], [4.0]]
    """
    x, partner, lam = jnp.asarray(x), jnp.asarray(partner), jnp.asarray(lam)
    rows = x.shape[:1]
    if partner.shape != rows:
        raise ValueError(f"partner has shape {partner.shape}, expected {rows}: one index a row of x")
    if lam.shape not in ((), rows):
        raise ValueError(f"lam has shape {lam.shape}, expected () or {rows}: one for the batch or one a row")
    weight = lam.reshape(lam.shape + (1,) * (x.ndim - 1)) if lam.ndim else lam
    mixed = weight * x + (1 - weight) * x[partner]
    return mixed.astype(x.dtype) if jnp.issubdtype(x.dtype, jnp.floating) else mixed
