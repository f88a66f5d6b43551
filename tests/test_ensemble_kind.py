"""The kind ``ensemble``: what a run records, that runs stand alone, and where ratings come from."""

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from jaxpu import collapse, config, data, ensemble, metrics, runs
from jaxpu.config import ConfigError
from jaxpu.config.ensemble import RatingsConfig
from jaxpu.ensemble import base, continuation, job, ratings, trainers
from jaxpu.ensemble.aggregate import aggregate

TINY = {
    "kind": "ensemble",
    "ratings": {"n": 120, "classifiers": 6},
    "factors": {"dim": 4},
    "methods": [
        {"trainer": "als", "lr": 0.05},
        {"trainer": "als", "name": "weighted", "lr": 0.05, "class_weights": 1.0},
        "mean",
    ],
    "grid": {"ratings.rate": [0.5, 0.1]},
    "seeds": 4,
    "continue_to": 40000,
}
HEAD = ["run_id", "dataset", "method", "ratings.rate", "seed"]


def experiment(**changes):
    return config.parse(TINY | changes)


@pytest.fixture(scope="module")
def finished():
    return runs.run(experiment(), job, None).runs


def test_a_run_is_one_row_with_typed_columns(finished):
    assert finished.columns[: len(HEAD)] == HEAD
    assert finished.height == finished["run_id"].n_unique() == 3 * 2 * 4
    assert finished["ratings.rate"].dtype == pl.Float64
    assert set(finished["selection"]) == {"end"}
    mean = finished.filter(method="mean")
    assert mean["w_mean"].null_count() == mean["path_update"].null_count() == mean.height
    way = finished.filter(method="weighted").row(0, named=True)
    end = way["path_update"].index(way["iterations"])
    assert way["path_w_mean"][end] == pytest.approx(way["w_mean"])


def test_a_run_is_judged_and_continued_until_it_heals(finished):
    als = finished.filter(pl.col("ratings.rate") == 0.1, method="als")
    assert (als["end_verdict"] == "inverted").sum() >= 3
    healed = als.filter(pl.col("healthy_at").is_not_null())
    assert set(healed["verdict"]) <= {"stopped_early"}
    assert (healed["ranked_at"] <= healed["healthy_at"]).all()
    assert (healed["ranked_at"] > 100).any()
    for row in healed.filter(verdict="stopped_early").iter_rows(named=True):
        place = row["path_update"].index(row["ranked_at"])
        assert row["path_auc"][place] >= collapse.Thresholds().good_auc > row["path_auc"][place - 1]
    balanced = finished.filter(pl.col("ratings.rate") == 0.5, method="als")
    assert (balanced["auc"] > 0.9).all()
    weighted = finished.filter(pl.col("ratings.rate") == 0.1, method="weighted")
    assert (weighted["w_mean"] > 0).all()
    assert (weighted["auc"] > 0.9).all()
    flipped = als.filter(pl.col("flipped_at").is_not_null())
    np.testing.assert_allclose(flipped["flipped_at"], flipped["flip_theory"], rtol=0.35)


@pytest.mark.slow
def test_a_run_is_the_same_whatever_runs_beside_it(finished):
    """Other seeds, methods, grid points, and lengths of training beside it."""
    methods = [*TINY["methods"][1::-1], {"trainer": "als", "name": "longer", "lr": 0.05, "iterations": 120}]
    others = experiment(first_seed=2, methods=methods, grid={"ratings.rate": [0.1]})
    beside = runs.run(others, job, None).runs.filter(pl.col("seed") < 4, method="als").sort("seed")
    alone = finished.filter(pl.col("ratings.rate") == 0.1, pl.col("seed") >= 2, method="als").sort("seed")
    assert beside["run_id"].to_list() == alone["run_id"].to_list()
    assert_frame_equal(beside, alone, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.slow
def test_a_row_is_what_the_trainer_says(finished):
    """From the same ratings and start, by the trainer as it stands."""
    row = finished.filter(pl.col("ratings.rate") == 0.1, method="weighted", seed=1).row(0, named=True)
    with jax.enable_x64(True):
        r, y, known = map(jnp.asarray, ratings.problem(RatingsConfig(n=120, classifiers=6, rate=0.1), 1, "float64"))
        c = ensemble.confidence("label_aware", r, y, known)
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 1), ratings.FACTORS)
        start = ensemble.start_factors(key, r.shape, 4, dtype=jnp.float64)
        step = ensemble.Step(lr=0.05, class_weights=1.0)
        fit = jax.jit(lambda start: trainers.fit_als(start, r, c, y, known, iterations=100, step=step))(start)
        found = metrics.plain_metrics(fit.logits, y, mask=~known) | {
            "w_mean": fit.aggregator.w.mean(),
            "b": fit.aggregator.b,
        }
    for name, value in found.items():
        if name in row:
            assert row[name] == pytest.approx(float(value), rel=1e-9), name


def test_both_halves_of_alternating_training_are_the_whole():
    draw = np.random.default_rng(0)
    r, y, known = (jnp.asarray(a) for a in (draw.uniform(0.1, 0.9, (4, 30)), *draw.integers(2, size=(2, 30))))
    start = ensemble.start_factors(jax.random.key(0), (4, 30), 3)
    step = ensemble.Step(lr=0.3, freeze=2, bias_first=3, centre=1.0, focal=0.5)
    c = jnp.ones((4, 30))
    whole = ensemble.fit_als(start, r, c, y, known, iterations=12, step=step)
    path = ensemble.factor_trajectory(start, r, c, iterations=12, ridge=0.01)
    labeled = known > 0
    last, every = ensemble.fit_aggregator(path[:, :, labeled], y[labeled], known[labeled], step)
    np.testing.assert_allclose(every.w, whole.history.w, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(aggregate(last, path[-1]), whole.logits, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_stopping_joint_training_newton_steps_and_what_the_host_computes():
    methods = [
        {"trainer": "als", "name": "stopped", "stop": True, "lr": 1e-4, "iterations": 200},
        {"trainer": "als", "name": "newton", "newton": True, "lr": 1.0},
        {"trainer": "joint", "iterations": 60},
        "isotonic_mean",
    ]
    found = runs.run(experiment(methods=methods, grid={}, seeds=2), job, None).runs
    by_method = {name: found.filter(method=name) for name in found["method"].unique()}
    assert (by_method["stopped"]["iterations"] < 200).all()
    assert by_method["stopped"]["level"].null_count() == 0
    assert by_method["newton"]["level"].null_count() == by_method["joint"]["level"].null_count() == 2
    assert (by_method["newton"]["auc"] > 0.9).all()
    made = ratings.problem(RatingsConfig(n=120, classifiers=6), 0, "float64")
    with jax.enable_x64(True):
        logits = np.asarray(ensemble.BASELINES["isotonic_mean"](*map(jnp.asarray, made)))
    p, test = 1 / (1 + np.exp(-logits)), ~made.labeled
    brier = ((p - made.labels)[test] ** 2).mean()
    assert by_method["isotonic_mean"].filter(seed=0)["brier"][0] == pytest.approx(brier)


NUMBER = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0, float("nan")])


@given(st.lists(NUMBER, min_size=6, max_size=6))
def test_what_goes_on_is_what_the_verdict_says_is_not_healthy(numbers):
    names = ("oracle_f1", "oracle_f1_best", "oracle_auc", "predicted_positive", "score_sd", "prevalence")
    metrics = dict(zip(names, numbers, strict=True))
    theirs = {"oracle_f1": "f1", "oracle_f1_best": "f1_best", "oracle_auc": "auc"}
    with jax.enable_x64(True):
        healthy = continuation.healthy({theirs.get(k, k): jnp.asarray(v) for k, v in metrics.items()})
    assert bool(healthy) == (str(collapse.epoch_verdicts(metrics)) == "healthy")


def test_looks_are_even_on_a_logarithmic_scale():
    times = continuation.looks(100, 1_000_000)
    assert (times[0], times[-1]) == (100, 1_000_000)
    assert np.diff(np.log(times)).max() < np.log(1.25)


def test_real_classifiers_see_no_label_that_is_not_known(monkeypatch):
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    kinds = [GaussianNB(), DecisionTreeClassifier(random_state=0)]
    monkeypatch.setattr(ratings, "KINDS", ("a", "b"))
    monkeypatch.setattr(ratings, "_models", lambda seed: kinds)
    c = RatingsConfig(source="classifiers", dataset="breast_cancer", rate=0.1)
    rated, y, labeled = ratings.classifiers(c, 0)
    assert rated.shape == (2, y.size)
    assert y.mean() == pytest.approx(0.1, abs=0.005)
    assert labeled.mean() == pytest.approx(0.5, abs=0.01)
    # a tree fitted on the labeled rows would be sure and right about them all, had they not been out of fold
    assert ((rated[1, labeled] > 0.5) != y[labeled]).any()
    with pytest.raises(ConfigError, match="ask for less"):
        ratings.classifiers(RatingsConfig(source="classifiers", dataset="breast_cancer", rate=0.9), 0)


BASE = {
    "data": {"name": "gaussians", "options": {"n": 300, "d": 2}},
    "methods": ["vpudra_softlabel"],
    "model": {"hidden": [4], "dropout": []},
    "training": {"epochs": 2, "batch_size": 64},
    "seeds": 3,
}


@pytest.mark.slow
def test_base_classifiers_are_trained_first_and_their_scores_are_the_ratings(tmp_path):
    two = {"ratings": {"source": "runs", "rate": None}, "base": BASE, "methods": ["mean"], "grid": {}, "seeds": 2}
    outcome = runs.run(experiment(**two), job, tmp_path)
    members, mean = (outcome.runs.filter(method=name) for name in ("vpudra_softlabel", "mean"))
    assert (members.height, mean.height) == (3, 2)
    assert set(outcome.runs["dataset"]) == {"gaussians"}
    kept = {run_id: runs.read_parameters(tmp_path, run_id) for run_id in members["run_id"]}
    asked = experiment(**two)
    run = job.runs(asked)[-1]
    made = base.rated(asked, asked.ratings, run, kept)
    source = data.load("gaussians", n=300, d=2)
    np.testing.assert_array_equal(made.labels, source.y)
    rows = data.prepare(asked.base.data, source, 1).rows
    layers = kept[members["run_id"][1]]["params"]
    x = (source.x - rows.mean) / rows.sd
    hidden = np.maximum(x @ layers["layer0"]["kernel"] + layers["layer0"]["bias"], 0)
    logits = (hidden @ layers["head"]["kernel"] + layers["head"]["bias"])[:, 0]
    np.testing.assert_allclose(made.ratings[1], 1 / (1 + np.exp(-logits)), rtol=1e-4)
    averaged, test = made.ratings.mean(0), ~made.labeled
    brier = ((averaged - made.labels)[test] ** 2).mean()
    assert mean.filter(seed=1)["brier"][0] == pytest.approx(brier, rel=1e-6)


def test_a_base_and_what_needs_it_come_together():
    with pytest.raises(ConfigError, match="base is missing"):
        experiment(ratings={"source": "runs"})
    with pytest.raises(ConfigError, match="base has no effect"):
        experiment(base=BASE)
