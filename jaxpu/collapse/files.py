"""Scores and labels that another program wrote, in a CSV, Parquet or npz file: checked before they are judged."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl
from jaxtyping import Float, Int

from jaxpu.data import cells, files
from jaxpu.data.labels import coded

ScoresError: TypeAlias = cells.TableError
"""A file of scores that cannot be judged; the message says what was expected, what came, and what to do."""


class Scores(NamedTuple):
    """What a file holds: scores (epochs, n), one epoch if it has none, labels (n,), and the epochs' names."""

    scores: Float[np.ndarray, "epochs n"]
    labels: Int[np.ndarray, " n"]
    epochs: list[str]


def read_scores(
    path: str | Path,
    *,
    scores: str = "score",
    labels: str = "label",
    epoch: str | None = None,
    observed: bool = False,
) -> Scores:
    """Read scores and labels.

    A table has a row an example, or with ``epoch`` a row an example and epoch, the examples of every epoch in the same
    order; epochs are put in the order of their numbers, and keep their names. An npz has an array (n,) or (epochs, n)
    of scores and one (n,) of labels. A score that is NaN, infinite or left empty is a finding, not an error.

    Args:
        path: the file. scores, labels: names of the columns or arrays. epoch: name of the column of epochs.
        observed: whether labels say which rows are labeled, in a table in any two values, or one and blanks.

    Raises:
        ScoresError: the file cannot be read, a name is not in it, labels are not 0 and 1, epochs do not match.
    """
    path = files.expanded(path)
    if files.ending(path) in files.ARRAYS:
        found = _arrays(path, scores, labels, epoch)
    else:
        found = _table(path, scores, labels, epoch, observed)
    if not found.scores.size:
        raise ScoresError(f"{path} holds no row")
    if np.isnan(found.labels).any():
        count = int(np.isnan(found.labels).sum())
        raise ScoresError(f"{path}: {labels!r} is empty in {count} rows; fill or drop them")
    if not np.isin(found.labels, (0, 1)).all():
        odd = np.unique(found.labels[~np.isin(found.labels, (0, 1))])[:5].tolist()
        raise ScoresError(f"{path}: {labels!r} must hold 0 and 1 only, got {odd}; map the positive class to 1")
    return found._replace(labels=found.labels.astype(int))


def _table(path: Path, scores: str, labels: str, epoch: str | None, observed: bool) -> Scores:
    columns = files.read_table(path)
    options = {"--scores": scores, "--labels": labels} | ({"--epoch": epoch} if epoch else {})
    for option, name in options.items():
        if name not in columns:
            raise ScoresError(f"{path} has no column {name!r}; name it with {option}, of {cells.listed(columns)}")
    values = cells.numbers(columns[scores], f"{path}: column {scores!r}")
    what = f"{path}: column {labels!r}"
    if observed:
        known = coded(columns[labels].to_list(), column=what, blank=True, meaning="labeled", setting="1 and 0")
        truth = np.asarray(known, float)
    else:
        truth = cells.numbers(columns[labels], what)
    if epoch is None:
        return Scores(values[None], truth, [""])
    names = columns[epoch].cast(pl.String).fill_null("")
    order = sorted(dict.fromkeys(names), key=_in_order(names))
    rows = {name: np.flatnonzero((names == name).to_numpy()) for name in order}
    first = truth[rows[order[0]]]
    for name in order:
        if not np.array_equal(truth[rows[name]], first, equal_nan=True):
            raise ScoresError(
                f"{path}: {epoch} {name} has other labels than {epoch} {order[0]}: every epoch "
                f"needs the same {len(first)} examples in the same order"
            )
    return Scores(np.stack([values[rows[name]] for name in order]), first, order)


def _in_order(names: pl.Series) -> Callable[[str], float]:
    """Numbers by value; if any name is no number, all in the order of the file."""
    try:
        numbers = {name: float(name) for name in names.unique()}
    except ValueError:
        numbers = {"": math.nan}
    return numbers.__getitem__ if all(map(math.isfinite, numbers.values())) else lambda name: 0.0


def _arrays(path: Path, scores: str, labels: str, epoch: str | None) -> Scores:
    if epoch:
        raise ScoresError(f"{path}: --epoch names a column of a table; in an npz the scores have shape (epochs, n)")
    arrays = files.read_arrays(path, [scores, labels])
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise ScoresError(f"{path}: array {name!r} must be numbers, got {array.dtype}")
    values, truth = arrays[scores].astype(np.float64), arrays[labels].astype(np.float64)
    if truth.ndim != 1 or values.ndim not in (1, 2) or values.shape[-1] != truth.size:
        raise ScoresError(
            f"{path}: expected scores (n,) or (epochs, n) and labels (n,); got {values.shape} and {truth.shape}"
        )
    values = np.atleast_2d(values)
    return Scores(values, truth, [str(i + 1) for i in range(len(values))] if len(values) > 1 else [""])
