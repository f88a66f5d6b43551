"""TEDn: leave out of U what looks positive, fit again, and estimate again."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxpu.prior.candidates import CrossFit, cross_fit
from jaxpu.prior.on_scores import bbe
from jaxpu.prior.tails import Labeled, Weights

ROUNDS = 2


def tedn(
    x: Any,
    labeled: Labeled,
    first: CrossFit,
    candidates: Mapping[str, Any],
    *,
    weight: Weights | None = None,
    rounds: int = ROUNDS,
) -> tuple[float, CrossFit]:
    """BBE on scores of classifiers that were fitted without the rows of U that look most positive.

    Each round leaves the share π̂ of U with the highest scores out of the fitting, scores all rows again, and takes
    BBE of those scores for the next. The last round counts: the least of them would be biased downwards.

    Args:
        x, labeled, candidates, weight: as in :func:`jaxpu.prior.cross_fit`. first: the first cross-fit; its choice
        stays.

    Returns:
        π_U, and the last cross-fit.

    Source: Garg, Wu, Smola, Balakrishnan and Lipton, Mixture Proportion Estimation and PU Learning: A Modern Approach,
    NeurIPS 2021, with the classifiers of this room in place of networks.

    Example:
        >>> from jaxpu.prior import default_candidates, folds
        >>> rng = np.random.default_rng(0)
        >>> labeled = np.arange(900) < 300
        >>> x = rng.normal(np.where(np.arange(900) < 600, 3.0, -3.0))[:, None]  # half of U is positive
        >>> linear = {"logistic": default_candidates()["logistic C=0.03"]}
        >>> first = cross_fit(x, labeled, folds(labeled, random_state=0), linear)
        >>> abs(tedn(x, labeled, first, linear)[0] - 0.5) < 0.05
        True
    """
    found, only = first, {first.chosen: candidates[first.chosen]}
    prior = bbe(first.z, labeled, weight)
    for _ in range(rounds):
        fitted = labeled | ~_top(found.z, ~labeled, prior, weight)
        found = cross_fit(x, labeled, first.fold, only, weight=weight, fitted=fitted)
        prior = bbe(found.z, labeled, weight)
    return prior, found


def _top(z: np.ndarray, of: Labeled, share: float, weight: Weights | None) -> Labeled:
    """The rows with the highest scores among some, up to this share of them; one is always left."""
    rows = np.flatnonzero(of)
    order = rows[np.argsort(-z[rows], kind="stable")]
    w = np.ones(len(order)) if weight is None else weight[order]
    taken = order[(np.cumsum(w) <= share * w.sum()) & (np.cumsum(w) < w.sum())]
    found = np.zeros(len(z), bool)
    found[taken] = True
    return found
