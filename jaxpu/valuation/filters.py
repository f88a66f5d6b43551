"""Which pairs enter a student's loss."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int, Key

from jaxpu.config.guide import FILTERS

__all__ = ["FILTERS", "chosen", "keep"]


def keep(
    risk: Float[Array, " n"],
    which: Int[Array, ""] | int,
    *,
    key: Key[Array, ""] | None = None,
    mask: Float[Array, " n"] | None = None,
) -> Float[Array, " n"]:
    """1 for the pairs that a filter lets through, 0 for the others, padding among them.

    ``whole`` keeps all, ``low`` those with r̂ ≤ 0, ``high`` those with r̂ > 0, and ``random`` as many as ``low`` would,
    whichever: what tells a gain of the choice from one of the number.

    Args:
        risk: r̂. which: place of the filter in :data:`FILTERS`, traced. key: for ``random``; None keeps the first ones.
        mask: 1 = the pair counts, 0 = padding; None counts all.

    >>> [keep(jnp.array([-1.0, 0.0, 1.0]), i).tolist() for i in range(3)]
    [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    >>> float(keep(jnp.array([-1.0, 0.0, 1.0]), FILTERS.index("random"), key=jax.random.key(0)).sum())
    2.0
    """
    counted = jnp.ones_like(risk) if mask is None else mask.astype(risk.dtype)
    low, high = counted * (risk <= 0), counted * ~(risk <= 0)
    order = jnp.zeros_like(risk) if key is None else jax.random.uniform(key, risk.shape)
    turn = jnp.argsort(jnp.argsort(jnp.where(counted > 0, order, jnp.inf)))
    return jnp.stack([counted, low, high, counted * (turn < low.sum())])[which]


def chosen(kept: Float[Array, " n"], most: int) -> Float[Array, " n"]:
    """The first ``most`` of the pairs that were kept.

    >>> chosen(jnp.array([1.0, 0.0, 1.0, 1.0]), 2).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    return kept * (jnp.cumsum(kept) <= most)
