"""The tables of results, of any kind of experiment: rows ready to print, and the same rows as Markdown."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from jaxpu.plots.frames import NothingToShow, metric_name, with_label
from jaxpu.plots.rules import known, rule_name
from jaxpu.report.text import Markdown, code, fold, mean, number, share, table
from jaxpu.report.words import verdict_name
from jaxpu.selection import RULES

NO_TABLE = "Nothing was recorded yet, so there is no table."
LONG = 20
"""Rows a selection rule; longer tables are folded on a page, so that the figures are not out of sight."""
MOST = 200


class Column(NamedTuple):
    """A column of the table of results: a metric of the summary, and how it is written."""

    head: str
    metric: str
    written: str = "interval"


_F1 = (
    Column("median F1", "f1", "median"),
    Column("mean F1 [95 % interval]", "f1"),
    Column("F1 < 0.1 [95 % interval]", "f1_below", "share"),
    Column("AUC", "auc", "mean"),
)
COLUMNS: dict[str, tuple[Column, ...]] = {
    "pu": _F1,
    "observed": (
        Column("PU accuracy [95 % interval]", "proxy_pu_accuracy"),
        Column("PU AUC", "proxy_pu_auc", "mean"),
        Column("positive of P", "labeled_positive", "mean"),
        Column("positive of U", "unlabeled_positive", "mean"),
        Column("given prior", "given_prior", "mean"),
    ),
    "multiclass": (Column("accuracy", "accuracy", "mean"), *_F1[1:]),
    "ensemble": (
        Column("PR-AUC [95 % interval]", "average_precision"),
        Column("AUC", "auc", "median"),
        Column("inverted [95 % interval]", "inverted", "share"),
        Column("Brier", "brier", "median"),
        Column("mean w", "w_mean", "median"),
        Column("b", "b", "median"),
    ),
    "guided": (
        Column("accuracy [95 % interval]", "accuracy"),
        Column("log-loss [95 % interval]", "log_loss"),
        Column("AUC", "auc", "median"),
        Column("kept", "kept", "median"),
    ),
    "function": (),
}
"""The columns of each kind of experiment; ``observed`` is ``pu`` where no true labels are known."""

NOTES = {
    "observed": "On the validation rows at the selected epoch; no true labels are known. PU accuracy and AUC are "
    "estimated from P, U and the given prior; of P a share near 1 should be predicted positive, of U near the prior.",
    "pu": "Measured on the test rows at the selected epoch.",
    "multiclass": "Measured on the test rows at the selected epoch; F1 and AUC are means over the classes.",
    "ensemble": "On the instances whose label training did not see. Inverted: runs with AUC at most 0.2.",
    "guided": "On the test rows after the last epoch; kept is the share of mixed pairs that the filter let through.",
    "function": "What was computed for each seed stands among the other measures.",
}
NOTE = (
    "Numbers in brackets are 95 % intervals: bootstrap of the mean over seeds, Wilson for the share of runs (in "
    "percent). Numbers without brackets are medians over seeds, AUC and accuracy means. Beside the verdict, the most "
    "frequent of the failing ones, stands the number of runs that have it, and in brackets that of all failing runs "
    "if it differs."
)


class Line(NamedTuple):
    """One row of the table, ready to print; ``n`` is the number of seeds behind it."""

    label: str
    cells: tuple[str, ...]
    verdict: str
    n: int


def kind_of(config: Mapping[str, Any], summary: pl.DataFrame) -> str:
    """Which columns an experiment has, by its kind and by whether there are true labels."""
    kind = str(config.get("kind") or "pu")
    known = "metric" not in summary.columns or "f1" in summary["metric"] or "proxy_pu_auc" not in summary["metric"]
    return kind if kind in COLUMNS and (known or kind != "pu") else "pu" if known else "observed"


def lines(summary: pl.DataFrame, verdicts: pl.DataFrame, rule: str, kind: str = "pu") -> list[Line]:
    """The rows of the table under one selection rule, in the order of the summary.

    Args:
        summary: dataset, method, grid, selection, metric, n, mean, median, ci_low, ci_high; missing metrics are "–".
        verdicts: dataset, method, the grid, selection, verdict, n, rate; may be empty.
        rule: the selection rule. kind: of the experiment.

    Raises:
        NothingToShow: the summary is empty or lacks a column.
    """
    data = with_label(summary, "selection", "metric", "n", "mean", "median", "ci_low", "ci_high")
    data = data.filter(pl.col("selection") == rule)
    rows = {(row["label"], row["metric"]): row for row in data.iter_rows(named=True)}
    runs = dict(data.group_by("label").agg(pl.col("n").max()).iter_rows())
    words = _verdicts(verdicts, rule)
    found = []
    for label in data["label"].unique(maintain_order=True):
        mine = [rows.get((label, column.metric)) for column in COLUMNS[kind]]
        cells = tuple(_written(row, column) for row, column in zip(mine, COLUMNS[kind], strict=True))
        found.append(Line(label, cells, words.get(label, "–"), runs[label]))
    return found


def _written(row: Mapping[str, Any] | None, column: Column) -> str:
    if column.written == "interval":
        return mean(row)
    if column.written == "share":
        return share(row)
    return number(row[column.written]) if row else "–"


def _verdicts(verdicts: pl.DataFrame, rule: str) -> dict[str, str]:
    """The most frequent failing verdict of each label under a rule, with how many runs have it and how many fail."""
    try:
        data = with_label(verdicts, "selection", "verdict", "count", "n", "failing").filter(pl.col("selection") == rule)
    except NothingToShow:
        return {}
    return {
        label: verdict_name(word) + (_counted(count, failing, n) if word != "healthy" else "")
        for label, word, count, failing, n in data.select("label", "verdict", "count", "failing", "n").iter_rows()
    }


def _counted(count: int, failing: int, n: int) -> str:
    """How many runs have the verdict, and how many fail in whatever way if that is another number.

    >>> _counted(14, 31, 32), _counted(2, 2, 32)
    (' 14/32 (31 fail)', ' 2/32')
    """
    return f" {count}/{n}" + (f" ({failing} fail)" if failing != count else "")


def heads(kind: str) -> tuple[str, ...]:
    """The heads of the columns."""
    return ("student" if kind == "guided" else "method", *(column.head for column in COLUMNS[kind]), "verdict")


def sections(
    summary: pl.DataFrame, verdicts: pl.DataFrame, shown: Sequence[str], kind: str = "pu", default: str | None = None
) -> list[tuple[str, list[Line]]]:
    """(heading, rows) for each rule that a report shows; empty when nothing was recorded."""
    found = []
    for rule in shown if "selection" in summary.columns else ():
        rows = lines(summary, verdicts, rule, kind)
        entry = known(rule)
        remarks = ["label-free" if entry.label_free else "needs true labels"] if entry else []
        remarks += ["the default here"] if rule == default else []
        remark = f" ({', '.join(remarks)})" if remarks else ""
        found.append((f"Selected by {rule_name(rule)}{remark}, {_seeds(rows)}", rows))
    return found


def _seeds(rows: Sequence[Line]) -> str:
    """How many seeds stand behind the rows: "n = 8 seeds", or a range."""
    least, most = min(line.n for line in rows), max(line.n for line in rows)
    return f"n = {most} seed{'s' if most != 1 else ''}" if least == most else f"n = {least} to {most} seeds"


def results(found: Sequence[tuple[str, list[Line]]], kind: str = "pu", *, most: int | None = None) -> Markdown:
    """The table as Markdown, a section a selection rule.

    Args:
        found: from :func:`sections`. kind: of the experiment. most: rows a section on a page, where long tables, and
            those of the third rule and later, are folded; None writes all, as for a file.
    """
    if not found:
        return Markdown(NO_TABLE)
    blocks: list[str] = [f"{NOTES[kind]} {NOTE}"]
    longest = max(len(rows) for _, rows in found)
    look = "l" + "r" * len(COLUMNS[kind]) + "l"
    for place, (heading, rows) in enumerate(found):
        cells = [(code(line.label), *line.cells, bold(line.verdict)) for line in rows[:most]]
        left = len(rows) - len(cells)
        body = table(heads(kind), cells, look) + (f"\n\n{left} more rows are in table.md." if left else "")
        folded = most is not None and (longest > LONG or place > 1)
        blocks.append(fold(heading, body) if folded else f"### {heading}\n\n{body}")
    return Markdown("\n\n".join(blocks))


def bold(verdict: str) -> Markdown:
    """A verdict set apart, and what stands beside it."""
    word = re.sub(r" \d+/\d+.*$", "", verdict)
    return Markdown(verdict if word == "–" else f"**{word}**{verdict[len(word) :]}")


def other_metrics(summary: pl.DataFrame, rule: str, kind: str = "pu", most: int = MOST) -> Markdown:
    """Means over seeds of all that was summarised and is not in the table of results; empty where nothing is."""
    shown = [column.metric for column in COLUMNS[kind]]
    try:
        data = with_label(summary, "selection", "metric", "mean").filter(
            pl.col("selection") == rule, ~pl.col("metric").is_in(shown)
        )
    except NothingToShow:
        return Markdown()
    names = data["metric"].unique(maintain_order=True).to_list()
    rows: dict[str, dict[str, float]] = {}
    for label, metric, value in data.select("label", "metric", "mean").iter_rows():
        rows.setdefault(label, {})[metric] = value
    cells = [[code(label), *(number(found.get(name)) for name in names)] for label, found in list(rows.items())[:most]]
    return table(["method", *map(metric_name, names)], cells) if names else Markdown()


RULE_NOTE = (
    "All methods together. Regret is the test F1 that a rule loses against the best epoch of the same run, which "
    "nobody knows; its interval is over seeds. An artefact is a run whose selected epoch is not healthy while a later "
    "one is."
)


def rules_table(rules: pl.DataFrame) -> Markdown:
    """Selection rules compared, the least regret first; empty for fewer than three."""
    if rules.height < 3:
        return Markdown()
    cells = [
        (
            rule_name(row["rule"], row["validation"])
            + ("" if RULES[row["rule"]].label_free else " (needs true labels)"),
            number(row["f1"]),
            f"{number(row['regret'])} [{number(row['regret_low'])}, {number(row['regret_high'])}]",
            row["below"],
            row["artefacts"],
            row["n_runs"],
        )
        for row in rules.sort("regret", maintain_order=True).iter_rows(named=True)
    ]
    return table(("selection rule", "mean F1", "regret [95 % interval]", "F1 < 0.1", "artefacts", "runs"), cells)
