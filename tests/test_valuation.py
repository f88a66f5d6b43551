"""Mixup data valuation: r̂, its filters, and guided training against a loop in NumPy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads

from jaxpu import valuation
from jaxpu.valuation.guided import _batches

CLASSES, ROWS, SIZE, EPOCHS, LR = 3, 22, 8, 3, 0.3


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


def linear(params, x):
    return x @ params["w"]


def problem():
    draw = np.random.default_rng(0)
    y = draw.integers(CLASSES, size=ROWS)
    x = (draw.normal(size=(ROWS, 4)) + np.eye(CLASSES, 4)[y] * 2).astype(np.float32)
    start, teacher = ({"w": jnp.asarray(draw.normal(scale=s, size=(4, CLASSES)), jnp.float32)} for s in (0.1, 0.5))
    return jnp.asarray(x), jnp.asarray(y), start, teacher


@jax.jit
def trained(which, mixing=1.0):
    x, y, start, teacher = problem()
    settings = {"lr": LR, "epochs": EPOCHS, "batch_size": SIZE}
    return valuation.guided(jax.random.key(3), start, teacher, linear, x, y, x, which=which, mixing=mixing, **settings)


def numpy_guided(which):
    x, y, start, teacher = problem()
    w, told = np.asarray(start["w"], np.float64), np.asarray(teacher["w"], np.float64)
    speed, count, kept = np.zeros_like(w), 0, []
    total = EPOCHS * -(-ROWS // SIZE)
    for epoch in range(EPOCHS):
        batches = jax.tree.map(np.asarray, _batches(jax.random.fold_in(jax.random.key(3), epoch), x, y, SIZE, 1.0))
        shares = []
        for mixed, yi, yj, lam, rows in zip(*batches, strict=True):
            risk = numpy_h(mixed @ told, yi, yj, lam) - numpy_h(mixed @ w, yi, yj, lam)
            mask = rows * [np.ones_like(risk), risk <= 0, risk > 0][which]
            label = lam * np.eye(CLASSES)[yi] + (1 - lam) * np.eye(CLASSES)[yj]
            slope = np.exp(log_softmax(mixed @ w)) - label
            speed = 0.9 * speed + mixed.T @ (mask[:, None] * slope) / max(mask.sum(), 1)
            w = w - LR * 0.5 * (1 + np.cos(np.pi * count / total)) * speed
            count += 1
            shares.append(mask.sum() / rows.sum())
        kept.append(np.mean(shares))
    return w, kept


@pytest.mark.parametrize("which", range(len(valuation.FILTERS)))
def test_guided_training_is_the_plain_loop(which):
    student = trained(which)
    w, kept = numpy_guided(which)
    np.testing.assert_allclose(student.params["w"], w, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(student.kept, kept, rtol=1e-5)
    np.testing.assert_allclose(student.logits[-1], problem()[0] @ student.params["w"], rtol=1e-5)


def test_filters_are_one_program_side_by_side_and_low_and_high_share_the_pairs_at_first():
    x, y, start, teacher = problem()
    one = functools.partial(
        valuation.guided, jax.random.key(3), start, teacher, linear, x, y, x, epochs=EPOCHS, batch_size=SIZE
    )
    beside = jax.jit(jax.vmap(lambda which: one(which=which, lr=LR)))(jnp.arange(3))
    for which in range(3):
        np.testing.assert_allclose(beside.params["w"][which], trained(which).params["w"], rtol=1e-4, atol=1e-5)
    frozen = jax.vmap(lambda which: one(which=which, lr=0.0).kept)
    low, high = frozen(jnp.array([1, 2]))
    np.testing.assert_allclose(low + high, 1.0, rtol=1e-6)


def test_without_mixing_it_is_plain_training_and_every_row_is_seen_once_an_epoch():
    x, y, *_ = problem()
    batches = _batches(jax.random.key(0), x, y, SIZE, 0.0)
    seen = np.asarray(batches.x)[np.asarray(batches.rows) > 0]
    np.testing.assert_allclose(np.sort(seen, axis=0), np.sort(np.asarray(x), axis=0))
    assert np.asarray(batches.lam).tolist() == [1.0] * 3
    mixed = _batches(jax.random.key(0), x, y, SIZE, 1.0)
    assert 0 < float(mixed.lam.min()) < float(mixed.lam.max()) < 1
    lam, first, partner = (np.asarray(a)[0] for a in (mixed.lam, mixed.labels, mixed.partner_labels))
    assert sorted(first) == sorted(partner), "a batch is mixed with a shuffle of itself"
    assert 0 < lam < 1
