"""Statistics over seeds: intervals, tests against a bound, and corrections.

A claim about a method is a claim about many seeds. Tests against a bound (:class:`Tested`): medians by signs, means by
Student's t with the sample's skewness, shares of runs with seeds as clusters, differences of shares by Tango's score.
Descriptions: Wilson intervals of rates, bootstrap intervals of means and medians. Several comparisons: Holm.

Every bootstrap draws from its own ``numpy.random.default_rng(seed)``: the same values give the same interval,
whatever else ran before. What cannot be estimated is NaN, never a made-up number: an interval of fewer than
two values, or of values that are not all finite. To leave NaN values out, do so before calling.
"""

from jaxpu.analysis.stats.bootstrap import Interval, mean_intervals, median_intervals
from jaxpu.analysis.stats.comparisons import holm, mean_test, median_test, paired_difference
from jaxpu.analysis.stats.estimates import (
    interquartile_mean,
    interquartile_means,
    mean_interval,
    median_interval,
    wilson,
)
from jaxpu.analysis.stats.shares import paired_shares, share_test
from jaxpu.analysis.stats.tested import Tested, snapped

__all__ = [
    "Interval",
    "Tested",
    "holm",
    "interquartile_mean",
    "interquartile_means",
    "mean_interval",
    "mean_intervals",
    "mean_test",
    "median_interval",
    "median_intervals",
    "median_test",
    "paired_difference",
    "paired_shares",
    "share_test",
    "snapped",
    "wilson",
]
