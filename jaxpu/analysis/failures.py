"""What failed, training or selection? Every run judged twice: by its last epoch, and by the epoch each rule keeps."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from jaxpu import collapse
from jaxpu.analysis import rates
from jaxpu.analysis.selection import columns_of, evaluated, select, trajectory
from jaxpu.config import Experiment, point_label


class Row(NamedTuple):
    """The verdict on all runs of a method, judged in one way: by the last epoch, or by a selection rule."""

    name: str
    judged: rates.MethodVerdict


class MethodAnalysis(NamedTuple):
    """One method at one grid point.

    Attributes:
        label: method and cell. rows: the last epoch first, then every rule.
        onset: median first epoch of collapse of the runs that are collapsed at their end and were healthy before; NaN
            without such a run.
        failures: (seed, rule, explanation) of every failing selection.
        sentence: what to make of it.
    """

    label: str
    rows: tuple[Row, ...]
    onset: float
    failures: tuple[tuple[int, str, str], ...]
    sentence: str


def analyze(runs: pl.DataFrame, experiment: Experiment) -> list[MethodAnalysis]:
    """Judge every method and cell of recorded runs.

    Args:
        runs: a row a run and epoch, as in ``runs.parquet``. experiment: whose rules apply.

    Returns:
        One entry a dataset, method and cell, in the order of the frame.
    """
    groups = runs.partition_by("dataset", "method", *experiment.grid_columns, maintain_order=True)
    several = runs["dataset"].n_unique() > 1
    return [_method(group, experiment, several) for group in groups]


def _method(group: pl.DataFrame, experiment: Experiment, several: bool) -> MethodAnalysis:
    frame, diagnoses = select(group, experiment)
    selected = list(zip(frame["seed"], frame["selection"], diagnoses, strict=True))
    last, flags, onsets = [], [], []
    for run in group.partition_by("run_id", maintain_order=True):
        recorded = columns_of(run)
        columns, epochs = trajectory(recorded), evaluated(recorded) + 1
        last.append(collapse.diagnose_run(columns, -1, epochs=epochs))
        flags.append(np.asarray(collapse.fallen_epochs(columns)))
        if flags[-1][-1] and (place := collapse.onset_epoch(flags[-1])) is not None:
            onsets.append(float(epochs[place - 1]))
    onset = float(np.median(onsets)) if onsets else float("nan")
    rules = dict.fromkeys(rule for _, rule, _ in selected)
    rows = [Row("last epoch (training alone)", rates.judge_method(last))]
    rows += [Row(rule, rates.judge_method([d for _, r, d in selected if r == rule])) for rule in rules]
    first = group.row(0, named=True)
    point = point_label({column: first[column] for column in experiment.grid_columns})
    label = " ".join(word for word in (first["dataset"] if several else "", first["method"], point) if word)
    ever = sum(bool(seen.any()) for seen in flags)
    return MethodAnalysis(
        label,
        tuple(rows),
        onset,
        tuple((seed, rule, d.explanation) for seed, rule, d in selected if d.failing),
        _sentence(rows, ever, onset),
    )


def _sentence(rows: Sequence[Row], ever: int, onset: float) -> str:
    training, *selections = (row.judged for row in rows)
    n = training.failing.n
    if training.failing.occurred:
        when = "" if np.isnan(onset) else f", collapsed, after health, first at epoch {onset:g} (median)"
        return f"training fails: {training.explanation.rstrip('.')}{when}."
    missed = max((judged.failing.occurred for judged in selections), default=0)
    early = f" {ever} of {n} were healthy and then collapsed at some earlier epoch." if ever else ""
    if missed:
        return f"training does not fail (0 of {n} runs at their last epoch), selection does, in up to {missed}.{early}"
    return f"neither training nor selection fails in {n} runs.{early}"
