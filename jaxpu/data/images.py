"""Image data that must be fetched first: from a folder of .npz files, from OpenML, or by TensorFlow Datasets.

``JAXPU_DATA_DIR`` names the folder; a file ``<name>.npz`` in it holds ``x_train`` (n, height, width) or (n, height,
width, 3) in 0..255, ``y_train`` (n,), ``x_test`` and ``y_test``. A file ``<name>_jpeg.npz`` has JPEG files in place of
the pixels: those of training one after the other in ``jpeg_train``, bounded by ``offsets_train`` (n + 1,), and so for
test. Without either, grey images are asked from OpenML, once: scikit-learn keeps a copy (in ``~/scikit_learn_data``,
or where ``SCIKIT_LEARN_DATA`` says). Those in colour come from TensorFlow Datasets (``pip install "jaxpu[data]"``),
which keeps its copy in ``~/tensorflow_datasets``.
"""

import io
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int8, UInt8

from jaxpu.data.dataset import Dataset, first_line

OPENML = {"mnist": "mnist_784", "fashion_mnist": "Fashion-MNIST"}
"""Names at OpenML, version 1 of each: 60,000 rows of training, then 10,000 of test."""
TRAINING_ROWS = 60_000


class Images(NamedTuple):
    """Images in 0..255, grey or in three colours, with their classes 0..9, the official split kept."""

    x_train: UInt8[np.ndarray, "n height width *colours"]
    y_train: Int8[np.ndarray, " n"]
    x_test: UInt8[np.ndarray, "m height width *colours"]
    y_test: Int8[np.ndarray, " m"]


def mnist(*, rows: int | None = None, test_rows: int | None = None) -> Dataset:
    """Handwritten digits as 28 x 28 grey values in [-1, 1]; positive = even digits.

    Args:
        rows: use the first so many training images; None uses all 60,000. test_rows: use the first so many test images;
            None uses a sixth as many as of training, all 10,000 if rows is None.

    Returns:
        x (n, 28, 28), not to be standardised further, with the official test split.

    Raises:
        ValueError: The images are neither in ``JAXPU_DATA_DIR`` nor to be had from OpenML, or there are fewer rows.
    """
    return _dataset(
        "mnist",
        mnist.__doc__,
        (0, 2, 4, 6, 8),
        (rows, test_rows),
        "LeCun, Cortes, Burges (1998), MNIST",
        "CC BY-SA 3.0",
    )


def fashion_mnist(*, rows: int | None = None, test_rows: int | None = None) -> Dataset:
    """Pieces of clothing as 28 x 28 grey values in [-1, 1]; positive = worn above the waist.

    The positive classes are T-shirt, pullover, dress, coat and shirt (0, 2, 3, 4, 6).

    Options, shapes and errors: as of :func:`mnist`.
    """
    source = "Xiao, Rasul, Vollgraf (2017), Fashion-MNIST, arXiv 1708.07747"
    return _dataset(
        "fashion_mnist", fashion_mnist.__doc__, (0, 2, 3, 4, 6), (rows, test_rows), source, "MIT (Zalando SE)"
    )


def cifar10(*, rows: int | None = None, test_rows: int | None = None) -> Dataset:
    """Photographs as 32 x 32 values of three colours in [-1, 1]; positive = vehicles, the others are animals.

    The positive classes are airplane, automobile, ship and truck (0, 1, 8, 9).

    Options and errors: as of :func:`mnist`, of 50,000 training images. Returns x (n, 32, 32, 3).
    """
    source = "Krizhevsky (2009), Learning Multiple Layers of Features from Tiny Images"
    return _dataset(
        "cifar10", cifar10.__doc__, (0, 1, 8, 9), (rows, test_rows), source, "none stated; free use with citation"
    )


def _dataset(
    name: str,
    doc: str | None,
    positive: Sequence[int],
    rows: tuple[int | None, int | None],
    source: str,
    licence: str,
) -> Dataset:
    images = _first(read_images(name), *rows)
    x = np.concatenate([images.x_train, images.x_test]).astype(np.float32)
    classes = np.concatenate([images.y_train, images.y_test])
    return Dataset(
        name=name,
        x=scaled(x),
        y=np.isin(classes, positive).astype(np.int8),
        description=first_line(doc),
        source=source,
        licence=licence,
        standardize=False,
        test_rows=np.arange(len(images.x_train), len(x)),
        classes=classes,
    )


def scaled(grey: Float32[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """Grey values 0..255 as (g / 255 - 0.5) / 0.5, in [-1, 1].

    >>> scaled(np.float32([0, 255])).tolist()
    [-1.0, 1.0]
    """
    return (grey / 255 - 0.5) / 0.5


def _first(images: Images, rows: int | None, test_rows: int | None) -> Images:
    most, most_test = len(images.x_train), len(images.x_test)
    if rows is not None and not 6 <= rows <= most:
        raise ValueError(f"rows is {rows}, expected 6 to {most}, or none for all")
    if test_rows is not None and not 1 <= test_rows <= most_test:
        raise ValueError(f"test_rows is {test_rows}, expected 1 to {most_test}, or none for a sixth of rows")
    test = test_rows or (most_test if rows is None else rows // 6)
    return Images(images.x_train[:rows], images.y_train[:rows], images.x_test[:test], images.y_test[:test])


def read_images(name: str) -> Images:
    """The images of one set, from ``JAXPU_DATA_DIR``, OpenML or TensorFlow Datasets.

    Raises:
        ValueError: as the module says, with what to do.
    """
    for found in files_of(name):
        if found.exists():
            return _from_file(found)
    file = Path(os.environ.get("JAXPU_DATA_DIR") or ".") / f"{name}.npz"
    return _from_openml(name, file) if name in OPENML else _from_tfds(name, file)


def files_of(name: str) -> list[Path]:
    """Where ``JAXPU_DATA_DIR`` may hold the images of one set; nowhere if it is not set."""
    if not (folder := os.environ.get("JAXPU_DATA_DIR")):
        return []
    file = Path(folder).expanduser() / f"{name}.npz"
    return [file, file.with_stem(f"{name}_jpeg")]


def _from_file(file: Path) -> Images:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            x_train, x_test = (_pixels(arrays, part) for part in ("train", "test"))
            y_train, y_test = arrays["y_train"], arrays["y_test"]
    except Exception as error:  # zipfile, zlib and lzma raise kinds of their own for a damaged file
        raise ValueError(f"{file} cannot be read ({error}); replace it, or unset JAXPU_DATA_DIR") from None
    return Images(x_train, y_train.astype(np.int8), x_test, y_test.astype(np.int8))


def _pixels(arrays: Mapping[str, np.ndarray], part: str) -> UInt8[np.ndarray, "n height width *colours"]:
    if f"x_{part}" in arrays:
        return arrays[f"x_{part}"]
    from PIL import Image  # comes with Matplotlib

    data, ends = arrays[f"jpeg_{part}"].tobytes(), arrays[f"offsets_{part}"].tolist()
    files = (io.BytesIO(data[start:end]) for start, end in itertools.pairwise(ends))
    return np.stack([np.asarray(Image.open(file)) for file in files])


def _from_tfds(name: str, file: Path) -> Images:
    try:
        import tensorflow_datasets as tfds  # pyright: ignore[reportMissingImports]  # an extra, slow to import

        source = tfds.data_source(name)
        read = {part: [(row["image"], row["label"]) for row in source[part]] for part in ("train", "test")}
    except Exception as error:  # no package, no network: both raise many kinds
        raise ValueError(
            f"{name} is not at {file} and could not be had from TensorFlow Datasets ({error}): set JAXPU_DATA_DIR to a "
            'folder that holds it, or pip install "jaxpu[data]" and try again with a network'
        ) from None
    arrays = (np.array(values) for part in read.values() for values in zip(*part, strict=True))
    x_train, y_train, x_test, y_test = arrays
    return Images(x_train, y_train.astype(np.int8), x_test, y_test.astype(np.int8))


def _from_openml(name: str, file: Path) -> Images:
    from sklearn.datasets import fetch_openml  # takes a second to import

    try:
        x, y = fetch_openml(OPENML[name], version=1, return_X_y=True, as_frame=False)
    except Exception as error:  # no network raises many kinds
        raise ValueError(
            f"{name} is not at {file} and could not be fetched from OpenML ({error}): "
            "set JAXPU_DATA_DIR to a folder that holds it, or try again with a network"
        ) from None
    x, y = x.astype(np.uint8).reshape(-1, 28, 28), y.astype(np.int8)
    return Images(x[:TRAINING_ROWS], y[:TRAINING_ROWS], x[TRAINING_ROWS:], y[TRAINING_ROWS:])
