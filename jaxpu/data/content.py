"""What runs on a dataset share, and what says so: content, never a name."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from jaxpu.config import ConfigError, DataConfig
from jaxpu.data.dataset import Dataset
from jaxpu.data.loading import keep, load

OUTSIDE_ROWS = 1000
"""How many rows of ``data.outside`` are looked at."""


class Arrays(NamedTuple):
    """What all runs on a dataset share: features, labels of the task, and the rows that come from elsewhere.

    Where ``truth`` is False nobody knows the labels, and y is 0 everywhere, not to be read. Where x holds bytes
    ``levels`` says which feature each stands for.
    """

    x: np.ndarray
    y: np.ndarray
    outside: np.ndarray
    truth: bool = True
    levels: np.ndarray | None = None

    @property
    def shared(self) -> dict[str, np.ndarray]:
        """What all runs of a program read, as it lies on a device."""
        arrays = {"x": self.x, "y": self.y.astype(np.int32)}
        return arrays if self.levels is None else arrays | {"levels": self.levels}

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.y.max(initial=1)) + 1


ORIGIN = ("name", "options", "file", "label", "positive", "observed", "labeled", "outside")
"""The settings that only say where data comes from: content stands for them."""


def identity(config: DataConfig, dataset: Dataset) -> tuple[Any, ...]:
    """What of a data configuration and its dataset says which numbers come out, for :func:`jaxpu.config.digest`.

    A file that is moved, or whose columns are renamed, is the same data; one that is replaced is not.

    >>> config = DataConfig(name="gaussians", options={"n": 60})
    >>> [type(part).__name__ for part in identity(config, load(config))]
    ['DataConfig', 'str', 'str']
    """
    settings = {f.name: getattr(config, f.name) for f in dataclasses.fields(DataConfig) if f.name not in ORIGIN}
    return DataConfig(**settings), dataset.content, _outside(config).content if config.outside else ""


def arrays(config: DataConfig, dataset: Dataset) -> Arrays:
    """The arrays that all runs of a configuration share, those from elsewhere behind its own.

    Raises:
        ConfigError: for a dataset that has two classes only, or rows from elsewhere of another shape.
    """
    labels = labels_of(config, dataset)
    y = np.zeros(len(labels), np.int8) if dataset.y is None else labels
    if not config.outside:
        return Arrays(dataset.x, y, np.arange(0, dtype=np.int32), dataset.y is not None, dataset.levels)
    other = _outside(config)
    if other.x.shape[1:] != dataset.x.shape[1:]:
        raise ConfigError(
            f"data.outside: rows of {config.outside} have shape {other.x.shape[1:]}, expected "
            f"{dataset.x.shape[1:]} as those of {dataset.name}"
        )
    key = (dataset.content, other.content, config.task)
    if key not in _ARRAYS:
        keep(_ARRAYS, key, _beside(dataset, y, other), most=8)
    return _ARRAYS[key]


_ARRAYS: dict[tuple[str, ...], Arrays] = {}


def labels_of(config: DataConfig, dataset: Dataset) -> np.ndarray:
    """The labels that rows are told apart by: those of the task, or the observed ones where nobody knows them."""
    if config.task == "pu":
        labels = dataset.s if dataset.y is None else dataset.y
        assert labels is not None  # a Dataset has one of them
        return labels
    if dataset.classes is None:
        raise ConfigError(f"kind: {dataset.name} has two classes, and kind {config.task} wants more; take kind pu")
    return dataset.classes


def _outside(config: DataConfig) -> Dataset:
    try:
        return load(config.outside)
    except ValueError as error:
        raise ConfigError(f"data.outside: {error}") from None


def _beside(dataset: Dataset, y: np.ndarray, other: Dataset) -> Arrays:
    rows = np.arange(len(other.x)) if other.test_rows is None else other.test_rows
    of_both = (dataset, np.arange(len(dataset.x))), (other, rows[:OUTSIDE_ROWS])
    both = dataset.levels, other.levels
    alike = both[0] is not None and both[1] is not None and np.array_equal(both[0], both[1])
    x = np.concatenate([one.x[rows] if alike else one.features(rows) for one, rows in of_both])
    never_read = np.zeros(len(x) - len(y), y.dtype)
    outside = np.arange(len(y), len(x), dtype=np.int32)
    levels = dataset.levels if alike else None
    return Arrays(x, np.concatenate([y, never_read]), outside, dataset.y is not None, levels)
