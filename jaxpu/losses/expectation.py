"""From a margin loss to a classification loss: its expectation over the label, weighted and reduced over the rows."""

from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxpu.losses.labels import check_shapes, margins
from jaxpu.losses.rows import counted_rows, wide, without_padding
from jaxpu.types import ClassLabels, ClassLogits, Mask, Weights

Loss: TypeAlias = Float[Array, ""] | Float[Array, " n"]
"""A scalar, or with ``reduction="none"`` one number a row."""

REDUCTIONS = ("mean", "sum", "none")
"""What becomes of the losses of the rows: Σ w ℓ / Σ w, Σ w ℓ, or each w ℓ."""


def expectation(
    margin_loss: Callable[[Array], Array],
    logits: ClassLogits,
    labels: ClassLabels,
    weights: Weights | None,
    mask: Mask | None,
    reduction: str,
) -> Loss:
    """Weighted mean over the rows of Σ q_k ℓ(m_k), ℓ a margin loss, or what ``reduction`` says.

    Raises:
        ValueError: shapes that do not fit, a reduction that does not exist.

    Example:
        >>> import jax
        >>> float(expectation(jax.nn.sigmoid, jnp.zeros(2), jnp.array([0, 1]), None, None, "mean"))
        0.5
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction is {reduction!r}, expected one of {list(REDUCTIONS)}")
    logits, labels = jnp.asarray(logits), jnp.asarray(labels)
    check_shapes(logits, labels)
    counted = counted_rows(labels.shape[0], mask)
    logits = wide(without_padding(logits, counted))
    weights = _row_weights(weights, counted, logits)
    m, share = margins(logits, without_padding(labels, counted))
    each = weights * (share * margin_loss(m)).sum(axis=-1)
    if reduction == "none":
        return each
    total = weights.sum() if reduction == "mean" else 1
    return each.sum() / jnp.where(total > 0, total, 1)


def _row_weights(weights: Weights | None, counted: Array, logits: ClassLogits) -> Float[Array, " n"]:
    """The weights in the logits' type, 0 in padding."""
    if weights is None:
        return counted.astype(logits.dtype)
    weights = jnp.asarray(weights)
    if weights.shape != counted.shape:
        raise ValueError(f"weights have shape {weights.shape}, expected {counted.shape}, one a row")
    return without_padding(weights, counted).astype(logits.dtype)
