"""The compiled programs of an experiment: what is static makes a program, seeds and settings are its axes."""

import functools
import time
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jax import Array, lax
from jax import numpy as jnp
from jax.sharding import AxisType, Mesh, PartitionSpec

from jaxpu import ensemble, metrics
from jaxpu.ensemble import als, trainers
from jaxpu.ensemble.aggregate import Aggregator, Step
from jaxpu.ensemble.baselines import BASELINES

START, FACTORS, LABELED = 0, 1, 2
"""Purposes of a seed's keys."""


class Program:
    """A function of arrays, compiled ahead for each kind of arguments it meets; arrays of the host go in and come out.

    ``Program.compile_seconds`` is what compiling took so far, in all programs of this process.

    >>> before = Program.compile_seconds
    >>> float(Program(lambda x: 2 * x)(np.float32(3))), Program.compile_seconds > before
    (6.0, True)
    """

    compile_seconds: ClassVar[float] = 0.0

    def __init__(self, function: Callable[..., Any]):
        self._function = jax.jit(function)
        self._compiled: dict[Any, Any] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Compute; compile first if arrays of these shapes and types are new."""
        arguments = jax.tree.map(np.asarray, arguments)
        leaves, structure = jax.tree.flatten(arguments)
        kind = (structure, jax.config.jax_enable_x64, *((leaf.shape, leaf.dtype) for leaf in leaves))  # pyright: ignore
        if kind not in self._compiled:
            began = time.perf_counter()
            self._compiled[kind] = self._function.lower(*arguments).compile()
            Program.compile_seconds += time.perf_counter() - began
        return jax.device_get(self._compiled[kind](*arguments))


def each_seed(one: Callable[..., Any]) -> Callable[..., Any]:
    """From a function of one seed's arrays, and others, a function of many seeds' arrays: one a row.

    Seeds share nothing. On CPU a device takes one after the other, whose arrays stay in a core's cache; on an
    accelerator all at once. All devices share them; where they do not divide evenly the last is repeated.

    >>> jax.jit(each_seed(lambda x, y: x + y))(jnp.arange(3), 10).tolist()
    [10, 11, 12]
    """

    def all_seeds(rows: Any, *shared: Any) -> Any:
        seeds = jax.tree.leaves(rows)[0].shape[0]
        across = min(seeds, len(jax.devices()))
        mesh = Mesh(np.array(jax.devices()[:across]), ("seed",), axis_types=(AxisType.Auto,))
        each = -(-seeds // across)
        at_once = None if jax.default_backend() == "cpu" else each

        def looped(rows: Any, *shared: Any) -> Any:
            return lax.map(lambda row: one(row, *shared), rows, batch_size=at_once)

        by_seed, everywhere = PartitionSpec("seed"), PartitionSpec()
        specs = (by_seed, *(everywhere for _ in shared))
        mapped = jax.shard_map(looped, mesh=mesh, in_specs=specs, out_specs=by_seed, check_vma=False)
        if seeds == each * across:
            return mapped(rows, *shared)
        place = np.minimum(np.arange(each * across), seeds - 1)
        return jax.tree.map(lambda a: a[:seeds], mapped(jax.tree.map(lambda a: a[place], rows), *shared))

    return all_seeds


class Problem(NamedTuple):
    """Ratings (m, n), labels (n,) and which are known (n,); between programs with a leading axis of seeds."""

    ratings: Any
    labels: Any
    labeled: Any


class Trained(NamedTuple):
    """What one run leaves: its logits, the reconstructed ratings, the aggregator and the path of the latter."""

    logits: Any
    ratings: Any
    aggregator: Aggregator
    total: Any
    bias: Any
    iterations: Any


class Static(NamedTuple):
    """What a program is compiled for."""

    trainer: str
    dim: int
    confidence: str
    iterations: int
    newton: bool
    stop: bool


class Traced(NamedTuple):
    """The settings of one method that are an axis of a program."""

    step: Step
    rho: Any
    stop_at: Any


def seed_key(seed: Array | int, purpose: int) -> Array:
    """The key of a seed for one purpose, whatever else runs beside it."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(0), seed), purpose)


def draw_labeled(key: Array, labels: Array, share: Array | float) -> Array:
    """Which labels are known: round(share n) instances, with the share of each class that the whole has.

    Of two or more instances of a class at least one is known and one is not.

    >>> y = jnp.array([1, 1, 0, 0, 0, 0, 0, 0])
    >>> known = draw_labeled(jax.random.key(0), y, 0.5)
    >>> int(known.sum()), int((known & (y > 0)).sum())
    (4, 1)
    """
    n = labels.shape[0]
    n_positive = labels.sum()
    of_positives = jnp.clip(jnp.round(share * n_positive), 1, jnp.maximum(n_positive - 1, 1))
    of_negatives = jnp.clip(jnp.round(share * n) - of_positives, 1, jnp.maximum(n - n_positive - 1, 1))
    noise = jax.random.uniform(key, (n,))
    positive = labels > 0
    place = jnp.argsort(jnp.argsort(noise + 2.0 * ~positive))
    of_class = jnp.where(positive, place, place - n_positive)
    return of_class < jnp.where(positive, of_positives, of_negatives)


@functools.cache
def draw_synthetic(n: int, m: int) -> Any:
    """Program: seeds' problems at a traced rate, quality and labelled share."""

    def draw(seed: Array, rate: Array, quality: Array, share: Array) -> Problem:
        keys = [seed_key(seed, purpose) for purpose in (START, LABELED)]
        drawn = ensemble.synthetic_ratings(keys[0], n=n, m=m, rate=rate, quality=quality)
        return Problem(drawn.ratings, drawn.labels, draw_labeled(keys[1], drawn.labels, share))

    return Program(each_seed(draw))


@functools.cache
def train(static: Static) -> Any:
    """Program: ((seeds, problems), settings, ridge, alpha, scale) -> Trained with the axes (seed, setting)."""

    def one_seed(row: tuple[Array, Problem], settings: Traced, ridge: Array, alpha: Array, scale: Array) -> Trained:
        seed, (r, y, known) = row
        c = ensemble.confidence(static.confidence, r, y, known, alpha=alpha)
        factors = als.start_factors(seed_key(seed, FACTORS), r.shape, static.dim, dtype=r.dtype)
        factors = jax.tree.map(lambda f: f * (scale / 0.01), factors)

        def one_setting(setting: Traced) -> Trained:
            options: dict[str, Any] = {"iterations": static.iterations, "stop_at": setting.stop_at}
            options |= {"step": setting.step, "rho": setting.rho, "ridge": ridge}
            if static.trainer == "als":
                tolerance = 1e-4 if static.stop else None
                fit = trainers.fit_als(factors, r, c, y, known, **options, tolerance=tolerance, newton=static.newton)
            else:
                fit = trainers.fit_joint(factors, r, c, y, known, **options, patience=20 if static.stop else None)
            r_hat = als.reconstruct(fit.factors)
            history = fit.history
            return Trained(fit.logits, r_hat, fit.aggregator, history.w.sum(-1), history.b, history.active.sum())

        return jax.vmap(one_setting)(settings)

    return Program(each_seed(one_seed))


@functools.cache
def baseline(name: str) -> Callable[[Problem], np.ndarray]:
    """Program, or loop on the host where there is none: problems -> logits (seeds, n)."""
    if name == "isotonic_mean":
        return lambda problems: np.stack([BASELINES[name](*map(jnp.asarray, p)) for p in zip(*problems, strict=True)])
    return Program(each_seed(lambda problem: BASELINES[name](*problem)))


def measured(logits: Array, labels: Array, rows: Array) -> dict[str, Array]:
    """Metrics of the instances in the mask ``rows``; all arguments (n,)."""
    p = jax.nn.sigmoid(logits)
    prevalence = jnp.sum(rows * labels) / jnp.sum(rows)
    low, high = jnp.where(rows, p, jnp.inf).min(), jnp.where(rows, p, -jnp.inf).max()
    found = metrics.oracle_metrics(logits, labels, prior=prevalence, log_p_max=jnp.log(high), mask=rows)
    names = ("oracle_f1", "oracle_f1_best", "oracle_auc", "oracle_average_precision", "oracle_ece", "oracle_brier")
    names += ("oracle_log_loss", "predicted_positive", "score_mean", "score_sd")
    return {k: found[k] for k in names} | {"prevalence": prevalence, "score_min": low, "score_max": high}


measure = Program(jax.vmap(measured))
"""Program: logits, labels and masks with a leading axis of runs -> their metrics."""
