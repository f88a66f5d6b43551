"""Mixup data valuation: r̂ and its filters."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads

from jaxpu import valuation

CLASSES = 3


def log_softmax(z):
    shifted = z - z.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def numpy_h(z, y, partner, lam):
    log_p, rows = log_softmax(np.asarray(z, np.float64)), np.arange(len(z))
    return -(lam * log_p[rows, y] + (1 - lam) * log_p[rows, partner])


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_mixed_cross_entropy_is_numpys_and_symmetric(seed, lam):
    draw = np.random.default_rng(seed)
    z = draw.normal(scale=draw.choice([1, 30]), size=(7, CLASSES)).astype(np.float32)
    y, partner = draw.integers(CLASSES, size=(2, 7))
    got = valuation.mixed_cross_entropy(jnp.asarray(z), jnp.asarray(y), jnp.asarray(partner), lam)
    np.testing.assert_allclose(got, numpy_h(z, y, partner, lam), rtol=1e-5, atol=1e-5)
    swapped = valuation.mixed_cross_entropy(jnp.asarray(z), jnp.asarray(partner), jnp.asarray(y), 1 - lam)
    np.testing.assert_allclose(got, swapped, rtol=1e-5, atol=1e-5)
    assert np.isfinite(got).all()


def test_the_gradient_is_the_predicted_minus_the_mixed_label():
    z, y, partner = jnp.array([[0.3, -1.0, 2.0]]), jnp.array([0]), jnp.array([2])

    def loss(z):
        return valuation.mixed_cross_entropy(z, y, partner, 0.7).sum()

    np.testing.assert_allclose(jax.grad(loss)(z)[0], jax.nn.softmax(z[0]) - jnp.array([0.7, 0, 0.3]), rtol=1e-5)
    check_grads(lambda z: loss(jnp.asarray(z)), (z,), order=2, modes=("rev",), rtol=1e-2)


def test_a_filter_is_a_sign_of_the_relative_risk():
    draw = np.random.default_rng(1)
    teacher, student = draw.normal(size=(2, 40, CLASSES)).astype(np.float32)
    y, partner = draw.integers(CLASSES, size=(2, 40))
    lam = draw.uniform(size=40)
    risk = valuation.relative_risk(*map(jnp.asarray, (teacher, student, y, partner, lam.astype(np.float32))))
    wanted = numpy_h(teacher, y, partner, lam) - numpy_h(student, y, partner, lam)
    np.testing.assert_allclose(risk, wanted, rtol=1e-4, atol=1e-5)
    kept = dict(zip(valuation.FILTERS, (np.asarray(valuation.keep(risk, i)) for i in range(3)), strict=True))
    np.testing.assert_array_equal(kept["low"], wanted <= 0)
    np.testing.assert_array_equal(kept["high"], wanted > 0)
    np.testing.assert_array_equal(kept["whole"], np.ones(40))
