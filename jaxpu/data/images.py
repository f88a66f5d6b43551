"""Image data that must be fetched first: from a folder of .npz files, or from OpenML by way of scikit-learn.

``JAXPU_DATA_DIR`` names the folder; a file ``<name>.npz`` in it holds ``x_train`` (n, height, width) in 0..255,
``y_train`` (n,), ``x_test`` and ``y_test``. Without it OpenML is asked, once: scikit-learn keeps a copy (in
``~/scikit_learn_data``, or where ``SCIKIT_LEARN_DATA`` says).
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int8, UInt8

from jaxpu.data.dataset import Dataset, first_line

OPENML = {"mnist": "mnist_784", "fashion_mnist": "Fashion-MNIST"}
"""Names at OpenML, version 1 of each: 60,000 rows of training, then 10,000 of test."""
TRAINING_ROWS = 60_000


class Images(NamedTuple):
    """Grey images in 0..255 with their classes 0..9, the official split kept."""

    x_train: UInt8[np.ndarray, "n height width"]
    y_train: Int8[np.ndarray, " n"]
    x_test: UInt8[np.ndarray, "m height width"]
    y_test: Int8[np.ndarray, " m"]


def mnist(*, rows: int | None = None) -> Dataset:
    """Handwritten digits as 28 x 28 grey values in [-1, 1]; positive = even digits.

    Args:
        rows: use the first so many training images, and a sixth as many test images; None uses all 60,000.

    Returns:
        x (n, 28, 28), not to be standardised further, with the official test split.

    Raises:
        ValueError: The images are neither in ``JAXPU_DATA_DIR`` nor to be had from OpenML, or there are fewer rows.
    """
    return _dataset(
        "mnist", mnist.__doc__, (0, 2, 4, 6, 8), rows, "LeCun, Cortes, Burges (1998), MNIST", "CC BY-SA 3.0"
    )


def fashion_mnist(*, rows: int | None = None) -> Dataset:
    """Pieces of clothing as 28 x 28 grey values in [-1, 1]; positive = worn above the waist.

    The positive classes are T-shirt, pullover, dress, coat and shirt (0, 2, 3, 4, 6).

    Args:
        rows: use the first so many training images, and a sixth as many test images; None uses all 60,000.

    Returns:
        x (n, 28, 28), not to be standardised further, with the official test split.

    Raises:
        ValueError: The images are neither in ``JAXPU_DATA_DIR`` nor to be had from OpenML, or there are fewer rows.
    """
    source = "Xiao, Rasul, Vollgraf (2017), Fashion-MNIST, arXiv 1708.07747"
    return _dataset("fashion_mnist", fashion_mnist.__doc__, (0, 2, 3, 4, 6), rows, source, "MIT (Zalando SE)")


def _dataset(
    name: str, doc: str | None, positive: Sequence[int], rows: int | None, source: str, licence: str
) -> Dataset:
    images = _first(read_images(name), rows)
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
    )


def scaled(grey: Float32[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """Grey values 0..255 as (g / 255 - 0.5) / 0.5, in [-1, 1].

    >>> scaled(np.float32([0, 255])).tolist()
    [-1.0, 1.0]
    """
    return (grey / 255 - 0.5) / 0.5


def _first(images: Images, rows: int | None) -> Images:
    if rows is None:
        return images
    most = len(images.x_train)
    if not 6 <= rows <= most:
        raise ValueError(f"rows is {rows}, expected 6 to {most}, or none for all")
    test = rows // 6
    return Images(images.x_train[:rows], images.y_train[:rows], images.x_test[:test], images.y_test[:test])


def read_images(name: str) -> Images:
    """The images of one set, from ``JAXPU_DATA_DIR`` or OpenML.

    Raises:
        ValueError: as the module says, with what to do.
    """
    folder = os.environ.get("JAXPU_DATA_DIR")
    file = Path(folder or ".") / f"{name}.npz"
    return _from_file(file) if folder and file.exists() else _from_openml(name, file)


def _from_file(file: Path) -> Images:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            x_train, y_train, x_test, y_test = (arrays[k] for k in Images._fields)
    except Exception as error:  # zipfile, zlib and lzma raise kinds of their own for a damaged file
        raise ValueError(f"{file} cannot be read ({error}); replace it, or unset JAXPU_DATA_DIR") from None
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
