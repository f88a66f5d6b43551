"""Image data that must be fetched first, in 0..255 in the files of :mod:`jaxpu.data.sources`."""

import io
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int8, UInt8

from jaxpu.data.dataset import Dataset, first_line
from jaxpu.data.fetching import arrays_of
from jaxpu.data.tables import chosen


class Images(NamedTuple):
    """Images in 0..255, grey or in three colours, with their classes 0..9, the official split kept."""

    x_train: UInt8[np.ndarray, "n height width *colours"]
    y_train: Int8[np.ndarray, " n"]
    x_test: UInt8[np.ndarray, "m height width *colours"]
    y_test: Int8[np.ndarray, " m"]


def mnist(*, rows: int | None = None, test_rows: int | None = None) -> Dataset:
    """Handwritten digits as 28 x 28 grey values in [-1, 1]; positive = even digits.

    As all images here they are kept as bytes (``x``), and are what :meth:`Dataset.features` says.

    Args:
        rows: use the first so many training images; None uses all 60,000. test_rows: use the first so many test images;
            None uses a sixth as many as of training, all 10,000 if rows is None.

    Returns:
        x (n, 28, 28), not to be standardised further, with the official test split.

    Raises:
        ValueError: The images cannot be had (what to do), or there are fewer rows.
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


def cifar10(*, rows: int | None = None, test_rows: int | None = None, unit: int = 0) -> Dataset:
    """Photographs as 32 x 32 values of three colours in [-1, 1]; positive = vehicles, the others are animals.

    The positive classes are airplane, automobile, ship and truck (0, 1, 8, 9).

    Options and errors: as of :func:`mnist`, of 50,000 training images; ``unit`` 1 leaves the values in [0, 1]. Returns
    x (n, 32, 32, 3).
    """
    source = "Krizhevsky (2009), Learning Multiple Layers of Features from Tiny Images"
    return _dataset(
        "cifar10", cifar10.__doc__, (0, 1, 8, 9), (rows, test_rows), source, "none stated; free use with citation", unit
    )


def alzheimer_mri(*, rows: int | None = None, size: int = 128) -> Dataset:
    """Slices of brains, 128 x 128 grey values in [-1, 1]; positive = not demented (3200 of 6400).

    Slices carry no patient's name, so a random split has slices of one patient on both sides.

    Args:
        rows: take so many at random, always the same ones; None takes all.
        size: height and width, 128 or what divides it: means of squares of pixels.

    Returns:
        x (n, size, size), not to be standardised further, without an official test split.

    Raises:
        ValueError: The pictures cannot be had (what to do), there are fewer rows, or the size does not divide 128.
    """
    held = arrays_of("alzheimer_mri")
    x, classes = held["x"], held["classes"].tolist()
    kept = chosen(len(x), rows)
    if not 1 <= size <= x.shape[1] or x.shape[1] % size:
        raise ValueError(f"size is {size}, expected {x.shape[1]} or a number that divides it")
    side = x.shape[1] // size
    grey = x[kept]
    if side > 1:
        grey = scaled(grey.reshape(len(kept), size, side, size, side).mean(axis=(2, 4), dtype=np.float32))
    return Dataset(
        name="alzheimer_mri",
        x=grey,
        levels=_levels() if side == 1 else None,
        y=(held["y"] == classes.index("NonDemented")).astype(np.int8)[kept],
        description=first_line(alzheimer_mri.__doc__),
        source="Falah (2023), Alzheimer MRI, Hugging Face; pictures of Kumar, Shastri (2022), Kaggle",
        licence="Apache-2.0, as stated there",
        standardize=False,
        classes=held["y"].astype(np.int8)[kept],
    )


def _dataset(
    name: str,
    doc: str | None,
    positive: Sequence[int],
    rows: tuple[int | None, int | None],
    source: str,
    licence: str,
    unit: int = 0,
) -> Dataset:
    images = read_images(name, *rows)
    x = np.concatenate([images.x_train, images.x_test])
    classes = np.concatenate([images.y_train, images.y_test])
    return Dataset(
        name=name,
        x=x,
        levels=_levels(unit),
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


def _levels(unit: int = 0) -> Float32[np.ndarray, " 256"]:
    """The feature that each byte stands for, in [-1, 1], or in [0, 1] where ``unit`` is 1."""
    grey = np.arange(256, dtype=np.float32)
    return grey / 255 if unit else scaled(grey)


def read_images(name: str, rows: int | None = None, test_rows: int | None = None) -> Images:
    """The first images of both parts of a set with an official split; the others are not unpacked.

    Raises:
        ValueError: the file is damaged, or there is none and it cannot be fetched (what to do); it has fewer rows.
    """
    held = arrays_of(name)
    most, most_test = len(held["y_train"]), len(held["y_test"])
    if rows is not None and not 6 <= rows <= most:
        raise ValueError(f"rows is {rows}, expected 6 to {most}, or none for all")
    if test_rows is not None and not 1 <= test_rows <= most_test:
        raise ValueError(f"test_rows is {test_rows}, expected 1 to {most_test}, or none for a sixth of rows")
    train, test = rows or most, test_rows or (most_test if rows is None else min(rows // 6, most_test))
    y_train, y_test = held["y_train"][:train].astype(np.int8), held["y_test"][:test].astype(np.int8)
    return Images(_pixels(held, "train", train), y_train, _pixels(held, "test", test), y_test)


def _pixels(arrays: Mapping[str, np.ndarray], part: str, n: int) -> UInt8[np.ndarray, "n height width *colours"]:
    if f"x_{part}" in arrays:
        return arrays[f"x_{part}"][:n]
    from PIL import Image  # comes with Matplotlib

    data, ends = arrays[f"jpeg_{part}"].tobytes(), arrays[f"offsets_{part}"][: n + 1].tolist()
    files = (io.BytesIO(data[start:end]) for start, end in itertools.pairwise(ends))
    return np.stack([np.asarray(Image.open(file)) for file in files])
