"""Runs that ended badly, continued with their factors held fixed until they heal: is it a collapse or a long way?"""

import functools
import itertools
from typing import Any

import jax
import numpy as np
import polars as pl
from jax import Array
from jax import numpy as jnp

from jaxpu import collapse
from jaxpu.config.ensemble import EnsembleCell
from jaxpu.ensemble import trainers
from jaxpu.ensemble.aggregate import Aggregator, Step, aggregate
from jaxpu.study import programs
from jaxpu.study.programs import Problem, Trained

PER_DECADE = 12
"""Points in time at which the continued runs are looked at, a factor 10 apart; so a time is exact to 21 %."""


def checkpoints(begin: int, end: int) -> list[int]:
    """Updates at which to look, from ``begin`` to ``end``, evenly spaced in their logarithm.

    >>> checkpoints(100, 1000)[:3], checkpoints(100, 1000)[-1]
    ([100, 121, 147], 1000)
    """
    count = max(2, round(PER_DECADE * np.log10(end / begin)) + 1)
    return np.unique(np.geomspace(begin, end, count).round().astype(int)).tolist()


def continued(
    cell: EnsembleCell, frame: pl.DataFrame, problem: Problem, trained: Trained, end: int
) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Continue the runs of a cell that are not healthy.

    Args:
        cell: of these runs. frame: their rows, with verdicts. problem, trained: theirs. end: most updates in all.

    Returns:
        The rows with ranked_at and healthy_at, the updates after which AUC reached good_auc and the verdict was
        healthy (that of the training itself where it already was, None where it never came), ``end_verdict``, and a
        verdict ``stopped_early`` where a longer run is healthy; and the paths of w, b and the scores.
    """
    times = checkpoints(cell.method.iterations, end)
    failing = np.flatnonzero((frame["verdict"] != "healthy").to_numpy())
    ranked = np.where(frame["roc_auc"].to_numpy() >= _GOOD, times[0], 0)
    healthy = np.where((frame["verdict"] == "healthy").to_numpy(), times[0], 0)
    last = np.array(frame["verdict"].to_list(), dtype=object)
    state = jax.tree.map(lambda a: a[failing], trained.aggregator)
    seen: list[pl.DataFrame] = []
    for before, now in itertools.pairwise(times):
        if not failing.size:
            break
        state = _go_on(cell)(state, *_of(problem, trained, failing), now - before)
        looked = _look(state, problem, trained, failing)
        verdicts = collapse.epoch_verdicts(looked)
        ranked[failing] = np.where((ranked[failing] == 0) & (looked["oracle_auc"] >= _GOOD), now, ranked[failing])
        done = verdicts == "healthy"
        first = done & (healthy[failing] == 0)
        healthy[failing[first]], last[failing] = now, verdicts
        seen.append(_seen(failing, now, state, looked))
        gone = healthy[failing] > 0
        if gone.mean() >= 0.5:  # every number of runs is a program to compile: they leave in batches
            failing, state = failing[~gone], jax.tree.map(lambda a, keep=~gone: a[keep], state)
    return _with_times(frame, ranked, healthy, last), _paths(cell, seen)


_GOOD = collapse.Thresholds().good_auc


@functools.cache
def _program() -> Any:
    def one(a: Aggregator, r: Array, y: Array, known: Array, updates: Array, step: Step) -> Aggregator:
        return trainers.continue_aggregator(a, r, y, known, updates=updates, step=step)

    return jax.jit(jax.vmap(one, (0, 0, 0, 0, None, None)))


def _go_on(cell: EnsembleCell) -> Any:
    method = cell.method
    step = Step(lr=method.lr, bias_lr=method.bias_lr, class_weights=method.class_weights)
    return lambda state, r, y, known, updates: _program()(state, r, y, known, jnp.asarray(updates), step)


def _of(problem: Problem, trained: Trained, rows: np.ndarray) -> tuple[Array, Array, Array]:
    """Ratings, labels and mask of the labelled instances alone, padded to one length: the others do not matter."""
    known = np.asarray(problem.labeled)[rows] > 0
    width = int(np.asarray(problem.labeled).astype(bool).sum(1).max())
    order = np.argsort(~known, axis=1, kind="stable")[:, :width]
    r = np.take_along_axis(np.asarray(trained.ratings)[rows], order[:, None, :], 2)
    y, mask = (np.take_along_axis(np.asarray(a)[rows], order, 1) for a in (problem.labels, problem.labeled))
    return jnp.asarray(r), jnp.asarray(y), jnp.asarray(mask)


def _look(state: Aggregator, problem: Problem, trained: Trained, rows: np.ndarray) -> dict[str, np.ndarray]:
    logits = jax.vmap(aggregate)(state, trained.ratings[rows])
    return jax.device_get(programs.measure(logits, problem.labels[rows], problem.labeled[rows] == 0))


def _seen(rows: np.ndarray, now: int, state: Aggregator, looked: dict[str, np.ndarray]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "run": rows,
            "update": now,
            "w_mean": np.asarray(state.w).mean(1),
            "b": np.asarray(state.b),
            "score_mean": looked["score_mean"],
            "roc_auc": looked["oracle_auc"],
        }
    )


def _with_times(frame: pl.DataFrame, ranked: np.ndarray, healthy: np.ndarray, last: np.ndarray) -> pl.DataFrame:
    def times(values: np.ndarray) -> pl.Series:
        return pl.Series([int(v) or None for v in values], dtype=pl.Int64)

    at_end = frame["verdict"]
    frame = frame.with_columns(
        end_verdict=at_end, final_verdict=pl.Series(last.tolist()), ranked_at=times(ranked), healthy_at=times(healthy)
    )
    early = (pl.col("verdict") != "healthy") & pl.col("healthy_at").is_not_null()
    return frame.with_columns(verdict=pl.when(early).then(pl.lit("stopped_early")).otherwise("verdict"))


def _paths(cell: EnsembleCell, seen: list[pl.DataFrame]) -> list[dict[str, Any]]:
    """Medians over the runs that still go on, and how many of them."""
    if not seen:
        return []
    columns = [pl.col(c).median() for c in ("w_mean", "b", "score_mean", "roc_auc")]
    table = pl.concat(seen).group_by("update", maintain_order=True).agg(*columns, going=pl.len())
    head = {"dataset": cell.dataset, "method": cell.method.name, "cell": cell.label}
    return [head | row for row in table.iter_rows(named=True)]
