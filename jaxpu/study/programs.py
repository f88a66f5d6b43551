"""The compiled programs of an experiment: what is static makes a program, seeds and settings are its axes."""

import functools
from typing import Any, NamedTuple

import jax
from jax import Array
from jax import numpy as jnp

from jaxpu import ensemble, metrics
from jaxpu.ensemble import als, trainers
from jaxpu.ensemble.aggregate import Aggregator, Step
from jaxpu.ensemble.baselines import BASELINES

START, FACTORS, LABELED = 0, 1, 2
"""Purposes of a seed's keys."""


class Problem(NamedTuple):
    """Ratings (m, n), labels (n,) and which are known (n,); with a leading axis of seeds."""

    ratings: Array
    labels: Array
    labeled: Array


class Trained(NamedTuple):
    """What one run leaves: its logits, the reconstructed ratings, the aggregator and the path of the latter."""

    logits: Array
    ratings: Array
    aggregator: Aggregator
    total: Array
    bias: Array
    iterations: Array


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

    return jax.jit(jax.vmap(draw, (0, None, None, None)))


@functools.cache
def train(static: Static) -> Any:
    """Program: (seeds, problems, settings, ridge, alpha, scale) -> Trained with the axes (seed, setting)."""

    def one_seed(seed: Array, problem: Problem, settings: Traced, ridge: Array, alpha: Array, scale: Array) -> Trained:
        r, y, known = problem
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

    def all_seeds(seeds: Array, problem: Problem, *shared: Any) -> Trained:
        # not vmap: the systems of one seed stay in a core's cache, which is twice as fast
        return jax.lax.map(lambda one: one_seed(*one, *shared), (seeds, problem))

    return jax.jit(all_seeds)


@functools.cache
def baseline(name: str) -> Any:
    """Program, or loop on the host where there is none: problems -> logits (seeds, n)."""
    if name == "isotonic_mean":
        return lambda problem: jnp.stack([BASELINES[name](*p) for p in zip(*problem, strict=True)])
    return jax.jit(jax.vmap(lambda problem: BASELINES[name](*problem)))


@jax.jit
def measure(logits: Array, labels: Array, mask: Array) -> dict[str, Array]:
    """Metrics of the rows in the mask; every argument with leading axes (runs,)."""

    def one(z: Array, y: Array, rows: Array) -> dict[str, Array]:
        p = jax.nn.sigmoid(z)
        prevalence = jnp.sum(rows * y) / jnp.sum(rows)
        low, high = jnp.where(rows, p, jnp.inf).min(), jnp.where(rows, p, -jnp.inf).max()
        found = metrics.oracle_metrics(z, y, prior=prevalence, log_p_max=jnp.log(high), mask=rows)
        names = ("oracle_f1", "oracle_f1_best", "oracle_auc", "oracle_ap", "oracle_ece", "oracle_brier")
        names += ("oracle_log_loss", "predicted_positive", "score_mean", "score_sd")
        return {k: found[k] for k in names} | {"prevalence": prevalence, "score_min": low, "score_max": high}

    return jax.vmap(one)(logits, labels, mask)
