"""Ratings that are scores of other runs: base classifiers are trained by their own kind, in the same experiment."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from jaxpu import collapse, data
from jaxpu.config.base import END
from jaxpu.config.ensemble import EnsembleExperiment, RatingsConfig
from jaxpu.ensemble.program import METRICS
from jaxpu.ensemble.ratings import Problem, of_scores
from jaxpu.runs.job import Job, Run


def base_runs(experiment: EnsembleExperiment) -> list[Run]:
    """The runs of ``base``, by the kind ``pu``; none without it."""
    if experiment.base is None:
        return []
    from jaxpu.train import job as pu

    return list(pu.runs(experiment.base))


def base_jobs(experiment: EnsembleExperiment, runs: Sequence[Run]) -> list[Job]:
    """Their jobs, which keep parameters, and record one row a run as ensembles do."""
    if experiment.base is None:
        return []
    from jaxpu.train import job as pu

    jobs = pu.jobs(experiment.base, runs)
    return [dataclasses.replace(job, keep=True, functions=job.functions._replace(record=record_last)) for job in jobs]


def record_last(run: Run, history: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """Metrics of the test rows after the last epoch of a run of the kind ``pu``, and its verdict."""
    last = {
        name.removeprefix("test_"): float(values[-1]) for name, values in history.items() if name.startswith("test_")
    }
    row = {name: last[theirs] for theirs, name in METRICS.items() if theirs in last}
    verdict = str(collapse.epoch_verdicts(last))
    return pl.DataFrame([{"selection": END, "verdict": verdict, **row}])


def base_labels(experiment: EnsembleExperiment) -> np.ndarray:
    """True labels of the rows that base classifiers rate."""
    assert experiment.base is not None
    return data.load(experiment.base.data).truth


def rated(experiment: EnsembleExperiment, ratings: RatingsConfig, run: Run, needed: Mapping[str, Any]) -> Problem:
    """What base classifiers say of the rows of their dataset; ``needed`` is what they have kept."""
    from jaxpu.train import job as pu

    by_id = {base.run_id: base for base in base_runs(experiment)}
    scores = [pu.scores(by_id[run_id], needed[run_id]) for run_id in run.needs]
    return of_scores(ratings, run.seed, experiment.precision, scores, base_labels(experiment))
