"""Further rows scored by a results folder of ``jaxpu run`` that kept its parameters."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit, logit

from jaxpu import config, kinds, runs
from jaxpu.config import ConfigError
from jaxpu.data import load
from jaxpu.data.cells import listed
from jaxpu.data.own import features_like
from jaxpu.fitted.scorer import Scored
from jaxpu.methods import decision_offset
from jaxpu.tables import Schema, columns_of
from jaxpu.tables.columns import Column


def rank(folder: Path, rows: Any) -> Scored:
    """Score rows by every method and point of the grid, the mean of its seeds.

    Returns:
        ``row``, ``method`` with the grid's columns, ``score`` (log odds of the mean probability), ``probability``,
        ``rank`` within the method, ``decision`` (probability at least 1/2).

    Raises:
        ConfigError, ResultsError: another kind of experiment, no kept parameters, or columns that do not fit.
    """
    from jaxpu.train import predict

    resolved, _, _ = runs.read_folder(folder)
    experiment: Any = config.parse(resolved, where=str(folder / "config.yaml"))
    if experiment.kind != "pu":
        raise ConfigError(f"{folder} is of kind {experiment.kind}; expected networks of kind pu")
    by_cell: dict[int, list[Any]] = {}
    for run in kinds.kind_of(experiment).runs(experiment):
        by_cell.setdefault(id(run.cell), []).append(run)
    frames, notes = [], ()
    for ours in by_cell.values():
        cell = ours[0].cell
        dataset = load(cell.data)
        x, notes = _rows(dataset, rows)
        kept = [(run.seed, runs.read_parameters(folder, run.run_id)) for run in ours]
        logits = np.stack([predict.logits(cell, dataset, seed, one, x) for seed, one in kept])
        frames.append(_frame(cell, expit(logits.astype(float) - decision_offset(cell.method)).mean(axis=0)))
    return Scored(pl.concat(frames), notes)


def _frame(cell: Any, p: np.ndarray) -> pl.DataFrame:
    order = np.argsort(-p, kind="stable")
    found = {
        "row": order + 1,
        "method": [cell.method_name] * len(p),
        **{name: [config.as_text(value)] * len(p) for name, value in cell.point.items()},
        "score": logit(np.clip(p, 1e-12, 1 - 1e-12))[order],
        "probability": p[order],
        "rank": np.arange(1, len(p) + 1),
        "decision": (p[order] >= 0.5).astype(np.int8),
    }
    return pl.DataFrame(found)


def _rows(dataset: Any, rows: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Rows with the features of a dataset, and what did not fit."""
    names = dataset.feature_names
    given = columns_of(rows)
    if names is None:
        raise ConfigError(f"{dataset.name} has no names of features; a table cannot be matched with it")
    if missing := [name for name in names if name not in given]:
        raise ConfigError(f"the table lacks {listed(missing)}, and networks take no gaps; add the columns")
    encoded = Schema(tuple(Column(name, "number") for name in names)).encode(given)
    if np.isnan(encoded.x).any():
        row, column = (int(k) for k in np.argwhere(np.isnan(encoded.x))[0])
        raise ConfigError(f"{names[column]!r} is empty or no number in row {row + 1}, and networks take no gaps")
    return features_like(dataset, encoded.x), encoded.notes
