"""From a name or a data configuration to a dataset, loaded once for as long as its source stays the same."""

import functools
import inspect
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxpu.config import ConfigError, DataConfig, unknown
from jaxpu.data import own
from jaxpu.data.dataset import Dataset, first_line
from jaxpu.data.embedded import breast_cancer, digits, spambase
from jaxpu.data.images import alzheimer_mri, cifar10, fashion_mnist, mnist
from jaxpu.data.sources import files_of
from jaxpu.data.synthetic import gaussians, mixture
from jaxpu.data.tables import connect4, mushrooms
from jaxpu.data.texts import imdb, newsgroups20
from jaxpu.errors import shown

DATASETS: dict[str, Callable[..., Dataset]] = {
    "spambase": spambase,
    "digits": digits,
    "breast_cancer": breast_cancer,
    "gaussians": gaussians,
    "mixture": mixture,
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "cifar10": cifar10,
    "mushrooms": mushrooms,
    "connect4": connect4,
    "imdb": imdb,
    "newsgroups20": newsgroups20,
    "alzheimer_mri": alzheimer_mri,
}
"""The datasets by name."""

FETCHED = ("mnist", "fashion_mnist", "cifar10", "connect4", "imdb", "newsgroups20", "alzheimer_mri")
"""Those of them that come from ``JAXPU_DATA_DIR``, the cache or the network; see ``sources``."""

SETTLED = 2.0
"""Seconds after which a change of a file shows in its time stamp for certain."""


def load(wanted: str | DataConfig, **options: Any) -> Dataset:
    """Load a dataset by name, or as a configuration says: by name or from a file.

    The same dataset is handed out again while its source stays the same; its arrays cannot be written to.

    Args:
        wanted: A key of `DATASETS`, or a configuration.
        **options: With a name, keyword options of that dataset's function.

    Returns:
        The dataset, its arrays on the host.

    Raises:
        ValueError: If there is no such dataset, or it has no such option, with the choices; a file cannot be used. With
            a configuration it is a ConfigError.

    Example:
        >>> load("gaussians", n=50, d=3).x.shape
        (50, 3)
        >>> load("spam")
        Traceback (most recent call last):
        ...
        ValueError: unknown dataset 'spam' (did you mean 'spambase'?); choose from spambase, digits, ...
    """
    if isinstance(wanted, str):
        return _named(wanted, options)
    try:
        return _from_file(wanted) if wanted.file else _named(wanted.name, wanted.options)
    except (ValueError, TypeError, OverflowError) as error:
        raise ConfigError(f"data{'.file' if wanted.file else ''}: {error}") from None


def describe(name: str) -> str:
    """Say in one sentence what a dataset is, without loading it.

    Raises:
        ValueError: If there is no such dataset; the message lists the choices.

    Example:
        >>> describe("breast_cancer")
        'Breast masses as 30 measurements of cell nuclei; positive = malignant (212 of 569).'
    """
    return first_line(_loader(name).__doc__)


def _loader(name: str) -> Callable[..., Dataset]:
    if name not in DATASETS:
        raise ValueError(unknown("dataset", name, DATASETS))
    return DATASETS[name]


def _named(name: str, options: dict[str, Any]) -> Dataset:
    loader = _loader(name)
    choices = inspect.signature(loader).parameters
    odd = [option for option in options if option not in choices]
    if odd:
        known = ", ".join(choices) or "none"
        raise ValueError(f"dataset {name!r} has no option {odd[0]!r}; its options: {known}")
    for option, value in options.items():
        _check_option(name, option, value, choices[option].default)
    sources = files_of(name) if name in FETCHED else []
    return _kept(functools.partial(loader, **options), (loader, *sorted(options.items())), sources)


def _check_option(name: str, option: str, value: Any, default: Any) -> None:
    """Refuse an option of another type than its default."""
    kinds: dict[type, tuple[Any, str]] = {
        bool: (bool, "true or false"),
        int: (int, "a whole number"),
        float: (int | float, "a number"),
        str: (str, "text"),
    }
    kind, words = kinds.get(type(default), (object, ""))
    if not isinstance(value, kind) or (isinstance(value, bool) and words.endswith("number")):
        raise ValueError(f"options: dataset {name!r} takes {words} as {option}, got {shown(value)}")


def _from_file(wanted: DataConfig) -> Dataset:
    columns = {k: getattr(wanted, k) for k in ("label", "positive", "observed", "labeled", "name")}
    read = functools.partial(own.from_file, wanted.file, **columns)
    path = Path(os.path.expanduser(wanted.file))
    return _kept(read, (str(path.absolute()), *map(repr, columns.values())), [path])


_LOADED: dict[tuple[Any, ...], Dataset] = {}


def _kept(load_now: Callable[[], Dataset], key: tuple[Any, ...], sources: list[Path]) -> Dataset:
    """What was loaded under a key from files that have not changed since; else what they hold now."""
    stamps = [_stamp(path) for path in sources]
    key = (*key, *stamps)
    if key not in _LOADED:
        found = load_now()
        if None in stamps:  # changed a moment ago: the next change might leave the same stamp
            return found
        keep(_LOADED, key, found, most=8)
    return _LOADED[key]


def keep(kept: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    """Keep a value in place of the oldest."""
    while len(kept) >= most:
        del kept[next(iter(kept))]
    kept[key] = value


def _stamp(path: Path) -> tuple[int, ...] | str | None:
    """What changes when a file does; None if it has changed so lately that it might not."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return "none"
    if time.time() - max(found.st_mtime, found.st_ctime) < SETTLED:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev
