"""Proxies against their formulas in float64, and against the truth where U is an exact mixture."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxpu import metrics

ROWS = 64

proxies = jax.jit(metrics.proxy_metrics)


def measured(z, labeled, prior, dtype=jnp.float32, junk=(np.nan, np.inf, -np.inf)):
    """The bundle on rows padded with junk to a fixed length."""
    extra = ROWS - len(z)
    z = jnp.asarray(np.concatenate([np.resize(junk, extra), z]), dtype)
    labeled = jnp.asarray(np.concatenate([np.resize([1, 0], extra), labeled]).astype(int))
    return proxies(z, labeled, prior=prior, mask=jnp.arange(ROWS) >= extra)


def expected(z, labeled, prior):
    """The formulas in float64, NaN if P or U is empty."""
    z, labeled = np.asarray(z, np.float64), np.asarray(labeled, bool)
    names = ("proxy_nn_risk", "proxy_pu_accuracy", "proxy_pu_auc", "proxy_variational")
    if labeled.all() or not labeled.any():
        return dict.fromkeys(names, np.nan)
    log_p = -np.logaddexp(0, -z)
    p, in_p, in_u = np.exp(log_p), labeled, ~labeled
    unbiased = prior * np.mean(z[in_p] <= 0) + np.mean(z[in_u] > 0) - prior * np.mean(z[in_p] > 0)
    return {
        "proxy_nn_risk": prior * np.mean(1 - p[in_p]) + max(0, np.mean(p[in_u]) - prior * np.mean(p[in_p])),
        "proxy_pu_accuracy": 1 - unbiased,
        "proxy_pu_auc": (sk.roc_auc_score(labeled, z) - prior / 2) / (1 - prior),
        "proxy_variational": np.logaddexp.reduce(log_p[in_u]) - np.log(in_u.sum()) - np.mean(log_p[in_p]),
    }


def assert_same(actual, wanted, **tolerance):
    assert actual.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(actual[name], value, **tolerance, err_msg=name)


NORMAL = np.random.default_rng(3).normal(size=50).astype(np.float32)
LABELED = np.arange(50) < 12

CASES = {
    "noisy": NORMAL,
    "tied": np.round(NORMAL),
    "clipped risk": np.where(LABELED, 4.0, -4.0),
    "constant 5": np.full(50, 5.0),
    "constant -5": np.full(50, -5.0),
    "far": 100 * NORMAL,
    "all at -100": np.full(50, -100.0),
    "farther": 1e4 * np.sign(NORMAL),
}


@pytest.mark.parametrize("prior", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("case", CASES)
def test_bundle_equals_the_formulas(case, prior):
    actual = measured(CASES[case], LABELED, prior)
    assert all(math.isfinite(value) for value in actual.values())
    assert_same(actual, expected(CASES[case], LABELED, prior), rtol=1e-5, atol=2e-6)


def test_an_infinite_logit_in_u_does_not_reach_the_mean_over_p():
    infinite, far = (np.where(np.arange(50) == 20, z, NORMAL) for z in (-np.inf, -1e4))
    assert_same(measured(infinite, LABELED, 0.4), expected(far, LABELED, 0.4), rtol=1e-5, atol=2e-6)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(rows=st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=ROWS))
def test_any_split_equals_the_formulas(rows):
    z, labeled = (np.array(column) for column in zip(*rows, strict=True))
    assert_same(measured(z, labeled, 0.3), expected(z, labeled, 0.3), rtol=1e-5, atol=2e-6)


@jax.jit
def alone(z, labeled):
    return {
        "proxy_nn_risk": metrics.nn_risk(z, labeled, prior=0.4),
        "proxy_pu_accuracy": metrics.pu_accuracy(z, labeled, prior=0.4),
        "proxy_pu_auc": metrics.pu_auc(z, labeled, prior=0.4),
        "proxy_variational": metrics.variational(z, labeled),
    }


def test_each_function_alone_equals_the_bundle_without_mask():
    assert_same(alone(jnp.asarray(NORMAL), jnp.asarray(LABELED)), measured(NORMAL, LABELED, 0.4), rtol=1e-6)


def test_estimates_are_exact_where_u_is_an_exact_mixture():
    """U holds P itself as its positives, 12 of 30 rows: the proxies must then equal the oracle on U."""
    positive, negative = NORMAL[:12] + 0.7, NORMAL[12:30] - 0.7
    unlabeled = np.concatenate([positive, negative])
    truth = np.arange(30) < 12
    values = measured(np.concatenate([positive, unlabeled]), np.arange(42) < 12, 12 / 30)
    assert float(values["proxy_pu_accuracy"]) == pytest.approx(np.mean((unlabeled > 0) == truth), abs=1e-6)
    assert float(values["proxy_pu_auc"]) == pytest.approx(sk.roc_auc_score(truth, unlabeled), abs=1e-6)
    p = 1 / (1 + np.exp(-unlabeled))
    assert float(values["proxy_nn_risk"]) == pytest.approx(np.mean(np.abs(truth - p)), abs=1e-6)


def test_estimates_are_not_clipped():
    outside = measured(np.where(LABELED, 4.0, -4.0), LABELED, 0.5)
    assert float(outside["proxy_pu_accuracy"]) == pytest.approx(1.5)
    assert float(outside["proxy_pu_auc"]) == pytest.approx(1.5)
    below = measured(np.where(LABELED, -4.0, 4.0), LABELED, 0.5)
    assert float(below["proxy_pu_accuracy"]) == pytest.approx(-0.5)
    assert float(below["proxy_pu_auc"]) == pytest.approx(-0.5)


def test_the_negative_part_of_the_risk_stops_at_zero():
    clipped = measured(np.where(LABELED, 4.0, -4.0), LABELED, 0.5)
    assert float(clipped["proxy_nn_risk"]) == pytest.approx(0.5 / (1 + math.exp(4)), rel=1e-5)


def test_the_variational_loss_ignores_the_scale_of_p():
    log_p = -np.logaddexp(0, -NORMAL.astype(np.float64)) - 2
    scaled = log_p - np.log1p(-np.exp(log_p))
    one, other = (float(measured(z, LABELED, 0.4)["proxy_variational"]) for z in (NORMAL, scaled))
    assert one == pytest.approx(other, abs=2e-6)


@pytest.mark.parametrize("labeled", [np.zeros(5), np.ones(5)])
def test_without_labeled_or_unlabeled_rows_all_are_nan(labeled):
    assert all(math.isnan(value) for value in measured(NORMAL[:5], labeled, 0.4).values())


def test_no_rows_a_nan_that_counts_and_a_prior_of_one_give_nan():
    assert all(math.isnan(value) for value in measured([], [], 0.4).values())
    assert all(math.isnan(value) for value in alone(jnp.zeros(0), jnp.zeros(0, int)).values())
    z = NORMAL.copy()
    z[20] = np.nan
    assert all(math.isnan(value) for value in measured(z, LABELED, 0.4).values())
    assert math.isnan(measured(NORMAL, LABELED, 1.0)["proxy_pu_auc"])


def test_vmap_over_runs_and_priors_equals_loop():
    stack = jnp.stack([jnp.asarray(z, jnp.float32) for z in CASES.values()])
    priors = jnp.linspace(0.1, 0.9, len(CASES))
    labeled = jnp.asarray(LABELED)
    together = jax.jit(jax.vmap(lambda z, prior: metrics.proxy_metrics(z, labeled, prior=prior)))(stack, priors)
    for i, z in enumerate(CASES.values()):
        one = {name: values[i] for name, values in together.items()}
        assert_same(one, measured(z, LABELED, priors[i]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_half_precision_is_promoted(dtype):
    logits = jnp.asarray(NORMAL, dtype)
    shapes = jax.eval_shape(alone, logits, jnp.asarray(LABELED))
    assert {value.dtype for value in shapes.values()} == {jnp.dtype(jnp.float32)}
    wanted = expected(np.asarray(logits, np.float32), LABELED, 0.4)["proxy_variational"]
    assert float(variational(logits, jnp.asarray(LABELED))) == pytest.approx(wanted, rel=1e-5)


variational = jax.jit(metrics.variational)


def test_float64_is_kept():
    with jax.enable_x64(True):
        values = measured(NORMAL, LABELED, 0.4, jnp.float64)
        assert {value.dtype for value in values.values()} == {jnp.dtype(jnp.float64)}
        assert_same(values, expected(NORMAL, LABELED, 0.4), rtol=1e-12)
