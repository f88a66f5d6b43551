"""Which epoch rules hold, from the numbers that they look at; the table of rules heads :mod:`jaxpu.collapse.rules`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxpu.collapse.verdicts import DEFAULT_THRESHOLDS, Thresholds, Verdict


def epoch_flags(numbers: Mapping[str, Any], thresholds: Thresholds = DEFAULT_THRESHOLDS) -> dict[Verdict, Any]:
    """The rules for two classes as they are, on arrays of NumPy or of JAX, traced ones too.

    Args:
        numbers: f1, f1_best, auc, predicted_positive, score_sd, prevalence and f1_always_positive, as in
            :class:`Assessment`. thresholds: The numbers that the rules compare with.

    >>> numbers = {"f1": 0.7, "f1_best": 0.8, "auc": 0.9, "predicted_positive": 0.3, "score_sd": 0.2}
    >>> flags = epoch_flags({k: np.array(v) for k, v in numbers.items()} | always_positive(np.array(0.4)))
    >>> bool(flags[Verdict.HEALTHY])
    True
    """
    t = thresholds
    f1, auc, spread = numbers["f1"], numbers["auc"], numbers["score_sd"]
    predicted, prevalence = numbers["predicted_positive"], numbers["prevalence"]
    finite = abs(spread) < np.inf
    judged = finite & (abs(auc) < np.inf)
    all_negative = judged & (predicted <= t.one_class * prevalence)
    all_positive = judged & (1 - predicted <= t.one_class * (1 - prevalence))
    enough = (f1 >= t.healthy_share * numbers["f1_best"]) & (f1 > numbers["f1_always_positive"])
    cuts_well = enough & ~all_negative & ~all_positive
    label_sd = (prevalence * (1 - prevalence)) ** 0.5
    constant = judged & ~cuts_well & (spread <= t.constant_spread * label_sd)
    good, inverted = judged & (auc >= t.good_auc), judged & (auc <= t.inverted_auc)
    return {
        Verdict.DIVERGED: ~finite,
        Verdict.UNDEFINED: finite & ~judged,
        Verdict.INVERTED: inverted & ~constant,
        Verdict.THRESHOLD_SHIFT: good & ~cuts_well & ~constant,
        Verdict.PRIOR_MISMATCH: judged & ~judged,
        Verdict.ALL_NEGATIVE: all_negative,
        Verdict.ALL_POSITIVE: all_positive,
        Verdict.CONSTANT: constant,
        Verdict.WEAK_RANKING: judged & ~good & ~inverted,
        Verdict.HEALTHY: good & cuts_well,
    }


def always_positive(prevalence: Any) -> dict[str, Any]:
    """The share π of positives, and F1₊ = 2π / (1 + π) of always answering positive.

    >>> round(float(always_positive(0.5)["f1_always_positive"]), 4)
    0.6667
    """
    return {"prevalence": prevalence, "f1_always_positive": 2 * prevalence / (1 + prevalence)}


def flags_of_many(numbers: Mapping[str, np.ndarray], thresholds: Thresholds = DEFAULT_THRESHOLDS) -> dict[Verdict, Any]:
    """The rules for many classes, on arrays of NumPy.

    Args:
        numbers: auc, score_sd, predicted_most and largest_class, means over the classes where there is one of each.
        thresholds: The numbers that the rules compare with.

    >>> numbers = {"auc": 0.9, "score_sd": 0.2, "predicted_most": 0.3, "largest_class": 0.3}
    >>> bool(flags_of_many({k: np.array(v) for k, v in numbers.items()})[Verdict.HEALTHY])
    True
    """
    t = thresholds
    auc, spread = numbers["auc"], numbers["score_sd"]
    finite = np.isfinite(spread)
    judged = finite & np.isfinite(auc)
    one_class = judged & (1 - numbers["predicted_most"] <= t.one_class * (1 - numbers["largest_class"]))
    good, inverted = judged & (auc >= t.good_auc), judged & (auc <= t.inverted_auc)
    never = np.zeros_like(judged)
    flags = {
        Verdict.DIVERGED: ~finite,
        Verdict.UNDEFINED: finite & ~judged,
        Verdict.INVERTED: inverted,
        Verdict.THRESHOLD_SHIFT: good & one_class,
        Verdict.PRIOR_MISMATCH: never,
        Verdict.ALL_NEGATIVE: never,
        Verdict.ALL_POSITIVE: never,
        Verdict.CONSTANT: one_class & ~good & ~inverted,
        Verdict.WEAK_RANKING: judged & ~good & ~inverted,
        Verdict.HEALTHY: good & ~one_class,
    }
    return {verdict: np.asarray(holds) for verdict, holds in flags.items()}
