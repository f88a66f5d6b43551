"""What one set of values says: intervals of shares, means and medians, thin over SciPy.

Every bootstrap draws from its own ``numpy.random.default_rng(seed)``: the same values give the same interval,
whatever else ran before. What cannot be estimated is NaN, never a made-up number: an interval of fewer than
two values, or of values that are not all finite. To leave NaN values out, do so before calling.
"""

import math

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from jaxpu.analysis.stats.bootstrap import Interval, mean_intervals, median_intervals


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
    from scipy import special  # takes a while to import

    z = float(special.ndtri((1 + level) / 2))
    share, whole = successes / n, 2 * (n + z**2)
    middle, half = (2 * n * share + z**2) / whole, z / whole * math.sqrt(4 * n * share * (1 - share) + z**2)
    return Interval(middle - half if successes else 0.0, middle + half if successes < n else 1.0)


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
    check_level(level)
    low, high = mean_intervals(sample_of(values)[None], level, seed=seed, resamples=resamples)
    return Interval(float(low[0]), float(high[0]))


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
    check_level(level)
    low, high = median_intervals(sample_of(values)[None], level, seed=seed, resamples=resamples)
    return Interval(float(low[0]), float(high[0]))


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
    return float(interquartile_means(sample_of(values)[None])[0])


def interquartile_means(samples: Float[np.ndarray, "k n"]) -> Float[np.ndarray, " k"]:
    """:func:`interquartile_mean` of k samples of n numbers each.

    >>> interquartile_means(np.array([[0.0, 1.0, 2.0, 700.0], [1.0, 1.0, 1.0, 2.0]])).tolist()
    [1.5, 1.0]
    """
    k, n = samples.shape
    if n == 0:
        return np.full(k, np.nan)
    cut = n // 4
    middle = np.partition(samples, (cut, n - cut - 1), axis=-1)[:, cut : n - cut]
    return np.where(np.isnan(samples).any(-1), np.nan, middle.mean(-1))


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
