"""Training an ensemble: alternating closed-form factors and aggregator steps, or all parameters jointly by Adam.

Both are pure functions of arrays and a key. Hyperparameters are traced, so seeds and settings are axes of ``vmap``.
What alternating training does to the factors does not depend on the aggregator: mapped over settings alone, the
factors are solved once for all of them (unless ``tolerance`` lets each setting stop by itself).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import optax
from jax import Array, lax
from jax import numpy as jnp
from jaxtyping import Bool, Float

from jaxpu.ensemble import als
from jaxpu.ensemble.aggregate import PLAIN, Aggregator, Step, aggregate, start_aggregator, supervised_loss, update
from jaxpu.ensemble.types import Confidence, Factors, Instances, Labels, Mask, Ratings
from jaxpu.types import Scalar, ScalarLike


class History(NamedTuple):
    """What happened at each iteration, after its update: loss, w and b; ``active`` where it was one at all."""

    loss: Float[Array, " iterations"]
    w: Float[Array, "iterations m"]
    b: Float[Array, " iterations"]
    active: Bool[Array, " iterations"]


class Fit(NamedTuple):
    """A trained ensemble: factors, aggregator and history."""

    factors: Factors
    aggregator: Aggregator
    history: History

    @property
    def logits(self) -> Instances:
        """Transductive predictions: the logits of the instances trained on, labeled or not."""
        return aggregate(self.aggregator, als.reconstruct(self.factors))


def objective(
    factors: Factors,
    aggregator: Aggregator,
    ratings: Ratings,
    confidence: Confidence,
    labels: Labels,
    labeled: Mask,
    *,
    rho: ScalarLike,
    ridge: ScalarLike,
    step: Step,
) -> Scalar:
    """ρ [Σ c (r - x · y)² + λ (|X|² + |Y|²)] + (1 - ρ) L_sup, what joint training descends.

    Args:
        factors, aggregator: the parameters. ratings, confidence: (m, n). labels, labeled: (n,).
        rho: ρ in [0, 1]. ridge: λ. step: class weights and focal exponent of L_sup.

    Example:
        >>> one = jnp.ones((1, 1))
        >>> start = Aggregator(jnp.zeros(1), jnp.array(0.0), jnp.zeros(1))
        >>> data = one, one, jnp.ones(1), jnp.ones(1)
        >>> value = objective(Factors(one, one), start, *data, rho=0.5, ridge=0.0, step=Step())
        >>> round(float(value), 4)
        0.3466
    """
    logits = aggregate(aggregator, als.reconstruct(factors))
    fit = als.factorisation_loss(factors, ratings, confidence, ridge=ridge)
    return rho * fit + (1 - rho) * supervised_loss(logits, labels, labeled, step)


def fit_als(
    factors: Factors,
    ratings: Ratings,
    confidence: Confidence,
    labels: Labels,
    labeled: Mask,
    *,
    iterations: int,
    aggregator: Aggregator | None = None,
    step: Step = PLAIN,
    ridge: ScalarLike = 0.01,
    rho: ScalarLike = 0.5,
    stop_at: ScalarLike | None = None,
    tolerance: ScalarLike | None = None,
    newton: bool = False,
) -> Fit:
    """Alternate: X, then Y in closed form, then one update of the aggregator on the labeled instances.

    The closed forms do not see L_sup, so ρ has no part in what is learnt; it weighs the reported loss, and with a
    tolerance decides when to stop. That loss is :func:`objective` with the plain mean cross-entropy as L_sup, whatever
    class weights or focal exponent the steps have, as in the original code.

    Args:
        factors: start, as from :func:`jaxpu.ensemble.start_factors`; only y is read.
        ratings, confidence: (m, n). labels, labeled: (n,).
        iterations: static number of iterations. stop_at: traced number of them that do something; None = all.
        aggregator: where it starts; None = as ``step`` says, :func:`jaxpu.ensemble.start_aggregator`.
        step: the aggregator's updates. ridge: λ. rho: ρ.
        tolerance: stop when the objective changes by less than this; None = never. newton: see :func:`update`.

    Returns:
        The fit.

    Example:
        >>> ratings = jnp.array([[0.9, 0.2, 0.8, 0.1], [0.8, 0.3, 0.9, 0.2]])
        >>> start = als.start_factors(jax.random.key(0), (2, 4), 2)
        >>> y, known = jnp.array([1, 0, 0, 0]), jnp.array([1, 1, 0, 0])
        >>> fit = fit_als(start, ratings, jnp.ones((2, 4)), y, known, iterations=50)
        >>> bool(fit.logits[2] > fit.logits[3])
        True
    """
    if aggregator is None:
        aggregator = start_aggregator(ratings.shape[0], labels, labeled, step, ratings.dtype)
    last = iterations if stop_at is None else stop_at

    def iteration(carry: tuple, number: Array) -> tuple[tuple, History]:
        factors, aggregator, before, stopped = carry
        swept = als.als_sweep(factors, ratings, confidence, ridge=ridge)
        stepped = update(aggregator, als.reconstruct(swept), labels, labeled, step, number, newton=newton)
        loss = objective(swept, stepped, ratings, confidence, labels, labeled, rho=rho, ridge=ridge, step=PLAIN)
        active = ~stopped & (number < last)
        if tolerance is not None:
            swept = _choose(active, swept, factors)
            stopped = stopped | (jnp.abs(before - loss) < tolerance)
        stepped = _choose(active, stepped, aggregator)
        return (swept, stepped, loss, stopped), History(loss, stepped.w, stepped.b, active)

    first = (factors, aggregator, jnp.asarray(jnp.inf, ratings.dtype), jnp.asarray(False))
    (factors, aggregator, _, _), history = lax.scan(iteration, first, jnp.arange(iterations))
    return Fit(factors, aggregator, history)


def fit_joint(
    factors: Factors,
    ratings: Ratings,
    confidence: Confidence,
    labels: Labels,
    labeled: Mask,
    *,
    iterations: int,
    aggregator: Aggregator | None = None,
    step: Step = PLAIN,
    ridge: ScalarLike = 0.01,
    rho: ScalarLike = 0.5,
    stop_at: ScalarLike | None = None,
    patience: ScalarLike | None = None,
    tolerance: ScalarLike = 1e-4,
    plateau: ScalarLike = 1.0,
    plateau_patience: ScalarLike = 10,
) -> Fit:
    """Descend the whole objective in X, Y, w and b at once, by Adam (0.9, 0.999, 1e-8).

    The objective is :func:`objective`, the learning rate ``step.lr``.

    Args:
        factors, ratings, confidence, labels, labeled: as in :func:`fit_als`, but both factors are read.
        iterations, aggregator, step, ridge, rho, stop_at: as in :func:`fit_als`. ``step.bias_lr`` and the two delays
            act on Adam's update; Newton steps and centring do not exist here.
        patience: stop after so many iterations without an objective lower by ``tolerance``; None = never.
        plateau: factor on the learning rate after more than ``plateau_patience`` iterations in a row whose objective is
            not below the least so far by 1e-4 of it, and so on, as torch's ReduceLROnPlateau counts; 1 = constant.

    Returns:
        The fit.

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.

    Example:
        >>> ratings = jnp.array([[0.9, 0.2, 0.8, 0.1], [0.8, 0.3, 0.9, 0.2]])
        >>> start = als.start_factors(jax.random.key(0), (2, 4), 2)
        >>> y, known = jnp.array([1, 0, 0, 0]), jnp.array([1, 1, 0, 0])
        >>> fit = fit_joint(start, ratings, jnp.ones((2, 4)), y, known, iterations=50)
        >>> bool(fit.history.loss[-1] < fit.history.loss[0])
        True
    """
    if aggregator is None:
        aggregator = start_aggregator(ratings.shape[0], labels, labeled, step, ratings.dtype)
    last = iterations if stop_at is None else stop_at
    adam = optax.scale_by_adam()

    def loss_of(parameters: tuple[Factors, Aggregator]) -> Scalar:
        return objective(*parameters, ratings, confidence, labels, labeled, rho=rho, ridge=ridge, step=step)

    def iteration(carry: tuple, number: Array) -> tuple[tuple, History]:
        parameters, moments, best, waited, rate = carry
        loss, gradients = jax.value_and_grad(loss_of)(parameters)
        better = loss < best - tolerance
        waited = jnp.where(better, 0, waited + 1)
        active = number < last
        if patience is not None:
            active = active & (waited <= patience)
        updates, after = adam.update(gradients, moments)
        moved = _move(parameters, updates, step._replace(lr=step.lr * rate.factor), number)
        moved, after = _choose(active, (moved, after), (parameters, moments))
        rate = rate.after(loss, plateau, plateau_patience)
        # once stopped it stays stopped: the objective no longer changes
        history = History(loss, moved[1].w, moved[1].b, active)
        return (moved, after, jnp.where(better, loss, best), waited, rate), history

    first, infinite, none = (factors, aggregator), jnp.asarray(jnp.inf, ratings.dtype), jnp.asarray(0)
    carry = (first, adam.init(first), infinite, none, _Rate(jnp.ones_like(infinite), infinite, none))
    ((factors, aggregator), *_), history = lax.scan(iteration, carry, jnp.arange(iterations))
    return Fit(factors, aggregator, history)


TRAINERS: dict[str, Callable[..., Fit]] = {"als": fit_als, "joint": fit_joint}
"""The trainers by name."""


class _Rate(NamedTuple):
    """The learning rate on plateaus: its factor by now, the least objective, and iterations without a lower one."""

    factor: Scalar
    least: Scalar
    waited: Scalar

    def after(self, loss: Scalar, plateau: ScalarLike, patience: ScalarLike) -> "_Rate":
        """The rate after an iteration whose objective, before its update, was ``loss``."""
        better = loss < self.least * (1 - 1e-4)
        waited = jnp.where(better, 0, self.waited + 1)
        lower = waited > patience
        factor = jnp.where(lower, self.factor * plateau, self.factor).astype(self.factor.dtype)
        return _Rate(factor, jnp.where(better, loss, self.least), jnp.where(lower, 0, waited))


def _move(
    parameters: tuple[Factors, Aggregator], updates: Any, step: Step, number: Array
) -> tuple[Factors, Aggregator]:
    (factors, aggregator), (by, of) = parameters, updates
    moving = jnp.where(number >= step.freeze, 1.0, 0.0)
    w_moving = moving * jnp.where(number >= step.freeze + step.bias_first, 1.0, 0.0)

    def minus(value: Array, change: Array, factor: ScalarLike) -> Array:
        return value - (step.lr * factor * change).astype(value.dtype)

    moved = Factors(minus(factors.x, by.x, 1.0), minus(factors.y, by.y, 1.0))
    w, b = minus(aggregator.w, of.w, w_moving), minus(aggregator.b, of.b, moving * step.bias_lr)
    return moved, Aggregator(w, b, aggregator.centre)


def _choose(condition: Array, yes, no):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
