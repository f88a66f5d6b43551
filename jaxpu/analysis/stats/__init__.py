"""Statistics over seeds: intervals, paired differences and corrections, thin over SciPy.

A claim about a method is a claim about many seeds. Rates get Wilson intervals, means and medians bootstrap
intervals, two methods on the same seeds a paired difference, several such comparisons Holm's correction.

Every bootstrap draws from its own ``numpy.random.default_rng(seed)``: the same values give the same interval,
whatever else ran before. What cannot be estimated is NaN, never a made-up number: an interval of fewer than
two values, or of values that are not all finite. To leave NaN values out, do so before calling.
"""

from jaxpu.analysis.stats.comparisons import PairedDifference, holm, paired_difference
from jaxpu.analysis.stats.estimates import Interval, interquartile_mean, mean_interval, median_interval, wilson
from jaxpu.analysis.stats.paired_shares import ShareDifference, paired_shares

__all__ = [
    "Interval",
    "PairedDifference",
    "ShareDifference",
    "holm",
    "interquartile_mean",
    "mean_interval",
    "median_interval",
    "paired_difference",
    "paired_shares",
    "wilson",
]
