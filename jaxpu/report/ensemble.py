"""Tables, figures and page of one experiment on ensembles."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure
from rich.table import Table

from jaxpu.analysis import Tables
from jaxpu.config.ensemble import EnsembleExperiment
from jaxpu.plots import NothingToShow, render
from jaxpu.plots import ensemble as plots
from jaxpu.report.study import terminal_table, write_folder
from jaxpu.report.tables import mean, number, plain, share
from jaxpu.report.words import verdict_name
from jaxpu.results import atomic_write
from jaxpu.study import Outcome

HEADS = ("method", "PR-AUC [95 % interval]", "ROC-AUC", "upside down [95 % interval]", "Brier", "w", "b", "verdict")
NOTE = (
    "On the instances whose label training did not see, n seeds each. PR-AUC: mean over seeds with its bootstrap "
    "interval; ROC-AUC, Brier score, mean of w and b: medians. Upside down: runs with ROC-AUC at most 0.2, with "
    "Wilson's interval in percent. Beside the verdict stands the number of failing runs."
)
TIMES = {
    "flipped_at": "Σ w below 0",
    "flip_theory": "closed form",
    "ranked_at": "ranking good",
    "heal_theory": "linear flow",
    "healthy_at": "healthy",
    "slow_updates": "slow time scale",
}
TIME_NOTE = (
    "Medians over the runs that got there, in updates since the start; in brackets how many did not. *Closed form* is "
    "the flow's prediction of the time before it, *linear flow* of when the classes are the right way round again, "
    "*slow time scale* 1 / (η λ) of the mode that separates the classes."
)


def write(folder: Path, outcome: Outcome, tables: Tables, experiment: EnsembleExperiment) -> Path:
    """Write ``summary.csv``, ``verdicts.csv``, ``claims.csv``, ``table.md``, ``figures/`` and ``report.html``.

    Args:
        folder: the results folder. outcome, tables: what was run, and its tables. experiment: its configuration.

    Returns:
        The path of the page.
    """
    drawn = [name for name, draw in _figures(outcome, tables).items() if _drawn(folder, name, draw)]
    titles = {name: name.replace("_", " ") for name in drawn}
    return write_folder(folder, outcome, tables, experiment, results(tables), titles)


def results(tables: Tables) -> str:
    """The table of methods and cells in Markdown, and that of times where they were measured."""
    lines = [f"| {' | '.join(map(plain, row))} |" for row in _lines(tables)]
    ruler = "|---|---:|---:|---:|---:|---:|---:|---|"
    text = "\n".join(["## Results\n", f"| {' | '.join(HEADS)} |", ruler, *lines, "", NOTE])
    return f"{text}\n\n{_times(tables)}".rstrip() + "\n"


def rich_table(tables: Tables) -> Table:
    """The table of methods and cells for a terminal."""
    return terminal_table(HEADS, _lines(tables))


def _lines(tables: Tables) -> list[tuple[str, ...]]:
    """The rows of the table, ready to print."""
    several = tables.summary["dataset"].n_unique() > 1
    verdicts = {(row["dataset"], row["method"], row["cell"]): row for row in tables.verdicts.iter_rows(named=True)}
    lines = []
    for identity, group in tables.summary.group_by("dataset", "method", "cell", maintain_order=True):
        found = {row["metric"]: row for row in group.iter_rows(named=True)}
        dataset, method, cell = map(str, identity)
        where = " ".join(word for word in (method, cell, dataset if several and dataset not in cell else "") if word)
        judged = verdicts[identity]
        failing = "" if judged["verdict"] == "healthy" else f" {judged['failing']}/{judged['n']}"
        middle = [
            number(found[name]["median"]) if name in found else "–" for name in ("roc_auc", "brier", "w_mean", "b")
        ]
        numbers = (mean(found.get("pr_auc")), middle[0], share(found.get("inverted")), *middle[1:])
        lines.append((where, *numbers, verdict_name(judged["verdict"]) + failing))
    return lines


def _times(tables: Tables) -> str:
    """When things happened, beside what the closed forms say."""
    there = tables.summary.filter(pl.col("metric").is_in(list(TIMES)))
    if "ranked_at" not in there["metric"]:
        return ""
    rows = []
    for identity, group in there.group_by("method", "cell", maintain_order=True):
        found = {row["metric"]: row for row in group.iter_rows(named=True)}
        rows.append(
            f"| {plain(' '.join(map(str, identity)))} | {' | '.join(_time(found.get(name)) for name in TIMES)} |"
        )
    heads = f"| runs | {' | '.join(TIMES.values())} |\n|---|{'---:|' * len(TIMES)}"
    return f"## Times\n\n{heads}\n" + "\n".join(rows) + f"\n\n{TIME_NOTE}\n"


def _time(row: dict[str, Any] | None) -> str:
    if row is None or not row["n"] or not math.isfinite(row["median"]):
        return "–"
    return f"{row['median']:,.0f}" + (f" ({row['missing']})" if row["missing"] else "")


def _figures(outcome: Outcome, tables: Tables) -> dict[str, Callable[[], Figure]]:
    return {
        "over_setting": lambda: plots.over_setting(tables.summary),
        "by_method": lambda: plots.by_method(tables.summary),
        "over_two_settings": lambda: plots.over_two_settings(tables.summary),
        "long_paths": lambda: plots.long_paths(outcome.paths),
        "healing": lambda: plots.healing(outcome.runs),
    }


def _drawn(folder: Path, name: str, draw: Callable[[], Figure]) -> bool:
    """Write a figure, or remove it where there is nothing to show; whether it is there."""
    path = folder / "figures" / f"{name}.svg"
    try:
        image = render(draw(), "svg")
    except NothingToShow:
        path.unlink(missing_ok=True)
        return False
    atomic_write(path, lambda p: p.write_bytes(image))
    return True
