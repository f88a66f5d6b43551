"""What figures are made of, and what they become: frames, a drawing with its caption, a picture."""

from collections.abc import Callable
from typing import NamedTuple

import polars as pl
from matplotlib.figure import Figure as Canvas

from jaxpu.plots.style import render

SVG_LIMIT = 100_000
"""Bytes; a figure with more marks than that becomes a PNG."""

EMPTY = pl.DataFrame()


class Frames(NamedTuple):
    """What a folder recorded and what was made of it; frames that it lacks are empty.

    Attributes:
        runs: a row a run and epoch (or a run). selected: a row a run and selection rule. summary, verdicts: a row a
            method, point of the grid and rule. claims, rules: a row a claim, and a rule compared. paths: a row a run
            and update.
        shown: the selection rules that a report shows, the default first.
    """

    runs: pl.DataFrame = EMPTY
    selected: pl.DataFrame = EMPTY
    summary: pl.DataFrame = EMPTY
    verdicts: pl.DataFrame = EMPTY
    claims: pl.DataFrame = EMPTY
    rules: pl.DataFrame = EMPTY
    paths: pl.DataFrame = EMPTY
    shown: tuple[str, ...] = ()

    def of_default(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of a frame under the first rule shown."""
        known = "selection" in frame.columns and bool(self.shown)
        return frame.filter(pl.col("selection") == self.shown[0]) if known else frame


class Drawn(NamedTuple):
    """A figure with its caption."""

    figure: Canvas
    caption: str = ""


class Figure(NamedTuple):
    """A figure to be drawn: it appears on the page, in its section; what is left empty, the drawing says itself."""

    name: str
    section: str
    draw: Callable[[], Canvas | Drawn]
    caption: str = ""
    alternative: str = ""


class Picture(NamedTuple):
    """A figure, drawn: an SVG or a PNG, its caption, and what it shows in words for those who cannot see it."""

    name: str
    section: str
    image: bytes
    caption: str
    alternative: str

    @property
    def suffix(self) -> str:
        """Of its file: ``svg`` or ``png``."""
        return "png" if self.image.startswith(b"\x89PNG") else "svg"


def draw(figure: Figure) -> Picture:
    """Draw a figure.

    Raises:
        NothingToShow: with a sentence that says what is missing.
    """
    made = figure.draw()
    canvas, caption = made if isinstance(made, Drawn) else (made, "")
    image = render(canvas)
    if len(image) > SVG_LIMIT:
        image = render(canvas, "png")
    finding = " ".join(canvas.get_suptitle().split())
    return Picture(figure.name, figure.section, image, figure.caption or caption, figure.alternative or finding)
