"""A table's numbers for networks: categories as columns of 0 and 1, gaps filled and marked; plain values only."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32

from jaxpu.tables.candidates import RARE


class Dense(NamedTuple):
    """How each feature becomes columns; nothing else is learned from the rows.

    Attributes:
        fills: what gaps of a number become, NaN for categories. marked: whether gaps have a column of their own.
        codes: of a category, those with a column of their own; others have none.
    """

    fills: tuple[float, ...]
    marked: tuple[bool, ...]
    codes: tuple[tuple[float, ...], ...]

    def __call__(self, x: Float[np.ndarray, "n d"]) -> Float32[np.ndarray, "n k"]:
        """Rows as a network takes them."""
        found = []
        for column, fill, marked, codes in zip(x.T, self.fills, self.marked, self.codes, strict=True):
            gaps = np.isnan(column)
            found += [column == code for code in codes] if codes else [np.where(gaps, fill, column)]
            found += [gaps] if marked else []
        return np.stack(found, axis=1).astype(np.float32)


def dense(x: Float[np.ndarray, "n d"], categories: list[int]) -> Dense:
    """Learn it from a table's numbers.

    Args:
        x: with NaN for gaps. categories: the columns that hold codes.

    >>> x = np.array([[1.0, 0.0], [np.nan, 1.0], [3.0, 0.0]] * 10)
    >>> dense(x, [1])(x)[:2].tolist()
    [[1.0, 0.0, 1.0, 0.0], [2.0, 1.0, 0.0, 1.0]]
    """
    fills, marked, codes = [], [], []
    for k, column in enumerate(x.T):
        gaps = np.isnan(column)
        values, counts = np.unique(column[~gaps], return_counts=True)
        of_category = k in categories
        kept = values[counts >= min(RARE, counts.max(initial=1))] if of_category else values[:0]
        fills.append(float("nan") if of_category or gaps.all() else float(column[~gaps].mean()))
        marked.append(bool(gaps.any()))
        codes.append(tuple(kept.tolist()))
    return Dense(tuple(fills), tuple(marked), tuple(codes))
