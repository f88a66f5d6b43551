"""Tables, figure and page of one experiment on guided training."""

from pathlib import Path

from rich.table import Table

from jaxpu.analysis import Tables
from jaxpu.config.guided import GuidedExperiment
from jaxpu.plots import render
from jaxpu.plots.guided import guided_courses
from jaxpu.report.study import terminal_table, write_folder
from jaxpu.report.tables import mean, number, plain
from jaxpu.report.words import verdict_name
from jaxpu.results import atomic_write
from jaxpu.study import Outcome

HEADS = ("student", "accuracy [95 % interval]", "log-loss [95 % interval]", "ROC-AUC", "kept", "verdict")
NOTE = (
    "On the test rows after the last epoch, n seeds each: means over seeds with their bootstrap intervals; ROC-AUC and "
    "the share of mixed pairs that the filter kept in the last epoch: medians. Beside the verdict stands the number of "
    "failing runs. The student `none` learns without mixup and without a teacher."
)


def write(folder: Path, outcome: Outcome, tables: Tables, experiment: GuidedExperiment) -> Path:
    """Write ``summary.csv``, ``verdicts.csv``, ``claims.csv``, ``table.md``, ``figures/`` and ``report.html``.

    Args:
        folder: the results folder. outcome, tables: what was run, and its tables. experiment: its configuration.

    Returns:
        The path of the page.
    """
    image = render(guided_courses(outcome.paths), "svg")
    atomic_write(folder / "figures" / "courses.svg", lambda path: path.write_bytes(image))
    figures = {"courses": "Accuracy, log-loss and share kept over training"}
    return write_folder(folder, outcome, tables, experiment, _markdown(tables), figures)


def rich_table(tables: Tables) -> Table:
    """The table of students for a terminal."""
    return terminal_table(HEADS, _lines(tables))


def _markdown(tables: Tables) -> str:
    lines = [f"| {' | '.join(map(plain, row))} |" for row in _lines(tables)]
    return "\n".join(["## Results\n", f"| {' | '.join(HEADS)} |", "|---|---:|---:|---:|---:|---|", *lines, "", NOTE])


def _lines(tables: Tables) -> list[tuple[str, ...]]:
    verdicts = {(row["method"], row["cell"]): row for row in tables.verdicts.iter_rows(named=True)}
    lines = []
    for identity, group in tables.summary.group_by("method", "cell", maintain_order=True):
        found = {row["metric"]: row for row in group.iter_rows(named=True)}
        judged = verdicts[identity]
        failing = "" if judged["verdict"] == "healthy" else f" {judged['failing']}/{judged['n']}"
        numbers = (mean(found["accuracy"]), mean(found["log_loss"]))
        middle = (number(found["roc_auc"]["median"]), number(found["kept"]["median"]))
        lines.append((" ".join(map(str, identity)), *numbers, *middle, verdict_name(judged["verdict"]) + failing))
    return lines
