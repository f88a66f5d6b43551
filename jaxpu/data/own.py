"""Datasets of your own: from arrays, data frames and files, checked before anything is trained.

    features                        labels
    numbers only, all finite   ──►  y: true labels, or s: labeled / unlabeled, or both   ──►  Dataset

A data frame is anything with ``columns`` whose columns have ``to_numpy``, as those of polars and pandas; neither is
imported for it. Rows in messages count from 0 for arrays and frames, and from 1 below the header for files.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxpu.data import features
from jaxpu.data.dataset import Dataset
from jaxpu.data.labels import coded


def from_arrays(
    x: Any,
    y: Any = None,
    s: Any = None,
    *,
    name: str = "own",
    positive: Any = None,
    labeled: Any = None,
    feature_names: Sequence[str] | None = None,
    test_rows: Any = None,
    standardize: bool = True,
    description: str = "",
) -> Dataset:
    """A dataset from arrays or a data frame.

    Args:
        x: features, an array (n, ...) or a data frame of numbers.
        y: true labels (n,) of two values, or the name of the frame's column that holds them.
        s: observed labels (n,): labeled or unlabeled, which may be blank; or the name of a column.
        name: what the dataset is called. positive: the value of y that means positive. labeled: that of s that means
            labeled; see :func:`jaxpu.data.labels.coded` for those that are known.
        feature_names: of an array without names. test_rows: row numbers of a test set of your own.
        standardize: whether features get zero mean and unit deviation. description: one sentence.

    Returns:
        The dataset; ``feature_names`` are those of the frame. Nothing that was given is changed, or shared.

    Raises:
        ValueError: a feature is no number, or not finite: with its column and row; lengths or labels do not fit.

    Example:
        >>> dataset = from_arrays(np.eye(3), y=["no", "yes", "no"], positive="yes")
        >>> dataset.y.tolist(), dataset.x.shape
        ([0, 1, 0], (3, 3))
        >>> from_arrays([[1.0, 2.0], [3.0, float("nan")]], y=[0, 1])
        Traceback (most recent call last):
        ...
        ValueError: feature 1 is empty or NaN in row 1 (the first is 0); fill it, or drop the row
    """
    if features.is_frame(x):
        columns = features.columns_of(x)
        y, s = (features.taken(columns, one) if isinstance(one, str) else one for one in (y, s))
        values, feature_names = features.stacked(columns, first_row=0), tuple(columns)
    else:
        values = features.of_array(x)
    rows = None if test_rows is None else np.sort(np.asarray(test_rows, np.int64))
    labels = _labels(len(values), ("y", y, positive), ("s", s, labeled), first_row=0)
    return _dataset(
        values, labels, feature_names, name, test_rows=rows, standardize=standardize, description=description
    )


def features_like(dataset: Dataset, x: Any) -> np.ndarray:
    """Further rows with the features of a dataset, (m, ...), not standardised.

    Args:
        dataset: that has the features. x: an array, or a data frame that has columns of their names among others.

    Raises:
        ValueError: other features, or no numbers.

    >>> features_like(from_arrays(np.eye(2), y=[0, 1]), [[1, 2]]).tolist()
    [[1.0, 2.0]]
    """
    if features.is_frame(x):
        columns = features.columns_of(x)
        names = dataset.feature_names or tuple(columns)
        values = features.stacked({name: features.taken(columns, name) for name in names}, first_row=0)
    else:
        values = features.of_array(x)
    if values.shape[1:] != dataset.x.shape[1:]:
        raise ValueError(f"expected rows of shape {dataset.x.shape[1:]} as in {dataset.name}, got {values.shape[1:]}")
    return values


def from_file(
    path: str | Path,
    *,
    label: str = "",
    positive: Any = None,
    observed: str = "",
    labeled: Any = None,
    name: str = "",
) -> Dataset:
    """A dataset from a CSV, Parquet or npz file.

    Every column of a table but ``label`` and ``observed`` is a feature. An npz holds the features as ``x`` (n, ...),
    may hold ``feature_names``, and the labels as arrays of the names given; nothing else of it is read.

    Args:
        path: the file; its name ends in .csv, .tsv, .txt (all also .gz), .parquet, .pq or .npz.
        label: column of the true labels. positive: its value that means positive.
        observed: column that says which rows are labeled. labeled: its value that means so.
        name: what the dataset is called; the file's name if empty.

    Raises:
        ValueError: as :func:`from_arrays`; the file cannot be read, or has no such column.
    """
    from jaxpu.data import files  # polars takes a while to import

    path = files.expanded(path)
    wanted = [column for column in dict.fromkeys((label, observed)) if column]
    if not wanted:
        raise ValueError(f"{path}: say which column holds the labels: label (true ones) or observed (labeled or not)")
    try:
        if files.ending(path) in files.ARRAYS:
            held = files.read_arrays(path, ["x", *wanted], ["feature_names"])
            values, names = features.of_array(held["x"]), held.get("feature_names")
        else:
            columns = files.read_table(path)
            held = {column: features.taken(columns, column) for column in wanted}
            values, names = features.stacked(columns, first_row=1), list(columns)
        first_row = int(files.ending(path) not in files.ARRAYS)
        known, seen = (
            (f"column {label!r}", held.get(label), positive),
            (f"column {observed!r}", held.get(observed), labeled),
        )
        labels = _labels(len(values), known, seen, first_row)
        return _dataset(values, labels, names, name or files.stem(path), description=f"The rows of {path.name}.")
    except ValueError as error:
        raise files.TableError(str(error) if str(path) in str(error) else f"{path}: {error}") from None


def _labels(
    n: int, known: tuple[str, Any, Any], seen: tuple[str, Any, Any], first_row: int
) -> dict[str, np.ndarray | None]:
    """True and observed labels as 0 and 1, from the name, the values and the value that is 1, of each."""
    (y_name, y, positive), (s_name, s, labeled) = known, seen
    if y is not None:
        y = coded(features.plain(y, n, y_name), one=positive, column=y_name, first_row=first_row)
    if s is not None:
        s = features.plain(s, n, s_name)
        s = coded(s, one=labeled, column=s_name, first_row=first_row, meaning="labeled", blank=True)
    return {"y": y, "s": s}


def _dataset(values: np.ndarray, labels: dict[str, Any], names: Any, name: str, **others: Any) -> Dataset:
    if names is not None and (np.ndim(names) != 1 or len(names) != values.shape[-1]):
        raise ValueError(f"expected {values.shape[-1]} feature names, one a feature; got {len(names)}")
    return Dataset(
        name=name, x=values, feature_names=None if names is None else tuple(map(str, names)), **labels, **others
    )
