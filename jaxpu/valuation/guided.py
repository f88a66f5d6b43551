"""Guided training: a student learns the mixed pairs that a filter on r̂ lets through.

The loop is that of :mod:`jaxpu.train`; what differs is the update, :func:`update`.
"""

import functools
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from jaxpu import losses, mixup, models
from jaxpu.margins import one_hot
from jaxpu.methods.objective import Hyper
from jaxpu.train import Config, Data, features
from jaxpu.train.step import Carry, StepKeys, StepTerms, optimizer
from jaxpu.types import Scalar
from jaxpu.valuation.risk import keep, relative_risk


class Guide(NamedTuple):
    """Who says which pairs a student learns; traced.

    Attributes:
        teacher: the network that judges pairs; where the filter keeps all of them it is not asked for anything.
        which: place of the filter in :data:`~jaxpu.valuation.FILTERS`.
    """

    teacher: models.Variables
    which: Any


class Terms(NamedTuple):
    """Of an update: the loss, the share of the pairs that entered it, and the mean of r̂ over all of them."""

    loss: Scalar
    kept: Scalar
    relative_risk: Scalar


def update(
    carry: Carry,
    step: tuple[Array, Array, Array, StepKeys],
    *,
    data: Data,
    config: Config,
    hyper: Hyper,
    progress: Scalar,
    guide: Guide,
    loss: str = "cross_entropy",
) -> tuple[Carry, StepTerms]:
    """One update; a batch of mere padding leaves everything as it is.

    A batch is mixed with a shuffle of itself, inputs and labels alike. A pair counts where the filter keeps it, by
    teacher and student as they predict outside of training: Σ m ℓ(λ yᵢ + (1 - λ) yⱼ) / Σ m, m held fixed. Where nothing
    is kept the gradient is 0, and what moves the parameters is momentum and weight decay alone.

    Args:
        carry, step, data, config, hyper, progress: as of :func:`jaxpu.train.step.update`. guide: who filters.
        loss: name in :data:`jaxpu.losses.CLASSIFICATION`; static.

    Source: Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018, for the mixing.
    """
    places, mask, lam, keys = step
    x, y = features(data, data.train[places]), data.y[data.train[places]]
    partner = mixup.shuffle(keys.partner, jnp.ones_like(places), mask=mask)
    mixed = mixup.mix(x, partner, lam)
    labels = mixup.mix(one_hot(y, config.outputs).astype(x.dtype), partner, lam)
    model = models.build(config.model, x.shape[1:], config.outputs)
    before = models.Variables(carry.params, carry.model_state)
    judged = relative_risk(model.logits(guide.teacher, mixed), model.logits(before, mixed), y, y[partner], lam)
    kept = mask * keep(judged, guide.which)

    def objective(params: models.Params) -> tuple[Scalar, models.ModelState]:
        apply = functools.partial(model.apply, params, carry.model_state, train=True)
        logits, state = apply(mixed, key=keys.dropout, mask=mask.astype(x.dtype))
        return losses.CLASSIFICATION[loss](logits, labels, mask=kept), state

    (value, model_state), grads = jax.value_and_grad(objective, has_aux=True)(carry.params)
    change, opt_state = optimizer(data, config, hyper).update(grads, carry.opt_state, carry.params)
    params = cast(models.Params, optax.apply_updates(carry.params, change))
    moved = Carry(params, model_state, opt_state, carry.memory)
    counted = mask.any()
    moved = jax.tree.map(functools.partial(jnp.where, counted), moved, carry)
    rows = jnp.maximum(mask.sum(), 1)
    terms = Terms(lax.stop_gradient(value), kept.sum() / rows, (mask * judged).sum() / rows)
    return moved, StepTerms(cast(Any, terms), 1.0 - counted.astype(jnp.float32), counted.astype(jnp.float32))
