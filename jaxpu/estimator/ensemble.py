"""scikit-learn's interface to ensembles: ``CFEnsembleClassifier``."""

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, check_random_state, validate_data

from jaxpu import ensemble
from jaxpu.ensemble import als, inputs, trainers


class CFEnsembleClassifier(ClassifierMixin, BaseEstimator):
    """Aggregate base classifiers by weighted matrix factorisation, with few labels; binary.

    Args:
        estimators: fitted classifiers with ``predict_proba``; ``fit`` and ``predict`` then take their features. None: X
            is the matrix of base probabilities of the positive class itself, (n_samples, n_classifiers).
        link: ``"probability"`` if base scores are in [0, 1], ``"sigmoid"`` to put decision values through a sigmoid.
        trainer: ``"als"`` or ``"joint"``. dim, ridge, rho, iterations, lr, confidence, alpha: as in
            :func:`jaxpu.ensemble.fit_als` and :func:`jaxpu.ensemble.confidence`.
        class_weights, focal: strength of the class weights and focal exponent (:class:`jaxpu.ensemble.Step`).
        newton: damped Newton steps for the aggregator, lr being their size; with gradient descent (False) and too
            few iterations the ranking can end inverted on imbalanced data, see results/cf_ensemble.
        missing: the value of y that says "not known"; None: NaN, and None or NA in y of Python objects.
        positive: the class whose probabilities the base scores are; None: the last in order, ``classes_[1]``: 1 of 0
            and 1, but "U" of "P" and "U".
        random_state: of the factors' start.

    Attributes:
        classes_: the two classes, sorted. positive_: the positive one. n_features_in_: of X.
        factors_, aggregator_: as fitted.
        label_distributions_: probabilities of the training instances (n_samples, 2), labeled or not.
        transduction_: the classes that go with them.

    It passes scikit-learn's ``check_estimator`` with ``link="sigmoid"``. With the default link it fails those checks
    that draw features outside [0, 1], which are refused; tests/test_estimator.py lists them.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> y = (np.arange(200) % 10 == 0).astype(float)
        >>> probabilities = 0.3 + 0.3 * y[:, None] + 0.1 * rng.normal(size=(200, 8))
        >>> seen = np.where(np.arange(200) < 100, y, np.nan)  # half of the labels are missing
        >>> model = CFEnsembleClassifier(random_state=0).fit(probabilities.clip(0, 1), seen)
        >>> bool((model.transduction_[100:] == y[100:]).mean() > 0.97)
        True
    """

    def __init__(
        self,
        estimators: Sequence[Any] | None = None,
        *,
        link: str = "probability",
        trainer: str = "als",
        dim: int = 15,
        ridge: float = 0.01,
        rho: float = 0.5,
        iterations: int = 100,
        lr: float = 1.0,
        confidence: str = "label_aware",
        alpha: float = 1.0,
        class_weights: float = 0.0,
        focal: float = 0.0,
        newton: bool = True,
        missing: Any = None,
        positive: Any = None,
        random_state: Any = None,
    ):
        self.estimators = estimators
        self.link = link
        self.trainer = trainer
        self.dim = dim
        self.ridge = ridge
        self.rho = rho
        self.iterations = iterations
        self.lr = lr
        self.confidence = confidence
        self.alpha = alpha
        self.class_weights = class_weights
        self.focal = focal
        self.newton = newton
        self.missing = missing
        self.positive = positive
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "CFEnsembleClassifier":
        """Fit factors and aggregator.

        Args:
            X: base probabilities (n_samples, n_classifiers), or with ``estimators`` their features. y: (n_samples,).

        Raises:
            ValueError: base scores outside [0, 1] or not finite, a base classifier of other classes, other than two
                classes among the known labels, an unknown name, a number out of its range.
        """
        inputs.check_options(self)
        X, y = self._validated(X, y)
        labels, known = self._encoded(y)
        ratings = self._ratings(X)
        m, n = ratings.shape
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        with jax.enable_x64(True):
            r, c, y, known_ = self._padded(ratings, labels, known)
            fit = self._trained(r, c, y, known_, m, seed)
            self.factors_ = jax.device_get(ensemble.Factors(fit.factors.x[:, :m], fit.factors.y[:, :n]))
            self.aggregator_ = jax.tree.map(lambda a: np.asarray(a)[:m] if a.ndim else float(a), fit.aggregator)
            # host arrays: pickled ones of a device would come back in float32
            self._fit, self._training = jax.device_get(fit), (ratings, labels, known)
            self.label_distributions_ = _two_columns(self._sign * np.asarray(fit.logits)[:n])
        self.transduction_ = self.classes_[np.argmax(self.label_distributions_, axis=1)]
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits of ``classes_[1]`` of new instances, by induction: their factors are solved, the classifiers' stay."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        ratings, (old, labels, known) = self._ratings(X), self._training
        together = np.concatenate([old, ratings], axis=1)  # some confidences look at all instances
        more = np.zeros(ratings.shape[1], int)
        with jax.enable_x64(True):
            r, c, *_ = self._padded(together, np.append(labels, more), np.append(known, more))
            logits = _INDUCE(self._fit.factors.x, self._fit.aggregator, r, c, self.ridge)
            return self._sign * np.asarray(logits)[old.shape[1] : together.shape[1]]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of both classes, (n_samples, 2)."""
        return _two_columns(self.decision_function(X))

    def predict(self, X: Any) -> np.ndarray:
        """The class whose probability is above one half."""
        z = self.decision_function(X)
        return self.classes_[(z > 0).astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: labels, with NaN where one is missing")
        options: dict[str, Any] = {"dtype": None, "ensure_all_finite": "allow-nan", "input_name": "y"}
        y = check_array(y, ensure_2d=False, **options)
        if y.ndim == 2 and y.shape[1] == 1:
            warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, 2)
            y = y.ravel()
        if y.shape != (X.shape[0],):
            raise ValueError(f"inconsistent numbers of samples: X has {X.shape[0]}, y has shape {y.shape}")
        return X, y

    def _encoded(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Labels as 1 = positive and 0, and which are known."""
        known, labels = inputs.known_labels(y, self.missing)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        self.positive_ = inputs.positive_class(self.classes_, self.positive)
        self._sign = 1 if self.positive_ == self.classes_[1] else -1
        found = np.zeros(y.size, int)
        found[known] = labels == self.positive_
        return found, known

    def _ratings(self, X: np.ndarray) -> np.ndarray:
        """Base probabilities of the positive class (m, n)."""
        scores = X
        if self.estimators is not None:
            scores = inputs.base_scores(self.estimators, X, self.classes_, self.positive_)
        if self.link == "sigmoid":
            return np.asarray(jax.nn.sigmoid(scores)).astype(np.float64).T
        if scores.min() < 0 or scores.max() > 1:
            raise ValueError(
                f"expected base probabilities in [0, 1]; got values from {scores.min():.3g} to {scores.max():.3g}: "
                "pass link='sigmoid' for decision values"
            )
        return scores.T

    def _padded(self, ratings: np.ndarray, labels: np.ndarray, known: np.ndarray) -> tuple[jax.Array, ...]:
        """Ratings, confidence, labels and mask at sizes that are powers of two: few sizes are few compilations.

        Padding has no confidence: nothing is solved for it, and nothing by it.
        """
        m, n = ratings.shape
        rows, columns = _size(m, SIZES[0]), _size(n, SIZES[1])
        y, k = (np.concatenate([a, np.zeros(columns - n, a.dtype)]) for a in (labels, known))
        wide = np.concatenate([ratings, np.full((m, columns - n), 0.5)], axis=1)
        c = np.array(_CONFIDENCE(self.confidence, wide, y, k, alpha=self.alpha))
        c[:, n:] = 0
        below = np.zeros((rows - m, columns))
        return tuple(map(jnp.asarray, (np.concatenate([wide, below]), np.concatenate([c, below]), y, k)))

    def _trained(
        self, ratings: jax.Array, c: jax.Array, labels: jax.Array, known: jax.Array, m: int, seed: int
    ) -> trainers.Fit:
        newton = float(self.newton)
        step = ensemble.Step(lr=self.lr, class_weights=self.class_weights, focal=self.focal, newton=newton)
        start = als.start_factors(jax.random.key(seed), ratings.shape, self.dim, dtype=ratings.dtype)
        # padded classifiers start at x = 0 and w = 0, where they have no gradient, and stay there
        real = np.arange(ratings.shape[0]) < m
        start = start._replace(x=jnp.where(real[None, :], start.x, 0))
        aggregator = ensemble.Aggregator(jnp.asarray(real / m), jnp.asarray(0.0), jnp.zeros(real.size))
        options: dict[str, Any] = {"iterations": self.iterations, "rho": self.rho, "ridge": self.ridge}
        options |= {"aggregator": aggregator, "step": step}
        if self.trainer == "als":
            return _ALS(start, ratings, c, labels, known, newton=True, **options)  # step.newton says whether
        return _JOINT(start, ratings, c, labels, known, **options)


SIZES = (16, 256)
"""Least numbers of classifiers and instances that programs are compiled for."""


def _induce(
    x: jax.Array, aggregator: ensemble.Aggregator, ratings: jax.Array, confidence: jax.Array, ridge: float
) -> jax.Array:
    return ensemble.aggregate(aggregator, als.fold_in(x, ratings, confidence, ridge=ridge))


_ALS = jax.jit(trainers.fit_als, static_argnames=("iterations", "newton"))
_JOINT = jax.jit(trainers.fit_joint, static_argnames=("iterations",))
_CONFIDENCE = jax.jit(ensemble.confidence, static_argnums=0)
_INDUCE = jax.jit(_induce)


def _size(k: int, at_least: int) -> int:
    return max(at_least, 1 << (k - 1).bit_length())


def _two_columns(logits: np.ndarray) -> np.ndarray:
    p = 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
    return np.stack([1 - p, p], axis=1)
