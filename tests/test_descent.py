"""Leaps over many gradient updates against the loop that makes them one by one, in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpu import ensemble
from jaxpu.ensemble import Aggregator, Step

RATINGS = 0.5 + 0.2 * np.sin(np.arange(60).reshape(3, 20) ** 1.3)
LABELS = (np.arange(20) % 4 == 0).astype(int)
KNOWN = np.arange(20) < 16
UPDATES = np.array([0, 1, 2, 3, 7, 100, 101, 4000])
START = Aggregator(np.array([0.3, -0.2, 0.5]), np.array(0.1), np.zeros(3))
SETTINGS = (
    {"lr": 0.1},
    {"lr": 0.3, "class_weights": 1.0},
    {"lr": 0.1, "bias_lr": 5.0, "class_weights": 0.5},
    {"lr": 0.2, "centre": 1.0},
    {"lr": 5.5},  # 1 - η λ = -0.7 at first: the recursion swings to and fro, which no flow does
)


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


@jax.jit
def _course(start, data, step, updates):
    return ensemble.descend(start, *data, updates=updates, step=step)


def course(step, updates):
    return _course(START, (RATINGS, LABELS, KNOWN), step, updates)


def by_one(lr, bias_lr=1.0, class_weights=0.0, centre=0.0):
    """w and b after so many updates, written out."""
    inputs = RATINGS[:, KNOWN] - centre * RATINGS[:, KNOWN].mean(1, keepdims=True)
    y, n = LABELS[KNOWN], KNOWN.sum()
    v = (n / (2 * np.where(y == 1, y.sum(), n - y.sum()))) ** class_weights
    w, b = START.w.copy(), float(START.b)
    for update in range(UPDATES[-1] + 1):
        if update in UPDATES:
            yield [*w, b]
        residual = v / v.sum() * (1 / (1 + np.exp(-(w @ inputs + b))) - y)
        w, b = w - lr * inputs @ residual, b - lr * bias_lr * residual.sum()


def setting(**options):
    return jax.tree.map(float, Step(**options))


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_leaps_end_where_single_updates_end(options):
    expected = np.array(list(by_one(**options)))
    got = course(setting(**options), UPDATES)
    np.testing.assert_allclose(got.w, expected[:, :-1], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(got.b, expected[:, -1], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(got.w[:3], expected[:3, :-1], rtol=1e-13)  # one or two at a time are exact
    mean = RATINGS[:, KNOWN].mean(1) * options.get("centre", 0.0)
    np.testing.assert_allclose(got.centre, np.broadcast_to(mean, (UPDATES.size, 3)), rtol=1e-14)


def test_a_thousand_million_updates_end_at_the_minimum():
    """Nobody would wait for them one by one."""
    end = course(setting(lr=0.3), 10 ** np.array([0, 1, 2, 3, 4, 6, 7, 9]))
    z = np.asarray(end.w[-1]) @ RATINGS + float(end.b[-1])
    residual = (1 / (1 + np.exp(-z)) - LABELS)[KNOWN]
    np.testing.assert_allclose([*RATINGS[:, KNOWN] @ residual, residual.sum()], 0, atol=1e-9)


def test_single_precision_is_as_exact_as_it_can_be():
    expected = np.array(list(by_one(lr=0.1)))
    with jax.enable_x64(False):
        got = course(setting(lr=0.1), UPDATES.astype(np.int32))
    assert got.w.dtype == np.float32
    np.testing.assert_allclose(got.w, expected[:, :-1], rtol=1e-4, atol=1e-4)


def test_what_cannot_be_leapt_over_is_refused():
    data, updates = [*map(jnp.asarray, (RATINGS, LABELS, KNOWN))], jnp.asarray(UPDATES)
    for focal in (2.0, jnp.float32(2.0)):
        with pytest.raises(ValueError, match=r"step.focal is 2.0, expected 0: only plain gradient updates"):
            ensemble.descend(START, *data, updates=updates, step=Step(focal=focal))
