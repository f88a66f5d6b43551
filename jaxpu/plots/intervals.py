"""Summaries with their intervals, a panel a metric: over the one setting that varies, or a row a method."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxpu.plots.frames import NothingToShow, metric_name, require, setting, setting_name, varying, with_point
from jaxpu.plots.style import COLOURS, MARKERS, WIDTH, headline, look

PANELS = ("inverted", "average_precision", "brier")


def over_setting(summary: pl.DataFrame, metrics: Sequence[str] = PANELS) -> Figure:
    """Draw the mean of each metric for each method over the one setting that varies, with its 95 % interval.

    Args:
        summary: method, the grid, selection, metric, mean, ci_low, ci_high; of one selection rule.
        metrics: a panel each, those that were recorded.

    Raises:
        NothingToShow: not just one numeric setting varies, or there are more than eight methods.
    """
    summary, methods, metrics = _of(summary, metrics)
    settings = varying(summary)
    if len(settings) != 1 or len(methods) > len(COLOURS) or not summary[settings[0]].dtype.is_numeric():
        raise NothingToShow("Not one numeric setting with few methods, so nothing to show over it.")
    values = summary[settings[0]].unique(maintain_order=True).to_list()
    with look():
        figure = Figure(figsize=(WIDTH, 3.2))
        for axis, metric in zip(figure.subplots(1, len(metrics), squeeze=False)[0], metrics, strict=True):
            for k, method in enumerate(methods):
                mine = summary.filter(pl.col("metric") == metric, pl.col("method") == method)
                shift = 0.06 * (k - len(methods) / 2)
                places = [values.index(value) + shift for value in mine[settings[0]]]
                _bars(axis, places, mine, k, method)
            axis.set_xticks(range(len(values)), list(map(setting, values)), rotation=45 if len(values) > 6 else 0)
            axis.set(title=metric_name(metric), xlabel=setting_name(settings[0]))
        headline(figure, statement(summary, metrics[0]), _names(figure))
    return figure


def by_method(summary: pl.DataFrame, metrics: Sequence[str] = PANELS) -> Figure:
    """Draw the mean of each metric with its 95 % interval: a row a method, a colour a point of the grid.

    Args: as for :func:`over_setting`.

    Raises:
        NothingToShow: there are more than eight points of the grid.
    """
    summary, methods, metrics = _of(summary, metrics)
    summary = with_point(summary)
    several = summary["dataset"].n_unique() > 1 and varying(summary) == []
    summary = summary.with_columns(point=pl.col("dataset")) if several else summary
    points = summary["point"].unique(maintain_order=True).to_list()
    if len(points) > len(COLOURS):
        raise NothingToShow("More points of the grid than can be told apart; the table has them all.")
    with look():
        figure = Figure(figsize=(WIDTH, 1.1 + 0.3 * len(methods)))
        panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
        for axis, metric in zip(panels, metrics, strict=True):
            for k, point in enumerate(points):
                mine = summary.filter(pl.col("metric") == metric, pl.col("point") == point)
                places = [methods.index(name) + 0.1 * (k - (len(points) - 1) / 2) for name in mine["method"]]
                _bars(axis, places, mine, k, point or "all", flat=True)
            axis.set(title=metric_name(metric))
        panels[0].set_yticks(range(len(methods)), methods)
        panels[0].set_ylim(len(methods) - 0.5, -0.5)
        headline(figure, statement(summary, metrics[0]), _names(figure))
    return figure


def _of(summary: pl.DataFrame, metrics: Sequence[str]) -> tuple[pl.DataFrame, list[str], list[str]]:
    require(summary, "dataset", "method", "metric", "mean", "ci_low", "ci_high")
    metrics = [metric for metric in metrics if metric in summary["metric"]]
    if not metrics:
        raise NothingToShow("None of the metrics to show was summarised.")
    return summary, summary["method"].unique(maintain_order=True).to_list(), metrics


def _bars(axis: Axes, places: Sequence[float], rows: pl.DataFrame, k: int, name: str, *, flat: bool = False) -> None:
    middle, low, high = (rows[c].cast(pl.Float64).to_numpy() for c in ("mean", "ci_low", "ci_high"))
    low, high = np.fmin(np.nan_to_num(low, nan=np.inf), middle), np.fmax(np.nan_to_num(high, nan=-np.inf), middle)
    error = np.stack([middle - low, high - middle])
    marks: dict[str, Any] = {"fmt": MARKERS[k], "color": COLOURS[k], "markersize": 3.5, "linewidth": 1, "label": name}
    if flat:
        axis.errorbar(middle, places, xerr=error, **marks)
    else:
        axis.errorbar(places, middle, yerr=error, **marks)
        axis.plot(places, middle, color=COLOURS[k], linewidth=0.8, alpha=0.6)


def _names(figure: Figure) -> dict[str, Any]:
    handles, names = figure.axes[0].get_legend_handles_labels()
    return dict(zip(names, handles, strict=True))


def statement(summary: pl.DataFrame, metric: str) -> str:
    """Say which method has the highest and the lowest mean of a metric at any point, or which are inverted.

    >>> frame = pl.DataFrame({"method": ["a", "b"], "metric": "f1", "mean": [0.5, 0.9]})
    >>> statement(frame, "f1")
    'Mean F1 is between 0.50 (a) and 0.90 (b)'
    """
    rows = summary.filter(pl.col("metric") == metric).drop_nulls("mean").sort("mean", maintain_order=True)
    if metric == "inverted":
        names = rows.filter(pl.col("mean") >= 0.5)["method"].unique(maintain_order=True).to_list()
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        nothing = "No method has the ranking inverted in most runs of any point"
        return f"Inverted in most runs of some point: {shown}" if names else nothing
    (first, least), *_, (last, most) = [*rows.select("method", "mean").iter_rows()] * (2 if rows.height == 1 else 1)
    return f"Mean {metric_name(metric)} is between {least:.2f} ({first}) and {most:.2f} ({last})"
