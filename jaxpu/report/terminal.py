"""What commands print: results of all kinds of experiments, claims and analyses."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from jaxpu.analysis.failures import MethodAnalysis
from jaxpu.plots.figure import Frames
from jaxpu.report import tables

WIDE = 100
"""Columns that the tables take where there is room."""


def console() -> Console:
    """Where commands print; a log has no width, and gets the tables' own."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=WIDE)


def results(frames: Frames, config: Mapping[str, Any]) -> Group:
    """The table of results, a section a selection rule, and the claims; fits 100 columns, and 80.

    Args:
        frames: from :func:`jaxpu.report.frames_of`. config: the resolved experiment.
    """
    kind = tables.kind_of(config, frames.summary)
    default = next(iter(frames.shown), None)
    found = tables.sections(frames.summary, frames.verdicts, frames.shown, kind, default)
    blocks: list[RenderableType] = [block for heading, rows in found for block in (_Section(heading, rows, kind), "")]
    return Group(*blocks or [Text(tables.NO_TABLE)], *claims(frames.claims))


@dataclass(frozen=True)
class _Section:
    """A section of the table; on a terminal of less than 100 columns its intervals stand below their numbers."""

    heading: str
    rows: Sequence[tables.Line]
    kind: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _section(self.heading, self.rows, self.kind, narrow=options.max_width < WIDE)


def _section(heading: str, rows: Sequence[tables.Line], kind: str, narrow: bool) -> Table:
    table = Table(title=escape(heading), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.padding = (0, 1, 0, 0)
    for head in tables.heads(kind):
        words = head in ("method", "student", "verdict")  # fold where the terminal is narrow; numbers stay whole
        name = head.replace(" interval", "").replace("median ", "median\n")
        name = name.replace(" [", "\n[") if narrow else name
        table.add_column(name, no_wrap=not words, overflow="fold", justify="left" if words else "right")
    for line in rows:
        look = "" if line.verdict in ("healthy", "–") else "bold"
        table.add_row(
            Text(line.label),
            *(Text(c.replace(" [", "\n[") if narrow else c) for c in line.cells),
            Text(line.verdict, style=look),
        )
    return table


def claims(frame: pl.DataFrame) -> list[Text]:
    """The claims of an experiment, a line each."""
    return [Text.assemble((row["verdict"], "bold"), ": ", row["claim"]) for row in frame.iter_rows(named=True)]


def analysis(found: Iterable[MethodAnalysis], worst: int) -> Group:
    """What failed, training or selection, and the worst failing runs of each method, one by one."""
    return Group(*(block for method in found for block in _method(method, worst)))


def _method(method: MethodAnalysis, worst: int) -> list[RenderableType]:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="dim")
    for head in ("", "verdicts", "failing [95 % interval]"):
        table.add_column(head)
    for row in method.rows:
        counts = ", ".join(f"{verdict} {rate.occurred}" for verdict, rate in row.judged.rates.items())
        low, high = row.judged.failing.interval
        failing = f"{row.judged.failing.occurred}/{row.judged.failing.n} [{100 * low:.0f}, {100 * high:.0f}] %"
        table.add_row(Text(row.name), Text(counts), Text(failing))
    told = [Text(f"seed {seed}, {rule}: {said}") for seed, rule, said in method.failures[:worst]]
    more = len(method.failures) - len(told)
    told += [Text(f"... and {more} more failing runs (selected.csv)")] if more else []
    return [
        Text.assemble((method.label, "bold"), ": ", method.sentence),
        table,
        *(Padding(t, (0, 0, 0, 2)) for t in told),
        "",
    ]
