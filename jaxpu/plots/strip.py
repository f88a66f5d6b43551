"""The final score of every seed, as a dot."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxpu.plots.frames import (
    DEFAULT_RULES,
    FAILED,
    NothingToShow,
    failure_sentence,
    finite,
    labelled,
    rule_name,
    worst_rows,
)
from jaxpu.plots.style import BLUE, INK, QUIET, RED, STYLE, WIDTH, headline, left_out, wrapped

GOLDEN = (5**0.5 - 1) / 2


def final_f1_strip(selected: pl.DataFrame, rules: Sequence[str] = DEFAULT_RULES, *, most: int = 24) -> Figure:
    """Draw the test F1 of every seed: one row a method, one panel a selection rule.

    A dot is a run; those with F1 < 0.1 are red crosses. A black bar marks the median. At the right edge stand
    the median and the number of failed runs. The spread of dots within a row has no meaning.

    Args:
        selected: one row a run and selection rule, with dataset, method, cell, seed, selection, f1.
        rules: selection rules, one panel each; those without runs are skipped.
        most: the largest number of rows; those with the fewest failures are left out, which the figure says.

    Raises:
        NothingToShow: no run has a finite F1 under these rules.

    >>> import polars as pl
    >>> selected = pl.DataFrame({"dataset": "spambase", "method": "vpu", "cell": "", "seed": [0, 1, 2],
    ...                          "selection": "val_f1", "f1": [0.9, 0.02, 0.8]})
    >>> final_f1_strip(selected).get_suptitle()
    'Failed runs (test F1 below 0.1): 1 of 3 under validation F1'
    """
    data = finite(labelled(selected, "seed", "selection", "f1"), "f1").sort("seed", maintain_order=True)
    data = data.filter(pl.col("selection").is_in(list(rules)))
    rules = [rule for rule in rules if rule in data["selection"]]
    if not rules:
        raise NothingToShow("No selected run has a test F1 to show.")
    rows, more = worst_rows(data, most)
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.3 + 0.36 * len(rows)))
        panels = figure.subplots(1, len(rules), sharex=True, sharey=True, squeeze=False)[0]
        for panel, rule in zip(panels, rules, strict=True):
            _panel(panel, data.filter(pl.col("selection") == rule), rows)
        names = [wrapped(f"selected by {rule_name(rule)}", 84 // len(rules)) for rule in rules]
        most_lines = max(name.count("\n") for name in names)
        for panel, name in zip(panels, names, strict=True):
            panel.set_title(name + "\n" * (most_lines - name.count("\n") + 1))
        panels[0].set_yticks(range(len(rows)), [wrapped(row, 30) for row in rows])
        panels[0].set(ylim=(len(rows) - 0.5, -0.5), xlim=(-0.04, 1.04))
        figure.supxlabel("test F1 at the selected epoch" + left_out(more, "rows"))
        headline(figure, failure_sentence(data, rules))
    return figure


def _panel(axis: Axes, data: pl.DataFrame, rows: list[str]) -> None:
    """Draw the runs of one selection rule."""
    axis.axvspan(-0.04, FAILED, color="#fdeee4", linewidth=0, zorder=0)
    axis.grid(visible=False, axis="y")
    f1 = [data.filter(pl.col("label") == row)["f1"].to_numpy() for row in rows]
    size = 22 if max(map(len, f1)) <= 40 else 9
    place = [i + 0.56 * ((np.arange(1, len(values) + 1) * GOLDEN) % 1 - 0.5) for i, values in enumerate(f1)]
    x, y = np.concatenate(f1), np.concatenate(place)
    failed = x < FAILED
    axis.scatter(x[~failed], y[~failed], size, color=BLUE, alpha=0.6, linewidth=0, label="run")
    axis.scatter(
        x[failed], y[failed], 2.2 * size, color=RED, marker="X", edgecolor="white", linewidth=0.5, zorder=4
    )
    for i, values in enumerate(f1):
        if len(values):
            _row_summary(axis, i, values)
    for column, text in ((1.16, "median"), (1.36, "failed")):
        axis.text(
            column, 1.01, text, transform=axis.transAxes, ha="right", va="bottom", color=QUIET, fontsize=8.5
        )


def _row_summary(axis: Axes, place: int, values: np.ndarray) -> None:
    """Mark the median of a row, and write it and the count of failed runs at the right edge."""
    median, failed = float(np.median(values)), int((values < FAILED).sum())
    axis.plot([median, median], [place - 0.36, place + 0.36], color=INK, linewidth=2, zorder=5)
    beside: dict[str, Any] = {"transform": axis.get_yaxis_transform(), "ha": "right", "va": "center"}
    axis.text(1.16, place, f"{median:.2f}", **beside)
    colour, weight = (RED, "bold") if failed else (QUIET, "normal")
    axis.text(1.36, place, f"{failed}/{len(values)}", color=colour, weight=weight, **beside)
