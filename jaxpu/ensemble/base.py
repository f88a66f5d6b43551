"""Ratings that are scores of other runs: base classifiers are trained by their own kind, in the same experiment."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from jaxpu import collapse, config, data
from jaxpu.config import Experiment
from jaxpu.config.base import END
from jaxpu.config.ensemble import SCORES, EnsembleExperiment, RatingsConfig
from jaxpu.ensemble.ratings import Problem, of_scores
from jaxpu.runs.job import Job, Run
from jaxpu.train import job as pu
from jaxpu.train import predict


def base_runs(experiment: EnsembleExperiment) -> list[Run]:
    """The runs of ``base``, by the kind ``pu``; none without it."""
    return pu.runs(_base(experiment)) if experiment.base else []


def base_jobs(experiment: EnsembleExperiment, runs: Sequence[Run]) -> list[Job]:
    """Their jobs, which keep the network of the default rule's epoch, and record one row a run as ensembles do."""
    jobs = pu.jobs(_base(experiment), runs) if experiment.base else []
    return [dataclasses.replace(job, keep=True, functions=job.functions._replace(record=record_last)) for job in jobs]


def _base(experiment: EnsembleExperiment) -> Experiment:
    assert experiment.base is not None
    selection = dataclasses.replace(experiment.base.selection, keep_best=True)
    return dataclasses.replace(experiment.base, selection=selection)


def record_last(run: Run, history: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """Metrics of the test rows after the last epoch of a run of the kind ``pu``, and its verdict."""
    test = {name.removeprefix("test_"): values for name, values in history.items() if name.startswith("test_")}
    last = {name: float(values[-1]) for name, values in test.items()}
    row = {name: last.get(f"oracle_{name}", last.get(name)) for name in SCORES}
    return pl.DataFrame([{"selection": END, "verdict": str(collapse.epoch_verdicts(last)), **row}])


def rated(experiment: EnsembleExperiment, ratings: RatingsConfig, run: Run, needed: Mapping[str, Any]) -> Problem:
    """What base classifiers say of the rows of their dataset; ``needed`` is what they have kept.

    Raises:
        ConfigError: their data has no true labels.
    """
    assert experiment.base is not None
    scores = [_scores(base, needed[base.run_id]) for base in _by_id(experiment, run.needs)]
    return of_scores(ratings, run.seed, experiment.precision, scores, data.load(experiment.base.data).truth)


def _by_id(experiment: EnsembleExperiment, wanted: Sequence[str]) -> list[Run]:
    key = config.digest(experiment.base)
    if key not in _RUNS:
        _RUNS[key] = {run.run_id: run for run in base_runs(experiment)}
    return [_RUNS[key][run_id] for run_id in wanted]


_RUNS: dict[str, dict[str, Run]] = {}
_SCORES: dict[str, np.ndarray] = {}
"""By identity, which says what they are: all ensembles of an experiment combine the same scores."""


def _scores(run: Run, kept: Any) -> np.ndarray:
    """Logits of all rows of its dataset by a run of the kind ``pu``."""
    if run.run_id not in _SCORES:
        dataset = data.load(run.cell.data)
        _SCORES[run.run_id] = predict.logits(run.cell, dataset, run.seed, kept, dataset.features()).astype(float)
    return _SCORES[run.run_id]
