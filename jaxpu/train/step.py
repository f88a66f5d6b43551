"""One update of the parameters, and the means of an epoch's updates."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from jaxpu import losses, mixup, models
from jaxpu.margins import one_hot
from jaxpu.methods import objective
from jaxpu.methods.check import pairing_options
from jaxpu.methods.objective import Hyper
from jaxpu.train import directional, optimizers
from jaxpu.train.inputs import Config, Data, Seen, Weigh, features, updates
from jaxpu.types import Scalar, ScalarLike


def optimizer(data: Data, config: Config, hyper: Hyper) -> optax.GradientTransformation:
    """The optimiser of a run."""
    steps = updates(data, config)
    every = {"every": hyper.optimizer["every"] * steps} if "every" in hyper.optimizer else {}
    numbers = hyper.optimizer | every  # a schedule counts updates
    return optimizers.build(config.optimizer, hyper.lr, hyper.weight_decay, numbers, config.epochs * steps)


class StepTerms(NamedTuple):
    """Terms of an update's loss, 1 if it was skipped, 0 if all of it is padding, and what else is recorded, by name."""

    terms: objective.Terms
    skipped: Scalar
    counted: Scalar
    more: dict[str, Scalar]


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
    centre: Array | None = None,
    weigh: Weigh | None = None,
    over_rows: ScalarLike = 0.0,
) -> tuple[Carry, StepTerms]:
    """One update, with the numbers of the epoch. A batch that is skipped leaves everything as it is.

    Skipped is a batch of mere padding, and one without a labeled positive if the method says so.

    Args:
        carry, step: what the last step left; places, mask, λ and keys of this one. data, config, hyper, progress: of
            the run and the epoch. centre: x̄ of the training rows, for a directional penalty.
        weigh: m of each mixed row, for methods that mix labels: the mixed loss is Σ m ℓ / Σ m, 0 where all m are, and
            the share that is kept, Σ m / n, is recorded as ``train_kept``. None = all count.
        over_rows: 1 multiplies the mixed loss by the share that is kept, so that without class weights it is Σ m ℓ / n,
            and an update on few rows a small one; may be traced.

    Raises:
        ValueError: ``weigh`` for a method that mixes no labels, or whose risk weighs no rows.
    """
    places, mask, lam, keys = step
    if weigh is not None and config.objective.mixes == "none":
        raise ValueError("weigh says how much mixed rows count; expected a method that mixes labels, see Method.mixes")
    x, labeled = features(data, data.train[places]), (places < data.n_labeled).astype(jnp.float32)
    if config.row_sharding is not None:
        x = lax.with_sharding_constraint(x, config.row_sharding)
    batch = _Batch(x, labeled, data.y[data.train[places]], places, mask.astype(jnp.float32), lam, progress)
    given = {"batch": batch, "carry": carry, "config": config, "hyper": hyper}
    mixing = {} if config.objective.mixes == "none" else {"weigh": weigh, "over_rows": over_rows}
    loss: Any = functools.partial(_mixed_loss if mixing else _loss, keys, **given, **mixing)
    if centre is not None:
        loss = _penalised(loss, centre, **given)
    grads, (terms, more, logits, state) = jax.grad(loss, has_aux=True)(carry.params)
    usable = ((labeled * mask).sum() > 0) | ((hyper.skip_without_positives == 0) & mask.any())

    def moved() -> tuple[models.Params, optax.OptState]:
        change, opt_state = optimizer(data, config, hyper).update(grads, carry.opt_state, carry.params)
        return cast(models.Params, optax.apply_updates(carry.params, change)), opt_state

    # a branch, so that outside of vmap parameters and moments change in place, not copied first and chosen from after
    params, opt_state = lax.cond(usable, moved, lambda: (carry.params, carry.opt_state))
    context = {"params": params, "logits": logits, "labeled": labeled, "mask": batch.mask, "prior": hyper.prior}
    context |= {"rows": places, "progress": progress, "forward": _forward(batch, state, config)}
    memory = objective.updated_memory(config.objective, hyper.options, carry.memory, **context)
    stayed = carry.model_state, carry.memory
    state, memory = jax.tree.map(functools.partial(jnp.where, usable), (state, memory), stayed)
    skipped, counted = 1.0 - usable.astype(jnp.float32), mask.any().astype(jnp.float32)
    return Carry(params, state, opt_state, memory), StepTerms(terms, skipped, counted, more)


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


BOX, WEIGH = 1, 2
"""What else the key of the partners is folded with: the place of a box, and draws of whoever weighs rows."""

_Aux = tuple[objective.Terms, dict[str, Scalar], Array, models.ModelState]


def _forward(batch: _Batch, state: models.ModelState, config: Config) -> Callable[[models.Params], Array]:
    """From parameters to the logits of the batch, without dropout, with the network's state as it is."""
    model = models.build(config.model, batch.x.shape[1:], config.outputs)
    return lambda params: model.logits(models.Variables(params, state), batch.x)


def _penalised(loss: Any, centre: Array, *, batch: _Batch, carry: Carry, config: Config, hyper: Hyper) -> Any:
    context = {"labeled": batch.labeled, "mask": batch.mask, "y": batch.y} | _context(batch, carry, config)
    risk = functools.partial(objective.base_risk, config.objective, hyper, **context)

    def network(params: models.Params, x: Array) -> Array:
        return _forward(batch._replace(x=x), carry.model_state, config)(params)

    return directional.penalised(loss, network, risk, hyper.directional_penalty, batch.x, centre)


def _context(batch: _Batch, carry: Carry, config: Config) -> dict[str, Any]:
    """What risks may ask for besides labels."""
    context = {"rows": batch.places, "progress": batch.progress, "memory": carry.memory}
    return context | {"forward": _forward(batch, carry.model_state, config)}


def _loss(
    keys: StepKeys, params: models.Params, *, batch: _Batch, carry: Carry, config: Config, hyper: Hyper
) -> tuple[Scalar, _Aux]:
    """The loss, and beside it its terms, the logits, and the network's state after both passes, the plain one first."""
    apply = models.build(config.model, batch.x.shape[1:], config.outputs).apply
    training = functools.partial(apply, params, train=True, mask=batch.mask)
    logits, state = training(carry.model_state, batch.x, key=keys.dropout)
    context = {"y": batch.y} | _context(batch, carry, config)
    mixed = None
    if config.objective.sees_mixed:
        mixed, state = _mixed_pass(keys, training, logits, state, batch, config, hyper)
    base, clipped = objective.base_risk(config.objective, hyper, logits, batch.labeled, batch.mask, mixed, **context)
    if not config.objective.mixup:
        none = jnp.full((), jnp.nan)
        return base, (objective.Terms(base, base, none, none, clipped), {}, logits, state)
    (z, partner, lam), state = _mixed_pass(keys, training, logits, state, batch, config, hyper)
    weighted, target = objective.penalty(config.objective, hyper, logits, partner, z, lam, batch.labeled, batch.mask)
    return base + weighted, (objective.Terms(base + weighted, base, weighted, target, clipped), {}, logits, state)


def _mixed_pass(
    keys: StepKeys,
    training: Callable[..., tuple[Array, models.ModelState]],
    logits: Array,
    state: models.ModelState,
    batch: _Batch,
    config: Config,
    hyper: Hyper,
) -> tuple[losses.Mixed, models.ModelState]:
    """The forward pass over rows mixed with their partners, and the network's state after it."""
    partner = _partner(keys, batch, config, hyper, lax.stop_gradient(logits))
    dropout = jnp.where(jnp.asarray(hyper.same_dropout) > 0, keys.dropout, keys.dropout_mixed)
    lam = batch.lam
    if config.objective.sees_mixed:
        lam = jnp.where(jnp.asarray(hyper.at_least_half) > 0, jnp.maximum(lam, 1 - lam), lam)
    z, state = training(state, mixup.mix(batch.x, partner, lam), key=dropout)
    return losses.Mixed(z, partner, lam), state


def _partner(keys: StepKeys, batch: _Batch, config: Config, hyper: Hyper, logits: Array | None = None) -> Array:
    """Whom each row is mixed with, by the method's pairing and its numbers."""
    known = pairing_options(config.objective.pairing)
    more = {"logits": logits} if "logits" in known.context else {}
    more |= {name: hyper.options[name] for name in known.numbers}
    return mixup.PAIRINGS[config.objective.pairing](keys.partner, batch.labeled, mask=batch.mask, **more)


def _mixed_loss(
    keys: StepKeys,
    params: models.Params,
    *,
    batch: _Batch,
    carry: Carry,
    config: Config,
    hyper: Hyper,
    weigh: Weigh | None,
    over_rows: ScalarLike,
) -> tuple[Scalar, _Aux]:
    """As :func:`_loss`, where the risk gets mixed rows with mixed labels; the plain pass is there if it has a weight.

    Terms: ``base`` is the plain part, ``penalty`` the mixed one; the logits are those of the mixed rows.
    """
    apply = models.build(config.model, batch.x.shape[1:], config.outputs).apply
    training = functools.partial(apply, params, train=True, mask=batch.mask)
    risk = functools.partial(objective.base_risk, config.objective, hyper, **_context(batch, carry, config))
    base, dropout, state = jnp.full((), jnp.nan), keys.dropout, carry.model_state
    if config.objective.plain:
        logits, state = training(state, batch.x, key=keys.dropout)
        base = hyper.plain_weight * risk(logits, batch.labeled, batch.mask, y=batch.y)[0]
        dropout = jnp.where(jnp.asarray(hyper.same_dropout) > 0, keys.dropout, keys.dropout_mixed)
    seen, y = _mixed(keys, batch, carry, config, hyper)
    found: Any = weigh(seen) if weigh else None
    weights, more = found if isinstance(found, tuple) else (found, {})
    if weights is not None:
        weights = lax.stop_gradient(batch.mask * weights)
        more = {"kept": weights.sum() / jnp.maximum(batch.mask.sum(), 1.0), **more}
    logits, state = training(state, seen.x, key=dropout)
    value, clipped = risk(logits, batch.labeled, batch.mask, y=y, weights=weights)
    value = hyper.mixed_weight * value * (jnp.where(jnp.asarray(over_rows) > 0, more["kept"], 1.0) if weigh else 1.0)
    loss = base + value if config.objective.plain else value
    return loss, (objective.Terms(loss, base, value, jnp.full((), jnp.nan), clipped), more, logits, state)


def _mixed(keys: StepKeys, batch: _Batch, carry: Carry, config: Config, hyper: Hyper) -> tuple[Seen, Array]:
    """The mixed batch, and its labels: shares of the classes, or of two of them the probability of class 1."""
    model = models.build(config.model, batch.x.shape[1:], config.outputs)
    partner = _partner(keys, batch, config, hyper)
    if config.objective.mixes == "cutmix":
        x, lam = mixup.cutmix(jax.random.fold_in(keys.partner, BOX), batch.x, partner, batch.lam)
    else:
        x, lam = mixup.mix(batch.x, partner, batch.lam), batch.lam
    hard = batch.y if config.outputs == 1 else one_hot(batch.y, config.outputs)
    before = models.Variables(carry.params, carry.model_state)
    logits, key = functools.partial(model.logits, before), jax.random.fold_in(keys.partner, WEIGH)
    seen = Seen(x, batch.y, partner, lam, batch.mask, batch.places, model, before, logits, key, batch.progress)
    return seen, mixup.mix(hard.astype(batch.x.dtype), partner, lam)
