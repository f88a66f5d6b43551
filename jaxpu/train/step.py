"""One update of the parameters, and the means of an epoch's updates."""

import functools
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from jaxpu import mixup, models, objective
from jaxpu.objective import Hyper
from jaxpu.train import optimizers
from jaxpu.train.inputs import Config, Data, History, features
from jaxpu.types import Scalar


def optimizer(data: Data, config: Config, hyper: Hyper) -> optax.GradientTransformation:
    """The optimiser of a run; its schedule ends with the last step that is no mere padding."""
    rows = data.n_train - data.n_labeled if config.batching == "separate" else data.n_train
    steps = config.epochs * ((rows + config.batch_size - 1) // config.batch_size)
    return optimizers.build(config.optimizer, hyper.lr, hyper.weight_decay, hyper.optimizer, steps)


class Carry(NamedTuple):
    """What one update hands to the next."""

    params: models.Params
    model_state: models.ModelState
    opt_state: optax.OptState


class StepTerms(NamedTuple):
    """The terms of one update's loss, 1 where it was skipped, and 0 where the whole batch is padding."""

    terms: objective.Terms
    skipped: Scalar
    counted: Scalar


def update(
    carry: Carry,
    step: "tuple[Array, Array, Array, StepKeys]",
    *,
    data: Data,
    config: Config,
    hyper: Hyper,
    anchor: Scalar,
) -> tuple[Carry, StepTerms]:
    """One update. A batch without a labelled positive leaves parameters, state and moments as they are."""
    params, model_state, opt_state = carry
    places, mask, lam, keys = step
    x, labeled = features(data, data.train[places]), (places < data.n_labeled).astype(jnp.float32)
    if config.row_sharding is not None:
        x = lax.with_sharding_constraint(x, config.row_sharding)
    batch = _Batch(x, labeled, data.y[data.train[places]], mask.astype(jnp.float32), lam, anchor)
    loss = functools.partial(_loss, keys, batch=batch, config=config, hyper=hyper)
    grads, (terms, new_model_state) = jax.grad(loss, has_aux=True)(params, model_state)
    updates, new_opt_state = optimizer(data, config, hyper).update(grads, opt_state, params)
    moved = Carry(cast(models.Params, optax.apply_updates(params, updates)), new_model_state, new_opt_state)
    usable = (labeled * mask).sum() > 0
    kept = jax.tree.map(functools.partial(jnp.where, usable), moved, carry)
    return kept, StepTerms(terms, 1.0 - usable.astype(jnp.float32), mask.any().astype(jnp.float32))


class _Batch(NamedTuple):
    x: Array
    labeled: Array
    labels: Array
    mask: Array
    lam: Array
    anchor: Scalar


class StepKeys(NamedTuple):
    """The keys of a step, drawn for all steps of an epoch at once."""

    dropout: Array
    partner: Array
    dropout_mixed: Array


def _loss(
    keys: StepKeys,
    params: models.Params,
    state: models.ModelState,
    *,
    batch: _Batch,
    config: Config,
    hyper: Hyper,
) -> tuple[Scalar, tuple[objective.Terms, models.ModelState]]:
    apply = models.build(config.model, batch.x.shape[1:], config.outputs).apply
    train = functools.partial(apply, params, train=True, mask=batch.mask)
    logits, state = train(state, batch.x, key=keys.dropout)
    base, clipped = objective.base_risk(hyper, logits, batch.labeled, batch.labels, batch.mask)
    if not config.mixup:
        none = jnp.full((), jnp.nan)
        return base, (objective.Terms(base, base, none, none, clipped), state)
    partner = mixup.labeled_positives(keys.partner, batch.labeled, mask=batch.mask)
    mixed, state = train(state, mixup.mix(batch.x, partner, batch.lam), key=keys.dropout_mixed)
    weighted, target = objective.penalty(
        hyper, logits, partner, mixed, batch.lam, batch.anchor, batch.labeled, batch.mask
    )
    return base + weighted, (objective.Terms(base + weighted, base, weighted, target, clipped), state)


def train_columns(steps: StepTerms, config: Config) -> History:
    """Means over the steps that were not skipped."""
    used = 1.0 - steps.skipped
    total = jnp.maximum(used.sum(), 1.0)
    means = {name: (used * value).sum() / total for name, value in steps.terms._asdict().items()}
    return {f"train_{name}": value for name, value in means.items()} | {
        "train_skipped": (steps.skipped * steps.counted).sum() / steps.counted.sum()
    }
