"""What every loss does with its arguments: which rows of a padded batch belong to which set, means, checks of numbers.

The rules that every loss relies on: padding is replaced before any arithmetic, the mean of an empty set is 0, and a
Python number out of its range is refused, while a traced one is taken as it is.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Shaped

from jaxpu.positive import counted_rows, known, positives
from jaxpu.types import Labeled, Logits, Mask, Scalar, ScalarLike


def sets(labeled: Labeled, mask: Mask | None) -> tuple[Bool[Array, " n"], Bool[Array, " n"]]:
    """The rows labeled 1 and the others, both without the padding.

    Args:
        labeled: 1 = labeled positive, 0 = unlabeled, shape (n,).
        mask: 1 = the row counts, 0 = padding, shape (n,); None counts every row.

    Raises:
        ValueError: the shapes are not (n,), or :mod:`jaxpu.positive` refuses labels or mask.

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


def check_range(name: str, value: Any, least: float | int, most: float | int = math.inf) -> None:
    """Refuse what is known and outside [least, most], NaN or infinite; traced numbers are taken as they are.

    Args:
        name: of the option, for the message. value: a number of Python, NumPy or jax, or an array of them.
        least, most: the bounds, which are allowed.

    Raises:
        ValueError: with the option's name, its value and the range.

    Example:
        >>> check_range("gamma", jnp.float32(-1), 0)
        Traceback (most recent call last):
        ValueError: gamma is -1.0, expected a finite number of at least 0
    """
    outside = _outside(value, lambda number: least <= number <= most and math.isfinite(number))
    wanted = f"a finite number of at least {least}" if most == math.inf else f"a number between {least} and {most}"
    if outside is not None:
        raise ValueError(f"{name} is {outside}, expected {wanted}")


def check_prior(prior: Any) -> None:
    """Refuse a known number as class prior that is not strictly between 0 and 1.

    Raises:
        ValueError: with the number and what to pass.

    Example:
        >>> check_prior(1.0)
        Traceback (most recent call last):
        ValueError: prior is 1.0, expected a number strictly between 0 and 1: ...
    """
    outside = _outside(prior, lambda number: 0 < number < 1)
    if outside is not None:
        raise ValueError(
            f"prior is {outside}, expected a number strictly between 0 and 1: "
            "pass the share of positives among the unlabeled rows"
        )


def _outside(value: Any, allowed: Callable[[Any], bool]) -> int | float | None:
    """The first known number that is not allowed."""
    if value is None or not known(value):
        return None
    numbers = [value] if isinstance(value, int | float) else jax.device_get(value).ravel().tolist()
    return next((number for number in numbers if not allowed(number)), None)
