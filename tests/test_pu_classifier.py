"""PUClassifier and PUScorer: scikit-learn's own checks, and what positive-unlabeled rows ask beyond them."""

import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from jaxpu import prior
from jaxpu.estimator import LabelWarning, PUClassifier, PUScorer

BASE = make_pipeline(StandardScaler(), LogisticRegression(C=0.3))
RNG = np.random.default_rng(0)
Y = np.arange(300) < 120
X = RNG.normal(np.where(Y, 2.0, -2.0)[:, None], size=(300, 2))
S = Y & (RNG.random(300) < 0.5)


@pytest.mark.filterwarnings("ignore::jaxpu.estimator.LabelWarning")
@parametrize_with_checks([PUClassifier(BASE, random_state=0)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaxpu.estimator.LabelWarning")
@parametrize_with_checks([PUClassifier(random_state=0)])
def test_scikit_learns_checks_of_the_default(estimator, check):
    check(estimator)


def test_five_codings_of_labels():
    words = np.where(S, "positive", "unlabeled")
    ways = [S, S.astype(int), 2 * S.astype(int) - 1, S.astype(float)]
    found = [PUClassifier(BASE, random_state=0).fit(X, y) for y in ways]
    found.append(PUClassifier(BASE, pos_label="positive", random_state=0).fit(X, words))
    p = found[0].predict_proba(X)[:, 1]
    assert ((p > 0.5) == Y).mean() > 0.95
    for model in found[:4]:
        np.testing.assert_array_equal(model.predict_proba(X)[:, 1], p)
    np.testing.assert_allclose(found[4].predict_proba(X)[:, 0], p)
    assert found[4].classes_.tolist() == ["positive", "unlabeled"]
    np.testing.assert_array_equal(found[4].predict(X) == "positive", p > 0.5)
    np.testing.assert_array_equal(found[4].decision_function(X) > 0, p < 0.5)
    with pytest.warns(LabelWarning, match="say with pos_label which of them means labeled; .*'unlabeled'.* was taken"):
        assert PUClassifier(BASE, random_state=0).fit(X, words).positive_ == "unlabeled"


def test_probabilities_are_those_of_the_scenario():
    one = PUClassifier(BASE, prior=0.25, random_state=0).fit(X, S)
    two = PUClassifier(BASE, prior=0.25, scenario="case_control", random_state=0).fit(X, S)
    assert abs(one.predict_proba(X)[:, 1].mean() - Y.mean()) < 0.05
    assert abs(two.predict_proba(X[~S])[:, 1].mean() - Y[~S].mean()) < 0.05
    assert one.prior_ == 0.25
    estimated = PUClassifier(BASE, random_state=0).fit(X, S)
    assert abs(estimated.prior_ - Y[~S].mean()) < 0.06
    assert estimated.interval_[0] < Y[~S].mean() < estimated.interval_[1]


def test_frames_with_strings_and_gaps_without_a_warning():
    columns = {
        "a": [None if k % 9 == 0 else v for k, v in enumerate(X[:, 0])],
        "b": np.where(X[:, 1] > 0, "up", "down"),
    }
    frame = pl.DataFrame({**columns, "day": pl.Series(np.arange(300) % 40).cast(pl.Date)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PUClassifier(random_state=0).fit(frame, S)
        unseen = frame.with_columns(pl.lit("sideways").alias("b"))
        p = model.predict_proba(unseen)
    assert model.fit_.scorer.detail == "Elkan-Noto-weighted boosting"
    assert ((model.predict(frame) == 1) == Y).mean() > 0.85
    assert np.isfinite(p).all()


def test_weights_are_frequencies():
    weight = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
    found = PUClassifier(BASE, random_state=0).fit(X, S, sample_weight=weight)
    assert found.fit_.share.n_labeled == weight[S].sum()
    none = np.where(np.arange(300) < 280, 1.0, 0.0)
    other = np.where(np.arange(300)[:, None] < 280, X, 1e3)
    split = [(np.flatnonzero(np.arange(300) % 3 != k), np.flatnonzero(np.arange(300) % 3 == k)) for k in range(3)]
    one, two = (PUClassifier(BASE, cv=split, random_state=0).fit(rows, S, none) for rows in (X, other))
    assert one.prior_ == two.prior_
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X))


def test_of_several_classifiers_by_name_one_is_chosen():
    x = np.random.default_rng(0).normal(np.where(np.arange(90) < 30, 3.0, 0.0)[:, None], size=(90, 1))
    models = {"flat": DummyClassifier(), "linear": LogisticRegression()}
    found = PUClassifier(models, random_state=0).fit(x, np.arange(90) < 15)
    assert found.fit_.auto.chosen == "linear"
    with pytest.raises(ValueError, match="NaN"):
        found.fit(np.where(x > 4, np.nan, x), np.arange(90) < 15)


def test_scorers_choose_without_true_labels():
    search = GridSearchCV(PUClassifier(BASE, random_state=0), {"method__logisticregression__C": [1e-3, 0.3]},
                          scoring=PUScorer("lee_liu"), cv=3).fit(X, S)  # fmt: skip
    assert search.best_score_ > 1
    model = search.best_estimator_
    z = model.decision_function(X)
    assert PUScorer("auc")(model, X, S) == pytest.approx(prior.auc(z, S))
    assert PUScorer("auc", prior=0.25)(model, X, S) == pytest.approx((prior.auc(z, S) - 0.125) / 0.75)
    predicted = model.predict(X)
    recall, selected = predicted[S].mean(), predicted[~S].mean()
    assert PUScorer("f1", prior=0.25)(model, X, S) == pytest.approx(
        2 * min(0.25 * recall, selected) / (0.25 + selected)
    )
    assert PUScorer("f1")(model, X, S) > 0.9
    with pytest.raises(ValueError, match="measure is 'mcc'"):
        PUScorer("mcc")  # type: ignore[arg-type]  # a name that is none is the point


def test_networks_of_a_method():
    settings = {"model": "linear", "epochs": 6, "lr": 0.1, "batch_size": 32, "validation": [0.2]}
    model = PUClassifier("nnpu", prior=0.25, seeds=2, settings=settings).fit(X, S)
    assert (model.predict(X) == Y).mean() > 0.9
    with pytest.raises(ValueError, match="take no sample_weight"):
        PUClassifier("nnpu", prior=0.25, settings=settings).fit(X, S, sample_weight=np.ones(300))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prior": "guess"}, "expected 'estimate' or a share"),
        ({"prior": 1.5}, "expected 'estimate' or a share"),
        ({"scenario": "both"}, "expected one of single_set, case_control"),
        ({"method": "nnpo"}, "did you mean 'nnpu'"),
    ],
)
def test_what_does_not_fit_is_said(options, said):
    with pytest.raises(ValueError, match=said):
        PUClassifier(**options).fit(X, S)
