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
from jaxpu.estimator import _ALS, _CONFIDENCE, _JOINT, CFEnsembleClassifier

# Programs are compiled for a number of iterations: all tests ask for the same.
ITERATIONS = 20


def classifier(*arguments, **options):
    return CFEnsembleClassifier(*arguments, iterations=ITERATIONS, random_state=0, **options)


@parametrize_with_checks([classifier(link="sigmoid")])
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
