"""Runs that ended badly, continued with their factors held fixed until they heal: is it a collapse or a long way?"""

from typing import Any, NamedTuple

import jax
import numpy as np
import polars as pl
from jax import Array
from jax import numpy as jnp

from jaxpu import collapse, ensemble
from jaxpu.config.ensemble import EnsembleCell
from jaxpu.ensemble.aggregate import Aggregator, Step, aggregate
from jaxpu.study.parts import PATH
from jaxpu.study.programs import Problem, Program, Trained, each_seed, measured

PER_DECADE = 12
"""Points in time at which the continued runs are looked at, a factor 10 apart; so a time is exact to 21 %."""

_GOOD = collapse.Thresholds().good_auc


class _Run(NamedTuple):
    """One run: where its training ended, whether it goes on, all its instances, and the labelled ones alone."""

    end: Aggregator
    going: Any
    all: Problem
    labelled: Problem


def checkpoints(begin: int, end: int) -> list[int]:
    """Updates at which to look, from ``begin`` to ``end``, evenly spaced in their logarithm.

    >>> checkpoints(100, 1000)[:3], checkpoints(100, 1000)[-1]
    ([100, 121, 147], 1000)
    """
    count = max(2, round(PER_DECADE * np.log10(end / begin)) + 1)
    return np.unique(np.geomspace(begin, end, count).round().astype(int)).tolist()


def continued(cell: EnsembleCell, frame: pl.DataFrame, problem: Problem, trained: Trained, end: int) -> pl.DataFrame:
    """Continue the runs of a cell that are not healthy, by the same gradient updates.

    Args:
        cell: of these runs. frame: their rows, with verdicts and paths. problem, trained: theirs.
        end: most updates in all.

    Returns:
        The rows with ranked_at and healthy_at, the updates after which AUC first reached good_auc and the verdict
        was first healthy (that of the training itself where it already was, None where it never came), the verdicts
        ``end_verdict`` of the training and ``final_verdict`` at healthy_at or else ``end``, and the verdict
        ``stopped_early`` where a longer run is healthy; the path goes on. Unchanged for a cell whose updates are not
        gradient steps of constant weights, or are as many as ``end``.
    """
    method = cell.method
    if method.trainer != "als" or method.newton or method.focal or method.iterations >= end:
        return frame
    times = np.array(checkpoints(method.iterations, end))
    step = Step(lr=method.lr, bias_lr=method.bias_lr, class_weights=method.class_weights, centre=float(method.centre))
    going = (frame["verdict"] != "healthy").to_numpy()
    reconstructed = problem._replace(ratings=trained.ratings)
    runs = _Run(trained.aggregator, going, reconstructed, _labelled(reconstructed))
    looked = _course(runs, times - times[0], jax.tree.map(float, step))
    return _times(frame, times, looked).with_columns(_longer(frame[PATH], going, times, looked))


def _one(run: _Run, updates: Array, step: Step) -> dict[str, Array]:
    """Metrics at every look, w and b; a run that does not go on stays where it is."""
    updates = jnp.where(run.going, updates, 0)
    course = ensemble.descend(run.end, *run.labelled, updates=updates, step=step)
    logits = jax.vmap(aggregate, (0, None))(course, run.all.ratings)
    test = run.all.labeled == 0
    found = jax.vmap(measured, (0, None, None))(logits, run.all.labels, test)
    return found | {"w_mean": course.w.mean(1), "b": course.b}


_course = Program(each_seed(_one))


def _labelled(problem: Problem) -> Problem:
    """The labelled instances alone, padded to one length: the others do not move the aggregator."""
    known = problem.labeled > 0
    order = np.argsort(~known, axis=1, kind="stable")[:, : known.sum(1).max()]
    labels, labeled = (np.take_along_axis(a, order, 1) for a in problem[1:])
    return Problem(np.take_along_axis(problem.ratings, order[:, None, :], 2), labels, labeled)


def _times(frame: pl.DataFrame, times: np.ndarray, looked: dict[str, np.ndarray]) -> pl.DataFrame:
    verdicts = collapse.epoch_verdicts(looked)
    verdicts[:, 0] = frame["verdict"].to_numpy()
    ranked, healthy = _first(looked["oracle_auc"] >= _GOOD), _first(verdicts == "healthy")

    def updates(place: np.ndarray) -> pl.Series:
        return pl.Series([int(times[k]) if k >= 0 else None for k in place], dtype=pl.Int64)

    frame = frame.with_columns(
        end_verdict=frame["verdict"],
        final_verdict=pl.Series(verdicts[np.arange(healthy.size), healthy].tolist()),
        ranked_at=updates(ranked),
        healthy_at=updates(healthy),
    )
    early = (pl.col("verdict") != "healthy") & pl.col("healthy_at").is_not_null()
    return frame.with_columns(verdict=pl.when(early).then(pl.lit("stopped_early")).otherwise("verdict"))


def _first(reached: np.ndarray) -> np.ndarray:
    """Place of the first True in every row, -1 where there is none."""
    return np.where(reached.any(1), reached.argmax(1), -1)


def _longer(paths: pl.Series, going: np.ndarray, times: np.ndarray, looked: dict[str, np.ndarray]) -> pl.Series:
    """The paths of the runs, those that went on with what was looked at."""
    columns = {"w_mean": "w_mean", "b": "b", "score_mean": "score_mean", "roc_auc": "oracle_auc"}
    runs = [
        [
            {"update": int(times[k])} | {name: float(looked[source][run, k]) for name, source in columns.items()}
            for k in range(1, times.size if on else 0)
        ]
        for run, on in enumerate(going)
    ]
    return pl.Series(paths.name, [[*begin, *more] for begin, more in zip(paths, runs, strict=True)], dtype=paths.dtype)
