"""The directional penalty: as a choice of training, of any kind, with any risk; without it nothing changes."""

import jax
import numpy as np
import pytest
from problems import LINEAR, first_cell, run_inputs, tiny

from jaxpu import config, train
from jaxpu.config import ConfigError
from jaxpu.train import directional
from jaxpu.train.inputs import features

WEIGHT = 0.4
PLAIN = LINEAR | {"methods": ["pn"], "training__epochs": 1, "training__optimizer": "sgd", "training__momentum": 0.0}
PLAIN |= {"training__weight_decay": 0.0, "training__batch_size": 256, "seeds": 1}


def arguments(weight, **changes):
    return run_inputs(first_cell(tiny(**PLAIN | {"training__directional_penalty": weight} | changes)))


def stepped(weight):
    """One full-batch step of gradient descent from the start, and what it is made of."""
    key, data, static, hyper = arguments(weight)
    start = jax.jit(train.init, static_argnums=2)(key, data, static, hyper)
    end, history = jax.jit(train.advance, static_argnums=(3, 5))(key, start, data, static, hyper, 1)
    return data, start, end, history


@pytest.mark.slow
def test_a_step_descends_the_loss_with_the_penalty():
    """By finite differences of the loss written out, with the residual held at the start."""
    data, start, end, history = stepped(WEIGHT)
    count = np.asarray(data.counts, bool)
    x = np.asarray(features(data, data.train), float)[count]
    y = np.asarray(data.y[data.train], float)[count]
    [layer] = start.params.values()
    w, b = np.asarray(layer["kernel"], float)[:, 0], float(layer["bias"][0])
    error = 1 / (1 + np.exp(-(x @ w + b))) - y
    away = x.mean(axis=0) - x

    def loss(w, b):
        z = x @ w + b
        return (np.logaddexp(0, z) - y * z).mean() + WEIGHT * np.abs(error * (away @ w)).mean()

    slope = [(loss(w + 1e-6 * e, b) - loss(w - 1e-6 * e, b)) / 2e-6 for e in np.eye(len(w))]
    [after] = end.params.values()
    np.testing.assert_allclose(np.asarray(after["kernel"])[:, 0], w - 0.05 * np.array(slope), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(history["train_directional"][0], WEIGHT * np.abs(error * (away @ w)).mean(), rtol=1e-4)
    np.testing.assert_allclose(history["train_loss"][0], loss(w, b), rtol=1e-4)


def test_without_it_a_run_is_the_same_run_and_with_it_another():
    plain, other = (first_cell(tiny(**PLAIN | {"training__directional_penalty": w})) for w in (0.0, WEIGHT))
    assert config.digest(plain.training) == config.digest(first_cell(tiny(**PLAIN)).training)
    assert config.digest(other.training) != config.digest(plain.training)
    assert not arguments(0.0)[2].directional
    assert (
        "train_directional"
        not in jax.eval_shape(lambda *a: train.train(*a[:2], arguments(0.0)[2], a[2]), *traced()).history
    )
    with pytest.raises(ConfigError, match="directional_penalty"):
        tiny(training__directional_penalty=-1.0)


def traced():
    key, data, _, hyper = arguments(0.0)
    return key, data, hyper


@pytest.mark.parametrize(
    "changes",
    [{"methods": ["vpudra_fixed"]}, {"methods": ["pn_mixup"]}, {"kind": "multiclass", "methods": ["pn_mixup"]}],
    ids=["positive and unlabeled", "mixed labels", "many classes"],
)
def test_it_is_a_choice_for_any_method(changes):
    if changes.get("kind"):
        raw = {"kind": "multiclass", "data": {"name": "digits", "test": 0.9}, "model": {"name": "linear"}, "seeds": 1}
        raw |= {"training": {"epochs": 2, "alpha": 1, "directional_penalty": WEIGHT}, "methods": changes["methods"]}
        raw |= {"selection": {"rules": ["last"], "default": "last"}}
        key, data, static, hyper = run_inputs(first_cell(config.parse(raw)))
    else:
        key, data, static, hyper = arguments(WEIGHT, **changes, training__epochs=2, training__alpha=1.0)
    shapes = jax.eval_shape(lambda *a: train.train(*a[:2], static, a[2]), key, data, hyper)
    assert shapes.history["train_directional"].shape == (2,)


def test_the_mean_row_is_that_of_the_training_rows():
    _, data, *_ = arguments(WEIGHT)
    rows = np.asarray(features(data, data.train))[np.asarray(data.counts, bool)]
    np.testing.assert_allclose(directional.mean_row(data), rows.mean(axis=0), atol=1e-6)
