"""The closed forms of the aggregator's flow against what gradient descent does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from jaxpu import ensemble, theory
from jaxpu.ensemble import Step

RATINGS = 0.5 + 0.2 * np.sin(np.arange(60).reshape(3, 20) ** 1.3)
LABELS = (np.arange(20) % 4 == 0).astype(int)
KNOWN = np.arange(20) < 16


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


@jax.jit
def updated(start, data, lr, updates):
    return ensemble.continue_aggregator(start, *data, updates=updates, step=Step(lr=lr))


def arrays():
    return jnp.asarray(RATINGS), jnp.asarray(LABELS), jnp.asarray(KNOWN)


@settings(max_examples=20)
@given(
    st.integers(2, 50),
    st.floats(0.05, 0.95),
    st.floats(0.02, 0.9),
    st.floats(-1, 2),
    st.floats(-2, 2),
    st.floats(0.2, 20),
)
def test_the_fast_phase_is_where_its_equations_end(m, level, rate, total, bias, bias_lr):
    """dω/dτ = -m μ (p - π), db/dτ = -β (p - π), by an integrator that knows no closed form."""

    def slope(_, state):
        excess = 1 / (1 + np.exp(-(level * state[0] + state[1]))) - rate
        return [-m * level * excess, -bias_lr * excess]

    end = theory.fast_end(m, level, rate, total=total, bias=bias, bias_lr=bias_lr)
    long = 60 / ((m * level**2 + bias_lr) * rate * (1 - rate))
    path = solve_ivp(slope, (0, long), [total, bias], rtol=1e-9, atol=1e-11, dense_output=True)
    np.testing.assert_allclose([end.total, end.bias], path.y[:, -1], rtol=1e-5, atol=1e-5)
    assert bool(end.inverted) == (end.total < 0)
    if total <= 0 or abs(float(end.total)) < 1e-3:
        return
    time = float(theory.flip_time(m, level, rate, total=total, bias=bias, bias_lr=bias_lr))
    assert np.isfinite(time) == bool(end.inverted)
    if np.isfinite(time):
        np.testing.assert_allclose(path.sol(time)[0], 0, atol=1e-5)


@given(st.integers(2, 100), st.floats(0.05, 0.95))
def test_the_critical_rate_is_where_the_fast_phase_ends_at_zero(m, level):
    rate = theory.critical_rate(m, level)
    np.testing.assert_allclose(theory.fast_end(m, level, rate).total, 0, atol=1e-9)
    assert theory.fast_end(m, level, 0.99 * rate).inverted
    assert not theory.fast_end(m, level, 1.01 * rate).inverted


@pytest.mark.parametrize("weights", [0.0, 1.0])
@pytest.mark.parametrize("at", [0.0, -1.3])
def test_the_linear_flow_is_its_matrix_exponential(weights, at):
    flow = theory.linear_flow(*arrays(), class_weights=weights, at=at)
    v = np.asarray(ensemble.class_weights(jnp.asarray(LABELS), jnp.asarray(KNOWN), strength=weights))
    v, phi, p = v / v.sum(), np.vstack([RATINGS, np.ones(20)]), 1 / (1 + np.exp(-at))
    matrix = p * (1 - p) * (phi * v) @ phi.T
    forcing = phi @ (v * (LABELS - p + p * (1 - p) * at))
    start, times = np.array([0.3, -0.2, 0.5, 0.1]), np.array([0.0, 0.7, 30.0, 4000.0])
    path = theory.flow_at(flow, start, times)
    for got, time in zip(path, times, strict=True):
        big = np.zeros((5, 5))
        big[:4, :4], big[:4, 4] = -matrix, forcing
        expected = (expm(big * time) @ np.append(start, 1))[:4]
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-9)
    scales = theory.time_scales(flow, lr=0.1)
    np.testing.assert_allclose(scales, 10 / np.linalg.eigvalsh(matrix)[::-1], rtol=1e-8)


def test_small_steps_follow_the_linear_flow_near_where_it_was_linearised():
    w, b = np.array([0.02, -0.01, 0.01]), np.array(0.0)
    end = updated(ensemble.Aggregator(w, b, np.zeros(3)), arrays(), 1e-3, 200)
    path = theory.flow_at(theory.linear_flow(*arrays()), np.append(w, b), np.full(4, 0.2))[0]
    np.testing.assert_allclose(np.append(end.w, end.b), path, atol=2e-4)


def test_healing_is_when_the_classes_are_the_right_way_round():
    flow = theory.linear_flow(*arrays(), at=-1.1)
    direction = np.asarray(flow.direction)
    down = -0.1 * direction
    time = float(theory.healing_time(flow, down, longest=1e6))
    *around, _, resting = theory.flow_at(flow, down, time * np.array([0.999, 1.001, 1, 1e9]))
    assert around[0] @ direction < 0 < around[1] @ direction
    assert float(theory.healing_time(flow, resting, longest=1e6)) == 0
    assert float(theory.healing_time(flow, down, longest=time / 2)) == np.inf


def test_one_run_flips_and_heals_when_predicted():
    """Synthetic data at 10 %: the sign of Σ w within 20 % of the closed form, the ranking within 50 % of the linear."""
    drawn = ensemble.synthetic_ratings(jax.random.key(0), n=500, m=10, rate=0.1)
    known = np.arange(500) % 2 == 0
    data = (drawn.ratings, drawn.labels, known)
    level = float(np.asarray(drawn.ratings)[:, known].mean())
    rate = float(np.asarray(drawn.labels)[known].mean())
    lr, start = 0.05, ensemble.Aggregator(np.full(10, 0.1), np.array(0.0), np.zeros(10))
    flip = float(theory.flip_time(10, level, rate)) / lr
    totals = [np.asarray(updated(start, data, lr, round(k * flip)).w).sum() for k in (0.8, 1.3)]
    assert totals[0] > 0 > totals[1]
    end = theory.fast_end(10, level, rate)
    flow = theory.linear_flow(*data, at=np.log(rate / (1 - rate)))
    theta = np.append(np.full(10, float(end.total) / 10), float(end.bias))
    heal = float(theory.healing_time(flow, theta, longest=1e6)) / lr
    direction = np.asarray(flow.direction)[:-1]
    separation = [np.asarray(updated(start, data, lr, round(k * heal)).w) @ direction for k in (0.5, 2.0)]
    assert separation[0] < 0 < separation[1]
