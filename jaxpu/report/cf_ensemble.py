"""The report on seed 003: its claims one by one, the slip in its arithmetic, the mechanism, and what to do."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from jaxpu.plots import mechanism
from jaxpu.report.parts import Part, claims_summary, finished, not_here, section, words_of, write_report
from jaxpu.results import ResultsError

TEXTS = words_of("cf_ensemble.yaml")
"""The words of the report."""

PARTS = tuple(Part(**part) for part in TEXTS["parts"])
"""The parts of the report, in its order."""

FIGURES: dict[str, Callable[[], Figure]] = {
    "aggregator_path": mechanism.aggregator_path,
    "phase_plane": mechanism.phase_plane,
}


def write_cf_ensemble(results: Path, configs: Path) -> Path:
    """Write ``cf_ensemble/report.md``, ``report.html`` and their figures from finished experiments.

    Args:
        results: the folder of results folders. configs: the folder of configurations.

    Returns:
        The path of the page.

    Raises:
        ResultsError: none of the experiments is there.
    """
    folder = results / "cf_ensemble"
    there = finished(results, PARTS)
    if not there:
        raise ResultsError(f"no experiment on ensembles in {results}; run scripts/reproduce.py cf_ensemble")
    sections = [
        f"{TEXTS['intro']}\n\n{claims_summary(results, there)}",
        _reference(folder),
        TEXTS["slip"],
        TEXTS["mechanism"],
    ]
    sections += [section(results, configs, part) for part in there]
    sections += [_advice(results), not_here(PARTS, there)]
    return write_report(folder, FIGURES, sections)


def _reference(folder: Path) -> str:
    path = folder / "reference.json"
    if not path.exists():
        return ""
    told = json.loads(path.read_text(encoding="utf-8"))
    rows = [_fit(fit) for fit in told["fits"]]
    heads = "| trainer | class weights | PR-AUC | ROC-AUC | w | b | predictions | off the original's w, b |"
    return (
        "## The seed's figures, met\n\nOn the original's data set, from its random start, in float64.\n\n"
        f"{heads}\n|---|---|---:|---:|---:|---:|---:|---:|\n" + "\n".join(rows) + "\n\n"
        f"Repeat: `{told['command']}`; commit `{(told['commit'] or 'unknown')[:9]}`. The data set is not part of the "
        "repository; the same computation on a small one that is has golden values in `tests/golden/ensemble.json`."
    )


def _fit(fit: dict) -> str:
    """One row of the table of the seed's figures."""
    off = fit["largest_difference_from_original_w_b"]
    cells = (
        f"{fit['trainer']}, {fit['iterations']} iterations",
        fit["class_weights"],
        f"{fit['pr_auc']:.4f}",
        f"{fit['roc_auc']:.4f}",
        f"{fit['w_min']:.4f} to {fit['w_max']:.4f}",
        f"{fit['b']:.3f}",
        f"{fit['p_min']:.3f} to {fit['p_max']:.3f}",
        "–" if off is None else f"{off:.0e}",
    )
    return f"| {' | '.join(cells)} |"


def _advice(results: Path) -> str:
    path = results / "cf_remedies" / "summary.csv"
    if not path.exists():
        return ""
    summary = pl.read_csv(path)

    def row(method: str) -> str:
        cells = [method]
        for rate in ("0.1", "0.02"):
            for metric, digits in (("inverted", 2), ("pr_auc", 3), ("brier", 3), ("ece", 3)):
                found = summary.filter(method=method, metric=metric, cell=f"rate={rate}")
                cells.append(f"{found['mean'][0]:.{digits}f}")
        return f"| {' | '.join(cells)} |"

    columns = [f"{name}, {rate}" for rate in ("10 %", "2 %") for name in ("upside down", "PR-AUC", "Brier", "ECE")]
    heads = f"| remedy | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}"
    rows = "\n".join(row(method) for method in summary["method"].unique(maintain_order=True))
    return f"{TEXTS['advice']}\n\n{heads}\n{rows}"
