"""Shares of runs held against a bound, with seeds as clusters: one share, and the difference of two on the same seeds.

Runs of one seed in several cells are not independent. A seed's share of its cells is one number; how much more the
cells of a seed tell than one of them is estimated from the data (the intra-class correlation), and shrunk towards
"nothing" where few seeds had an event: with no event seen, n is the number of seeds.
"""

import statistics
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxpu.analysis.stats.estimates import Interval, check_level
from jaxpu.analysis.stats.tested import Tested, tails, unknown

DOUBT = 5
"""With so many seeds that had an event, the estimated correlation within a seed has half the weight."""


def share_test(shares: ArrayLike, bound: float | int, cells: float | int = 1.0, level: float = 0.95) -> Tested:
    """The share of runs against a bound: Clopper and Pearson's interval, for as many runs as the seeds are worth.

    With mean share p̂ of n seeds, each of m cells, variance s² between seeds and ICC ρ = (m s²/p̂(1 − p̂) − 1)/(m − 1)
    in [0, 1], the seeds are worth n* = nm/(1 + (m − 1)ρ*) runs, ρ* = ρ e/(e + 5) + 5/(e + 5), where e seeds had an
    event (or, if fewer, lacked one). Interval and p-values are those of k = p̂n* events in n* trials: for one cell
    exact, for several as Korn and Graubard's.

    Args:
        shares: (..., n), a seed's share of its cells. bound: what the share is held against, in (0, 1).
        cells: m, how many cells a seed has (on average). level: in (0, 1).

    Returns:
        The test, over the last axis; everything is NaN for n = 0.

    Raises:
        ValueError: shares outside [0, 1], bound or level out of range.

    Source: Clopper and Pearson, Biometrika 26, 1934; Korn and Graubard, "Confidence intervals for proportions with
    small expected number of positive counts estimated from survey data", Survey Methodology 24, 1998.

    >>> low, high = share_test(np.zeros(30), 0.1, cells=6).interval
    >>> float(low), round(float(high), 4)
    (0.0, 0.1157)
    """
    check_level(level)
    shares = np.asarray(shares, dtype=np.float64)
    n = shares.shape[-1]
    if not 0 < bound < 1 or not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError(f"shares must lie in [0, 1] and the bound in (0, 1); got {bound} and {shares.tolist()}")
    if n == 0:
        return unknown(shares.shape[:-1], 0)
    from scipy import special  # takes a while to import

    mean = shares.mean(-1)
    seen = np.minimum((shares > 0).sum(-1), (shares < 1).sum(-1))
    worth = n * _worth(shares.var(-1, ddof=1) if n > 1 else np.zeros_like(mean), mean * (1 - mean), seen, cells)
    events = np.round(mean * worth, 9)  # a count, where it is one
    rest = np.round(worth - events, 9)
    some, others = np.maximum(events, 1e-9), np.maximum(rest, 1e-9)
    alpha = (1 - level) / 2
    low = np.where(events > 0, special.betaincinv(some, rest + 1, alpha), 0.0)
    high = np.where(rest > 0, special.betaincinv(events + 1, others, 1 - alpha), 1.0)
    above = np.where(events > 0, special.betainc(some, rest + 1, bound), 1.0)
    below = np.where(rest > 0, special.betaincc(events + 1, others, bound), 1.0)
    return Tested(mean, Interval(low[()], high[()]), *tails(above, below), n)


def paired_shares(
    a: ArrayLike, b: ArrayLike, margin: float | int = 0.0, level: float = 0.95, *, cells: float | int = 1.0
) -> Tested:
    """Compare how often something happens in two methods that ran on the same seeds.

    With x pairs (1, 0) and y pairs (0, 1) among n, the score statistic against a difference δ is
    z(δ) = (x − y − nδ) / √(n (2q + δ(1 − δ))), where q is the maximum likelihood estimate of P(0, 1) under
    P(1, 0) − P(0, 1) = δ: q = (√(B² − 4AC) − B) / 2A, A = 2n, B = (2n − x + y)δ − x − y, C = −yδ(1 − δ). The interval
    holds every δ with |z(δ)| below the normal quantile of (1 + level)/2; at δ = 0 the test is McNemar's.

    Where an entry is a seed's share of several cells, x and y are the sums of its positive and negative differences,
    scaled with n to what the seeds are worth, as in :func:`share_test`.

    Args:
        a: (..., n) outcomes, 0 or 1, or shares between; entry i belongs to the same seed in a and b.
        b: (..., n).
        margin: The difference that is tested, in (−1, 1).
        level: Confidence level, in (0, 1).
        cells: how many cells a seed has (on average).

    Returns:
        The test, over the last axis; everything is NaN for n = 0.

    Raises:
        ValueError: outcomes outside [0, 1], or of one cell other than 0 and 1; shapes that differ; margin or level out
            of range.

    Source: Tango, "Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design", Statistics in Medicine 17, 1998.

    >>> result = paired_shares([1] * 7 + [0] * 14, [0] * 7 + [1] + [0] * 13).plain()
    >>> [round(number, 3) for number in (result.estimate, *result.interval, result.p_value)]
    [0.286, 0.026, 0.517, 0.034]
    """
    first, second = (np.asarray(side, dtype=np.float64) for side in (a, b))
    if first.shape != second.shape or not first.shape:
        raise ValueError(f"expected one outcome a seed in both, shapes (n,); got {first.shape} and {second.shape}")
    both = np.stack([first, second])
    if not ((both >= 0) & (both <= 1)).all() or (cells == 1 and not np.isin(both, (0, 1)).all()):
        raise ValueError(
            "outcomes must be 0 or 1, or shares of several cells: compare other numbers by paired_difference"
        )
    check_level(level)
    if not -1 < margin < 1:
        raise ValueError(f"margin must lie in (-1, 1), got {margin}")
    n = first.shape[-1]
    if n == 0:
        return unknown(first.shape[:-1], 0)
    return _paired(first - second, margin, level, cells)


def _paired(difference: np.ndarray, margin: float | int, level: float, cells: float | int) -> Tested:
    n = difference.shape[-1]
    mean, extreme = difference.mean(-1), np.abs(difference).mean(-1) - difference.mean(-1) ** 2
    spread = difference.var(-1, ddof=1) if n > 1 else np.zeros_like(mean)
    times = _worth(spread, extreme, (difference != 0).sum(-1), cells)
    more, less = (np.maximum(side * difference, 0).sum(-1) * times for side in (1, -1))
    quantile = statistics.NormalDist().inv_cdf((1 + level) / 2)
    low, high = (_end(more, less, n * times, mean, quantile, end) for end in (-1, 1))
    from scipy import special  # takes a while to import

    z = _score(more, less, n * times, np.asarray(margin))
    return Tested(mean, Interval(low, high), *tails(special.ndtr(-z), special.ndtr(z)), n)


def _worth(spread: Any, extreme: Any, seen: Any, cells: float | int) -> Any:
    """How many times one cell's runs the cells of the seeds are worth, between 1 and ``cells``."""
    if cells <= 1:
        return np.ones_like(spread)
    alike = cells * spread / np.where(extreme > 0, extreme, 1.0)
    correlation = np.clip((alike - 1) / (cells - 1), 0, 1)
    weight = np.where((extreme > 0) & (spread > 0), seen / (seen + DOUBT), 0.0)
    return cells / (1 + (cells - 1) * (weight * correlation + 1 - weight))


def _end(more: Any, less: Any, n: Any, found: Any, quantile: float, towards: int) -> Any:
    """Where the score is the quantile, by bisection between what was found and -1 or 1; the score falls with δ."""
    inner, outer = np.array(found, dtype=np.float64), np.full(np.shape(found), towards * (1 - 1e-9))
    beyond = np.abs(_score(more, less, n, outer)) > quantile
    for _ in range(60):
        middle = (inner + outer) / 2
        inside = np.abs(_score(more, less, n, middle)) < quantile
        inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
    return np.where(beyond, (inner + outer) / 2, float(towards))[()]


def _score(more: Any, less: Any, n: Any, delta: Any) -> Any:
    a, b, c = 2 * n, (2 * n - more + less) * delta - more - less, -less * delta * (1 - delta)
    q = (np.sqrt(np.maximum(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    variance = n * (2 * q + delta * (1 - delta))
    off = more - less - n * delta
    with np.errstate(divide="ignore", invalid="ignore"):
        z = off / np.sqrt(np.maximum(variance, 0.0))
    return np.where(np.abs(off) <= 1e-12 * n, 0.0, z)
