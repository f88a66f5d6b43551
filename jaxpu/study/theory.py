"""What the closed-form flow says of each run, beside what the run did."""

import jax
import numpy as np
import polars as pl
from jax import Array
from jax import numpy as jnp

from jaxpu import theory as flow
from jaxpu.config.ensemble import EnsembleCell
from jaxpu.study.programs import Problem, Program, Trained, each_seed


def theory(cell: EnsembleCell, problem: Problem, trained: Trained) -> pl.DataFrame:
    """Predictions for each seed, from its reconstructed ratings and the share of positives among its labels.

    Returns:
        level: μ. labeled_rate: π. flip_theory: updates after which Σ w is below 0 (infinite: never).
        fast_updates, slow_updates: the time scales of the fastest mode and of the slowest one that matters to the
        separation of the classes. heal_theory: updates until the classes are the right way round again, linearised at
        logit(π) from the end of the fast phase (0: never upside down). Empty for a trainer, or a step, that is not
        gradient descent.
    """
    method = cell.method
    if method.trainer != "als" or method.newton or method.centre or method.focal:
        return pl.DataFrame()
    start = (method.initial_total, method.initial_bias, method.bias_lr, method.class_weights)
    found = _predict(problem._replace(ratings=trained.ratings), *start)
    in_updates = {"flip_theory", "heal_theory", "fast_updates", "slow_updates"}
    columns = {k: np.asarray(v, float) / (method.lr if k in in_updates else 1.0) for k, v in found.items()}
    return pl.DataFrame(columns)


def _one(reconstructed: Problem, total: Array, bias_start: Array, bias_lr: Array, strength: Array) -> dict[str, Array]:
    ratings, labels, labeled = reconstructed
    known, m = labeled > 0, ratings.shape[0]
    level = jnp.sum(ratings * known[None, :]) / (m * known.sum())
    rate = jnp.sum(known & (labels > 0)) / known.sum()
    log_odds = jnp.log(rate) - jnp.log1p(-rate)
    seen = jax.nn.sigmoid((1 - strength) * log_odds)  # class weights move the odds of the classes
    bias = bias_start * log_odds
    options = {"total": total, "bias": bias, "bias_lr": bias_lr}
    end = flow.fast_end(m, level, seen, **options)
    slow = flow.linear_flow(ratings, labels, labeled, class_weights=strength, at=jnp.log(seen) - jnp.log1p(-seen))
    theta = jnp.append(jnp.full(m, end.total / m, ratings.dtype), end.bias)
    weight = jnp.abs(slow.modes.T @ slow.direction) * (slow.rates < slow.rates.max() / 10)
    return {
        "level": level,
        "labeled_rate": rate,
        "flip_theory": flow.flip_time(m, level, seen, **options),
        "total_theory": end.total,
        "fast_updates": 1 / slow.rates.max(),
        "slow_updates": 1 / slow.rates[jnp.argmax(weight)],
        "heal_theory": flow.healing_time(slow, theta, longest=1e7),
    }


_predict = Program(each_seed(_one))
