"""The report on seed 002: which loss, how hard it pulls on whom, and what that is worth."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import yaml
from matplotlib.figure import Figure

from jaxpu.config import expand, parse
from jaxpu.plots import gradients
from jaxpu.report.parts import Part, claims_summary, finished, not_here, section, words_of, write_report
from jaxpu.results import ResultsError
from jaxpu.study.well_classified import Course, course

TEXTS = words_of("encouraging.yaml")
"""The words of the report."""

PARTS = tuple(Part(**part) for part in TEXTS["parts"])
"""The parts of the report, in its order."""

LOOKED_AT, SEEDS = "lr=0.001", 8
"""The cells and the number of seeds that are trained once more, with probes."""

NAMES = {"encouraging_75": "encouraging"}
"""Methods of the experiments whose loss has another name in ``gradients.COLOURS``."""


def write_encouraging(results: Path, configs: Path) -> Path:
    """Write ``encouraging/report.md``, ``report.html`` and their figures from finished experiments.

    Args:
        results: the folder of results folders. configs: the folder of configurations.

    Returns:
        The path of the page.

    Raises:
        ResultsError: none of the experiments is there.
    """
    there = finished(results, PARTS)
    if not there:
        raise ResultsError(f"no experiment on losses in {results}; run scripts/reproduce.py encouraging")
    figures: dict[str, Callable[[], Figure]] = {"gradient_sizes": gradients.gradient_sizes}
    spambase = results / PARTS[0].experiment / "config.yaml"
    if spambase.exists():
        figures["pull_over_training"] = lambda: gradients.pull_over_training(courses(spambase))
    sections = [
        f"{TEXTS['intro']}\n\n{claims_summary(results, there)}",
        *(_accuracies(results, part) for part in there),
        TEXTS["slips"],
        TEXTS["mechanism"],
        TEXTS["training"] if spambase.exists() else "",
        *(section(results, configs, part) for part in there),
        TEXTS["absent"],
        not_here(PARTS, there),
    ]
    return write_report(results / "encouraging", figures, sections)


def courses(config: Path, seeds: int = SEEDS) -> dict[str, Course]:
    """Train the supervised cells of an experiment at one learning rate again, and look at every epoch."""
    cells = expand(parse(yaml.safe_load(config.read_bytes()), where=str(config)))
    chosen = {NAMES.get(cell.method_name, cell.method_name): cell for cell in cells if cell.label == LOOKED_AT}
    return {name: course(chosen[name], seeds) for name in gradients.COLOURS if name in chosen}


def _accuracies(results: Path, part: Part) -> str:
    """Accuracy and calibration of every method at every learning rate, at the last epoch."""
    summary = pl.read_csv(results / part.experiment / "summary.csv").filter(pl.col("selection") == "last")
    cells = summary["cell"].unique(maintain_order=True).to_list()
    rows = []
    for method in summary["method"].unique(maintain_order=True):
        numbers = []
        for metric in ("accuracy", "ece"):
            for cell in cells:
                found = summary.filter(method=method, metric=metric, cell=cell).row(0, named=True)
                interval = f" [{found['ci_low']:.3f}, {found['ci_high']:.3f}]" if metric == "accuracy" else ""
                numbers.append(f"{found['mean']:.3f}{interval}")
        rows.append(f"| `{method}` | {' | '.join(numbers)} |")
    columns = [f"{metric}, {cell}" for metric in ("accuracy", "ECE") for cell in cells]
    heads = f"| loss | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}"
    n = summary["n"].max()
    return f"**{part.heading}**, mean of {n} seeds at the last epoch, with its 95 % interval:\n\n{heads}\n" + "\n".join(
        rows
    )
