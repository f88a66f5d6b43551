"""What scores further rows: all of a fit that is kept, and none of its training rows."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float
from scipy.special import expit, logit

from jaxpu import prior
from jaxpu.prior import Share
from jaxpu.prior.probability import Of
from jaxpu.tables import Schema
from jaxpu.tables.dense import Dense


class Scored(NamedTuple):
    """Scores of rows.

    Attributes:
        frame: a row a row, the highest score first, as :func:`ranked` has it. notes: what did not fit, a sentence each.
    """

    frame: pl.DataFrame
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Scorer:
    """Scores rows with the features of those that it was fitted on.

    Attributes:
        schema: the columns; None where rows have another shape than (n, d).
        share: of positives among the unlabeled rows. threshold: the score from which a row is called positive.
        method: "auto", or the name of a method. detail: which classifier, in words.
    """

    schema: Schema | None
    share: Share
    threshold: float
    method: str
    detail: str

    kind: ClassVar[str] = ""

    def logits(self, x: np.ndarray) -> Float[np.ndarray, "members m"]:
        """Scores of rows that are numbers already, by each classifier."""
        raise NotImplementedError

    def score(self, logits: Float[np.ndarray, "members m"]) -> Float[np.ndarray, " m"]:
        """The scores of all classifiers as one, which ranks the rows."""
        raise NotImplementedError

    def probability(self, score: Float[np.ndarray, " m"], of: Of = "unlabeled") -> Float[np.ndarray, " m"]:
        """P(y = 1 | x) from scores: of an unlabeled row, or of any row of a single set."""
        raise NotImplementedError

    def encoded(self, x: Any) -> tuple[np.ndarray, tuple[str, ...]]:
        """Rows as numbers, with what did not fit."""
        if self.schema is None:
            return np.asarray(x, np.float32), ()
        return self.schema.encode(x)

    def decision_function(self, x: Any) -> Float[np.ndarray, "members m"]:
        """Scores of rows, by each classifier.

        Args:
            x: rows with the features of those that it was fitted on, an array or a data frame.
        """
        return self.logits(self.encoded(x)[0])

    def predict_proba(self, x: Any, of: Of = "unlabeled") -> Float[np.ndarray, "m 2"]:
        """P(negative) and P(positive) of rows that are not labeled, or with "population" of any."""
        p = self.probability(self.score(self.decision_function(x)), of)
        return np.stack([1 - p, p], axis=1)

    def predict(self, x: Any) -> np.ndarray:
        """1 where the score reaches the threshold, else 0 (m,)."""
        return (self.score(self.decision_function(x)) >= self.threshold).astype(np.int8)

    def rank(self, x: Any, identifiers: pl.DataFrame | None = None) -> Scored:
        """Score rows and put the highest first: see :func:`ranked`."""
        encoded, notes = self.encoded(x)
        score = self.score(self.logits(encoded))
        return Scored(ranked(score, self.probability(score), self.threshold, identifiers), notes)


def ranked(
    score: Float[np.ndarray, " n"],
    probability: Float[np.ndarray, " n"],
    threshold: float,
    identifiers: pl.DataFrame | None = None,
    labeled: np.ndarray | None = None,
) -> pl.DataFrame:
    """A frame of scores, the highest first.

    Returns:
        ``row`` (1 is the first below the header), the identifiers, ``label`` where it is known, ``score``,
        ``probability`` that an unlabeled row with these features is positive, ``rank``, and ``decision``, 1 where the
        score reaches the threshold.

    >>> ranked(np.array([0.0, 2.0]), np.array([0.1, 0.9]), 1.0).rows()
    [(2, 2.0, 0.9, 1, 1), (1, 0.0, 0.1, 2, 0)]
    """
    order = np.argsort(-score, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(1, len(order) + 1)
    columns: list[pl.Series] = [pl.Series("row", np.arange(1, len(score) + 1))]
    own = {"row", "label", "score", "probability", "rank", "decision"}
    for one in [] if identifiers is None else identifiers.get_columns():
        columns.append(one.alias(f"{one.name}_" if one.name in own else one.name))
    if labeled is not None:
        columns.append(pl.Series("label", labeled.astype(np.int8)))
    columns += [
        pl.Series("score", score.astype(float)),
        pl.Series("probability", probability.astype(float)),
        pl.Series("rank", place),
        pl.Series("decision", (score >= threshold).astype(np.int8)),
    ]
    return pl.DataFrame(columns)[order]


@dataclasses.dataclass(frozen=True, eq=False)
class AutoScorer(Scorer):
    """The mean of the classifiers of all folds, and the calibration of their scores."""

    members: tuple[prior.Member, ...]
    calibration: prior.Calibration

    kind: ClassVar[str] = "skops"

    def logits(self, x: np.ndarray) -> Float[np.ndarray, "members m"]:
        """Z of rows, by the classifier of each fold."""
        return np.stack([member(x) for member in self.members])

    def score(self, logits: Float[np.ndarray, "members m"]) -> Float[np.ndarray, " m"]:
        """Their mean."""
        return logits.mean(axis=0)

    def probability(self, score: Float[np.ndarray, " m"], of: Of = "unlabeled") -> Float[np.ndarray, " m"]:
        """By isotonic regression and Bayes' rule."""
        return of_calibrated(self.calibration(score), self.share, of)


def of_calibrated(z: Float[np.ndarray, " m"], share: Share, of: Of = "unlabeled") -> Float[np.ndarray, " m"]:
    """Probabilities from calibrated log density ratios."""
    return prior.probability(z, share.value, of=of, n_labeled=share.n_labeled, n_unlabeled=share.n_unlabeled)


@dataclasses.dataclass(frozen=True, eq=False)
class NetworkScorer(Scorer):
    """Networks, one a seed: all that a forward pass needs.

    Attributes:
        model: settings of the network. kept: ``params``, ``state``, ``mean`` and ``sd`` of each seed. offset: what the
            method's decision takes off the logits. dense: what makes columns of categories and gaps, or None.
    """

    model: Any
    kept: tuple[dict[str, Any], ...]
    offset: float
    dense: Dense | None = None

    kind: ClassVar[str] = "safetensors"

    def logits(self, x: np.ndarray) -> Float[np.ndarray, "members m"]:
        """Logits of rows, one a seed: above 0 where p > 1/2."""
        from jaxpu.train.predict import logits_of

        x = np.asarray(x, np.float32) if self.dense is None else self.dense(x)
        if np.isnan(x).any():
            raise ValueError("a row has a gap, and the networks were trained on rows without; fill it, or drop the row")
        found = [
            logits_of(self.model, {"params": k["params"], "state": k["state"]}, k["mean"], k["sd"], x)
            for k in self.kept
        ]
        return np.stack(found) - np.float32(self.offset)

    def score(self, logits: Float[np.ndarray, "members m"]) -> Float[np.ndarray, " m"]:
        """The log odds of their mean probability."""
        return logit(np.clip(expit(logits.astype(float)).mean(axis=0), 1e-12, 1 - 1e-12))

    def probability(self, score: Float[np.ndarray, " m"], of: Of = "unlabeled") -> Float[np.ndarray, " m"]:
        """Of the mean of the networks, which learn it of the unlabeled rows."""
        p = expit(score)
        if of == "unlabeled":
            return p
        n_p, n_u = self.share.n_labeled, self.share.n_unlabeled
        ratio = p / max(self.share.value, 1e-12)
        return of_calibrated(np.log(np.maximum(ratio, 1e-300)), self.share, of) if n_p and n_u else p
