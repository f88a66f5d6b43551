"""The data of one run of a sweep, by its data configuration alone; see :mod:`jaxpu.data.prepare`."""

from typing import NamedTuple

from jaxpu import data
from jaxpu.config import DataConfig
from jaxpu.data import Arrays, Dataset, Prepared, Rows

__all__ = ["Arrays", "Origin", "Prepared", "Rows", "arrays", "dataset", "origin_of", "prepare"]


class Origin(NamedTuple):
    """What says which arrays runs share."""

    content: str
    task: str
    outside: str


def origin_of(config: DataConfig) -> Origin:
    """Which arrays a data configuration wants."""
    return Origin(data.load(config).content, config.task, config.outside)


def dataset(name: str, options: tuple[tuple[str, float | int | str], ...]) -> Dataset:
    """Load a dataset by name; ConfigError for an unknown one, or an unknown option."""
    return data.load(DataConfig(name=name, options=dict(options)))


def arrays(config: DataConfig) -> Arrays:
    """The arrays of a configuration."""
    return data.arrays(config, data.load(config))


def prepare(config: DataConfig, seed: int) -> Prepared:
    """One seed of a configuration."""
    return data.prepare(config, data.load(config), seed)
