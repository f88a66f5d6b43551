"""Where to cut the scores: rules that need no true label. A row is called positive where its score is at least t.

R is the recall on P, Pr the share of U called positive; under SCAR π R / Pr is the precision among the rows of U.

===============  =====================================  ==========================================
rule             t                                      asks for
===============  =====================================  ==========================================
quantile         the top π of U                         a prior that is known
pu_f1            max 2 min(π R, Pr) / (π + Pr)          a prior that is estimated (the default then)
lee_liu          max R² / Pr                            no prior
budget           the k highest rows of U                how many rows can be looked at
precision        the lowest t with π R / Pr ≥ target    the precision that is wanted
cost             p > C_FP / (C_FP + C_FN)               what each mistake costs
===============  =====================================  ==========================================
"""

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxpu.prior.tails import Labeled, Scores, Tails, Weights, tails


class Cut(NamedTuple):
    """A choice of the threshold.

    Attributes:
        rule: of those above; "default" is that of :func:`default_threshold`.
        asked: rows of a budget, the precision, or how many false alarms a missed positive costs; NaN by default.
    """

    rule: Literal["default", "budget", "precision", "cost"] = "default"
    asked: float = math.nan


def cut_of(budget: Any = None, precision: Any = None, cost_ratio: Any = None) -> Cut:
    """The choice that somebody has made, checked; at most one of the three, None = not asked for.

    Args:
        budget: rows of U that can be looked at. precision: that is wanted. cost_ratio: C_FN / C_FP.

    Raises:
        ValueError: two are given, or one is out of range.

    >>> cut_of(budget=50), cut_of().rule
    (Cut(rule='budget', asked=50.0), 'default')
    """
    given = {"budget": budget, "precision": precision, "cost_ratio": cost_ratio}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return Cut()
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} are given, and there is one threshold; leave all out but one")
    [(name, value)] = given.items()
    number = float(value) if isinstance(value, int | float | np.number) and not isinstance(value, bool) else math.nan
    right, expected = {
        "budget": (number >= 1 and number % 1 == 0, "a whole number of rows of at least 1"),
        "precision": (0 < number <= 1, "a share in (0, 1]"),
        "cost_ratio": (number > 0, "a finite number above 0: how many false alarms a missed positive costs"),
    }[name]
    if not (right and math.isfinite(number)):
        raise ValueError(f"{name} is {value!r}, expected {expected}")
    rule: Any = "cost" if name == "cost_ratio" else name
    return Cut(rule, number)


def threshold_of(
    cut: Cut, z: Scores, labeled: Labeled, prior: float | int, p: Scores, weight: Weights | None = None
) -> float:
    """The score from which a row is called positive by a choice other than the default; +∞ where none is.

    Args:
        cut: the choice. z: scores (n,). labeled: where a row is of P. prior: π_U.
        p: the probability of each row, which rises with z. weight: how often each row counts.

    >>> z = np.array([9.0, 4.0, 3.0, 2.0, 1.0])
    >>> threshold_of(Cut("cost", 3.0), z, np.arange(5) < 1, 0.5, z / 10)
    3.0
    """
    if cut.rule == "budget":
        return budget(z, labeled, cut.asked, weight)
    if cut.rule == "precision":
        return precision(z, labeled, prior, cut.asked, weight)
    return float(z[p > cost(1, cut.asked)].min(initial=math.inf))


class Performance(NamedTuple):
    """What a threshold is estimated to do among the rows of U.

    Attributes:
        threshold: t. selected: how many rows of U are called positive.
        recall: R. precision: min(1, π R / Pr), NaN where no row is selected. f1: 2 min(π R, Pr) / (π + Pr).
    """

    threshold: float
    selected: float
    recall: float
    precision: float
    f1: float


def performance(
    z: Scores, labeled: Labeled, prior: float | int, threshold: float, weight: Weights | None = None
) -> Performance:
    """What calling rows with z ≥ t positive is estimated to do among the rows of U.

    Args:
        z: scores (n,) of rows that the classifier was not fitted on. labeled: where a row is of P. prior: π_U.
        threshold: t. weight: how often each row counts.

    Example:
        >>> z = np.repeat([1.0, 1.0, 0.0], 100)
        >>> performance(z, np.arange(300) < 100, 0.4, 1.0)
        Performance(threshold=1.0, selected=100.0, recall=1.0, precision=0.8, f1=0.888...)
    """
    found = tails(z, labeled, weight)
    weight = np.ones(len(z)) if weight is None else weight
    above = z >= threshold
    selected, recall = float(weight[above & ~labeled].sum()), float(weight[above & labeled].sum() / found.n_labeled)
    share = selected / found.n_unlabeled
    precision = min(1.0, prior * recall / share) if share else float("nan")
    f1 = 2 * min(prior * recall, share) / (prior + share) if prior + share else float("nan")
    return Performance(float(threshold), selected, recall, precision, f1)


def quantile(z: Scores, labeled: Labeled, prior: float | int, weight: Weights | None = None) -> float:
    """The threshold above which the share of U is nearest π.

    Example:
        >>> quantile(np.array([9.0, 4.0, 3.0, 2.0, 1.0]), np.arange(5) < 1, 0.5)
        3.0
    """
    found = _with_none(tails(z, labeled, weight))
    return float(found.threshold[np.argmin(np.abs(found.share - prior))])


def pu_f1(z: Scores, labeled: Labeled, prior: float | int, weight: Weights | None = None) -> float:
    """The threshold with the highest estimate of F1, 2 min(π R, Pr) / (π + Pr), the highest of equal ones.

    The minimum says that no more rows can be rightly called positive than are called so.

    Example:
        >>> pu_f1(np.repeat([1.0, 1.0, 0.0], 100), np.arange(300) < 100, 0.4)
        1.0
    """
    found = _with_none(tails(z, labeled, weight))
    total = prior + found.share
    f1 = np.divide(2 * np.minimum(prior * found.recall, found.share), total, out=np.zeros(len(total)), where=total > 0)
    return float(found.threshold[np.argmax(f1)])


def lee_liu(z: Scores, labeled: Labeled, weight: Weights | None = None) -> float:
    """The threshold with the highest R² / Pr, which is precision times recall up to a factor; needs no prior.

    Where P scores above all of U the quotient is infinite: t is then the lowest such score.

    Source: Lee and Liu, Learning with Positive and Unlabeled Examples Using Weighted Logistic Regression, ICML 2003.

    Example:
        >>> lee_liu(np.repeat([1.0, 1.0, 0.0], 100), np.arange(300) < 100)
        1.0
    """
    found = tails(z, labeled, weight)
    alone = (found.unlabeled == 0) & (found.labeled > 0)
    if found.recall[alone].max(initial=0) == 1:
        return float(found.threshold[alone][-1])
    # half a row, lest a single labeled row above all of U decides
    return float(found.threshold[np.argmax(found.recall**2 / np.maximum(found.share, 0.5 / found.n_unlabeled))])


def budget(z: Scores, labeled: Labeled, rows: float | int, weight: Weights | None = None) -> float:
    """The lowest threshold that selects at most so many rows of U; ties are all left out where they would exceed it.

    Raises:
        ValueError: the budget is negative.

    Example:
        >>> budget(np.array([9.0, 4.0, 3.0, 2.0, 1.0]), np.arange(5) < 1, 2)
        3.0
    """
    if not rows >= 0:
        raise ValueError(f"the budget is {rows}, expected a number of rows of at least 0")
    found = _with_none(tails(z, labeled, weight))
    return float(found.threshold[np.flatnonzero(found.unlabeled <= rows)[-1]])


def precision(z: Scores, labeled: Labeled, prior: float | int, target: float, weight: Weights | None = None) -> float:
    """The lowest threshold at which the estimated precision π R / Pr among rows of U reaches a target; +∞ if none does.

    Raises:
        ValueError: the target is not in (0, 1].

    Example:
        >>> z = np.repeat([1.0, 1.0, 0.0], 100)
        >>> precision(z, np.arange(300) < 100, 0.4, 0.75), precision(z, np.arange(300) < 100, 0.4, 0.9)
        (1.0, inf)
    """
    if not 0 < target <= 1:
        raise ValueError(f"the precision is to be {target}, expected a number in (0, 1]")
    found = tails(z, labeled, weight)
    reached = np.flatnonzero((found.labeled > 0) & (prior * found.recall >= target * found.share))
    return float(found.threshold[reached[-1]]) if len(reached) else float("inf")


def cost(false_positive: float | int, false_negative: float | int) -> float:
    """The probability above which calling a row positive costs less: C_FP / (C_FP + C_FN).

    It is a threshold for calibrated probabilities, not for scores.

    Raises:
        ValueError: a cost is negative, or both are 0.

    Example: missing a positive is nine times as bad.
        >>> cost(1, 9)
        0.1
    """
    if not (min(false_positive, false_negative) >= 0 and false_positive + false_negative > 0):
        raise ValueError(f"expected costs of at least 0 and not both 0, got {false_positive} and {false_negative}")
    return false_positive / (false_positive + false_negative)


def default_threshold(
    z: Scores,
    labeled: Labeled,
    prior: float | int,
    weight: Weights | None = None,
    *,
    rule: Literal["given", "estimated"],
) -> float:
    """The quantile where the prior is given, PU-F1 where it was estimated and may be wrong.

    Example:
        >>> default_threshold(np.repeat([1.0, 1.0, 0.0], 100), np.arange(300) < 100, 0.5, rule="estimated")
        1.0
    """
    return (quantile if rule == "given" else pu_f1)(z, labeled, prior, weight)


def _with_none(found: Tails) -> Tails:
    """The thresholds and one above all of them, which selects nothing."""
    first = np.zeros(1)
    above = np.full(1, np.inf)
    return Tails(
        *(np.concatenate(pair) for pair in ((above, found.threshold), (first, found.labeled), (first, found.unlabeled)))
    )
