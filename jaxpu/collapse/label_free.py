"""The rules for one epoch where no true label is known: what P, U and the given prior π tell.

q is the share of U predicted positive, AUC the estimate (AUC_PU - π/2) / (1 - π) from P against U, which assumes that P
is drawn at random from the positives. q "fits" π if |q - π| ≤ prior_distance · min(π, 1 - π). Scores "have no spread"
if their standard deviation in U is at most constant_spread · √(π(1 - π)) and q does not fit.

===============  ====================================================================================
verdict          rule
===============  ====================================================================================
diverged         a score is NaN or infinite; nothing else is asked
undefined        there is no P or no U, so AUC says nothing; nothing else is asked
inverted         AUC ≤ inverted_auc, with spread
prior_mismatch   AUC ≥ good_auc, with spread, but q does not fit π
all_negative     q ≤ one_class · π
all_positive     1 − q ≤ one_class · (1 − π)
constant         no spread
weak_ranking     inverted_auc < AUC < good_auc
healthy          AUC ≥ good_auc and q fits π
===============  ====================================================================================

A healthy classifier by these rules may be a bad one: a wrong prior, or labels that are not random, deceive them.
"""

import numpy as np
from jaxtyping import Bool

from jaxpu.collapse.columns import Metrics, Numbers, aligned, require
from jaxpu.collapse.verdicts import Thresholds, Verdict

NEEDED = ("proxy_pu_auc", "unlabeled_positive", "unlabeled_mean", "unlabeled_sd", "given_prior")
"""Columns of :func:`jaxpu.metrics.proxy_metrics` and :func:`jaxpu.metrics.score_summary`."""


def numbers(metrics: Metrics) -> Numbers:
    """What the rules look at: auc, predicted_positive (of U), prevalence (π as given), score_mean and score_sd (of U).

    ``f1`` and ``f1_best`` are NaN: nobody knows them.

    Raises:
        ValueError: a column is missing, or the shapes differ.

    >>> columns = dict(proxy_pu_auc=0.9, unlabeled_positive=0.4, unlabeled_mean=0.4, unlabeled_sd=0.3, given_prior=0.5)
    >>> float(numbers(columns)["predicted_positive"])
    0.4
    """
    require(metrics, NEEDED, ", ".join(NEEDED))
    columns = aligned(metrics, NEEDED)
    unknown = np.full_like(columns["given_prior"], np.nan)
    return {
        "label_free": np.ones_like(unknown),
        "f1": unknown,
        "f1_best": unknown,
        "auc": columns["proxy_pu_auc"],
        "predicted_positive": columns["unlabeled_positive"],
        "prevalence": columns["given_prior"],
        "score_mean": columns["unlabeled_mean"],
        "score_sd": columns["unlabeled_sd"],
    }


def flags(found: Numbers, t: Thresholds) -> dict[Verdict, Bool[np.ndarray, "..."]]:
    """Whether each rule of the table above holds.

    >>> columns = dict(proxy_pu_auc=0.9, unlabeled_positive=0.1, unlabeled_mean=0.4, unlabeled_sd=0.3, given_prior=0.5)
    >>> [str(verdict) for verdict, holds in flags(numbers(columns), Thresholds()).items() if holds]
    ['prior_mismatch']
    """
    auc, spread, q, prior = (found[name] for name in ("auc", "score_sd", "predicted_positive", "prevalence"))
    finite = np.isfinite(spread)
    judged = finite & np.isfinite(auc)
    fits = np.abs(q - prior) <= t.prior_distance * np.minimum(prior, 1 - prior)
    constant = judged & ~fits & (spread <= t.constant_spread * np.sqrt(prior * (1 - prior)))
    good, inverted = judged & (auc >= t.good_auc), judged & (auc <= t.inverted_auc)
    never = np.zeros_like(judged)
    holds = {
        Verdict.DIVERGED: ~finite,
        Verdict.UNDEFINED: finite & ~judged,
        Verdict.INVERTED: inverted & ~constant,
        Verdict.THRESHOLD_SHIFT: never,
        Verdict.PRIOR_MISMATCH: good & ~fits & ~constant,
        Verdict.ALL_NEGATIVE: judged & (q <= t.one_class * prior),
        Verdict.ALL_POSITIVE: judged & (1 - q <= t.one_class * (1 - prior)),
        Verdict.CONSTANT: constant,
        Verdict.WEAK_RANKING: judged & ~good & ~inverted,
        Verdict.HEALTHY: good & fits,
    }
    return {verdict: np.asarray(value) for verdict, value in holds.items()}
