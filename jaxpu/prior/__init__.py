"""How many of the unlabeled rows are positive, with what certainty, which are they, and where to cut.

    (X, s) ─► cross_fit: candidates, scores z = log f_P / f_U ─► bbe, ... ─► π_U ─► population: α, c
                                │                                  ├─► upper_end, lower_end, at_most
                                └─► Calibration ─► probability ◄───┴─► pu_f1, quantile, ...: thresholds

Pure functions of NumPy arrays, over scikit-learn's classifiers; ``jaxpu.estimator.PriorEstimator`` puts them together.
Every estimator returns π_U, the share of positives in U. Data identify no more than the largest share that they
allow, inf f_U / f_P: it is π_U only if some kind of positive is never found among the negatives.
"""

from jaxpu.prior.bootstrap import estimates, percentiles, resampled
from jaxpu.prior.candidates import CrossFit, Member, cross_fit, default_candidates, folds, held_out, members
from jaxpu.prior.dedpul import dedpul
from jaxpu.prior.interval import FEWEST, at_most, katz, lower_end, upper_end
from jaxpu.prior.kernel_mean import kernel_mean
from jaxpu.prior.methods import METHODS, Estimate, Estimator, estimate_prior, on_features
from jaxpu.prior.on_scores import auc, bbe, elkan_noto
from jaxpu.prior.penl1 import pen_l1
from jaxpu.prior.probability import Calibration, cross_calibrated, probability
from jaxpu.prior.scenario import SCENARIOS, Population, Scenario, population, prior_of, prior_of_frequency
from jaxpu.prior.share import Share, share_of
from jaxpu.prior.tails import Tails, tails
from jaxpu.prior.tedn import tedn
from jaxpu.prior.threshold import (
    Cut,
    Performance,
    budget,
    cost,
    cut_of,
    default_threshold,
    lee_liu,
    performance,
    precision,
    pu_f1,
    quantile,
    threshold_of,
)
from jaxpu.prior.tice import tice

__all__ = [
    "FEWEST",
    "METHODS",
    "SCENARIOS",
    "Calibration",
    "CrossFit",
    "Cut",
    "Estimate",
    "Estimator",
    "Member",
    "Performance",
    "Population",
    "Scenario",
    "Share",
    "Tails",
    "at_most",
    "auc",
    "bbe",
    "budget",
    "cost",
    "cross_calibrated",
    "cross_fit",
    "cut_of",
    "dedpul",
    "default_candidates",
    "default_threshold",
    "elkan_noto",
    "estimate_prior",
    "estimates",
    "folds",
    "held_out",
    "katz",
    "kernel_mean",
    "lee_liu",
    "lower_end",
    "members",
    "on_features",
    "pen_l1",
    "percentiles",
    "performance",
    "population",
    "precision",
    "prior_of",
    "prior_of_frequency",
    "probability",
    "pu_f1",
    "quantile",
    "resampled",
    "share_of",
    "tails",
    "tedn",
    "threshold_of",
    "tice",
    "upper_end",
]
