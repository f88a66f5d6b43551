"""What the closed-form flow says of a run, beside what the run did."""

import jax
from jax import Array
from jax import numpy as jnp

from jaxpu import theory
from jaxpu.ensemble.aggregate import Step
from jaxpu.ensemble.ratings import Problem

LONGEST = 1e7
"""η times updates up to which a run may heal."""

PREDICTED = (
    "level",
    "labeled_rate",
    "flip_theory",
    "total_theory",
    "fast_updates",
    "slow_updates",
    "heal_theory",
)
"""The columns of :func:`predictions`."""


def predictions(reconstructed: Problem, step: Step) -> dict[str, Array]:
    """Predictions from reconstructed ratings and the share of positives among the labels.

    Only for gradient steps of constant weights on ratings that are not centred.

    Args:
        reconstructed: of one run. step: its updates, and where they start.

    Returns:
        level: μ. labeled_rate: π. flip_theory: updates after which Σ w is below 0 (infinite: never). total_theory:
        Σ w where the fast phase ends. fast_updates, slow_updates: the time scales of the fastest mode and of the
        slowest one that matters to the separation of the classes. heal_theory: updates until the classes are the
        right way round again, linearised at logit(π) from the end of the fast phase (0: never inverted).
    """
    ratings, labels, labeled = reconstructed
    known, m = labeled > 0, ratings.shape[0]
    level = jnp.sum(ratings * known[None, :]) / (m * known.sum().astype(ratings.dtype))
    rate = jnp.sum(known & (labels > 0)) / known.sum()
    log_odds = jnp.log(rate) - jnp.log1p(-rate)
    seen = jax.nn.sigmoid((1 - step.class_weights) * log_odds)  # class weights move the odds of the classes
    options = {"total": step.initial_total, "bias": step.initial_bias * log_odds, "bias_lr": step.bias_lr}
    end = theory.fast_end(m, level, seen, **options)
    at = jnp.log(seen) - jnp.log1p(-seen)
    slow = theory.linear_flow(ratings, labels, labeled, class_weights=step.class_weights, at=at)
    theta = jnp.append(jnp.full(m, end.total / m, ratings.dtype), end.bias)
    weight = jnp.abs(slow.modes.T @ slow.direction) * (slow.rates < slow.rates.max() / 10)
    return {
        "level": level,
        "labeled_rate": rate,
        "flip_theory": theory.flip_time(m, level, seen, **options) / step.lr,
        "total_theory": end.total,
        "fast_updates": 1 / slow.rates.max() / step.lr,
        "slow_updates": 1 / slow.rates[jnp.argmax(weight)] / step.lr,
        "heal_theory": theory.healing_time(slow, theta, longest=LONGEST) / step.lr,
    }
