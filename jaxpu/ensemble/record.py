"""What is recorded of a run of an ensemble: one row, with its verdict, and its way as columns of lists."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from jaxpu import collapse
from jaxpu.config.base import END
from jaxpu.config.ensemble import SCORES, EnsembleMethod
from jaxpu.ensemble.continuation import healing
from jaxpu.ensemble.predictions import PREDICTED
from jaxpu.runs.job import Run

POINTS = 40
"""Most points of a path during training."""

_AGGREGATOR = ("w_mean", "w_sd", "w_min", "w_max", "b")
_PATH = ("w_mean", "b", "score_mean", "auc")

SCHEMA: dict[str, Any] = {
    "selection": pl.String,
    "verdict": pl.String,
    **dict.fromkeys((*SCORES, *_AGGREGATOR), pl.Float64),
    **dict.fromkeys(("iterations", "flipped_at", "ranked_at", "healthy_at"), pl.Int64),
    **dict.fromkeys(PREDICTED, pl.Float64),
    **dict.fromkeys(("end_verdict", "final_verdict"), pl.String),
    "path_update": pl.List(pl.Int64),
    **{f"path_{name}": pl.List(pl.Float64) for name in _PATH},
}
"""The columns; null where a run has none of it. A path has one entry for each of ``path_update``; scores are measured
only where a run goes on after its training."""


def record(run: Run, history: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """One row.

    Args:
        run: of the kind ``ensemble``. history: from :func:`jaxpu.ensemble.program.advance`.

    Returns:
        Metrics of the instances without a label, the verdict; of a fit statistics of w, b, the iterations made and that
        at which Σ w first fell below 0 (null if it never did), and the path; of gradient updates the predictions of
        the flow; of a run that went on what :func:`jaxpu.ensemble.continuation.healing` says.
    """
    method: EnsembleMethod = run.cell.method
    values = {name: np.asarray(column[0], float) for name, column in history.items()}
    row: dict[str, Any] = {name: float(values[name]) for name in SCORES}
    row |= {"selection": END, "verdict": str(_verdicts(values))}
    if "path_b" in values:
        row |= _fit(values)
    if "level" in values and not method.centre and not method.focal:
        row |= {name: float(values[name]) for name in PREDICTED}
    if "look_b" in values:
        row |= _went_on(values, row)
    return pl.DataFrame([row], schema=SCHEMA)


def _verdicts(values: Mapping[str, np.ndarray]) -> np.ndarray:
    theirs = {"f1": "oracle_f1", "f1_best": "oracle_f1_best", "auc": "oracle_auc"}
    same = ("predicted_positive", "score_sd", "prevalence")
    return collapse.epoch_verdicts({theirs.get(name, name): values[name] for name in (*theirs, *same)})


def _fit(values: Mapping[str, np.ndarray]) -> dict[str, Any]:
    w, bias = values["path_w_mean"], values["path_b"]
    below = np.flatnonzero(w < 0)
    row: dict[str, Any] = {name: float(values[name]) for name in _AGGREGATOR}
    row |= {"iterations": int(values["iterations"]), "flipped_at": int(below[0]) + 1 if below.size else None}
    points = np.unique(np.linspace(0, w.size - 1, POINTS).round().astype(int))
    unknown = [None] * points.size
    row |= {"path_update": (points + 1).tolist(), "path_w_mean": w[points].tolist(), "path_b": bias[points].tolist()}
    return row | {"path_score_mean": unknown, "path_auc": unknown}


def _went_on(values: Mapping[str, np.ndarray], row: Mapping[str, Any]) -> dict[str, Any]:
    """What became of a run, and its path with the looks after the first, which ended its training."""
    looked = {name.removeprefix("look_"): column for name, column in values.items() if name.startswith("look_")}
    times, verdicts = looked["update"].astype(int).tolist(), [str(word) for word in _verdicts(looked)]
    verdicts[0] = row["verdict"]
    found: dict[str, Any] = healing(verdicts, looked["auc"], times)
    if verdicts[0] == "healthy":
        return found
    found["path_update"] = row["path_update"] + times[1:]
    return found | {f"path_{name}": row[f"path_{name}"] + looked[name][1:].tolist() for name in _PATH}
