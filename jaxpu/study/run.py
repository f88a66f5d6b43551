"""Run an experiment on ensembles: cells -> programs -> one row a run, with metrics, weights, theory and verdict."""

import datetime
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import polars as pl

from jaxpu import collapse, results
from jaxpu.config import dump
from jaxpu.config.ensemble import SELECTION, EnsembleCell, EnsembleExperiment, EnsembleMethod, expand_ensemble
from jaxpu.config.guided import GuidedExperiment
from jaxpu.ensemble.aggregate import Step
from jaxpu.study import programs
from jaxpu.study.programs import Problem, Static, Traced
from jaxpu.study.sources import problems
from jaxpu.study.theory import theory
from jaxpu.study.transient import continued

SETTINGS = ("lr", "bias_lr", "class_weights", "focal", "freeze", "bias_first", "initial_total", "initial_bias")
METRIC_NAMES = {"oracle_auc": "roc_auc", "oracle_ap": "pr_auc"}
_POINTS = 40


class Outcome(NamedTuple):
    """What an experiment leaves: one row a run, the paths (means over seeds), and where they are from."""

    runs: pl.DataFrame
    paths: pl.DataFrame
    provenance: dict[str, Any]


def run(experiment: EnsembleExperiment, folder: Path, *, watch: Callable[[str], None] = print) -> Outcome:
    """Run an experiment and record it in a results folder.

    Args:
        experiment: what to run. folder: where. watch: called with a line after each group of cells.

    Returns:
        The outcome, which is on disk then as config.yaml, runs.parquet, paths.csv and provenance.json.

    Raises:
        ResultsError: the folder is being written by another run. ConfigError: a grid point that does not exist.
    """
    began, started = time.perf_counter(), datetime.datetime.now(datetime.UTC)
    with results.locked(folder), jax.enable_x64(experiment.precision == "float64"):
        (folder / "provenance.json").unlink(missing_ok=True)  # from here on the folder is unfinished
        results.write_text(folder / "config.yaml", dump(experiment))
        runs, paths = _all(experiment, watch, began)
        return record(folder, experiment, runs, paths, began, started, precision=experiment.precision)


def record(
    folder: Path,
    experiment: EnsembleExperiment | GuidedExperiment,
    runs: pl.DataFrame,
    paths: pl.DataFrame,
    began: float,
    started: datetime.datetime,
    *,
    precision: str,
) -> Outcome:
    """Write down what an experiment found: ``runs.parquet``, ``paths.csv`` and, last, ``provenance.json``.

    Args:
        folder: where. experiment: what was run. runs: one row a run. paths: what happened on the way.
        began: ``time.perf_counter()`` at its start. started: the time then. precision: of its arrays.
    """
    provenance = {
        "experiment": experiment.name,
        "started": started.isoformat(timespec="seconds"),
        "command": " ".join(["jaxpu", *sys.argv[1:]]),
        **results.commit(),
        "versions": results.versions(),
        "device": jax.default_backend(),
        "precision": precision,
        "seeds": experiment.seeds,
        "first_seed": experiment.first_seed,
        "runs": runs.height,
        "compile_seconds": 0.0,
        "run_seconds": round(time.perf_counter() - began, 2),
    }
    runs, paths = (
        frame.with_columns(
            pl.col([name for name, kind in frame.schema.items() if kind == pl.Float64]).round_sig_figs(6)
        )
        for frame in (runs, paths)
    )
    results.write_frame(folder / "runs.parquet", runs)
    results.write_frame(folder / "paths.csv", paths)
    results.write_provenance(folder, provenance)
    return Outcome(runs, paths, provenance)


def read(folder: Path) -> Outcome:
    """Read what :func:`run` recorded.

    Raises:
        ResultsError: a file is missing or damaged.
    """
    provenance = results.read_provenance(folder)
    if provenance is None:
        raise results.ResultsError(f"{folder} has no whole provenance.json; repeat its jaxpu run")
    try:
        runs = pl.read_parquet(folder / "runs.parquet")
        text = (folder / "paths.csv").read_text(encoding="utf-8").strip()
    except Exception as error:  # polars raises many kinds for a file that is not whole parquet
        raise results.ResultsError(f"{folder} is unfinished or damaged ({error}); repeat its jaxpu run") from None
    paths = pl.read_csv(folder / "paths.csv", infer_schema_length=None) if text else pl.DataFrame()
    return Outcome(runs, paths, provenance)


def finished(folder: Path, experiment: EnsembleExperiment | GuidedExperiment) -> bool:
    """Whether a folder holds just this experiment, complete."""
    config = folder / "config.yaml"
    same = config.exists() and config.read_text(encoding="utf-8") == dump(experiment)
    return same and results.read_provenance(folder) is not None and (folder / "runs.parquet").exists()


def _all(
    experiment: EnsembleExperiment, watch: Callable[[str], None], began: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    groups: dict[Any, list[EnsembleCell]] = {}
    for cell in expand_ensemble(experiment):
        groups.setdefault(_shared(cell), []).append(cell)
    runs, paths = [], []
    for number, cells in enumerate(groups.values(), 1):
        frame, path = _group(experiment, cells)
        runs.append(frame)
        paths += path
        where = f"{cells[0].method.trainer} {cells[0].label}".strip()
        more = f"{len(cells) - 1} more ({time.perf_counter() - began:.0f} s)"
        watch(f"{number} of {len(groups)} groups: {where} and {more}")
    return pl.concat(runs, how="diagonal"), pl.DataFrame(paths, infer_schema_length=None)


def _shared(cell: EnsembleCell) -> Any:
    """What cells must have in common to be settings of one program call."""
    factors = None if cell.method.is_baseline else cell.factors
    return cell.ratings, factors, cell.method.trainer, cell.method.newton, cell.method.stop


def _group(experiment: EnsembleExperiment, cells: Sequence[EnsembleCell]) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    first = cells[0]
    seeds = np.arange(experiment.first_seed, experiment.first_seed + experiment.seeds)
    problem = problems(first.ratings, seeds, experiment.precision)
    if first.method.is_baseline:
        logits = programs.baseline(first.method.trainer)(problem)
        return pl.concat([_rows(cell, seeds, problem, logits) for cell in cells]), []
    trained = _train(cells, seeds, problem)
    frames, paths = [], []
    for k, cell in enumerate(cells):
        mine = jax.tree.map(lambda a, k=k: a[:, k], trained)
        frame = _rows(cell, seeds, problem, mine.logits)
        frame = frame.hstack(_weights(mine)).hstack(theory(cell, problem, mine))
        if experiment.continue_to and cell.method.trainer == "als":
            frame, later = continued(cell, frame, problem, mine, experiment.continue_to)
            paths += later
        frames.append(frame)
        paths += _paths(cell, mine)
    return pl.concat(frames, how="diagonal"), paths


def _train(cells: Sequence[EnsembleCell], seeds: np.ndarray, problem: Problem) -> programs.Trained:
    factors, methods = cells[0].factors, [cell.method for cell in cells]
    static = Static(
        methods[0].trainer,
        factors.dim,
        factors.confidence,
        max(m.iterations for m in methods),
        methods[0].newton,
        methods[0].stop,
    )
    settings = [Traced(step_of(m), m.rho, m.iterations) for m in methods]
    stacked = jax.tree.map(lambda *leaves: np.asarray(leaves), *settings)
    numbers = (factors.ridge, factors.alpha, factors.start_scale)
    return programs.train(static)((seeds, problem), stacked, *map(float, numbers))


def step_of(method: EnsembleMethod) -> Step:
    """The aggregator's updates as a method asks for them.

    >>> step_of(EnsembleMethod(class_weights=1.0)).class_weights
    1.0
    """
    plain = {name: getattr(method, name) for name in SETTINGS}
    return Step(**plain, centre=float(method.centre), newton=float(method.newton), damping=method.damping)


def _rows(cell: EnsembleCell, seeds: np.ndarray, problem: Problem, logits: np.ndarray) -> pl.DataFrame:
    """One row a seed: identity, metrics of the test rows, verdict."""
    measured = programs.measure(logits, problem.labels, problem.labeled == 0)
    verdicts = collapse.epoch_verdicts(measured)
    metrics = {METRIC_NAMES.get(k, k.removeprefix("oracle_")): np.asarray(v, float) for k, v in measured.items()}
    return pl.DataFrame(
        {
            "dataset": cell.dataset,
            "method": cell.method.name,
            "cell": cell.label,
            "seed": seeds,
            "selection": SELECTION,
            **metrics,
            "verdict": verdicts.tolist(),
        }
    )


def _weights(trained: programs.Trained) -> pl.DataFrame:
    """Statistics of w, b, and the iteration at which Σ w first fell below 0 (None if it never did)."""
    w = np.asarray(trained.aggregator.w, float)
    below = np.asarray(trained.total) < 0
    flipped = np.where(below.any(1), below.argmax(1) + 1, -1)
    return pl.DataFrame(
        {
            "w_mean": w.mean(1),
            "w_sd": w.std(1),
            "w_min": w.min(1),
            "w_max": w.max(1),
            "b": np.asarray(trained.aggregator.b, float),
            "iterations": np.asarray(trained.iterations),
            "flipped_at": pl.Series([int(f) if f > 0 else None for f in flipped], dtype=pl.Int64),
        }
    )


def _paths(cell: EnsembleCell, trained: programs.Trained) -> list[dict[str, Any]]:
    """Mean w and b over the seeds, at up to some iterations."""
    steps = trained.total.shape[1]
    points = np.unique(np.linspace(0, min(steps, cell.method.iterations) - 1, _POINTS).round().astype(int))
    m = trained.aggregator.w.shape[1]
    w, b = np.asarray(trained.total).mean(0) / m, np.asarray(trained.bias).mean(0)
    head = {"dataset": cell.dataset, "method": cell.method.name, "cell": cell.label}
    return [head | {"update": int(t) + 1, "w_mean": float(w[t]), "b": float(b[t])} for t in points]
