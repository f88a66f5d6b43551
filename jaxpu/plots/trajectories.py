"""A metric over training, with the spread over seeds."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jaxpu.plots.frames import NothingToShow, carried, finite, metric_name, run_columns, with_label
from jaxpu.plots.style import BLUE, RED, WIDTH, headline, left_out, look, row_height, wrapped

LINES = 40
"""The largest number of runs of a panel that are drawn as lines of their own; more hide each other."""

LEVELS = {"low90": 0.05, "low50": 0.25, "median": 0.5, "high50": 0.75, "high90": 0.95}


def trajectories(
    runs: pl.DataFrame,
    metric: str,
    *,
    rows: Sequence[str] | None = None,
    highlight: pl.DataFrame | None = None,
    most: int = 16,
) -> Figure:
    """Draw a metric against the epoch, one small panel a method: the median and the spread over seeds.

    The bands hold the middle 50 % and 90 % of the seeds (interpolated quantiles). A run that stopped before others of
    its method keeps its last value, so that every epoch has all seeds.

    Args:
        runs: one row a run and epoch, with dataset, method, the grid, seed, epoch and the metric.
        metric: the column to draw; entries that are not finite are left out.
        rows: labels of the panels, in order; by default those of the frame.
        highlight: runs (dataset, method, the grid, seed) to draw as lines of their own.
        most: the largest number of panels; the figure says how many are left out.

    Raises:
        NothingToShow: no such column, or no finite value in it for these rows.

    >>> import polars as pl
    >>> runs = pl.DataFrame({"dataset": "spambase", "method": "vpu", "seed": [0, 0, 1, 1],
    ...                      "epoch": [1, 2, 1, 2], "test_oracle_f1": [0.1, 0.8, 0.3, 0.9]})
    >>> trajectories(runs, "test_oracle_f1").get_suptitle()
    'The median test F1 at p > 0.5 ends at 0.85'
    """
    run = run_columns(runs)
    recorded = finite(with_label(runs, "seed", "epoch", metric), metric)
    data = finite(carried(with_label(runs, "seed", "epoch", metric), "epoch", ["label"], run), metric)
    everything = data["label"].unique(maintain_order=True).to_list()
    rows = [row for row in rows or everything if row in everything][:most]
    if not rows:
        raise NothingToShow(f"None of the rows to show has a value of {metric}.")
    shown = data.filter(pl.col("label").is_in(rows))
    lines_of = recorded.filter(pl.col("label").is_in(rows))
    marked = data.clear() if highlight is None else lines_of.join(highlight, on=run, how="semi", nulls_equal=True)
    with look():
        columns = min(4, len(rows))
        lines = -(-len(rows) // columns)
        titles = [wrapped(row, 96 // columns) for row in rows]
        figure = Figure(figsize=(WIDTH, 0.65 + lines * (1.5 + row_height(titles, 0.25))))
        panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for panel, row, title in zip(panels, rows, titles, strict=False):
            own = pl.col("label") == row
            _panel(panel, data.filter(own), marked.filter(own), metric)
            panel.set_title(title)
        _tidy(panels, len(rows), columns)
        figure.supylabel(metric_name(metric))
        figure.supxlabel("epoch" + left_out(len(everything) - len(rows), "panels"))
        named = {
            text: handle for panel in panels for handle, text in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        headline(figure, _statement(shown, metric), named)
    return figure


def _panel(axis: Axes, data: pl.DataFrame, marked: pl.DataFrame, metric: str) -> None:
    """Draw the seeds of one method."""
    levels = [pl.col(metric).quantile(q, "linear").alias(name) for name, q in LEVELS.items()]
    band = data.group_by("epoch").agg(levels).sort("epoch")
    n, epochs = data["seed"].n_unique(), band["epoch"]
    dots = "o" if band.height == 1 else None  # one epoch makes no line
    name = "median" if n > 1 else "the only seed"
    axis.plot(epochs, band["median"], color=BLUE, linewidth=1.8, marker=dots, zorder=3, label=name)
    for width, alpha in (("50", 0.3), ("90", 0.16)) if n > 1 else ():
        low, high, name = band[f"low{width}"], band[f"high{width}"], f"middle {width} % of the seeds"
        axis.fill_between(epochs, low, high, color=BLUE, alpha=alpha, linewidth=0, label=name)
    every = marked["seed"].unique(maintain_order=True)
    of = f" ({LINES} a panel)" if len(every) > LINES else ""
    ordered = marked.filter(pl.col("seed").is_in(every.head(LINES).implode())).sort(
        "seed", "epoch", maintain_order=True
    )
    for run in ordered.partition_by("seed", maintain_order=True):
        name = f"run selected at F1 below 0.1{of}"
        axis.plot(run["epoch"], run[metric], color=RED, linewidth=0.9, marker=dots, label=name)
    axis.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=(1, 2, 5, 10)))
    axis.text(0.98, 0.04, f"n = {n}", transform=axis.transAxes, ha="right", fontsize=8)


def _tidy(panels: np.ndarray, used: int, columns: int) -> None:
    """Remove the empty panels, give the lowest panel of each column its epochs, and show all of a share."""
    for panel in panels[used:]:
        panel.remove()
    for panel in panels[max(used - columns, 0) : used]:
        panel.tick_params(labelbottom=True)
    low, high = panels[0].get_ylim()
    if low >= -0.1 and high <= 1.1:
        panels[0].set(ylim=(-0.02, 1.02), yticks=(0, 0.5, 1))


def _statement(data: pl.DataFrame, metric: str) -> str:
    """Say where the median of each method ends: that of the last values of all its runs."""
    last = data.filter(pl.col("epoch") == pl.col("epoch").max().over("label"))
    ends = last.group_by("label", maintain_order=True).agg(pl.median(metric))
    ends = ends.sort(metric, maintain_order=True)
    labels, values = ends["label"].to_list(), [f"{value:.2f}" for value in ends[metric]]
    start = f"The median {metric_name(metric)} ends"
    if values[0] == values[-1]:
        return f"{start} at {values[0]}" + (" for every method" if len(values) > 1 else "")
    return f"{start} between {values[0]} ({labels[0]}) and {values[-1]} ({labels[-1]})"
