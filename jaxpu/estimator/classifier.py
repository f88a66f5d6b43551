"""scikit-learn's interface to positive-unlabeled learning: ``PUClassifier``."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_random_state, validate_data

from jaxpu import own, prior
from jaxpu.data.features import is_frame
from jaxpu.estimator.labels import labels_of
from jaxpu.fitted import of_table
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

    ``score`` compares with the y that it is given, which are no true labels; :class:`PUScorer` needs none. Any
    classifier of scikit-learn will do as ``method``, a pipeline or gradient boosting, too.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> "PUClassifier":
        """Fit to rows X, numbers (n_samples, n_features) or a data frame, of which y says which are labeled.

        Args:
            X: NaN is a gap; a data frame may hold strings and dates; sparse where the classifiers take that.
            y: two values, see ``pos_label``.
            sample_weight: how often each row counts; not for networks. It reaches the classifiers of ``method``, with
                scikit-learn's metadata routing those that ask for it (``set_fit_request``).
            **params: with metadata routing: what these classifiers ask for.

        Raises:
            ValueError: an unknown name, y is not of two classes, or fewer than two rows are labeled or unlabeled.
        """
        self._check_options()
        frame = is_frame(X)
        checked: Any = validate_data(self, X, skip_check_array=True) if frame else self._array(X, reset=True)
        n = len(checked) if frame else checked.shape[0]
        self.classes_, self.positive_, labeled = labels_of(y, n, self.pos_label, guess=True)
        table = own.table_of(checked, labeled)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        given = None if isinstance(self.prior, str) else float(self.prior)
        if own.is_auto(self.method):
            weight = (
                None if sample_weight is None else _check_sample_weight(sample_weight, np.empty(n), dtype=np.float64)
            )
            if weight is not None and len(np.unique(labeled[weight > 0])) < 2:
                raise ValueError("y is of one class among the rows with a weight, expected labeled and unlabeled rows")
            models, routed = own.models_of(self.method), self._routed(sample_weight, params)
            cv = int(self.cv) if isinstance(self.cv, int | np.integer) else list(self.cv)
            found = fit_auto(
                table,
                given=given,
                models=models,
                seeds=self.seeds,
                cv=cv,
                random_state=seed,
                weight=weight,
                routed=routed,
            )
            self.fit_: Any = of_table(table, found)
        else:
            from jaxpu import api

            if sample_weight is not None or params:
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

    def get_metadata_routing(self) -> MetadataRouter:
        """Who asks for what: this one, and the classifiers of ``method``."""
        router = MetadataRouter(owner=self).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        for name, model in self._models().items():
            router.add(**{name: model}, method_mapping=mapping)
        return router

    def _routed(self, sample_weight: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        """What each classifier's fit is given; None: the weights, whoever takes them."""
        if not get_config()["enable_metadata_routing"]:
            if params:
                raise ValueError(f"fit takes no {next(iter(params))!r} without enable_metadata_routing=True")
            return None
        if sample_weight is not None:
            params = {**params, "sample_weight": sample_weight}
        if not params:
            return None
        found = process_routing(self, "fit", **params)
        return {name: found[name]["fit"] for name in self._models()}

    def _array(self, X: Any, *, reset: bool) -> Any:
        finite: Any = "allow-nan" if self._all(lambda tags: tags.allow_nan) else True
        options: dict[str, Any] = {"ensure_all_finite": finite, "dtype": np.float64}
        options["accept_sparse"] = "csr" if self._takes_sparse() else False
        return validate_data(self, X, reset=reset, ensure_min_samples=2 if reset else 1, **options)

    def _models(self) -> Mapping[str, Any]:
        return (own.models_of(self.method) if own.is_auto(self.method) else None) or {}

    def _all(self, takes: Callable[[Any], bool]) -> bool:
        return all(takes(get_tags(model).input_tags) for model in self._models().values())

    def _takes_sparse(self) -> bool:
        return own.is_auto(self.method) and self._all(lambda tags: tags.sparse)

    def _check_options(self) -> None:
        if self.scenario not in prior.SCENARIOS:
            raise ValueError(f"scenario is {self.scenario!r}, expected one of {', '.join(prior.SCENARIOS)}")
        told = self.prior
        if not (told == "estimate" or (isinstance(told, int | float | np.number) and 0 < told < 1)):
            raise ValueError(f"prior is {told!r}, expected 'estimate' or a share strictly between 0 and 1")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.input_tags.allow_nan = self._all(lambda takes: takes.allow_nan)
        tags.input_tags.sparse = self._takes_sparse()
        return tags
