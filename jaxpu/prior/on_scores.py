"""Class priors from scores alone: how few of U can lie where P lies?"""

import math

import numpy as np
from scipy.special import expit

from jaxpu.prior.scenario import prior_of_frequency
from jaxpu.prior.tails import Labeled, Scores, Tails, Weights, tails

GAMMA = 0.01
"""γ of BBE."""

LOG = math.log(1 / 0.5)
"""L of BBE: log(1 / δ) with δ = .5. The paper has log(4 / δ) with δ = .1, which is biased upwards where P is small."""


def bbe(z: Scores, labeled: Labeled, weight: Weights | None = None) -> float:
    """Best bin estimation: π = q_U / q_P at the threshold that minimises an upper bound of it.

    t = argmin [q_U / q_P + (1 + γ) / q_P (√(L / 2n_U) + √(L / 2n_P))], π = min(1, q_U / q_P at t). Only the order of
    the scores matters.

    Args:
        z: scores (n,). labeled: where a row is of P. weight: how often each row counts; None = once.

    Source: Garg, Wu, Smola, Balakrishnan and Lipton, Mixture Proportion Estimation and PU Learning: A Modern Approach,
    NeurIPS 2021.

    Example: the upper half of U looks like P.
        >>> z = np.repeat([1.0, 1.0, 0.0], 100)
        >>> bbe(z, np.arange(300) < 100)
        0.5
    """
    found = tails(z, labeled, weight)
    k = best_bin(found)
    return float(min(1.0, found.share[k] / found.recall[k]))


def best_bin(found: Tails) -> int:
    """Where among the thresholds the bound of :func:`bbe` is least; the highest of equal ones."""
    slack = math.sqrt(LOG / (2 * found.n_unlabeled)) + math.sqrt(LOG / (2 * found.n_labeled))
    with np.errstate(divide="ignore"):
        bound = np.where(found.labeled > 0, (found.share + (1 + GAMMA) * slack) / found.recall, np.inf)
    return int(np.argmin(bound))


def elkan_noto(z: Scores, labeled: Labeled, weight: Weights | None = None) -> float:
    """Elkan and Noto's e1: c is the mean of P(s = 1 | x) over labeled rows, π_U = n_P (1 − c) / (c n_U).

    It needs calibrated scores, and positives that no negative looks like; it is biased upwards where they overlap.

    Args:
        z: log density ratios log f_P / f_U (n,) of rows that the classifier was not fitted on; their values matter.
        labeled, weight: as in :func:`bbe`.

    Source: Elkan and Noto, Learning Classifiers from Only Positive and Unlabeled Data, KDD 2008.

    Example:
        >>> z = np.where(np.arange(300) < 200, np.log(2.0), -20.0)
        >>> round(elkan_noto(z, np.arange(300) < 100), 6)
        0.5
    """
    found = tails(z, labeled, weight)
    n_labeled, n_unlabeled = found.n_labeled, found.n_unlabeled
    p = expit(z[labeled] + math.log(n_labeled / n_unlabeled))
    c = float(np.average(p, weights=None if weight is None else weight[labeled]))
    return prior_of_frequency(c, n_labeled, n_unlabeled)


def auc(z: Scores, labeled: Labeled, weight: Weights | None = None) -> float:
    """AUC of P against U: the chance that a labeled row scores higher than an unlabeled one, ties counting half.

    Under SCAR it is π/2 + (1 − π) AUC of positives against negatives, so that choosing by it is choosing by that.

    Example:
        >>> auc(np.array([2.0, 1.0, 1.0, 0.0]), np.array([True, False, True, False]))
        0.875
    """
    found = tails(z, labeled, weight)
    recall, share = (np.concatenate([[0.0], q]) for q in (found.recall, found.share))
    return float(np.sum(np.diff(share) * (recall[1:] + recall[:-1]) / 2))
