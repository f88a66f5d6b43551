"""Two shares on the same seeds: Tango's score test and interval for their difference.

A difference of 0/1 outcomes is mostly ties, so neither Wilcoxon's test nor a bootstrap says much about its mean; with
no event at all the bootstrap's interval has no width. The score test has one, as Wilson's has for a single share.
"""

import math
import statistics
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxpu.analysis.stats.estimates import Interval


class ShareDifference(NamedTuple):
    """The difference of two shares on the same seeds.

    Attributes:
        difference: Share of a minus share of b. interval: Score interval of it.
        p_value: Two-sided score test that it equals the margin asked for. n: Number of pairs.
    """

    difference: float
    interval: Interval
    p_value: float
    n: int


def paired_shares(a: ArrayLike, b: ArrayLike, margin: float = 0.0, level: float = 0.95) -> ShareDifference:
    """Compare how often something happens in two methods that ran on the same seeds.

    With x pairs (1, 0) and y pairs (0, 1) among n, the score statistic against a difference δ is
    z(δ) = (x − y − nδ) / √(n (2q + δ(1 − δ))), where q is the maximum likelihood estimate of P(0, 1) under
    P(1, 0) − P(0, 1) = δ: q = (√(B² − 4AC) − B) / 2A, A = 2n, B = (2n − x + y)δ − x − y, C = −yδ(1 − δ). The interval
    holds every δ with |z(δ)| below the normal quantile of (1 + level)/2; at δ = 0 the test is McNemar's.

    Args:
        a: n outcomes, 0 or 1; entry i belongs to the same seed in a and b.
        b: n outcomes.
        margin: The difference that is tested, in (−1, 1).
        level: Confidence level, in (0, 1).

    Returns:
        Difference, interval, p-value and n; all but n are NaN for n = 0.

    Raises:
        ValueError: outcomes other than 0 and 1, lengths that differ, margin or level out of range.

    Source: Tango, "Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design", Statistics in Medicine 17, 1998.

    >>> result = paired_shares([1] * 7 + [0] * 14, [0] * 7 + [1] + [0] * 13)
    >>> [round(number, 3) for number in (result.difference, *result.interval, result.p_value)]
    [0.286, 0.026, 0.517, 0.034]
    """
    first, second = (np.asarray(side, dtype=np.float64) for side in (a, b))
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"expected one outcome a seed in both, shapes (n,); got {first.shape} and {second.shape}")
    if not np.isin([*first, *second], (0.0, 1.0)).all():
        raise ValueError("outcomes must be 0 or 1: compare other numbers by paired_difference")
    if not -1 < margin < 1 or not 0 < level < 1:
        raise ValueError(f"margin must lie in (-1, 1) and level in (0, 1); got {margin} and {level}")
    n = first.size
    if n == 0:
        return ShareDifference(math.nan, Interval(math.nan, math.nan), math.nan, 0)
    more, less = int((first > second).sum()), int((first < second).sum())
    from scipy import optimize  # takes a while to import

    quantile = statistics.NormalDist().inv_cdf((1 + level) / 2)
    found = (more - less) / n

    def beyond(delta: float) -> float:
        return abs(_score(more, less, n, delta)) - quantile

    edge = 1 - 1e-9
    low, high = (
        optimize.root_scalar(beyond, bracket=sorted((end, found))).root if beyond(end) > 0 else math.copysign(1, end)
        for end in (-edge, edge)
    )
    p_value = math.erfc(abs(_score(more, less, n, margin)) / math.sqrt(2))
    return ShareDifference(found, Interval(float(low), float(high)), p_value, n)


def _score(more: int, less: int, n: int, delta: float) -> float:
    b = (2 * n - more + less) * delta - more - less
    c = -less * delta * (1 - delta)
    rest = (math.sqrt(max(b * b - 8 * n * c, 0.0)) - b) / (4 * n)
    distance = more - less - n * delta
    variance = n * (2 * rest + delta * (1 - delta))
    return (
        distance / math.sqrt(variance) if variance > 1e-12 else math.copysign(math.inf, distance) if distance else 0.0
    )
