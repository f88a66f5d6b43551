"""Ensembles against float64 NumPy (scripts/golden_ensemble.py), limiting cases, and jit = vmap = loop."""

import functools
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
from jax.sharding import AxisType, PartitionSpec
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from jaxpu import collapse, ensemble, metrics
from jaxpu.ensemble import CONFIDENCE, Aggregator, Factors, Step, als, baselines

SCRIPT = Path(__file__).parent.parent / "scripts" / "golden_ensemble.py"
SPEC = importlib.util.spec_from_file_location("golden_ensemble", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
golden = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(golden)
RECORDS = json.loads(golden.PATH.read_text())
LABELS, LABELED = np.asarray(golden.LABELS), np.asarray(golden.LABELED)
JUNK = np.where(LABELED > 0, LABELS, 1 - LABELS)
RATINGS = golden.ratings()


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def setting(**options):
    """The golden step with other values."""
    return jax.tree.map(float, Step(**{"lr": 0.1, **options}))


def side_by_side(settings):
    """An axis of golden steps with other values."""
    return jax.tree.map(lambda *values: np.array(values), *(setting(**options) for options in settings))


# Few programs, shared by all tests: settings, labels and stopping are traced.


def on_device(*arrays):
    return tuple(map(jnp.asarray, arrays))


@jax.jit
def all_confidences(labels):
    r, known = on_device(RATINGS, LABELED)
    return {name: ensemble.confidence(name, r, labels, known, alpha=golden.ALPHA) for name in CONFIDENCE}


def problem(d, labels=LABELS):
    """Start, ratings, confidence, labels, which are known."""
    r, y, known = on_device(RATINGS, labels, LABELED)
    return Factors(*on_device(*golden.start(d))), r, all_confidences(y)["label_aware"], y, known


GIVEN = {"ridge": golden.RIDGE, "rho": golden.RHO}


@functools.partial(jax.jit, static_argnames="d")
def alternated(steps, d):
    """Every setting side by side, 30 iterations."""
    return jax.vmap(lambda step: ensemble.fit_als(*problem(d), iterations=30, step=step, **GIVEN))(steps)


@jax.jit
def _alternated_alone(step, labels, options):
    return ensemble.fit_als(*problem(3, labels), iterations=120, step=step, **options)


def alternated_alone(step, labels=LABELS, **options):
    """One setting, up to 120 iterations."""
    return _alternated_alone(step, labels, GIVEN | {"stop_at": 120, "tolerance": 0.0} | options)


@jax.jit
def joined(steps):
    """Every setting side by side, 40 iterations of Adam."""
    return jax.vmap(lambda step: ensemble.fit_joint(*problem(3), iterations=40, step=step, **GIVEN))(steps)


@jax.jit
def _joined_alone(step, options):
    return ensemble.fit_joint(*problem(3), iterations=200, step=step, **options)


def joined_alone(step, **options):
    """One setting, up to 200 iterations of Adam."""
    return _joined_alone(step, GIVEN | {"stop_at": 200, "patience": 10**6, "tolerance": 1e-4} | options)


def test_golden_file_is_current():
    assert golden.same(RECORDS, golden.records())


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", CONFIDENCE)
def test_confidence_equals_the_golden_one_and_reads_no_label_where_none_is_known(name):
    c = all_confidences(LABELS)[name]
    np.testing.assert_allclose(c, RECORDS["confidence"][name], rtol=0, atol=2e-12)
    np.testing.assert_array_equal(all_confidences(JUNK)[name], c)
    assert (np.asarray(c) >= 0).all()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("d", [3, 7], ids=lambda d: f"d={d}")
def test_alternating_training_equals_the_golden_one(d):
    fits = alternated(side_by_side(golden.VARIANTS.values()), d)
    r_hat = np.asarray(jnp.einsum("vdm,vdn->vmn", fits.factors.x, fits.factors.y))
    assert len(RECORDS["als"]) == 2 * len(golden.VARIANTS)
    for k, (name, variant) in enumerate(golden.VARIANTS.items()):
        expected = RECORDS["als"][f"{name}, d={d}"]
        np.testing.assert_allclose(fits.aggregator.w[k], expected["w"], rtol=0, atol=1e-10)
        np.testing.assert_allclose(fits.aggregator.b[k], expected["b"], rtol=0, atol=1e-10)
        np.testing.assert_allclose(r_hat[k, :, ::3], expected["r_hat"], rtol=0, atol=1e-10)
        if not variant.get("centre"):
            np.testing.assert_allclose(fits.history.loss[k, -1], expected["loss"], rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_joint_training_equals_the_golden_one():
    fits = joined(side_by_side({"lr": 0.02, **golden.VARIANTS[name]} for name in RECORDS["joint"]))
    r_hat = np.asarray(jnp.einsum("vdm,vdn->vmn", fits.factors.x, fits.factors.y))
    for k, expected in enumerate(RECORDS["joint"].values()):
        np.testing.assert_allclose(fits.aggregator.w[k], expected["w"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(fits.aggregator.b[k], expected["b"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(r_hat[k, :, ::3], expected["r_hat"], rtol=0, atol=1e-9)


def reference(data_dir):
    path = data_dir.parent / "reference" / "cf_ensemble_seed42.npz"
    if not path.exists():
        pytest.skip(f"the reference ensemble is not at {path}")
    return np.load(path)


@pytest.mark.slow
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


CLASS_WEIGHTS = jax.jit(ensemble.class_weights)


@given(st.lists(st.integers(0, 1), min_size=30, max_size=30), st.integers(0, 29))
def test_class_weights_give_both_classes_the_same_total(labels, unknown):
    y, known = np.array(labels), np.arange(30) >= unknown
    v = np.asarray(CLASS_WEIGHTS(y, known))
    positive, negative = known & (y == 1), known & (y == 0)
    assert (v[~known] == 0).all()
    if positive.any() and negative.any():
        np.testing.assert_allclose([v[positive].sum(), v[negative].sum()], known.sum() / 2, rtol=1e-5)
    else:
        np.testing.assert_array_equal(v[known], 1)


def test_the_seeds_arithmetic_is_balanced_once_the_class_shares_are_in():
    start = Aggregator(jnp.zeros(1), jnp.array(0.0), jnp.zeros(1))

    @jax.jit
    def slope(strength):
        y = (jnp.arange(100) < 10).astype(int)
        return ensemble.gradient(start, jnp.ones((1, 100)), y, jnp.ones(100), Step(class_weights=strength))[1]

    np.testing.assert_allclose([slope(0.0), slope(1.0)], [0.1 * -0.5 + 0.9 * 0.5, 0.0], atol=1e-6)


@pytest.mark.usefixtures("x64")
def test_the_gradient_is_that_of_the_loss():
    aggregator = Aggregator(jnp.linspace(-1, 1, golden.M), jnp.array(0.3), jnp.full(golden.M, 0.2))

    data = on_device(RATINGS, LABELS, LABELED)

    def loss(w, b, step):
        z = ensemble.aggregate(aggregator._replace(w=w, b=b), data[0])
        return ensemble.supervised_loss(z, *data[1:], step)

    @jax.jit
    @jax.vmap
    def both(step):
        expected = jax.grad(loss, (0, 1))(aggregator.w, aggregator.b, step)
        return ensemble.gradient(aggregator, *data, step), expected

    got, expected = both(side_by_side([{}, {"class_weights": 1.0}, {"class_weights": 0.5, "focal": 2.0}]))
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_newton_reaches_the_minimum_of_the_loss():
    y = np.arange(golden.N) % 3 == 0  # not separable: there is a minimum
    data = on_device(RATINGS[:2], y, np.ones(golden.N))
    step = Step(lr=1.0, newton=1.0, damping=1e-9)

    @jax.jit
    def descended(*data):
        start = ensemble.start_aggregator(2, *data[1:], step, jnp.float64)
        end = ensemble.continue_aggregator(start, *data, updates=30, step=step, newton=True)
        return end, ensemble.gradient(end, *data, step)

    end, (g, g_b) = descended(*data)
    model = LogisticRegression(C=1e9, tol=1e-12, max_iter=10_000).fit(RATINGS[:2].T, y)
    np.testing.assert_allclose(end.w, model.coef_[0], rtol=1e-4)
    np.testing.assert_allclose([*g, g_b], 0, atol=1e-10)


@pytest.mark.usefixtures("x64")
def test_labels_that_are_not_known_change_nothing():
    fit, again = (alternated_alone(setting(), labels) for labels in (LABELS, JUNK))
    np.testing.assert_array_equal(fit.history.w, again.history.w)
    np.testing.assert_array_equal(fit.factors.y, again.factors.y)


# --- factorisation


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("d", "k", "n"), [(3, 5, 7), (6, 4, 1030), (2, 4100, 3)], ids=["primal", "dual", "long"])
def test_columns_solve_their_normal_equations(d, k, n):
    rng = np.random.default_rng(0)
    fixed, r, c = rng.normal(size=(d, k)), rng.random((k, n)), rng.random((k, n))
    c[:, 1] = 0
    solved = np.asarray(jax.jit(lambda *data: ensemble.solve_columns(*data, ridge=0.1))(fixed, r, c))
    for i in (0, 1, n - 1):
        left = (fixed * c[:, i]) @ fixed.T + 0.1 * np.eye(d)
        np.testing.assert_allclose(left @ solved[:, i], fixed @ (c[:, i] * r[:, i]), rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(solved[:, 1], 0)


@jax.jit
def losses_of_two_sweeps(seed, ridge):
    keys = jax.random.split(jax.random.key(seed), 3)
    ratings, c, y = (jax.random.uniform(k, shape) for k, shape in zip(keys, ((4, 9), (4, 9), (2, 9)), strict=True))
    first = als.als_sweep(Factors(jnp.zeros((2, 4)), y), ratings, c, ridge=ridge)
    second = als.als_sweep(first, ratings, c, ridge=ridge)
    return [als.factorisation_loss(factors, ratings, c, ridge=ridge) for factors in (first, second)]


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.floats(1e-2, 10))
def test_a_sweep_never_raises_the_loss(seed, ridge):
    with jax.enable_x64(True):
        before, after = map(float, losses_of_two_sweeps(seed, ridge))
    assert after <= before * (1 + 1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("m", "n", "d"), [(6, 1600, 2), (3, 80, 5)], ids=["blocks", "fewer classifiers than dimensions"]
)
def test_instances_may_be_split_over_devices(m, n, d):
    rng = np.random.default_rng(1)
    r, c, y = rng.random((m, n)), rng.random((m, n)), rng.normal(size=(d, n))
    alone = jax.jit(functools.partial(als.als_sweep, ridge=0.1))(Factors(jnp.zeros((d, m)), jnp.asarray(y)), r, c)
    mesh = jax.make_mesh((8,), ("instances",), axis_types=(AxisType.Auto,))
    split = PartitionSpec(None, "instances")
    factors = Factors(PartitionSpec(), split)
    sweep = functools.partial(als.als_sweep, ridge=0.1, over="instances")
    sharded = jax.shard_map(sweep, mesh=mesh, in_specs=(factors, split, split), out_specs=factors, check_vma=False)
    together = jax.jit(sharded)(Factors(jnp.zeros((d, m)), jnp.asarray(y)), r, c)
    assert len(together.y.sharding.device_set) == 8
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10), together, alone)


@pytest.mark.usefixtures("x64")
def test_induction_on_the_fitted_instances_is_transduction():
    c = all_confidences(LABELS)["label_aware"]
    fit = alternated_alone(setting())
    induce = jax.jit(lambda r, c: ensemble.fold_in(fit.factors.x, r, c, ridge=golden.RIDGE))
    again = induce(RATINGS, c)
    np.testing.assert_allclose(again, np.asarray(fit.factors.x).T @ np.asarray(fit.factors.y), rtol=1e-10)
    others = np.arange(golden.N) != 4
    without_others = induce(np.where(others, 0.5, RATINGS), np.where(others, 0, c))
    np.testing.assert_allclose(without_others[:, 4], again[:, 4], rtol=1e-10)


def test_what_cannot_be_solved_is_an_error():
    ones = jnp.ones((2, 3))
    with pytest.raises(ValueError, match="ridge is 0, expected a positive finite number"):
        ensemble.solve_columns(ones.T[:2, :2], ones, ones, ridge=0)
    with pytest.raises((ValueError, jaxtyping.TypeCheckError)):
        ensemble.solve_columns(jnp.ones((2, 2)), ones.T, ones.T, ridge=0.1)
    with pytest.raises(ValueError, match="confidence is 'sure', expected one of uniform"):
        ensemble.confidence("sure", ones, jnp.zeros(3), jnp.zeros(3))
    with pytest.raises(ValueError, match="at least 4"):
        ensemble.synthetic_ratings(jax.random.key(0), n=1, m=3, rate=0.5)


# --- trainers


@pytest.mark.usefixtures("x64")
def test_settings_side_by_side_are_settings_alone():
    options = [{"class_weights": 1.0}, {"lr": 0.2, "class_weights": 0.5, "focal": 2.0}, {"freeze": 3, "bias_lr": 3.0}]
    steps = side_by_side(options + [{}] * (len(golden.VARIANTS) - len(options)))
    together = alternated(steps, 3).aggregator
    descended = joined(jax.tree.map(lambda a: a[:3], steps)).aggregator
    for k in range(3):
        step = jax.tree.map(lambda a, k=k: float(a[k]), steps)
        for a, b in zip(together, alternated_alone(step, stop_at=30).aggregator, strict=True):
            np.testing.assert_allclose(a[k], b, rtol=1e-10, atol=1e-13)
        for a, b in zip(descended, joined_alone(step, stop_at=40).aggregator, strict=True):
            np.testing.assert_allclose(a[k], b, rtol=1e-10, atol=1e-13)


@pytest.mark.usefixtures("x64")
def test_stopping_keeps_what_was_there():
    plain = setting()
    for fit in (alternated_alone(plain, stop_at=7), alternated_alone(plain, tolerance=1e-3)):
        n = int(fit.history.active.sum())
        expected = golden.alternate(3, {}, iterations=n)
        np.testing.assert_allclose(fit.aggregator.w, expected["w"], rtol=1e-9)
        np.testing.assert_allclose(fit.aggregator.w, fit.history.w[n - 1], rtol=1e-12)
        assert not fit.history.active[n:].any()
        if n != 7:
            loss = np.asarray(fit.history.loss)
            assert 2 < n < 120
            assert abs(loss[n - 1] - loss[n - 2]) < 1e-3 <= abs(loss[n - 2] - loss[n - 3])
            r_hat = np.asarray(fit.factors.x).T @ np.asarray(fit.factors.y)
            np.testing.assert_allclose(r_hat[:, ::3], expected["r_hat"], rtol=1e-9)
    patient = joined_alone(setting(lr=0.05), patience=5, tolerance=0.05)
    n = int(patient.history.active.sum())
    assert 5 < n < 200
    assert not patient.history.active[n:].any()
    np.testing.assert_array_equal(patient.aggregator.w, patient.history.w[n])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("plateau", "patience"), [(0.5, 2), (0.3, 0), (1.0, 2)])
def test_the_rate_falls_on_plateaus_as_that_of_torch(plateau, patience):
    step, rule = setting(lr=0.5), {"plateau": plateau, "plateau_patience": patience}
    found = joined_alone(step, stop_at=60, **rule).aggregator
    expected = golden.joint(3, {}, iterations=60, lr=0.5, plateau=plateau, patience=patience)
    np.testing.assert_allclose(found.w, expected["w"], rtol=1e-6)
    np.testing.assert_allclose(found.b, expected["b"], rtol=1e-6)
    constant = golden.joint(3, {}, iterations=60, lr=0.5)
    assert (np.abs(constant["w"] - expected["w"]).max() > 0.01) == (plateau < 1)


@pytest.mark.usefixtures("x64")
def test_the_joint_trainer_ends_where_the_original_one_does():
    """Ratings, labels and start (torch's, seed 42) of the original experiment, where they leave the note's weights."""
    with np.load(golden.PATH.parent / "cf_ensemble.npz") as file:
        r, y, known, *start = (jnp.asarray(file[k]) for k in ("ratings", "labels", "labeled", "x", "y"))
    start = ensemble.Factors(*(factor.astype(float) for factor in start))
    c, test = ensemble.confidence("certainty", r, y, known), ~np.asarray(known)

    @jax.jit
    def end(class_weights, last, plateau):
        step = ensemble.Step(lr=0.01, class_weights=class_weights)
        options = {"stop_at": last, "patience": 20, "plateau": plateau}
        fit = ensemble.fit_joint(start, r, c, y, known, iterations=500, step=step, **options)
        return fit.logits, fit.aggregator.w

    def roc_auc(*numbers):
        return roc_auc_score(y[test], np.asarray(end(*numbers)[0])[test])

    assert roc_auc(0.0, 200, 0.5) == roc_auc(0.0, 200, 1.0) == 0
    assert roc_auc(0.0, 500, 0.5) == pytest.approx(0.155, abs=5e-4), "the original's; on its way through 0"
    assert roc_auc(0.0, 500, 1.0) > 0.9, "at a constant rate it is past that"
    logits, w = end(1.0, 200, 0.5)
    assert roc_auc_score(y[test], np.asarray(logits)[test]) == 1
    np.testing.assert_allclose([w.min(), w.max()], [0.199, 0.335], atol=5e-4)


@pytest.mark.usefixtures("x64")
def test_rho_changes_nothing_in_alternating_training():
    step = setting()
    np.testing.assert_array_equal(*(alternated_alone(step, rho=rho).history.w for rho in (0.0, 0.9)))


@pytest.mark.usefixtures("x64")
def test_continuing_is_a_loop_of_updates():
    data = on_device(RATINGS, LABELS, LABELED)
    once = jax.jit(lambda a: ensemble.update(a, *data, Step()))
    on = jax.jit(lambda a, k: ensemble.continue_aggregator(a, *data, updates=k))
    a = start = Aggregator(*on_device(np.full(golden.M, 0.2), 0.0, np.zeros(golden.M)))
    for _ in range(5):
        a = once(a)
    np.testing.assert_allclose(a.w, on(start, 5).w, rtol=1e-13)


# --- synthetic data


@jax.jit
def draws(rate, quality=0.7):
    """Twenty draws of 12 classifiers and 400 instances."""
    keys = jax.random.split(jax.random.key(3), 20)
    return jax.vmap(lambda k: ensemble.synthetic_ratings(k, n=400, m=12, rate=rate, quality=quality))(keys)


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
def test_synthetic_ratings_are_what_is_said(rate):
    r, y, q = (np.asarray(a) for a in draws(rate))
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
    assert set(np.asarray(draws(0.0).labels.sum(1))) == {2}
    assert set(np.asarray(draws(1.0).labels.sum(1))) == {398}


# --- baselines


KNOWN = np.arange(400) < 200


@pytest.fixture(scope="module")
def drawn():
    ratings, labels, _ = jax.device_get(draws(0.3, 0.4))
    return ratings[0].astype(float), labels[0]


PROGRAMS = {name: jax.jit(run) for name, run in baselines.BASELINES.items()}
PROGRAMS["isotonic_mean"] = baselines.isotonic_mean


@pytest.mark.usefixtures("x64")
def test_stacking_is_scikit_learns_logistic_regression(drawn):
    ratings, labels = drawn
    z = PROGRAMS["stacking"](ratings, labels, KNOWN, l2=0.5)
    x = np.log(ratings / (1 - ratings)).T
    model = LogisticRegression(C=2.0, tol=1e-10, max_iter=5000).fit(x[KNOWN], labels[KNOWN])
    np.testing.assert_allclose(z, model.decision_function(x), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", baselines.BASELINES)
def test_baselines_read_no_unknown_label_and_rank_better_than_chance(name, drawn):
    ratings, labels = drawn
    options = {"l2": 1.0} if name == "stacking" else {}
    junk = np.where(KNOWN, labels, 1 - labels)
    z, again = (np.asarray(PROGRAMS[name](*on_device(ratings, y, KNOWN), **options)) for y in (labels, junk))
    np.testing.assert_array_equal(z, again)
    assert np.isfinite(z).all()
    assert roc_auc_score(labels[~KNOWN], z[~KNOWN]) > 0.75


@pytest.mark.usefixtures("x64")
def test_a_useless_classifier_has_no_weight_in_the_weighted_mean(drawn):
    ratings, labels = drawn
    one = ratings[:1]
    upside_down = np.where(np.arange(12)[:, None] < 5, one, 1 - one)
    z = PROGRAMS["weighted_mean"](upside_down, labels, KNOWN)
    np.testing.assert_allclose(z, np.log(one[0] / (1 - one[0])), rtol=1e-9)
