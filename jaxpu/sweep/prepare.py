"""From cells and seeds to runs: identities, row numbers, and the groups that share one compiled program."""

import dataclasses
import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxpu import data, objective, train
from jaxpu.config import Cell, ConfigError, DataConfig, Experiment, digest, expand
from jaxpu.data import sampling

FORMAT = 2  # part of every run's identity: raise it when the meaning of recorded numbers changes


Options = tuple[tuple[str, float | int | str], ...]


class Rows(NamedTuple):
    """What of :class:`jaxpu.train.Data` is a seed's own; equal in shape for all seeds of a data configuration."""

    train: np.ndarray
    val: np.ndarray
    val_pu: np.ndarray
    test: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    n_labeled: np.int32
    n_train: np.int32
    n_val_labeled: np.int32
    n_val_pu: np.int32

    def padded(self, train: int, val_pu: int) -> "Rows":
        """The same with ``train`` and ``val_pu`` rows in all: padding lets label frequencies share a program."""
        longer = {"train": np.pad(self.train, (0, train - len(self.train)))}
        return self._replace(**longer, val_pu=np.pad(self.val_pu, (0, val_pu - len(self.val_pu))))


class Prepared(NamedTuple):
    """One seed of one data configuration: rows, sizes, and the prior that methods are told."""

    rows: Rows
    val_sizes: tuple[tuple[str, int], ...]
    prior: float


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
    dataset: str
    options: Options
    n_train: int
    n_val_pu: int
    runs: list[RunSpec]

    def rows(self, run: RunSpec) -> Rows:
        """The rows of one of the runs, as long as those of all."""
        return prepare(run.cell.data, run.seed).rows.padded(self.n_train, self.n_val_pu)


def _options(config: DataConfig) -> Options:
    return tuple(sorted(config.options.items()))


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
        key = (config, run.cell.data.name, _options(run.cell.data), held_out)
        members.setdefault(key, []).append(run)
    return [_group(mine) for mine in members.values()]


def _group(runs: list[RunSpec]) -> Group:
    cells = {id(run.cell): run for run in runs}.values()
    each = [prepare(run.cell.data, run.seed) for run in cells]
    config, data = static_part(runs[0].cell, each[0]), runs[0].cell.data
    n_train, n_val_pu = (max(len(getattr(one.rows, name)) for one in each) for name in ("train", "val_pu"))
    return Group(config, data.name, _options(data), n_train, n_val_pu, runs)


def static_part(cell: Cell, prepared: Prepared) -> train.Config:
    """The static half of a cell; :func:`traced_part` is the other one."""
    s, t = cell.selection, cell.training
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
    )


def traced_part(cell: Cell, prepared: Prepared) -> objective.Hyper:
    """The traced half of a cell."""
    return objective.hyper_of(cell.method, cell.training, prepared.prior)


def inputs(cell: Cell, seed: int) -> tuple[Array, train.Data, train.Config, objective.Hyper]:
    """The arguments of :func:`jaxpu.train.train` for one run, for whoever wants to train it alone, with probes say.

    >>> from jaxpu.config import expand, parse
    >>> [cell] = expand(parse({"data": {"name": "gaussians", "options": {"n": 60}}, "methods": ["vpu"]}))
    >>> key, data, static, hyper = inputs(cell, 0)  # for train.train(key, data, static, hyper)
    >>> int(data.n_labeled), data.train.shape
    (1, (44,))
    """
    prepared = prepare(cell.data, seed)
    source = dataset(cell.data.name, _options(cell.data))
    data = train.Data(jnp.asarray(source.x), jnp.asarray(source.y, jnp.int32), *map(jnp.asarray, prepared.rows))
    return train.key_of(seed), data, static_part(cell, prepared), traced_part(cell, prepared)


@functools.lru_cache(maxsize=8)
def dataset(name: str, options: Options) -> data.Dataset:
    """Load a dataset once.

    Raises:
        ConfigError: for an unknown dataset or option, with the choices.
    """
    try:
        return data.load(name, **dict(options))
    except ValueError as error:
        raise ConfigError(f"data: {error}") from None


def prepare(config: DataConfig, seed: int) -> Prepared:
    """Split, label and standardise one seed; the same for every method.

    Raises:
        ConfigError: for an unknown dataset, or shares that leave a part empty.
    """
    key = (digest(config), seed)
    if key not in _PREPARED:
        _PREPARED[key] = _prepare(config, seed)
    return _PREPARED[key]


_PREPARED: dict[tuple[str, int], Prepared] = {}


def _prepare(c: DataConfig, seed: int) -> Prepared:
    source = dataset(c.name, _options(c))
    try:
        split = sampling.split(source.y, seed, test=c.test, validation=c.validation, test_rows=source.test_rows)
        score = None if c.mechanism == "scar" else _score(c.name, _options(c))
        sample, val_sample = (
            sampling.pu_sample(
                source.y[rows],
                entropy,
                scenario=c.scenario,
                c=c.c,
                mechanism=c.mechanism,
                score=None if score is None else score[rows],
            )
            for rows, entropy in ((split.train, seed), (split.validation, (seed, 1)))
        )
    except ValueError as error:
        raise ConfigError(f"data: {error}") from None
    told = {"unlabeled": sample.prior, "all": sample.prior_all}
    prior = (told[c.prior] if isinstance(c.prior, str) else c.prior) * c.prior_scale
    if not 0 < prior < 1:
        raise ConfigError(f"data.prior_scale: the class prior told to methods must lie in (0, 1), got {prior:.3f}")
    mean, sd = sampling.standardization(source.x, split.train)
    if not source.standardize:
        mean, sd = np.zeros_like(mean), np.ones_like(sd)
    rows = Rows(
        train=split.train[np.concatenate([sample.labeled, sample.unlabeled])].astype(np.int32),
        val=split.validation.astype(np.int32),
        val_pu=np.concatenate([val_sample.labeled, val_sample.unlabeled]).astype(np.int32),
        test=split.test.astype(np.int32),
        mean=mean,
        sd=sd,
        n_labeled=np.int32(len(sample.labeled)),
        n_train=np.int32(len(sample.labeled) + len(sample.unlabeled)),
        n_val_labeled=np.int32(len(val_sample.labeled)),
        n_val_pu=np.int32(len(val_sample.labeled) + len(val_sample.unlabeled)),
    )
    return Prepared(rows, _val_sizes(c, split.validation_sizes), prior)


def _val_sizes(config: DataConfig, sizes: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
    """Column prefixes: ``val`` for the first share, which rules read, ``val@share`` for every nested one."""
    nested = [(f"val@{share:g}", size) for share, size in zip(config.validation, sizes, strict=True)]
    return (("val", sizes[0]), *(nested if len(nested) > 1 else ()))


@functools.lru_cache(maxsize=8)
def _score(name: str, options: Options) -> np.ndarray:
    source = dataset(name, options)
    return sampling.propensity_score(source.x, source.y)
