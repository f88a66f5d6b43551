"""Numeric options: a traced one is taken as it is, a Python number is checked."""

import math

from jaxpu.types import ScalarLike


def check_range(name: str, value: ScalarLike, least: float | int, most: float | int = math.inf) -> None:
    """Refuse a Python number outside [least, most], NaN, and infinity.

    Raises:
        ValueError: with the option's name, its value and the range.

    Example:
        >>> check_range("gamma", -1, 0)
        Traceback (most recent call last):
        ValueError: gamma is -1, expected a finite number of at least 0
    """
    if not isinstance(value, int | float) or (least <= value <= most and math.isfinite(value)):
        return
    wanted = f"a finite number of at least {least}" if most == math.inf else f"a number between {least} and {most}"
    raise ValueError(f"{name} is {value}, expected {wanted}")
