"""A list of training rows to look at, the most suspicious first."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from jaxpu.errors import unknown


def suspects(scores: Mapping[str, ArrayLike], by: str, *, rows: ArrayLike | None = None) -> pl.DataFrame:
    """Rank rows by one of several scores, large = suspicious; ``.write_csv(path)`` makes it a file.

    Args:
        scores: (n,) each, by name: r̂ of rows (:func:`jaxpu.valuation.example_risk`), the value of
            :func:`jaxpu.valuation.credit`, EL2N, minus the log-likelihood, labels to be shown. by: what ranks.
        rows: their row numbers; None = from 0.

    Returns:
        ``rank`` from 1, ``row``, and all scores; a row without a number, NaN, comes last.

    Raises:
        ValueError: no score of that name, or scores of different length.

    >>> suspects({"risk": [0.1, 0.9, -0.3], "label": [3, 1, 1]}, "risk").rows()
    [(1, 1, 0.9, 1), (2, 0, 0.1, 3), (3, 2, -0.3, 1)]
    """
    if by not in scores:
        raise ValueError(unknown("score", by, list(scores)))
    columns = {name: np.asarray(values) for name, values in scores.items()}
    n = len(columns[by])
    columns = {"row": np.arange(n) if rows is None else np.asarray(rows), **columns}
    if odd := [name for name, values in columns.items() if values.shape != (n,)]:
        raise ValueError(f"{odd[0]} has shape {columns[odd[0]].shape}, expected ({n},): one entry a row")
    order = np.argsort(-columns[by].astype(float), kind="stable")
    ranked = {name: values[order] for name, values in columns.items()}
    return pl.DataFrame({"rank": np.arange(1, n + 1), **ranked})
