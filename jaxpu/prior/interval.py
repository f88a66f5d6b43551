"""Between which shares the class prior lies, from the scores that it was estimated on.

The data identify only π* = inf f_U / f_P, the largest share that they allow. The upper end holds without further
assumption but that P is a random sample of the positives (SCAR); the lower end assumes that π* is π.
"""

import math
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float, Integer
from scipy.stats import norm

from jaxpu.prior.on_scores import best_bin
from jaxpu.prior.tails import Labeled, Scores, Weights, sizes, tails

FEWEST = 20
"""Labeled rows below which an interval covers too rarely (87 of 100 times instead of 95), so that only an upper bound
is shown."""


def katz(
    a: Float[np.ndarray, " k"],
    b: Float[np.ndarray, " k"],
    n_unlabeled: float | int,
    n_labeled: float | int,
    level: float = 0.95,
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Katz's interval of the ratio (a / n_U) / (b / n_P) of two shares, from counts.

    se² = (1 − a/n_U) / a + (1 − b/n_P) / b, ends ratio · exp(±z se); a is at least 1/2 and b at least 1.

    Source: Katz, Baptista, Azen and Pike, Obtaining Confidence Intervals for the Risk Ratio in Cohort Studies,
    Biometrics 1978.

    Example:
        >>> low, high = katz(np.array([30.0]), np.array([60.0]), 100, 100)
        >>> round(float(low[0]), 3), round(float(high[0]), 3)
        (0.356, 0.702)
    """
    a, b = np.maximum(a, 0.5), np.maximum(b, 1.0)
    se = np.sqrt(np.maximum(0.0, 1 - a / n_unlabeled) / a + np.maximum(0.0, 1 - b / n_labeled) / b)
    ratio = (a / n_unlabeled) / (b / n_labeled)
    reach = np.exp(norm.ppf(0.5 + level / 2) * se)
    return ratio / reach, ratio * reach


def at_most(z: Scores, labeled: Labeled, weight: Weights | None = None, level: float = 0.95) -> float:
    """An upper bound of π that needs nothing but SCAR: always covered, and wide.

    u = min_t (q_U + e_U) / (q_P − e_P), e = √(log(2 / δ) / 2n), δ = 1 − level: one-sided
    Dvoretzky-Kiefer-Wolfowitz bands of both, so that t may be chosen afterwards.

    Source: Massart, The Tight Constant in the Dvoretzky-Kiefer-Wolfowitz Inequality, Annals of Probability 1990.

    Example:
        >>> z = np.repeat([1.0, 1.0, 0.0], [1000, 200, 800])
        >>> round(at_most(z, np.arange(2000) < 1000), 3)
        0.254
    """
    found = tails(z, labeled, weight)
    e_u, e_p = (math.sqrt(math.log(2 / (1 - level)) / (2 * n)) for n in (found.n_unlabeled, found.n_labeled))
    left = found.recall - e_p
    usable = left > 0
    return float(min(1.0, np.min((found.share[usable] + e_u) / left[usable], initial=1.0)))


def upper_end(
    z: Scores, labeled: Labeled, fold: Integer[np.ndarray, " n"], weight: Weights | None = None, level: float = 0.95
) -> float:
    """Katz's upper end of counts above thresholds that were chosen on other rows.

    For each fold the threshold is that of BBE on the other folds; the counts of the folds are added up.

    Args:
        z, labeled, weight: as in :func:`jaxpu.prior.bbe`. fold: the fold of each row, as in the cross-fitting.
        level: of the two-sided interval.
    """
    weight = np.ones(len(z)) if weight is None else weight
    a = b = 0.0
    for k in np.unique(fold):
        inside, rest = fold == k, fold != k
        found = tails(z[rest], labeled[rest], weight[rest])
        above = inside & (z >= found.threshold[best_bin(found)])
        a, b = a + weight[above & ~labeled].sum(), b + weight[above & labeled].sum()
    n_labeled, n_unlabeled = sizes(labeled, weight)
    return float(min(1.0, katz(np.array([a]), np.array([b]), n_unlabeled, n_labeled, level)[1][0]))


def lower_end(
    candidates: Iterable[Scores], labeled: Labeled, weight: Weights | None = None, level: float = 0.95
) -> float:
    """The least pointwise lower end of Katz over all thresholds with b ≥ max(3, n_P / 10), and over all candidates.

    That it is the least absorbs the upward bias of a minimum that no candidate reaches.

    Args:
        candidates: the scores (n,) of each. labeled, weight, level: as in :func:`upper_end`.
    """
    least = 1.0
    for z in candidates:
        found = tails(z, labeled, weight)
        enough = found.labeled >= min(max(3.0, found.n_labeled / 10), found.n_labeled)
        low, _ = katz(found.unlabeled[enough], found.labeled[enough], found.n_unlabeled, found.n_labeled, level)
        least = min(least, float(low.min()))
    return least
