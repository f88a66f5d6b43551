"""Run an experiment on guided training: teachers and students of all seeds in one program, each student diagnosed."""

import datetime
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars as pl
from jax import Array, lax
from jax import numpy as jnp

from jaxpu import collapse, models, results, valuation
from jaxpu.config import ModelConfig, dump
from jaxpu.config.ensemble import SELECTION
from jaxpu.config.guided import GuidedExperiment, label
from jaxpu.data import sampling
from jaxpu.study.programs import measure
from jaxpu.study.run import METRIC_NAMES, Outcome, record
from jaxpu.sweep.prepare import dataset

START, TEACHERS, STUDENTS = range(3)
"""Purposes of a seed's keys."""


def run_guided(experiment: GuidedExperiment, folder: Path, *, watch: Callable[[str], None] = print) -> Outcome:
    """Run an experiment and record it in a results folder.

    Args:
        experiment: what to run. folder: where. watch: called with a line before the long part begins.

    Returns:
        The outcome, which is on disk then as config.yaml, runs.parquet, paths.csv and provenance.json.

    Raises:
        ResultsError: the folder is being written by another run. ConfigError: an unknown dataset.
    """
    began, started = time.perf_counter(), datetime.datetime.now(datetime.UTC)
    with results.locked(folder):
        (folder / "provenance.json").unlink(missing_ok=True)  # from here on the folder is unfinished
        results.write_text(folder / "config.yaml", dump(experiment))
        watch(f"{len(experiment.teaching())} teachers and their students for {experiment.seeds} seeds")
        logits, kept, labels = _train(experiment)
        runs, paths = _frames(experiment, logits, kept, labels)
        return record(folder, experiment, runs, paths, began, started, precision="float32")


def _train(experiment: GuidedExperiment) -> tuple[Array, Array, np.ndarray]:
    """Test logits (seeds, students, epochs, rows), shares kept (seeds, students, epochs), test labels (seeds, rows)."""
    source = dataset(experiment.dataset, ())
    splits = [
        sampling.split(source.y, seed, test=experiment.test, validation=(), test_rows=source.test_rows)
        for seed in _seeds(experiment)
    ]
    scale = [_scale(experiment, source.x, split.train) for split in splits]
    mean, sd = (jnp.asarray(np.stack(part), jnp.float32) for part in zip(*scale, strict=True))
    train_rows, test_rows = (
        jnp.asarray(np.stack(rows)) for rows in zip(*((s.train, s.test) for s in splits), strict=True)
    )
    x, y = jnp.asarray(source.x, jnp.float32), jnp.asarray(source.y, jnp.int32)
    one = functools.partial(_one_seed, experiment, x, y)
    logits, kept = jax.jit(functools.partial(lax.map, lambda seed: one(*seed)))(
        (jnp.asarray(_seeds(experiment)), train_rows, test_rows, mean, sd)
    )
    return logits, kept, source.y[np.asarray(test_rows)]


def _scale(experiment: GuidedExperiment, x: np.ndarray, train: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is subtracted from each feature, and what it is divided by."""
    if experiment.scaling == "standard":
        return sampling.standardization(x, train)
    return np.zeros(x.shape[1:]), np.full(x.shape[1:], np.abs(x[train]).max())


def _seeds(experiment: GuidedExperiment) -> list[int]:
    return list(range(experiment.first_seed, experiment.first_seed + experiment.seeds))


def _one_seed(
    experiment: GuidedExperiment, x: Array, y: Array, seed: Array, train: Array, test: Array, mean: Array, sd: Array
) -> tuple[Array, Array]:
    """Test logits (students, epochs, rows) and shares kept of the plain student and of those of each teacher."""
    key = jax.random.fold_in(jax.random.key(0), seed)
    x = (x - mean[None]) / sd[None]
    model = models.build(ModelConfig(hidden=experiment.hidden, dropout=()), x.shape[1:], outputs=2)
    first, other = (model.init(jax.random.fold_in(jax.random.fold_in(key, START), i), jnp.nan) for i in range(2))
    settings: dict[str, Any] = {"epochs": experiment.epochs, "batch_size": experiment.batch_size, "lr": experiment.lr}
    student = functools.partial(valuation.guided, jax.random.fold_in(key, STUDENTS), first, apply=model.apply)
    student = functools.partial(student, x=x[train], y=y[train], watched=x[test], **settings)
    students = [student(first, which=0, mixing=0.0)]
    which = jnp.array([valuation.FILTERS.index(name) for name in experiment.filters])
    for teacher, sees in experiment.teaching():
        rows = jnp.concatenate([train, test]) if sees == "all" else train
        mixing = float(teacher == "mixup")
        teach = jax.random.fold_in(key, TEACHERS)
        params = valuation.fit(teach, other, model.apply, x[rows], y[rows], mixing=mixing, **settings)
        each = [student(params, which=place) for place in which]
        students += each
    logits = jnp.stack([one.logits[..., 1] - one.logits[..., 0] for one in students])
    return logits, jnp.stack([one.kept for one in students])


def _frames(
    experiment: GuidedExperiment, logits: Array, kept: Array, labels: np.ndarray
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One row a run, judged at its last epoch, and the medians over the seeds at every epoch."""
    names = [("none", "")] + [(name, label(*pair)) for pair in experiment.teaching() for name in experiment.filters]
    seeds, students, epochs, rows = logits.shape
    y = jnp.broadcast_to(jnp.asarray(labels)[:, None, None], logits.shape).reshape(-1, rows)
    measured = jax.device_get(jax.jit(measure)(logits.reshape(-1, rows), y, jnp.ones_like(y)))
    columns = {name: np.asarray(values, float).reshape(seeds, students, epochs) for name, values in measured.items()}
    columns["kept"] = np.asarray(kept, float)
    columns["accuracy"] = ((np.asarray(logits) > 0) == labels[:, None, None]).mean(axis=-1)
    judged, paths = [], []
    for s, seed in enumerate(_seeds(experiment)):
        for k, (method, cell) in enumerate(names):
            course = {name: values[s, k] for name, values in columns.items()}
            head = {"dataset": experiment.dataset, "method": method, "cell": cell, "seed": seed}
            judged.append(head | {"selection": SELECTION} | _end(course))
            shown = {_plain(name): course[name] for name in ("accuracy", "oracle_auc", "oracle_log_loss", "kept")}
            paths.append(pl.DataFrame({**head, "epoch": np.arange(1, epochs + 1), **shown}))
    middle = pl.concat(paths).group_by("dataset", "method", "cell", "epoch", maintain_order=True).median()
    return pl.DataFrame(judged), middle.drop("seed")


def _end(course: dict[str, np.ndarray]) -> dict[str, Any]:
    """The last epoch of a run and its diagnosis: a filter starves a student if it keeps next to nothing."""
    found = collapse.diagnose_run(course, -1, driver=course["kept"], driver_reference=1.0)
    return {_plain(name): float(values[-1]) for name, values in course.items()} | {"verdict": str(found.verdict)}


def _plain(name: str) -> str:
    return METRIC_NAMES.get(name, name.removeprefix("oracle_"))
