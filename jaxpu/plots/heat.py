"""Maps over two settings of a grid: where a method fails, and what it scores."""

from collections.abc import Callable

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxpu.analysis.summary import COLLAPSED_F1
from jaxpu.plots.frames import NothingToShow, metric_name, require, setting, setting_name, varying
from jaxpu.plots.rules import rule_name
from jaxpu.plots.style import INK, WIDTH, headline, look


def heat_map(selected: pl.DataFrame, rule: str, *, metric: str = "f1", below: float = COLLAPSED_F1) -> Figure:
    """Draw, for each method, the share of runs with a metric below a bound and its median, over two settings.

    The two settings are the first two of the grid that vary; runs at different values of a third one count together. A
    run without a number counts as below.

    Args:
        selected: dataset, method, the grid, seed, selection, the metric. rule: the selection rule.
        metric: a column, of values between 0 and 1. below: the bound.

    Raises:
        NothingToShow: the grid has fewer than two settings with several values.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"dataset": "digits", "method": "vpu", "data.c": [0.1, 0.1, 0.5, 0.5],
    ...                       "training.lr": [1.0, 2.0] * 2, "seed": 0, "selection": "last", "f1": [0.0] + 3 * [0.9]})
    >>> heat_map(frame, "last").get_suptitle()
    'F1 is below 0.1 most often for vpu at c = 0.1, lr = 1: 1 of 1 runs (last epoch)'
    """
    require(selected, "dataset", "method", "seed", "selection", metric)
    data = selected.filter(pl.col("selection") == rule)
    settings = varying(data)
    if len(settings) < 2:
        raise NothingToShow("The grid has fewer than two settings with several values, so there is no map over them.")
    across, down = settings[:2]
    value = pl.col(metric).cast(pl.Float64).fill_nan(None)
    data = data.with_columns(x=pl.col(across), y=pl.col(down), low=value.fill_null(-np.inf) < below, value=value)
    methods = data["method"].unique(maintain_order=True).to_list()
    name = metric_name(metric)
    with look():
        size = 0.6 + 0.27 * data["y"].n_unique()
        figure = Figure(figsize=(WIDTH, len(methods) * size + 0.5))
        panels = figure.subplots(len(methods), 2, squeeze=False)
        for row, method in zip(panels, methods, strict=True):
            part = data.filter(pl.col("method") == method)
            _panel(row[0], part, pl.col("low").mean(), "Reds", lambda share: f"{100 * share:.0f} %")
            _panel(row[1], part, pl.col("value").median(), "Blues", lambda median: f"{median:.2f}")
            row[0].set_title(f"{method}: share with {name} < {below:g}")
            row[1].set_title(f"{method}: median {name}")
            for axis in row:
                axis.set(xlabel=setting_name(across), ylabel=setting_name(down))
        headline(figure, _statement(data, (across, down), f"{name} {{}} below {below:g}", rule))
    return figure


def _panel(axis: Axes, data: pl.DataFrame, value: pl.Expr, colours: str, written: Callable[[float], str]) -> None:
    """One heat map with its numbers written in."""
    xs, ys = (data[name].unique(maintain_order=True).to_list() for name in ("x", "y"))
    table = np.full((len(ys), len(xs)), np.nan)
    for x, y, number in data.group_by("x", "y").agg(value.alias("of_cell")).iter_rows():
        table[ys.index(y), xs.index(x)] = np.nan if number is None else number
    axis.grid(visible=False)
    axis.imshow(table, cmap=colours, vmin=0, vmax=1.25, aspect="auto")
    for (row, column), number in np.ndenumerate(table):
        text = "–" if np.isnan(number) else written(number)
        axis.text(column, row, text, ha="center", va="center", fontsize=8, color=INK)
    axis.set_xticks(range(len(xs)), list(map(setting, xs)))
    axis.set_yticks(range(len(ys)), list(map(setting, ys)))


def _statement(data: pl.DataFrame, names: tuple[str, str], what: str, rule: str) -> str:
    cells = data.group_by("method", "x", "y", maintain_order=True).agg(pl.col("low").sum(), pl.len())
    worst = cells.sort(pl.col("low") / pl.col("len"), descending=True, maintain_order=True).row(0, named=True)
    if not worst["low"]:
        return f"No run of {data.height} has {what.format('').replace('  ', ' ')} ({rule_name(rule)})"
    where = ", ".join(f"{setting_name(n)} = {setting(worst[k])}" for n, k in zip(names, "xy", strict=True))
    count = f"{worst['low']} of {worst['len']} runs ({rule_name(rule)})"
    return f"{what.format('is')} most often for {worst['method']} at {where}: {count}"
