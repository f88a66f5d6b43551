"""Networks of the user: BatchNorm's statistics against NumPy, placements, segments, the last bias, refusals."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx
from problems import first_cell, jitted_train, run_inputs, tiny
from pydantic import ValidationError

from jaxpu import config, metrics, mixup, models, train
from jaxpu.config import ConfigError, ModelConfig
from jaxpu.data import plan

MOMENTUM = 0.9
FEW_LABELS = {"data__c": 0.1, "training__batch_size": 20, "training__epochs": 4, "training__lr": 0.05}
FEW_LABELS |= {"selection__stop": False, "selection__keep_best": True, "selection__rules": ["val_f1"]}


class Norm(nn.Module):
    """BatchNorm of the inputs, so that its statistics do not depend on what is learnt; then dropout and a layer."""

    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.Dropout(0.2)(nn.BatchNorm(momentum=MOMENTUM)(x)))


class Told(nn.Module):
    """The same network, told by its argument whether this is training."""

    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.BatchNorm(use_running_average=not train, momentum=MOMENTUM)(x)
        return nn.Dense(1)(nn.Dropout(0.2, deterministic=not train)(x))[:, 0]


def few_columns(variables, data, static, hyper):
    """What of an epoch the tests look at."""
    model = models.build(static.model, data.x.shape[1:])
    z_test, z_val = (model.logits(variables, train.features(data, rows)) for rows in (data.test, data.val))
    return {
        "test_oracle_auc": metrics.auc(z_test, data.y[data.test]),
        "test_oracle_log_loss": metrics.log_loss(z_test, data.y[data.test]),
        "val_oracle_f1_decision": metrics.f1(z_val, data.y[data.val]),
    }


@pytest.fixture(scope="module")
def runs():
    """Three seeds of a network with BatchNorm and dropout, one after the other, and what they were made from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train.loop, "evaluate", few_columns)
        cell = first_cell(tiny(model={"module": Norm()}, **FEW_LABELS))
        inputs = [run_inputs(cell, seed) for seed in range(3)]
        static = inputs[0][2]
        alone = jax.jit(functools.partial(train.train, config=static))
        return inputs, [alone(key, data, hyper=hyper) for key, data, _, hyper in inputs]


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(train.loop, "evaluate", few_columns)


def statistics_by_hand(key, data, static, alpha):
    """Running means and variances of BatchNorm over a whole training, in float64: plain rows, then mixed ones."""
    x = (np.asarray(data.x, float) - np.asarray(data.mean, float)) / np.asarray(data.sd, float)
    mean, var, skipped = np.zeros(x.shape[1]), np.ones(x.shape[1]), 0
    for epoch in range(static.epochs):
        fold = functools.partial(train.loop._fold, key)
        rows, masks = plan.mixed_plan(fold(train.SHUFFLE, epoch), len(data.train), static.batch_size, data.n_train)
        lams = mixup.sample(fold(train.LAMBDA, epoch), alpha, (len(rows),))
        step_keys = jax.random.split(fold(train.STEPS, epoch), (len(rows), 3))
        for places, mask, lam, keys in zip(*map(np.asarray, (rows, masks, lams)), step_keys, strict=True):
            labeled = places < int(data.n_labeled)
            if not (labeled & mask).any():
                skipped += mask.any()
                continue
            partner = mixup.labeled_positives(keys[1], jnp.asarray(labeled, float), mask=jnp.asarray(mask, float))
            seen = x[np.asarray(data.train)[places]]
            mixed = lam * seen + (1 - lam) * seen[np.asarray(partner)]
            for batch in (seen[mask], mixed[mask]):
                mean = MOMENTUM * mean + (1 - MOMENTUM) * batch.mean(axis=0)
                var = MOMENTUM * var + (1 - MOMENTUM) * batch.var(axis=0)
    return mean, var, skipped


def test_statistics_are_those_of_both_passes_without_padding_and_without_skipped_batches(runs):
    alpha, partial_batches = 0.3, 0
    for (key, data, static, _), run in zip(*runs, strict=True):
        mean, var, skipped = statistics_by_hand(key, data, static, alpha)
        assert skipped > 0, "the problem is meant to have batches without a labeled positive"
        partial_batches += int(data.n_train) % static.batch_size > 0
        assert len(data.train) - int(data.n_train) >= static.batch_size, "and batches of mere padding"
        kept = run.state.model_state["batch_stats"]["BatchNorm_0"]
        np.testing.assert_allclose(kept["mean"], mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(kept["var"], var, rtol=1e-4)
        assert np.isfinite(run.history["train_loss"]).all()
    assert partial_batches, "and a last batch that is padded"


@pytest.mark.slow
@pytest.mark.parametrize("placed", ["map", "vmap"])
def test_side_by_side_is_one_after_the_other(runs, few, placed):
    inputs, alone = runs
    seeds = [(key, data, hyper) for key, data, _, hyper in inputs]
    stacked = jax.tree.map(lambda *arrays: jnp.stack(arrays), *seeds)
    one = lambda arguments: train.train(*arguments[:2], inputs[0][2], arguments[2])
    run = (lambda a: jax.lax.map(one, a)) if placed == "map" else jax.vmap(one)
    together = jax.jit(run)(stacked)
    for seed, single in enumerate(alone):
        jax.tree.map(lambda a, b, s=seed: np.testing.assert_allclose(a[s], b, rtol=2e-4, atol=2e-5), together, single)


@pytest.mark.slow
def test_in_segments_it_is_the_same_run(runs, few):
    key, data, static, hyper = runs[0][0]
    advance = jax.jit(functools.partial(train.advance, config=static, epochs=1))
    state = train.init(key, data, static, hyper)
    for _ in range(static.epochs + 1):
        state, _ = advance(key, state, data, hyper=hyper)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), state, runs[1][0].state)


def test_the_statistics_of_the_best_epoch_are_kept_with_its_parameters(runs):
    for (_, data, static, hyper), run in zip(*runs, strict=True):
        best = int(np.argmax(run.history["val_oracle_f1_decision"]))
        again = few_columns(run.state.kept, data, static, hyper)
        for name, value in again.items():
            assert float(value) == pytest.approx(float(run.history[name][best]), rel=1e-5), name


def test_what_is_told_and_what_is_not_are_the_same_network():
    quiet, told = (models.build(ModelConfig(module=module), (3,)) for module in (Norm(), Told()))
    variables = models.start(quiet, jax.random.key(0), (3,), 0.3)
    jax.tree.map(np.testing.assert_array_equal, variables, models.start(told, jax.random.key(0), (3,), 0.3))
    x, mask = jax.random.normal(jax.random.key(1), (6, 3)), jnp.array([1.0, 1, 1, 1, 0, 0])
    np.testing.assert_array_equal(quiet.logits(variables, x), told.logits(variables, x))
    now = {"key": jax.random.key(2), "train": True, "mask": mask}
    a, b = (model.apply(*variables, x, **now) for model in (quiet, told))
    jax.tree.map(np.testing.assert_array_equal, a, b)
    other = quiet.apply(*variables, x.at[4:].set(100.0), **now)
    jax.tree.map(np.testing.assert_array_equal, a[1], other[1])
    np.testing.assert_array_equal(a[0][:4], other[0][:4])
    assert not np.allclose(a[0], quiet.apply(*variables, x, **(now | {"key": jax.random.key(3)}))[0]), "dropout"
    nothing = quiet.apply(*variables, x, **(now | {"mask": jnp.zeros(6)}))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(nothing)), "a batch of mere padding has no NaN"


class Image(nn.Module):
    """A convolution, whose BatchNorm has the rows on the first of four axes, and an own mask of rows."""

    @nn.compact
    def __call__(self, x, *, deterministic: bool, mask=None):
        x = nn.Conv(2, (3, 3))(x[..., None])
        x = nn.BatchNorm(use_running_average=deterministic)(x)
        weight = jnp.ones(x.shape[0]) if mask is None else mask
        return nn.Dense(3)((x * weight[:, None, None, None]).mean(axis=(1, 2)))


@pytest.mark.slow
def test_convolutions_many_classes_and_double_precision():
    model = models.build(ModelConfig(module=Image()), (4, 4), 3)
    assert models.last_bias(model, (4, 4)) == ("Dense_0", "bias")
    variables = models.start(model, jax.random.key(0), (4, 4))
    x = jax.random.normal(jax.random.key(1), (5, 4, 4))
    mask = jnp.array([1.0, 1, 1, 0, 0])
    logits, state = model.apply(*variables, x, key=jax.random.key(2), train=True, mask=mask)
    assert logits.shape == (5, 3)
    _, alone = model.apply(*variables, x[:3], key=jax.random.key(2), train=True, mask=mask[:3])
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5), state, alone)
    with jax.enable_x64(True):
        doubles = jnp.asarray(np.asarray(x), jnp.float64)
        z, state = model.apply(*variables, doubles, key=jax.random.key(2), train=True, mask=jnp.ones(5))
    assert z.dtype == jnp.float64
    assert {leaf.dtype for leaf in jax.tree.leaves(state)} == {np.dtype("float32")}


# The last bias


class Ends(nn.Module):
    """A hidden layer as wide as the output, and an end of many kinds."""

    end: str
    outputs: int = 1

    @nn.compact
    def __call__(self, x):
        h = nn.tanh(nn.Dense(self.outputs, name="hidden")(x))
        z = nn.Dense(self.outputs, use_bias=self.end != "none", name="out")(h)
        if self.end == "added":
            return z + self.param("shift", nn.initializers.zeros, (1,))[None]
        ends = {"softplus": nn.softplus, "relu": nn.relu, "scaled": lambda z: 2 * z, "norm": nn.BatchNorm(name="norm")}
        return ends.get(self.end, lambda z: z)(z)


@pytest.mark.parametrize(
    ("end", "outputs", "path"),
    [
        ("plain", 1, ("out", "bias")),
        ("plain", 3, ("out", "bias")),
        ("norm", 1, ("norm", "bias")),
        ("added", 1, ("out", "bias")),  # two of them add up: the first starts the network
        ("none", 1, None),
        ("softplus", 1, None),
        ("relu", 1, None),
        ("scaled", 1, None),
    ],
)
def test_the_last_bias_is_found_wherever_it_is(end, outputs, path):
    model = models.build(ModelConfig(module=Ends(end, outputs)), (3,), outputs)
    assert models.last_bias(model, (3,)) == path
    if path is None:
        with pytest.raises(ValueError, match=r"has none.*training.initial_p: init"):
            models.start(model, jax.random.key(0), (3,), 0.2)
        traced = jax.jit(lambda p: models.start(model, jax.random.key(0), (3,), p).params)
        assert all(np.isnan(leaf).all() for leaf in jax.tree.leaves(traced(0.2))), "no silent other start"
        as_drawn = models.start(model, jax.random.key(0), (3,)).params
        jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), traced(jnp.nan), as_drawn)
    else:
        start = models.start(model, jax.random.key(0), (3,), 0.2)
        leaf = start.params[path[0]][path[1]]
        np.testing.assert_allclose(leaf, np.full(outputs, np.log(0.2 / 0.8)), rtol=1e-5)


def test_a_network_that_cannot_start_where_it_is_told_is_refused_before_it_trains():
    with pytest.raises(ConfigError, match=r"has none.*training.initial_p: init"):
        run_inputs(first_cell(tiny(model={"module": Ends("none")})))
    run_inputs(first_cell(tiny(model={"module": Ends("none")}, training__initial_p="init")))


# A pair of functions, and the model itself


def begin(key, shape):
    return {"w": jax.random.normal(key, shape), "b": jnp.zeros(())}


def linear(params, x, key):
    return x @ params["w"] * (1.0 if key is None else 2.0) + params["b"]


def begin_counting(key, shape):
    return begin(key, shape), {"passes": jnp.zeros((), jnp.int32)}


def counting(params, state, x, *, key=None, train=False, mask=None):
    return linear(params, x, None), {"passes": state["passes"] + train}


def test_a_pair_of_functions_is_a_network():
    model = models.build(ModelConfig(module=(begin, linear)), (3,))
    assert models.last_bias(model, (3,)) == ("b",)
    variables, x = models.start(model, jax.random.key(0), (3,), 0.5), jnp.ones((2, 3))
    assert variables.state == {}
    trained, _ = model.apply(*variables, x, key=jax.random.key(0), train=True)
    np.testing.assert_allclose(trained, 2 * model.logits(variables, x), rtol=1e-6)
    cell = first_cell(tiny(model={"module": models.Model(begin_counting, counting)}, training__epochs=1))
    _, data, *_ = inputs = run_inputs(cell)
    run = jitted_train(*inputs)
    steps = plan.steps_per_epoch(int(data.n_train), 48) * (1 - float(run.history["train_skipped"][0]))
    assert int(run.state.model_state["passes"]) == pytest.approx(2 * steps), "two passes a step"


# What is refused


class Wants(nn.Module):
    """A module with an argument that nobody gives."""

    @nn.compact
    def __call__(self, x, adjacency):
        return nn.Dense(1)(x)


class Flattens(nn.Module):
    """A module whose BatchNorm does not have the rows on its first axis."""

    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.BatchNorm()(x.reshape(-1, 1)).reshape(x.shape))


class Mutable(nnx.Module):
    """A module of the other API."""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"module": nn.Dense(2)}, r"logits of shape \(2, 2\).*expected \(2, 1\).*1 output"),
        ({"module": Wants()}, "wants adjacency, which nobody gives"),
        ({"module": Flattens()}, r"shape \(6, 1\) in a batch of 2 rows"),
        ({"module": Mutable}, "flax.nnx"),
        ({"module": Mutable()}, "flax.nnx"),
        ({"module": 3}, "expected a flax.linen module"),
        ({"module": "flax.linen:Dens"}, "flax.linen.*Dens"),
        ({"module": "no_such_package.models:Net"}, "no_such_package"),
        ({"module": "flax.linen:Dense", "arguments": {"width": 1}}, "do not fit flax.linen.linear:Dense.*width"),
        ({"module": (begin, linear), "arguments": {"features": 1}}, "no class or function"),
    ],
)
def test_what_can_be_no_network_is_refused_with_what_to_do(settings, message):
    with pytest.raises(ValueError, match=message):
        models.build(ModelConfig(**settings), (3,))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"module": "Net"}, "expected 'package.module:Class'"),
        ({"arguments": {"width": 3}}, "model.module, which is not given"),
        ({"module": "own:Net", "hidden": (3,), "init": "lecun"}, "hidden, init say nothing"),
        ({"module": nn.Dense(1), "arguments": {"use_bias": False}}, "made already"),
    ],
)
def test_settings_without_effect_are_refused(settings, message):
    with pytest.raises(ValidationError, match=message):
        ModelConfig(**settings)


def test_equal_settings_are_one_model_and_others_another():
    one = {"module": "flax.linen:Dense", "arguments": {"features": 1, "use_bias": True}}
    assert models.build(ModelConfig(**one), (3,)) is models.build(ModelConfig(**one), (3,))
    other = dataclasses.replace(ModelConfig(**one), arguments={"features": 1, "use_bias": False})
    assert models.last_bias(models.build(other, (3,)), (3,)) is None
    assert hash(ModelConfig()) == hash(ModelConfig())
    assert ModelConfig(module=Ends("norm", 2)) == ModelConfig(module=Ends, arguments={"end": "norm", "outputs": 2})
    file = config.load_yaml(config.dump(tiny(model={"module": nn.Dense(1, use_bias=False)})))["model"]
    assert file["module"] == "flax.linen.linear:Dense"
    assert file["arguments"] == {"features": 1, "use_bias": False}


@pytest.mark.slow
def test_the_example_runs():
    from examples import own_module

    fitted = own_module.main()
    assert fitted.scores.shape == (4, 400)
    last = fitted.runs.filter(fitted.runs["epoch"] == fitted.runs["epochs_run"])
    assert (last["test_oracle_auc"] > 0.8).all()
