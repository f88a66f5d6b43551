"""CFEnsembleClassifier: scikit-learn's own checks, and what an ensemble must do beyond them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from jaxpu import ensemble
from jaxpu.estimator.ensemble import _ALS, _CONFIDENCE, _JOINT, CFEnsembleClassifier

# Programs are compiled for a number of iterations: all tests ask for the same.
ITERATIONS = 20


def classifier(*arguments, **options):
    return CFEnsembleClassifier(*arguments, iterations=ITERATIONS, random_state=0, **options)


OUTSIDE = [
    "check_estimators_overwrite_params",
    "check_dont_overwrite_parameters",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_estimators_dtypes",
    "check_pipeline_consistency",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_classifiers_train",
    "check_decision_proba_consistency",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit2d_1feature",
    "check_dict_unchanged",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_n_features_in",
    "check_fit2d_predict1d",
]
"""Checks that draw features outside [0, 1], which are no base probabilities."""


def expected_failures(estimator):
    why = "draws features outside [0, 1], and the default link takes probabilities"
    return dict.fromkeys(OUTSIDE, why) if estimator.link == "probability" else {}


@parametrize_with_checks(
    [classifier(link="sigmoid"), classifier()], expected_failed_checks=expected_failures, xfail_strict=True
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def drawn():
    return jax.device_get(ensemble.synthetic_ratings(jax.random.key(2), n=200, m=10, rate=0.15))


SEEN = np.arange(200) < 100


def test_missing_labels_by_nan_and_by_a_value(drawn):
    y = drawn.labels.astype(float)
    by_nan = classifier().fit(drawn.ratings.T, np.where(SEEN, y, np.nan))
    by_value = classifier(missing=-1).fit(drawn.ratings.T, np.where(SEEN, y, -1).astype(int))
    np.testing.assert_array_equal(by_nan.label_distributions_, by_value.label_distributions_)
    assert (by_nan.transduction_[~SEEN] == y[~SEEN]).mean() > 0.95


def test_induction_is_transduction_where_no_label_was_known(drawn):
    model = classifier().fit(drawn.ratings.T, np.where(SEEN, drawn.labels, np.nan))
    p = model.predict_proba(drawn.ratings.T[~SEEN])
    np.testing.assert_allclose(p, model.label_distributions_[~SEEN], rtol=1e-9)


@pytest.mark.parametrize(
    "options", [{"newton": False, "lr": 0.1, "confidence": "adaptive"}, {}, {"trainer": "joint", "lr": 0.05}], ids=str
)
def test_padding_changes_nothing(options, drawn):
    model = classifier(**options).fit(drawn.ratings.T[:, :6], np.where(SEEN, drawn.labels, np.nan))
    seed = np.random.RandomState(0).randint(2**31 - 1)
    with jax.enable_x64(True):
        r, labels, known = jnp.asarray(drawn.ratings[:6], float), jnp.asarray(drawn.labels, int), jnp.asarray(SEEN)
        c = _CONFIDENCE(options.get("confidence", "label_aware"), r, labels, known)
        start = ensemble.start_factors(jax.random.key(seed), (16, 256), 15, dtype=r.dtype)
        start = ensemble.Factors(start.x[:, :6], start.y[:, :200])
        step = ensemble.Step(lr=options.get("lr", 1.0), newton=float(options.get("newton", True)))
        trained = {"als": functools.partial(_ALS, newton=True), "joint": _JOINT}[model.trainer]
        fit = trained(start, r, c, labels, known, iterations=ITERATIONS, step=step, rho=0.5, ridge=0.01)
    np.testing.assert_allclose(model.aggregator_.w, fit.aggregator.w, rtol=1e-9)
    np.testing.assert_allclose(model.aggregator_.b, fit.aggregator.b, rtol=1e-9)


def test_fitted_classifiers_and_their_features():
    x, y = make_classification(300, 6, random_state=0)
    models = [LogisticRegression().fit(x[:100], y[:100]), GaussianNB().fit(x[:100], y[:100])]
    model = classifier(models).fit(x[100:200], y[100:200])
    assert model.n_features_in_ == 6
    ratings = np.stack([m.predict_proba(x[100:200])[:, 1] for m in models], axis=1)
    alone = classifier().fit(ratings, y[100:200])
    np.testing.assert_array_equal(model.label_distributions_, alone.label_distributions_)
    assert model.score(x[200:], y[200:]) > 0.8


def test_what_cannot_be_fitted_is_said(drawn):
    x, y = drawn.ratings.T, drawn.labels
    with pytest.raises(ValueError, match=r"in \[0, 1\]; got values from .* pass link='sigmoid'"):
        CFEnsembleClassifier().fit(x * 3, y)
    with pytest.raises(ValueError, match="trainer is 'sgd', expected one of als, joint"):
        CFEnsembleClassifier(trainer="sgd").fit(x, y)
    with pytest.raises(ValueError, match="two classes"):
        CFEnsembleClassifier().fit(x, np.full(200, np.nan))


class Fixed:
    """A base classifier of given classes and probabilities."""

    def __init__(self, p, classes):
        self.p, self.classes_ = np.asarray(p), np.asarray(classes)

    def predict_proba(self, x):
        return self.p[: len(x)]


def test_base_classifiers_of_other_classes_or_with_nan_are_named(drawn):
    x, y = drawn.ratings.T, drawn.labels
    good = np.stack([1 - x[:, 0], x[:, 0]], axis=1)
    holes = good.copy()
    holes[7] = np.nan
    for bad, message in (
        (Fixed(good[:, :1], [0]), r"estimators\[1\] knows the classes \[0\]"),
        (Fixed(np.full((200, 3), 1 / 3), [0, 1, 2]), r"estimators\[1\] knows the classes \[0, 1, 2\]"),
        (Fixed(good, ["P", "U"]), r"expected the classes \[0, 1\]"),
        (Fixed(holes, [0, 1]), r"estimators\[1\] gives NaN or infinite probabilities, first for row 7"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier([Fixed(good, [0, 1]), bad]).fit(x, y)
    with pytest.raises(ValueError, match="estimators is empty"):
        classifier([]).fit(x, y)
    with pytest.raises(ValueError, match="estimators give probabilities"):
        classifier([Fixed(good, [0, 1])], link="sigmoid").fit(x, y)


def test_the_positive_class_is_the_last_or_the_one_that_is_named(drawn):
    x, y = drawn.ratings.T, drawn.labels
    by_number = classifier().fit(x, y)
    words = np.where(y == 1, "P", "U")
    by_name = classifier(positive="P").fit(x, words)
    assert (by_number.positive_, by_name.positive_) == (1, "P")
    assert by_name.classes_.tolist() == ["P", "U"]
    np.testing.assert_allclose(by_name.predict_proba(x)[:, 0], by_number.predict_proba(x)[:, 1])
    np.testing.assert_allclose(by_name.label_distributions_[:, 0], by_number.label_distributions_[:, 1])
    np.testing.assert_allclose(by_name.decision_function(x), -by_number.decision_function(x))
    np.testing.assert_array_equal(by_name.predict(x) == "P", by_number.predict(x) == 1)
    np.testing.assert_array_equal(by_name.transduction_ == "P", by_number.transduction_ == 1)
    models = [Fixed(np.stack([x[:, k], 1 - x[:, k]], axis=1), ["P", "U"]) for k in range(x.shape[1])]
    based = classifier(models, positive="P").fit(x, words)
    np.testing.assert_allclose(based.predict_proba(x), by_name.predict_proba(x))
    with pytest.raises(ValueError, match=r"positive is 'Q', expected one of the labels \['P', 'U'\]"):
        classifier(positive="Q").fit(x, words)


def test_labels_of_python_objects(drawn):
    x, y = drawn.ratings.T, drawn.labels
    reference = classifier().fit(x, np.where(SEEN, y, np.nan))
    for labels in (
        np.array([int(v) if seen else None for v, seen in zip(y, SEEN, strict=True)], object),
        np.array([float(v) if seen else float("nan") for v, seen in zip(y, SEEN, strict=True)], object),
        np.array([("b" if v else "a") if seen else None for v, seen in zip(y, SEEN, strict=True)], object),
    ):
        model = classifier().fit(x, labels)
        np.testing.assert_array_equal(model.label_distributions_, reference.label_distributions_)
    with pytest.raises(ValueError, match="labels are of kind number and str"):
        classifier().fit(x, np.array([1, "a"] * 100, object))
    with pytest.raises(ValueError, match="two classes"):
        classifier().fit(x, np.array([None] * 200, object))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("ridge", (-1, 0, np.nan, "1", True, np.inf)),
        ("iterations", (0, -3, 2.5, True, None)),
        ("dim", (0, 1.5)),
        ("lr", (-1, 0, np.float32("nan"))),
        ("rho", (-0.1, 1.1)),
        ("alpha", (-1,)),
        ("class_weights", (-1,)),
        ("focal", (-1, None)),
        ("confidence", ("none such", 3)),
        ("link", ("probit", None)),
    ],
)
def test_options_are_held_to_their_ranges(name, wrong, drawn):
    for value in wrong:
        with pytest.raises(ValueError, match=f"{name} is .*, expected "):
            CFEnsembleClassifier(**{name: value}).fit(drawn.ratings.T, drawn.labels)
