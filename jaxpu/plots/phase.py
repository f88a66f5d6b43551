"""Phase diagrams: where on a grid of two settings a method fails, and what it scores."""

from collections.abc import Callable

import numpy as np
import polars as pl
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxpu.analysis.summary import COLLAPSED_F1
from jaxpu.plots.frames import BELOW, F1, NothingToShow, labelled, require, rule_name
from jaxpu.plots.style import INK, STYLE, WIDTH, headline


def grid_axes(selected: pl.DataFrame) -> list[str]:
    """The names of the grid's settings that take several values, in the order of the cells' labels.

    >>> import polars as pl
    >>> grid_axes(pl.DataFrame({"cell": ["c=0.1 lr=1", "c=0.1 lr=2"]}))
    ['lr']
    """
    values: dict[str, set[str]] = {}
    for cell in selected["cell"].unique(maintain_order=True):
        for name, _, value in (piece.partition("=") for piece in cell.split()):
            values.setdefault(name, set()).add(value)
    return [name for name, seen in values.items() if len(seen) > 1]


def phase_diagram(selected: pl.DataFrame, rule: str) -> Figure:
    """Draw, for each method, the share of runs with F1 below 0.1 and the median F1 over two settings.

    The two settings are the first two of the grid; runs at different values of a third one count together.

    Args:
        selected: dataset, method, cell, seed, selection, f1. rule: the selection rule.

    Raises:
        NothingToShow: the grid has fewer than two settings with several values.

    >>> import polars as pl
    >>> cells = [f"c={c} lr={lr}" for c in (0.1, 0.5) for lr in (1, 2)]
    >>> frame = pl.DataFrame({"dataset": "digits", "method": "vpu", "cell": cells, "seed": 0,
    ...                       "selection": "last", "f1": [0.0, 0.9, 0.9, 0.9]})
    >>> phase_diagram(frame, "last").get_suptitle()
    'F1 is below 0.1 most often for vpu at c = 0.1, lr = 1: 1 of 1 runs (last epoch)'
    """
    require(selected, "dataset", "method", "cell", "seed", "selection", "f1")
    data = selected.filter(pl.col("selection") == rule)
    axes = grid_axes(data)
    if len(axes) < 2:
        raise NothingToShow("The grid has fewer than two settings with several values, so there is no phase diagram.")
    across, down = axes[:2]
    data = data.with_columns(_piece(across).alias("x"), _piece(down).alias("y"))
    methods = data["method"].unique(maintain_order=True).to_list()
    with rc_context(STYLE):
        size = 0.6 + 0.27 * data["y"].n_unique()
        figure = Figure(figsize=(WIDTH, len(methods) * size + 0.5))
        panels = figure.subplots(len(methods), 2, squeeze=False)
        for row, method in zip(panels, methods, strict=True):
            part = data.filter(pl.col("method") == method)
            _panel(row[0], part, BELOW.mean(), f"{method}: share with F1 < {COLLAPSED_F1:g}", (across, down), "Reds")
            _panel(row[1], part, F1.median(), f"{method}: median F1", (across, down), "Blues")
        headline(figure, _statement(data, across, down, rule))
    return figure


def _piece(name: str) -> pl.Expr:
    return pl.col("cell").str.extract(rf"(?:^| ){name}=(\S+)", 1)


def _panel(axis: Axes, data: pl.DataFrame, value: pl.Expr, title: str, names: tuple[str, str], colours: str) -> None:
    """One heat map with its numbers written in."""
    xs, ys = (data[name].unique(maintain_order=True).to_list() for name in ("x", "y"))
    cells = data.group_by("x", "y").agg(value.alias("value"))
    table = np.full((len(ys), len(xs)), np.nan)
    for x, y, number in cells.iter_rows():
        table[ys.index(y), xs.index(x)] = np.nan if number is None else number
    axis.grid(visible=False)
    axis.imshow(table, cmap=colours, vmin=0, vmax=1.25, aspect="auto")
    for (row, column), number in np.ndenumerate(table):
        text = _number(colours == "Reds")(number)
        axis.text(column, row, text, ha="center", va="center", fontsize=8, color=INK)
    axis.set_xticks(range(len(xs)), xs)
    axis.set_yticks(range(len(ys)), ys)
    axis.set(xlabel=_word(names[0]), ylabel=_word(names[1]), title=title)


def _number(percent: bool) -> Callable[[float], str]:
    def written(number: float) -> str:
        if np.isnan(number):
            return "–"
        return f"{100 * number:.0f} %" if percent else f"{number:.2f}"

    return written


def _word(name: str) -> str:
    return name.replace("_", " ")


def _statement(data: pl.DataFrame, across: str, down: str, rule: str) -> str:
    cells = labelled(data).group_by("method", "x", "y", maintain_order=True).agg(BELOW.sum().alias("low"), pl.len())
    worst = cells.sort(pl.col("low") / pl.col("len"), descending=True, maintain_order=True).row(0, named=True)
    if not worst["low"]:
        return f"No run of {data.height} has F1 below {COLLAPSED_F1:g} ({rule_name(rule)})"
    where = f"{_word(across)} = {worst['x']}, {_word(down)} = {worst['y']}"
    return (
        f"F1 is below {COLLAPSED_F1:g} most often for {worst['method']} at {where}: "
        f"{worst['low']} of {worst['len']} runs ({rule_name(rule)})"
    )
