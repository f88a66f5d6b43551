"""Features as other people hold them, as one array of finite numbers; the first cell that is none is named."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float32, Shaped

from jaxpu.errors import repeated

LARGEST = float(np.finfo(np.float32).max)


def is_frame(x: Any) -> bool:
    """Whether it has named columns: a data frame of pandas or polars.

    >>> is_frame(np.eye(2)), is_frame([[1.0]])
    (False, False)
    """
    return hasattr(x, "columns") and hasattr(x, "__getitem__")


def columns_of(frame: Any) -> dict[str, Any]:
    """The columns of a data frame by name.

    Raises:
        ValueError: two have the same.
    """
    names = [str(name) for name in frame.columns]
    if twice := repeated(names):
        raise ValueError(f"the frame has the column {twice[0]!r} twice; rename or drop one")
    return {name: frame[key] for name, key in zip(names, frame.columns, strict=True)}


def taken(columns: dict[str, Any], name: str) -> Any:
    """Take a column out.

    Raises:
        ValueError: it is not there; with those that are.
    """
    from jaxpu.data.cells import listed  # polars takes a while to import

    if name not in columns:
        raise ValueError(f"there is no column {name!r}; there are {listed(columns)}")
    return columns.pop(name)


def stacked(columns: dict[str, Any], first_row: int) -> Float32[np.ndarray, "n d"]:
    """Columns beside each other, every one of them finite numbers.

    Raises:
        ValueError: naming the column and the row of the first cell that is no number, or not finite.

    >>> import polars as pl
    >>> stacked({"a": pl.Series(["1", "2"]), "b": pl.Series([True, False])}, first_row=1).tolist()
    [[1.0, 1.0], [2.0, 0.0]]
    """
    from jaxpu.data import cells

    if not columns:
        raise ValueError("no column is left as a feature beside the labels; give at least one")
    found = []
    for name, column in columns.items():
        where = f"feature {cells.cut(name)}"
        try:
            values = cells.numbers(series(column), where, first_row)
        except cells.TableError as error:
            raise ValueError(f"{error}; encode the column as numbers, or drop it") from None
        _check_finite(values[:, None], lambda _, where=where: where, first_row)
        found.append(values.astype(np.float32))
    return np.stack(found, axis=1)


def of_array(x: Any) -> Float32[np.ndarray, "n ..."]:
    """An array of numbers, copied; whatever its precision, as float32.

    Raises:
        ValueError: it has another shape than (n, d) or (n, ...), or not all of it are finite numbers.

    >>> of_array([[1, 2]]).dtype
    dtype('float32')
    """
    raw = np.asarray(x)
    if raw.ndim < 2 or not raw.size:
        raise ValueError(f"expected x of shape (n, d) or (n, ...) with at least one row and feature, got {raw.shape}")
    if raw.dtype.kind not in "biufOSUV":
        raise ValueError(f"expected x as numbers, got {raw.dtype}")
    try:
        values = raw if raw.dtype.kind in "biuf" else raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected x as numbers: {error}") from None

    def name(place: int) -> str:
        at = tuple(int(i) for i in np.unravel_index(place, raw.shape[1:]))
        return f"value {at}" if raw.ndim > 2 else f"feature {at[0]}"

    _check_finite(values.reshape(len(values), -1), name, first_row=0)
    return np.array(values, np.float32, order="C")


def plain(labels: Any, n: int, name: str) -> list[Any]:
    """Labels as a list of Python values, None where pandas says that one is missing.

    Raises:
        ValueError: they are not n in one dimension.

    >>> plain(np.array([0, 1]), 2, "y")
    [0, 1]
    """
    if hasattr(labels, "to_list"):  # a Series
        values = _without_gaps(labels) if hasattr(labels, "isna") else labels.to_list()
    else:
        array = labels if isinstance(labels, np.ndarray) else np.asarray(labels)
        if array.ndim != 1:
            raise ValueError(f"expected {name} of shape (n,), got {array.shape}; flatten it")
        values = array.tolist()
    if len(values) != n:
        raise ValueError(f"expected one label a row, got {n} rows of x and {len(values)} in {name}")
    return values


def series(column: Any) -> Any:
    """A column of a frame, of pandas or polars, as a polars Series."""
    import polars as pl

    if isinstance(column, pl.Series):
        return column
    values = np.asarray(column.to_numpy())
    if values.dtype.kind in "mM":
        return pl.Series(values.astype(f"{values.dtype.kind}8[us]"))
    return pl.Series(values) if values.dtype.kind in "biuf" else pl.Series(_without_gaps(column), strict=False)


def _without_gaps(column: Any) -> list[Any]:
    gaps = column.isna() if hasattr(column, "isna") else np.zeros(len(column), bool)
    return [None if gap else value for value, gap in zip(column.to_numpy().tolist(), gaps, strict=True)]


def _check_finite(values: Shaped[np.ndarray, "n d"], name: Callable[[int], str], first_row: int) -> None:
    """Name the first cell that is not finite, or would not be in 32 bits."""
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(values) <= LARGEST)
    if not bad.any():
        return
    row, place = (int(i) for i in np.argwhere(bad)[0])
    value, rows = float(values[row, place]), int(bad.any(axis=1).sum())
    kind = f"{value:g}, too large for 32 bits," if np.isfinite(value) else f"{value:g}"
    what = "empty or NaN" if np.isnan(value) else kind
    also = f" ({rows} rows are not finite in all)" if rows > 1 else ""
    raise ValueError(
        f"{name(place)} is {what} in row {row + first_row} (the first is {first_row}){also}; "
        f"{'fill it' if np.isnan(value) else 'correct it'}, or drop the row"
    )
