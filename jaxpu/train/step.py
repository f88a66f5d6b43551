"""One update of the parameters, and the means of an epoch's updates."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jaxtyping import Int

from jaxpu import mixup, models
from jaxpu.methods import objective
from jaxpu.methods.objective import Hyper
from jaxpu.train import optimizers
from jaxpu.train.inputs import Config, Data, History, features
from jaxpu.types import Scalar


def optimizer(data: Data, config: Config, hyper: Hyper) -> optax.GradientTransformation:
    """The optimiser of a run."""
    steps = updates(data, config)
    every = {"every": hyper.optimizer["every"] * steps} if "every" in hyper.optimizer else {}
    numbers = hyper.optimizer | every  # a schedule counts updates
    return optimizers.build(config.optimizer, hyper.lr, hyper.weight_decay, numbers, config.epochs * steps)


def updates(data: Data, config: Config) -> Int[Array, ""]:
    """Updates of an epoch if none is skipped; steps of mere padding are none."""
    rows = data.n_train - data.n_labeled if config.batching == "separate" else data.n_train
    return (rows + config.batch_size - 1) // config.batch_size


class StepTerms(NamedTuple):
    """The terms of one update's loss, 1 where it was skipped, and 0 where the whole batch is padding."""

    terms: objective.Terms
    skipped: Scalar
    counted: Scalar


class Carry(NamedTuple):
    """What a step hands on to the next: parameters, state, moments, and what the method carries over steps."""

    params: models.Params
    model_state: models.ModelState
    opt_state: optax.OptState
    memory: Any


def update(
    carry: Carry,
    step: "tuple[Array, Array, Array, StepKeys]",
    *,
    data: Data,
    config: Config,
    hyper: Hyper,
    progress: Scalar,
) -> tuple[Carry, StepTerms]:
    """One update, with the numbers of the epoch. A batch that is skipped leaves everything as it is.

    Skipped is a batch of mere padding, and one without a labeled positive if the method says so.
    """
    places, mask, lam, keys = step
    x, labeled = features(data, data.train[places]), (places < data.n_labeled).astype(jnp.float32)
    if config.row_sharding is not None:
        x = lax.with_sharding_constraint(x, config.row_sharding)
    batch = _Batch(x, labeled, data.y[data.train[places]], places, mask.astype(jnp.float32), lam, progress)
    loss = functools.partial(_loss, keys, batch=batch, carry=carry, config=config, hyper=hyper)
    grads, (terms, logits, state) = jax.grad(loss, has_aux=True)(carry.params)
    change, opt_state = optimizer(data, config, hyper).update(grads, carry.opt_state, carry.params)
    params = cast(models.Params, optax.apply_updates(carry.params, change))
    context = {"params": params, "logits": logits, "labeled": labeled, "mask": batch.mask, "prior": hyper.prior}
    context |= {"rows": places, "progress": progress, "forward": _forward(batch, state, config)}
    memory = objective.updated_memory(config.objective, hyper.options, carry.memory, **context)
    usable = (labeled * mask).sum() > 0
    usable |= (hyper.skip_without_positives == 0) & mask.any()
    kept = jax.tree.map(functools.partial(jnp.where, usable), Carry(params, state, opt_state, memory), carry)
    return kept, StepTerms(terms, 1.0 - usable.astype(jnp.float32), mask.any().astype(jnp.float32))


class _Batch(NamedTuple):
    x: Array
    labeled: Array
    y: Array
    places: Array
    mask: Array
    lam: Array
    progress: Scalar


class StepKeys(NamedTuple):
    """The keys of a step, drawn for all steps of an epoch at once."""

    dropout: Array
    partner: Array
    dropout_mixed: Array


def _forward(batch: _Batch, state: models.ModelState, config: Config) -> Callable[[models.Params], Array]:
    """From parameters to the logits of the batch, without dropout, with the network's state as it is."""
    model = models.build(config.model, batch.x.shape[1:], config.outputs)
    return lambda params: model.logits(models.Variables(params, state), batch.x)


def _loss(
    keys: StepKeys, params: models.Params, *, batch: _Batch, carry: Carry, config: Config, hyper: Hyper
) -> tuple[Scalar, tuple[objective.Terms, Array, models.ModelState]]:
    """The loss, and beside it its terms, the logits, and the network's state after both passes, the plain one first."""
    apply = models.build(config.model, batch.x.shape[1:], config.outputs).apply
    training = functools.partial(apply, params, train=True, mask=batch.mask)
    logits, state = training(carry.model_state, batch.x, key=keys.dropout)
    context = {"y": batch.y, "rows": batch.places, "progress": batch.progress}
    context |= {"memory": carry.memory, "forward": _forward(batch, carry.model_state, config)}
    base, clipped = objective.base_risk(config.objective, hyper, logits, batch.labeled, batch.mask, **context)
    if not config.objective.mixup:
        none = jnp.full((), jnp.nan)
        return base, (objective.Terms(base, base, none, none, clipped), logits, state)
    partner = mixup.PAIRINGS[config.objective.pairing](keys.partner, batch.labeled, mask=batch.mask)
    dropout = jnp.where(jnp.asarray(hyper.same_dropout) > 0, keys.dropout, keys.dropout_mixed)
    mixed, state = training(state, mixup.mix(batch.x, partner, batch.lam), key=dropout)
    weighted, target = objective.penalty(
        config.objective, hyper, logits, partner, mixed, batch.lam, batch.labeled, batch.mask
    )
    return base + weighted, (objective.Terms(base + weighted, base, weighted, target, clipped), logits, state)


def train_columns(steps: StepTerms, config: Config) -> History:
    """Means over the steps that were not skipped."""
    used = 1.0 - steps.skipped
    total = jnp.maximum(used.sum(), 1.0)
    means = {name: (used * value).sum() / total for name, value in steps.terms._asdict().items()}
    return {f"train_{name}": value for name, value in means.items()} | {
        "train_skipped": (steps.skipped * steps.counted).sum() / steps.counted.sum()
    }
