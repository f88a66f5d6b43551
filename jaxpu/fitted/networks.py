"""What :func:`jaxpu.fit` gives of networks."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float

from jaxpu import analysis, config
from jaxpu.config import Experiment
from jaxpu.data import Dataset
from jaxpu.fitted.fit import Fit
from jaxpu.fitted.scorer import NetworkScorer


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

    @property
    def default_threshold(self) -> float:
        """Where the networks' mean probability is one half."""
        return 0.0

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
