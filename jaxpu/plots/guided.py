"""Pictures of guided training."""

import polars as pl
from matplotlib import rc_context
from matplotlib.figure import Figure

from jaxpu.plots.style import BLUE, GREEN, QUIET, RED, STYLE, WIDTH, headline

PANELS = {"accuracy": "test accuracy", "log_loss": "test log-loss", "kept": "share of pairs kept"}
COLOURS = {"none": QUIET, "whole": BLUE, "low": GREEN, "high": RED}


def guided_courses(paths: pl.DataFrame) -> Figure:
    """Draw accuracy, log-loss and the share of pairs kept over training, a row a teacher.

    Args:
        paths: method, cell, epoch, accuracy, log_loss, kept: medians over seeds. ``none`` is shown with each teacher.

    >>> import polars as pl
    >>> paths = pl.DataFrame({"method": ["none", "high"], "cell": ["", "teacher=plain sees=all"], "epoch": 1,
    ...                       "accuracy": [0.9, 0.5], "log_loss": [0.2, 3.0], "kept": [1.0, 0.01]})
    >>> guided_courses(paths).get_suptitle()
    'The high filter ends with the least accuracy: 0.50 (teacher=plain sees=all)'
    >>> [axis.get_title(loc="left") for axis in guided_courses(paths).axes]
    ['test accuracy', 'test log-loss', 'share of pairs kept']
    """
    cells = [cell for cell in paths["cell"].unique(maintain_order=True) if cell]
    ends = paths.filter(pl.col("epoch") == pl.col("epoch").max())
    worst = ends.sort("accuracy", maintain_order=True).row(0, named=True)
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.9 * len(cells) + 0.5))
        grid = figure.subplots(len(cells), len(PANELS), squeeze=False, sharex=True)
        for axis, title in zip(grid[0], PANELS.values(), strict=True):
            axis.set_title(title, fontsize=9)
        for row, cell in zip(grid, cells, strict=True):
            shown = paths.filter(pl.col("cell").is_in([cell, ""]))
            for axis, name in zip(row, PANELS, strict=True):
                for method in shown["method"].unique(maintain_order=True):
                    mine = shown.filter(pl.col("method") == method)
                    axis.plot(mine["epoch"], mine[name], color=COLOURS[method], linewidth=1.3, label=method)
                if name == "log_loss":
                    axis.set_yscale("log")
            row[0].set_ylabel(cell.replace(" ", "\n"), fontsize=8)
        for axis in grid[-1]:
            axis.set_xlabel("epoch")
        handles, names = grid[0][0].get_legend_handles_labels()
        statement = (
            f"The {worst['method']} filter ends with the least accuracy: {worst['accuracy']:.2f} ({worst['cell']})"
        )
        headline(figure, statement, dict(zip(names, handles, strict=True)))
    return figure
