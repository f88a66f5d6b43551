"""The whole training of one seed as one pure function: ``train(key, data, config, hyper) -> Run``.

    key ──► init ──► scan over epochs ┬► batch plan, λ drawn up front
                                      ├► scan over steps: forward, mixed forward, risk + penalty, Adam
                                      ├► evaluation on the device: metrics, proxies, probes
                                      └► selection rules: best so far, patience, stop

Where runs go (one after the other, side by side, on which devices) is decided elsewhere; a run depends on its
key, data and numbers alone. What is static stands in :class:`Config`, what is traced in
:class:`~jaxpu.objective.Hyper`; changing the latter recompiles nothing.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jax.sharding import PartitionSpec, Sharding
from jaxtyping import Float, Int

from jaxpu import metrics, mixup, models, objective
from jaxpu.config import ModelConfig
from jaxpu.data import plan
from jaxpu.objective import Hyper
from jaxpu.selection import RULES, watched_column
from jaxpu.types import Rows, Scalar

History = dict[str, Array]

# What random numbers are for: a run's key is folded with one of these, then with the epoch.
INIT, SHUFFLE, LAMBDA, STEPS = range(4)


class Data(NamedTuple):
    """The arrays of one run. ``x`` and ``y`` are shared by all runs, the rest are row numbers into them.

    Attributes:
        x: all features. y: all true labels, 1 = positive; training reads them only for ``pn`` and for metrics.
        train: rows of the training set, the labelled positives first, then U (a row may stand in both).
        val, test: rows of the held-out sets. val_pu: positions within ``val`` of its own P, then its own U.
        mean, sd: standardisation, from the training rows alone.
    """

    x: Float[Array, "rows ..."]
    y: Int[Array, " rows"]
    train: Rows
    val: Rows
    val_pu: Int[Array, " m"]
    test: Rows
    mean: Float[Array, "..."]
    sd: Float[Array, "..."]


@dataclasses.dataclass(frozen=True)
class Config:
    """The static part of a run: choices and sizes that shape the compiled program.

    Attributes:
        model: the network. epochs, batch_size: as they say.
        n_labeled, n_val_labeled: how many of ``Data.train`` and ``Data.val_pu`` are labelled positives.
        val_sizes: (column prefix, rows) of every nested validation set; the largest is all of ``Data.val``.
        mixup: whether there is a mixed forward pass. batching: ``mixed`` or ``separate``.
        lam_per: λ a ``batch`` or a ``row``. alpha_schedule: see :data:`jaxpu.mixup.SCHEDULES`.
        rules: selection rules followed during training. patience, min_delta: theirs.
        stop: end when all rules have met their patience. keep_best: rule whose best parameters are kept.
        probes: (name, function of :class:`ProbeInput`) recorded each epoch as ``probe_<name>``.
        row_sharding: how the rows of one step are split over devices; None = not.
    """

    model: ModelConfig
    epochs: int
    batch_size: int
    n_labeled: int
    n_val_labeled: int
    val_sizes: tuple[tuple[str, int], ...]
    mixup: bool = True
    batching: str = "mixed"
    lam_per: str = "batch"
    alpha_schedule: str = "constant"
    rules: tuple[str, ...] = ("last",)
    patience: int = 10
    min_delta: float = 0.0
    stop: bool = False
    keep_best: str | None = None
    probes: tuple[tuple[str, "Callable[[ProbeInput], Array]"], ...] = ()
    row_sharding: Sharding | PartitionSpec | None = None


class ProbeInput(NamedTuple):
    """What a probe may look at after an epoch: the network, the training set (P first) and the test set."""

    params: models.Params
    apply: models.Apply
    x_train: Array
    labeled: Array
    y_train: Array
    x_test: Array
    y_test: Array
    hyper: Hyper


class State(NamedTuple):
    """What the next epoch needs. ``best``, ``best_epoch``: one entry a watched rule; epochs count from 0."""

    params: models.Params
    opt_state: optax.OptState
    epoch: Int[Array, ""]
    best: Float[Array, " rules"]
    best_epoch: Int[Array, " rules"]
    kept: models.Params | None


class Run(NamedTuple):
    """A finished run: ``history`` maps a column to (epochs,) values, NaN after the run has stopped.

    ``state.params`` are the parameters of the last epoch run; ``state.kept`` those of the best epoch under
    ``config.keep_best``, or None.
    """

    history: History
    state: State


def train(key: Array, data: Data, config: Config, hyper: Hyper) -> Run:
    """Train one seed from start to end; pure, so ``jit``, ``vmap`` over any argument, and shard it.

    Args:
        key: the run's random key; the same key and data give every method the same start, batches and λ.
        data: arrays and row numbers. config: the static part. hyper: the traced part.

    Returns:
        The recorded columns and the final state.
    """
    state = init(key, data, config, hyper)
    state, history = advance(key, state, data, config, hyper, config.epochs)
    return Run(history, state)


def init(key: Array, data: Data, config: Config, hyper: Hyper) -> State:
    """The state before the first epoch: fresh parameters, empty moments, nothing selected."""
    model = models.build(config.model, data.x.shape[1:])
    params = model.init(jax.random.fold_in(key, INIT), hyper.initial_p)
    watched = len(_watched(config))
    return State(
        params=params,
        opt_state=_optimizer(hyper).init(params),
        epoch=jnp.zeros((), jnp.int32),
        best=jnp.full((watched,), -jnp.inf),
        best_epoch=jnp.full((watched,), -1, jnp.int32),
        kept=params if config.keep_best else None,
    )


def advance(key: Array, state: State, data: Data, config: Config, hyper: Hyper, epochs: int) -> tuple[State, History]:
    """Train ``epochs`` more epochs; epochs past the end, or after the rules have stopped, cost and change nothing.

    A run is the same whether it advances in one segment or in many.
    """

    def epoch(state: State, _: None) -> tuple[State, History]:
        run = jax.jit(
            functools.partial(_epoch, key, data=data, config=config, hyper=hyper)
        )  # jit: traced once, not twice
        empty = jax.tree.map(lambda a: jnp.full(a.shape, jnp.nan, a.dtype), jax.eval_shape(run, state)[1])
        return lax.cond(finished(state, config), lambda s: (s, empty), run, state)

    return lax.scan(epoch, state, length=epochs)


def finished(state: State, config: Config) -> Array:
    """Whether a run is over: all epochs done, or (with ``config.stop``) every rule out of patience."""
    over = state.epoch >= config.epochs
    if config.stop and all(watched_column(rule) for rule in config.rules):
        # epochs count from 0 and state.epoch is the next one, so the last epoch run is state.epoch - 1
        over |= ((state.epoch - 1) - state.best_epoch >= config.patience).all()
    return over


def _optimizer(hyper: Hyper) -> optax.GradientTransformation:
    """Adam with L2 inside the gradient, as torch.optim.Adam's weight_decay; built here so that lr is traced."""
    return optax.chain(
        optax.add_decayed_weights(jnp.asarray(hyper.weight_decay)),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(jnp.asarray(hyper.lr)),
    )


def _epoch(key: Array, state: State, *, data: Data, config: Config, hyper: Hyper) -> tuple[State, History]:
    rows, mask = _plan(_fold(key, SHUFFLE, state.epoch), data, config)
    steps, size = rows.shape
    anchor = mixup.anchor_schedule(config.epochs, hyper.anchor, hyper.anchor_end)[state.epoch]
    alphas = mixup.schedule(config.alpha_schedule, config.epochs, hyper.alpha)
    shape = (steps,) if config.lam_per == "batch" else (steps, size)
    lam = mixup.sample(_fold(key, LAMBDA, state.epoch), alphas[state.epoch], shape)
    step = functools.partial(_step, data=data, config=config, hyper=hyper, anchor=anchor)
    keys = StepKeys(*jax.random.split(_fold(key, STEPS, state.epoch), (len(StepKeys._fields), steps)))
    (params, opt_state), terms = lax.scan(step, (state.params, state.opt_state), (rows, mask, lam, keys))
    history = _train_columns(terms, config) | _evaluate(params, data, config, hyper)
    state = state._replace(params=params, opt_state=opt_state, epoch=state.epoch + 1)
    return _follow_rules(state, history, config), history


def _fold(key: Array, purpose: int, number: Array | int) -> Array:
    return jax.random.fold_in(jax.random.fold_in(key, purpose), number)


def _plan(key: Array, data: Data, config: Config) -> tuple[Array, Array]:
    n = data.train.shape[0]
    if config.batching == "separate":
        return plan.separate_plan(key, config.n_labeled, n - config.n_labeled, config.batch_size)
    return plan.mixed_plan(key, n, config.batch_size)


def _features(data: Data, rows: Array) -> Array:
    return (data.x[rows] - data.mean[None]) / data.sd[None]


class _StepTerms(NamedTuple):
    terms: objective.Terms
    skipped: Scalar


def _step(
    carry: tuple[models.Params, optax.OptState],
    step: "tuple[Array, Array, Array, StepKeys]",
    *,
    data: Data,
    config: Config,
    hyper: Hyper,
    anchor: Scalar,
) -> tuple[tuple[models.Params, optax.OptState], _StepTerms]:
    """One update. A batch without a labelled positive leaves parameters and moments as they are."""
    params, opt_state = carry
    places, mask, lam, keys = step
    x, labeled = _features(data, data.train[places]), (places < config.n_labeled).astype(jnp.float32)
    if config.row_sharding is not None:
        x = lax.with_sharding_constraint(x, config.row_sharding)
    labels = data.y[data.train[places]].astype(jnp.float32)
    batch = _Batch(x, labeled, labels, mask.astype(jnp.float32), lam, anchor)
    loss = functools.partial(_loss, keys, batch=batch, config=config, hyper=hyper)
    grads, terms = jax.grad(loss, has_aux=True)(params)
    updates, new_state = _optimizer(hyper).update(grads, opt_state, params)
    new_params = optax.apply_updates(params, updates)
    usable = (labeled * mask).sum() > 0
    kept = jax.tree.map(functools.partial(jnp.where, usable), (new_params, new_state), (params, opt_state))
    return kept, _StepTerms(terms, 1.0 - usable.astype(jnp.float32))


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
    keys: StepKeys, params: models.Params, *, batch: _Batch, config: Config, hyper: Hyper
) -> tuple[Scalar, objective.Terms]:
    apply = models.build(config.model, batch.x.shape[1:]).apply
    logits = apply(params, batch.x, keys.dropout)
    base, clipped = objective.base_risk(hyper, logits, batch.labeled, batch.labels, batch.mask)
    if not config.mixup:
        none = jnp.full((), jnp.nan)
        return base, objective.Terms(base, base, none, none, clipped)
    partner = mixup.labeled_positives(keys.partner, batch.labeled, mask=batch.mask)
    mixed = apply(params, mixup.mix(batch.x, partner, batch.lam), keys.dropout_mixed)
    weighted, target = objective.penalty(
        hyper, logits, partner, mixed, batch.lam, batch.anchor, batch.labeled, batch.mask
    )
    return base + weighted, objective.Terms(base + weighted, base, weighted, target, clipped)


def _train_columns(steps: _StepTerms, config: Config) -> History:
    """Means over the steps that were not skipped."""
    used = 1.0 - steps.skipped
    total = jnp.maximum(used.sum(), 1.0)
    means = {name: (used * value).sum() / total for name, value in steps.terms._asdict().items()}
    return {f"train_{name}": value for name, value in means.items()} | {"train_skipped": steps.skipped.mean()}


def _evaluate(params: models.Params, data: Data, config: Config, hyper: Hyper) -> History:
    """Everything recorded after an epoch, computed on the device in one forward pass over all sets."""
    n, v = data.train.shape[0], data.val.shape[0]
    apply = models.build(config.model, data.x.shape[1:]).apply
    rows = jnp.concatenate([data.train, data.val, data.test])
    logits = _in_blocks(lambda rows: apply(params, _features(data, rows)), rows) - hyper.decision_offset
    z_train, z_val, z_test = jnp.split(logits, [n, n + v])
    labeled, val_labeled = (
        (jnp.arange(len(places)) < count).astype(jnp.float32)
        for places, count in ((data.train, config.n_labeled), (data.val_pu, config.n_val_labeled))
    )
    y = data.y.astype(jnp.float32)
    everything = jnp.ones(n)
    judged = {"test": (z_test, y[data.test], jnp.ones(len(data.test)))}
    proxied = {"train": (z_train, labeled, everything)}
    for prefix, size in config.val_sizes:
        judged[prefix] = z_val, y[data.val], (jnp.arange(v) < size).astype(jnp.float32)
        proxied[prefix] = z_val[data.val_pu], val_labeled, (data.val_pu < size).astype(jnp.float32)
    history = _train_scores(z_train, labeled, y[data.train])
    history |= _of_sets(functools.partial(_proxies, hyper=hyper), proxied)
    log_p_max = jax.nn.log_sigmoid(z_train).max()
    history |= _of_sets(functools.partial(_judged, log_p_max=log_p_max, hyper=hyper), judged)
    if config.probes:
        sets = (_features(data, data.train), labeled, y[data.train], _features(data, data.test), y[data.test])
        seen = ProbeInput(params, apply, *sets, hyper)
        history |= {f"probe_{name}": function(seen) for name, function in config.probes}
    return history


def _in_blocks(function: Callable[[Array], Array], rows: Array, most: int = 512) -> Array:
    """``function(rows)`` in equal blocks: activations of a block stay in a CPU's cache and bound the memory."""
    blocks = -(-len(rows) // most)
    size = -(-len(rows) // blocks)
    padded = jnp.pad(rows, (0, blocks * size - len(rows)))
    return lax.map(function, padded.reshape(blocks, size)).reshape(-1)[: len(rows)]


def _of_sets(
    metrics_of: Callable[[Array, Array, Array], History], sets: dict[str, tuple[Array, Array, Array]]
) -> History:
    """Apply one function to several (logits, labels, mask) sets as one vmap over padded rows.

    One program for all sets instead of one a set: sorting and ranking are what takes long to compile.
    """
    longest = max(len(z) for z, *_ in sets.values())
    padded = [[jnp.pad(a, (0, longest - len(a))) for a in arrays] for arrays in sets.values()]
    columns = jax.vmap(metrics_of)(*map(jnp.stack, zip(*padded, strict=True)))
    return {f"{prefix}_{name}": values[i] for i, prefix in enumerate(sets) for name, values in columns.items()}


def _proxies(logits: Array, labeled: Array, mask: Array, *, hyper: Hyper) -> History:
    return metrics.proxy_metrics(logits, labeled, prior=hyper.prior, mask=mask)


def _train_scores(logits: Array, labeled: Array, labels: Array) -> History:
    p = jax.nn.sigmoid(logits)
    sets = {"labeled": labeled, "positive": (1 - labeled) * labels, "negative": (1 - labeled) * (1 - labels)}
    means = {f"train_p_{name}": (p * rows).sum() / rows.sum() for name, rows in sets.items()}
    return means | {"train_p_max": p.max()}


def _judged(logits: Array, labels: Array, mask: Array, *, log_p_max: Array, hyper: Hyper) -> History:
    """Metrics of one set, and F1 at the method's own decision rule as ``oracle_f1_decision``."""
    columns = metrics.oracle_metrics(logits, labels, prior=hyper.prior, log_p_max=log_p_max, mask=mask)
    choices = jnp.stack([columns[f"oracle_f1{end}"] for end in ("", "_quantile", "_max_shift")])
    return columns | {"oracle_f1_decision": choices[hyper.decision]}


def _watched(config: Config) -> list[str]:
    return [rule for rule in config.rules if watched_column(rule)]


def _follow_rules(state: State, history: History, config: Config) -> State:
    """Update the best epoch of every watched rule; :func:`jaxpu.selection.replay` is the same in NumPy."""
    watched = _watched(config)
    if not watched:
        return state._replace(kept=state.params if config.keep_best else None)
    signs = [RULES[rule.partition("@")[0]].sign for rule in watched]
    values = jnp.stack([s * history[str(watched_column(r))] for s, r in zip(signs, watched, strict=True)])
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
    kept: Any = jax.tree.map(functools.partial(jnp.where, keep), state.params, state.kept)
    return state._replace(kept=kept)
