"""scikit-learn's interface to positive-unlabeled learning: ``PUClassifier``, and scorers that need no true label."""

from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_random_state, validate_data

from jaxpu import own, prior
from jaxpu.data.features import is_frame
from jaxpu.estimator.labels import labels_of
from jaxpu.fitted import of_table
from jaxpu.tables import columns_of, of_columns
from jaxpu.tables.auto import fit_auto

BLEND = 1e-3
"""Share of uncalibrated odds in probabilities: calibration makes ties, and so little keeps the order of rows."""


class PUClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of positive against negative rows, learned from labeled positives and unlabeled rows.

    Args:
        method: "auto": the default of :func:`jaxpu.fit`; any scikit-learn classifier, fitted to P against U, or a
            mapping of several by name; or the name of a method of jaxpu, which trains networks.
        prior: the share of positives among the unlabeled rows, or "estimate".
        scenario: "single_set": the labeled rows are some of the positives of one sample, and ``predict_proba`` is
            P(y = 1 | x) in it; "case_control": U is a sample of the population, and it is P(y = 1 | x) there.
        pos_label: the value of y that means labeled; None: the larger of two numbers, True, or, with a warning, of two
            words the later in order.
        cv: folds of the cross-fitting, or a list of splits. seeds: cross-fittings with other folds, or networks.
        settings: of networks, as :func:`jaxpu.fit` takes them; or None. random_state: of folds and boosting.

    Attributes:
        classes_: the two values of y. positive_: the one that means labeled, and is predicted for positive rows.
        fit_: what :func:`jaxpu.fit` gives: scores of the training rows by what has not seen them, and more.
        prior_, interval_: the share of positives among the unlabeled rows. threshold_: of ``fit_``'s scores, for F1.

    ``score`` compares with the y that it is given, which are no true labels; :class:`PUScorer` needs none.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> y = np.arange(600) < 200
        >>> X = rng.normal(np.where(y, 2.0, -2.0)[:, None], size=(600, 2))
        >>> from sklearn.linear_model import LogisticRegression
        >>> model = PUClassifier(LogisticRegression(C=0.1), random_state=0).fit(X, y & (rng.random(600) < 0.4))
        >>> bool((model.predict(X) == y).mean() > 0.95)
        True
    """

    def __init__(
        self,
        method: Any = "auto",
        *,
        prior: Any = "estimate",
        scenario: Literal["single_set", "case_control"] = "single_set",
        pos_label: Any = None,
        cv: Any = 5,
        seeds: int = 1,
        settings: Any = None,
        random_state: Any = None,
    ):
        self.method = method
        self.prior = prior
        self.scenario = scenario
        self.pos_label = pos_label
        self.cv = cv
        self.seeds = seeds
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PUClassifier":
        """Fit to rows X, numbers (n_samples, n_features) or a data frame, of which y says which are labeled.

        Args:
            X: NaN is a gap; a data frame may hold strings and dates. y: two values, see ``pos_label``.
            sample_weight: how often each row counts; not for networks.

        Raises:
            ValueError: an unknown name, y is not of two classes, or fewer than two rows are labeled or unlabeled.
        """
        self._check_options()
        frame = is_frame(X)
        checked = validate_data(self, X, skip_check_array=True) if frame else self._array(X, reset=True)
        n = len(checked)
        self.classes_, self.positive_, labeled = labels_of(y, n, self.pos_label, guess=True)
        table = of_columns(columns_of(checked), labeled, named=frame)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        given = None if isinstance(self.prior, str) else float(self.prior)
        if own.is_auto(self.method):
            weight = (
                None if sample_weight is None else _check_sample_weight(sample_weight, np.empty(n), dtype=np.float64)
            )
            if weight is not None and len(np.unique(labeled[weight > 0])) < 2:
                raise ValueError("y is of one class among the rows with a weight, expected labeled and unlabeled rows")
            models = own.models_of(self.method)
            cv = int(self.cv) if isinstance(self.cv, int | np.integer) else list(self.cv)
            found = fit_auto(
                table, given=given, models=models, seeds=self.seeds, cv=cv, random_state=seed, weight=weight
            )
            self.fit_: Any = of_table(table, found)
        else:
            from jaxpu import api

            if sample_weight is not None:
                raise ValueError("networks take no sample_weight; leave it out, or take another method")
            options: dict[str, Any] = {**(self.settings or {}), "scenario": self.scenario}
            self.fit_ = api.fit(table, method=self.method, prior=given, seeds=self.seeds, **options)
        share = self.fit_.share
        self.prior_, self.interval_, self.threshold_ = share.value, (share.low, share.high), self.fit_.threshold
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Log odds of positive (n_samples,); of ``classes_[1]``, whichever it is."""
        p = self._probability(X)
        return logit(p) if self.positive_ == self.classes_[1] else -logit(p)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of ``classes_`` (n_samples, 2), in the population that ``scenario`` says."""
        p = self._probability(X)
        columns = (1 - p, p) if self.positive_ == self.classes_[1] else (p, 1 - p)
        return np.stack(columns, axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of each row."""
        check_is_fitted(self)
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]

    def _probability(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if is_frame(X):
            validate_data(self, X, reset=False, skip_check_array=True)
        else:
            X = self._array(X, reset=False)
        z = self.fit_.scorer.score(self.fit_.decision_function(X))
        of: Any = "population" if self.scenario == "single_set" else "unlabeled"
        p = np.clip(self.fit_.scorer.probability(z, of), 0, 1)
        return np.clip((1 - BLEND) * p + BLEND * expit(z / 8), 1e-12, 1 - 1e-12)

    def _array(self, X: Any, *, reset: bool) -> np.ndarray:
        finite: Any = "allow-nan" if self._takes_gaps() else True
        options: dict[str, Any] = {"ensure_all_finite": finite, "dtype": np.float64}
        return np.asarray(validate_data(self, X, reset=reset, ensure_min_samples=2 if reset else 1, **options))

    def _takes_gaps(self) -> bool:
        models = (own.models_of(self.method) if own.is_auto(self.method) else None) or {}
        return all(get_tags(model).input_tags.allow_nan for model in models.values())

    def _check_options(self) -> None:
        if self.scenario not in prior.SCENARIOS:
            raise ValueError(f"scenario is {self.scenario!r}, expected one of {', '.join(prior.SCENARIOS)}")
        told = self.prior
        if not (told == "estimate" or (isinstance(told, int | float | np.number) and 0 < told < 1)):
            raise ValueError(f"prior is {told!r}, expected 'estimate' or a share strictly between 0 and 1")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.input_tags.allow_nan = self._takes_gaps()
        return tags


class PUScorer:
    """Scores an estimator by labeled and unlabeled rows alone: for ``scoring=`` of GridSearchCV and its kin.

    Args:
        measure: "auc", (AUC_PU − π/2) / (1 − π) with a given prior and AUC of P against U without; "f1",
            2 min(π R, Pr) / (π + Pr) of what is predicted positive; "lee_liu", R² / Pr.
        prior: π, the share of positives among the unlabeled rows; None: the estimator's ``prior_``.
        pos_label: the value of y that means labeled; None: the larger of two numbers, True.

    Source: Lee and Liu, ICML 2003, for R² / Pr.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, s = np.array([[2.0], [2.0], [0.0], [0.0]]), np.array([1, 0, 0, 0])
        >>> round(PUScorer("auc")(LogisticRegression().fit(X, s), X, s), 3)
        0.833
    """

    def __init__(
        self, measure: Literal["auc", "f1", "lee_liu"] = "auc", prior: float | None = None, pos_label: Any = None
    ):
        if measure not in ("auc", "f1", "lee_liu"):
            raise ValueError(f"measure is {measure!r}, expected one of auc, f1, lee_liu")
        self.measure, self.prior, self.pos_label = measure, prior, pos_label

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score, the larger the better."""
        labels = labels_of(y, len(y), self.pos_label)
        labeled, weight = labels.labeled, np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
        share = self.prior if self.prior is not None else getattr(estimator, "prior_", None)
        if self.measure == "auc":
            if hasattr(estimator, "decision_function"):
                z = np.asarray(estimator.decision_function(X), float)
            else:
                z = np.asarray(estimator.predict_proba(X), float)[:, 1]
            area = prior.auc(z if labels.positive == labels.classes[1] else -z, labeled, weight)
            return area if self.prior is None else (area - self.prior / 2) / (1 - self.prior)
        predicted = np.asarray(estimator.predict(X)) == labels.positive
        recall = np.average(predicted[labeled], weights=weight[labeled])
        selected = np.average(predicted[~labeled], weights=weight[~labeled])
        if self.measure == "lee_liu":
            return float(recall**2 / max(selected, 0.5 / (~labeled).sum()))
        if share is None:
            raise ValueError("f1 needs the prior: give it, or score an estimator that has estimated prior_")
        return float(2 * min(share * recall, selected) / (share + selected)) if share + selected else 0.0
