"""What one set of values says: intervals of shares, means and medians, thin over SciPy.

Every bootstrap draws from its own ``numpy.random.default_rng(seed)``: the same values give the same interval,
whatever else ran before. What cannot be estimated is NaN, never a made-up number: an interval of fewer than
two values, or of values that are not all finite. To leave NaN values out, do so before calling.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

_BATCH_ELEMENTS = 4_000_000  # resampled numbers held at once: BCa's jackknife alone would need n² of them


class Interval(NamedTuple):
    """The two ends of a confidence interval, numbers, or arrays of them; both NaN where the data cannot tell."""

    low: Any
    high: Any


def wilson(successes: int, n: int, level: float = 0.95) -> Interval:
    """Wilson score interval of a proportion.

    With k = successes, p̂ = k/n and the normal quantile z of (1 + level)/2, the ends are
    (p̂ + z²/2n ± z √(p̂(1 − p̂)/n + z²/4n²)) / (1 + z²/n). It stays inside [0, 1] and has a width even at k = 0.

    Args:
        successes: How often it happened, 0 ≤ k ≤ n.
        n: How often it could have. With n = 0 nothing is known: the interval is (0, 1).
        level: Confidence level, in (0, 1).

    Returns:
        The interval.

    Raises:
        ValueError: successes outside [0, n], or level outside (0, 1).

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927.

    >>> low, high = wilson(2, 24)
    >>> round(low, 4), round(high, 4)
    (0.0232, 0.2585)
    """
    check_level(level)
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie between 0 and n = {n}; got {successes}")
    if n == 0:
        return Interval(0.0, 1.0)
    from scipy import stats as scipy_stats  # takes two seconds to import

    low, high = scipy_stats.binomtest(successes, n).proportion_ci(confidence_level=level, method="wilson")
    return Interval(float(low), float(high))


def mean_interval(values: ArrayLike, level: float = 0.95, *, seed: int = 0, resamples: int = 4999) -> Interval:
    """Bootstrap interval of the mean, bias-corrected and accelerated (BCa).

    Args:
        values: n numbers, one a seed.
        level: Confidence level, in (0, 1).
        seed: Seed of the resampling.
        resamples: Number of bootstrap samples.

    Returns:
        The interval; (v, v) if all values equal v (a sample without spread bounds nothing: read it together
        with n); (NaN, NaN) for fewer than two values or any that is not finite.

    Raises:
        ValueError: values are not one-dimensional, or level outside (0, 1).

    Source: Efron, "Better bootstrap confidence intervals", JASA 82, 1987.

    >>> low, high = mean_interval([0.82, 0.85, 0.86, 0.87, 0.84, 0.85])
    >>> round(low, 2), round(high, 2)
    (0.83, 0.86)
    >>> mean_interval([0.5])
    Interval(low=nan, high=nan)
    """
    return _bootstrap(values, np.mean, "BCa", level, seed, resamples)


def median_interval(values: ArrayLike, level: float = 0.95, *, seed: int = 0, resamples: int = 4999) -> Interval:
    """Percentile bootstrap interval of the median.

    Percentile rather than BCa: BCa's acceleration comes from a jackknife, which is inconsistent for a median.

    Args:
        values: n numbers, one a seed.
        level: Confidence level, in (0, 1).
        seed: Seed of the resampling.
        resamples: Number of bootstrap samples.

    Returns:
        The interval; (v, v) and (NaN, NaN) in the same cases as `mean_interval`.

    Raises:
        ValueError: values are not one-dimensional, or level outside (0, 1).

    Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapters 11 and 13.

    >>> median_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    Interval(low=1.0, high=5.0)
    """
    return _bootstrap(values, np.median, "percentile", level, seed, resamples)


def interquartile_mean(values: ArrayLike) -> float:
    """Mean of the middle half: ⌊n/4⌋ values are cut from each end, the rest averaged.

    Less noisy than the median and, unlike the mean, not moved by a few collapsed runs.

    Args:
        values: n numbers, one a seed; for n < 4 nothing is cut.

    Returns:
        The mean; NaN if values is empty or holds a NaN.

    Raises:
        ValueError: values are not one-dimensional.

    Source: Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice", NeurIPS
    2021.

    >>> interquartile_mean([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 700.0])
    3.5
    """
    sample = sample_of(values)
    if sample.size == 0 or np.isnan(sample).any():
        return float("nan")
    from scipy import stats as scipy_stats  # takes two seconds to import

    return float(scipy_stats.trim_mean(sample, 0.25))


def _bootstrap(
    values: ArrayLike, statistic: Callable, method: str, level: float, seed: int, resamples: int
) -> Interval:
    check_level(level)
    sample = sample_of(values)
    if sample.size < 2 or not np.isfinite(sample).all():
        return Interval(float("nan"), float("nan"))
    # Equal up to rounding counts as equal: BCa would divide one rounding error by another.
    if np.ptp(sample) <= 1e-12 * np.abs(sample).max():
        return Interval(float(sample[0]), float(sample[0]))
    from scipy import stats as scipy_stats  # takes two seconds to import

    interval = scipy_stats.bootstrap(
        (sample,),
        statistic,
        n_resamples=resamples,
        batch=max(1, _BATCH_ELEMENTS // sample.size),
        confidence_level=level,
        method=method,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(float(interval.low), float(interval.high))


def sample_of(values: ArrayLike) -> Float[np.ndarray, " n"]:
    """Values as numbers, one a seed.

    Raises:
        ValueError: they are not one-dimensional.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1:
        raise ValueError(f"expected one number a seed, shape (n,); got shape {sample.shape}: flatten or index it")
    return sample


def check_level(level: float) -> None:
    """Whether a confidence level is one.

    Raises:
        ValueError: it is not.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, for example 0.95; got {level}")
