"""Run an experiment on ensembles: cells -> programs -> one row a run, with metrics, weights, theory and verdict."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars as pl

from jaxpu import collapse
from jaxpu.config import END, digest, expand, point_label
from jaxpu.config.ensemble import EnsembleCell, EnsembleExperiment, EnsembleMethod
from jaxpu.ensemble.aggregate import Step
from jaxpu.study import programs
from jaxpu.study.parts import FORMAT, PATH, Outcome, Part, run_parts
from jaxpu.study.programs import Problem, Static, Traced
from jaxpu.study.sources import problems
from jaxpu.study.theory import theory
from jaxpu.study.transient import continued

SETTINGS = ("lr", "bias_lr", "class_weights", "focal", "freeze", "bias_first", "initial_total", "initial_bias")
METRIC_NAMES = {"oracle_auc": "roc_auc", "oracle_average_precision": "pr_auc"}
POINT = {"update": pl.Int64, "w_mean": pl.Float64, "b": pl.Float64, "score_mean": pl.Float64, "roc_auc": pl.Float64}
"""A point on the path of a run; scores are measured only where the run goes on after its training."""

_POINTS = 40


def run(
    experiment: EnsembleExperiment, folder: Path, *, fresh: bool = False, watch: Callable[[str], None] = print
) -> Outcome:
    """Run an experiment, or what is left of it, and record it in a results folder.

    Args:
        experiment: what to run. folder: where. fresh: forget what the folder holds and start again.
        watch: called with a line after each group of cells.

    Returns:
        The outcome, which is on disk then as config.yaml, runs.parquet, paths.csv and provenance.json.

    Raises:
        ResultsError: the folder is being written by another run, or holds parts of another experiment.
        ConfigError: a grid point that does not exist.
    """
    groups: dict[Any, list[EnsembleCell]] = {}
    for cell in expand(experiment):
        groups.setdefault(_shared(cell), []).append(cell)
    parts = [_part(experiment, cells) for cells in groups.values()]
    wanted = [run_id for part in parts for run_id in part.run_ids]
    # what takes long with real ratings is to make them: groups that share them are neighbours
    ratings = list(dict.fromkeys(cells[0].ratings for cells in groups.values()))
    order = sorted(zip(groups.values(), parts, strict=True), key=lambda pair: ratings.index(pair[0][0].ratings))
    with jax.enable_x64(experiment.precision == "float64"):
        ordered, precision = [part for _, part in order], experiment.precision
        return run_parts(experiment, folder, ordered, wanted, precision=precision, fresh=fresh, watch=watch)


def _shared(cell: EnsembleCell) -> Any:
    """What cells must have in common to be settings of one program call."""
    factors = None if cell.method.is_baseline else cell.factors
    return cell.ratings, factors, cell.method.trainer, cell.method.newton, cell.method.stop


def _part(experiment: EnsembleExperiment, cells: Sequence[EnsembleCell]) -> Part:
    first = cells[0]
    more = f" and {len(cells) - 1} more" if len(cells) > 1 else ""
    ids = tuple(run_id for cell in cells for run_id in _run_ids(experiment, cell))
    return Part(
        f"{first.method.name} {point_label(first.point)}".strip() + more, ids, lambda: _compute(experiment, cells)
    )


def _run_ids(experiment: EnsembleExperiment, cell: EnsembleCell) -> list[str]:
    of_cell = digest(FORMAT, cell.method_name, *cell.identity)
    return [digest(of_cell, int(seed)) for seed in _seeds(experiment)]


def _seeds(experiment: EnsembleExperiment) -> np.ndarray:
    return np.arange(experiment.first_seed, experiment.first_seed + experiment.seeds)


def _compute(experiment: EnsembleExperiment, cells: Sequence[EnsembleCell]) -> pl.DataFrame:
    """The rows of the runs of cells that are settings of one program."""
    first, seeds = cells[0], _seeds(experiment)
    problem = problems(first.ratings, tuple(seeds.tolist()), experiment.precision)
    if first.method.is_baseline:
        logits = programs.baseline(first.method.trainer)(problem)
        return pl.concat([_rows(experiment, cell, problem, logits) for cell in cells], how="vertical_relaxed")
    trained = _train(cells, seeds, problem)
    frames = []
    for k, cell in enumerate(cells):
        mine = jax.tree.map(lambda a, k=k: a[:, k], trained)
        frame = _rows(experiment, cell, problem, mine.logits)
        frame = frame.hstack(_weights(mine)).hstack(theory(cell, problem, mine))
        frames.append(continued(cell, frame.hstack([_path(cell, mine)]), problem, mine, experiment.continue_to))
    return pl.concat(frames, how="diagonal_relaxed")


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


def _rows(experiment: EnsembleExperiment, cell: EnsembleCell, problem: Problem, logits: np.ndarray) -> pl.DataFrame:
    """One row a seed: identity, metrics of the test rows, verdict."""
    measured = programs.measure(logits, problem.labels, problem.labeled == 0)
    verdicts = collapse.epoch_verdicts(measured)
    metrics = {METRIC_NAMES.get(k, k.removeprefix("oracle_")): np.asarray(v, float) for k, v in measured.items()}
    return pl.DataFrame(
        {
            "run_id": _run_ids(experiment, cell),
            "dataset": cell.dataset,
            "method": cell.method.name,
            **{column: pl.Series([value] * experiment.seeds) for column, value in cell.point.items()},
            "seed": _seeds(experiment),
            "selection": END,
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


def _path(cell: EnsembleCell, trained: programs.Trained) -> pl.Series:
    """Mean w and b of each run at up to so many iterations."""
    steps = min(trained.total.shape[1], cell.method.iterations)
    points = np.unique(np.linspace(0, steps - 1, _POINTS).round().astype(int))
    w, b = trained.total[:, points] / trained.aggregator.w.shape[1], trained.bias[:, points]
    runs = [
        [{"update": int(t) + 1, "w_mean": float(x), "b": float(y)} for t, x, y in zip(points, *run, strict=True)]
        for run in zip(w, b, strict=True)
    ]
    return pl.Series(PATH, runs, dtype=pl.List(pl.Struct(POINT)))
