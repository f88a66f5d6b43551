"""Alternating training in two halves: what the factors do, and what an aggregator learns of it.

The closed forms of the factors do not see the aggregator, so all settings of it share one trajectory of reconstructed
ratings. Together the halves are :func:`jaxpu.ensemble.fit_als` without a tolerance.
"""

from jax import Array, lax
from jax import numpy as jnp
from jaxtyping import Float

from jaxpu.ensemble import als
from jaxpu.ensemble.aggregate import PLAIN, Aggregator, Step, start_aggregator, update
from jaxpu.ensemble.types import Confidence, Factors, Labels, Mask, Ratings
from jaxpu.ensemble.weights import class_weights
from jaxpu.types import ScalarLike


def factor_trajectory(
    factors: Factors, ratings: Ratings, confidence: Confidence, *, iterations: int, ridge: ScalarLike
) -> Float[Array, "iterations m n"]:
    """Reconstructed ratings after each iteration of alternating least squares.

    Args:
        factors: start; only y is read. ratings, confidence: (m, n). iterations: static. ridge: λ.

    Example:
        >>> import jax
        >>> ratings = jnp.array([[0.9, 0.1], [0.8, 0.2]])
        >>> start = als.start_factors(jax.random.key(0), (2, 2), 2)
        >>> path = factor_trajectory(start, ratings, jnp.ones((2, 2)), iterations=30, ridge=1e-3)
        >>> path.shape, bool(jnp.abs(path[-1] - ratings).max() < 0.01)
        ((30, 2, 2), True)
    """

    def iteration(factors: Factors, _: None) -> tuple[Factors, Ratings]:
        swept = als.als_sweep(factors, ratings, confidence, ridge=ridge)
        return swept, als.reconstruct(swept)

    return lax.scan(iteration, factors, length=iterations)[1]


def fit_aggregator(
    trajectory: Float[Array, "iterations m n"], labels: Labels, labeled: Mask, step: Step, *, newton: bool = False
) -> tuple[Aggregator, Aggregator]:
    """Learn an aggregator while the factors move: one update an iteration.

    Args:
        trajectory: from :func:`factor_trajectory`; instances without a label may be left out.
        labels, labeled: (n,). step: the updates, and where they start. newton: see :func:`jaxpu.ensemble.update`.

    Returns:
        The aggregator, and all of them, one after each iteration.

    Example:
        >>> path = jnp.tile(jnp.array([[0.9, 0.1]]), (200, 1, 1))
        >>> last, every = fit_aggregator(path, jnp.array([1, 0]), jnp.ones(2), Step(lr=0.1))
        >>> every.w.shape, bool(last.w[0] > 1)
        ((200, 1), True)
    """
    iterations, m, _ = trajectory.shape
    start = start_aggregator(m, labels, labeled, step, trajectory.dtype)

    def iteration(aggregator: Aggregator, now: tuple[Ratings, Array]) -> tuple[Aggregator, Aggregator]:
        ratings, number = now
        stepped = update(aggregator, ratings, labels, labeled, step, number, newton=newton)
        return stepped, stepped

    return lax.scan(iteration, start, (trajectory, jnp.arange(iterations)))


def continue_aggregator(
    aggregator: Aggregator,
    ratings: Ratings,
    labels: Labels,
    labeled: Mask,
    *,
    updates: int | Array,
    step: Step = PLAIN,
    newton: bool = False,
) -> Aggregator:
    """Go on updating w and b with the reconstructed ratings held fixed, for as many updates as one likes.

    Args:
        aggregator: where to start. ratings: reconstructed, (m, n). labels, labeled: (n,).
        updates: how many; may be traced. step, newton: as in :func:`update`.

    Example:
        >>> start = Aggregator(jnp.zeros(1), jnp.array(0.0), jnp.zeros(1))
        >>> end = continue_aggregator(start, jnp.array([[0.4, 0.6]]), jnp.array([0, 1]), jnp.ones(2), updates=1000)
        >>> bool(end.w[0] > 0)
        True
    """
    late = 2**30  # past every delay
    of_class = class_weights(labels, labeled, strength=step.class_weights)

    def once(_: Array, a: Aggregator) -> Aggregator:
        return update(a, ratings, labels, labeled, step, late, newton=newton, of_class=of_class)

    return lax.fori_loop(0, updates, once, aggregator)
