"""Networks trained on one dataset, one a seed: their scores, what was recorded of them, and what became of them."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float

from jaxpu import analysis, config
from jaxpu.config import Experiment
from jaxpu.data import Dataset
from jaxpu.data.own import features_like
from jaxpu.methods import decision_offset


@dataclasses.dataclass(frozen=True)
class Fit:
    """What :func:`jaxpu.fit` gives.

    Attributes:
        runs: what was recorded, a row an epoch and seed. experiment: all settings. provenance: of the numbers.
        dataset: the rows. kept: the parameters of each seed's chosen epoch, and the state of its network.
    """

    runs: pl.DataFrame
    experiment: Experiment
    provenance: dict[str, Any]
    dataset: Dataset = dataclasses.field(repr=False)
    kept: Mapping[int, Any] = dataclasses.field(repr=False)

    @functools.cached_property
    def scores(self) -> Float[np.ndarray, "seeds n"]:
        """Logits of the rows, one a seed: above 0 where p > 1/2."""
        return self._logits(self.dataset.x)

    def decision_function(self, x: Any) -> Float[np.ndarray, "seeds m"]:
        """Logits of other rows, one a seed.

        Args:
            x: rows with the features of those that were trained on, an array or a data frame.
        """
        return self._logits(features_like(self.dataset, x))

    def predict_proba(self, x: Any) -> Float[np.ndarray, "m 2"]:
        """P(negative) and P(positive) of rows: the mean over the seeds."""
        p = (0.5 * (1 + np.tanh(self.decision_function(x) / 2))).mean(axis=0)
        return np.stack([1 - p, p], axis=1)

    def _logits(self, x: np.ndarray) -> np.ndarray:
        from jaxpu.train import predict

        [cell] = config.expand(self.experiment)
        found = [predict.logits(cell, self.dataset, seed, kept, x) for seed, kept in self.kept.items()]
        return np.stack(found) - np.float32(decision_offset(cell.method))

    @functools.cached_property
    def tables(self) -> analysis.Tables:
        """The tables of :func:`jaxpu.analysis.tables`: what was selected, its summary and its verdicts."""
        return analysis.tables(self.runs, self.experiment)

    @property
    def verdicts(self) -> pl.DataFrame:
        """What became of the runs, a row a selection rule: verdict, failing runs of all, and a sentence."""
        return self.tables.verdicts

    def summary(self) -> pl.DataFrame:
        """Means, medians and intervals over the seeds, a row a metric and selection rule."""
        return self.tables.summary
