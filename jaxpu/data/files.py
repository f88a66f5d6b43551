"""The one reader of tables that other programs wrote: CSV, Parquet and npz.

A path is a path and never a pattern, and a leading ``~`` is the home folder. Cells of a CSV are read as text, so that
one rule says what is a number, whichever column it stands in. Every error is one line that names the file.
"""

import contextlib
import csv
import gzip
import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl

from jaxpu.data.cells import TableError, cut, listed
from jaxpu.errors import repeated

TEXT, PARQUET, ARRAYS = (".csv", ".tsv", ".txt"), (".parquet", ".pq"), (".npz",)
"""Endings of file names; those of text may be followed by .gz."""

MOST_BYTES = 4 << 30
"""What a compressed file may hold."""

SEPARATORS = ",;\t| "

LOOKED_AT = 1 << 16
"""Bytes that tell the separator."""


def expanded(path: str | Path) -> Path:
    """The path with a leading ``~`` as the home folder.

    Raises:
        TableError: nobody knows where that is.

    >>> expanded("a[1].csv").name
    'a[1].csv'
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise TableError(f"{path}: {error}; write the folder out") from None


def ending(path: Path) -> str:
    """What the name says of the kind of file, in lower case and without .gz.

    >>> ending(Path("a.CSV.gz"))
    '.csv'
    """
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def stem(path: str | Path) -> str:
    """The name of a file without folder and endings.

    >>> stem("~/data/my.csv.gz")
    'my'
    """
    name = Path(path)
    return (name.with_suffix("") if name.suffix.lower() == ".gz" else name).stem


def read_table(path: str | Path, told: list[str] | None = None) -> dict[str, pl.Series]:
    """Read a CSV (separated by any of ``, ; | space`` or tabs, gzipped or not) or a Parquet file.

    Args:
        path: the file. told: where given, text that is no Unicode is read as Windows-1252, and that is told here.

    Returns:
        The columns by name. Those of a CSV are text without the blanks around it, None where empty.

    Raises:
        TableError: there is no such file, it is damaged, or columns have no name or the same.
    """
    path = _file(path, TEXT + PARQUET + ARRAYS)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}") from None
    frame = _parquet(path, raw) if ending(path) in PARQUET else _text(path, raw, told)
    if frame.is_empty():
        raise TableError(f"{path} holds no row")
    return {name: frame[name] for name in frame.columns}


def read_arrays(path: str | Path, names: Iterable[str], optional: Iterable[str] = ()) -> dict[str, np.ndarray]:
    """Read the named arrays of an npz, and no others.

    Raises:
        TableError: there is no such file, it is damaged, or a name that is not optional is not in it.
    """
    path, names = _file(path, ARRAYS), list(names)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            held = list(stored.files)
            arrays = {name: stored[name] for name in (*names, *optional) if name in held}
    except Exception as error:  # a damaged archive raises kinds of zipfile, zlib, struct, tokenize and NumPy
        raise TableError(f"{path} is not an npz of plain arrays: {error or type(error).__name__}") from None
    for name in names:
        if name not in arrays:
            raise TableError(f"{path} has no array {name!r}; it has {listed(held)}")
    return arrays


def _file(path: str | Path, endings: tuple[str, ...]) -> Path:
    path = expanded(path)
    if ending(path) not in endings:
        got = path.suffix or "no ending"
        raise TableError(f"{path}: expected a file that ends in {', '.join(endings)}; got {got!r}")
    try:
        if not path.is_file():
            raise TableError(f"{path} is a folder; name a file" if path.is_dir() else f"no file at {path}")
    except (OSError, ValueError) as error:  # a name that is too long, or holds a zero byte
        raise error if isinstance(error, TableError) else TableError(f"no file at {str(path)!r}: {error}") from None
    return path


def _parquet(path: Path, raw: bytes) -> pl.DataFrame:
    try:
        return pl.read_parquet(io.BytesIO(raw))
    except (Exception, pl.exceptions.PanicException) as error:  # the latter is no Exception
        raise TableError(f"{path} is not a Parquet file, or damaged: {error}") from None


def _text(path: Path, raw: bytes, told: list[str] | None = None) -> pl.DataFrame:
    raw = _decoded(path, _unpacked(path, raw), told).encode()
    separator = _separator(raw)
    try:
        # no schema is guessed, and the header is a row like the others: polars would rename what stands twice
        frame = pl.read_csv(io.BytesIO(raw), separator=separator, has_header=False, infer_schema=False)
    except (Exception, pl.exceptions.PanicException) as error:
        raise TableError(f"{path} is not a CSV: {_why(raw, separator) or str(error).partition(chr(10))[0]}") from None
    cells = frame.with_columns(pl.all().str.strip_chars()).with_columns(pl.all().replace("", None))
    names = [str(name or "") for name in cells.row(0)]
    _check_names(path, names)
    cells = cells.slice(1).rename(dict(zip(frame.columns, names, strict=True)))
    last = cells.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
    return cells.head(int(last[-1]) + 1 if len(last) else 0)  # empty lines at the end are no rows


def _unpacked(path: Path, raw: bytes) -> bytes:
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        with gzip.open(io.BytesIO(raw)) as file:
            raw = file.read(MOST_BYTES + 1)
    except Exception as error:  # EOFError, zlib.error, BadGzipFile
        raise TableError(f"{path} is damaged: {error}") from None
    if len(raw) > MOST_BYTES:
        raise TableError(f"{path} holds more than {MOST_BYTES >> 30} GiB; take fewer rows")
    return raw


def _decoded(path: Path, raw: bytes, told: list[str] | None) -> str:
    if b"\0" in raw[:LOOKED_AT] and raw[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise TableError(f"{path} is not a CSV: byte {raw.index(0)} is zero, which no text has; is it another format?")
    coding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(coding)
    except UnicodeDecodeError as error:
        if told is not None and coding != "utf-16" and (text := _windows(raw)) is not None:
            told.append(f"{path.name} is not UTF-8, and was read as Windows-1252: check letters beyond a to z")
            return text
        raise TableError(
            f"{path} is not a CSV: byte {error.start} is not {coding.removesuffix('-sig').upper()}; save it as UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _windows(raw: bytes) -> str | None:
    """Text in Windows-1252, unless it has signs that no text has."""
    try:
        text = raw.decode("cp1252").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return None
    return None if any(ord(sign) < 32 and sign not in "\n\t\f" for sign in set(text)) else text


def _separator(raw: bytes) -> str:
    """The separator that cuts the first lines into the most cells, the same number in each."""
    text = raw[:LOOKED_AT].decode(errors="ignore")
    widths = {one: _widths(text, one) for one in SEPARATORS}
    widths = {one: (found if len(raw) <= LOOKED_AT else found[:-1])[:20] for one, found in widths.items()}
    several = [one for one in SEPARATORS if widths[one] and widths[one][0] > 1]
    even = [one for one in several if len(set(widths[one])) == 1]
    strong = [one for one in even or several if one != " "] or even or several
    return max(strong, key=lambda one: widths[one][0], default=",")


def _widths(text: str, separator: str) -> list[int]:
    """Cells of each line, empty lines left out, up to one that cannot be read."""
    found: list[int] = []
    with contextlib.suppress(csv.Error):
        found.extend(len(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row)
    return found


def _why(raw: bytes, separator: str) -> str:
    """The first line with more cells than the header, in words; nothing if there is none."""
    widths = _widths(raw.decode(errors="ignore"), separator)
    more = [row for row, width in enumerate(widths) if width > widths[0]]
    if not more:
        return ""
    return f"row {more[0]} has {widths[more[0]]} cells where the header has {widths[0]}; quote cells with {separator!r}"


def _check_names(path: Path, names: list[str]) -> None:
    if not all(names):
        raise TableError(
            f"{path}: column {names.index('') + 1} of {len(names)} has no name; name it, or drop it "
            "(pandas writes its index so: index=False)"
        )
    if twice := repeated(names):
        raise TableError(f"{path} has the column {cut(twice[0])} twice; rename or drop one")
