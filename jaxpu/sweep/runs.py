"""From cells and seeds to runs: identities, and the groups that share one compiled program."""

import dataclasses

import jax.numpy as jnp
from jax import Array

from jaxpu import models, objective, train
from jaxpu.config import Cell, ConfigError, Experiment, digest, expand
from jaxpu.sweep.rows import Origin, Prepared, Rows, arrays, origin_of, prepare
from jaxpu.train import optimizers

FORMAT = 2  # part of every run's identity: raise it when the meaning of recorded numbers changes


@dataclasses.dataclass(frozen=True)
class RunSpec:
    """One run: a cell and a seed, with the identity under which its results are kept."""

    cell: Cell
    seed: int
    run_id: str


@dataclasses.dataclass(frozen=True)
class Group:
    """Runs with equal static part, dataset and held-out sets: one compilation.

    ``n_train`` and ``n_val_pu`` are the most rows that any of them has in its training set and in the P and U of its
    validation set; those of the others are padded.
    """

    config: train.Config
    origin: Origin
    n_train: int
    n_val_pu: int
    runs: list[RunSpec]

    def rows(self, run: RunSpec) -> Rows:
        """The rows of one of the runs, as long as those of all."""
        return prepare(run.cell.data, run.seed).rows.padded(self.n_train, self.n_val_pu)


def runs_of(experiment: Experiment) -> list[RunSpec]:
    """All runs of an experiment, seed by seed, so that an interrupted sweep has whole seeds of every method.

    >>> from jaxpu.config import parse
    >>> [(r.cell.method_name, r.seed) for r in runs_of(parse({"methods": ["vpu", "pudra"], "seeds": 2}))]
    [('vpu', 0), ('pudra', 0), ('vpu', 1), ('pudra', 1)]
    """
    cells = expand(experiment)
    seeds = range(experiment.first_seed, experiment.first_seed + experiment.seeds)
    identities = [(FORMAT, c.method_name, c.label, c.method, c.data, c.model, c.training, _recorded(c)) for c in cells]
    return [
        RunSpec(cell, seed, digest(*identity, seed))
        for seed in seeds
        for cell, identity in zip(cells, identities, strict=True)
    ]


def _recorded(cell: Cell) -> list[object]:
    """What of the selection settings changes what is kept of a run: where it stops, and whose parameters."""
    s = cell.selection
    kept = [s.default, s.patience, s.min_delta] if s.keep_best else []
    if not s.stop or "last" in s.rules:
        return kept
    return [sorted(s.rules), s.patience, s.min_delta, *kept]


def groups_of(runs: list[RunSpec]) -> list[Group]:
    """Group runs by what is static; sizes do not depend on the seed, so one seed of each cell tells them."""
    members: dict[tuple[object, ...], list[RunSpec]] = {}
    shapes: dict[int, tuple[train.Config, tuple[int, ...]]] = {}
    for run in runs:
        if id(run.cell) not in shapes:
            prepared = prepare(run.cell.data, run.seed)
            held_out = (len(prepared.rows.val), len(prepared.rows.test))
            shapes[id(run.cell)] = (static_part(run.cell, prepared), held_out)
        config, held_out = shapes[id(run.cell)]
        key = (config, origin_of(run.cell.data), held_out)
        members.setdefault(key, []).append(run)
    return [_group(mine) for mine in members.values()]


def _group(runs: list[RunSpec]) -> Group:
    cells = {id(run.cell): run for run in runs}.values()
    each = [prepare(run.cell.data, run.seed) for run in cells]
    config = static_part(runs[0].cell, each[0])
    n_train, n_val_pu = (max(len(getattr(one.rows, name)) for one in each) for name in ("train", "val_pu"))
    return Group(config, origin_of(runs[0].cell.data), n_train, n_val_pu, runs)


def static_part(cell: Cell, prepared: Prepared) -> train.Config:
    """The static half of a cell; :func:`traced_part` is the other one.

    Raises:
        ConfigError: for convolutions over rows that are no images.
    """
    s, t, shared = cell.selection, cell.training, arrays(origin_of(cell.data))
    if cell.model.name in ("cnn", "resnet") and shared.x.ndim not in (3, 4):
        raise ConfigError(
            f"model.name: {cell.model.name!r} wants images, rows of shape (h, w) or (h, w, c); those of "
            f"{cell.data.name} have shape {shared.x.shape[1:]} (digits are images with data.options {{as_images: 1}})"
        )
    outputs = 1 if cell.data.task == "pu" else shared.classes
    if cell.model.module is not None:
        _check_own(cell, shared.x.shape[1:], outputs)
    return train.Config(
        model=cell.model,
        epochs=t.epochs,
        batch_size=t.batch_size,
        val_sizes=prepared.val_sizes,
        mixup=cell.method.mixup,
        batching=cell.method.batching,
        lam_per=t.lam_per,
        alpha_schedule=t.alpha_schedule,
        rules=s.rules,
        patience=s.patience,
        min_delta=s.min_delta,
        stop=s.stop,
        keep_best=s.default if s.keep_best else None,
        outputs=outputs,
        optimizer=optimizers.choice(t),
    )


def _check_own(cell: Cell, shape: tuple[int, ...], outputs: int) -> None:
    """Refuse a network of the user that cannot be trained as the cell says."""
    try:
        model = models.build(cell.model, shape, outputs)
        if cell.training.initial_p != "init" and (cell.data.task == "pu" or cell.training.initial_p != "prior"):
            models.check_start(model, shape)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def traced_part(cell: Cell, prepared: Prepared) -> objective.Hyper:
    """The traced half of a cell."""
    counts, n_labeled = prepared.class_counts, int(prepared.rows.n_labeled)
    if cell.method.base == "pn_naive":  # whose classes are labelled and unlabelled
        counts = (sum(counts) - n_labeled, n_labeled)
    return objective.hyper_of(cell.method, cell.training, prepared.prior, counts)


def inputs(cell: Cell, seed: int) -> tuple[Array, train.Data, train.Config, objective.Hyper]:
    """The arguments of :func:`jaxpu.train.train` for one run, for whoever wants to train it alone, with probes say.

    >>> from jaxpu.config import expand, parse
    >>> [cell] = expand(parse({"data": {"name": "gaussians", "options": {"n": 60}}, "methods": ["vpu"]}))
    >>> key, data, static, hyper = inputs(cell, 0)  # for train.train(key, data, static, hyper)
    >>> int(data.n_labeled), data.train.shape
    (1, (44,))
    """
    prepared = prepare(cell.data, seed)
    shared = arrays(origin_of(cell.data))
    data = train.Data(jnp.asarray(shared.x), jnp.asarray(shared.y, jnp.int32), *map(jnp.asarray, prepared.rows))
    return train.key_of(seed), data, static_part(cell, prepared), traced_part(cell, prepared)
