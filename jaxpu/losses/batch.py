"""What every loss does with its arguments: which rows of a padded batch belong to which set, means.

The rules that every loss relies on: padding is replaced before any arithmetic, the mean of an empty set is 0, and a
Python number out of its range is refused, while a traced one is taken as it is.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Shaped

from jaxpu.checks import counted_rows, positives
from jaxpu.types import Labeled, Logits, Mask, Rows, Scalar, ScalarLike


class Mixed(NamedTuple):
    """A pass over mixed rows, λ x + (1 - λ) x[partner], for risks that set the targets of such rows themselves.

    Attributes:
        logits: (n,) of the mixed rows. partner: (n,) whom each row is mixed with. lam: λ, one for the batch or (n,).
    """

    logits: Logits
    partner: Rows
    lam: ScalarLike | Array

    def of(self, own: Float[Array, " n"], others: Float[Array, " n"] | None = None) -> Float[Array, " n"]:
        """λ y + (1 - λ) y[partner], or with what the partners have, one a row, as ``others``.

        Example:
            >>> Mixed(jnp.zeros(2), jnp.array([1, 1]), 0.75).of(jnp.array([0.0, 1.0])).tolist()
            [0.25, 1.0]
        """
        return self.lam * own + (1 - self.lam) * (own[self.partner] if others is None else others)


def sets(labeled: Labeled, mask: Mask | None) -> tuple[Bool[Array, " n"], Bool[Array, " n"]]:
    """The rows labeled 1 and the others, both without the padding.

    Args:
        labeled: 1 = labeled positive, 0 = unlabeled, shape (n,).
        mask: 1 = the row counts, 0 = padding, shape (n,); None counts every row.

    Raises:
        ValueError: the shapes are not (n,), or :mod:`jaxpu.checks` refuses labels or mask.

    Example:
        >>> [rows.tolist() for rows in sets(jnp.array([1, 0, 1]), jnp.array([1, 1, 0]))]
        [[True, False, False], [False, True, False]]
    """
    labeled = jnp.asarray(labeled)
    if labeled.ndim != 1:
        raise ValueError(f"labels have shape {labeled.shape}, expected (n,): try labels.ravel()")
    counted = counted_rows(labeled.size, mask)
    positive = positives(labeled, counted)
    return positive, counted & ~positive


def without_padding(values: Shaped[Array, "n *k"], counted: Bool[Array, " n"]) -> Shaped[Array, "n *k"]:
    """The values with 0 in place of padding, whatever it held.

    Example:
        >>> without_padding(jnp.array([[1.0, 2.0], [jnp.nan, 3.0]]), jnp.array([True, False])).tolist()
        [[1.0, 2.0], [0.0, 0.0]]
    """
    return jnp.where(jnp.expand_dims(counted, range(1, values.ndim)), values, jnp.zeros((), values.dtype))


def clean(logits: Logits, counted: Bool[Array, " n"]) -> Logits:
    """Logits in float32 or wider, with 0 in place of padding.

    A NaN in the padding that were zeroed after the arithmetic would still turn the gradient into NaN.

    Raises:
        ValueError: the logits do not have the shape (n,) of the rows.

    Example:
        >>> clean(jnp.array([1.0, jnp.nan]), jnp.array([True, False])).tolist()
        [1.0, 0.0]
    """
    logits = jnp.asarray(logits)
    if logits.shape != counted.shape:
        raise ValueError(
            f"logits have shape {logits.shape}, expected {counted.shape}, one logit a row like the labels: "
            "try logits.ravel()"
        )
    return wide(without_padding(logits, counted))


def wide(values: Shaped[Array, "*shape"]) -> Float[Array, "*shape"]:
    """In float32, or float64 if they are in it.

    Example:
        >>> wide(jnp.ones(2, "bfloat16")).dtype.name
        'float32'
    """
    return values.astype(jnp.promote_types(values.dtype, jnp.float32))


def mean(values: Float[Array, " n"], rows: Bool[Array, " n"]) -> Scalar:
    """Mean of the values over a set of rows; 0 for the empty set.

    Example:
        >>> float(mean(jnp.array([1.0, 3.0, 9.0]), jnp.array([True, True, False])))
        2.0
    """
    return jnp.where(rows, values, 0).sum() / jnp.maximum(rows.sum(), 1)
