"""The results table, for Markdown, the terminal and the page: a row a method, a section a selection rule."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from jaxpu.plots.frames import NothingToShow, labelled, rule_name, shown_rules
from jaxpu.report.words import verdict_name
from jaxpu.selection import RULES

HEADS = ("method", "median F1", "mean F1 [95 % interval]", "F1 < 0.1 [95 % interval]", "AUC", "verdict")
HEADS_OF_MANY = ("method", "accuracy", *HEADS[2:])
NO_TABLE = "Nothing was recorded yet, so there is no table."
METRICS = ("f1", "f1_below_0.1", "auc")
NOTE = (
    "Measured on the test rows at the selected epoch. AUC is the mean over seeds. Brackets hold 95 % "
    "intervals: bootstrap of the mean over seeds, Wilson for the share of runs (in percent). Beside the "
    "verdict stands the number of failing runs."
)


NOTE_OF_MANY = f"{NOTE} There are many classes: F1 and AUC are means over them, accuracy and AUC means over seeds."


def many_classes(summary: pl.DataFrame) -> bool:
    """Whether the runs of a summary have more than two classes.

    >>> many_classes(pl.DataFrame({"metric": ["f1", "predicted_most"]})), many_classes(pl.DataFrame())
    (True, False)
    """
    return "metric" in summary.columns and "predicted_most" in summary["metric"]


class Line(NamedTuple):
    """One row of the table, ready to print; ``n`` is the number of seeds behind it.

    ``first`` is the median F1, or of many classes the mean accuracy.
    """

    label: str
    first: str
    mean: str
    below: str
    auc: str
    verdict: str
    n: int

    @property
    def any_below(self) -> bool:
        """Whether any run of the row scores F1 below 0.1."""
        return not self.below.startswith(("0/", "–"))


def heads(summary: pl.DataFrame) -> tuple[str, ...]:
    """The heads of the columns."""
    return HEADS_OF_MANY if many_classes(summary) else HEADS


def note(summary: pl.DataFrame) -> str:
    """What the numbers are."""
    return NOTE_OF_MANY if many_classes(summary) else NOTE


def table_lines(summary: pl.DataFrame, verdicts: pl.DataFrame, rule: str) -> list[Line]:
    """The rows of the table under one selection rule, in the order of the summary.

    Args:
        summary: dataset, method, cell, selection, metric, n, mean, median, ci_low, ci_high, with the metrics
            "f1", "f1_below_0.1" (its mean is the share of runs) and "auc"; of many classes also "accuracy" and
            "predicted_most". Missing ones are "–".
        verdicts: dataset, method, cell, selection, verdict, n, rate; may be empty.
        rule: the selection rule.

    Raises:
        NothingToShow: the summary is empty or lacks a column.
    """
    data = labelled(summary, "selection", "metric", "n", "mean", "median", "ci_low", "ci_high")
    data = data.filter(pl.col("selection") == rule)
    rows = {(row["label"], row["metric"]): row for row in data.iter_rows(named=True)}
    words, many = _words(verdicts, rule), many_classes(summary)
    lines = []
    for label in data["label"].unique(maintain_order=True):
        f1, below, auc = (rows.get((label, name)) for name in METRICS)
        n = max((row["n"] for row in (f1, below, auc) if row), default=0)
        leading = rows.get((label, "accuracy")) if many else f1
        first = number(leading["mean" if many else "median"]) if leading else "–"
        mean_auc = number(auc["mean"]) if auc else "–"
        lines.append(Line(label, first, mean(f1), share(below), mean_auc, words.get(label, "–"), n))
    return lines


def number(value: float | None) -> str:
    """Three decimals, or a dash for what is not known."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.3f}"


def mean(row: dict[str, Any] | None) -> str:
    """A mean with its interval.

    >>> mean({"mean": 0.86, "ci_low": 0.84, "ci_high": 0.87, "n": 8})
    '0.860 [0.840, 0.870]'
    >>> mean({"mean": 0.86, "ci_low": float("nan"), "ci_high": float("nan"), "n": 1})
    '0.860 (n = 1)'
    """
    if row is None or number(row["mean"]) == "–":
        return "–"
    low, high = number(row["ci_low"]), number(row["ci_high"])
    return f"{number(row['mean'])} " + (f"(n = {row['n']})" if "–" in (low, high) else f"[{low}, {high}]")


def share(row: dict[str, Any] | None) -> str:
    """A share of runs with its interval in percent.

    >>> share({"mean": 0.25, "ci_low": 0.0715, "ci_high": 0.5907, "n": 8})
    '2/8 = 25 % [7, 59]'
    """
    if row is None or number(row["mean"]) == "–":
        return "–"
    text = f"{round(row['mean'] * row['n'])}/{row['n']} = {100 * row['mean']:.0f} %"
    low, high = row["ci_low"], row["ci_high"]
    return text if "–" in (number(low), number(high)) else f"{text} [{100 * low:.0f}, {100 * high:.0f}]"


def _words(verdicts: pl.DataFrame, rule: str) -> dict[str, str]:
    """The verdict of each label under a rule, with the number of failing runs."""
    try:
        data = labelled(verdicts, "selection", "verdict", "n", "rate").filter(pl.col("selection") == rule)
    except NothingToShow:
        return {}
    rows = data.select("label", "verdict", "n", "rate").iter_rows()
    return {
        label: verdict_name(word) + (f" {round(rate * n)}/{n}" if word != "healthy" else "")
        for label, word, n, rate in rows
    }


def _default(config: Mapping[str, Any]) -> str | None:
    selection = config.get("selection")
    return selection.get("default") if isinstance(selection, Mapping) else None


def report_rules(frame: pl.DataFrame, config: Mapping[str, Any]) -> list[str]:
    """The selection rules that a report shows, of those in the frame: the experiment's default first.

    >>> frame = pl.DataFrame({"selection": ["val_f1", "pu_auc", "last"]})
    >>> report_rules(frame, {"selection": {"default": "pu_auc"}})
    ['pu_auc', 'val_f1']
    """
    if "selection" not in frame.columns:
        return []
    return shown_rules(frame["selection"].unique(maintain_order=True).to_list(), _default(config))


def sections(summary: pl.DataFrame, verdicts: pl.DataFrame, config: Mapping[str, Any]) -> list[tuple[str, list[Line]]]:
    """(heading, rows) for each rule that a report shows; empty when nothing was recorded."""
    found = []
    for rule in report_rules(summary, config):
        lines = table_lines(summary, verdicts, rule)
        remarks = _needs(rule) + (["the default here"] if rule == _default(config) else [])
        remark = f" ({', '.join(remarks)})" if remarks else ""
        found.append((f"Selected by {rule_name(rule)}{remark}, {seeds(lines)}", lines))
    return found


def _needs(rule: str) -> list[str]:
    """Whether a rule can be used where true labels are not known."""
    known = RULES.get(rule)
    return [] if known is None else ["label-free" if known.label_free else "needs true labels"]


def seeds(lines: Sequence[Line]) -> str:
    """How many seeds stand behind the rows: "n = 8 seeds", or a range."""
    least, most = min(line.n for line in lines), max(line.n for line in lines)
    return f"n = {most} seed{'s' if most != 1 else ''}" if least == most else f"n = {least} to {most} seeds"


def table_markdown(summary: pl.DataFrame, verdicts: pl.DataFrame, config: Mapping[str, Any] | None = None) -> str:
    """The table as Markdown, one section a selection rule.

    Args:
        summary: as in ``table_lines``.
        verdicts: as in ``table_lines``.
        config: the resolved experiment, for its name and its default rule.

    Returns:
        The text; for an empty summary a sentence in place of the table.
    """
    config = config or {}
    blocks = [f"# {plain(str(config.get('name') or 'Results'))}"]
    for heading, lines in sections(summary, verdicts, config):
        rows = [f"| `{_code(line.label)}` | " + " | ".join(map(plain, line[1:6])) + " |" for line in lines]
        ruler = "|---|---:|---:|---:|---:|---|"
        blocks += [f"## {plain(heading)}", "\n".join([f"| {' | '.join(heads(summary))} |", ruler, *rows])]
    blocks.append(note(summary) if len(blocks) > 1 else NO_TABLE)
    return "\n\n".join(blocks) + "\n"


def table_rich(summary: pl.DataFrame, verdicts: pl.DataFrame, config: Mapping[str, Any] | None = None) -> Table:
    """The table for a terminal of 100 columns; arguments as in ``table_markdown``."""
    grid = Table.grid()
    for heading, lines in sections(summary, verdicts, config or {}):
        table = Table(
            title=escape(heading),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        for head in heads(summary):
            words = head in ("method", "verdict")  # fold where the terminal is narrow; numbers stay whole
            name = head.replace(" interval", "").replace("median ", "median\n")
            table.add_column(name, no_wrap=not words, overflow="fold", justify="left" if words else "right")
        for line in lines:
            look = "" if line.verdict in ("healthy", "–") else "bold"
            below = Text(line.below, style="bold" if line.any_below else "")
            cells = (Text(line.label), line.first, Text(line.mean), below, line.auc)
            table.add_row(*cells, Text(line.verdict, style=look))
        grid.add_row(table)
        grid.add_row("")
    if not grid.row_count:
        grid.add_row(NO_TABLE)
    return grid


def plain(text: str) -> str:
    """Text that Markdown takes as text, on one line, within a cell."""
    for sign, safe in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("*", "\\*"), ("_", "\\_")):
        text = text.replace(sign, safe)
    return " ".join(text.split())


def _code(text: str) -> str:
    """Text for a code span within a cell."""
    return " ".join(text.replace("`", "'").replace("|", "\\|").split())
