"""Labels for people: the words that name a row of a table. They are made when something is shown, never parsed."""

from collections.abc import Sequence

import polars as pl

from jaxpu.config import point_label

__all__ = ["point_label", "with_labels"]


def with_labels(frame: pl.DataFrame, grid_columns: Sequence[str], name: str = "label") -> pl.DataFrame:
    """Add a column that names each row: the dataset where there are several, the method, and the grid point.

    A dataset that is a grid column is not named twice.

    Args:
        frame: with ``dataset``, ``method`` and the grid columns. grid_columns: those of its experiment.
        name: of the new column.

    >>> frame = pl.DataFrame({"dataset": "digits", "method": ["vpu", "pn"], "training.lr": [1e-3, None]})
    >>> with_labels(frame, ["training.lr"])["label"].to_list()
    ['vpu lr=0.001', 'pn']
    """
    several = frame["dataset"].n_unique() > 1 and not {"data.name", "ratings.dataset", "dataset"} & {*grid_columns}
    words = [
        " ".join(
            word
            for word in (
                row["dataset"] if several else "",
                row["method"],
                point_label({column: row[column] for column in grid_columns}),
            )
            if word
        )
        for row in frame.iter_rows(named=True)
    ]
    return frame.with_columns(pl.Series(name, words, dtype=pl.String))
