"""What pictures and tables share: names for the reader, row labels, and which rows to keep of many."""

from collections.abc import Sequence

import polars as pl

from jaxpu.analysis.summary import COLLAPSED_F1
from jaxpu.selection import RULES

F1 = pl.col("f1").cast(pl.Float64).fill_nan(None)
"""The F1 of a selected run, null where it has none."""

BELOW = F1.fill_null(0.0) < COLLAPSED_F1
"""Whether a selected run scores F1 below 0.1; one without a finite F1 does."""

ROW = ("dataset", "method", "cell")
"""What a row of a table or picture stands for."""

RUN = (*ROW, "seed")

DEFAULT_RULES = ("val_f1_rescue", "val_f1")
"""The legacy rule, and the same without its rescue: the comparison that shows what the rescue does."""

RULE_NAMES = {
    "last": "last epoch",
    "val_f1": "validation F1",
    "val_f1_rescue": "validation F1 with legacy rescue",
    "val_accuracy": "validation accuracy",
    "pu_accuracy": "PU accuracy",
    "pu_auc": "PU AUC",
    "nn_risk": "non-negative risk",
    "variational": "variational loss",
}

METRIC_NAMES = {
    "test_oracle_f1_decision": "test F1",
    "test_oracle_f1": "test F1 at p > 0.5",
    "test_oracle_auc": "test AUC",
    "test_predicted_positive": "share predicted positive",
    "test_predicted_most": "share of the class predicted most",
    "train_loss": "training loss",
}


class NothingToShow(ValueError):
    """The frames hold nothing for this picture; the message says what is missing."""


def rule_name(rule: str) -> str:
    """A selection rule as a reader calls it.

    >>> rule_name("pu_auc"), rule_name("val_f1 on 5 %")
    ('PU AUC', 'val_f1 on 5 %')
    """
    return RULE_NAMES.get(rule, rule)


def metric_name(metric: str) -> str:
    """A recorded column as a reader calls it."""
    return METRIC_NAMES.get(metric, metric.replace("_", " "))


def f1_column(runs: pl.DataFrame, rule: str, split: str = "test") -> str:
    """The recorded F1 that counts under a rule, or plain F1 (p > 0.5) where that was not recorded.

    >>> import polars as pl
    >>> f1_column(pl.DataFrame({"test_oracle_f1_rescue": [0.9]}), "val_f1_rescue")
    'test_oracle_f1_rescue'
    """
    column = f"{split}_{RULES[rule].reported}" if rule in RULES else f"{split}_oracle_f1"
    return column if column in runs.columns else f"{split}_oracle_f1"


def shown_rules(recorded: Sequence[str], default: str | None = None) -> list[str]:
    """The recorded rules that a report shows: its default, the legacy rule, and that without its rescue.

    >>> shown_rules(["last", "val_f1", "pu_auc"], "pu_auc"), shown_rules(["last"])
    (['pu_auc', 'val_f1'], ['last'])
    """
    wanted = ([default] if default else []) + [rule for rule in DEFAULT_RULES if rule != default]
    return [rule for rule in wanted if rule in recorded] or list(dict.fromkeys(recorded))[:3]


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


def labelled(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Add ``label``: the method, with the cell of a grid, and with the dataset when there are several.

    Args:
        frame: has dataset, method, cell and the named columns.
        columns: further columns that the caller needs.

    Raises:
        NothingToShow: no rows, or a column is missing.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"dataset": "digits", "method": ["vpu", "vpu"], "cell": ["c=0.1", "c=0.2"]})
    >>> labelled(frame)["label"].to_list()
    ['vpu · c=0.1', 'vpu · c=0.2']
    """
    require(frame, *ROW, *columns)
    parts = [pl.col("method")]
    if frame["dataset"].n_unique() > 1:
        parts.insert(0, pl.col("dataset"))
    if (frame["cell"] != "").any():
        parts.append(pl.when(pl.col("cell") != "").then("cell"))
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


def below_sentence(selected: pl.DataFrame, rules: Sequence[str]) -> str:
    """Say how many runs score F1 below 0.1 under each rule.

    >>> import polars as pl
    >>> selected = pl.DataFrame({"selection": ["val_f1", "last", "last"], "f1": [0.9, 0.05, 0.8]})
    >>> below_sentence(selected, ["last", "val_f1"])
    'Runs with test F1 below 0.1: 1 of 2 under last epoch, 0 of 1 under validation F1'
    """
    counts = below_counts(selected, rules)
    parts = [f"{below} of {n} under {rule_name(rule)}" for rule, (below, n) in counts.items()]
    return f"Runs with test F1 below {COLLAPSED_F1:g}: {', '.join(parts)}"
