"""The report on seed 002: which loss, how hard it pulls on whom, and what that is worth."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
import yaml
from matplotlib.figure import Figure

from jaxpu.config import expand, parse
from jaxpu.plots import gradients
from jaxpu.plots.differences import paired_differences
from jaxpu.report.parts import Part, claims_summary, finished, not_here, section, words_of, write_report
from jaxpu.report.tables import mean
from jaxpu.results import ResultsError
from jaxpu.study.well_classified import Course, course

TEXTS = words_of("encouraging.yaml")
"""The words of the report."""

PARTS = tuple(Part(**part) for part in TEXTS["parts"])
"""The parts of the report, in its order."""

LOOKED_AT_EXPERIMENT, LOOKED_AT, SEEDS = "encouraging_digits_classes", "lr=0.001", 8
"""The experiment, the cells and the number of seeds that are trained once more, with probes."""

METRICS = {
    "accuracy": "accuracy",
    "ece": "calibration error (ECE)",
    "outside_auc": "AUC of the confidence, test images against those of MNIST",
    "outside_confidence": "mean confidence in images of MNIST",
}
"""Metrics of the summary that are tabulated, where they are recorded."""

OVER_TRAINING: dict[str, Callable[[Mapping[str, Course]], Figure]] = {
    "pull_over_training": gradients.pull_over_training,
    "gradient_norms": gradients.gradient_norms,
    "margins": gradients.margins,
}
"""Figures of what was seen over training."""

LONG_TAIL_METRICS = {"balanced_accuracy": "balanced accuracy", "accuracy": "accuracy", "ece": "calibration error (ECE)"}

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
    figures |= {
        f"against_cross_entropy_{part.experiment}": functools.partial(_against, results, part) for part in there
    }
    looked_at = results / LOOKED_AT_EXPERIMENT / "config.yaml"
    seen = functools.cache(lambda: courses(looked_at))
    if looked_at.exists():
        figures |= {name: lambda draw=draw: draw(seen()) for name, draw in OVER_TRAINING.items()}
    sections = [
        f"{TEXTS['intro']}\n\n{claims_summary(results, there)}",
        *(_numbers(results, part) for part in there),
        TEXTS["slips"],
        TEXTS["mechanism"],
        TEXTS["training"] if looked_at.exists() else "",
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


def _numbers(results: Path, part: Part) -> str:
    """A table for each of the metrics that a part is about: a row a method, a column a cell, at the last epoch."""
    summary = pl.read_csv(results / part.experiment / "summary.csv").filter(pl.col("selection") == "last")
    asked = _asked(part)
    tables = [
        _table(summary.filter(metric=metric), said) for metric, said in asked.items() if metric in summary["metric"]
    ]
    image = f"![against cross-entropy](figures/against_cross_entropy_{part.experiment}.svg)"
    return "\n\n".join([f"**{part.heading}**, at the last epoch:", *tables, image])


def _asked(part: Part) -> dict[str, str]:
    """The metrics that a part is about, the first of them the one that claims are of."""
    return LONG_TAIL_METRICS if part.experiment.endswith("long_tail") else METRICS


def _against(results: Path, part: Part) -> Figure:
    selected = pl.read_csv(results / part.experiment / "selected.csv").filter(
        pl.col("selection") == "last", ~pl.col("method").str.starts_with("nnpu")
    )
    metric, said = next(iter(_asked(part).items()))
    return paired_differences(selected, "cross_entropy", f"test_oracle_{metric}", said)


def _table(summary: pl.DataFrame, said: str) -> str:
    cells = summary["cell"].fill_null("").unique(maintain_order=True).to_list()
    found = {(row["method"], row["cell"] or ""): row for row in summary.iter_rows(named=True)}
    head = f"| {said}, n = {summary['n'].max()} seeds | {' | '.join(cell or 'mean' for cell in cells)} |"
    lines = [head, f"|---|{'---:|' * len(cells)}"]
    for method in summary["method"].unique(maintain_order=True):
        lines.append(f"| `{method}` | {' | '.join(mean(found[method, cell]) for cell in cells)} |")
    return "\n".join(lines)
