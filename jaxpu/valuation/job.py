"""The kind ``guided`` for :mod:`jaxpu.runs`: teachers, and students that need what their teachers keep.

cells x seeds -> runs; a student's run needs its teacher's of the same seed -> jobs of teachers, then of students
"""

import dataclasses
import functools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax import numpy as jnp

from jaxpu import config, data, models, train
from jaxpu.config import Cell, SelectionConfig
from jaxpu.config.guide import FILTERS
from jaxpu.config.guided import TEACHER, GuidedCell, GuidedExperiment
from jaxpu.data import Dataset, Prepared, Rows, splitting
from jaxpu.methods import METHODS, objective
from jaxpu.runs.job import Functions, Job, Run, identity
from jaxpu.selection import RuleChoice
from jaxpu.train import job as pu
from jaxpu.valuation.guided import WHOLE, Choices, Guide, Taught, update
from jaxpu.valuation.measure import PROBE, measure
from jaxpu.valuation.record import TWO_CLASSES, record, two_classes

SURROGATES = {"mse": "savage", "mae": "sigmoid"} | {n: n for n in ("mae_mse", "bonus", "encouraging", "focal")}
"""The margin losses behind the classification losses."""

TEACHERS, STUDENTS = range(2)
"""What the random numbers of a seed are for."""


class Static(NamedTuple):
    """What a program is compiled for: the training, how it is guided, whether its teacher is measured, labels wrong."""

    train: train.Config
    choices: Choices
    measured: bool
    mislabeled: bool


class Inputs(NamedTuple):
    """What is a run's own: rows and standardisation, numbers, whether it is a teacher, and who guides it."""

    rows: Rows
    hyper: objective.Hyper
    role: Any
    guide: Guide
    wrong: "Wrong"


class Wrong(NamedTuple):
    """Training rows whose label is replaced, and by what."""

    rows: np.ndarray
    labels: np.ndarray


def runs(experiment: GuidedExperiment) -> list[Run]:
    """Every teacher and every student for every seed.

    Raises:
        ConfigError: a dataset or a setting that does not exist.

    >>> made = runs(GuidedExperiment(teachers=("plain",), sees=("train",), filters=("low",), seeds=1))
    >>> [(run.columns["method"], len(run.needs)) for run in made]
    [('none', 0), ('teacher', 0), ('low', 1)]
    """
    teachers: dict[Hashable, str] = {}
    contents: dict[int, Any] = {}
    found = []
    for cell, seed in config.runs_of(config.expand(experiment)):
        if id(cell) not in contents:
            contents[id(cell)] = _told(cell)
        told, content = contents[id(cell)]
        lesson = (seed, cell.teacher, cell.sees, _place(cell))
        needs = (teachers[lesson],) if cell.method_name in FILTERS else ()
        columns = {"dataset": cell.dataset, "method": cell.method_name, **cell.point, "seed": seed}
        run = Run(identity("guided", [told, needs], content, seed), columns, seed, cell, needs)
        if cell.method_name == TEACHER:
            teachers[lesson] = run.run_id
        found.append(run)
    return found


def _place(cell: GuidedCell) -> str:
    """The part of the grid point that makes another teacher, whoever teaches."""
    own = ("teacher", "sees", "student", "guide")
    return config.digest({path: value for path, value in cell.point.items() if path.split(".")[0] not in own})


def _told(cell: GuidedCell) -> tuple[Any, str]:
    """What makes runs of a cell other runs, and the content of its data."""
    sampling, *contents = data.identity(cell.data, _source(cell))
    return dataclasses.replace(cell, data=sampling).identity, "".join(contents)


@functools.lru_cache(maxsize=8)
def _as_classes(source: Dataset, standardize: bool | None, two_classes: bool) -> Dataset:
    classes = source.truth if source.classes is None or two_classes else source.classes
    scaled = source.standardize if standardize is None else standardize
    return dataclasses.replace(source, classes=classes, standardize=scaled)


def _source(cell: GuidedCell) -> Dataset:
    """The dataset with a class a row, two of them where it is no more."""
    return _as_classes(data.load(cell.data), cell.standardize, cell.two_classes)


def jobs(experiment: GuidedExperiment, runs: Sequence[Run]) -> list[Job]:
    """The same runs, grouped by what is static, and teachers apart: they keep their networks."""
    groups: dict[tuple[Static, bool, str, bool], list[Run]] = {}
    statics: dict[int, tuple[Static, bool, str]] = {}
    for run in runs:
        cell: GuidedCell = run.cell
        if id(cell) not in statics:
            source = _source(cell)
            static = static_part(cell, source, data.prepare(cell.data, source, run.seed))
            statics[id(cell)] = static, cell.sees == "all" and cell.method_name == TEACHER, source.content
        groups.setdefault((*statics[id(cell)], cell.method_name not in FILTERS), []).append(run)
    return [_job(static, mine, keep) for (static, *_, keep), mine in groups.items()]


def _job(static: Static, runs: Sequence[Run], keep: bool) -> Job:
    source = _source(runs[0].cell)
    shared = data.arrays(runs[0].cell.data, source).shared
    given = functools.partial(inputs, source=source, static=static)
    return Job(
        static, shared, tuple(runs), given, static.train.epochs, FUNCTIONS, keep, every=static.train.evaluate_every
    )


def static_part(cell: GuidedCell, source: Dataset, prepared: Prepared) -> Static:
    """The static half of a cell: that of a supervised method of the kind ``multiclass``, whose loop it shares.

    Raises:
        ConfigError: for convolutions over rows that are no images.
    """
    static = pu.static_part(_supervised(cell), source, prepared)
    if static.outputs == 2:
        static = dataclasses.replace(static, probes=(*static.probes, (TWO_CLASSES, two_classes)))
    choices = Choices(cell.guide.draws, cell.guide.refresh)
    return Static(static, choices, cell.method_name in FILTERS, cell.mislabel > 0)


def _supervised(cell: GuidedCell) -> Cell:
    surrogate = {"surrogate": SURROGATES[cell.loss]} if cell.loss != "cross_entropy" else {}
    preset = "pn_mixup" if cell.mixing == "plain" else f"pn_{cell.mixing}"  # a plain network has λ = 1
    method = dataclasses.replace(METHODS[preset], options=surrogate)
    last = RuleChoice("last")
    return Cell(
        "pn", method, dict(cell.point), cell.data, cell.model, cell.trained,
        SelectionConfig(rules=(last,), default=last), cell.probes, "multiclass", cell.seeds, cell.first_seed,
    )  # fmt: skip


def inputs(run: Run, needed: Mapping[str, Any], *, source: Dataset, static: Static) -> Inputs:
    """A run's own arrays; a student's teacher is what that one has kept."""
    cell: GuidedCell = run.cell
    prepared = data.prepare(cell.data, source, run.seed)
    teacher = cell.method_name == TEACHER
    rows = prepared.rows
    if teacher and cell.sees == "all":
        every = np.concatenate([rows.train, rows.test])
        rows = rows._replace(train=every, n_train=np.int32(len(every)), n_labeled=np.int32(len(every)))
    hyper = pu.traced_part(_supervised(cell), prepared)
    judge = [models.Variables(**needed[run_id]) for run_id in run.needs]
    guide = Guide(
        judge[0] if judge else _nobody(static.train, source.x.shape[1:]),
        np.int32(FILTERS.index(cell.method_name) if run.needs else WHOLE),
        np.float32(cell.guide.mean == "batch"),
        np.float32(cell.guide.warmup),
        np.float32(cell.guide.until),
    )
    wrong = mislabeled(source, prepared.rows.train, cell.mislabel, run.seed)
    role = np.int32(TEACHERS if teacher else STUDENTS)
    return Inputs(rows, hyper, role, guide, wrong)


def mislabeled(source: Dataset, train: np.ndarray, share: float, seed: int) -> Wrong:
    """Some of the training rows, ⌊share · n⌋, each with another class than its own.

    >>> wrong = mislabeled(_as_classes(data.load("gaussians", n=60), None, True), np.arange(40), 0.1, 0)
    >>> len(wrong.rows), sorted(set(wrong.labels.tolist()))
    (4, [0, 1])
    """
    draw = splitting.generator(seed, "mislabel")
    rows = np.sort(draw.choice(train, splitting.floor_of(share, len(train)), replace=False)).astype(np.int32)
    assert source.classes is not None  # _as_classes has given them
    classes = int(source.classes.max(initial=1)) + 1
    shift = draw.integers(1, classes, size=len(rows))
    return Wrong(rows, ((source.classes[rows] + shift) % classes).astype(np.int32))


@functools.lru_cache(maxsize=8)
def _nobody(static: train.Config, shape: tuple[int, ...]) -> models.Variables:
    """A network of zeros: its judgement is not asked for."""
    model = models.build(static.model, shape, static.outputs)
    shapes = jax.eval_shape(lambda: model.init(jax.random.key(0), shape))
    return models.Variables(*jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes))


def _data(shared: dict[str, Array], own: Inputs) -> train.Data:
    y = shared["y"].at[own.wrong.rows].set(own.wrong.labels) if len(own.wrong.rows) else shared["y"]
    return train.Data(shared["x"], y, *map(jnp.asarray, own.rows), levels=shared.get("levels"))


def _key(key: Array, own: Inputs) -> Array:
    """Teachers and students of a seed start, shuffle and mix apart."""
    return jax.random.fold_in(key, own.role)


def _init(static: Static, key: Array, shared: dict[str, Array], own: Inputs) -> train.State:
    state = train.init(_key(key, own), _data(shared, own), static.train, own.hyper)
    return (
        state._replace(memory=Taught(own.guide.teacher, jnp.zeros((), jnp.int32))) if static.choices.refresh else state
    )


def _advance(
    static: Static, key: Array, state: train.State, shared: dict[str, Array], own: Inputs, epochs: int
) -> tuple[train.State, train.History]:
    step = functools.partial(update, guide=own.guide, choices=static.choices)
    arrays, asked = _data(shared, own), static.train
    if static.measured:
        wrong = jnp.zeros(len(arrays.y)).at[own.wrong.rows].set(1)[arrays.train] if static.mislabeled else None
        probe = functools.partial(measure, teacher=own.guide.teacher, wrong=wrong)
        asked = dataclasses.replace(asked, probes=(*asked.probes, (PROBE, probe)))
    return train.advance(_key(key, own), state, arrays, asked, own.hyper, epochs, step)


def _finished(static: Static, state: train.State) -> Array:
    return train.finished(state, static.train)


def _kept(static: Static, state: train.State) -> dict[str, Any]:
    return state.variables._asdict()


def _memory(static: Static, shared: dict[str, Array]) -> int:
    """Bytes of one run and its teacher."""
    return 2 * pu.FUNCTIONS.memory(static.train, shared) if pu.FUNCTIONS.memory else 0


FUNCTIONS = Functions(_init, _advance, _finished, record, _kept, _memory)
"""What the engine compiles and calls."""
