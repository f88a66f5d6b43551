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
from jaxpu.valuation.filters import FILTERS, chosen, keep
from jaxpu.valuation.risk import relative_risk

WHOLE = FILTERS.index("whole")


class Guide(NamedTuple):
    """Who says which pairs a student learns; traced.

    Attributes:
        teacher: the network that judges pairs; where the filter keeps all of them it is not asked for anything.
        which: place of the filter in :data:`~jaxpu.valuation.FILTERS`.
        of_batch: 1 divides the loss by the rows of the batch, 0 by the pairs that enter.
        warmup, until: the shares of the epochs between which the filter is in.
    """

    teacher: models.Variables
    which: Any
    of_batch: Any
    warmup: Any
    until: Any


class Choices(NamedTuple):
    """What of guiding shapes the program; static.

    Attributes:
        loss: name in :data:`jaxpu.losses.CLASSIFICATION`. both: add the loss of the rows as they are (RegMixup).
        draws: how many partners each row of a batch gets. refresh: epochs after which the student becomes the teacher.
    """

    loss: str = "cross_entropy"
    both: bool = False
    draws: int = 1
    refresh: int = 0


class Taught(NamedTuple):
    """What a run carries where its teacher is replaced: the teacher, and how often it was."""

    teacher: models.Variables
    times: Any


class Terms(NamedTuple):
    """Of an update: the loss, the share of the pairs that the filter keeps, the pairs that enter over the rows of a batch,
    and the mean of r̂ over all pairs, 0 where it was not asked for."""

    loss: Scalar
    kept: Scalar
    entered: Scalar
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
    choices: Choices = Choices(),
) -> tuple[Carry, StepTerms]:
    """One update; a batch of mere padding leaves everything as it is.

    A batch is mixed with a shuffle of itself, inputs and labels alike. A pair counts where the filter keeps it, by
    teacher and student as they predict outside of training: Σ m ℓ(λ yᵢ + (1 - λ) yⱼ) / Σ m, m held fixed. Where nothing
    is kept the gradient is 0, and what moves the parameters is momentum and weight decay alone.

    Args:
        carry, step, data, config, hyper, progress: as of :func:`jaxpu.train.step.update`. guide: who filters.
        choices: the static part.

    Source: Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018, for the mixing.
    """
    places, mask, lam, keys = step
    rows, size = jnp.maximum(mask.sum(), 1), len(places)
    places, mask = jnp.tile(places, choices.draws), jnp.tile(mask, choices.draws)
    lam = jnp.tile(lam, choices.draws) if lam.ndim else lam
    x, y = features(data, data.train[places]), data.y[data.train[places]]
    partner = mixup.shuffle(keys.partner, jnp.ones_like(places), mask=mask)
    mixed, hot = mixup.mix(x, partner, lam), one_hot(y, config.outputs).astype(x.dtype)
    labels = mixup.mix(hot, partner, lam)
    model = models.build(config.model, x.shape[1:], config.outputs)
    carry = _refreshed(carry, progress, config, choices)
    teacher = carry.memory.teacher if choices.refresh else guide.teacher
    filtered = (guide.which != WHOLE) & (progress >= guide.warmup) & (progress < guide.until)
    here = model.logits(models.Variables(carry.params, carry.model_state), mixed)
    judged = lax.cond(
        filtered,
        lambda: relative_risk(model.logits(teacher, mixed), here, y, y[partner], lam),
        lambda: jnp.zeros(len(y), here.dtype),
    )
    kept = keep(judged, jnp.where(filtered, guide.which, WHOLE), key=keys.dropout_mixed, mask=mask)
    enters = chosen(kept, size) if choices.draws > 1 else kept
    scale = jnp.where(guide.of_batch > 0, enters.sum() / rows, 1.0)

    def objective(params: models.Params) -> tuple[Scalar, models.ModelState]:
        apply = functools.partial(model.apply, params, train=True)
        loss = losses.CLASSIFICATION[choices.loss]
        logits, state = apply(carry.model_state, mixed, key=keys.dropout, mask=mask.astype(x.dtype))
        value = scale * loss(logits, labels, mask=enters)
        if not choices.both:
            return value, state
        plain = mask[:size].astype(x.dtype)
        logits, state = apply(state, x[:size], key=keys.dropout_mixed, mask=plain)
        return value + loss(logits, hot[:size], mask=plain), state

    (value, model_state), grads = jax.value_and_grad(objective, has_aux=True)(carry.params)
    change, opt_state = optimizer(data, config, hyper).update(grads, carry.opt_state, carry.params)
    params = cast(models.Params, optax.apply_updates(carry.params, change))
    moved = Carry(params, model_state, opt_state, carry.memory)
    counted = mask.any()
    moved = jax.tree.map(functools.partial(jnp.where, counted), moved, carry)
    drawn = rows * choices.draws
    terms = Terms(lax.stop_gradient(value), kept.sum() / drawn, enters.sum() / rows, (mask * judged).sum() / drawn)
    return moved, StepTerms(cast(Any, terms), 1.0 - counted.astype(jnp.float32), counted.astype(jnp.float32))


def _refreshed(carry: Carry, progress: Scalar, config: Config, choices: Choices) -> Carry:
    """The student in the teacher's place, at the first step after so many epochs."""
    if not choices.refresh:
        return carry
    times = jnp.round(progress * config.epochs).astype(jnp.int32) // choices.refresh
    due = times > carry.memory.times
    student = models.Variables(carry.params, carry.model_state)
    teacher = jax.tree.map(functools.partial(jnp.where, due), student, carry.memory.teacher)
    return carry._replace(memory=Taught(teacher, times))
