"""What every metric does first: check the shapes, promote the dtype, turn labels and mask into weights."""

from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Num
from numpy.typing import ArrayLike

from jaxpu.positive import counted_rows, positives
from jaxpu.types import Logits, Mask, Scalar

Labels: TypeAlias = Num[Array, " n"] | Bool[Array, " n"]
"""1 = positive, 0 = negative (in a proxy: labeled positive, unlabeled), one entry a row."""


class Rows(NamedTuple):
    """Scores and weights of one split: 0 on padding, and NaN if any logit that counts is NaN."""

    z: Float[Array, " n"]
    positive: Float[Array, " n"]
    negative: Float[Array, " n"]

    @property
    def weight(self) -> Float[Array, " n"]:
        """1 on rows that count, 0 on padding."""
        return self.positive + self.negative


def rows_of(logits: Logits, labels: Labels, mask: Mask | None) -> Rows:
    """Check and prepare the arguments of a metric.

    Args:
        logits: z, shape (n,); z is set to 0 on padding.
        labels: 1 or 0, shape (n,).
        mask: 1 for a row that counts, shape (n,); None counts all.

    Raises:
        ValueError: if the arrays are not all one-dimensional and of one length, or :mod:`jaxpu.positive` refuses them.
    """
    _check_shapes(logits=logits, labels=labels, mask=mask)
    counts = counted_rows(logits.shape[0], mask)
    is_positive = positives(labels, counts)
    z = jnp.asarray(logits, jnp.promote_types(logits.dtype, jnp.float32))
    if z.shape[0] == 0:  # a split without rows becomes one row of padding: max and indexing need an element
        z, counts, is_positive = jnp.zeros(1, z.dtype), jnp.zeros(1, bool), jnp.zeros(1, bool)
    z = jnp.where(counts, z, 0)
    # Comparisons with NaN are False: without NaN weights a diverged run would score like "all negative".
    unit = jnp.where(jnp.any(jnp.isnan(z)), jnp.nan, 1).astype(z.dtype)
    return Rows(z, jnp.where(counts & is_positive, unit, 0), jnp.where(counts & ~is_positive, unit, 0))


def weighted_mean(values: Num[Array, " n"] | Bool[Array, " n"], weight: Float[Array, " n"]) -> Scalar:
    """Σ w v / Σ w, NaN if no row has weight. An infinite value of weight 0 does not count."""
    return jnp.sum(jnp.where(weight == 0, 0, weight * values)) / jnp.sum(weight)


def undefined_reason(
    labels: ArrayLike, *, logits: ArrayLike | None = None, mask: ArrayLike | None = None
) -> str | None:
    """Say in words why metrics of this split are NaN; for concrete arrays, outside ``jit``.

    Args:
        labels: 1 or 0, shape (n,).
        logits: if given, NaN among them is looked for too, shape (n,).
        mask: 1 for a row that counts, shape (n,); None counts all.

    Returns:
        The reason, or None if every metric is defined.

    Raises:
        ValueError: if the arrays are not all one-dimensional and of one length.

    Example:
        >>> undefined_reason([0, 0, 1], mask=[1, 1, 0])
        'no positives among 2 rows: recall, F1, AUC and average precision are undefined'
        >>> undefined_reason([0, 1]) is None
        True
    """
    scores = np.zeros(np.shape(labels)) if logits is None else np.asarray(logits, np.float64)
    _check_shapes(labels=labels, mask=mask, logits=scores)
    counts = np.asarray(counted_rows(scores.size, None if mask is None else jnp.asarray(mask)))
    positive = np.asarray(positives(jnp.asarray(labels), jnp.asarray(counts)))
    positive, scores, n = positive[counts], scores[counts], int(counts.sum())
    if n == 0:
        return "no rows: every metric is undefined"
    if np.isnan(scores).any():
        return f"{np.isnan(scores).sum()} of {n} logits are NaN: every metric is undefined"
    if not positive.any():
        return f"no positives among {n} rows: recall, F1, AUC and average precision are undefined"
    if positive.all():
        return f"no negatives among {n} rows: AUC is undefined"
    return None


def _check_shapes(**arrays: ArrayLike | None) -> None:
    """Reject (n, 1) against (n,), which would broadcast to n x n."""
    shapes = {name: np.shape(array) for name, array in arrays.items() if array is not None}
    distinct = set(shapes.values())
    if len(distinct) > 1 or any(len(shape) != 1 for shape in distinct):
        got = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"expected one-dimensional arrays of one length (n,), got {got}: "
            "pass logits[:, 0] for a network with one output, and use vmap for a stack of runs"
        )
