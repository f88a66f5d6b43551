"""What :func:`jaxpu.fit` gives, whichever method made it."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int8

from jaxpu import analysis, collapse, config, prior
from jaxpu.config import Experiment
from jaxpu.data import Dataset
from jaxpu.fitted.scorer import AutoScorer, NetworkScorer, Scorer, of_calibrated, ranked
from jaxpu.prior import Share
from jaxpu.prior.probability import Of
from jaxpu.tables import Table
from jaxpu.tables.auto import Auto


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """Scores of the rows that were given, how many of them are positive, and what scores others.

    Attributes:
        labeled: where a row is labeled positive. scorer: what scores further rows, and can be saved.
        table: what was made of the columns; None for rows of another shape than (n, d). truth: true labels, or None.
    """

    labeled: Bool[np.ndarray, " n"] = dataclasses.field(repr=False)
    scorer: Scorer
    table: Table | None
    truth: Int8[np.ndarray, " n"] | None = dataclasses.field(repr=False)

    @property
    def share(self) -> Share:
        """π_U, the share of positives among the unlabeled rows, with what is known of it."""
        return self.scorer.share

    @property
    def threshold(self) -> float:
        """The score from which a row is called positive."""
        return self.scorer.threshold

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


def of_table(table: Table, auto: Auto, truth: Int8[np.ndarray, " n"] | None = None) -> AutoFit:
    """Put a fit together: calibration and threshold from the cross-fitted scores."""
    z, share, weight = auto.z, auto.share, auto.weight
    cut = prior.default_threshold(z, table.labeled, share.value, weight, rule="given" if share.given else "estimated")
    calibration = prior.Calibration().fit(z, table.labeled, weight)
    scorer = AutoScorer(table.schema, share, cut, "auto", auto.chosen, auto.members, calibration)
    return AutoFit(table.labeled, scorer, table, truth, auto)


@dataclasses.dataclass(frozen=True, eq=False)
class NetworkFit(Fit):
    """What a network's method gives.

    Attributes:
        runs: what was recorded, a row an epoch and seed. experiment: all settings. provenance: of the numbers.
        dataset: the rows.
    """

    runs: pl.DataFrame
    experiment: Experiment
    provenance: dict[str, Any]
    dataset: Dataset = dataclasses.field(repr=False)

    scorer: NetworkScorer

    @functools.cached_property
    def scores(self) -> Float[np.ndarray, "seeds n"]:
        """Logits of the rows, one a seed: above 0 where p > 1/2. The networks were trained on most of them."""
        return dataclasses.replace(self.scorer, dense=None).logits(self.dataset.features())

    @functools.cached_property
    def score(self) -> Float[np.ndarray, " n"]:
        """The log odds of the networks' mean probability."""
        return self.scorer.score(self.scores)

    @functools.cached_property
    def probability(self) -> Float[np.ndarray, " n"]:
        """The networks' mean probability."""
        return self.scorer.probability(self.score)

    @functools.cached_property
    def tables(self) -> analysis.Tables:
        """The tables of :func:`jaxpu.analysis.tables`: what was selected, its summary and its verdicts."""
        return analysis.tables(self.runs, self.experiment)

    @functools.cached_property
    def verdicts(self) -> pl.DataFrame:
        """What became of the runs, a row a selection rule: verdict, failing runs of all, and a sentence."""
        return self.tables.verdicts

    def summary(self) -> pl.DataFrame:
        """Means, medians and intervals over the seeds, a row a metric and selection rule."""
        return self.tables.summary


def cell_of(experiment: Experiment) -> Any:
    """The one cell of a fit."""
    [cell] = config.expand(experiment)
    return cell


def kept_of(
    cell: Any, dataset: Dataset, seeds: Sequence[int], kept: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """What a scorer keeps of each network: its parameters, and how its training rows were standardised."""
    from jaxpu import data

    rows = [data.prepare(cell.data, dataset, seed).rows for seed in seeds]
    return tuple({**one, "mean": r.mean, "sd": r.sd} for one, r in zip(kept, rows, strict=True))
