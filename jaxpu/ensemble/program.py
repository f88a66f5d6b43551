"""One run of an ensemble as pure functions of arrays: fit, measure, say what the theory says, and go on if asked.

Everything happens in one epoch, whose history is one row: metrics of the instances without a label, the aggregator, the
whole way of mean w and b, predictions of the flow, and what was seen while an unhealthy run went on.
"""

import functools
from typing import Any, NamedTuple

import jax
from jax import Array, lax
from jax import numpy as jnp

from jaxpu import metrics
from jaxpu.ensemble import als, trainers
from jaxpu.ensemble.aggregate import Aggregator, Step, aggregate
from jaxpu.ensemble.baselines import BASELINES
from jaxpu.ensemble.confidence import confidence
from jaxpu.ensemble.continuation import going_on, healthy
from jaxpu.ensemble.predictions import predictions
from jaxpu.ensemble.ratings import FACTORS, Problem
from jaxpu.ensemble.trajectory import factor_trajectory, fit_aggregator


class Static(NamedTuple):
    """What a program is compiled for.

    Attributes:
        trainer: ``als``, ``joint`` or a baseline. shape: of the ratings. dim, confidence, iterations, newton, stop:
            as configured. looks: updates after which a run that goes on is looked at; none = runs do not.
    """

    trainer: str
    shape: tuple[int, int]
    dim: int = 0
    confidence: str = ""
    iterations: int = 0
    newton: bool = False
    stop: bool = False
    looks: tuple[int, ...] = ()


class Settings(NamedTuple):
    """The numbers of a run."""

    step: Step
    rho: Any
    ridge: Any
    alpha: Any
    start_scale: Any
    plateau: Any = 1.0
    plateau_patience: Any = 10


class Inputs(NamedTuple):
    """The arrays of a run.

    Attributes:
        problem: ratings and labels; where a trajectory is given, its last ratings.
        settings: numbers; None for a baseline.
        trajectory: reconstructed ratings of the labeled instances after each iteration, and their labels; padded with
            instances whose label is not known. None where the factors are fitted here.
        logits: of a baseline that is computed on the host.
    """

    problem: Problem
    settings: Settings | None = None
    trajectory: Problem | None = None
    logits: Any = None


class _Fitted(NamedTuple):
    """Logits, reconstructed ratings, the aggregator, mean w and b after each iteration, and iterations made."""

    logits: Array
    ratings: Array
    aggregator: Aggregator
    w_mean: Array
    bias: Array
    iterations: Array


def init(static: Static, key: Array, shared: Any, inputs: Inputs) -> dict[str, Array]:
    """Nothing has been done."""
    return {"done": jnp.zeros((), bool)}


def finished(static: Static, state: dict[str, Array]) -> Array:
    """Whether the one epoch is over."""
    return state["done"]


def memory(static: Static, shared: Any) -> int:
    """Bytes of the ratings after every iteration, twice."""
    m, n = static.shape
    return 16 * m * n * (static.iterations + 8)


def advance(
    static: Static, key: Array, state: dict[str, Array], shared: Any, inputs: Inputs, epochs: int
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Fit and measure; whatever comes after that is nothing."""

    def epoch(state: dict[str, Array], _: None) -> tuple[dict[str, Array], dict[str, Array]]:
        run = jax.jit(functools.partial(_columns, static, key, inputs))
        nothing = jax.tree.map(lambda a: jnp.full(a.shape, jnp.nan, a.dtype), jax.eval_shape(run))
        columns = lax.cond(state["done"], lambda: nothing, run)
        return {"done": jnp.ones((), bool)}, columns

    return lax.scan(epoch, state, length=epochs)


def start_factors(static: Static, key: Array, settings: Settings, dtype: Any) -> als.Factors:
    """The start of the factors of a seed, whose key is given."""
    factors = als.start_factors(jax.random.fold_in(key, FACTORS), static.shape, static.dim, dtype=dtype)
    return jax.tree.map(lambda f: f * (settings.start_scale / 0.01), factors)


@functools.partial(jax.jit, static_argnums=0)
def trajectory(static: Static, seed: Array, problem: Problem, settings: Settings) -> Array:
    """The reconstructed ratings after each iteration, (iterations, m, n): the same for all settings of the step."""
    r, y, known = problem
    factors = start_factors(static, jax.random.fold_in(jax.random.key(0), seed), settings, r.dtype)
    c = confidence(static.confidence, r, y, known, alpha=settings.alpha)
    return factor_trajectory(factors, r, c, iterations=static.iterations, ridge=settings.ridge)


def _columns(static: Static, key: Array, inputs: Inputs) -> dict[str, Array]:
    labels, labeled = inputs.problem.labels, inputs.problem.labeled > 0
    if static.trainer in BASELINES:
        logits = BASELINES[static.trainer](*inputs.problem) if inputs.logits is None else inputs.logits
        return metrics.plain_metrics(logits, labels, mask=~labeled)
    assert inputs.settings is not None  # baselines alone have none
    fitted = _fit(static, key, inputs, inputs.settings)
    found = metrics.plain_metrics(fitted.logits, labels, mask=~labeled)
    w = fitted.aggregator.w
    columns = found | {"w_mean": w.mean(), "w_sd": w.std(), "w_min": w.min(), "w_max": w.max()}
    columns |= {"b": fitted.aggregator.b, "iterations": fitted.iterations.astype(w.dtype)}
    columns |= {"path_w_mean": fitted.w_mean, "path_b": fitted.bias}
    if static.trainer == "als" and not static.newton:
        problem = inputs.problem._replace(ratings=fitted.ratings)
        columns |= predictions(problem, inputs.settings.step)
        if static.looks:
            columns |= _looked(static, inputs, problem, fitted.aggregator, ~healthy(found))
    return columns


def _looked(static: Static, inputs: Inputs, problem: Problem, end: Aggregator, going: Array) -> dict[str, Array]:
    """What is seen at every look at a run that goes on."""
    assert inputs.settings is not None  # baselines alone have none
    given = inputs.trajectory  # of the labeled instances alone: the others do not move the aggregator
    moving = problem if given is None else given._replace(ratings=given.ratings[-1])
    aggregators = going_on(end, moving, going, inputs.settings.step, static.looks)
    logits = jax.vmap(aggregate, (0, None))(aggregators, problem.ratings)
    test = ~(problem.labeled > 0)
    found = jax.vmap(lambda z: metrics.plain_metrics(z, problem.labels, mask=test))(logits)
    found |= {"w_mean": aggregators.w.mean(1), "b": aggregators.b, "update": jnp.asarray(static.looks, float)}
    return {f"look_{name}": values for name, values in found.items()}


def _fit(static: Static, key: Array, inputs: Inputs, settings: Settings) -> _Fitted:
    (r, y, known), step = inputs.problem, settings.step
    if inputs.trajectory is not None:
        last, every = fit_aggregator(*inputs.trajectory, step, newton=static.newton)
        made = jnp.asarray(static.iterations)
        return _Fitted(aggregate(last, r), r, last, every.w.mean(-1), every.b, made)
    c = confidence(static.confidence, r, y, known, alpha=settings.alpha)
    factors = start_factors(static, key, settings, r.dtype)
    options: dict[str, Any] = {"iterations": static.iterations, "step": step, "rho": settings.rho}
    if static.trainer == "als":
        options |= {"tolerance": 1e-4 if static.stop else None, "newton": static.newton}
    else:
        options |= {"patience": 20 if static.stop else None}
        options |= {"plateau": settings.plateau, "plateau_patience": settings.plateau_patience}
    fit = trainers.TRAINERS[static.trainer](factors, r, c, y, known, ridge=settings.ridge, **options)
    history, r_hat = fit.history, als.reconstruct(fit.factors)
    return _Fitted(fit.logits, r_hat, fit.aggregator, history.w.mean(-1), history.b, history.active.sum())
