"""The estimators of the class prior by name, each with what it looks at and where it comes from."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxpu.errors import unknown
from jaxpu.prior.candidates import CrossFit, Folds, cross_fit
from jaxpu.prior.dedpul import dedpul
from jaxpu.prior.kernel_mean import kernel_mean
from jaxpu.prior.on_scores import bbe, elkan_noto
from jaxpu.prior.penl1 import pen_l1
from jaxpu.prior.tails import Labeled, Weights
from jaxpu.prior.tedn import tedn
from jaxpu.prior.tice import tice


class Estimator(NamedTuple):
    """An estimator of π_U.

    Attributes:
        estimate: a function of cross-fitted scores, of features, or of both, as ``on`` says.
        on: "scores" (z, labeled, weight), "features" (x, labeled, fold, weight) or "refit" (x, labeled, cross-fit,
        candidates).
        summary: what it does and how it errs, a sentence. source: authors and year.
    """

    estimate: Callable[..., Any]
    on: str
    summary: str
    source: str


def _km(rule: Literal["km1", "km2"]) -> Callable[..., float]:
    def estimate(x: Any, labeled: Labeled, fold: Folds, weight: Weights | None) -> float:
        del fold  # nothing is held out
        return kernel_mean(x, labeled, weight, rule=rule)

    return estimate


METHODS: dict[str, Estimator] = {
    "bbe": Estimator(bbe, "scores", "share of U above the best threshold, over that of P", "Garg et al. 2021"),
    "tedn": Estimator(tedn, "refit", "BBE again without what looks positive in U", "Garg et al. 2021"),
    "dedpul": Estimator(dedpul, "scores", "fixed point of a smoothed density ratio; too high", "Ivanov 2020"),
    "pen_l1": Estimator(pen_l1, "scores", "penalised L1 divergence; too high", "du Plessis, Niu, Sugiyama 2017"),
    "elkan_noto": Estimator(elkan_noto, "scores", "mean g on P (e1); needs classes that part", "Elkan, Noto 2008"),
    "km1": Estimator(_km("km1"), "features", "kernel means, fixed threshold", "Ramaswamy, Scott, Tewari 2016"),
    "km2": Estimator(_km("km2"), "features", "kernel means, threshold of the slope", "Ramaswamy, Scott, Tewari 2016"),
    "tice": Estimator(tice, "features", "purest part of a tree; too high", "Bekker, Davis 2018"),
}
"""Estimators by name. Elkan and Noto's e3 is left out: the maximum of noisy scores, it is far too low."""


class Estimate(NamedTuple):
    """π_U and what it was read off.

    Attributes:
        prior: π_U. found: the cross-fitted scores; with ``tedn`` those of the last round.
    """

    prior: float
    found: CrossFit


def estimate_prior(
    method: str, x: Any, labeled: Labeled, fold: Folds, candidates: Mapping[str, Any], weight: Weights | None = None
) -> Estimate:
    """π_U by a method, with the cross-fitted scores that intervals and probabilities need.

    Args:
        method: a key of :data:`METHODS`. x: features (n, ...). labeled: where a row is of P.
        fold: as :func:`jaxpu.prior.folds` gives. candidates: classifiers by name. weight: how often each row counts.

    Raises:
        ValueError: an unknown method, or one that takes numbers only, and x is none.

    Example:
        >>> from jaxpu.prior import default_candidates, folds
        >>> x, labeled = np.repeat([1.0, 1.0, 0.0], 40)[:, None], np.arange(120) < 40
        >>> round(estimate_prior("bbe", x, labeled, folds(labeled, random_state=0), default_candidates()).prior, 2)
        0.5
    """
    if method not in METHODS:
        raise ValueError(unknown("method", method, list(METHODS)))
    entry = METHODS[method]
    found = cross_fit(x, labeled, fold, candidates, weight=weight)
    if entry.on == "scores":
        return Estimate(entry.estimate(found.z, labeled, weight), found)
    if entry.on == "refit":
        return Estimate(*entry.estimate(x, labeled, found, candidates, weight=weight))
    return Estimate(on_features(method, x, labeled, fold, weight), found)


def on_features(method: str, x: Any, labeled: Labeled, fold: Folds, weight: Weights | None = None) -> float:
    """π_U by a method that looks at features (n, d), which must be numbers.

    Raises:
        ValueError: they are not.
    """
    numbers = np.asarray(x.toarray() if hasattr(x, "toarray") else x)
    if not np.issubdtype(numbers.dtype, np.number) or not np.isfinite(numbers.astype(float)).all():
        raise ValueError(
            f"method {method!r} takes finite numbers as features; take 'bbe', whose candidates take others"
        )
    return METHODS[method].estimate(numbers.astype(float), labeled, fold, weight)
