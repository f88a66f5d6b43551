"""The loop over epochs: plan, steps, evaluation, selection rules."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jaxtyping import Float, Int

from jaxpu import mixup, models
from jaxpu.data import plan
from jaxpu.methods import objective
from jaxpu.methods.objective import Hyper
from jaxpu.selection import RuleChoice
from jaxpu.train import directional
from jaxpu.train.evaluation import evaluate
from jaxpu.train.inputs import Config, Data, History
from jaxpu.train.step import Carry, StepKeys, StepTerms, optimizer, update

# What random numbers are for: a run's key is folded with one of these, then with the epoch.
INIT, SHUFFLE, LAMBDA, STEPS = range(4)


class State(NamedTuple):
    """What the next epoch needs. ``best``, ``best_epoch``: an entry a watched rule, at least 1; epochs count from 0.

    ``memory`` is what the method carries over steps, None for most.
    """

    params: models.Params
    model_state: models.ModelState
    opt_state: optax.OptState
    epoch: Int[Array, ""]
    best: Float[Array, " rules"]
    best_epoch: Int[Array, " rules"]
    kept: models.Variables | None
    memory: Any = None

    @property
    def variables(self) -> models.Variables:
        """What the network computes with now."""
        return models.Variables(self.params, self.model_state)


class Run(NamedTuple):
    """A finished run: ``history`` maps a column to (epochs,) values, NaN after the run has stopped.

    ``state.params`` and ``state.model_state`` are those of the last epoch run; ``state.kept`` has those of the best
    epoch under ``config.keep_best``, or is None.
    """

    history: History
    state: State


def key_of(seed: Array | int) -> Array:
    """The random key of a run: the same for every method and placement.

    >>> bool((jax.random.key_data(key_of(1)) == jax.random.key_data(key_of(2))).all())
    False
    """
    return jax.random.fold_in(jax.random.key(0), seed)


def train(key: Array, data: Data, config: Config, hyper: Hyper) -> Run:
    """Train one seed from start to end; pure, so ``jit``, ``vmap`` over any argument, and shard it.

    Args:
        key: the run's random key; the same key and data give every method the same start, batches and λ.
        data: arrays and row numbers. config: the static part. hyper: the traced part.

    Returns:
        The recorded columns and the final state.
    """
    state = init(key, data, config, hyper)
    every = config.evaluate_every
    state, history = advance(key, state, data, config, hyper, -(-config.epochs // every) * every)
    return Run({name: values[: config.epochs] for name, values in history.items()}, state)


def init(key: Array, data: Data, config: Config, hyper: Hyper) -> State:
    """The state before the first epoch: fresh parameters, empty moments, nothing selected."""
    model = models.build(config.model, data.x.shape[1:], config.outputs)
    variables = models.start(model, jax.random.fold_in(key, INIT), data.x.shape[1:], hyper.initial_p)
    memory = config.objective.memory
    watched = max(len(_watched(config)), 1)  # empty arrays can neither be mapped in chunks nor sharded
    return State(
        params=variables.params,
        model_state=variables.state,
        opt_state=optimizer(data, config, hyper).init(variables.params),
        epoch=jnp.zeros((), jnp.int32),
        best=jnp.full((watched,), -jnp.inf),
        best_epoch=jnp.full((watched,), -1, jnp.int32),
        kept=variables if config.keep_best else None,
        memory=memory.init(variables.params, data.train.shape[0]) if memory else None,
    )


def advance(
    key: Array,
    state: State,
    data: Data,
    config: Config,
    hyper: Hyper,
    epochs: int,
    update: Callable[..., tuple[Carry, StepTerms]] = update,
) -> tuple[State, History]:
    """Train ``epochs`` more epochs; epochs past the end, or after the rules have stopped, cost and change nothing.

    A run is the same whether it advances in one segment or in many. ``update`` makes a step, as
    :func:`jaxpu.train.step.update` does; the means of its terms are recorded.

    Raises:
        ValueError: ``epochs`` is no multiple of ``config.evaluate_every``.
    """
    every = config.evaluate_every
    if epochs % every:
        raise ValueError(
            f"epochs is {epochs}, expected a multiple of evaluate_every, {every}: evaluations end a segment"
        )
    train_one = functools.partial(_trained, key, data=data, config=config, hyper=hyper, update=update)

    def epoch(state: State, _: None) -> tuple[State, History]:
        if config.epochs % every == 0:  # then no run ends between evaluations
            return train_one(state)
        return _unless(state.epoch >= config.epochs, train_one, state)

    def evaluated(state: State) -> tuple[State, History]:
        began = state.epoch
        state, history = train_one(state) if every == 1 else lax.scan(epoch, state, length=every)
        found = evaluate(state.variables, data, config, objective.at(hyper, state.epoch - 1, config.epochs))
        state = _follow_rules(state, found, config)
        if every > 1:
            last = jnp.arange(every) == state.epoch - began - 1
            found = {name: jnp.where(last.reshape(-1, *[1] * v.ndim), v[None], jnp.nan) for name, v in found.items()}
        return state, history | found

    def group(state: State, _: None) -> tuple[State, History]:
        return _unless(finished(state, config), evaluated, state)

    state, history = lax.scan(group, state, length=epochs // every)
    return state, history if every == 1 else {name: v.reshape(-1, *v.shape[2:]) for name, v in history.items()}


def _unless(over: Array, run: Callable[[State], tuple[State, History]], state: State) -> tuple[State, History]:
    """``run(state)``, or the state as it is and NaN; under ``vmap`` both are computed."""
    run = jax.jit(run)  # so that it is traced once for its shape and for its use
    empty = jax.tree.map(lambda a: jnp.full(a.shape, jnp.nan, a.dtype), jax.eval_shape(run, state)[1])
    return lax.cond(over, lambda s: (s, empty), run, state)


def finished(state: State, config: Config) -> Array:
    """Whether a run is over: all epochs done, or (with ``config.stop``) every rule out of patience."""
    over = state.epoch >= config.epochs
    if config.stop and all(rule.column for rule in config.rules):
        # epochs count from 0 and state.epoch is the next one, so the last epoch run is state.epoch - 1
        over |= ((state.epoch - 1) - state.best_epoch >= config.patience).all()
    return over


def _trained(
    key: Array, state: State, *, data: Data, config: Config, hyper: Hyper, update: Callable[..., Any]
) -> tuple[State, History]:
    """One epoch of steps."""
    rows, mask = _plan(_fold(key, SHUFFLE, state.epoch), data, config)
    steps, size = rows.shape
    hyper = objective.at(hyper, state.epoch, config.epochs)
    shape = (steps,) if config.lam_per == "batch" else (steps, size)
    lam = mixup.sample(_fold(key, LAMBDA, state.epoch), hyper.alpha, shape)
    progress = objective.progress(state.epoch, config.epochs)
    centre = directional.mean_row(data) if config.directional else None
    step = functools.partial(update, data=data, config=config, hyper=hyper, progress=progress, centre=centre)
    # a step's keys stay the same when steps of mere padding follow
    by_step = jax.random.split(_fold(key, STEPS, state.epoch), (steps, len(StepKeys._fields)))
    keys = StepKeys(*(by_step[:, purpose] for purpose in range(len(StepKeys._fields))))
    start = Carry(state.params, state.model_state, state.opt_state, state.memory)
    after, terms = lax.scan(step, start, (rows, mask, lam, keys))
    return state._replace(**after._asdict(), epoch=state.epoch + 1), _train_columns(terms)


def _train_columns(steps: StepTerms) -> History:
    """Means over the steps that were not skipped."""
    used = 1.0 - steps.skipped
    total = jnp.maximum(used.sum(), 1.0)
    means = {name: (used * value).sum() / total for name, value in (steps.terms._asdict() | dict(steps.more)).items()}
    return {f"train_{name}": value for name, value in means.items()} | {
        "train_skipped": (steps.skipped * steps.counted).sum() / steps.counted.sum()
    }


def _fold(key: Array, purpose: int, number: Array | int) -> Array:
    return jax.random.fold_in(jax.random.fold_in(key, purpose), number)


def _plan(key: Array, data: Data, config: Config) -> tuple[Array, Array]:
    n = data.train.shape[0]
    if config.batching == "separate":
        return plan.separate_plan(key, n, config.batch_size, data.n_labeled, data.n_train)
    return plan.mixed_plan(key, n, config.batch_size, data.n_train)


def _watched(config: Config) -> list[RuleChoice]:
    return [rule for rule in config.rules if rule.column]


def _follow_rules(state: State, history: History, config: Config) -> State:
    """Update the best epoch of every watched rule; :func:`jaxpu.analysis.replay` is the same in NumPy."""
    watched = _watched(config)
    if not watched:
        return state._replace(kept=state.variables if config.keep_best else None)
    values = jnp.stack([rule.entry.sign * history[str(rule.column)] for rule in watched])
    # state.epoch - 1 is the epoch just run; a rule that was out of patience before it has stopped for good
    watching = (state.epoch - 2) - state.best_epoch < config.patience
    better = watching & (values > state.best + config.min_delta)
    state = state._replace(
        best=jnp.where(better, values, state.best),
        best_epoch=jnp.where(better, state.epoch - 1, state.best_epoch),
    )
    if config.keep_best is None:
        return state
    keep = better[watched.index(config.keep_best)] if config.keep_best in watched else jnp.array(True)
    kept: Any = jax.tree.map(functools.partial(jnp.where, keep), state.variables, state.kept)
    return state._replace(kept=kept)
