"""Ensembles against float64 NumPy (scripts/golden_ensemble.py), limiting cases, and jit = vmap = loop."""

import importlib.util
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from jaxpu import collapse, ensemble, metrics
from jaxpu.ensemble import CONFIDENCE, Aggregator, Factors, Step, als, baselines

SCRIPT = Path(__file__).parent.parent / "scripts" / "golden_ensemble.py"
SPEC = importlib.util.spec_from_file_location("golden_ensemble", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
golden = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(golden)
RECORDS = json.loads(golden.PATH.read_text())
LABELS, LABELED = jnp.asarray(golden.LABELS), jnp.asarray(golden.LABELED)


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def golden_fit(d, options, trainer=ensemble.fit_als, iterations=30, lr=0.1):
    ratings = jnp.asarray(golden.ratings())
    c = ensemble.confidence("label_aware", ratings, LABELS, LABELED, alpha=golden.ALPHA)
    start = Factors(*map(jnp.asarray, golden.start(d)))
    step = Step(**{"lr": lr, **options})
    more = {"ridge": golden.RIDGE, "rho": golden.RHO, "step": step}
    return jax.jit(lambda r: trainer(start, r, c, LABELS, LABELED, iterations=iterations, **more))(ratings)


def test_golden_file_is_current():
    assert golden.same(RECORDS, golden.records())


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", CONFIDENCE)
def test_confidence_equals_the_golden_one(name):
    c = ensemble.confidence(name, jnp.asarray(golden.ratings()), LABELS, LABELED, alpha=golden.ALPHA)
    np.testing.assert_allclose(c, RECORDS["confidence"][name], rtol=0, atol=2e-12)


@pytest.mark.parametrize("name", CONFIDENCE)
def test_confidence_reads_no_label_where_none_is_known(name):
    ratings = jnp.asarray(golden.ratings(), jnp.float32)
    junk = jnp.where(LABELED > 0, LABELS, 1 - LABELS)
    same = [CONFIDENCE[name](ratings, y, LABELED) for y in (LABELS, junk)]
    np.testing.assert_array_equal(*same)
    assert (np.asarray(same[0]) >= 0).all()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("record", RECORDS["als"])
def test_alternating_training_equals_the_golden_one(record):
    name, d = record.split(", d=")
    fit = golden_fit(int(d), golden.VARIANTS[name])
    expected = RECORDS["als"][record]
    np.testing.assert_allclose(fit.aggregator.w, expected["w"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(fit.aggregator.b, expected["b"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(als.reconstruct(fit.factors)[:, ::3], expected["r_hat"], rtol=0, atol=1e-10)
    if not golden.VARIANTS[name].get("centre"):
        np.testing.assert_allclose(fit.history.loss[-1], expected["loss"], rtol=1e-9)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", RECORDS["joint"])
def test_joint_training_equals_the_golden_one(name):
    fit = golden_fit(3, golden.VARIANTS[name], ensemble.fit_joint, iterations=40, lr=0.02)
    expected = RECORDS["joint"][name]
    np.testing.assert_allclose(fit.aggregator.w, expected["w"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(fit.aggregator.b, expected["b"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(als.reconstruct(fit.factors)[:, ::3], expected["r_hat"], rtol=0, atol=1e-9)


def reference(data_dir):
    path = data_dir.parent / "reference" / "cf_ensemble_seed42.npz"
    if not path.exists():
        pytest.skip(f"the reference ensemble is not at {path}")
    return np.load(path)


@pytest.mark.usefixtures("x64")
def test_the_original_figures_are_met(data_dir):
    stored = reference(data_dir)
    ratings, y, labeled = (jnp.asarray(stored[k]) for k in ("ratings", "labels", "labeled"))
    c = ensemble.confidence("label_aware", ratings, y, labeled)
    np.testing.assert_array_equal(c, stored["confidence_label_aware"])
    state = np.random.RandomState(42)
    start = Factors(*(jnp.asarray(state.randn(15, k) * 0.01) for k in ratings.shape))
    strengths = jnp.array([0.0, 1.0])

    def fits(trainer, iterations):
        fit = jax.vmap(
            lambda s: trainer(start, ratings, c, y, labeled, iterations=iterations, step=Step(class_weights=s))
        )(strengths)
        scores = [
            (metrics.average_precision(z, y, mask=~labeled), metrics.auc(z, y, mask=~labeled))
            for z in jax.vmap(lambda f: f.logits)(fit)
        ]
        return fit, np.asarray(scores)

    fit, scores = fits(ensemble.fit_als, 100)
    for k, name in enumerate(("als_unweighted", "als_weighted")):
        np.testing.assert_allclose(fit.aggregator.w[k], stored[f"{name}_w"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(fit.aggregator.b[k], stored[f"{name}_b"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(scores, [[0.0711, 0.0], [1.0, 1.0]], atol=5e-5)
    _, scores = fits(ensemble.fit_joint, 200)
    np.testing.assert_allclose(scores, [[0.0711, 0.0], [1.0, 1.0]], atol=5e-5)


# --- class weights, focal, gradients


@given(st.lists(st.integers(0, 1), min_size=2, max_size=30), st.integers(0, 10))
def test_class_weights_give_both_classes_the_same_total(labels, unknown):
    y = jnp.asarray(labels)
    labeled = jnp.arange(y.size) >= min(unknown, y.size - 1)
    v = np.asarray(ensemble.class_weights(y, labeled))
    known = np.asarray(labeled)
    positive, negative = known & (np.asarray(y) == 1), known & (np.asarray(y) == 0)
    assert (v[~known] == 0).all()
    if positive.any() and negative.any():
        np.testing.assert_allclose([v[positive].sum(), v[negative].sum()], known.sum() / 2, rtol=1e-5)
    else:
        np.testing.assert_array_equal(v[known], 1)


def test_the_seeds_arithmetic_is_balanced_once_the_class_shares_are_in():
    y = jnp.asarray([1] * 10 + [0] * 90)
    start = Aggregator(jnp.zeros(1), jnp.array(0.0), jnp.zeros(1))
    _, plain = ensemble.gradient(start, jnp.ones((1, 100)), y, jnp.ones(100), Step())
    _, weighted = ensemble.gradient(start, jnp.ones((1, 100)), y, jnp.ones(100), Step(class_weights=1.0))
    np.testing.assert_allclose([plain, weighted], [0.1 * -0.5 + 0.9 * 0.5, 0.0], atol=1e-6)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("options", [{}, {"class_weights": 1.0}, {"class_weights": 0.5, "focal": 2.0}])
def test_the_gradient_is_that_of_the_loss(options):
    ratings = jnp.asarray(golden.ratings())
    aggregator = Aggregator(jnp.linspace(-1, 1, golden.M), jnp.array(0.3), jnp.full(golden.M, 0.2))

    def loss(w, b):
        z = ensemble.aggregate(aggregator._replace(w=w, b=b), ratings)
        return ensemble.supervised_loss(z, LABELS, LABELED, Step(**options))

    expected = jax.grad(loss, (0, 1))(aggregator.w, aggregator.b)
    for got, wanted in zip(
        ensemble.gradient(aggregator, ratings, LABELS, LABELED, Step(**options)), expected, strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_newton_reaches_the_minimum_of_the_loss():
    ratings = jnp.asarray(golden.ratings())[:2]
    y, known = jnp.arange(golden.N) % 3 == 0, jnp.ones(golden.N)  # not separable: there is a minimum
    step = Step(lr=1.0, newton=1.0, damping=1e-9)
    start = ensemble.start_aggregator(2, y, known, step, jnp.float64)
    end = ensemble.continue_aggregator(start, ratings, y, known, updates=30, step=step, newton=True)
    model = LogisticRegression(C=1e9, tol=1e-12, max_iter=10_000).fit(np.asarray(ratings).T, np.asarray(y))
    np.testing.assert_allclose(end.w, model.coef_[0], rtol=1e-4)
    g, g_b = ensemble.gradient(end, ratings, y, known, step)
    np.testing.assert_allclose([*g, g_b], 0, atol=1e-10)


def test_labels_that_are_not_known_change_nothing():
    junk = jnp.where(LABELED > 0, LABELS, 1 - LABELS)
    ratings, c = jnp.asarray(golden.ratings(), jnp.float32), jnp.ones((golden.M, golden.N))
    start = ensemble.start_factors(jax.random.key(0), ratings.shape, 3)
    run = jax.jit(lambda y: ensemble.fit_als(start, ratings, c, y, LABELED, iterations=5, tolerance=0.0))
    np.testing.assert_array_equal(run(LABELS).logits, run(junk).logits)


# --- factorisation


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("d", "k", "n"), [(3, 5, 7), (6, 4, 1030), (2, 4100, 3)], ids=["primal", "dual", "long"])
def test_columns_solve_their_normal_equations(d, k, n):
    rng = np.random.default_rng(0)
    fixed, r, c = rng.normal(size=(d, k)), rng.random((k, n)), rng.random((k, n))
    c[:, 1] = 0
    solved = np.asarray(ensemble.solve_columns(*map(jnp.asarray, (fixed, r, c)), ridge=0.1))
    for i in (0, 1, n - 1):
        left = (fixed * c[:, i]) @ fixed.T + 0.1 * np.eye(d)
        np.testing.assert_allclose(left @ solved[:, i], fixed @ (c[:, i] * r[:, i]), rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(solved[:, 1], 0)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.floats(1e-2, 10))
def test_a_sweep_never_raises_the_loss(seed, ridge):
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), 3)
        ratings, c = jax.random.uniform(keys[0], (4, 9)), jax.random.uniform(keys[1], (4, 9))
        factors = als.als_sweep(als.start_factors(keys[2], (4, 9), 2), ratings, c, ridge=ridge)
        before = als.factorisation_loss(factors, ratings, c, ridge=ridge)
        after = als.factorisation_loss(als.als_sweep(factors, ratings, c, ridge=ridge), ratings, c, ridge=ridge)
        assert after <= before * (1 + 1e-12)


@pytest.mark.usefixtures("x64")
def test_induction_on_the_fitted_instances_is_transduction():
    fit = golden_fit(3, {})
    ratings = jnp.asarray(golden.ratings())
    c = ensemble.confidence("label_aware", ratings, LABELS, LABELED, alpha=golden.ALPHA)
    again = ensemble.fold_in(fit.factors.x, ratings, c, ridge=golden.RIDGE)
    np.testing.assert_allclose(again, als.reconstruct(fit.factors), rtol=1e-10)
    one = ensemble.fold_in(fit.factors.x, ratings[:, 4:5], c[:, 4:5], ridge=golden.RIDGE)
    np.testing.assert_allclose(one, again[:, 4:5], rtol=1e-10)


def test_what_cannot_be_solved_is_an_error():
    ones = jnp.ones((2, 3))
    with pytest.raises(ValueError, match="ridge is 0, expected a positive number"):
        ensemble.solve_columns(ones.T[:2, :2], ones, ones, ridge=0)
    with pytest.raises((ValueError, jaxtyping.TypeCheckError)):
        ensemble.solve_columns(jnp.ones((2, 2)), ones.T, ones.T, ridge=0.1)
    with pytest.raises(ValueError, match="confidence is 'sure', expected one of uniform"):
        ensemble.confidence("sure", ones, jnp.zeros(3), jnp.zeros(3))
    with pytest.raises(ValueError, match="at least 4"):
        ensemble.synthetic_ratings(jax.random.key(0), n=1, m=3, rate=0.5)


# --- trainers


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("trainer", [ensemble.fit_als, ensemble.fit_joint])
def test_vmap_over_settings_equals_the_loop(trainer):
    ratings = jnp.asarray(golden.ratings())
    start = ensemble.start_factors(jax.random.key(1), ratings.shape, 2)
    c = jnp.ones_like(ratings)

    def run(lr, strength, focal):
        step = Step(lr=lr, class_weights=strength, focal=focal)
        return trainer(start, ratings, c, LABELS, LABELED, iterations=12, step=step, rho=lr).aggregator

    settings_ = (jnp.array([0.1, 0.2, 0.3]), jnp.array([0.0, 1.0, 0.5]), jnp.array([0.0, 1.0, 2.0]))
    together, alone = jax.jit(jax.vmap(run))(*settings_), jax.jit(run)
    for k in range(3):
        for a, b in zip(together, alone(*(s[k] for s in settings_)), strict=True):
            np.testing.assert_allclose(a[k], b, rtol=1e-10, atol=1e-13)


@pytest.mark.usefixtures("x64")
def test_stopping_keeps_what_was_there():
    ratings = jnp.asarray(golden.ratings())
    start, c = ensemble.start_factors(jax.random.key(1), ratings.shape, 2), jnp.ones_like(ratings)
    data = (start, ratings, c, LABELS, LABELED)
    short = ensemble.fit_als(*data, iterations=7)
    capped = ensemble.fit_als(*data, iterations=20, stop_at=7)
    np.testing.assert_allclose(capped.aggregator.w, short.aggregator.w, rtol=1e-12)
    stopped = ensemble.fit_als(*data, iterations=200, tolerance=1e-3)
    n = int(stopped.history.active.sum())
    loss = np.asarray(stopped.history.loss)
    assert 2 < n < 200
    assert abs(loss[n - 1] - loss[n - 2]) < 1e-3 <= abs(loss[n - 2] - loss[n - 3])
    np.testing.assert_allclose(stopped.aggregator.w, stopped.history.w[n - 1], rtol=1e-12)
    np.testing.assert_allclose(
        als.reconstruct(stopped.factors), als.reconstruct(ensemble.fit_als(*data, iterations=n).factors), rtol=1e-9
    )
    patient = ensemble.fit_joint(*data, iterations=300, patience=5, tolerance=0.05, step=Step(lr=0.05))
    n = int(patient.history.active.sum())
    assert n < 300
    assert not patient.history.active[n:].any()
    np.testing.assert_array_equal(patient.aggregator.w, patient.history.w[n])


def test_rho_changes_nothing_in_alternating_training():
    ratings = jnp.asarray(golden.ratings(), jnp.float32)
    start, c = ensemble.start_factors(jax.random.key(1), ratings.shape, 2), jnp.ones_like(ratings)
    run = jax.jit(lambda rho: ensemble.fit_als(start, ratings, c, LABELS, LABELED, iterations=5, rho=rho))
    np.testing.assert_array_equal(run(0.0).aggregator.w, run(0.9).aggregator.w)


@pytest.mark.usefixtures("x64")
def test_continuing_is_a_loop_of_updates():
    ratings = jnp.asarray(golden.ratings())
    a = start = ensemble.start_aggregator(golden.M, LABELS, LABELED, Step(), jnp.float64)
    for _ in range(5):
        a = ensemble.update(a, ratings, LABELS, LABELED, Step())
    b = ensemble.continue_aggregator(start, ratings, LABELS, LABELED, updates=5)
    np.testing.assert_allclose(a.w, b.w, rtol=1e-13)


# --- synthetic data


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
def test_synthetic_ratings_are_what_is_said(rate):
    keys = jax.random.split(jax.random.key(3), 20)
    drawn = jax.jit(jax.vmap(lambda k: ensemble.synthetic_ratings(k, n=400, m=12, rate=rate, quality=0.7)))(keys)
    r, y, q = (np.asarray(a) for a in drawn)
    assert r.min() >= np.float32(0.02)
    assert r.max() <= np.float32(0.98)
    assert abs(y.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / y.size) + 1 / 400
    assert sorted(np.round(q[0], 2)) == pytest.approx([0.55] * 3 + [0.7] * 5 + [0.8] * 4)
    # by the order of q, better classifiers separate the classes better
    auc = np.array([[collapse.score_metrics(s, t)["oracle_auc"] for s in rows] for rows, t in zip(r, y, strict=True)])
    means = [auc[np.isclose(q, level)].mean() for level in (0.55, 0.7, 0.8)]
    assert means[0] < means[1] < means[2]
    # class means of σ(0 + difficulty) and σ(1 + difficulty), symmetric noise
    positive = (r * y[:, None]).sum((0, 2)) / y.sum()
    negative = (r * (1 - y)[:, None]).sum((0, 2)) / (1 - y).sum()
    assert abs(negative.mean() - 0.5) < 0.02
    assert 0.66 < positive.mean() < 0.74


def test_synthetic_classes_are_both_there():
    for rate, positives in ((0.0, 2), (1.0, 28)):
        drawn = ensemble.synthetic_ratings(jax.random.key(0), n=30, m=2, rate=rate)
        assert int(drawn.labels.sum()) == positives


# --- baselines


@pytest.fixture(scope="module")
def drawn():
    return jax.device_get(ensemble.synthetic_ratings(jax.random.key(5), n=300, m=6, rate=0.3, quality=0.4))


@pytest.mark.usefixtures("x64")
def test_stacking_is_scikit_learns_logistic_regression(drawn):
    labeled = jnp.arange(300) < 150
    ratings, labels = jnp.asarray(drawn.ratings, jnp.float64), jnp.asarray(drawn.labels)
    z = jax.jit(lambda r: baselines.stacking(r, labels, labeled, l2=0.5))(ratings)
    x = np.asarray(baselines.logit(ratings)).T
    model = LogisticRegression(C=2.0, tol=1e-10, max_iter=5000).fit(x[:150], drawn.labels[:150])
    np.testing.assert_allclose(z, model.decision_function(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", baselines.BASELINES)
def test_baselines_read_no_unknown_label_and_rank_better_than_chance(name, drawn):
    labeled = jnp.arange(300) < 150
    labels, ratings = jnp.asarray(drawn.labels), jnp.asarray(drawn.ratings)
    junk = jnp.where(labeled, labels, 1 - labels)
    z, again = (baselines.BASELINES[name](ratings, y, labeled) for y in (labels, junk))
    np.testing.assert_array_equal(z, again)
    assert np.isfinite(z).all()
    assert metrics.auc(z, labels, mask=~labeled) > 0.75


def test_a_useless_classifier_has_no_weight_in_the_weighted_mean(drawn):
    ratings, labels = jnp.asarray(drawn.ratings), jnp.asarray(drawn.labels)
    alone = baselines.weighted_mean(ratings[:1], labels, jnp.ones(300))
    upside_down = jnp.concatenate([ratings[:1], 1 - ratings[:1]])
    np.testing.assert_allclose(baselines.weighted_mean(upside_down, labels, jnp.ones(300)), alone, rtol=1e-5)
