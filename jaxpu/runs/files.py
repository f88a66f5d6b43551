"""Files that are whole or not there, each with a checksum inside, and the lock of a results folder.

A checksum stands where its format has room that other readers skip, so that every file stays what its name says:

    .parquet  between the last column and the footer      .npz   in the comment behind the archive
    .json     the first entry, "sha256"                   .yaml  the first line, a comment
    .state    in front

It is taken over all the other bytes: one flipped bit anywhere, in the checksum too, is damage.
"""

import contextlib
import fcntl
import hashlib
import io
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

_MARK = b"jaxpu sha256 "
_LENGTH = len(_MARK) + 32


class ResultsError(RuntimeError):
    """A results folder that cannot be used as asked; the message says what to do."""


class Unfinished(ResultsError):
    """Runs are missing; what is there is kept."""


class NothingFinished(Unfinished):
    """An experiment of which no run finished."""


class Damaged(ValueError):
    """A file that is not what was written; ``marked`` says whether it once was a file with a checksum."""

    def __init__(self, message: str, *, marked: bool = True):
        super().__init__(message)
        self.marked = marked


def seal(suffix: str, body: bytes) -> bytes:
    """A file's bytes with their checksum inside.

    Args:
        suffix: the ending of its name, which tells where the checksum goes. body: the file without it.

    >>> seal(".yaml", b"seeds: 8").splitlines()
    [b'# sha256: 4cd9f2c59b7824716379b51310d97d508075cdf70719ea361709f02c0642b7a7', b'seeds: 8']
    >>> unseal(".yaml", seal(".yaml", b"seeds: 8"))
    b'seeds: 8'
    """
    if suffix == ".npz":  # the length of a comment is the last thing before it
        body = body[:-2] + struct.pack("<H", _LENGTH)
    place = _place(suffix, body)
    return body[:place] + _seal(suffix, hashlib.sha256(body)) + body[place:]


def unseal(suffix: str, raw: bytes) -> bytes:
    """The body of a file that :func:`seal` made.

    Raises:
        Damaged: if anything in it has changed, or it never had a checksum.
    """
    length = len(_seal(suffix, hashlib.sha256()))
    place = _place(suffix, raw) - (length if suffix in (".parquet", ".npz") else 0)
    if place >= 0:
        body = raw[:place] + raw[place + length :]
        if raw[place : place + length] == _seal(suffix, hashlib.sha256(body)):
            return body[:-2] + b"\0\0" if suffix == ".npz" else body
    marked = _MARK in raw or b"sha256" in raw[:40]
    raise Damaged("its checksum does not fit" if marked else "it has no checksum", marked=marked)


def _seal(suffix: str, found: "hashlib._Hash") -> bytes:
    if suffix == ".json":
        return f'  "sha256": "{found.hexdigest()}",\n'.encode()
    if suffix == ".yaml":
        return f"# sha256: {found.hexdigest()}\n".encode()
    return _MARK + found.digest()


def _place(suffix: str, raw: bytes) -> int:
    """Where the checksum goes, or where it ends in a file that has one at its back."""
    if suffix == ".parquet":
        footer = int.from_bytes(raw[-8:-4], "little") + 8
        return max(len(raw) - footer, 0)
    if suffix == ".npz":
        return len(raw)
    return 2 if suffix == ".json" else 0


def atomic_write(path: Path, write: Callable[[Path], Any]) -> None:
    """Call ``write`` on a temporary file beside ``path``, flush it to disk, and move it into place.

    Raises:
        ResultsError: if that cannot be; the old file is there then as it was.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> atomic_write(folder / "a.txt", lambda p: p.write_text("whole"))
    >>> [p.name for p in folder.iterdir()], (folder / "a.txt").read_text()
    (['a.txt'], 'whole')
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(temporary)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}; make room there, or give another --out") from None


def write_sealed(path: Path, body: bytes) -> None:
    """Write a file atomically, with its checksum."""
    sealed = seal(path.suffix, body)
    atomic_write(path, lambda p: p.write_bytes(sealed))


def read_sealed(path: Path) -> bytes:
    """The body of a file that :func:`write_sealed` wrote.

    Raises:
        Damaged: it is missing, cannot be read, or is not what was written.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise Damaged(f"{error.strerror}") from None
    return unseal(path.suffix, raw)


def write_text(path: Path, text: str) -> None:
    """Write a text file for people atomically, in UTF-8 and without a checksum."""
    atomic_write(path, lambda p: p.write_text(text, encoding="utf-8"))


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a table atomically: Parquet, with a checksum, or CSV, its numbers with six digits."""
    if path.suffix == ".csv":
        atomic_write(path, lambda p: frame.write_csv(p, float_precision=6))
    else:
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="zstd", compression_level=12)
        write_sealed(path, buffer.getvalue())


def read_frame(path: Path) -> pl.DataFrame:
    """Read a Parquet table that :func:`write_frame` wrote.

    Raises:
        Damaged: it is missing or not what was written.
    """
    return pl.read_parquet(io.BytesIO(read_sealed(path)))


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
