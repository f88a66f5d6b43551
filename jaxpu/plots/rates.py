"""How often each method fails, with intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxpu.plots.frames import NothingToShow, finite, with_label
from jaxpu.plots.rules import rule_name
from jaxpu.plots.style import WIDTH, headline, left_out, look, looks, row_height, wrapped


def collapse_rates(verdicts: pl.DataFrame, rules: Sequence[str] | None = None, *, most: int = 24) -> Figure:
    """Draw the share of runs with a failing verdict: one row a method, one mark a selection rule.

    Lines are 95 % Wilson intervals. A verdict fails unless it is healthy or transient.

    Args:
        verdicts: dataset, method, the grid, selection, n, rate, ci_low, ci_high.
        rules: the selection rules to show; by default all, in the order of the frame.
        most: the largest number of rows; those with the lowest rates are left out, which the figure says.

    Returns:
        The figure; "2/24" beside a mark reads "2 of 24 runs".

    Raises:
        NothingToShow: no rate to draw.

    >>> import polars as pl
    >>> verdicts = pl.DataFrame({"dataset": "spambase", "method": ["vpu", "pudra"],
    ...                          "selection": "val_f1", "n": 24, "rate": [1 / 24, 0.0],
    ...                          "ci_low": [0.007, 0.0], "ci_high": [0.202, 0.138]})
    >>> collapse_rates(verdicts).get_suptitle()
    'Failing verdicts are most frequent for vpu under validation F1: 1 of 24 runs (4 %)'
    """
    data = finite(with_label(verdicts, "selection", "n", "rate", "ci_low", "ci_high"), "rate")
    rules = [r for r in rules or data["selection"].unique(maintain_order=True) if r in data["selection"]]
    data = data.filter(pl.col("selection").is_in(rules))
    if data.is_empty():
        raise NothingToShow("No method has a failure rate under these selection rules.")
    rows, more = _highest(data, most)
    labels = [wrapped(row, 34) for row in rows]
    with look():
        figure = Figure(figsize=(WIDTH, 0.8 + len(rows) * row_height(labels, 0.1 + 0.16 * len(rules))))
        axis = figure.subplots()
        for i, rule in enumerate(rules):
            offset = (i - (len(rules) - 1) / 2) * 0.8 / len(rules)
            _rule(axis, data.filter(pl.col("selection") == rule), rows, offset, looks(rules)[rule])
        axis.grid(visible=False, axis="y")
        axis.set_yticks(range(len(rows)), labels)
        highest = float(np.nanmax([*data["ci_high"], *data["rate"]]))
        axis.set(ylim=(len(rows) - 0.5, -0.5), xlim=(-0.012, min(1.1, 1.15 * highest + 0.05)))
        axis.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %" if share < 1.01 else "")
        axis.set_xlabel("share of runs with a failing verdict, 95 % Wilson interval" + left_out(more, "rows"))
        handles, names = axis.get_legend_handles_labels()
        headline(figure, _statement(data), dict(zip(names, handles, strict=True)))
    return figure


def _highest(data: pl.DataFrame, most: int) -> tuple[list[str], int]:
    """The labels with the highest rates, in the order of the frame, and how many are left out."""
    rows = data.group_by("label", maintain_order=True).agg(pl.max("rate")).with_row_index("place")
    kept = rows.sort("rate", "place", descending=[True, False]).head(most).sort("place")
    return kept["label"].to_list(), rows.height - kept.height


def _rule(axis: Axes, data: pl.DataFrame, rows: list[str], offset: float, look: tuple[str, str]) -> None:
    """Draw the marks and intervals of one selection rule."""
    data = data.filter(pl.col("label").is_in(rows))
    colour, marker = look
    rate, low, high = (data[name].to_numpy() for name in ("rate", "ci_low", "ci_high"))
    place = np.array([rows.index(label) for label in data["label"]]) + offset
    error = np.nan_to_num(np.maximum([rate - low, high - rate], 0))
    name = rule_name(data["selection"][0]) if data.height else None
    size = 7 if marker == "X" else 5
    axis.errorbar(rate, place, xerr=error, fmt=marker, color=colour, markersize=size, linewidth=1.4, label=name)
    beside: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8, "color": colour}
    for share, n, end, y in zip(rate, data["n"], rate + error[1], place, strict=True):
        axis.annotate(f"{round(share * n)}/{n}", (end, y), (5, 0), **beside)


def _statement(data: pl.DataFrame) -> str:
    """Name the method and rule with the highest rate of failure."""
    top = data.sort("rate", descending=True, maintain_order=True).row(0, named=True)
    if top["rate"] == 0:
        return "No run has a failing verdict under any rule shown"
    rule, failed = rule_name(top["selection"]), round(top["rate"] * top["n"])
    share = f"{failed} of {top['n']} runs ({100 * top['rate']:.0f} %)"
    return f"Failing verdicts are most frequent for {top['label']} under {rule}: {share}"
