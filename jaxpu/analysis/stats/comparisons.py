"""A number over seeds held against a bound, two methods on the same seeds, and several such comparisons.

=========  ================================================================================================
statistic  test and interval, of one sample or of paired differences
=========  ================================================================================================
median     the sign test and its order statistics: exact for every distribution, continuous or not
mean       Student's t, on the side of the longer tail moved out by the sample's skewness
=========  ================================================================================================

Every p-value here inverts its interval: a bound inside the 95 % interval has p > 0.05, one outside has p < 0.05.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from jaxpu.analysis.stats.estimates import Interval, check_level, sample_of
from jaxpu.analysis.stats.tested import TIE, Tested, snapped, tails, unknown, where

SMALL_SAMPLE_SKEW = 4.5
"""How many times γ/n the t statistic is moved out besides Johnson's γ/6√n; see :func:`mean_test`."""


def paired_difference(
    a: ArrayLike, b: ArrayLike, bound: float | int = 0.0, level: float = 0.95, *, statistic: str = "mean"
) -> Tested:
    """Compare two methods that ran on the same seeds: the mean or median of aᵢ − bᵢ against a bound.

    Args:
        a: n numbers; entry i belongs to the same seed in a and b.
        b: n numbers.
        bound: What the difference is held against; differences that equal it up to rounding are ties.
        level: Confidence level of the interval, in (0, 1).
        statistic: ``mean`` (:func:`mean_test`) or ``median`` (:func:`median_test`).

    Returns:
        Estimate, interval, p-values and n; all but n are NaN for n = 0 or if any value is not finite.

    Raises:
        ValueError: a and b are not one-dimensional or differ in length, another statistic, or level outside (0, 1).

    >>> result = paired_difference([0.9, 0.8, 0.7, 0.9, 0.8, 0.8], [0.8, 0.6, 0.4, 0.5, 0.3, 0.2], statistic="median")
    >>> round(result.estimate, 3), round(result.p_value, 4), result.n
    (0.35, 0.0312, 6)
    """
    first, second = sample_of(a), sample_of(b)
    if first.size != second.size:
        raise ValueError(f"paired values need one entry a seed in both; got {first.size} and {second.size}")
    if statistic not in ("mean", "median"):
        raise ValueError(f"statistic must be mean or median, got {statistic!r}")
    difference = snapped(first - second, bound, np.maximum(np.abs(first), np.abs(second)))
    test = mean_test if statistic == "mean" else median_test
    return test(difference, bound, level).plain()


def median_test(values: ArrayLike, bound: float | int = 0.0, level: float = 0.95) -> Tested:
    """The median against a bound by the sign test, and its interval between two order statistics.

    With U values above the bound and L below it, P(median > bound) is tested by P(Bin(n, ½) ≥ U), and below by L;
    values at the bound speak for neither. The interval is [x₍ₖ₊₁₎, x₍ₙ₋ₖ₎] with the largest k for which
    P(Bin(n, ½) ≤ k) ≤ (1 − level)/2. Both hold their level for every distribution, symmetric or not, with ties or not.

    Args:
        values: (..., n), one number a seed. bound: what the median is held against. level: in (0, 1).

    Returns:
        The test, over the last axis; the interval is (NaN, NaN) where no order statistics reach the level (at 95 %
        for n < 6), and everything is NaN where a value is not finite, or there is none.

    Raises:
        ValueError: level outside (0, 1).

    Source: Dixon and Mood, "The statistical sign test", JASA 41, 1946.

    >>> median_test(np.arange(1.0, 13.0)).plain().interval
    Interval(low=3.0, high=10.0)
    """
    check_level(level)
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[-1]
    if n == 0:
        return unknown(values.shape[:-1], 0)
    from scipy import stats as scipy_stats  # takes two seconds to import

    values = snapped(values, bound)
    at_least = scipy_stats.binom.sf(np.arange(-1, n), n, 0.5)  # entry u: P(Bin(n, 1/2) >= u)
    above, below = tails(at_least[(values > bound).sum(-1)], at_least[(values < bound).sum(-1)])
    k = int(np.searchsorted(scipy_stats.binom.cdf(np.arange(n), n, 0.5), (1 - level) / 2, side="right")) - 1
    ordered = np.sort(values, axis=-1)
    nan = np.full(values.shape[:-1], np.nan)[()]
    ends = Interval(ordered[..., k], ordered[..., n - 1 - k]) if k >= 0 else Interval(nan, nan)
    tested = Tested(np.median(values, axis=-1), ends, above, below, n)
    return where(np.isfinite(values).all(-1), tested)


def mean_test(values: ArrayLike, bound: float | int = 0.0, level: float = 0.95) -> Tested:
    """The mean against a bound by Student's t, moved out on the side of the longer tail.

    With standard error s/√n, sample skewness γ (G₁, unbiased for normal values) and a = γ (1/6√n + 4.5/n), the end
    on the side of the longer tail (above for γ > 0) is mean ± (t + |a| (1 + 2t²)) s/√n, the other mean ± t s/√n;
    t is Student's quantile with n − 1 degrees of freedom. γ/6√n is the first term of the Edgeworth expansion of t
    (Johnson); a sample shows too little of a long tail, and γ/n makes up for that. It was chosen so that the mean of
    log-normal values (σ = 1) is missed in at most 3.5 % a side from n = 12 on; for n = 6 it is 6 %, and no test of a
    mean holds its level where the tail is rarer than one in n: ask for the median there.

    Args:
        values: (..., n), one number a seed. bound: what the mean is held against. level: in (0, 1).

    Returns:
        The test, over the last axis. Values that are all equal, v, have the interval (v, v) and the p-values of the
        sign test. Everything is NaN where a value is not finite or n = 0; for n = 1 all but the estimate.

    Raises:
        ValueError: level outside (0, 1).

    Source: Johnson, "Modified t tests and confidence intervals for asymmetrical populations", JASA 73, 1978.

    >>> low, high = mean_test(np.array([0.82, 0.85, 0.86, 0.87, 0.84, 0.85])).interval
    >>> round(float(low), 2), round(float(high), 2)
    (0.77, 0.87)
    """
    check_level(level)
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[-1]
    if n == 0:
        return unknown(values.shape[:-1], 0)
    values = snapped(values, bound)
    mean = values.mean(-1)
    finite = np.isfinite(values).all(-1)
    if n == 1:
        return unknown(values.shape[:-1], 1)._replace(estimate=np.where(finite, mean, np.nan)[()])
    from scipy import stats as scipy_stats  # takes two seconds to import

    error, skew = _spread(values)
    constant = error == 0
    error = np.where(constant, 1.0, error)
    moved = skew * (1 / (6 * np.sqrt(n)) + SMALL_SAMPLE_SKEW / n)
    t = scipy_stats.t.ppf((1 + level) / 2, n - 1)
    out_low, out_high = (t + np.maximum(side * moved, 0) * (1 + 2 * t**2) for side in (-1, 1))
    ends = Interval(mean - np.where(constant, 0, out_low * error), mean + np.where(constant, 0, out_high * error))
    off = (mean - bound) / error
    above, below = tails(
        *(scipy_stats.t.sf(_unmoved(side * off, np.maximum(-side * moved, 0)), n - 1) for side in (1, -1))
    )
    signs = median_test(values, bound)
    above, below = np.where(constant, signs.above, above), np.where(constant, signs.below, below)
    return where(finite, Tested(mean, ends, above, below, n))


def _spread(values: Any) -> tuple[Any, Any]:
    """Standard error and sample skewness over the last axis; zeros where all values are equal up to rounding."""
    n = values.shape[-1]
    rest = values - values.mean(-1, keepdims=True)
    flat = np.ptp(values, axis=-1) <= TIE * np.abs(values).max(-1)
    second = np.where(flat, 1.0, (rest**2).mean(-1))
    skew = (rest**3).mean(-1) / second**1.5 * (np.sqrt(n * (n - 1)) / (n - 2) if n > 2 else 0.0)
    return np.where(flat, 0.0, np.sqrt(second / (n - 1))), np.where(flat, 0.0, skew)


def _unmoved(statistic: Any, by: Any) -> Any:
    """The t for which t + by (1 + 2t²) is the statistic, where that is positive; -inf below t = 0 (p > 1/2)."""
    safe = np.where(by > 0, by, 1.0)
    root = np.sqrt(np.maximum(1 - 8 * safe * (safe - statistic), 0))
    solved = np.where(by > 0, (root - 1) / (4 * safe), statistic)
    return np.where((by > 0) & (statistic <= by), -np.inf, solved)


def holm(pvalues: ArrayLike) -> Float[np.ndarray, " m"]:
    """Adjust p-values for several comparisons, step-down.

    With p₍₁₎ ≤ … ≤ p₍ₘ₎: adjusted p₍ᵢ₎ = max over j ≤ i of min(1, (m − j + 1) p₍ⱼ₎). Rejecting where the
    adjusted value is at most α keeps the chance of any false rejection at α, whatever the dependence.

    Args:
        pvalues: m p-values in [0, 1]. NaN marks a test that was not made: it stays NaN and is not counted.

    Returns:
        The adjusted p-values in the order given; empty for m = 0.

    Raises:
        ValueError: a p-value outside [0, 1], or pvalues are not one-dimensional.

    Source: Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979.

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = sample_of(pvalues)
    made = np.flatnonzero(~np.isnan(p))
    if ((p[made] < 0) | (p[made] > 1)).any():
        raise ValueError(f"p-values must lie in [0, 1]; got {p.tolist()}")
    ascending = made[np.argsort(p[made], kind="stable")]
    adjusted = np.full(p.size, np.nan)
    step_down = p[ascending] * np.arange(made.size, 0, -1)
    adjusted[ascending] = np.minimum(np.maximum.accumulate(step_down), 1.0)
    return adjusted
