"""Rows as people hold them, as columns by name; sparse ones, as counts of words come, stay sparse."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from jaxpu.data import features

if TYPE_CHECKING:
    from jaxpu.tables.table import Schema


def sparse_rows(x: Any, columns: int | None = None) -> csr_array:
    """Sparse rows of any format as finite numbers by row.

    Args:
        x: (n, d). columns: how many there must be; None = any number but 0.

    Raises:
        ValueError: there are others, or a value is NaN or infinite.

    >>> sparse_rows(csr_array([[0, 2], [1, 0]])).toarray().tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    rows: Any = csr_array(x, dtype=np.float64)
    if columns is not None and rows.shape[1] != columns:
        raise ValueError(f"expected rows of {columns} columns, got {rows.shape[1]}")
    if not min(rows.shape):
        raise ValueError(f"expected rows of shape (n, d) with at least one row and column, got {rows.shape}")
    if not np.isfinite(rows.data).all():
        raise ValueError(
            "sparse rows hold NaN or infinity, and gaps are for dense ones; fill them, or give x.toarray()"
        )
    return rows


def columns_of(rows: Any, schema: "Schema | None" = None) -> dict[str, pl.Series]:
    """Columns by name of a data frame, a mapping, or an array (n, d), whose columns are called x0, x1 and so on.

    Raises:
        ValueError: an array of another shape, or with another number of columns than the schema.
    """
    if isinstance(rows, Mapping):
        return dict(rows)
    if features.is_frame(rows):
        found = {name: features.series(column) for name, column in features.columns_of(rows).items()}
        if schema is None or schema.named:
            return found
        if len(found) != len(schema.columns):  # learned from an array: its columns have places and no names
            raise ValueError(f"expected rows of {len(schema.columns)} columns, got {len(found)}")
        return {column.name: cells for column, cells in zip(schema.columns, found.values(), strict=True)}
    array = np.asarray(rows)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"expected rows of shape (n, d) with at least one row and column, got {array.shape}")
    if schema is not None and array.shape[1] != len(schema.columns):
        raise ValueError(f"expected rows of {len(schema.columns)} columns, got {array.shape[1]}")
    names = [f"x{k}" for k in range(array.shape[1])] if schema is None else [c.name for c in schema.columns]
    if array.dtype.kind in "biuf":
        return {name: pl.Series(np.ascontiguousarray(array[:, k])) for k, name in enumerate(names)}
    cells = array.astype(object)
    return {name: pl.Series(_texts(cells[:, k])) for k, name in enumerate(names)}


def _texts(cells: np.ndarray) -> list[str | None]:
    return [None if cell is None or cell != cell else str(cell) for cell in cells.tolist()]
