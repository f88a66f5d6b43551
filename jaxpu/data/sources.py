"""Where the sets that do not ship come from: a folder of ready files, the cache, or their real source.

``JAXPU_DATA_DIR`` names a folder of ready .npz files, looked at first; then comes the cache (``jaxpu/data`` in the
user's cache folder), then the network, and what came from there is kept in the cache. A file holds

    tables    ``X`` (n, d), ``y`` (n,), ``classes`` (k,), ``feature_names`` (d,)
    images    ``x_train`` (n, height, width) or (n, height, width, 3) in 0..255, ``y_train``, ``x_test``, ``y_test``;
              or JPEG files one after the other, ``jpeg_train``, bounded by ``offsets_train`` (n + 1,), and so for test;
              without an official test set ``x``, ``y``, ``classes``
    texts     sentence embeddings ``x_train`` (n, 384), ``y_train``, ``x_test``, ``y_test``, ``classes``

A file is used whole or not at all: the archive has a checksum an array; ``NAME.npz.sha256`` beside it, which is written
with what is fetched and read wherever it lies, has one of the file; and the arrays must fit each other.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from jaxpu.errors import unknown

Held = dict[str, np.ndarray]


class Source(NamedTuple):
    """Where one set is really from, and what tells that it came whole.

    Attributes:
        origin: where it is fetched from, in words. megabytes: about how large the download is.
        counts: how many rows of each class the published set has, by part (``train``, ``test``, or "" for all).
        values: SHA-256 of the features as published (row by row, little-endian), by part, where it is known.
        needs: what to install for it besides jaxpu. files: names of its ready files, by preference; NAME.npz if none.
    """

    origin: str
    megabytes: int
    counts: dict[str, tuple[int, ...]]
    values: Mapping[str, str] = MappingProxyType({})
    needs: str = ""
    files: tuple[str, ...] = ()


NEWSGROUPS = (
    (480, 584, 591, 590, 578, 593, 585, 594, 598, 597, 600, 595, 591, 594, 593, 599, 546, 564, 465, 377),
    (319, 389, 394, 392, 385, 395, 390, 396, 398, 397, 399, 396, 393, 396, 394, 398, 364, 376, 310, 251),
)

SOURCES: dict[str, Source] = {
    "spambase": Source(
        "OpenML (data 44)",
        1,
        {"": (2788, 1813)},
        {"": "f9ce320b207ba6679055b8c626b161093cb793d4f0021371a7af7e086983196b"},
    ),
    "mushrooms": Source(
        "OpenML (data 24)",
        1,
        {"": (4208, 3916)},
        {"": "be06f344e64f6913ff89809fa7576f0e7fc3fc02d1dd5e0367b7925eab10ca69"},
    ),
    "connect4": Source(
        "OpenML (data 40668)",
        3,
        {"": (44_473, 16_635, 6449)},
        {"": "928696ac64c25833d47f6479c7c886f13f3220ca6cf629426fa331cf980eb98a"},
    ),
    "mnist": Source(
        "TensorFlow Datasets (mnist) or OpenML (mnist_784)",
        12,
        {
            "train": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
            "test": (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        },
        {
            "train": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
            "test": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
        },
    ),
    "fashion_mnist": Source(
        "TensorFlow Datasets (fashion_mnist) or OpenML (Fashion-MNIST)",
        30,
        {"train": (6000,) * 10, "test": (1000,) * 10},
        {
            "train": "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
            "test": "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
        },
    ),
    "cifar10": Source(
        "TensorFlow Datasets (cifar10) or www.cs.toronto.edu",
        170,
        {"train": (5000,) * 10, "test": (1000,) * 10},
        files=("cifar10.npz", "cifar10_jpeg.npz"),
    ),
    "alzheimer_mri": Source(
        "Falah/Alzheimer_MRI at Hugging Face (Parquet files) or sachinkumar413/alzheimer-mri-dataset at Kaggle (class "
        "folders), by hand",
        30,
        {"": (3200, 2240, 896, 64)},
    ),
    "imdb": Source(
        "TensorFlow Datasets (imdb_reviews) or ai.stanford.edu, embedded by all-MiniLM-L6-v2",
        170,
        {"train": (12_500, 12_500), "test": (12_500, 12_500)},
        needs="jaxpu[text]",
    ),
    "newsgroups20": Source(
        "scikit-learn (fetch_20newsgroups), embedded by all-MiniLM-L6-v2",
        105,
        {"train": NEWSGROUPS[0], "test": NEWSGROUPS[1]},
        needs="jaxpu[text]",
    ),
}
"""The sets by name; those that ship with jaxpu are here too, since their source can be asked for."""


def source_of(name: str) -> Source:
    """The source of a set.

    Raises:
        ValueError: there is none of the name, with the choices.
    """
    if name not in SOURCES:
        raise ValueError(unknown("dataset with a source", name, SOURCES))
    return SOURCES[name]


def cache() -> Path:
    """The folder where fetched sets are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "jaxpu" / "data"


def files_of(name: str) -> list[Path]:
    """Where a set may lie, in the order looked at: ``JAXPU_DATA_DIR`` if it is set, and the cache."""
    names = source_of(name).files or (f"{name}.npz",)
    ready = os.environ.get("JAXPU_DATA_DIR")
    folders = ([Path(os.path.expanduser(ready))] if ready else []) + [cache()]
    return [folder / file for folder in folders for file in names]


SHIPPED = ("spambase", "mushrooms")
"""Those whose file lies beside this one, and is what is read."""


def found(name: str) -> Path | None:
    """The file that a set is read from; None if it must be fetched first."""
    if name in SHIPPED:
        return Path(__file__).parent / f"{name}.npz"
    return next((file for file in files_of(name) if file.is_file()), None)


def read(file: Path) -> Held:
    """The arrays of one file.

    Raises:
        ValueError: it is damaged or partial, naming it and what to do.
    """
    try:
        _check_sum(file)
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        for _ in parts(arrays):
            pass
    except Exception as error:  # zipfile, zlib and lzma raise kinds of their own for a damaged file
        why = f"{error or type(error).__name__}"
        raise ValueError(f"{file} cannot be read ({why}); remove or replace it, it is not used") from None
    return arrays


def _check_sum(file: Path) -> None:
    beside = file.with_name(f"{file.name}.sha256")
    if not beside.is_file():
        return
    wanted = beside.read_text(encoding="utf-8").split()
    if wanted[:1] != [_sha256(file)]:
        raise ValueError(f"its SHA-256 is not the one in {beside.name}")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def parts(arrays: Held) -> Iterator[tuple[str, str, np.ndarray]]:
    """The parts of a set: ("train" and "test", or "" if there is one), the name of its features, its labels.

    Raises:
        ValueError: features and labels do not fit each other.
    """
    for part in ("train", "test") if "y_train" in arrays else ("",):
        end = f"_{part}" if part else ""
        names = [name for name in (f"x{end}", f"X{end}", f"jpeg{end}") if name in arrays]
        if not names or f"y{end}" not in arrays:
            raise ValueError(f"expected arrays x{end} (or X{end}, jpeg{end}) and y{end}; it has {', '.join(arrays)}")
        y, name = arrays[f"y{end}"], names[0]
        n = len(arrays[f"offsets{end}"]) - 1 if name.startswith("jpeg") else len(arrays[name])
        if y.shape != (n,) or not n:
            raise ValueError(f"{name} has {n} rows and y{end} the shape {y.shape}; expected as many labels, at least 1")
        most = len(arrays["classes"]) if "classes" in arrays else 128
        if not np.issubdtype(y.dtype, np.integer) or not (y.min() >= 0 and y.max() < most):
            raise ValueError(f"y{end} must hold class numbers below {most}, got {y.min()} to {y.max()} of {y.dtype}")
        if np.issubdtype(arrays[name].dtype, np.floating) and not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} holds values that are not finite")
        yield part, name, y


def other_rows(name: str, arrays: Held) -> list[str]:
    """Where a set has other rows than the published one, or other labels, in words."""
    counts, said = source_of(name).counts, []
    for part, _, y in parts(arrays):
        wanted = counts.get(part, ())
        if sorted(np.bincount(y, minlength=len(wanted)).tolist()) != sorted(wanted):
            rows = f"{len(y):,} rows where {sum(wanted):,} are published"
            said.append(f"{part or 'all'}: {rows if len(y) != sum(wanted) else 'other classes than published'}")
    return said


def other_values(name: str, arrays: Held) -> list[str]:
    """Where features are not those published, value by value and in order, in words; a part not known is left out."""
    values, said = source_of(name).values, []
    for part, features, _ in parts(arrays):
        plain = np.ascontiguousarray(arrays[features])
        if part in values and hashlib.sha256(plain.data).hexdigest() != values[part]:
            said.append(f"{part or 'all'}: values, or their order, are not the published ones")
    return said


def write(name: str, arrays: Held, folder: Path) -> Path:
    """Keep a set in a folder, whole or not at all, with its SHA-256 beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.npz"
    handle, made = tempfile.mkstemp(dir=folder, prefix=f".{name}-", suffix=".npz")
    try:
        with os.fdopen(handle, "wb") as stream:
            np.savez_compressed(stream, **arrays)  # pyright: ignore[reportArgumentType]  # names of arrays, not options
        line = f"{_sha256(Path(made))}  {file.name}\n"
        file.with_name(f"{file.name}.sha256").unlink(missing_ok=True)  # an old one would speak against the new file
        Path(made).replace(file)
        file.with_name(f"{file.name}.sha256").write_text(line, encoding="utf-8")
    finally:
        Path(made).unlink(missing_ok=True)
    return file
