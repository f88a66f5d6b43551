"""PUClassifier and PUScorer: scikit-learn's own checks, and what positive-unlabeled rows ask beyond them."""

import warnings
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import jaxpu
from jaxpu import prior
from jaxpu.estimator import LabelWarning, PriorEstimator, PUClassifier, PUScorer

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


@pytest.mark.slow
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


WORDS = np.where(RNG.random((300, 6)) < np.where(Y, 0.6, 0.1)[:, None], 1.0, 0.0)


def test_sparse_rows_are_scored_as_dense_ones_where_the_base_takes_them():
    dense = PUClassifier(LogisticRegression(), random_state=0).fit(WORDS, S)
    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array):
        found = PUClassifier(LogisticRegression(), random_state=0).fit(kind(WORDS), S)
        np.testing.assert_allclose(found.predict_proba(kind(WORDS)), dense.predict_proba(WORDS), rtol=1e-6)
    fitted = jaxpu.fit(sparse.csr_array(WORDS), S, method=LogisticRegression(), seeds=1)
    np.testing.assert_allclose(fitted.decision_function(WORDS), fitted.decision_function(sparse.csr_array(WORDS)))
    default = jaxpu.fit(sparse.csr_array(WORDS), S, seeds=1)
    assert [name.partition(" ")[0] for name in default.auto.auc] == ["logistic"] * 3
    assert prior.auc(default.score[~S], Y[~S]) > 0.9
    linear = {"linear": LogisticRegression()}
    bbe = PriorEstimator(random_state=0).fit(sparse.csr_array(WORDS), S).prior_
    tice, same = (
        PriorEstimator("tice", candidates=linear, random_state=0, times=0).fit(x, S).prior_
        for x in (sparse.csr_array(WORDS), WORDS)
    )
    assert tice == same
    assert all(abs(share - Y[~S].mean()) < 0.15 for share in (bbe, tice))
    for rows, said in (
        (
            lambda: PUClassifier(HistGradientBoostingClassifier()).fit(sparse.csr_array(WORDS), S),
            "dense data is required",
        ),
        (lambda: jaxpu.fit(sparse.csr_array(WORDS), S, method="nnpu"), "networks take no sparse rows"),
        (lambda: jaxpu.fit(sparse.csr_array(WORDS * np.inf), S), "hold NaN or infinity"),
        (lambda: fitted.predict(sparse.csr_array(WORDS[:, 1:])), "expected rows of 6 columns, got 5"),
    ):
        with pytest.raises((TypeError, ValueError), match=said), np.errstate(invalid="ignore"):
            rows()


class Asking(ClassifierMixin, BaseEstimator):
    """A classifier that keeps what its fit was given."""

    given: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None, importance=None):
        self.given.append((X[:, 0], sample_weight, importance))
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        return X[:, 0]


def test_what_a_base_asks_for_is_routed_to_it():
    weight, importance = 1.0 + np.arange(300) % 3, X[:, 0] * 10
    with sklearn.config_context(enable_metadata_routing=True):
        Asking.given.clear()
        asking = Asking().set_fit_request(sample_weight=True, importance=True)
        found = PUClassifier(asking, random_state=0).fit(X, S, sample_weight=weight, importance=importance)
        assert found.fit_.share.n_labeled == weight[S].sum()
        assert len(Asking.given) == 5
        for first, its_weight, its_importance in Asking.given:
            rows = np.searchsorted(np.sort(X[:, 0]), first)
            np.testing.assert_array_equal(its_weight, weight[np.argsort(X[:, 0])[rows]])
            np.testing.assert_array_equal(its_importance, first * 10)
        Asking.given.clear()
        deaf = Asking().set_fit_request(sample_weight=False)
        PUClassifier(deaf, random_state=0).fit(X, S, sample_weight=weight)
        assert all(its_weight is None for _, its_weight, _ in Asking.given)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            PUClassifier(Asking(), random_state=0).fit(X, S, sample_weight=weight)
        with pytest.raises(TypeError, match="colour"):
            PUClassifier(asking, random_state=0).fit(X, S, colour=weight)

        seen = []

        class Weighed(PUScorer):
            def __call__(self, estimator, X, y, sample_weight=None):
                seen.append(sample_weight)
                return super().__call__(estimator, X, y, sample_weight)

        model = (
            PUClassifier(BASE, random_state=0)
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=False)
        )
        model.method.set_params(logisticregression=LogisticRegression().set_fit_request(sample_weight=True),
                                standardscaler=StandardScaler().set_fit_request(sample_weight=True))  # fmt: skip
        scorer = Weighed("auc").set_score_request(sample_weight=True)
        GridSearchCV(model, {"seeds": [1]}, scoring=scorer, cv=3, refit=False).fit(X, S, sample_weight=weight)
        assert sorted(np.concatenate(seen)) == sorted(weight)
        share = PriorEstimator(random_state=0).set_fit_request(sample_weight=True).fit(X, S, sample_weight=weight)
        assert share.counts_[0] == weight[S].sum()
    with pytest.raises(ValueError, match="takes no 'importance' without enable_metadata_routing"):
        PUClassifier(Asking()).fit(X, S, importance=importance)


@pytest.mark.slow
def test_frames_of_pandas_are_those_of_polars():
    pandas = pytest.importorskip("pandas")
    word = ["up" if v > 0 else None if k % 11 == 0 else "down" for k, v in enumerate(X[:, 1])]
    gap = [None if k % 9 == 0 else float(v) for k, v in enumerate(X[:, 0])]
    day = pl.Series(np.arange(300) % 40).cast(pl.Date)
    ours = pl.DataFrame({"a": gap, "b": word, "day": day, "n": np.arange(300) % 7, "t": Y & (np.arange(300) % 3 > 0)})
    theirs = pandas.DataFrame({
        "a": gap, "b": pandas.Series(word, dtype="category"), "day": pandas.to_datetime(day.cast(str).to_list()),
        "n": pandas.Series(np.arange(300) % 7, dtype="Int64"), "t": ours["t"].to_list(),
    })  # fmt: skip
    one, two = (jaxpu.fit(frame, S, seeds=1) for frame in (ours, theirs))
    np.testing.assert_array_equal(one.score, two.score)
    np.testing.assert_array_equal(one.predict_proba(ours), one.predict_proba(theirs))
    assert [c.kind for c in one.table.schema.columns] == [c.kind for c in two.table.schema.columns]
    numbers = pandas.DataFrame(X, columns=["a", "b"])
    models = [PUClassifier(BASE, random_state=0).fit(rows, y) for rows, y in ((numbers, pandas.Series(S)), (X, S))]
    np.testing.assert_array_equal(models[0].predict_proba(numbers), models[1].predict_proba(X))
    assert models[0].feature_names_in_.tolist() == ["a", "b"]
    assert PriorEstimator(random_state=0).fit(numbers, S).prior_ == PriorEstimator(random_state=0).fit(X, S).prior_
