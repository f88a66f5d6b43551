"""What to look at before scores are believed: what drives them, whether they are stable, and signs against SCAR.

SCAR, that labeled positives are a random sample of all positives, cannot be verified from P and U. It can be
contradicted: by a told share that exceeds what the data allow, or by labels that can be foretold among rows that all
look positive.
"""

import math
from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Float
from threadpoolctl import threadpool_limits

from jaxpu import prior
from jaxpu.prior import Share
from jaxpu.prior.tails import Labeled, Scores
from jaxpu.tables.auto import Auto
from jaxpu.tables.candidates import candidates
from jaxpu.tables.table import Table

MOST_ROWS, MOST_FEATURES, TIMES = 2000, 200, 3
SURE, DOUBTFUL = 0.9, 0.1
"""Probabilities from which a row looks surely positive, and up to which a labeled one is suspicious."""


def drivers(table: Table, auto: Auto, random_state: int = 0) -> pl.DataFrame:
    """How much AUC of P against U is lost when a column is shuffled, each row scored by what has not seen it.

    Returns:
        ``column``, ``kind``, ``loss`` (mean over three shufflings) and ``sd``, the most important first. Of more than
        200 features those are looked at whose values differ most in rank between P and U.
    """
    rng = np.random.default_rng(random_state)
    rows = _some(table.labeled, rng)
    x, labeled, fold = table.x[rows], table.labeled[rows], auto.fold[rows]

    def area(shuffled: np.ndarray) -> float:
        return prior.auc(prior.held_out(auto.chosen, auto.members, shuffled, fold), labeled)

    found = []
    with threadpool_limits(1):
        whole = area(x)
        for k in _likely(x, labeled):
            lost = []
            for _ in range(TIMES):
                shuffled = x.copy()
                shuffled[:, k] = rng.permutation(shuffled[:, k])
                lost.append(whole - area(shuffled))
            column = table.schema.features[k]
            found.append((column.name, column.kind, float(np.mean(lost)), float(np.std(lost))))
    frame = pl.DataFrame(found, schema=["column", "kind", "loss", "sd"], orient="row")
    return frame.sort("loss", descending=True, maintain_order=True)


def _some(labeled: Labeled, rng: np.random.Generator) -> np.ndarray:
    """At most so many rows, of P and of U."""
    parts = [np.flatnonzero(of) for of in (labeled, ~labeled)]
    return np.sort(np.concatenate([rng.permutation(part)[: MOST_ROWS // 2] for part in parts]))


def _likely(x: np.ndarray, labeled: Labeled) -> list[int]:
    if x.shape[1] <= MOST_FEATURES:
        return list(range(x.shape[1]))
    distance = [abs(prior.auc(np.nan_to_num(column, nan=-1e9), labeled) - 0.5) for column in x.T]
    return np.argsort(distance)[::-1][:MOST_FEATURES].tolist()


class Stability(NamedTuple):
    """Whether the same unlabeled rows stand on top, whichever folds they were scored with.

    Attributes:
        top: how many rows are looked at. shared: mean share of them that two seeds have in common; NaN with one seed.
        always: rows that are among them in every seed.
    """

    top: int
    shared: float
    always: int


def stability(scores: Float[np.ndarray, "seeds n"], labeled: Labeled, top: int) -> Stability:
    """Compare the highest rows of the seeds.

    >>> stability(np.array([[3.0, 2.0, 1.0, 9.0], [3.0, 1.0, 2.0, 9.0]]), np.arange(4) == 3, 2)
    Stability(top=2, shared=0.5, always=1)
    """
    top = max(1, min(top, int((~labeled).sum())))
    best = [set(np.argsort(-z[~labeled], kind="stable")[:top].tolist()) for z in scores]
    pairs = [len(a & b) / top for k, a in enumerate(best) for b in best[k + 1 :]]
    return Stability(top, float(np.mean(pairs)) if pairs else float("nan"), len(set.intersection(*best)))


class Scar(NamedTuple):
    """Signs that the labeled rows are no random sample of the positives.

    Attributes:
        impossible: whether the told share is above the most that the data allow.
        rows: unlabeled rows that look surely positive. auc: with which labeled ones can be told from them, beside the
            0.5 that SCAR would give. low, high: its 95 % interval; all NaN with fewer than 20 rows on a side.
    """

    impossible: bool
    rows: int
    auc: float
    low: float
    high: float

    @property
    def found(self) -> bool:
        """Whether there is a sign; that there is none proves nothing."""
        return self.impossible or self.low > 0.6


def scar(table: Table, share: Share, p: Float[np.ndarray, " n"], random_state: int = 0) -> Scar:
    """Look for signs against SCAR.

    Args:
        table: the rows. share: π_U. p: the cross-fitted probability of each row to be positive.

    Among rows that are surely positive, whether one is labeled has nothing to do with its features if SCAR holds. Rows
    that are not so sure are taken in with them, so that a little above 0.5 means nothing.
    """
    impossible = share.given and share.value > share.at_most
    sure = p >= SURE
    labeled, nan = table.labeled[sure], float("nan")
    n_p, n_u = int(labeled.sum()), int((~labeled).sum())
    if min(n_p, n_u) < prior.FEWEST:
        return Scar(impossible, n_u, nan, nan, nan)
    name = "logistic C=0.03"
    fold = prior.folds(labeled, 5, random_state)
    with threadpool_limits(1):
        area = prior.cross_fit(table.x[sure], labeled, fold, {name: candidates(table)[name]}).auc[name]
    reach = 1.96 * _error(area, n_p, n_u)
    return Scar(impossible, n_u, area, max(0.0, area - reach), min(1.0, area + reach))


def _error(area: float, n_p: int, n_u: int) -> float:
    """Standard error of an AUC (Hanley and McNeil 1982)."""
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (n_p - 1) * (q1 - area**2) + (n_u - 1) * (q2 - area**2)
    return math.sqrt(max(spread, 0.0) / (n_p * n_u))


def suspicious(z: Scores, p: Float[np.ndarray, " n"], labeled: Bool[np.ndarray, " n"], most: int = 20) -> np.ndarray:
    """Labeled rows that look negative, those first that look so most: numbers of rows.

    They have a probability of at most a tenth, and half of the unlabeled rows score higher.

    >>> z = np.array([-2.0, 3.0, 0.0, 1.0])
    >>> suspicious(z, np.array([0.0, 1.0, 0.2, 0.3]), np.array([True, True, False, False])).tolist()
    [0]
    """
    odd = np.flatnonzero(labeled & (p <= DOUBTFUL) & (z < np.median(z[~labeled])))
    return odd[np.argsort(z[odd], kind="stable")][:most]
