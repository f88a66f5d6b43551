"""The look that all pictures share: colours of Okabe and Ito, and shapes for what colour alone would tell."""

import io
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from matplotlib import style as library
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

INK, QUIET, FAINT = "#22262b", "#6b7178", "#b9bdc2"
BLUE, RED, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"

COLOURS = (RED, BLUE, PURPLE, GREEN, "#56B4E9", QUIET, "#E69F00", INK)
MARKERS = "osD^vPX*"
"""What tells up to eight methods apart."""

WIDTH = 9.0
"""Inches; at 96 pixels an inch the width of the page's text, so that 9.5 points read as such."""

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "text.parse_math": False,  # a "$" in a name is a dollar sign
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titlecolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e8eaed",
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "figure.labelsize": 9.5,
    "figure.titlesize": 11.5,
    "figure.titleweight": "bold",
}


def look() -> AbstractContextManager[None]:
    """Matplotlib's own defaults and over them our style, whatever a user's settings say: to draw within."""
    return library.context(STYLE, after_reset=True)


def looks(rules: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each selection rule; the two rules told apart everywhere keep theirs."""
    fixed = {"val_f1_rescue": (RED, "X"), "val_f1": (BLUE, "o")}
    free = [(GREEN, "s"), (PURPLE, "D"), (QUIET, "^"), (INK, "v"), ("#56B4E9", "P")]
    others = [rule for rule in rules if rule not in fixed]
    return fixed | {rule: free[i % len(free)] for i, rule in enumerate(others)}


def wrapped(text: str, width: int) -> str:
    """Break a label into lines of at most ``width`` characters, at most three of them."""
    return "\n".join(textwrap.wrap(text, width, max_lines=3, placeholder=" …", break_on_hyphens=False))


def row_height(labels: Sequence[str], least: float) -> float:
    """Inches that a row needs so that its wrapped label does not run into the next."""
    return max([least, *(0.1 + 0.16 * (label.count("\n") + 1) for label in labels)])


def headline(figure: Figure, statement: str, legend: Mapping[str, Artist] | None = None) -> None:
    """Put the statement of a figure, and under it the names of its marks, above what is drawn so far.

    The figure grows by that much. The layout engine would print one over the other: they are placed here.
    """
    lines = textwrap.wrap(statement, 92)
    band = 0.14 + 0.2 * len(lines) + (0.3 + 0.2 * ((len(legend) - 1) // 4) if legend else 0)
    height = figure.get_figheight() + band
    figure.set_figheight(height)
    figure.set_layout_engine("constrained", rect=(0, 0, 1, 1 - band / height))
    figure.suptitle("\n".join(lines), x=0.006, y=1 - 0.05 / height, ha="left", va="top").set_in_layout(False)
    if legend:
        corner = (0.0, 1 - (0.06 + 0.2 * len(lines)) / height)
        names = figure.legend(legend.values(), legend.keys(), loc="upper left", bbox_to_anchor=corner, ncols=4)
        names.set_in_layout(False)


def left_out(count: int, things: str) -> str:
    """A line for under a figure that says how many rows or panels it does not show, or nothing."""
    return f"\n({count} more {things} not shown; the table has them all)" if count else ""


def colour_key(axis: Axes, entries: Mapping[str, str]) -> None:
    """Name the lines of a panel to its right, in their colours, where no line can run through the names."""
    for i, (text, colour) in enumerate(entries.items()):
        axis.text(1.015, 0.98 - i * 0.01, "\n\n" * i + text, color=colour, transform=axis.transAxes, va="top")


def render(figure: Figure, kind: str = "svg") -> bytes:
    """Draw a figure as ``svg`` or ``png``: the same numbers give the same bytes (no date, fixed identifiers).

    >>> figure = Figure(figsize=(1, 1))
    >>> render(figure) == render(figure), render(figure, "png")[1:4]
    (True, b'PNG')
    """
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    # names were taken as text when they were drawn; the powers of ten beside logarithmic axes are formulas
    settings = {**STYLE, "text.parse_math": True, "svg.hashsalt": "jaxpu"}
    with library.context(settings, after_reset=True):
        engine = figure.get_layout_engine()
        if engine is not None:  # lay out once, however many files are drawn
            engine.execute(figure)
            figure.set_layout_engine("none")
        figure.savefig(buffer, format=kind, dpi=150, metadata=metadata, facecolor="white")
    return buffer.getvalue() if kind == "svg" else _fewer_colours(buffer)


def _fewer_colours(image: io.BytesIO) -> bytes:
    """A PNG of 256 colours, a third of the size."""
    small = io.BytesIO()
    Image.open(image).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return small.getvalue()
