"""Two methods on the same seeds, and several such comparisons: thin over SciPy."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from jaxpu.analysis.stats.estimates import Interval, mean_interval, sample_of


class PairedDifference(NamedTuple):
    """How far a lies above b on the same seeds.

    Attributes:
        mean: Mean of aᵢ − bᵢ.
        interval: Bootstrap interval of that mean.
        p_value: Two-sided Wilcoxon signed-rank p-value, before any correction for several comparisons.
        n: Number of pairs.
    """

    mean: float
    interval: Interval
    p_value: float
    n: int


def paired_difference(
    a: ArrayLike, b: ArrayLike, level: float = 0.95, *, seed: int = 0, resamples: int = 4999
) -> PairedDifference:
    """Compare two methods that ran on the same seeds.

    Mean of aᵢ − bᵢ, its BCa interval, and the Wilcoxon signed-rank test of symmetry about zero.
    Pairs without a difference are dropped from the test (Wilcoxon's rule); if no other is left, p = 1.

    Args:
        a: n numbers; entry i belongs to the same seed in a and b.
        b: n numbers.
        level: Confidence level of the interval, in (0, 1).
        seed: Seed of the resampling.
        resamples: Number of bootstrap samples.

    Returns:
        Mean, interval, p-value and n; mean and p are NaN for n = 0 or if any value is not finite.

    Raises:
        ValueError: a and b are not one-dimensional or differ in length, or level outside (0, 1).

    Source: Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945.

    >>> result = paired_difference([0.9, 0.8, 0.7, 0.9, 0.8], [0.8, 0.6, 0.4, 0.5, 0.3])
    >>> round(result.mean, 3), round(result.p_value, 4), result.n
    (0.3, 0.0625, 5)
    """
    first, second = sample_of(a), sample_of(b)
    if first.size != second.size:
        raise ValueError(f"paired values need one entry a seed in both; got {first.size} and {second.size}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()) or first.size == 0:
        return PairedDifference(float("nan"), Interval(float("nan"), float("nan")), float("nan"), first.size)
    difference = first - second
    interval = mean_interval(difference, level, seed=seed, resamples=resamples)
    from scipy import stats as scipy_stats  # takes two seconds to import

    # SciPy wraps the type of its result, which hides the field from the type checker.
    test = scipy_stats.wilcoxon(difference) if difference.any() else None
    p_value = 1.0 if test is None else float(test.pvalue)  # pyright: ignore[reportAttributeAccessIssue]
    return PairedDifference(float(difference.mean()), interval, p_value, difference.size)


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
