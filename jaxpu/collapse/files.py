"""Scores and labels that another program wrote: CSV or npz, checked before they are judged."""

import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float, Int


class ScoresError(ValueError):
    """A file of scores that cannot be judged; the message says what was expected, what came, and what to do."""


class Scores(NamedTuple):
    """What a file holds: scores (epochs, n), one epoch if it has none, labels (n,), and the epochs' names."""

    scores: Float[np.ndarray, "epochs n"]
    labels: Int[np.ndarray, " n"]
    epochs: list[str]


def read_scores(path: Path, *, scores: str = "score", labels: str = "label", epoch: str | None = None) -> Scores:
    """Read scores and labels.

    A CSV has a row an example, or with ``epoch`` a row an example and epoch, the examples of every epoch in the same
    order. An npz has an array (n,) or (epochs, n) of scores and one (n,) of labels.

    Args:
        path: the file. scores, labels: names of the columns or arrays. epoch: name of the column of epochs.

    Raises:
        ScoresError: the file cannot be read, a name is not in it, labels are not 0 and 1, epochs do not match.
    """
    readers = {".csv": _csv, ".npz": _npz}
    if path.suffix not in readers:
        raise ScoresError(f"{path}: expected a .csv or .npz file, got {path.suffix or 'no ending'!r}")
    if not path.is_file():
        raise ScoresError(f"no file at {path}")
    found = readers[path.suffix](path, scores, labels, epoch)
    if not np.isin(found.labels, (0, 1)).all():
        odd = np.unique(found.labels[~np.isin(found.labels, (0, 1))])[:5].tolist()
        raise ScoresError(f"{path}: {labels!r} must hold 0 and 1 only, got {odd}; map the positive class to 1")
    if not found.scores.size:
        raise ScoresError(f"{path} holds no row")
    return found._replace(labels=found.labels.astype(int))


def _csv(path: Path, scores: str, labels: str, epoch: str | None) -> Scores:
    try:
        frame = pl.read_csv(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise ScoresError(f"{path} is not a CSV: {str(error).splitlines()[0]}") from None
    columns = {"--scores": scores, "--labels": labels} | ({"--epoch": epoch} if epoch else {})
    for option, name in columns.items():
        if name not in frame.columns:
            raise ScoresError(f"{path} has no column {name!r}; name it with {option}, of {', '.join(frame.columns)}")
    if frame.is_empty():
        raise ScoresError(f"{path} holds no row")
    for name in (scores, labels):
        if not frame[name].dtype.is_numeric() and frame[name].dtype != pl.Boolean:
            raise ScoresError(f"{path}: column {name!r} must be numbers, got for example {frame[name][0]!r}")
        if frame[name].null_count():
            raise ScoresError(f"{path}: column {name!r} is empty in {frame[name].null_count()} rows; fill or drop them")
    if epoch is None:
        return Scores(frame[scores].cast(pl.Float64).to_numpy()[None], frame[labels].cast(pl.Float64).to_numpy(), [""])
    parts = frame.partition_by(epoch, maintain_order=True)
    truth = [part[labels].cast(pl.Float64).to_numpy() for part in parts]
    for part, seen in zip(parts, truth, strict=True):
        if len(seen) != len(truth[0]) or (seen != truth[0]).any():
            raise ScoresError(
                f"{path}: {epoch} {part[epoch][0]} has other labels than {epoch} {parts[0][epoch][0]}: every epoch "
                f"needs the same {len(truth[0])} examples in the same order"
            )
    values = np.stack([part[scores].cast(pl.Float64).to_numpy() for part in parts])
    return Scores(values, truth[0], [str(part[epoch][0]) for part in parts])


def _npz(path: Path, scores: str, labels: str, epoch: str | None) -> Scores:
    if epoch:
        raise ScoresError(f"{path}: --epoch names a column of a CSV; in an npz the scores have shape (epochs, n)")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise ScoresError(f"{path} is not an npz of plain arrays: {error}") from None
    for option, name in {"--scores": scores, "--labels": labels}.items():
        if name not in arrays:
            raise ScoresError(f"{path} has no array {name!r}; name it with {option}, of {', '.join(arrays)}")
        if arrays[name].dtype.kind not in "biuf":
            raise ScoresError(f"{path}: array {name!r} must be numbers, got {arrays[name].dtype}")
    values, truth = arrays[scores].astype(np.float64), arrays[labels]
    if truth.ndim != 1 or values.ndim not in (1, 2) or values.shape[-1] != truth.size:
        raise ScoresError(
            f"{path}: expected scores (n,) or (epochs, n) and labels (n,); got {values.shape} and {truth.shape}"
        )
    values = np.atleast_2d(values)
    return Scores(values, truth, [str(i + 1) for i in range(len(values))] if len(values) > 1 else [""])
