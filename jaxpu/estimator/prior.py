"""scikit-learn's interface to class priors: ``PriorEstimator``."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.validation import _check_sample_weight, check_random_state, validate_data

from jaxpu import prior
from jaxpu.errors import unknown
from jaxpu.estimator.labels import labels_of
from jaxpu.prior.tails import sizes


class PriorWarning(UserWarning):
    """So few rows are labeled that only an upper bound of the prior is shown."""


class PriorEstimator(BaseEstimator):
    """The share of positives among the unlabeled rows, with an interval.

    Args:
        method: a key of :data:`jaxpu.prior.METHODS`: "bbe", "tedn", "dedpul", "pen_l1", "elkan_noto", "km1", "km2" or
            "tice".
        scenario: "single_set": the labeled rows are some of the positives of one sample, or "case_control": U is a
            sample of the population, and P one of the positives. It changes ``alpha_`` and ``label_frequency_`` only.
        candidates: classifiers of P against U, by name, or one; None: :func:`jaxpu.prior.default_candidates`.
        cv: how many folds, at most n_P, or a list of (training rows, held-out rows).
        level: of the interval. times: how often "km1", "km2" and "tice" are bootstrapped for it; 0 = no interval.
        pos_label: the value of y that means labeled; None: the larger of two numbers, True.
        random_state: of folds, boosting and the bootstrap.

    Attributes:
        prior_: π_U, the share of positives among the unlabeled rows.
        interval_: its interval; (0, ``at_most_``) below 20 labeled rows, with a warning: it would cover too rarely.
        at_most_: an upper bound that assumes only that P is a random sample of the positives.
        alpha_: the share of positives in the population. label_frequency_: c; NaN in case-control.
        z_: cross-fitted log f_P / f_U of each row (n_samples,). folds_: the fold it was held out in.
        counts_: labeled and unlabeled rows.
        candidate_: the classifier that was chosen. aucs_: AUC of P against U of each.
        classes_: the two values of y. positive_: the one that means labeled. n_features_in_: of X.

    The estimate is the largest share that the data allow. It is the true one only if some kind of positive is never
    found among the negatives; otherwise the truth is lower. The lower end assumes this, too.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> labeled = np.arange(900) < 100
        >>> X = rng.normal(np.where(np.arange(900) < 340, 2.0, -2.0)[:, None], size=(900, 3))  # 240 of 800 are positive
        >>> found = PriorEstimator(random_state=0).fit(X, labeled)
        >>> abs(found.prior_ - 0.3) < 0.03, found.interval_[0] < 0.3 < found.interval_[1]
        (True, True)
        >>> print(found.statement()[:57])
        At most 40 % of the unlabeled rows are positive (95 %; as
    """

    def __init__(
        self,
        method: str = "bbe",
        *,
        scenario: str = "single_set",
        candidates: Any = None,
        cv: Any = 5,
        level: float = 0.95,
        times: int = 50,
        pos_label: Any = None,
        random_state: Any = None,
    ):
        self.method = method
        self.scenario = scenario
        self.candidates = candidates
        self.cv = cv
        self.level = level
        self.times = times
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PriorEstimator":
        """Estimate the prior.

        Args:
            X: features (n_samples, n_features), sparse where the candidates take that.
            y: labeled or unlabeled, two values: 1 and 0, 1 and -1, True and False, or any others with ``pos_label``.
            sample_weight: how often each row counts.

        Raises:
            ValueError: X is NaN or infinite where no candidate takes that, y is not of two classes, an unknown name, or
                fewer than two rows are labeled or unlabeled.
        """
        self._check_options()
        X, labeled = self._validated(X, y)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        candidates = self._candidates(seed, sparse=issparse(X))
        cv = int(self.cv) if isinstance(self.cv, int | np.integer) else list(self.cv)
        self.folds_ = prior.folds(labeled, cv, seed)
        found = prior.estimate_prior(self.method, X, labeled, self.folds_, candidates, weight)
        self.z_, self.candidate_, self.aucs_ = found.found.z, found.found.chosen, found.found.auc
        self.prior_ = found.prior
        self.at_most_ = prior.at_most(self.z_, labeled, weight, self.level)
        n_labeled, n_unlabeled = sizes(labeled, weight)
        self.counts_ = n_labeled, n_unlabeled
        scenario: Any = self.scenario
        self.alpha_, self.label_frequency_ = prior.population(self.prior_, n_labeled, n_unlabeled, scenario)
        self.interval_ = self._interval(X, labeled, weight, found.found, n_labeled, seed)
        return self

    def statement(self) -> str:
        """What can be said of the share of positives, in sentences that say what they assume."""
        low, high = self.interval_
        n_labeled, n_unlabeled = self.counts_
        return prior.Share(self.prior_, low, high, self.at_most_, n_labeled, n_unlabeled, self.level).statement()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = self._takes_sparse()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def _check_options(self) -> None:
        if self.method not in prior.METHODS:
            raise ValueError(unknown("method", self.method, list(prior.METHODS)))
        if self.scenario not in prior.SCENARIOS:
            raise ValueError(unknown("scenario", self.scenario, prior.SCENARIOS))
        if not 0 < self.level < 1:
            raise ValueError(f"level is {self.level}, expected a number strictly between 0 and 1")
        if isinstance(self.cv, int | np.integer) and self.cv < 2:
            raise ValueError(f"cv is {self.cv}, expected at least 2 folds, or a list of splits")

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """X, which may have NaN only where the user's own candidates take it, and where y means labeled."""
        finite: Any = True if self.candidates is None else "allow-nan"
        options: dict[str, Any] = {"accept_sparse": "csr" if self._takes_sparse() else False}
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2, ensure_all_finite=finite, **options)
        self.classes_, self.positive_, labeled = labels_of(y, X.shape[0], self.pos_label)
        return X, labeled

    def _takes_sparse(self) -> bool:
        known = {} if self.candidates is None else self._candidates(0)
        return all(get_tags(model).input_tags.sparse for model in known.values())

    def _candidates(self, seed: int, *, sparse: bool = False) -> Mapping[str, Any]:
        if self.candidates is None:
            return prior.default_candidates(seed, sparse=sparse)
        if isinstance(self.candidates, Mapping):
            return self.candidates
        return {type(self.candidates).__name__: self.candidates}

    def _interval(
        self, X: np.ndarray, labeled: np.ndarray, weight: Any, found: prior.CrossFit, n_labeled: float, seed: int
    ) -> tuple[float, float]:
        if n_labeled < prior.FEWEST:
            warnings.warn(
                f"{n_labeled:g} rows are labeled, fewer than {prior.FEWEST}: the prior is at most {self.at_most_:.2f}, "
                "and no lower end is given",
                PriorWarning,
                stacklevel=3,
            )
            return 0.0, self.at_most_
        if prior.METHODS[self.method].on != "features":
            found_share = prior.share_of(self.prior_, found, labeled, weight, level=self.level)
            return found_share.low, found_share.high
        if not self.times:
            return float("nan"), float("nan")

        def again(rows: np.ndarray, w: np.ndarray) -> float:
            return prior.on_features(self.method, X[rows], labeled[rows], prior.folds(labeled[rows], 5, seed), w)

        drawn = prior.estimates(again, labeled, weight, times=self.times, random_state=seed)
        low, high = prior.percentiles(drawn, self.level)
        return min(low, self.prior_), max(high, self.prior_)
