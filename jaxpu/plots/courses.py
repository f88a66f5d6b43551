"""Medians over seeds against epochs or updates: a column a metric, a row a point of the grid, a colour a method."""

from collections.abc import Sequence

import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from polars import selectors

from jaxpu.plots.frames import NothingToShow, carried, metric_name, require, run_columns, varying, with_point
from jaxpu.plots.style import COLOURS, WIDTH, headline, look

LOGARITHMIC = ("log_loss", "test_oracle_log_loss")


def courses(
    runs: pl.DataFrame, metrics: Sequence[str], *, x: str = "epoch", rows: bool = True, most: int = 8
) -> Figure:
    """Draw the median over seeds of each metric over training; a run that stopped early keeps its last values.

    A method that has no point of the grid, since no setting of the grid touches it, is shown with each.

    Args:
        runs: method, the grid, seed, ``x`` and the metrics. metrics: a panel each.
        x: the column across, ``epoch``, or ``update`` on a logarithmic axis.
        rows: whether points of the grid are rows and methods colours; else both together are colours.
        most: the largest number of rows, and of colours.

    Raises:
        NothingToShow: a column is missing, or there are no rows.

    >>> runs = pl.DataFrame({"dataset": "digits", "method": ["none", "high"], "guide": [None, "plain"], "seed": 0,
    ...                      "epoch": 1, "accuracy": [0.9, 0.5]})
    >>> courses(runs, ["accuracy"]).get_suptitle()
    'At the end high (guide=plain) has the least accuracy: 0.50'
    """
    require(runs, "dataset", "method", x, *metrics)
    keys = ["method", "point", *varying(runs)]
    frame = carried(with_point(runs), x, keys, run_columns(runs)) if "seed" in runs.columns else with_point(runs)
    medians = frame.group_by(*keys, x, maintain_order=True).agg(pl.col(metrics).median()).sort(x, maintain_order=True)
    medians = medians.with_columns(selectors.float().fill_nan(None))  # not every epoch need be evaluated
    if not rows:
        names = pl.concat_str(
            "method", pl.when(pl.col("point") != "").then("point"), separator=" · ", ignore_nulls=True
        )
        medians = medians.with_columns(method=names, point=pl.lit(""))
    points = [point for point in medians["point"].unique(maintain_order=True) if point][:most] or [""]
    colours = dict(zip(medians["method"].unique(maintain_order=True), COLOURS, strict=False))
    with look():
        figure = Figure(figsize=(WIDTH, 1.9 * len(points) + 0.7))
        grid = figure.subplots(len(points), len(metrics), squeeze=False, sharex=True)
        for panels, point in zip(grid, points, strict=True):
            shown = medians.filter(pl.col("point").is_in([point, ""]))
            for axis, metric in zip(panels, metrics, strict=True):
                for method, colour in colours.items():
                    mine = shown.filter(pl.col("method") == method).drop_nulls(metric)
                    axis.plot(mine[x], mine[metric], color=colour, linewidth=1.4, label=method)
                if x == "update":
                    axis.set_xscale("log")
                if metric in LOGARITHMIC:
                    axis.set_yscale("log")
                    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                    axis.yaxis.set_major_formatter("{x:g}")
                    axis.yaxis.set_minor_formatter(NullFormatter())
            panels[0].set_ylabel(point.replace(" ", "\n"), fontsize=8)
        for axis, metric in zip(grid[0], metrics, strict=True):
            axis.set_title(metric_name(metric))
        for axis in grid[-1]:
            axis.set_xlabel(f"{x}s" if x == "update" else x)
        handles, names = grid[0][0].get_legend_handles_labels()
        headline(figure, _statement(medians, metrics[0], x), dict(zip(names, handles, strict=True)))
    return figure


def _statement(medians: pl.DataFrame, metric: str, x: str) -> str:
    known = medians.drop_nulls(metric)
    if known.is_empty():
        raise NothingToShow(f"No value of {metric}, so nothing to show.")
    ends = known if x == "update" else known.group_by("method", "point", maintain_order=True).last()
    worst = ends.sort(metric, maintain_order=True).row(0, named=True)
    where = f"{worst['method']} ({worst['point']})" if worst["point"] else worst["method"]
    if x == "update":
        return f"The least {metric_name(metric)} is that of {where} after {worst[x]:,} updates: {worst[metric]:.2f}"
    return f"At the end {where} has the least {metric_name(metric)}: {worst[metric]:.2f}"
