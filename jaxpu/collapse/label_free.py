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
from jaxtyping import Bool, Float

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


def measures(
    scores: Float[np.ndarray, "*epochs n"], labeled: Bool[np.ndarray, " n"], prior: float, *, threshold: float = 0.5
) -> dict[str, np.ndarray]:
    """The columns that :func:`numbers` needs, from scores of P and U, of one set or of several epochs.

    Args:
        scores: larger = more positive, best as probabilities. labeled: where a row is of P. prior: π of U.
        threshold: a row is predicted positive if its score is above.

    Raises:
        ValueError: the prior is not in (0, 1).

    >>> found = measures(np.array([0.9, 0.8, 0.2, 0.1]), np.array([True, False, False, False]), 0.4)
    >>> {name: round(float(value), 3) for name, value in found.items()}["unlabeled_positive"]
    0.333
    """
    if not 0 < prior < 1:
        raise ValueError(f"the prior is {prior}, expected a share strictly between 0 and 1")
    of_u = scores[..., ~labeled]
    with np.errstate(all="ignore"):
        mean, sd = of_u.mean(axis=-1), of_u.std(axis=-1)
    rows = scores.reshape(-1, scores.shape[-1])
    area = np.array([_auc(row, labeled) for row in rows]).reshape(scores.shape[:-1])
    found = {
        "proxy_pu_auc": (area - prior / 2) / (1 - prior),
        "unlabeled_positive": (of_u > threshold).mean(axis=-1),
        "unlabeled_mean": mean,
        "unlabeled_sd": sd,
        "given_prior": np.full(scores.shape[:-1], float(prior)),
    }
    return {name: np.asarray(values) for name, values in found.items()}


def _auc(scores: np.ndarray, labeled: np.ndarray) -> float:
    """AUC of P against U; NaN where one of them is empty, or a score is not finite."""
    n_p, n_u = int(labeled.sum()), int((~labeled).sum())
    if not (n_p and n_u and np.isfinite(scores).all()):
        return float("nan")
    from scipy.stats import rankdata  # half a second, and whoever only runs experiments has no scores to judge

    return float((rankdata(scores)[labeled].sum() - n_p * (n_p + 1) / 2) / (n_p * n_u))


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
