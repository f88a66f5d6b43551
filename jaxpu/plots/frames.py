"""What pictures and tables share: names for the reader, row labels, and which rows to keep of many."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from jaxpu.analysis.summary import COLLAPSED_F1
from jaxpu.config import point_label

F1 = pl.col("f1").cast(pl.Float64).fill_nan(None)
"""The F1 of a selected run, null where it has none."""

BELOW = F1.fill_null(0.0) < COLLAPSED_F1
"""Whether a selected run scores F1 below 0.1; one without a finite F1 does."""

IDENTITY = ("dataset", "method")
"""What a row of a table or picture stands for, with the columns of the grid behind them."""

AFTER_GRID = ("seed", "selection", "run_id", "epoch", "update", "verdict")
"""The columns of the grid end where one of these begins."""

DEFAULT_RULES = ("val_f1_rescue", "val_f1")
"""The legacy rule, and the same without its rescue: the comparison that shows what the rescue does."""

METRIC_NAMES = {
    "test_oracle_f1_decision": "test F1",
    "test_oracle_f1": "test F1 at p > 0.5",
    "test_oracle_auc": "test AUC",
    "test_predicted_positive": "share predicted positive",
    "test_predicted_most": "share of the class predicted most",
    "train_loss": "training loss",
    "f1": "F1",
    "auc": "AUC",
    "average_precision": "PR-AUC",
    "brier": "Brier score",
    "ece": "calibration error (ECE)",
    "log_loss": "log-loss",
    "inverted": "share inverted",
    "kept": "share of pairs kept",
    "outside_auc": "AUC of the confidence, test rows against those of another dataset",
    "outside_confidence": "mean confidence in rows of another dataset",
    "balanced_accuracy": "balanced accuracy",
}


class NothingToShow(ValueError):
    """The frames hold nothing for this picture; the message says what is missing."""


def metric_name(metric: str) -> str:
    """A recorded column as a reader calls it."""
    return METRIC_NAMES.get(metric, metric.replace("_", " "))


def require(frame: pl.DataFrame, *columns: str) -> None:
    """Raise NothingToShow, with the missing names, unless the frame has rows and all these columns."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise NothingToShow(f"Not recorded, so not shown: {', '.join(missing)}.")
    if frame.is_empty():
        raise NothingToShow("Nothing recorded yet, so nothing to show.")


def finite(frame: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Keep the rows in which the metric is a finite number; raise NothingToShow when none is left."""
    kept = frame.filter(pl.col(metric).cast(pl.Float64).is_finite())
    if kept.is_empty():
        raise NothingToShow(f"No finite value of {metric}, so nothing to show.")
    return kept


def carried(frame: pl.DataFrame, x: str, group: Sequence[str], run: Sequence[str]) -> pl.DataFrame:
    """Add to runs that stopped before others of their group their last row, at every later value of ``x``.

    So a median over runs is one over all of them, and not over those still training, and it ends at the median of
    their last values.

    >>> frame = pl.DataFrame({"method": "vpu", "seed": [0, 0, 1], "epoch": [1, 2, 1], "f1": [0.0, 0.8, 0.1]})
    >>> carried(frame, "epoch", ["method"], ["method", "seed"]).rows()[3:]
    [('vpu', 1, 2, 0.1)]
    """
    last = frame.sort(x, maintain_order=True).group_by(*run, maintain_order=True).last()
    points = frame.group_by(*group).agg(pl.col(x).unique().alias("later"))
    more = last.join(points, on=list(group), nulls_equal=True).explode("later").filter(pl.col("later") > pl.col(x))
    return pl.concat([frame, more.with_columns(pl.col("later").alias(x)).select(frame.columns)])


def grid_columns(frame: pl.DataFrame) -> list[str]:
    """The columns of the grid: those between the method and what identifies a run or was recorded of it.

    >>> grid_columns(pl.DataFrame(schema=["dataset", "method", "training.lr", "method.anchor", "seed", "f1"]))
    ['training.lr', 'method.anchor']
    """
    if "method" not in frame.columns:
        return []
    rest = frame.columns[frame.columns.index("method") + 1 :]
    ends = [rest.index(name) for name in AFTER_GRID if name in rest]
    return rest[: min(ends)] if ends else []


def varying(frame: pl.DataFrame) -> list[str]:
    """The columns of the grid that take several values."""
    return [name for name in grid_columns(frame) if frame[name].n_unique() > 1]


def row_columns(frame: pl.DataFrame) -> list[str]:
    """What identifies a row: dataset, method and the grid."""
    return [*(name for name in IDENTITY if name in frame.columns), *grid_columns(frame)]


def run_columns(frame: pl.DataFrame) -> list[str]:
    """What identifies a run: its row and its seed."""
    return [*row_columns(frame), "seed"]


def setting_name(path: str) -> str:
    """A setting as a figure or table calls it.

    >>> setting_name("data.prior_scale")
    'prior scale'
    """
    return path.rpartition(".")[2].replace("_", " ")


def setting(value: Any) -> str:
    """A value of a setting, for people.

    >>> setting(1e-3), setting(64), setting(None)
    ('0.001', '64', '–')
    """
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


DATASETS = ("data.name", "ratings.dataset", "dataset")
"""Settings that the column of the dataset says, too."""


def with_point(frame: pl.DataFrame, leave_out: Sequence[str] = ()) -> pl.DataFrame:
    """Add ``point``: the label of the point of the grid, of the settings that vary."""
    columns = [name for name in varying(frame) if name not in leave_out]
    if not columns:
        return frame.with_columns(point=pl.lit(""))
    points = frame.select(columns).unique(maintain_order=True)
    labels = [point_label(row) for row in points.iter_rows(named=True)]
    return frame.join(points.with_columns(point=pl.Series(labels)), on=columns, how="left", nulls_equal=True)


def with_label(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Add ``label``: the method, with the point of a grid, and with the dataset when there are several; and ``point``.

    Args:
        frame: has dataset, method and the named columns. columns: further columns that the caller needs.

    Raises:
        NothingToShow: no rows, or a column is missing.

    >>> frame = pl.DataFrame({"dataset": "digits", "method": ["vpu", "vpu"], "data.c": [0.1, 0.2], "seed": 0})
    >>> with_label(frame)["label"].to_list()
    ['vpu · c=0.1', 'vpu · c=0.2']
    """
    require(frame, *IDENTITY, *columns)
    several = frame["dataset"].n_unique() > 1
    frame = with_point(frame, DATASETS if several else ())
    parts = [pl.col("method"), pl.when(pl.col("point") != "").then("point")]
    parts = [pl.col("dataset"), *parts] if several else parts
    return frame.with_columns(pl.concat_str(parts, separator=" · ", ignore_nulls=True).alias("label"))


def worst_rows(selected: pl.DataFrame, most: int) -> tuple[list[str], int]:
    """Labels of at most ``most`` rows: those with most runs below F1 0.1, then those with the lowest median.

    Returns:
        The labels in the order of the frame, and how many were left out.
    """
    rows = selected.group_by("label", maintain_order=True).agg(below=BELOW.mean(), median=F1.median())
    worst = rows.with_row_index("place").sort("below", "median", "place", descending=[True, False, False])
    return worst.head(most).sort("place")["label"].to_list(), max(rows.height - most, 0)


def below_counts(selected: pl.DataFrame, rules: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Runs with F1 below 0.1, and all runs, under each rule that has any."""
    groups = {rule: selected.filter(pl.col("selection") == rule) for rule in rules}
    return {rule: (group.select(BELOW.sum()).item(), group.height) for rule, group in groups.items() if group.height}


def seeds_behind(frame: pl.DataFrame) -> str:
    """The number of seeds of a row: "8", or "7 to 8" where rows differ.

    >>> seeds_behind(pl.DataFrame({"dataset": "d", "method": ["a", "a", "b"], "seed": [0, 1, 0]}))
    '1 to 2'
    """
    if frame.is_empty() or not {*IDENTITY, "seed"} <= {*frame.columns}:
        return "0"
    counts = frame.group_by(row_columns(frame)).agg(pl.col("seed").n_unique())["seed"].sort()
    return f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
