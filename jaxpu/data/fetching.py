"""Fetch a set from its real source, as arrays of the form that :mod:`jaxpu.data.sources` describes, and keep it.

Every way is one function; heavy imports belong inside. What came is compared with what is published before it is kept,
so that an interrupted or changed download is named and never used.
"""

import importlib.util
import io
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxpu.data import archives
from jaxpu.data.sources import Held, files_of, found, other_rows, read, source_of, write

ENCODER = "sentence-transformers/all-MiniLM-L6-v2"

OPENML = {"spambase": 44, "mushrooms": 24, "connect4": 40668, "mnist": 554, "fashion_mnist": 40996}
"""Numbers of data at OpenML. The two of images have the rows of training first, then 10,000 of test."""


def arrays_of(name: str) -> Held:
    """The arrays of a set: from ``JAXPU_DATA_DIR``, from the cache, or fetched now and kept there.

    Raises:
        ValueError: a file is damaged, or there is none and it cannot be fetched: what, from where, how large, where to.
    """
    return read(found(name) or fetch(name))


def fetch(name: str, *, folder: Path | None = None, source: Path | None = None) -> Path:
    """Fetch a set from its source, and keep it in a folder.

    Args:
        name: a key of :data:`jaxpu.data.sources.SOURCES`. folder: where to; None = the cache.
        source: of ``alzheimer_mri``, which comes by hand: a folder of class folders with pictures, a Parquet file, or a
            folder of such files.

    Returns:
        The file.

    Raises:
        ValueError: as :func:`arrays_of`; what came is not the published set.
    """
    asked, target = source_of(name), folder or files_of(name)[-1].parent
    by_hand = name == "alzheimer_mri"
    if source is not None and not by_hand:
        raise ValueError(f"{name} comes from {asked.origin}; a source is named for alzheimer_mri only, leave it out")
    try:
        arrays = from_pictures(source) if by_hand else FETCH[name](name)
        odd = other_rows(name, arrays)
    except Exception as error:  # no package, no network: both raise many kinds
        install = f'pip install "{asked.needs}", then ' if asked.needs else ""
        command = f"jaxpu data fetch {name}{' --source PATH' * by_hand}"
        raise ValueError(
            f"{name} could not be had from {asked.origin} (about {asked.megabytes} MB): {error}. "
            f"With a network: {install}{command}, which keeps it in {target}; or put {files_of(name)[0].name} into a "
            f"folder and set JAXPU_DATA_DIR to it (now {_ready()})"
        ) from None
    if odd:
        raise ValueError(f"{name} from {asked.origin} is not the published set ({'; '.join(odd)}); it is not kept")
    return write(name, arrays, target)


def _ready() -> str:
    """What JAXPU_DATA_DIR says, in words."""
    folder = os.environ.get("JAXPU_DATA_DIR")
    if not folder:
        return "not set"
    return folder if Path(folder).expanduser().is_dir() else f"{folder}, which is no folder"


def from_tfds(name: str) -> Held:
    """Images by ``tensorflow_datasets.data_source``; by OpenML, or from the authors' archive, where that cannot."""
    if (rows := _data_source(name)) is None:
        return from_openml(name) if name in OPENML else archives.photographs()
    arrays = {f"x_{part}": _stacked(row["image"] for row in rows[part]) for part in ("train", "test")}
    labels = {f"y_{part}": np.array([row["label"] for row in rows[part]], np.uint8) for part in ("train", "test")}
    return arrays | labels


def _data_source(name: str) -> Any:
    """A set by TensorFlow Datasets; None without it, and where it would want TensorFlow to unpack the set first."""
    try:
        import tensorflow_datasets as tfds  # pyright: ignore[reportMissingImports]  # an extra, slow to import
    except ImportError:
        return None
    if importlib.util.find_spec("tensorflow") is not None:
        return tfds.data_source(name)
    try:
        return tfds.data_source(name, download=False)
    except (AssertionError, NotImplementedError, ValueError):  # it is not there, unpacked
        return None


def _stacked(images: Iterable[Any]) -> np.ndarray:
    """Images as (n, height, width) if they are grey, or (n, height, width, 3)."""
    x = np.stack([np.asarray(image, np.uint8) for image in images])
    return x[..., 0] if x.ndim == 4 and x.shape[-1] == 1 else x


def from_openml(name: str) -> Held:
    """Tables and grey images by ``fetch_openml``; its letters and numbers back from the codes that it returns."""
    from sklearn.datasets import fetch_openml  # takes a second to import

    got: Any = fetch_openml(data_id=OPENML[name], as_frame=False, parser="liac-arff", n_retries=1)
    names, target = [str(n) for n in got.feature_names], np.asarray(got.target).astype(str)
    if name in ("mnist", "fashion_mnist"):
        x, y = got.data.astype(np.uint8).reshape(-1, 28, 28), target.astype(np.uint8)
        return {"x_train": x[:-10_000], "y_train": y[:-10_000], "x_test": x[-10_000:], "y_test": y[-10_000:]}
    if name == "spambase":
        x, classes, y = got.data.astype(np.float32), ["nonspam", "spam"], target == "1"
    else:
        letters = np.stack([_letters(got, i, feature) for i, feature in enumerate(names)], axis=1)
        x, classes, y = (_mushrooms if name == "mushrooms" else _connect4)(letters, target)
    return {"X": x, "y": y.astype(np.int8), "classes": np.array(classes), "feature_names": np.array(names)}


def _letters(got: Any, column: int, feature: str) -> np.ndarray:
    """One column as its letters, "?" where it is missing."""
    choices = np.array([str(value).strip("'") for value in got.categories[feature]] + ["?"])
    codes = np.where(np.isnan(got.data[:, column]), len(choices) - 1, got.data[:, column])
    return choices[codes.astype(int)]


def _mushrooms(letters: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, list[str], np.ndarray]:
    return letters.astype("U1").view(np.uint32).astype(np.uint8), ["e", "p"], np.char.strip(target, "'") == "p"


def _connect4(letters: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Positions as b = 0, x = 1, o = -1; the copy there writes b, o, x as 0, 1, 2, and classes in any way."""
    x = np.select([np.isin(letters, ["x", "2"]), np.isin(letters, ["o", "1"])], [1, -1], 0).astype(np.int8)
    if not ((x == 1).sum(axis=1) == 4).all() or not ((x == -1).sum(axis=1) == 4).all():
        raise ValueError("expected four pieces of each player in every position; the coding of the source has changed")
    values, counts = np.unique(target, return_counts=True)
    ranks = dict(zip(values[np.argsort(-counts)], range(3), strict=True))  # wins, losses and draws differ in number
    return x, ["win", "loss", "draw"], np.array([ranks[value] for value in target])


def from_reviews(name: str) -> Held:
    """Film reviews by TensorFlow Datasets, or from their authors' archive, as sentence embeddings."""
    if (rows := _data_source("imdb_reviews")) is None:
        rows_of: Any = archives.reviews()
    else:
        rows_of = {part: [(row["text"], row["label"]) for row in rows[part]] for part in ("train", "test")}
    arrays: Held = {"classes": np.array(["neg", "pos"])}
    for part, read_rows in rows_of.items():
        texts = [text.decode() if isinstance(text, bytes) else str(text) for text, _ in read_rows]
        arrays |= {f"x_{part}": embedded(texts), f"y_{part}": np.array([label for _, label in read_rows], np.int8)}
    return arrays


def from_newsgroups(name: str) -> Held:
    """Posts by scikit-learn, split by date, with headers and quotes, as sentence embeddings."""
    from sklearn.datasets import fetch_20newsgroups  # takes a second to import

    arrays: Held = {}
    for part in ("train", "test"):
        got: Any = fetch_20newsgroups(subset=part, shuffle=False)
        arrays |= {f"x_{part}": embedded(got.data), f"y_{part}": np.asarray(got.target, np.int8)}
        arrays["classes"] = np.array(got.target_names)
    return arrays


def embedded(texts: Sequence[str]) -> np.ndarray:
    """Sentence embeddings of unit length, (n, 384) in half precision, which costs a cosine of 1e-6 at most."""
    from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]  # an extra

    model = SentenceTransformer(ENCODER)
    return np.asarray(model.encode(list(texts), batch_size=64, normalize_embeddings=True)).astype(np.float16)


def from_pictures(source: Path | None) -> Held:
    """Slices of brains from class folders with pictures, a Parquet file, or a folder of such files."""
    if source is None:
        raise ValueError("it needs an account there, so download it by hand and name what you have")
    tables = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    rows = [row for table in tables for row in _rows_of_parquet(table)] if tables else _rows_of_folders(source)
    names = sorted({label for label, _ in rows})
    return {
        "x": np.stack([_grey(data) for _, data in rows]),
        "y": np.array([names.index(label) for label, _ in rows], np.int8),
        "classes": np.array(names),
    }


MRI = ("MildDemented", "ModerateDemented", "NonDemented", "VeryMildDemented")
"""The classes in the order of the Parquet files' numbers."""


def _rows_of_folders(folder: Path) -> list[tuple[str, bytes]]:
    files = sorted(file for file in folder.glob("*/*") if file.suffix.lower() in (".jpg", ".jpeg", ".png"))
    rows = [(file.parent.name.replace("_", "").replace(" ", ""), file.read_bytes()) for file in files]
    if {label for label, _ in rows} != set(MRI):
        raise ValueError(
            f"{folder} must hold a folder of pictures for each of {', '.join(MRI)}; got "
            f"{', '.join(sorted({label for label, _ in rows})) or 'none'}"
        )
    return rows


def _rows_of_parquet(file: Path) -> list[tuple[str, bytes]]:
    import polars as pl

    table = pl.read_parquet(file)
    return [(MRI[label], image["bytes"]) for image, label in table.select("image", "label").iter_rows()]


def _grey(data: bytes) -> np.ndarray:
    from PIL import Image  # comes with Matplotlib

    return np.asarray(Image.open(io.BytesIO(data)).convert("L"), np.uint8)


FETCH: dict[str, Callable[[str], Held]] = {
    "spambase": from_openml,
    "mushrooms": from_openml,
    "connect4": from_openml,
    "mnist": from_tfds,
    "fashion_mnist": from_tfds,
    "cifar10": from_tfds,
    "imdb": from_reviews,
    "newsgroups20": from_newsgroups,
}
"""How each set is fetched; pictures that come by hand are not here."""
