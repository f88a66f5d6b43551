"""How far methods are from one of them, paired by seed: differences with intervals, a panel a point of the grid."""

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxpu.analysis import stats
from jaxpu.analysis.metrics import statistic_of
from jaxpu.plots.frames import NothingToShow, require, with_point
from jaxpu.plots.style import BLUE, QUIET, RED, WIDTH, headline, look

LINEAR = 0.01
"""Differences up to this are drawn to scale, larger ones by their logarithm."""


def paired_differences(selected: pl.DataFrame, reference: str, metric: str, said: str) -> Figure:
    """Draw each method's difference from the reference, over seeds, with its 95 % interval.

    It is the mean, or of heavy-tailed metrics (:data:`jaxpu.analysis.metrics.HEAVY_TAILED`) the median.
    Blue is ahead of the reference, red is behind, grey cannot be told (the interval holds 0).

    Args:
        selected: one row a run of one selection rule, with method, the grid, seed and the metric.
        reference: the method that the others are compared with, at the same point of the grid and seed.
        metric: the column compared. said: its name for the reader.

    Raises:
        NothingToShow: the frame lacks a column, the reference or other methods.

    >>> runs = pl.DataFrame({"method": ["a"] * 3 + ["b"] * 3, "seed": [0, 1, 2] * 2,
    ...                      "test_oracle_accuracy": [0.8, 0.9, 0.7, 0.81, 0.92, 0.715]})
    >>> paired_differences(runs, "a", "test_oracle_accuracy", "accuracy").get_suptitle()
    'Accuracy against a: ahead is b; behind is none'
    """
    require(selected, "method", "seed", metric)
    frame = with_point(selected).sort("seed", maintain_order=True)
    cells = frame["point"].unique(maintain_order=True).to_list()
    methods = [m for m in frame["method"].unique(maintain_order=True) if m != reference]
    if not methods or reference not in frame["method"]:
        raise NothingToShow(f"There is no {reference}, or nothing beside it, to compare.")
    found = {(m, c): _difference(frame.filter(point=c), m, reference, metric) for m in methods for c in cells}
    with look():
        figure = Figure(figsize=(WIDTH, 0.9 + 0.26 * len(methods)))
        panels = figure.subplots(1, len(cells), sharex=True, sharey=True, squeeze=False)[0]
        for panel, cell in zip(panels, cells, strict=True):
            _panel(panel, [found[m, cell] for m in methods])
            panel.set_title(cell)
        panels[0].set_yticks(range(len(methods)), methods)
        panels[0].set_ylim(len(methods) - 0.5, -0.5)
        figure.supxlabel(f"{said}, difference from {reference}, paired by seed")
        headline(figure, _statement(found, reference, said))
    return figure


def _difference(frame: pl.DataFrame, method: str, reference: str, metric: str) -> stats.Tested:
    mine, other = (frame.filter(method=name).select("seed", metric) for name in (method, reference))
    both = mine.join(other, on="seed", suffix="_of_reference")
    return stats.paired_difference(both[metric], both[f"{metric}_of_reference"], statistic=statistic_of(metric))


def _panel(axis: Axes, found: list[stats.Tested]) -> None:
    for place, one in enumerate(found):
        colour = BLUE if one.interval.low > 0 else RED if one.interval.high < 0 else QUIET
        axis.plot([one.interval.low, one.interval.high], [place, place], color=colour, linewidth=2)
        axis.plot(one.estimate, place, marker="o", color=colour, markersize=4)
    axis.axvline(0, color=QUIET, linewidth=0.8)
    axis.set_xscale("symlog", linthresh=LINEAR)
    reach = np.abs(axis.get_xlim()).max()
    ticks = [tick for tick in (-0.1, -0.01, 0, 0.01, 0.1) if abs(tick) <= max(reach, LINEAR)]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xticks([], minor=True)


def _statement(found: dict[tuple[str, str], stats.Tested], reference: str, said: str) -> str:
    methods, cells = (list(dict.fromkeys(part)) for part in zip(*found, strict=True))
    ahead = {cell: [m for m in methods if found[m, cell].interval.low > 0] for cell in cells}
    behind = [m for m in methods if found[m, cells[0]].interval.high < 0]
    if len(cells) == 1:
        named = [", ".join(names) or "none" for names in (ahead[cells[0]], behind)]
        return f"{said.capitalize()} against {reference}: ahead is {named[0]}; behind is {named[1]}"
    counts = ", ".join(f"{len(names)} at {cell}" for cell, names in ahead.items())
    return f"{said.capitalize()}: of {len(methods)} others, ahead of {reference} are {counts}"
