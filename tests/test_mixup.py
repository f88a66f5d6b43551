"""Mixup against its formulas in float64 NumPy, and its draws against the distributions they claim."""

import functools
import itertools
import subprocess
import sys
from collections import Counter

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxpu import mixup
from jaxpu.mixup import PAIRINGS, PENALTIES, SCHEDULES

DRAWS = 4000
sample_many = jax.jit(lambda seed, alpha: mixup.sample(jax.random.key(seed), alpha, (DRAWS,)))


@pytest.fixture
def unchecked(monkeypatch):
    """Without the annotations checked, as users run it: then the library's own message appears."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 1.0, 20.0])
def test_coefficients_are_beta_distributed(alpha):
    lam = np.asarray(sample_many(1, alpha), float)
    beta = stats.beta(alpha, alpha)
    error = 4 / np.sqrt(DRAWS)
    assert abs(lam.mean() - 0.5) < error * beta.std()
    assert abs(lam.var() - beta.var()) < error * beta.var()
    # The lower half alone, where float32 resolves the smallest coefficients; near 1 many round to exactly 1.
    lower = lam[lam < 0.5]
    assert stats.kstest(lower, lambda value: 2 * beta.cdf(value)).pvalue > 0.01
    for bound in (0.5, 0.6, 0.9, 0.999):
        assert abs((lam < bound).mean() - beta.cdf(bound)) < error * 0.5


def test_no_mixup_is_exactly_one_and_nothing_is_nan():
    np.testing.assert_array_equal(sample_many(2, 0.0), 1)
    for alpha in (1e-30, 1e-3, 1e4, np.inf):
        lam = np.asarray(sample_many(3, alpha))
        assert ((lam > 0) & (lam <= 1)).all()
    assert 0.45 < np.mean(sample_many(3, 1e-3)) < 0.55
    mixed = mixup.sample(jax.random.key(0), jnp.array([[0.0], [20.0]]), (2, 5))
    assert (mixed[0] == 1).all()
    assert (mixed[1] < 1).all()


def test_a_coefficient_depends_on_its_key_only():
    one, same, other = (sample_many(seed, 0.3) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one, same)
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(DRAWS)
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < 4 / np.sqrt(DRAWS)
    assert mixup.sample(jax.random.key(4), 0.3).shape == ()


@pytest.mark.parametrize("alpha", [-0.1, float("nan")])
def test_impossible_alphas_are_rejected(alpha):
    with pytest.raises(ValueError, match="alpha is"):
        mixup.sample(jax.random.key(0), alpha)


def test_alphas_that_do_not_fit_the_shape_are_rejected():
    with pytest.raises(ValueError, match="broadcast"):
        mixup.sample(jax.random.key(0), jnp.ones(3), ())


@pytest.mark.parametrize("epochs", [1, 8, 600])
def test_schedules_equal_their_formulas(epochs):
    alpha, time = 0.3, np.arange(epochs) / max(epochs - 1, 1)
    expected = {
        "constant": np.full(epochs, alpha),
        "easy": alpha * 10 ** (1 - 2 * time),
        "hard": alpha * 10 ** (2 * time - 1),
        "easy_hard_easy": alpha * 10 ** np.where(time < 0.5, 1 - 4 * time, 4 * time - 3),
        "early_stop": np.where(np.arange(epochs) < epochs * 2 / 3, alpha, 0),
    }
    assert list(expected) == list(SCHEDULES)
    for name, values in expected.items():
        np.testing.assert_allclose(mixup.schedule(name, epochs, alpha), values, rtol=2e-6, err_msg=name)


def test_schedules_hit_the_published_points():
    np.testing.assert_allclose(mixup.schedule("easy", 3), [10, 1, 0.1], rtol=1e-6)
    np.testing.assert_allclose(mixup.schedule("hard", 601), mixup.schedule("easy", 601)[::-1], rtol=2e-6)
    assert np.count_nonzero(mixup.schedule("early_stop", 600)) == 400


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_alpha_of_a_schedule_may_be_traced(name):
    traced = jax.jit(lambda alpha: mixup.schedule(name, 4, alpha))
    np.testing.assert_allclose(traced(0.3), mixup.schedule(name, 4, 0.3), rtol=1e-6)


def test_unknown_schedules_and_empty_ones_are_rejected():
    with pytest.raises(ValueError, match="easy_hard_easy"):
        mixup.schedule("linear", 3)
    with pytest.raises(ValueError, match="at least 1"):
        mixup.schedule("easy", 0)


ROWS = 6
pair = {name: jax.jit(pairing) for name, pairing in PAIRINGS.items()}
flags = st.lists(st.booleans(), min_size=ROWS, max_size=ROWS)


@given(flags, flags, st.integers(0, 2**31 - 1))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_partners_come_from_where_they_should(labeled, mask, seed):
    labeled, mask = np.array(labeled), np.array(mask)
    partner = {
        name: np.asarray(f(jax.random.key(seed), jnp.asarray(labeled), mask=jnp.asarray(mask)))
        for name, f in pair.items()
    }
    itself = np.arange(ROWS)
    for rows in partner.values():
        np.testing.assert_array_equal(rows[~mask], itself[~mask])
    positives = itself[labeled & mask]
    assert set(partner["labeled_positives"][mask]) <= set(positives if positives.size else itself[mask])
    assert set(partner["permuted_positives"][mask]) <= set(positives if positives.size else itself[mask])
    if not positives.size:
        np.testing.assert_array_equal(partner["labeled_positives"], itself)
        np.testing.assert_array_equal(partner["permuted_positives"], itself)
    for kind in (labeled & mask, ~labeled & mask) if positives.size else ():
        times = [(partner["permuted_positives"][kind] == row).sum() for row in positives]
        assert max(times) - min(times) <= 1, "nobody has another turn before all have had theirs"
    for permutation in ("shuffle", "within_set"):
        np.testing.assert_array_equal(np.sort(partner[permutation]), itself)
    np.testing.assert_array_equal(labeled[partner["within_set"]], labeled)


def partners_of_many_keys(name, labeled, mask, count=6000, **more):
    keys = jax.random.split(jax.random.key(7), count)
    return np.asarray(jax.jit(jax.vmap(lambda key: PAIRINGS[name](key, labeled, mask=mask, **more)))(keys))


def assert_uniform(outcomes, expected):
    counts = Counter(map(tuple, outcomes.tolist()))
    assert set(counts) == set(expected)
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_pairings_are_uniform():
    labeled, mask = jnp.array([1, 0, 1, 1, 0, 1]), jnp.array([1, 1, 1, 1, 1, 0])
    positives = partners_of_many_keys("labeled_positives", labeled, mask)
    assert_uniform(positives[:, :2], set(itertools.product([0, 2, 3], repeat=2)))
    assert_uniform(
        partners_of_many_keys("shuffle", labeled, mask),
        {(*order, 5) for order in itertools.permutations(range(5))},
    )
    within = {
        (a, x, b, c, y, 5) for a, b, c in itertools.permutations([0, 2, 3]) for x, y in itertools.permutations([1, 4])
    }
    assert_uniform(partners_of_many_keys("within_set", labeled, mask), within)
    in_turn = {(a, a, b, c, b, 5) for a, b, c in itertools.permutations([0, 2, 3])}
    assert_uniform(partners_of_many_keys("permuted_positives", labeled, mask), in_turn)


def test_doubted_rows_are_mixed_with_the_positives_that_are_doubted_most():
    labeled, mask = jnp.array([1, 1, 1, 1, 0, 0, 0, 1]), jnp.array([1, 1, 1, 1, 1, 1, 1, 0])
    z = jnp.array([0.1, -0.2, 3.0, 5.0, 0.5, 4.0, -4.0, jnp.nan])
    found = partners_of_many_keys("boundary_positives", labeled, mask, logits=z, pool=0.5)
    assert_uniform(found[:, 4:5], {(0,), (1,)})
    for row in (0, 5, 6):  # labeled ones, and those that the network is sure of
        assert_uniform(found[:, row : row + 1], {(other,) for other in range(7)})
    assert (found[:, 7] == 7).all()
    for numbers in ({"lower": 1.0, "upper": 1.0}, {"lower": 0.7}):  # p of row 4 is 0.62
        free = partners_of_many_keys("boundary_positives", labeled, mask, logits=z, **numbers)
        assert_uniform(free[:, 4:5], {(other,) for other in range(7)})
    one = partners_of_many_keys("boundary_positives", labeled, mask, 50, logits=z, pool=0.01)
    assert (one[:, 4] == 0).all(), "at least one"


@pytest.mark.parametrize("name", PAIRINGS)
def test_pairings_need_no_mask_and_reject_columns(name, unchecked):
    key, labeled = jax.random.key(0), jnp.array([1, 0, 1, 0, 0, 0])
    unmasked, masked = pair[name](key, labeled), pair[name](key, labeled, mask=jnp.ones(ROWS, bool))
    np.testing.assert_array_equal(unmasked, masked)
    assert PAIRINGS[name](key, jnp.array([0])).tolist() == [0]
    with pytest.raises(ValueError, match="expected"):
        PAIRINGS[name](key, labeled[:, None])
    with pytest.raises(ValueError, match="expected"):
        PAIRINGS[name](key, labeled, mask=jnp.ones((ROWS, 1)))


@pytest.mark.parametrize("features", [(), (3,), (2, 2, 1)])
@pytest.mark.parametrize("lam", [0.3, [0.0, 1.0, 0.25, 0.5]])
def test_mix_is_the_convex_combination(features, lam):
    x = np.random.default_rng(0).normal(size=(4, *features))
    partner = np.array([2, 2, 0, 3])
    weight = np.reshape(lam, np.shape(lam) + (1,) * len(features) if np.ndim(lam) else ())
    expected = weight * x + (1 - weight) * x[partner]
    with jax.numpy_rank_promotion("raise"):
        mixed = mixup.mix(jnp.asarray(x), jnp.asarray(partner), jnp.asarray(lam))
    np.testing.assert_allclose(mixed, expected, rtol=1e-5, atol=1e-6)


def test_mix_is_exact_at_its_ends_and_keeps_the_number_type():
    x, partner = jnp.array([[0.1], [0.7], [1e30]]), jnp.array([1, 2, 0])
    np.testing.assert_array_equal(mixup.mix(x, partner, 1.0), x)
    np.testing.assert_array_equal(mixup.mix(x, partner, 0.0), x[partner])
    assert mixup.mix(x.astype(jnp.bfloat16), partner, jnp.float32(0.5)).dtype == jnp.bfloat16
    pixels = jnp.array([[0], [255], [4]], jnp.uint8)
    np.testing.assert_allclose(mixup.mix(pixels, partner, 0.5), [[127.5], [129.5], [2]])


def test_mix_rejects_other_shapes(unchecked):
    x, partner = jnp.zeros((3, 2)), jnp.array([0, 1, 2])
    for arguments in [(x, partner[:2], 0.5), (x, partner[:, None], 0.5), (x, partner, jnp.ones(2))]:
        with pytest.raises(ValueError, match="expected"):
            mixup.mix(*arguments)
    with pytest.raises(ValueError, match="expected"):
        mixup.mix(x, partner, jnp.ones((3, 1)))


LOG_P, LOG_PARTNER = map(np.ravel, np.meshgrid([-200.0, -1.5, -1e-6], [-300.0, -100.0, -0.7, -1e-7], indexing="ij"))


@jax.jit
def targets(lam, anchor, floor, partner_floor):
    return mixup.log_target(
        jnp.asarray(LOG_P, jnp.float32),
        jnp.asarray(LOG_PARTNER, jnp.float32),
        lam,
        anchor=anchor,
        floor=floor,
        partner_floor=partner_floor,
    )


@pytest.mark.parametrize("lam", [0.0, 1e-8, 0.3, 1.0])
@pytest.mark.parametrize("anchor", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("floor", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("partner_floor", [0.0, 0.7])
def test_log_target_equals_its_formula_everywhere(lam, anchor, floor, partner_floor):
    lam = float(np.float32(lam))  # the formula at the coefficient that the code is given
    partner = np.maximum(np.exp(LOG_PARTNER), partner_floor)
    mu = lam * np.exp(LOG_P) + (1 - lam) * (anchor + (1 - anchor) * partner)
    expected = np.log(np.maximum(mu, floor))
    actual = targets(lam, anchor, floor, partner_floor)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=2e-7)


def test_log_target_takes_a_coefficient_a_row():
    log_p, log_partner = jnp.log(jnp.array([[0.2, 0.4], [0.6, 0.8]]))
    target = mixup.log_target(log_p, log_partner, jnp.array([0.5, 0.0]), anchor=0.0)
    np.testing.assert_allclose(np.exp(target), [0.4, 0.8], rtol=1e-6)


def test_log_target_is_not_differentiated():
    def total(log_p, log_partner, lam, anchor):
        return mixup.log_target(log_p, log_partner, lam, anchor=anchor).sum()

    for lam, anchor in itertools.product((0.0, 0.4, 1.0), (0.0, 0.5, 1.0)):
        arguments = jnp.array([-1.0, -100.0]), jnp.array([-100.0, -0.1]), lam, anchor
        for gradient in jax.grad(total, argnums=(0, 1, 2, 3))(*arguments):
            np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize("detach", [0, jnp.array(0.0)])
@pytest.mark.parametrize("lam", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("anchor", [0.0, 0.5, 1.0])
def test_log_target_lets_gradients_through_if_it_is_not_detached(detach, lam, anchor):
    log_p, log_partner = np.array([-1.0, -30.0]), np.array([-30.0, -0.1])

    def total(log_p, log_partner):
        return mixup.log_target(log_p, log_partner, lam, anchor=anchor, detach=detach).sum()

    found = jax.grad(total, argnums=(0, 1))(jnp.asarray(log_p, jnp.float32), jnp.asarray(log_partner, jnp.float32))
    p, partner = np.exp(log_p), np.exp(log_partner)
    mu = lam * p + (1 - lam) * (anchor + (1 - anchor) * partner)
    for actual, expected in zip(found, (lam * p / mu, (1 - lam) * (1 - anchor) * partner / mu), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_targets_and_penalties_compute_in_float32(dtype):
    log_p = jnp.array([-20.0, -1.0], dtype)
    target = mixup.log_target(log_p, log_p[::-1], jnp.array(0.5, dtype), anchor=0.25)
    assert target.dtype == jnp.float32
    mu = 0.5 * np.exp([-20, -1]) + 0.5 * (0.25 + 0.75 * np.exp([-1, -20]))
    np.testing.assert_allclose(target, np.log(mu), rtol=1e-6)
    for penalty in PENALTIES.values():
        assert penalty(log_p, log_p).dtype == jnp.float32


def test_targets_and_penalties_reject_other_shapes(unchecked):
    row, column = jnp.zeros(3), jnp.zeros((3, 1))
    for arguments in [(row, column, 0.5), (column, row, 0.5), (row, row[:2], 0.5), (row, row, row[:2])]:
        with pytest.raises(ValueError, match="expected"):
            mixup.log_target(*arguments)
    for penalty, arguments in itertools.product(PENALTIES.values(), [(row, column), (column, row), (column, column)]):
        with pytest.raises(ValueError, match="expected"):
            penalty(*arguments)


def penalty_of_logits(name):
    return lambda z, log_mu: PENALTIES[name](log_mu, jax.nn.log_sigmoid(z)).sum()


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties_have_their_closed_form(name):
    z, mu = map(np.ravel, np.meshgrid([-100.0, -20, -1, 0, 2, 15], [1e-30, 0.02, 0.5, 1.0]))
    p, log_p, q = 1 / (1 + np.exp(-z)), -np.log1p(np.exp(-z)), 1 / (1 + np.exp(z))
    value = {"log_mse": (np.log(mu) - log_p) ** 2, "point_process": p - mu * log_p}[name]
    slope = {"log_mse": -2 * (np.log(mu) - log_p) * q, "point_process": (p - mu) * q}[name]
    actual = PENALTIES[name](jnp.log(mu), jax.nn.log_sigmoid(jnp.asarray(z)))
    np.testing.assert_allclose(actual, value, rtol=1e-5, atol=1e-9)
    gradient = jax.grad(penalty_of_logits(name))(jnp.asarray(z), jnp.log(mu))
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties_are_least_where_p_is_the_target(name):
    mu = jnp.array([0.01, 0.3, 0.5, 0.98])
    at_target = jnp.log(mu) - jnp.log1p(-mu)
    gradient = jax.grad(penalty_of_logits(name))
    np.testing.assert_allclose(gradient(at_target, jnp.log(mu)), 0, atol=1e-6)
    assert (gradient(at_target + 0.1, jnp.log(mu)) > 0).all()
    assert (gradient(at_target - 0.1, jnp.log(mu)) < 0).all()


@jax.jit
@functools.partial(jax.value_and_grad, has_aux=True)
def whole_chain(weight, labeled, mask):
    """Everything in turn, on a linear model without an intercept: the penalty's value, and its rows."""
    pair_key, lam_key = jax.random.split(jax.random.key(1))
    x = jnp.array([-1.0, 2.0, 0.5])
    partner = mixup.labeled_positives(pair_key, labeled, mask=mask)
    lam = mixup.sample(lam_key, 0.3)
    log_p = jax.nn.log_sigmoid(weight * x)
    target = mixup.log_target(log_p, log_p[partner], lam)
    rows = mixup.log_mse(target, jax.nn.log_sigmoid(weight * mixup.mix(x, partner, lam)))
    return (rows * mask).sum(), rows


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
@pytest.mark.parametrize("labeled", [[0, 0, 0], [1, 1, 1], [0, 1, 0]])
def test_small_and_one_sided_batches_stay_finite(rows, labeled):
    mask = jnp.arange(3) < rows
    for weight in (-100.0, 0.3, 100.0):
        (value, penalties), gradient = whole_chain(weight, jnp.array(labeled), mask)
        assert np.isfinite([value, gradient]).all()
        assert np.isfinite(penalties).all()
        if rows == 0:
            assert value == gradient == 0


def test_importing_mixup_costs_jax_only():
    heavy = ["flax", "optax", "sklearn", "polars", "pydantic", "tyro", "matplotlib"]
    program = f"import sys; from jaxpu import mixup; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
