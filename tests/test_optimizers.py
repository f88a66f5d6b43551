"""Every optimiser against its formulas in NumPy, schedules against optax, and a run against a plain optax loop."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from problems import LINEAR, first_cell, jitted_train, run_inputs, tiny
from pydantic import ValidationError

from jaxpu import train
from jaxpu.config import TrainingConfig
from jaxpu.config.schema import OPTIMIZERS
from jaxpu.data import plan
from jaxpu.train import optimizers

LR, DECAY, STEPS = 0.05, 0.02, 6
RNG = np.random.default_rng(0)
START, GRADIENTS = RNG.normal(size=4), RNG.normal(size=(STEPS, 4))


def by_hand(name, *, momentum=0.9, nesterov=False, b1=0.9, b2=0.999, eps=1e-8, lr=lambda t: LR):
    """The parameters after each step, as the papers and torch write the updates."""
    theta, m, v, path = START.copy(), np.zeros(4), np.zeros(4), []
    for t, gradient in enumerate(GRADIENTS, 1):
        g = gradient if name == "adamw" else gradient + DECAY * theta
        if name == "sgd":
            m = momentum * m + g
            move = g + momentum * m if nesterov else m
        else:
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
            first = m / (1 - b1**t)
            if name == "nadam":
                first = b1 * m / (1 - b1 ** (t + 1)) + (1 - b1) * g / (1 - b1**t)
            move = first / (np.sqrt(v / (1 - b2**t)) + eps)
        if name == "adamw":
            move = move + DECAY * theta
        theta = theta - lr(t - 1) * move
        path.append(theta)
    return np.array(path)


def path_of(training, dtype=jnp.float64):
    """The same with the library, all numbers traced."""

    @jax.jit
    def run(lr, decay, numbers, gradients):
        chosen = optimizers.build(optimizers.choice(training), lr, decay, numbers, STEPS)

        def step(carry, gradient):
            theta, state = carry
            updates, state = chosen.update(gradient, state, theta)
            theta = optax.apply_updates(theta, updates)
            return (theta, state), theta

        start = jnp.asarray(START, dtype)
        return jax.lax.scan(step, (start, chosen.init(start)), gradients)[1]

    numbers = {name: jnp.asarray(value, dtype) for name, value in training.numbers().items()}
    return run(jnp.asarray(training.lr, dtype), jnp.asarray(training.weight_decay, dtype), numbers, GRADIENTS)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("adam", {}),
        ("adam", {"b1": 0.8, "b2": 0.99, "eps": 1e-3}),
        ("adamw", {}),
        ("adamw", {"b1": 0.5}),
        ("nadam", {}),
        ("sgd", {}),
        ("sgd", {"momentum": 0.0}),
        ("sgd", {"momentum": 0.7, "nesterov": True}),
    ],
)
def test_every_optimizer_is_its_formula(name, numbers):
    training = TrainingConfig(optimizer=name, lr=LR, weight_decay=DECAY, **numbers)
    with jax.enable_x64(True):
        path = path_of(training)
    np.testing.assert_allclose(path, by_hand(name, **numbers), rtol=1e-12)


def test_all_names_have_an_optimizer():
    assert set(OPTIMIZERS) == set(optimizers._BY_NAME)


def test_the_usual_adam_is_that_of_before_bit_for_bit():
    before = optax.chain(
        optax.add_decayed_weights(jnp.asarray(np.float32(DECAY))),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(jnp.asarray(np.float32(LR))),
    )
    theta = jnp.asarray(START, jnp.float32)
    state, update = before.init(theta), jax.jit(before.update)
    now = path_of(TrainingConfig(lr=LR, weight_decay=DECAY), jnp.float32)
    for t in range(STEPS):
        updates, state = update(jnp.asarray(GRADIENTS[t], jnp.float32), state, theta)
        theta = optax.apply_updates(theta, updates)
        np.testing.assert_array_equal(now[t], theta)


@pytest.mark.parametrize(("schedule", "warmup"), [("cosine", 0.0), ("warmup_cosine", 0.5)])
def test_schedules_are_those_of_optax_and_enter_every_update(schedule, warmup):
    given = {} if schedule == "cosine" else {"warmup": warmup}
    training = TrainingConfig(optimizer="sgd", schedule=schedule, lr=LR, weight_decay=DECAY, **given)
    if schedule == "cosine":
        theirs = optax.cosine_decay_schedule(LR, STEPS)
    else:  # theirs starts at the given value and reaches the peak at the last update of the warm-up
        theirs = optax.warmup_cosine_decay_schedule(LR / 4, LR, 3, STEPS)
    with jax.enable_x64(True):
        path = path_of(training)
        rates = [float(theirs(t)) for t in range(STEPS)]
    np.testing.assert_allclose(path, by_hand("sgd", lr=rates.__getitem__), rtol=1e-6)


def test_stairs_are_counted_in_epochs_and_enter_every_update():
    numbers = {"schedule": "step", "factor": 0.3, "every": 2}
    training = TrainingConfig(optimizer="sgd", lr=LR, weight_decay=DECAY, **numbers)
    with jax.enable_x64(True):
        path = path_of(training)  # where an update is an epoch
    np.testing.assert_allclose(path, by_hand("sgd", lr=lambda t: LR * 0.3 ** (t // 2)), rtol=1e-12)
    settings = {f"training__{name}": value for name, value in numbers.items()} | {"training__optimizer": "sgd"}
    _, data, static, hyper = run_inputs(first_cell(tiny(methods=["vpu_published"], **settings, training__momentum=0.0)))
    data = data._replace(n_train=jnp.asarray(100), n_labeled=jnp.asarray(30))
    static = dataclasses.replace(static, batching="separate", batch_size=16)  # 5 updates an epoch

    @jax.jit
    def moves(hyper):
        chosen = train.step.optimizer(data, static, hyper)

        def one(state, _):
            update, state = chosen.update(jnp.ones(()), state, jnp.zeros(()))
            return state, update

        return jax.lax.scan(one, chosen.init(jnp.zeros(())), length=25)[1]

    expected = -float(hyper.lr) * 0.3 ** (np.arange(25) // 10)
    np.testing.assert_allclose(moves(hyper), expected, rtol=1e-6)


def plain_loop(key, data, static, start, prior, lr, decay):
    """PUDRa's risk of a linear model, trained with optax.adamw under its cosine; skipped batches are no updates."""
    x = (np.asarray(data.x) - np.asarray(data.mean)) / np.asarray(data.sd)
    steps = plan.steps_per_epoch(int(data.n_train), static.batch_size)
    adamw = optax.adamw(optax.cosine_decay_schedule(lr, static.epochs * steps), weight_decay=decay)
    params, state, skipped = start, adamw.init(start), 0

    @jax.jit
    def update(params, state, x, p, u):
        def risk(params):
            z = (x @ params["head"]["kernel"] + params["head"]["bias"][None])[:, 0]
            over_u = jnp.vdot(u, jax.nn.sigmoid(z)) / u.sum()
            return -prior * jnp.vdot(p, jax.nn.log_sigmoid(z)) / p.sum() + over_u

        updates, state = adamw.update(jax.grad(risk)(params), state, params)
        return optax.apply_updates(params, updates), state

    for epoch in range(static.epochs):
        fold = train.loop._fold(key, train.SHUFFLE, epoch)
        rows, masks = plan.mixed_plan(fold, len(data.train), static.batch_size, data.n_train)
        for places, mask in zip(np.asarray(rows), np.asarray(masks), strict=True):
            p, u = mask & (places < int(data.n_labeled)), mask & (places >= int(data.n_labeled))
            if not p.any():
                skipped += mask.any()
                continue
            batch = jnp.asarray(x[np.asarray(data.train)[places]])
            params, state = update(params, state, batch, jnp.asarray(p, jnp.float32), jnp.asarray(u, jnp.float32))
    return params, skipped


@pytest.fixture(scope="module")
def adamw_run():
    settings = {"training__optimizer": "adamw", "training__schedule": "cosine", "training__weight_decay": 0.1}
    cell = first_cell(
        tiny(methods=[{"preset": "pudra", "skip_without_positives": True}], data__c=0.1, **(LINEAR | settings))
    )
    inputs = run_inputs(cell)
    return cell, inputs, jitted_train(*inputs)


def test_adamw_with_a_cosine_is_a_plain_optax_loop(adamw_run):
    cell, (key, data, static, hyper), run = adamw_run
    start = train.init(key, data, static, hyper).params
    params, skipped = plain_loop(key, data, static, start, float(hyper.prior), cell.training.lr, 0.1)
    assert skipped > 0, "the problem is meant to have batches without a labeled positive"
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=2e-4, atol=2e-5), run.state.params, params)
    moved = np.abs(np.asarray(start["head"]["kernel"]) - np.asarray(params["head"]["kernel"]))
    assert moved.max() > 0.1


def test_numbers_are_traced_and_choices_are_not(adamw_run):
    _, (key, data, *_), _ = adamw_run
    before = jitted_train._cache_size()
    other = {"training__optimizer": "adamw", "training__schedule": "cosine", "training__weight_decay": 0.3}
    other |= {"training__lr": 0.2, "methods": ["pudra"], "data__c": 0.1}
    _, _, same, numbers = run_inputs(first_cell(tiny(**(LINEAR | other))))
    jitted_train(key, data, same, numbers)
    assert jitted_train._cache_size() == before
    choices = [{}, {"optimizer": "sgd"}, {"schedule": "cosine"}, {"optimizer": "sgd", "nesterov": True}, {"b1": 0.5}]
    assert len({optimizers.choice(TrainingConfig(**choice)) for choice in choices}) == 5
    assert optimizers.choice(TrainingConfig(lr=0.5, b1=0.2)) == optimizers.choice(TrainingConfig(b1=0.5))


def test_a_schedule_ends_with_the_last_step_that_is_no_padding():
    for batching, rows in (("mixed", 100), ("separate", 70)):
        cell = first_cell(tiny(methods=["vpu_published"], training__schedule="cosine"))
        _, data, static, _ = run_inputs(cell)
        data = data._replace(n_train=jnp.asarray(100), n_labeled=jnp.asarray(30))
        static = dataclasses.replace(static, batching=batching, batch_size=16)
        assert int(train.inputs.updates(data, static)) == -(-rows // 16)


def sign(numbers):
    return optax.chain(optax.sign_sgd(numbers.lr), optax.add_decayed_weights(-numbers.weight_decay))


def test_a_function_of_ones_own_is_an_optimizer():
    training = TrainingConfig(optimizer=sign, lr=LR, weight_decay=0.0, schedule="cosine")
    with jax.enable_x64(True):
        path = path_of(training)
    rates = LR * 0.5 * (1 + np.cos(np.pi * np.arange(STEPS) / STEPS))
    np.testing.assert_allclose(path, START - np.cumsum(rates[:, None] * np.sign(GRADIENTS), axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "adamm"}, "did you mean 'adam'"),
        ({"optimizer": "adam", "momentum": 0.5}, "momentum has no effect with optimizer 'adam'"),
        ({"optimizer": "sgd", "b1": 0.5}, "b1 has no effect with optimizer 'sgd'"),
        ({"nesterov": True}, "nesterov has no effect with optimizer 'adam'"),
        ({"warmup": 0.2}, "warmup has no effect with schedule 'constant'"),
        ({"schedule": "linear"}, "cosine"),
    ],
)
def test_settings_without_effect_are_refused(settings, message):
    with pytest.raises(ValidationError, match=message):
        TrainingConfig(**settings)


def test_what_is_no_optimizer_is_refused_with_what_to_do():
    for given, message in ((lambda numbers: 3, "returned 3, expected an optax"), ("math:cosine", "cosine")):
        with pytest.raises(ValueError, match=message):
            optimizers.build(optimizers.Choice(given), 0.1, 0.0, {}, 3)


@pytest.mark.slow
def test_the_example_runs():
    from examples import own_optimizer

    for outcome in own_optimizer.main():
        last = outcome.runs.filter(outcome.runs["epoch"] == 4)
        assert len(last) == 4
        assert last["test_oracle_auc"].median() > 0.9
        assert outcome.provenance["programs"] == 1, "learning rates are traced"
