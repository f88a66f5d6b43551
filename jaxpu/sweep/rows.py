"""The data of one run: which arrays it shares with others, and the row numbers that are its seed's own."""

import functools
from typing import NamedTuple

import numpy as np

from jaxpu import data
from jaxpu.config import ConfigError, DataConfig, digest
from jaxpu.data import sampling

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


def origin_of(config: DataConfig) -> Origin:
    """Which arrays a data configuration wants.

    >>> origin_of(DataConfig(name="gaussians", options={"n": 60}))
    Origin(name='gaussians', options=(('n', 60),), task='pu', outside='')
    """
    return Origin(config.name, tuple(sorted(config.options.items())), config.task, config.outside)


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
    shape = source.x.shape[1:]
    mean, sd = np.zeros(shape, np.float32), np.ones(shape, np.float32)
    if source.standardize:
        mean, sd = sampling.standardization(source.x, split.train)
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
