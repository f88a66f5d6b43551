"""The cells of a table: what counts as a number, and how a message shows what does not."""

import itertools
from collections.abc import Collection

import numpy as np
import polars as pl
from jaxtyping import Float64

GAPS = {"", "nan", "+nan", "-nan", "na", "n/a", "<na>", "#n/a", "#na", "#n/a n/a", "null", "none"} | {
    f"{sign}1.#{kind}" for sign in ("", "-") for kind in ("ind", "qnan")
}
"""How programs write a number that is not there, in lower case."""


class TableError(ValueError):
    """A file that cannot be read as a table; the message says what was expected, what came, and what to do."""

    def __init__(self, message: str):
        line = " ".join(message.split())
        super().__init__(line if len(line) <= 1500 else f"{line[:1497]}...")


def numbers(column: pl.Series, where: str, first_row: int = 1) -> Float64[np.ndarray, " n"]:
    """A column as numbers, NaN where there is none; ``true`` and ``false`` are 1 and 0.

    Args:
        column: the column. where: its name in messages. first_row: how the first row is counted in messages.

    Raises:
        TableError: naming the first cell that is no number, and its row.

    >>> numbers(pl.Series(["1e-3", " NA", "-inf", None]), "a").tolist()
    [0.001, nan, -inf, nan]
    """
    if isinstance(column.dtype, pl.Categorical | pl.Enum):
        column = column.cast(pl.String)
    if column.dtype == pl.Null or column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    if column.dtype != pl.String:
        raise TableError(f"{where} must hold numbers, got {column.dtype}")
    text = column.str.strip_chars()
    lower = text.str.to_lowercase()
    if (lower.is_in(["true", "false"]) | text.is_null()).all():
        return (lower == "true").cast(pl.Float64).fill_null(float("nan")).to_numpy()
    found = text.cast(pl.Float64, strict=False)
    odd = (found.is_null() & text.is_not_null() & ~lower.is_in(list(GAPS))).arg_true()
    if len(odd):
        row = int(odd[0])
        comma = " (write decimals with a point)" if text[row].replace(",", ".", 1).replace(".", "", 1).isdigit() else ""
        more = f" ({len(odd)} such rows of {len(text)})" if len(odd) > 1 else ""
        raise TableError(f"{where} must hold numbers, got {cut(text[row])} in row {row + first_row}{more}{comma}")
    return found.fill_null(float("nan")).to_numpy()


def listed(names: Collection[object]) -> str:
    """Names for a message, not more than a reader wants.

    >>> listed(["a", "b"])
    'a, b'
    """
    shown = [str(name) if len(str(name)) <= 40 else cut(name) for name in itertools.islice(names, 20)]
    return ", ".join(shown) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")


def cut(cell: object) -> str:
    """A cell for a message.

    >>> cut("a" * 99)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
    """
    text = repr(cell)
    return text if len(text) <= 40 else f"{text[:37]}..."
