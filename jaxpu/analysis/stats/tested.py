"""What a test of a number against a bound says: one shape for means, medians and shares."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxpu.analysis.stats.estimates import Interval

TIE = 1e-12
"""Numbers this close to a bound, relative to what was subtracted, are ties."""


class Tested(NamedTuple):
    """A number held against a bound; of many samples at once, every field but n is an array.

    Attributes:
        estimate: of the number. interval: its confidence interval, which the p-values invert.
        above: p-value that speaks for the number lying above the bound: twice the one-sided one, at most 1.
        below: the same for below. n: how many independent units there are.
    """

    estimate: Any
    interval: Interval
    above: Any
    below: Any
    n: int

    @property
    def p_value(self) -> Any:
        """The two-sided p-value: the smaller of the two."""
        smaller = np.minimum(self.above, self.below)
        return smaller if smaller.ndim else float(smaller)

    def plain(self) -> "Tested":
        """With Python numbers, of one sample."""
        ends = Interval(*map(float, self.interval))
        return Tested(float(self.estimate), ends, float(self.above), float(self.below), self.n)


def unknown(shape: tuple[int, ...], n: int) -> Tested:
    """What too few values say, or values that are not all finite."""
    nan = np.full(shape, np.nan)[()]
    return Tested(nan, Interval(nan, nan), nan, nan, n)


def where(known: Any, tested: Tested) -> Tested:
    """NaN in every field of the samples that are not known."""
    numbers = [np.where(known, field, np.nan)[()] for field in (*tested.interval, tested.estimate, tested.above)]
    below = np.where(known, tested.below, np.nan)[()]
    return Tested(numbers[2], Interval(numbers[0], numbers[1]), numbers[3], below, tested.n)


def snapped(values: ArrayLike, bound: float | int, scale: Any = 0.0) -> np.ndarray:
    """Values with those set to the bound that differ from it by rounding alone.

    Args:
        values: (..., n). bound: what they are held against. scale: size of the numbers that were subtracted to make
            them, per value or for all; a difference of two numbers is not exact to its own size, but to theirs.

    Values that are not finite become NaN.

    >>> snapped(np.array([0.3 - 0.2, 0.2]), 0.1, 0.3).tolist()
    [0.1, 0.2]
    """
    values = np.asarray(values, dtype=np.float64)
    size = np.maximum(np.maximum(np.abs(values), np.abs(scale)), abs(bound))
    values = np.where(np.isfinite(values), values, np.nan)
    return np.where(np.abs(values - bound) <= TIE * size, bound, values)


def tails(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Two one-sided p-values, doubled and at most 1."""
    return np.minimum(2 * np.asarray(lower), 1.0)[()], np.minimum(2 * np.asarray(upper), 1.0)[()]
