"""What :func:`jaxpu.fit` gives, whichever method made it."""

import dataclasses
import functools
import math
from typing import Any, Self

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int8

from jaxpu import collapse, prior
from jaxpu.fitted.scorer import AutoScorer, Scorer, of_calibrated, ranked
from jaxpu.prior import Share
from jaxpu.prior.probability import Of
from jaxpu.tables import Table
from jaxpu.tables.auto import Auto

DEFAULT = prior.Cut()


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """Scores of the rows that were given, how many of them are positive, and what scores others.

    Attributes:
        labeled: where a row is labeled positive. scorer: what scores further rows, and can be saved.
        table: what was made of the columns; None for rows of another shape than (n, d). truth: true labels, or None.
        cut: how the threshold was chosen.
    """

    labeled: Bool[np.ndarray, " n"] = dataclasses.field(repr=False)
    scorer: Scorer
    table: Table | None
    truth: Int8[np.ndarray, " n"] | None = dataclasses.field(repr=False)
    cut: prior.Cut = dataclasses.field(default=DEFAULT, kw_only=True)

    @property
    def share(self) -> Share:
        """π_U, the share of positives among the unlabeled rows, with what is known of it."""
        return self.scorer.share

    @property
    def threshold(self) -> float:
        """The score from which a row is called positive."""
        return self.scorer.threshold

    @property
    def default_threshold(self) -> float:
        """That of the method, when nothing is asked for."""
        raise NotImplementedError

    def threshold_of(self, cut: prior.Cut) -> float:
        """The score from which a row would be called positive by another choice, see :func:`jaxpu.prior.cut_of`."""
        if cut.rule == "default":
            return self.default_threshold
        p = self.scorer.probability(self.score)
        return prior.threshold_of(cut, self.score, self.labeled, self.share.value, p)

    def at(self, cut: prior.Cut) -> Self:
        """The same with another threshold."""
        return dataclasses.replace(
            self, cut=cut, scorer=dataclasses.replace(self.scorer, threshold=self.threshold_of(cut))
        )

    @functools.cached_property
    def scores(self) -> Float[np.ndarray, "seeds n"]:
        """Scores of the rows, one a seed."""
        raise NotImplementedError

    @functools.cached_property
    def score(self) -> Float[np.ndarray, " n"]:
        """Scores of the rows that rank them, the seeds together."""
        raise NotImplementedError

    @functools.cached_property
    def probability(self) -> Float[np.ndarray, " n"]:
        """Of each row, that an unlabeled row with its features is positive."""
        raise NotImplementedError

    @property
    def decision(self) -> Int8[np.ndarray, " n"]:
        """1 where the score reaches the threshold."""
        return (self.score >= self.threshold).astype(np.int8)

    def ranked(self) -> pl.DataFrame:
        """The rows as ``scores.csv`` has them, the highest score first; see :func:`jaxpu.fitted.scorer.ranked`."""
        identifiers = None if self.table is None else self.table.identifiers
        return ranked(self.score, self.probability, self.threshold, identifiers, self.labeled)

    def decision_function(self, x: Any) -> Float[np.ndarray, "members m"]:
        """Scores of other rows, by each network or by the classifier of each fold.

        Args:
            x: rows with the features of those that were trained on, an array or a data frame.
        """
        return self.scorer.decision_function(x)

    def predict_proba(self, x: Any, of: Of = "unlabeled") -> Float[np.ndarray, "m 2"]:
        """P(negative) and P(positive) of rows that are not labeled, or with "population" of any row."""
        return self.scorer.predict_proba(x, of)

    def predict(self, x: Any) -> Int8[np.ndarray, " m"]:
        """1 where the score of a row reaches the threshold."""
        return self.scorer.predict(x)

    @functools.cached_property
    def verdicts(self) -> pl.DataFrame:
        """What became of the runs, a row a selection rule: verdict, failing runs of all, and a sentence."""
        raise NotImplementedError

    def summary(self) -> pl.DataFrame:
        """Means over the seeds, a row a metric."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, eq=False)
class AutoFit(Fit):
    """What ``method="auto"`` gives: the rows cross-fitted, each scored by classifiers that have not seen it.

    Attributes:
        auto: the candidates, and the scores of each seed.
    """

    auto: Auto

    @property
    def default_threshold(self) -> float:
        """The quantile where the prior was given, PU-F1 where it was estimated."""
        rule = "given" if self.share.given else "estimated"
        return prior.default_threshold(self.score, self.labeled, self.share.value, self.auto.weight, rule=rule)

    @functools.cached_property
    def scores(self) -> Float[np.ndarray, "seeds n"]:
        """Cross-fitted scores z = log f_P / f_U, one a seed."""
        return self.auto.scores

    @functools.cached_property
    def score(self) -> Float[np.ndarray, " n"]:
        """Their mean."""
        return self.auto.z

    @functools.cached_property
    def probability(self) -> Float[np.ndarray, " n"]:
        """Of each row, that an unlabeled row with its features is positive, calibrated on other rows."""
        return self._calibrated(self.score)

    def _calibrated(self, z: np.ndarray) -> np.ndarray:
        fold, weight = self.auto.fold, self.auto.weight
        return of_calibrated(prior.cross_calibrated(z, self.labeled, fold, weight), self.share)

    @functools.cached_property
    def verdicts(self) -> pl.DataFrame:
        """What P and U tell of the scores, without true labels: one row."""
        said = [collapse.diagnose_epoch(self._measures(z)) for z in self.scores]
        words = [str(one.verdict) for one in said]
        verdict = max(words, key=words.count)
        failing = sum(one.failing for one in said)
        sentence = next(one.explanation for one in said if str(one.verdict) == verdict)
        return pl.DataFrame([{**self._head(), "verdict": verdict, "n": len(said), "failing": failing,
                              "rate": failing / len(said), "sentence": sentence}])  # fmt: skip

    def summary(self) -> pl.DataFrame:
        """Means over the seeds, a row a metric; with true labels those of the unlabeled rows, too."""
        rows = [self._measures(z) | self._oracle(z) for z in self.scores]
        found = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        return pl.DataFrame([
            {**self._head(), "metric": name, "n": len(values), "mean": float(values.mean()),
             "median": float(np.median(values)), "sd": float(values.std(ddof=1)) if len(values) > 1 else float("nan")}
            for name, values in found.items()
        ])  # fmt: skip

    def _head(self) -> dict[str, str]:
        name = "own" if self.table is None else self.table.name
        return {"dataset": name, "method": "auto", "selection": "cross-fitted"}

    def _measures(self, z: np.ndarray) -> dict[str, float]:
        """What P and U say of the scores of a seed."""
        of_u, share = z[~self.labeled], self.share.value
        p = self._calibrated(z)[~self.labeled]
        area = prior.auc(z, self.labeled, self.auto.weight)
        return {
            "auc_pu": area,
            "proxy_pu_auc": (area - share / 2) / (1 - share) if share < 1 else float("nan"),
            "unlabeled_positive": float((of_u >= self.threshold).mean()),
            "unlabeled_mean": float(p.mean()),
            "unlabeled_sd": float(p.std()),
            "given_prior": share,
        }

    def _oracle(self, z: np.ndarray) -> dict[str, float]:
        if self.truth is None:
            return {}
        of_u = ~self.labeled
        centered = z[of_u] - np.nextafter(self.threshold, -np.inf)
        found = collapse.score_metrics(centered, self.truth[of_u], threshold=0.0)
        return {name.removeprefix("oracle_"): value for name, value in found.items() if name.startswith("oracle_")}


def of_table(
    table: Table, auto: Auto, truth: Int8[np.ndarray, " n"] | None = None, cut: prior.Cut = DEFAULT
) -> AutoFit:
    """Put a fit together: calibration and threshold from the cross-fitted scores."""
    calibration = prior.Calibration().fit(auto.z, table.labeled, auto.weight)
    scorer = AutoScorer(table.schema, auto.share, math.nan, "auto", auto.chosen, auto.members, calibration)
    return AutoFit(table.labeled, scorer, table, truth, auto).at(cut)
