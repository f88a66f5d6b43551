"""CFEnsembleClassifier: scikit-learn's own checks, and what an ensemble must do beyond them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from jaxpu import ensemble
from jaxpu.estimator import CFEnsembleClassifier


@parametrize_with_checks([CFEnsembleClassifier(link="sigmoid", iterations=20, random_state=0)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def drawn():
    keys = jax.random.split(jax.random.key(2), 1)
    return jax.device_get(ensemble.synthetic_ratings(keys[0], n=240, m=8, rate=0.15))


def test_missing_labels_by_nan_and_by_a_value(drawn):
    y = drawn.labels.astype(float)
    seen = np.arange(240) < 120
    by_nan = CFEnsembleClassifier(random_state=0).fit(drawn.ratings.T, np.where(seen, y, np.nan))
    by_value = CFEnsembleClassifier(random_state=0, missing=-1).fit(drawn.ratings.T, np.where(seen, y, -1).astype(int))
    np.testing.assert_array_equal(by_nan.label_distributions_, by_value.label_distributions_)
    assert (by_nan.transduction_[~seen] == y[~seen]).mean() > 0.95


def test_induction_agrees_with_transduction_where_no_label_was_known(drawn):
    y = np.where(np.arange(240) < 120, drawn.labels, np.nan)
    model = CFEnsembleClassifier(random_state=0, iterations=200).fit(drawn.ratings.T, y)
    p = model.predict_proba(drawn.ratings.T[120:])
    np.testing.assert_allclose(p, model.label_distributions_[120:], atol=2e-3)


def test_padding_changes_nothing(drawn):
    y = np.where(np.arange(240) < 120, drawn.labels, np.nan)
    options = {"random_state": 0, "newton": False, "lr": 0.1, "iterations": 20, "confidence": "adaptive"}
    model = CFEnsembleClassifier(**options).fit(drawn.ratings.T[:, :6], y)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    with jax.enable_x64(True):
        r, known = jnp.asarray(drawn.ratings[:6], float), jnp.arange(240) < 120
        labels = jnp.asarray(drawn.labels, int)
        c = ensemble.confidence("adaptive", r, labels, known)
        start = ensemble.start_factors(jax.random.key(seed), (16, 256), 15, dtype=r.dtype)
        start = ensemble.Factors(start.x[:, :6], start.y[:, :240])
        fit = ensemble.fit_als(start, r, c, labels, known, iterations=20, step=ensemble.Step(lr=0.1))
    np.testing.assert_allclose(model.aggregator_.w, fit.aggregator.w, rtol=1e-9)
    np.testing.assert_allclose(model.aggregator_.b, fit.aggregator.b, rtol=1e-9)


def test_fitted_classifiers_and_their_features():
    x, y = make_classification(300, 6, random_state=0)
    models = [LogisticRegression().fit(x[:100], y[:100]), GaussianNB().fit(x[:100], y[:100])]
    model = CFEnsembleClassifier(models, random_state=0).fit(x[100:200], y[100:200])
    assert model.n_features_in_ == 6
    ratings = np.stack([m.predict_proba(x[100:200])[:, 1] for m in models], axis=1)
    alone = CFEnsembleClassifier(random_state=0).fit(ratings, y[100:200])
    np.testing.assert_array_equal(model.label_distributions_, alone.label_distributions_)
    assert model.score(x[200:], y[200:]) > 0.8


def test_what_cannot_be_fitted_is_said(drawn):
    x, y = drawn.ratings.T, drawn.labels
    with pytest.raises(ValueError, match=r"in \[0, 1\]; got values from .* pass link='sigmoid'"):
        CFEnsembleClassifier().fit(x * 3, y)
    with pytest.raises(ValueError, match="trainer is 'sgd', expected one of als, joint"):
        CFEnsembleClassifier(trainer="sgd").fit(x, y)
    with pytest.raises(ValueError, match="two classes"):
        CFEnsembleClassifier().fit(x, np.full(240, np.nan))
