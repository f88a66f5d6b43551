"""The kind ``ensemble`` for :mod:`jaxpu.runs`: a run is one method at one grid point and one seed, recorded as one row.

cells x seeds -> runs -> jobs of equal static part; ratings and the trajectory of the factors are made on the host, once
for all methods that combine them
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from jaxpu import config, data
from jaxpu.config.ensemble import EnsembleCell, EnsembleExperiment, EnsembleMethod
from jaxpu.ensemble import program
from jaxpu.ensemble.aggregate import Step
from jaxpu.ensemble.base import base_jobs, base_runs, rated
from jaxpu.ensemble.baselines import BASELINES
from jaxpu.ensemble.continuation import looks
from jaxpu.ensemble.program import Inputs, Settings, Static
from jaxpu.ensemble.ratings import KINDS, Problem, problem, thinned
from jaxpu.ensemble.record import record
from jaxpu.runs.job import Functions, Job, Run, identity

ON_HOST = ("isotonic_mean",)
"""Baselines that no program computes."""

FUNCTIONS = Functions(program.init, program.advance, program.finished, record, memory=program.memory)

_STEP = ("lr", "bias_lr", "class_weights", "focal", "freeze", "bias_first", "initial_total", "initial_bias")


def runs(experiment: EnsembleExperiment) -> list[Run]:
    """The runs whose scores are ratings, where there are such, and every method at every grid point for every seed.

    Raises:
        ConfigError: a grid point that does not exist.
    """
    base = base_runs(experiment)
    needs = tuple(run.run_id for run in base)
    return [*base, *(_run(cell, seed, needs) for cell, seed in config.runs_of(config.expand(experiment)))]


def _run(cell: EnsembleCell, seed: int, needs: tuple[str, ...]) -> Run:
    content = data.load(cell.dataset).content if cell.ratings.source == "classifiers" else "".join(needs)
    columns = {"dataset": cell.dataset, "method": cell.method_name, **cell.point, "seed": seed}
    return Run(identity("ensemble", cell.identity, content, seed), columns, seed, cell, needs)


def jobs(experiment: EnsembleExperiment, runs: Sequence[Run]) -> list[Job]:
    """The same runs, grouped by what is static; runs of the same ratings are neighbours."""
    groups: dict[Static, list[Run]] = {}
    for run in (run for run in runs if isinstance(run.cell, EnsembleCell)):
        groups.setdefault(static_of(run.cell, experiment, len(run.needs)), []).append(run)
    make = functools.partial(inputs, experiment=experiment)
    found = base_jobs(experiment, [run for run in runs if not isinstance(run.cell, EnsembleCell)])
    for static, mine in groups.items():
        order = list(dict.fromkeys(run.cell.ratings for run in mine))
        mine.sort(key=lambda run, order=order: (order.index(run.cell.ratings), run.seed))
        given = functools.partial(make, static=static)
        found.append(Job(static, {}, tuple(mine), given, 1, FUNCTIONS, precision=experiment.precision))
    return found


def static_of(cell: EnsembleCell, experiment: EnsembleExperiment, members: int = 0) -> Static:
    """What a cell's program is compiled for; ``members`` are its base runs, if it has any.

    >>> experiment = EnsembleExperiment(continue_to=1000)
    >>> static = static_of(experiment.cells()[0], experiment)
    >>> static.shape, static.iterations, static.looks[-1]
    ((10, 500), 100, 1000)
    """
    method, shape, end = cell.method, _shape(cell, experiment, members), cell.continue_to
    if method.is_baseline:
        return Static(method.trainer, shape)
    goes_on = method.trainer == "als" and not method.newton and not method.focal and method.iterations < end
    return Static(
        method.trainer,
        shape,
        cell.factors.dim,
        cell.factors.confidence,
        method.iterations,
        method.newton,
        method.stop,
        looks(method.iterations, end) if goes_on else (),
    )


def _shape(cell: EnsembleCell, experiment: EnsembleExperiment, members: int) -> tuple[int, int]:
    c = cell.ratings
    if c.source == "synthetic":
        return c.classifiers, c.n
    source = data.load(experiment.base.data if experiment.base else cell.dataset)
    return members or len(KINDS), thinned(source.truth, c.rate, np.random.default_rng(0)).size


def inputs(run: Run, needed: Mapping[str, Any], *, experiment: EnsembleExperiment, static: Static) -> Inputs:
    """A run's own arrays."""
    cell: EnsembleCell = run.cell
    if cell.ratings.source == "runs":
        made = rated(experiment, cell.ratings, run, needed)
    else:
        made = problem(cell.ratings, run.seed, experiment.precision)
    method = cell.method
    if method.is_baseline:
        return Inputs(made, logits=_on_host(method.trainer, made, experiment.precision))
    factors = cell.factors
    numbers = (method.rho, factors.ridge, factors.alpha, factors.start_scale, method.plateau, method.plateau_patience)
    settings = Settings(step_of(method), *map(np.float64, numbers))
    if method.trainer != "als" or method.stop:
        return Inputs(made, settings)
    every = _trajectory(static, run, made, settings, experiment.precision)
    return Inputs(made._replace(ratings=every[-1]), settings, _labeled(every, made, cell.ratings.labeled))


def step_of(method: EnsembleMethod) -> Step:
    """The aggregator's updates as a method asks for them.

    >>> float(step_of(EnsembleMethod(class_weights=1.0)).class_weights)
    1.0
    """
    plain = {name: np.float64(getattr(method, name)) for name in _STEP}
    switches = {"centre": np.float64(method.centre), "newton": np.float64(method.newton)}
    return Step(**plain, **switches, damping=np.float64(method.damping))


def _on_host(trainer: str, made: Problem, precision: str) -> Any:
    if trainer not in ON_HOST:
        return None
    with jax.enable_x64(precision == "float64"):
        return BASELINES[trainer](*map(jnp.asarray, made))


_LAST: dict[Any, np.ndarray] = {}
"""The trajectory computed last: jobs have the runs that share one next to each other."""


def _trajectory(static: Static, run: Run, made: Problem, settings: Settings, precision: str) -> np.ndarray:
    cell: EnsembleCell = run.cell
    of_factors = static._replace(newton=False, stop=False, looks=())
    key = (of_factors, config.digest(cell.ratings, cell.factors), run.seed, run.needs, precision)
    if key not in _LAST:
        with jax.enable_x64(precision == "float64"):
            # the step plays no part; always the same one, so that one program serves all
            found = program.trajectory(of_factors, run.seed, made, settings._replace(step=Step(), rho=0.0))
        _LAST.clear()
        _LAST[key] = np.asarray(found)
    return _LAST[key]


def _labeled(trajectory: np.ndarray, made: Problem, share: float) -> Problem:
    """The labeled instances alone, padded to one length for all seeds."""
    known = made.labeled > 0
    length = min(known.size, round(share * known.size) + 1)
    if known.sum() > length:
        raise ValueError(f"{known.sum()} labeled instances, expected at most {length} at a share of {share}")
    order = np.argsort(~known, kind="stable")[:length]
    return Problem(trajectory[:, :, order], made.labels[order], made.labeled[order])
