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


def check_prior(prior: ScalarLike) -> None:
    """Refuse a Python number as class prior that is not strictly between 0 and 1.

    Raises:
        ValueError: with the number and what to pass.

    Example:
        >>> check_prior(1.0)
        Traceback (most recent call last):
        ValueError: prior is 1.0, expected a number strictly between 0 and 1: ...
    """
    if isinstance(prior, int | float) and not 0 < prior < 1:
        raise ValueError(
            f"prior is {prior}, expected a number strictly between 0 and 1: "
            "pass the share of positives among the unlabelled rows"
        )
