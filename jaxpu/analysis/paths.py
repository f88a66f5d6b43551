"""The ways of runs that are recorded as columns of lists, ``path_update`` and so on: a row a run and point."""

import polars as pl

PREFIX = "path_"


def paths(runs: pl.DataFrame) -> pl.DataFrame:
    """A row for every point of every path, with what stands in front of the run; empty where no run has a path.

    >>> runs = pl.DataFrame({"method": ["als", "mean"], "seed": [0, 0], "auc": [0.9, 0.8],
    ...                      "path_update": [[1, 2], None], "path_b": [[0.0, -0.1], None]})
    >>> paths(runs).rows()
    [('als', 0, 1, 0.0), ('als', 0, 2, -0.1)]
    """
    columns = [name for name in runs.columns if name.startswith(PREFIX)]
    known = [name for name in columns if runs[name].null_count() < runs.height]
    if not known or "seed" not in runs.columns:
        return pl.DataFrame()
    head = runs.columns[: runs.columns.index("seed") + 1]
    way = runs.filter(pl.col(known[0]).is_not_null()).select(*(name for name in head if name != "run_id"), *known)
    return way.explode(known).rename({name: name.removeprefix(PREFIX) for name in known})
