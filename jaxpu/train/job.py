"""The kinds ``pu`` and ``multiclass``: networks trained by methods, as runs and jobs of :mod:`jaxpu.runs`.

cells x seeds ──► runs, by settings and content of the data ──► groups of equal static part: jobs
"""

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxpu import config, data, functions, models, train
from jaxpu.config import Cell, ConfigError, Experiment
from jaxpu.data import Dataset, Prepared, Rows
from jaxpu.methods import asks_for, objective, risk_identity
from jaxpu.runs.job import Functions, Job, Run, epoch_rows, identity
from jaxpu.train import optimizers, probes
from jaxpu.train.evaluation import AT_ONCE


class Inputs(NamedTuple):
    """What is a run's own: row numbers and standardisation, and the numbers of its method."""

    rows: Rows
    hyper: objective.Hyper


def runs(experiment: Experiment, dataset: Dataset | None = None, *, nameless: bool = False) -> list[Run]:
    """All runs of an experiment, seed by seed, so that an interrupted one has whole seeds of every method.

    Args:
        experiment: of kind ``pu`` or ``multiclass``. dataset: to take instead of those that it names.
        nameless: let functions in that cannot be told from others, lambdas say; for results in memory.

    Raises:
        ConfigError: a dataset or a setting that does not exist; a function that cannot be told from others.

    >>> from jaxpu.config import parse
    >>> small = {"data": {"name": "gaussians", "options": {"n": 60}}, "methods": ["vpu", "pudra"], "seeds": 2}
    >>> [(run.columns["method"], run.seed) for run in runs(parse(small))]
    [('vpu', 0), ('pudra', 0), ('vpu', 1), ('pudra', 1)]
    """
    found = []
    settings: dict[int, tuple[Any, str]] = {}
    for cell, seed in config.runs_of(config.expand(experiment)):
        if id(cell) not in settings:
            settings[id(cell)] = _settings(cell, dataset, nameless)
        columns = {"dataset": cell.dataset, "method": cell.method_name, **cell.point, "seed": seed}
        found.append(Run(identity(cell.kind, *settings[id(cell)], seed), columns, seed, cell))
    return found


def _settings(cell: Cell, dataset: Dataset | None, nameless: bool) -> tuple[Any, str]:
    """What makes runs of a cell other runs, and the content of its data."""
    source = dataset or data.load(cell.data)
    sampling, *contents = data.identity(cell.data, source)
    try:
        own = {name: functions.identity(one) for name, one in _functions(cell).items() if one is not None}
        sources = {**risk_identity(cell.method), **own}
    except ValueError as error:
        if not nameless:
            raise ConfigError(f"method {cell.method_name!r}: {error}") from None
        sources = {}
    return (sources, dataclasses.replace(cell, data=sampling).identity), "".join(contents)


def _functions(cell: Cell) -> dict[str, Any]:
    """What of a cell may be code of the user's, besides the method's own."""
    own = {f"probe{place}": probe for place, probe in enumerate(cell.probes)}
    return {"optimizer": cell.training.optimizer, "model": cell.model.module, **own}


def jobs(experiment: Experiment, runs: Sequence[Run], dataset: Dataset | None = None) -> list[Job]:
    """The same runs, grouped by what is static; sizes do not depend on the seed, so one seed of each cell tells them.

    Raises:
        ConfigError: settings that do not fit the data.
    """
    members: dict[Hashable, list[Run]] = {}
    keys: dict[int, Hashable] = {}
    for run in runs:
        if id(run.cell) not in keys:
            keys[id(run.cell)] = _group_of(run, dataset)
        members.setdefault(keys[id(run.cell)], []).append(run)
    return [_job(mine, dataset) for mine in members.values()]


def _group_of(run: Run, dataset: Dataset | None) -> Hashable:
    cell: Cell = run.cell
    source = dataset or data.load(cell.data)
    prepared = data.prepare(cell.data, source, run.seed)
    alone = static_part(cell, source, prepared)
    shared = dataclasses.replace(alone, objective=objective.Objective(()))  # that of a group is of all its methods
    arrays = (source.content, cell.data.task, cell.data.outside)
    return shared, objective.structure_of(cell.method), arrays, len(prepared.rows.val), len(prepared.rows.test)


def _job(runs: Sequence[Run], dataset: Dataset | None) -> Job:
    """Runs of one program; the training rows, and the P and U of validation, of all are as long as the longest."""
    firsts = list({id(run.cell): run for run in runs}.values())
    source = dataset or data.load(firsts[0].cell.data)
    each = [data.prepare(run.cell.data, source, run.seed) for run in firsts]
    together = objective.objective_of([run.cell.method for run in firsts])
    static = static_part(firsts[0].cell, source, each[0], together)
    n_train, n_val_pu = (max(len(getattr(one.rows, name)) for one in each) for name in ("train", "val_pu"))
    arrays = data.arrays(firsts[0].cell.data, source)

    def inputs(run: Run, needed: dict[str, Any]) -> Inputs:
        prepared = data.prepare(run.cell.data, source, run.seed)
        return Inputs(prepared.rows.padded(n_train, n_val_pu), traced_part(run.cell, prepared, together))

    keep = firsts[0].cell.selection.keep_best
    return Job(static, arrays.shared, tuple(runs), inputs, static.epochs, FUNCTIONS, keep, every=static.evaluate_every)


def static_part(
    cell: Cell, dataset: Dataset, prepared: Prepared, together: objective.Objective | None = None
) -> train.Config:
    """The static half of a cell, for the methods of its group (None = its own); :func:`traced_part` is the other one.

    Raises:
        ConfigError: for convolutions over rows that are no images, and what needs true labels where there are none.
    """
    s, t, shared = cell.selection, cell.training, data.arrays(cell.data, dataset)
    outputs = 1 if cell.data.task == "pu" else shared.classes
    _check(cell, shared, outputs)
    try:
        return train.Config(
            model=cell.model,
            epochs=t.epochs,
            batch_size=t.batch_size,
            val_sizes=prepared.val_sizes,
            objective=together or objective.objective_of([cell.method]),
            batching=cell.method.batching,
            lam_per=t.lam_per,
            evaluate_every=t.evaluate_every,
            rules=s.rules,
            patience=s.patience,
            min_delta=s.min_delta,
            stop=s.stop,
            keep_best=s.default if s.keep_best else None,
            outputs=outputs,
            optimizer=optimizers.choice(t),
            truth=shared.truth,
            probes=probes.resolve(cell.probes),
            directional=t.directional_penalty > 0,
        )
    except ValueError as error:
        raise ConfigError(f"selection.rules: {error}") from None


def _check(cell: Cell, shared: data.Arrays, outputs: int) -> None:
    """Whether network, method and probes fit the data."""
    shape = shared.x.shape[1:]
    if cell.model.module is None and cell.model.name not in ("linear", "mlp") and len(shape) not in (2, 3):
        raise ConfigError(
            f"model.name: {cell.model.name!r} wants images, rows of shape (h, w) or (h, w, c); those of "
            f"{cell.dataset} have shape {shape} (digits are images with data.options {{as_images: 1}})"
        )
    if cell.method.mixes == "cutmix" and len(shape) not in (2, 3):
        raise ConfigError(
            f"methods: {cell.method_name!r} cuts boxes out of images, and rows of {cell.dataset} have shape {shape}; "
            "expected (h, w) or (h, w, c): digits have it with data.options {as_images: 1}"
        )
    if not shared.truth and asks_for(cell.method, "y"):
        raise ConfigError(
            f"methods: {cell.method_name!r} learns from true labels, and {cell.dataset} has observed ones only; "
            "choose one of positive and unlabeled data (jaxpu list)"
        )
    try:
        probes.resolve(cell.probes, shared.truth)
        if cell.model.module is None:
            return
        model = models.build(cell.model, shape, outputs)
        if cell.training.initial_p != "init" and (cell.data.task == "pu" or cell.training.initial_p != "prior"):
            models.check_start(model, shape)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def traced_part(cell: Cell, prepared: Prepared, together: objective.Objective | None = None) -> objective.Hyper:
    """The traced half of a cell, for a program of its group's methods (None = its own)."""
    counts, n_labeled = prepared.class_counts, int(prepared.rows.n_labeled)
    if not asks_for(cell.method, "y"):  # whose classes are labeled and unlabeled
        counts = (sum(counts) - n_labeled, n_labeled)
    return objective.hyper_of(cell.method, cell.training, prepared.prior, counts, together)


def inputs(
    cell: Cell, seed: int, together: objective.Objective | None = None, *, dataset: Dataset | None = None
) -> tuple[Array, train.Data, train.Config, objective.Hyper]:
    """The arguments of :func:`jaxpu.train.train` for one run, for whoever wants to train it alone, with probes say.

    ``together`` is the static part of all methods that the program is to serve, None = of this one.

    >>> from jaxpu.config import expand, parse
    >>> [cell] = expand(parse({"data": {"name": "gaussians", "options": {"n": 60}}, "methods": ["vpu"]}))
    >>> key, arrays, static, hyper = inputs(cell, 0)  # for train.train(key, arrays, static, hyper)
    >>> int(arrays.n_labeled), arrays.train.shape
    (1, (44,))
    """
    source = dataset or data.load(cell.data)
    prepared, shared = data.prepare(cell.data, source, seed), data.arrays(cell.data, source)
    hyper = traced_part(cell, prepared, together)
    arrays = _data(jax.tree.map(jnp.asarray, shared.shared), Inputs(prepared.rows, hyper))
    return train.key_of(seed), arrays, static_part(cell, source, prepared, together), hyper


def _data(shared: dict[str, Array], own: Inputs) -> train.Data:
    return train.Data(shared["x"], shared["y"], *map(jnp.asarray, own.rows), levels=shared.get("levels"))


def _init(static: train.Config, key: Array, shared: dict[str, Array], own: Inputs) -> train.State:
    return train.init(key, _data(shared, own), static, own.hyper)


def _advance(
    static: train.Config, key: Array, state: train.State, shared: dict[str, Array], own: Inputs, epochs: int
) -> tuple[train.State, train.History]:
    return train.advance(key, state, _data(shared, own), static, own.hyper, epochs)


def _finished(static: train.Config, state: train.State) -> Array:
    return train.finished(state, static)


def _kept(static: train.Config, state: train.State) -> Any:
    return state.kept


def _memory(static: train.Config, shared: dict[str, Any]) -> int:
    """Bytes of one run: parameters, moments and gradients, what the passes over a batch leave, inputs and scores."""
    shape = shared["x"].shape[1:]
    model = models.build(static.model, shape, static.outputs)
    numbers = sum(leaf.size for leaf in jax.tree.leaves(models.shapes(model, shape)))
    # two forward passes and the backward one over a batch, one over a block of the evaluation, inputs and scores
    held = (3 * static.batch_size + AT_ONCE) * models.activations(model, shape)
    return 4 * (8 * numbers + held + 2 * shared["x"].size)


def _split(static: train.Config, spec: Any) -> train.Config:
    return dataclasses.replace(static, row_sharding=spec)


FUNCTIONS = Functions(_init, _advance, _finished, epoch_rows, _kept, _memory, _split)
"""What the engine compiles and calls."""
