"""Run an experiment on guided training: teachers and students of all seeds in one program, each student diagnosed."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars as pl
from jax import Array, lax
from jax import numpy as jnp

from jaxpu import collapse, models, valuation
from jaxpu.config import END, ModelConfig, digest, expand
from jaxpu.config.guided import GuidedExperiment
from jaxpu.data import sampling
from jaxpu.study.ensembles import METRIC_NAMES
from jaxpu.study.parts import FORMAT, PATH, Outcome, Part, run_parts
from jaxpu.study.programs import Program, each_seed, measure
from jaxpu.sweep.rows import dataset

START, TEACHERS, STUDENTS = range(3)
"""Purposes of a seed's keys."""

TOGETHER = 8
"""Most seeds in one part of an experiment: those that an interruption may cost."""

POINT = ("epoch", "accuracy", "roc_auc", "log_loss", "kept")
"""What is recorded after every epoch."""


def run_guided(
    experiment: GuidedExperiment, folder: Path, *, fresh: bool = False, watch: Callable[[str], None] = print
) -> Outcome:
    """Run an experiment, or what is left of it, and record it in a results folder.

    Args:
        experiment: what to run. folder: where. fresh: forget what the folder holds and start again.
        watch: called with a line after some seeds.

    Returns:
        The outcome, which is on disk then as config.yaml, runs.parquet, paths.csv and provenance.json.

    Raises:
        ResultsError: the folder is being written by another run, or holds parts of another experiment.
        ConfigError: an unknown dataset.
    """
    count = -(-experiment.seeds // TOGETHER)
    seeds = range(experiment.first_seed, experiment.first_seed + experiment.seeds)
    train = _program(dataclasses.replace(experiment, description="", seeds=1, first_seed=0, claims=()))
    parts = [
        _part(experiment, train, [int(seed) for seed in some], -(-experiment.seeds // count))
        for some in np.array_split(seeds, count)
    ]
    wanted = [run_id for part in parts for run_id in part.run_ids]
    return run_parts(experiment, folder, parts, wanted, precision="float32", fresh=fresh, watch=watch)


_PROGRAMS: dict[str, Program] = {}


def _program(experiment: GuidedExperiment) -> Program:
    """Program: ((seeds, train rows, test rows, means, deviations), x, y) -> test logits and shares kept."""
    return _PROGRAMS.setdefault(digest(experiment), Program(each_seed(functools.partial(_one_seed, experiment))))


def _part(experiment: GuidedExperiment, train: Program, seeds: Sequence[int], size: int) -> Part:
    ids = _run_ids(experiment, seeds)
    name = f"{len(experiment.teaching())} teachers and their students, seeds {seeds[0]} to {seeds[-1]}"

    def compute() -> pl.DataFrame:
        # parts are equal in size, so that they are one program
        logits, kept, labels = _train(experiment, train, [*seeds, *[seeds[-1]] * (size - len(seeds))])
        return _frame(experiment, seeds, logits, kept, labels).with_columns(run_id=pl.Series(ids))

    return Part(name, tuple(ids), compute)


def _run_ids(experiment: GuidedExperiment, seeds: Sequence[int]) -> list[str]:
    return [digest(FORMAT, *cell.identity, seed) for seed in seeds for cell in expand(experiment)]


def _train(
    experiment: GuidedExperiment, program: Program, seeds: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Test logits (seeds, students, epochs, rows), shares kept (seeds, students, epochs), test labels (seeds, rows)."""
    source = dataset(experiment.dataset, ())
    splits = [
        sampling.split(source.y, seed, test=experiment.test, validation=(), test_rows=source.test_rows)
        for seed in seeds
    ]
    scale = [_scale(experiment, source.x, split.train) for split in splits]
    mean, sd = (np.stack(part).astype(np.float32) for part in zip(*scale, strict=True))
    train_rows, test_rows = (np.stack(rows) for rows in zip(*((s.train, s.test) for s in splits), strict=True))
    rows = (np.array(seeds), train_rows, test_rows, mean, sd)
    logits, kept = program(rows, source.x.astype(np.float32), source.y.astype(np.int32))
    return logits, kept, source.y[test_rows]


def _scale(experiment: GuidedExperiment, x: np.ndarray, train: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is subtracted from each feature, and what it is divided by."""
    if experiment.scaling == "standard":
        return sampling.standardization(x, train)
    return np.zeros(x.shape[1:]), np.full(x.shape[1:], np.abs(x[train]).max())


def _one_seed(experiment: GuidedExperiment, row: tuple[Array, ...], x: Array, y: Array) -> tuple[Array, Array]:
    """Test logits (students, epochs, rows) and shares kept of the plain student and of those of each teacher."""
    seed, train, test, mean, sd = row
    key = jax.random.fold_in(jax.random.key(0), seed)
    x = (x - mean[None]) / sd[None]
    model = models.build(ModelConfig(hidden=experiment.hidden, dropout=()), x.shape[1:], outputs=2)
    apply = lambda params, x: model.logits(models.Variables(params, {}), x)  # noqa: E731
    keys = [jax.random.fold_in(jax.random.fold_in(key, START), i) for i in range(2)]
    first, other = (models.start(model, key, x.shape[1:]).params for key in keys)
    settings: dict[str, Any] = {"epochs": experiment.epochs, "batch_size": experiment.batch_size, "lr": experiment.lr}
    teach = functools.partial(valuation.fit, jax.random.fold_in(key, TEACHERS), other, apply, **settings)
    seen = {"all": jnp.concatenate([train, test]), "train": train}
    mixing = jnp.array([float(teacher == "mixup") for teacher in experiment.teachers])
    taught = [lax.map(lambda m, rows=seen[sees]: teach(x[rows], y[rows], mixing=m), mixing) for sees in experiment.sees]
    # the plain student's teacher is not asked: its start will do
    teachers = jax.tree.map(lambda one, *leaves: jnp.stack([one, *_interleaved(leaves)]), first, *taught)

    def student(which: Array, teacher: Array, mixing: Array) -> tuple[Array, Array]:
        judge = jax.tree.map(lambda leaf: leaf[teacher], teachers)
        data: dict[str, Any] = {"x": x[train], "y": y[train], "watched": x[test]}
        learn = functools.partial(valuation.guided, jax.random.fold_in(key, STUDENTS), first, judge, apply)
        learnt = learn(**data, which=which, mixing=mixing, **settings)
        return learnt.logits[..., 1] - learnt.logits[..., 0], learnt.kept

    filters = np.array([valuation.FILTERS.index(name) for name in experiment.filters])
    count = len(experiment.teaching())
    which = np.append(0, np.tile(filters, count))
    teacher = np.append(0, np.repeat(np.arange(1, count + 1), filters.size))
    # one after the other: programs are compiled once for all of them, and nobody waits for a batch
    return lax.map(lambda one: student(*one), (which, teacher, (teacher > 0).astype(np.float32)))


def _interleaved(by_sees: Sequence[Array]) -> list[Array]:
    """Teachers in the order of ``teaching``, from one array of them for each of ``sees``."""
    return [leaf for together in zip(*by_sees, strict=True) for leaf in together]


def _frame(
    experiment: GuidedExperiment, seeds: Sequence[int], logits: np.ndarray, kept: np.ndarray, labels: np.ndarray
) -> pl.DataFrame:
    """One row a run, judged at its last epoch, with its course. There may be more logits than seeds."""
    count, students, epochs, rows = logits.shape
    y = np.broadcast_to(labels[:, None, None], logits.shape).reshape(-1, rows)
    measured = measure(logits.reshape(-1, rows), y, np.ones_like(y))
    columns = {name: np.asarray(values, float).reshape(count, students, epochs) for name, values in measured.items()}
    columns["kept"] = np.asarray(kept, float)
    columns["accuracy"] = ((logits > 0) == labels[:, None, None]).mean(axis=-1)
    judged = []
    for s, seed in enumerate(seeds):
        for k, cell in enumerate(expand(experiment)):
            course = {name: values[s, k] for name, values in columns.items()}
            head = {"dataset": cell.dataset, "method": cell.method_name, **cell.point, "seed": seed}
            judged.append(head | {"selection": END} | _end(course) | {PATH: _path(course)})
    return pl.DataFrame(judged, infer_schema_length=None)


def _path(course: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    shown = {"epoch": np.arange(1, course["kept"].size + 1)} | {_plain(name): values for name, values in course.items()}
    return [
        dict(zip(POINT, point, strict=True)) for point in zip(*(shown[name].tolist() for name in POINT), strict=True)
    ]


def _end(course: dict[str, np.ndarray]) -> dict[str, Any]:
    """The last epoch of a run and its diagnosis: a filter starves a student if it keeps next to nothing."""
    found = collapse.diagnose_run(course, -1, driver=course["kept"], driver_reference=1.0)
    return {_plain(name): float(values[-1]) for name, values in course.items()} | {"verdict": str(found.verdict)}


def _plain(name: str) -> str:
    return METRIC_NAMES.get(name, name.removeprefix("oracle_"))
