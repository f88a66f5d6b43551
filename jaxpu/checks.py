"""What counts as positive, which rows count, and numbers in their ranges: the one rule of losses, mixup and metrics.

A row is positive if its label is 1 (or True), and not if it is 0; a row counts if its mask is 1. Arrays whose numbers
are known are held to it. Traced ones cannot be: there, any other label is not positive, and any mask but 0 counts.
Numbers, too, are checked where they are known, whatever their type, and not where they are traced.
Soft labels, probabilities of class 1, are for :mod:`jaxpu.losses.classification` and ``losses.pn``.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import Tracer
from jaxtyping import Bool

from jaxpu.types import Labeled, Mask


def positives(labels: Labeled, counted: Bool[Array, " n"]) -> Bool[Array, " n"]:
    """The rows labeled 1, padding aside.

    Args:
        labels: 1 or 0, shape (n,); whatever in padding.
        counted: the rows that count, shape (n,).

    Raises:
        ValueError: a label that is known and is neither.

    Example:
        >>> positives(jnp.array([1, 0, 9]), jnp.array([True, True, False])).tolist()
        [True, False, False]
        >>> positives(jnp.array([255, 0]), jnp.array([True, True]))
        Traceback (most recent call last):
        ValueError: a label is 255, expected 1 = positive (labeled) or 0: pass labels == v for the positive value v
    """
    labels = jnp.asarray(labels)
    other = _other(labels, counted)
    if other is not None:
        raise ValueError(
            f"a label is {other:g}, expected 1 = positive (labeled) or 0: pass labels == v for the positive value v"
        )
    return counted & (labels == 1)


def counted_rows(n: int, mask: Mask | None) -> Bool[Array, " n"]:
    """The mask as booleans; None counts every row.

    Raises:
        ValueError: the mask is not of shape (n,), or it is known and holds another number than 0 and 1.

    Example:
        >>> counted_rows(3, jnp.array([1, 1, 0])).tolist()
        [True, True, False]
    """
    if mask is None:
        return jnp.ones(n, bool)
    mask = jnp.asarray(mask)
    if mask.shape != (n,):
        raise ValueError(f"mask has shape {mask.shape}, expected {(n,)} like the labels")
    other = _other(mask, True)
    if other is not None:
        raise ValueError(f"mask holds {other:g}, expected 1 = the row counts or 0 = padding: other shares are weights")
    return mask != 0


def known(*values: Any) -> bool:
    """Whether the numbers are there to be checked, and not traced.

    Example:
        >>> known(1.0, jnp.zeros(2)), bool(jax.jit(lambda x: known(x))(1.0))
        (True, False)
    """
    return not any(isinstance(value, Tracer) for value in values)


def _other(values: Array, counted: Any) -> float | None:
    """A known number among those that count that is neither 0 nor 1."""
    if values.dtype == bool or not known(values, counted):
        return None
    values, counted = jax.device_get((values, counted))
    others = values[(values != 0) & (values != 1) & counted]
    return float(others[0]) if others.size else None


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


def check_positive(name: str, value: Any) -> None:
    """Refuse what is known and not above 0, NaN or infinite; as :func:`check_range`.

    Raises:
        ValueError: with the option's name and its value.

    Example:
        >>> check_positive("ridge", 0)
        Traceback (most recent call last):
        ValueError: ridge is 0, expected a positive finite number
    """
    outside = _outside(value, lambda number: 0 < number < math.inf)
    if outside is not None:
        raise ValueError(f"{name} is {outside}, expected a positive finite number")


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
