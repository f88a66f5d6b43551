"""One update of the parameters, and the means of an epoch's updates."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from jaxpu import mixup, models
from jaxpu.methods import objective
from jaxpu.methods.objective import Hyper
from jaxpu.train.inputs import Config, Data, History, features
from jaxpu.types import Scalar


def optimizer(hyper: Hyper) -> optax.GradientTransformation:
    """Adam with L2 inside the gradient, as torch.optim.Adam's weight_decay; built here so that lr is traced."""
    return optax.chain(
        optax.add_decayed_weights(jnp.asarray(hyper.weight_decay)),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(jnp.asarray(hyper.lr)),
    )


class StepTerms(NamedTuple):
    """The terms of one update's loss, 1 where it was skipped, and 0 where the whole batch is padding."""

    terms: objective.Terms
    skipped: Scalar
    counted: Scalar


class Carry(NamedTuple):
    """What a step hands on to the next: parameters, moments, and what the method carries over steps."""

    params: models.Params
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
    loss = functools.partial(_loss, keys, batch=batch, memory=carry.memory, config=config, hyper=hyper)
    grads, (terms, logits) = jax.grad(loss, has_aux=True)(carry.params)
    updates, opt_state = optimizer(hyper).update(grads, carry.opt_state, carry.params)
    params = optax.apply_updates(carry.params, updates)
    context = {"params": params, "logits": logits, "labeled": labeled, "mask": batch.mask, "prior": hyper.prior}
    context |= {"rows": places, "progress": progress, "forward": _forward(batch, config)}
    memory = objective.updated_memory(config.objective, hyper.options, carry.memory, **context)
    usable = (labeled * mask).sum() > 0
    usable |= (hyper.skip_without_positives == 0) & mask.any()
    kept = jax.tree.map(functools.partial(jnp.where, usable), Carry(params, opt_state, memory), carry)
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


def _forward(batch: _Batch, config: Config) -> Callable[[models.Params], Array]:
    """From parameters to the logits of the batch, without dropout."""
    apply = models.build(config.model, batch.x.shape[1:], config.outputs).apply
    return lambda params: apply(params, batch.x)


def _loss(
    keys: StepKeys, params: models.Params, *, batch: _Batch, memory: Any, config: Config, hyper: Hyper
) -> tuple[Scalar, tuple[objective.Terms, Array]]:
    apply = models.build(config.model, batch.x.shape[1:], config.outputs).apply
    logits = apply(params, batch.x, keys.dropout)
    context = {"y": batch.y, "rows": batch.places, "progress": batch.progress}
    context |= {"memory": memory, "forward": _forward(batch, config)}
    base, clipped = objective.base_risk(config.objective, hyper, logits, batch.labeled, batch.mask, **context)
    if not config.objective.mixup:
        none = jnp.full((), jnp.nan)
        return base, (objective.Terms(base, base, none, none, clipped), logits)
    partner = mixup.labeled_positives(keys.partner, batch.labeled, mask=batch.mask)
    mixed = apply(params, mixup.mix(batch.x, partner, batch.lam), keys.dropout_mixed)
    weighted, target = objective.penalty(
        config.objective, hyper, logits, partner, mixed, batch.lam, batch.labeled, batch.mask
    )
    return base + weighted, (objective.Terms(base + weighted, base, weighted, target, clipped), logits)


def train_columns(steps: StepTerms, config: Config) -> History:
    """Means over the steps that were not skipped."""
    used = 1.0 - steps.skipped
    total = jnp.maximum(used.sum(), 1.0)
    means = {name: (used * value).sum() / total for name, value in steps.terms._asdict().items()}
    return {f"train_{name}": value for name, value in means.items()} | {
        "train_skipped": (steps.skipped * steps.counted).sum() / steps.counted.sum()
    }
