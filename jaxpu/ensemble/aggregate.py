"""The aggregator: from reconstructed ratings to one probability an instance, p = σ(w · (r̂ - μ) + b).

w starts at 1/m and b at 0, so that training starts from the mean of the ratings. Its steps are what the class
weights of :mod:`jaxpu.ensemble.weights` are about: the mean gradient of the binary cross-entropy,
Σ vᵢ (pᵢ - yᵢ) r̂ᵢ / Σ vᵢ, over the labeled instances.
"""

from typing import NamedTuple

import jax
from jax import Array
from jax import numpy as jnp
from jaxtyping import Float

from jaxpu import linalg
from jaxpu.ensemble.types import Instances, Labels, Mask, Ratings
from jaxpu.ensemble.weights import class_weights, focal_weights
from jaxpu.types import Scalar, ScalarLike


class Aggregator(NamedTuple):
    """Weights w (m,), bias b, and the centre μ (m,) that is taken off the ratings; 0 unless they are centred."""

    w: Float[Array, " m"]
    b: Scalar
    centre: Float[Array, " m"]


class Step(NamedTuple):
    """How an aggregator is updated. All fields may be traced.

    Attributes:
        lr: learning rate. bias_lr: factor on the learning rate of b.
        class_weights: strength s of the class weights: 0 none, 1 inverse class frequency.
        focal: focal exponent γ.
        freeze: iterations before the first update. bias_first: further iterations that update b alone.
        initial_total: ω₀ of the start w = ω₀ / m.
        initial_bias: s₀ of the start b = s₀ logit(share of positives among the labeled).
        centre: 1 takes the labeled instances' mean off the ratings at every update, 0 leaves them.
        newton: 1 takes lr times a damped Newton step, 0 a gradient step. damping: added to the Hessian's diagonal.
    """

    lr: ScalarLike = 0.01
    bias_lr: ScalarLike = 1.0
    class_weights: ScalarLike = 0.0
    focal: ScalarLike = 0.0
    freeze: ScalarLike = 0
    bias_first: ScalarLike = 0
    initial_total: ScalarLike = 1.0
    initial_bias: ScalarLike = 0.0
    centre: ScalarLike = 0.0
    newton: ScalarLike = 0.0
    damping: ScalarLike = 1e-3


PLAIN = Step()
"""The original step: gradient descent at 0.01 on the plain mean."""


def start_aggregator(m: int, labels: Labels, labeled: Mask, step: Step, dtype=jnp.float32) -> Aggregator:
    """Start at w = ω₀ / m, b = s₀ logit(labeled share of positives), centre 0.

    With no or only positives among the labeled, the share is taken as (n₊ + ½) / (n + 1), which is finite.

    Example:
        >>> start = start_aggregator(2, jnp.array([1, 0, 0, 0]), jnp.ones(4), Step(initial_bias=1.0))
        >>> start.w.tolist(), round(float(start.b), 4)
        ([0.5, 0.5], -1.0986)
    """
    known = jnp.asarray(labeled) > 0
    n, positives = known.sum(), (known & (jnp.asarray(labels) > 0)).sum()
    both = (positives > 0) & (positives < n)
    odds = jnp.where(both, positives / jnp.maximum(n - positives, 1), (positives + 0.5) / (n - positives + 0.5))
    bias = step.initial_bias * jnp.log(odds)
    return Aggregator(jnp.full(m, step.initial_total / m, dtype), bias.astype(dtype), jnp.zeros(m, dtype))


def aggregate(aggregator: Aggregator, ratings: Ratings) -> Instances:
    """Logits z = w · (r̂ - μ) + b, shape (n,).

    Example:
        >>> aggregate(Aggregator(jnp.array([1.0, 2.0]), jnp.array(-1.0), jnp.zeros(2)), jnp.ones((2, 3))).tolist()
        [2.0, 2.0, 2.0]
    """
    return aggregator.w @ (ratings - aggregator.centre[:, None]) + aggregator.b


def instance_weights(
    logits: Instances, labels: Labels, labeled: Mask, step: Step, *, of_class: Instances | None = None
) -> Instances:
    """vᵢ, class weight times focal factor, shape (n,); 0 where no label is known.

    ``of_class`` are the class weights, where they are at hand. A focal exponent that is the Python number 0 costs
    nothing.

    Example:
        >>> instance_weights(jnp.zeros(2), jnp.array([1.0, 0.0]), jnp.array([1, 0]), Step(focal=1.0)).tolist()
        [0.5, 0.0]
    """
    v = class_weights(labels, labeled, strength=step.class_weights) if of_class is None else of_class
    if isinstance(step.focal, int | float) and step.focal == 0:
        return v
    return v * focal_weights(logits, labels, exponent=step.focal)


def supervised_loss(logits: Instances, labels: Labels, labeled: Mask, step: Step) -> Scalar:
    """Weighted mean binary cross-entropy Σ vᵢ BCE(zᵢ, yᵢ) / Σ vᵢ; 0 without labeled instances.

    The weights are constants: the gradient is Σ vᵢ (pᵢ - yᵢ) ∂zᵢ / Σ vᵢ.

    Example:
        >>> round(float(supervised_loss(jnp.zeros(2), jnp.array([1.0, 0.0]), jnp.ones(2), Step())), 4)
        0.6931
    """
    v = jax.lax.stop_gradient(instance_weights(logits, labels, labeled, step))
    entropy = jax.nn.softplus(jnp.where(jnp.asarray(labels) > 0, -logits, logits))
    total = v.sum()
    return jnp.sum(v * entropy) / jnp.where(total > 0, total, 1)


def gradient(
    aggregator: Aggregator, ratings: Ratings, labels: Labels, labeled: Mask, step: Step
) -> tuple[Float[Array, " m"], Scalar]:
    """Gradient of :func:`supervised_loss` in (w, b): Σ vᵢ (pᵢ - yᵢ) (r̂ᵢ - μ) / Σ vᵢ, and the same without r̂.

    Example:
        >>> start = Aggregator(jnp.zeros(1), jnp.array(0.0), jnp.zeros(1))
        >>> g, g_b = gradient(start, jnp.array([[0.5, 0.5]]), jnp.array([0.0, 0.0]), jnp.ones(2), Step())
        >>> g.tolist(), float(g_b)
        ([0.25], 0.5)
    """
    inputs, residual, _ = _weighted_residual(aggregator, ratings, labels, labeled, step)
    return inputs @ residual, residual.sum()


def update(
    aggregator: Aggregator,
    ratings: Ratings,
    labels: Labels,
    labeled: Mask,
    step: Step,
    iteration: ScalarLike = 0,
    *,
    newton: bool = False,
    of_class: Instances | None = None,
) -> Aggregator:
    """One update of the aggregator.

    A gradient step is (w, b) ← (w - η g, b - η β g_b). A Newton step is (w, b) ← (w, b) - η (H + δ I)⁻¹ (g, g_b),
    with H = Σ vᵢ pᵢ (1 - pᵢ) φᵢ φᵢᵀ / Σ vᵢ and φ = (r̂ - μ, 1). Iterations below ``freeze`` change nothing, the next
    ``bias_first`` ones b alone.

    Args:
        aggregator: where it stands. ratings: reconstructed, (m, n). labels, labeled: (n,).
        step: how. iteration: its number, from 0. newton: compile the Newton step, used where ``step.newton`` is 1.
        of_class: the class weights, where they are at hand.

    Example:
        >>> start = Aggregator(jnp.zeros(1), jnp.array(0.0), jnp.zeros(1))
        >>> after = update(start, jnp.array([[0.5, 0.5]]), jnp.array([0.0, 0.0]), jnp.ones(2), Step(lr=0.1))
        >>> round(float(after.w[0]), 4), round(float(after.b), 4)
        (-0.025, -0.05)
    """
    known = (jnp.asarray(labeled) > 0).astype(ratings.dtype)
    mean = ratings @ known / jnp.maximum(known.sum(), 1)
    moving = jnp.where(iteration >= step.freeze, 1.0, 0.0)
    w_moving = moving * jnp.where(iteration >= step.freeze + step.bias_first, 1.0, 0.0)
    centred = aggregator._replace(centre=step.centre * mean)
    g, g_b = _direction(centred, ratings, labels, labeled, step, newton, of_class)
    dtype = ratings.dtype
    w = aggregator.w - (step.lr * w_moving * g).astype(dtype)
    b = aggregator.b - (step.lr * step.bias_lr * moving * g_b).astype(dtype)
    return Aggregator(w, b, centred.centre.astype(dtype))


def _direction(
    aggregator: Aggregator,
    ratings: Ratings,
    labels: Labels,
    labeled: Mask,
    step: Step,
    newton: bool,
    of_class: Instances | None,
) -> tuple[Float[Array, " m"], Scalar]:
    inputs, residual, curvature = _weighted_residual(aggregator, ratings, labels, labeled, step, of_class)
    g = jnp.append(inputs @ residual, residual.sum())
    if newton:
        phi = jnp.concatenate([inputs, jnp.ones_like(inputs[:1])])
        hessian = (phi * curvature[None, :]) @ phi.T + step.damping * jnp.eye(g.size, dtype=g.dtype)
        g = jnp.where(step.newton > 0, linalg.solve(hessian, g), g)
    return g[:-1], g[-1]


def _weighted_residual(
    aggregator: Aggregator,
    ratings: Ratings,
    labels: Labels,
    labeled: Mask,
    step: Step,
    of_class: Instances | None = None,
) -> tuple[Ratings, Instances, Instances]:
    """Centred ratings, vᵢ (pᵢ - yᵢ) / Σ v and vᵢ pᵢ (1 - pᵢ) / Σ v; unlabeled instances have v = 0."""
    inputs = ratings - aggregator.centre[:, None]
    logits = aggregator.w @ inputs + aggregator.b
    v = instance_weights(logits, labels, labeled, step, of_class=of_class)
    total = v.sum()
    share = v / jnp.where(total > 0, total, 1)
    p = jax.nn.sigmoid(logits)
    return inputs, share * (p - (jnp.asarray(labels) > 0)), share * p * (1 - p)
