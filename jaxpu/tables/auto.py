"""The default for tables: candidates of P against U by cross-fitting, the share of positives, and cross-fitted scores.

    Table ─► cross_fit: four candidates ─► the highest AUC(P, U) ─► BBE: π_U with interval
                                    └─► numbers without gaps: that candidate ─┐
                                        strings, categories, gaps: weighted ──┴─► members: z, once a seed

A row that was trained on is scored by classifiers that have not seen it; a later one by the mean of all of them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from jaxpu import prior
from jaxpu.prior import Share
from jaxpu.prior.tails import Scores, Weights
from jaxpu.tables.candidates import WEIGHTED, WeightedClassifier, candidates
from jaxpu.tables.table import Table

SEEDS = 4
"""Cross-fittings, each with folds of its own."""

LARGE = 2_000_000
"""Cells from which threads are worth their cost."""


class Auto(NamedTuple):
    """A table's scores, and what gives those of later rows.

    Attributes:
        share: π_U. chosen: the classifier that scores. auc: of P against U, of each candidate, the chosen among them.
        scores: cross-fitted z (seeds, n). fold: of the first seed. members: its classifiers, one a fold.
        weight: how often each row counts; None = once.
    """

    share: Share
    chosen: str
    auc: dict[str, float]
    scores: Float[np.ndarray, "seeds n"]
    fold: np.ndarray
    members: tuple[prior.Member, ...]
    weight: Weights | None = None

    @property
    def z(self) -> Scores:
        """Mean score of each row over the seeds (n,)."""
        return self.scores.mean(axis=0)


def fit_auto(
    table: Table,
    *,
    given: float | None = None,
    models: Mapping[str, Any] | None = None,
    seeds: int = SEEDS,
    cv: Any = 5,
    random_state: int = 0,
    weight: Weights | None = None,
    level: float = 0.95,
    routed: Mapping[str, Mapping[str, Any]] | None = None,
) -> Auto:
    """Score the rows of a table by classifiers that have not seen them, and estimate how many are positive.

    Args:
        table: the rows. given: π_U; None = estimated. models: candidates by name; None = the default ones.
        seeds: how often it is cross-fitted, with other folds. cv: folds, or a list of splits, which leaves one seed.
        random_state: of folds and boosting. weight: how often each row counts. level: of the interval.
        routed: as :func:`jaxpu.prior.cross_fit` takes it.

    Raises:
        ValueError: fewer than two labeled or unlabeled rows; or as candidates raise.

    >>> from jaxpu.tables import columns_of, of_columns
    >>> x = np.random.default_rng(0).normal(np.where(np.arange(300) < 120, 2.0, -2.0)[:, None], size=(300, 2))
    >>> found = fit_auto(of_columns(columns_of(x), np.arange(300) < 40), seeds=2)
    >>> found.scores.shape, len(found.members), 0.2 < found.share.value < 0.45
    ((2, 300), 5, True)
    """
    with threadpool_limits(1 if table.x.size < LARGE else None):
        x, labeled = table.x, table.labeled
        fold = prior.folds(labeled, cv, random_state)
        tried = dict(candidates(table, random_state) if models is None else models)
        found = prior.cross_fit(x, labeled, fold, tried, weight=weight, routed=routed)
        share = prior.share_of(
            prior.bbe(found.z, labeled, weight) if given is None else float(given),
            found,
            labeled,
            weight,
            level=level,
            given=given is not None,
        )
        first = found
        if models is None and not table.plain:
            tried[WEIGHTED] = WeightedClassifier(tried["boosting"], prior=given, random_state=random_state)
            first = prior.cross_fit(x, labeled, fold, {WEIGHTED: tried[WEIGHTED]}, weight=weight)
        chosen, scores = first.chosen, [first.z]
        for k in range(1, seeds if isinstance(cv, int | np.integer) else 1):
            again = prior.folds(labeled, int(cv), random_state + k)
            only = {chosen: tried[chosen]}
            scores.append(prior.cross_fit(x, labeled, again, only, weight=weight, routed=routed).z)
        areas = {**found.auc, **first.auc}
        return Auto(share, chosen, areas, np.stack(scores), fold, first.fitted[chosen], weight)
