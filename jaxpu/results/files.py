"""Files that are whole or not there, and the lock of a results folder."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl


class ResultsError(RuntimeError):
    """A results folder that cannot be used as asked; the message says what to do."""


class NothingFinished(ResultsError):
    """A sweep of which no run finished."""


def atomic_write(path: Path, write: Callable[[Path], Any]) -> None:
    """Call ``write`` on a temporary file beside ``path``, flush it to disk, and move it into place.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> atomic_write(folder / "a.txt", lambda p: p.write_text("whole"))
    >>> [p.name for p in folder.iterdir()], (folder / "a.txt").read_text()
    (['a.txt'], 'whole')
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    atomic_write(path, lambda p: p.write_text(text, encoding="utf-8"))


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a table atomically: parquet or CSV by the name's ending; CSV numbers with six digits."""
    if path.suffix == ".csv":
        atomic_write(path, lambda p: frame.write_csv(p, float_precision=6))
    else:
        atomic_write(path, lambda p: frame.write_parquet(p, compression="zstd", compression_level=12))


def write_parameters(folder: Path, run_id: str, parameters: dict[str, Any]) -> None:
    """Keep a run's parameters, a nested dictionary of arrays, as ``parameters/<run_id>.npz``."""

    def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, np.ndarray]:
        leaves: dict[str, np.ndarray] = {}
        for name, value in tree.items():
            path = f"{prefix}{name}"
            leaves |= flat(value, f"{path}/") if isinstance(value, dict) else {path: np.asarray(value)}
        return leaves

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, **flat(parameters))  # pyright: ignore[reportArgumentType]  # names of arrays, not options

    atomic_write(folder / "parameters" / f"{run_id}.npz", write)


def read_parameters(folder: Path, run_id: str) -> dict[str, Any]:
    """Read what :func:`write_parameters` kept: what ``Model.apply`` takes.

    Raises:
        ResultsError: if the run kept none.
    """
    path = folder / "parameters" / f"{run_id}.npz"
    if not path.exists():
        raise ResultsError(f"{folder} keeps no parameters of run {run_id}; run with selection.keep_best=true")
    tree: dict[str, Any] = {}
    with np.load(path, allow_pickle=False) as stored:
        for name in stored.files:
            *parents, leaf = name.split("/")
            branch = tree
            for parent in parents:
                branch = branch.setdefault(parent, {})
            branch[leaf] = stored[name]
    return tree


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a results folder for one process.

    Raises:
        ResultsError: if another process holds it, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("w")
    except OSError as error:
        raise ResultsError(f"cannot write to {folder}: {error.strerror}; give another --out") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ResultsError(f"{folder} is being written by another run; wait for it, or give --out") from None
        yield
