"""Mixup data valuation: r̂ and its filters."""

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
import scipy.stats
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


@pytest.mark.slow
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
    kept = {name: np.asarray(valuation.keep(risk, i)) for i, name in enumerate(valuation.FILTERS)}
    np.testing.assert_array_equal(kept["low"], wanted <= 0)
    np.testing.assert_array_equal(kept["high"], wanted > 0)
    np.testing.assert_array_equal(kept["whole"], np.ones(40))
    assert kept["random"].sum() == kept["low"].sum()


@given(st.integers(0, 1000))
def test_random_keeps_as_many_as_low_and_never_padding(seed):
    draw = np.random.default_rng(seed)
    risk, mask = draw.normal(size=20).astype(np.float32), (draw.random(20) < 0.7).astype(np.float32)
    low, random = (
        np.asarray(valuation.keep(jnp.asarray(risk), i, key=jax.random.key(seed), mask=jnp.asarray(mask)))
        for i in (1, 3)
    )
    assert random.sum() == low.sum()
    assert set(np.unique(random)) <= {0.0, 1.0}
    assert not (random * (1 - mask)).any()


def gaussian_toy(seed=0):
    """A linear model with a Gaussian prior: rows D, failures F, and the exact posteriors given D, and D and F."""
    draw = np.random.default_rng(seed)
    d, noise = 3, 0.7
    x, y = draw.normal(size=(12, d)), draw.normal(size=12)
    x_f, y_f = draw.normal(size=(4, d)), draw.normal(size=4)

    def posterior(x, y):
        cov = np.linalg.inv(np.eye(d) + x.T @ x / noise**2)
        return cov @ x.T @ y / noise**2, cov

    return x, y, x_f, y_f, noise, posterior


def sigma_points(mean, cov):
    """Members under which expectations of quadratic functions of θ are those of the Gaussian."""
    root = np.sqrt(len(mean)) * np.linalg.cholesky(cov)
    return np.concatenate([mean + root.T, mean - root.T])


def test_of_a_linear_gaussian_model_r_hat_is_the_exact_posterior_value_and_a_sum_over_sets():
    x, y, x_f, y_f, noise, posterior = gaussian_toy()
    with_f = np.concatenate([x, x_f]), np.concatenate([y, y_f])

    def log_p(members):  # (members, n)
        return -0.5 * np.log(2 * np.pi * noise**2) - (y - members @ x.T) ** 2 / (2 * noise**2)

    def expected(mean, cov):
        spread = np.einsum("nd,de,ne->n", x, cov, x)
        return -0.5 * np.log(2 * np.pi * noise**2) - ((y - x @ mean) ** 2 + spread) / (2 * noise**2)

    given_d, given_f = posterior(x, y), posterior(*with_f)
    with jax.enable_x64(True):
        members = [jnp.asarray(log_p(sigma_points(*each))) for each in (given_d, given_f)]
        risk = np.asarray(valuation.example_risk(*members))
        of_set = valuation.example_risk(*(each[:, 2:7].sum(axis=1, keepdims=True) for each in members))
        one = [each[:1] for each in members]
        gain = float(valuation.removal_gain(*one))
        first_order = float(np.asarray(valuation.example_risk(*one)).sum())
    np.testing.assert_allclose(risk, expected(*given_d) - expected(*given_f), rtol=1e-12)
    np.testing.assert_allclose(of_set, risk[2:7].sum(), rtol=1e-12)
    assert gain == pytest.approx(first_order, rel=1e-12), "of one member each r is r̂"


def test_removal_gain_is_bayes_rule_where_the_parameter_is_one_of_few():
    draw = np.random.default_rng(3)  # θ in four values with equal prior: log-likelihoods of D without C, of C, and of F
    rest, of_c, of_f = (np.log(draw.dirichlet(np.ones(4))) for _ in range(3))

    def log_mean(log_w, log_v):
        w = np.exp(log_w - log_w.max())
        return np.log((w / w.sum() * np.exp(log_v)).sum())

    exact = log_mean(rest, of_f) - log_mean(rest + of_c, of_f)
    counts = [np.round(2e5 * np.exp(lw) / np.exp(lw).sum()).astype(int) for lw in (rest + of_c, rest + of_c + of_f)]
    with jax.enable_x64(True):
        members = [jnp.asarray(np.repeat(of_c, count))[:, None] for count in counts]
        assert float(valuation.removal_gain(*members)) == pytest.approx(exact, abs=1e-4)


def test_a_teacher_that_is_the_student_has_r_hat_zero_exactly_and_members_are_averaged():
    draw = np.random.default_rng(4)
    z = jnp.asarray(draw.normal(size=(5, 9, CLASSES)).astype(np.float32))
    y, partner = jnp.asarray(draw.integers(CLASSES, size=(2, 9)))
    lam = jnp.asarray(draw.uniform(size=9).astype(np.float32))
    assert not np.asarray(valuation.relative_risk(z, z, y, partner, lam)).any()
    each = np.mean([numpy_h(one, np.asarray(y), np.asarray(partner), np.asarray(lam)) for one in z], axis=0)
    alone = numpy_h(z[0], np.asarray(y), np.asarray(partner), np.asarray(lam))
    np.testing.assert_allclose(valuation.relative_risk(z, z[0], y, partner, lam), each - alone, atol=1e-5)
    wrong = np.exp(log_softmax(np.asarray(z, float))).mean(0).argmax(1) != np.asarray(y)
    np.testing.assert_array_equal(valuation.failures(z, y), wrong)


def test_el2n_and_grand_are_numpys():
    draw = np.random.default_rng(5)
    x, y, w = draw.normal(size=(6, 4)), draw.integers(CLASSES, size=6), draw.normal(size=(4, CLASSES))
    error = np.exp(log_softmax(x @ w)) - np.eye(CLASSES)[y]

    def loss(w, x, y):
        return -jax.nn.log_softmax(x @ w)[y]

    with jax.enable_x64(True):
        np.testing.assert_allclose(valuation.el2n(jnp.asarray(x @ w), jnp.asarray(y)), np.linalg.norm(error, axis=1))
        found = valuation.grand(loss, jnp.asarray(w), jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(found, np.linalg.norm(error, axis=1) * np.linalg.norm(x, axis=1))  # |x ⊗ error|


def test_credit_loses_nothing_and_conflict_counts_every_pair_once():
    draw = np.random.default_rng(6)
    risk, lam = draw.normal(size=50).astype(np.float32), draw.uniform(size=50).astype(np.float32)
    rows, partners = draw.integers(8, size=(2, 50))
    given = valuation.credit(*map(jnp.asarray, (risk, rows, partners, lam)), 9)
    assert np.isnan(given.value[8])
    assert given.weight[8] == 0
    assert float(given.weight.sum()) == pytest.approx(50, rel=1e-5)
    assert float((given.value * given.weight)[:8].sum()) == pytest.approx(risk.sum(), rel=1e-4)
    labels = rows % 3, partners % 3
    table = valuation.conflict(jnp.asarray(risk), *map(jnp.asarray, labels), 3)
    assert float(np.triu(table.pairs).sum()) == 50
    np.testing.assert_array_equal(table.share, table.share.T)
    both = {0, 2}
    mine = np.array([{a, b} == both for a, b in zip(*labels, strict=True)])
    assert float(table.share[0, 2]) == pytest.approx((risk[mine] > 0).mean())
    rho = valuation.rank_correlation(jnp.asarray(risk), jnp.asarray(lam))
    assert float(rho) == pytest.approx(scipy.stats.spearmanr(risk, lam).statistic, abs=1e-5)


def test_a_list_of_suspects_goes_to_a_file_and_back(tmp_path):
    risk = np.array([0.5, np.nan, 2.0])
    listed = valuation.suspects({"risk": risk, "el2n": [1.0, 2.0, 3.0]}, "risk", rows=[10, 11, 12])
    listed.write_csv(tmp_path / "suspects.csv")
    assert pl.read_csv(tmp_path / "suspects.csv")["row"].to_list() == [12, 10, 11]
    with pytest.raises(ValueError, match="unknown score 'loss'"):
        valuation.suspects({"risk": risk}, "loss")
    with pytest.raises(ValueError, match=r"el2n has shape \(2,\), expected \(3,\)"):
        valuation.suspects({"risk": risk, "el2n": [1, 2]}, "risk")


@given(st.integers(0, 1000), st.floats(0, 1), st.floats(0, 1))
def test_risk_of_positives_with_unlabeled_rows_is_that_of_two_classes(seed, lam, soft):
    """With q = 1 or 0 it is the risk of a mixed pair with two logits (0, z); in between it is linear in q."""
    z = np.random.default_rng(seed).normal(size=(2, 5)).astype(np.float32)
    got = {q: np.asarray(valuation.positive_unlabeled_risk(*map(jnp.asarray, z), lam, q)) for q in (0.0, 1.0, soft)}
    two = [np.stack([np.zeros(5), each], axis=1) for each in z]
    ones = np.ones(5, int)
    for q, partner in ((0.0, 0 * ones), (1.0, ones)):
        wanted = numpy_h(two[0], ones, partner, lam) - numpy_h(two[1], ones, partner, lam)
        np.testing.assert_allclose(got[q], wanted, atol=2e-5)
    np.testing.assert_allclose(got[soft], soft * got[1.0] + (1 - soft) * got[0.0], atol=2e-5)
