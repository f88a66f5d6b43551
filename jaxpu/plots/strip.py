"""The final score of every seed, as a dot."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxpu.analysis.stats import wilson
from jaxpu.analysis.summary import COLLAPSED_F1
from jaxpu.plots.frames import (
    BELOW,
    DEFAULT_RULES,
    F1,
    NothingToShow,
    below_counts,
    finite,
    seeds_behind,
    with_label,
    worst_rows,
)
from jaxpu.plots.rules import below_sentence, rule_name
from jaxpu.plots.style import BLUE, INK, QUIET, RED, WIDTH, headline, left_out, look, row_height, wrapped

GOLDEN = (5**0.5 - 1) / 2


def final_f1_strip(selected: pl.DataFrame, rules: Sequence[str] = DEFAULT_RULES, *, most: int = 24) -> Figure:
    """Draw the test F1 of every seed: one row a method, one panel a selection rule.

    A dot is a run; those with F1 < 0.1 are red crosses, and a run without an F1 (NaN) is a cross at 0. A bar
    marks the median. At the right edge stands the number of crosses. How dots spread in a row has no meaning.

    Args:
        selected: one row a run and selection rule, with dataset, method, the grid, seed, selection, f1.
        rules: selection rules, one panel each; those without runs are skipped.
        most: the largest number of rows; those with the fewest crosses are left out, which the figure says.

    Raises:
        NothingToShow: no run has a finite F1 under these rules.

    >>> import polars as pl
    >>> selected = pl.DataFrame({"dataset": "spambase", "method": "vpu", "seed": [0, 1, 2],
    ...                          "selection": "val_f1", "f1": [0.9, 0.02, 0.8]})
    >>> final_f1_strip(selected).get_suptitle()
    'Runs with test F1 below 0.1: 1 of 3 under validation F1'
    """
    data = with_label(selected, "seed", "selection", "f1").filter(pl.col("selection").is_in(list(rules)))
    if data.is_empty():
        raise NothingToShow("No run was selected by these rules, so nothing to show.")
    finite(data, "f1")
    rules = [rule for rule in rules if rule in data["selection"]]
    rows, more = worst_rows(data, most)
    labels = [wrapped(row, 34) for row in rows]
    with look():
        figure = Figure(figsize=(WIDTH, 1.3 + len(rows) * row_height(labels, 0.36)))
        panels = figure.subplots(1, len(rules), sharex=True, sharey=True, squeeze=False)[0]
        for panel, rule in zip(panels, rules, strict=True):
            _panel(panel, data.filter(pl.col("selection") == rule).sort("seed", maintain_order=True), rows)
        _titles(panels, [wrapped(f"selected by {rule_name(rule)}", 84 // len(rules)) for rule in rules])
        panels[0].set_yticks(range(len(rows)), labels)
        panels[0].set(ylim=(len(rows) - 0.5, -0.5), xlim=(-0.04, 1.04))
        figure.supxlabel("test F1 at the selected epoch" + left_out(more, "rows"))
        headline(figure, below_sentence(below_counts(data, rules), COLLAPSED_F1))
    return figure


def _titles(panels: np.ndarray, names: list[str]) -> None:
    """Title the panels so that all titles start at one height and leave a line below."""
    most = max(name.count("\n") for name in names)
    for panel, name in zip(panels, names, strict=True):
        panel.set_title(name + "\n" * (most - name.count("\n") + 1))


def _panel(axis: Axes, data: pl.DataFrame, rows: list[str]) -> None:
    """Draw the runs of one selection rule."""
    axis.axvspan(-0.04, COLLAPSED_F1, color="#fdeee4", linewidth=0, zorder=0)
    axis.grid(visible=False, axis="y")
    f1 = [data.filter(pl.col("label") == row).select(F1).to_series().to_numpy() for row in rows]
    size = 22 if max(map(len, f1)) <= 40 else 9
    place = [i + 0.56 * ((np.arange(1, len(values) + 1) * GOLDEN) % 1 - 0.5) for i, values in enumerate(f1)]
    x, y = np.nan_to_num(np.concatenate(f1)), np.concatenate(place)
    below = x < COLLAPSED_F1
    axis.scatter(x[~below], y[~below], size, color=BLUE, alpha=0.6, linewidth=0, label="run")
    look: dict[str, Any] = {"marker": "X", "edgecolor": "white", "linewidth": 0.5, "zorder": 4}
    axis.scatter(x[below], y[below], 2.2 * size, color=RED, label="run below", **look)
    _beside(axis, -0.5, f"< {COLLAPSED_F1:g}", va="bottom", color=QUIET, fontsize=8.5)
    for i, values in enumerate(f1):
        known, low = values[np.isfinite(values)], int((np.nan_to_num(values) < COLLAPSED_F1).sum())
        if len(known):
            median = float(np.median(known))
            axis.plot([median, median], [i - 0.36, i + 0.36], color=INK, linewidth=2, zorder=5, label="median")
        colour, weight = (RED, "bold") if low else (QUIET, "normal")
        _beside(axis, i, f"{low}/{len(values)}", va="center", color=colour, weight=weight)


def _beside(axis: Axes, place: float, text: str, **look: Any) -> None:
    """Write at the right of a panel, at the height of a row."""
    edge = axis.get_yaxis_transform()
    axis.annotate(text, (1, place), (6, 0), edge, textcoords="offset points", **look)


def strip_caption(selected: pl.DataFrame, rules: Sequence[str]) -> str:
    """What to see in the strip plot, and the row with most runs below the line, with its interval."""
    data = with_label(selected).filter(pl.col("selection").is_in(list(rules)))
    rows = data.group_by("label", "selection", maintain_order=True).agg(BELOW.sum().alias("low"), pl.len())
    label, rule, low, runs = rows.sort("low", descending=True, maintain_order=True).row(0)
    interval = wilson(low, runs)
    where = f"for {label} under {rule_name(rule)}" if low else "for every method and rule"
    return (
        f"Every dot is one run, n = {seeds_behind(selected)} seeds a method; red crosses in the shaded zone are runs "
        f"with F1 below {COLLAPSED_F1:g}, the black bar is the median. The largest share of crosses is {low} of "
        f"{runs} {where} (95 % Wilson interval {100 * interval.low:.0f} to {100 * interval.high:.0f} %)."
    )
