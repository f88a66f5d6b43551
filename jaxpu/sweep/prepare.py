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


OUTSIDE_ROWS = 1000
"""How many rows of ``data.outside`` are looked at."""

Options = tuple[tuple[str, float | int | str], ...]


class Origin(NamedTuple):
    """What of a data configuration says which arrays its runs share."""

    name: str
    options: Options
    task: str
    outside: str


class Arrays(NamedTuple):
    """What all runs of an origin share: features, labels of the task, and the rows that come from elsewhere."""

    x: np.ndarray
    y: np.ndarray
    outside: np.ndarray

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.y.max()) + 1


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
    outside: np.ndarray

    def padded(self, train: int, val_pu: int) -> "Rows":
        """The same with ``train`` and ``val_pu`` rows in all: padding lets label frequencies share a program."""
        longer = {"train": np.pad(self.train, (0, train - len(self.train)))}
        return self._replace(**longer, val_pu=np.pad(self.val_pu, (0, val_pu - len(self.val_pu))))


class Prepared(NamedTuple):
    """One seed of one data configuration: rows, sizes, and what methods are told: the prior, rows of every class."""

    rows: Rows
    val_sizes: tuple[tuple[str, int], ...]
    prior: float
    class_counts: tuple[int, ...]


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


def origin_of(config: DataConfig) -> Origin:
    """Which arrays a data configuration wants.

    >>> origin_of(DataConfig(name="gaussians", options={"n": 60}))
    Origin(name='gaussians', options=(('n', 60),), task='pu', outside='')
    """
    return Origin(config.name, tuple(sorted(config.options.items())), config.task, config.outside)


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
        outputs=1 if cell.data.task == "pu" else shared.classes,
    )


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


@functools.lru_cache(maxsize=8)
def arrays(origin: Origin) -> Arrays:
    """The arrays of an origin, those from elsewhere behind its own.

    Raises:
        ConfigError: for a dataset that does not exist, has two classes only, or rows of another shape.
    """
    source = dataset(origin.name, origin.options)
    labels = source.y if origin.task == "pu" else source.classes
    if labels is None:
        raise ConfigError(f"data.task: {origin.name} has two classes, and task {origin.task} wants more; take task pu")
    if not origin.outside:
        return Arrays(source.x, labels, np.arange(0, dtype=np.int32))
    other = dataset(origin.outside, ())
    if other.x.shape[1:] != source.x.shape[1:]:
        raise ConfigError(
            f"data.outside: rows of {origin.outside} have shape {other.x.shape[1:]}, expected "
            f"{source.x.shape[1:]} as those of {origin.name}"
        )
    rows = np.arange(len(other.x)) if other.test_rows is None else other.test_rows
    x = np.concatenate([source.x, other.x[rows[:OUTSIDE_ROWS]]])
    y = np.concatenate([labels, np.zeros(len(x) - len(labels), labels.dtype)])  # never read
    return Arrays(x, y, np.arange(len(source.x), len(x), dtype=np.int32))


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
    origin = origin_of(c)
    source, shared = dataset(origin.name, origin.options), arrays(origin)
    labels = shared.y[: len(source.x)]
    try:
        split = sampling.split(labels, seed, test=c.test, validation=c.validation, test_rows=source.test_rows)
        if c.imbalance > 1:
            split = split._replace(train=sampling.long_tail(labels, split.train, seed, ratio=c.imbalance))
        labelled = _pu_rows(c, labels, split, seed) if c.task == "pu" else _all_labelled(split)
    except ValueError as error:
        raise ConfigError(f"data: {error}") from None
    if c.task == "pu" and not 0 < labelled.prior < 1:
        raise ConfigError(
            f"data.prior_scale: the class prior told to methods must lie in (0, 1), got {labelled.prior:.3f}"
        )
    mean, sd = sampling.standardization(source.x, split.train)
    if not source.standardize:
        mean, sd = np.zeros_like(mean), np.ones_like(sd)
    rows = Rows(
        train=split.train[labelled.train].astype(np.int32),
        val=split.validation.astype(np.int32),
        val_pu=labelled.val_pu.astype(np.int32),
        test=split.test.astype(np.int32),
        mean=mean,
        sd=sd,
        n_labeled=np.int32(labelled.n_labeled),
        n_train=np.int32(len(labelled.train)),
        n_val_labeled=np.int32(labelled.n_val_labeled),
        n_val_pu=np.int32(len(labelled.val_pu)),
        outside=shared.outside,
    )
    counts = np.bincount(labels[rows.train], minlength=shared.classes)
    return Prepared(rows, _val_sizes(c, split.validation_sizes), labelled.prior, tuple(counts.tolist()))


class _Labelled(NamedTuple):
    """Places in the training and the validation set, those with a label first, and the prior that methods are told."""

    train: np.ndarray
    n_labeled: int
    val_pu: np.ndarray
    n_val_labeled: int
    prior: float


def _all_labelled(split: sampling.Split) -> _Labelled:
    return _Labelled(np.arange(len(split.train)), len(split.train), np.arange(0), 0, float("nan"))


def _pu_rows(c: DataConfig, labels: np.ndarray, split: sampling.Split, seed: int) -> _Labelled:
    score = None if c.mechanism == "scar" else _score(origin_of(c))
    sample, val_sample = (
        sampling.pu_sample(
            labels[rows],
            entropy,
            scenario=c.scenario,
            c=c.c,
            mechanism=c.mechanism,
            score=None if score is None else score[rows],
        )
        for rows, entropy in ((split.train, seed), (split.validation, (seed, 1)))
    )
    told = {"unlabeled": sample.prior, "all": sample.prior_all}
    prior = (told[c.prior] if isinstance(c.prior, str) else c.prior) * c.prior_scale
    both, val_both = (np.concatenate([one.labeled, one.unlabeled]) for one in (sample, val_sample))
    return _Labelled(both, len(sample.labeled), val_both, len(val_sample.labeled), prior)


def _val_sizes(config: DataConfig, sizes: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
    """Column prefixes: ``val`` for the first share, which rules read, ``val@share`` for every nested one."""
    nested = [(f"val@{share:g}", size) for share, size in zip(config.validation, sizes, strict=True)]
    return (("val", sizes[0]), *(nested if len(nested) > 1 else ()))


@functools.lru_cache(maxsize=8)
def _score(origin: Origin) -> np.ndarray:
    source = dataset(origin.name, origin.options)
    return sampling.propensity_score(source.x, source.y)
