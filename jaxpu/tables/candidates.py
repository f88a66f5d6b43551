"""Classifiers of P against U that take a table's numbers as they are: codes of categories, NaN for gaps.

What is learned of categories and gaps is learned inside the pipeline, so that cross-fitting holds it out, too.
"""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from jaxpu import prior
from jaxpu.prior.candidates import fit_weighted, log_odds
from jaxpu.tables.table import Table

RARE = 10
"""Rows that a category needs to have a column of its own in a linear classifier."""

WEIGHTED = "Elkan-Noto-weighted boosting"


def candidates(table: Table, random_state: int = 0) -> dict[str, Any]:
    """The default candidates of :func:`jaxpu.prior.default_candidates`, with what the table's columns need.

    Args:
        table: the rows. random_state: of boosting.
    """
    found = prior.default_candidates(random_state, sparse=issparse(table.x))
    codes = table.schema.categories
    if not table.plain:
        found = {name: _with_gaps(model, codes, table.x.shape[1]) for name, model in found.items()}
    return found


def _with_gaps(model: Any, codes: list[int], d: int) -> Any:
    if hasattr(model, "steps"):
        return make_pipeline(encoder(codes, d), *(step for _, step in model.steps))
    own: Any = clone(model)
    return own.set_params(categorical_features=codes or None)


def encoder(codes: list[int], d: int) -> ColumnTransformer:
    """Categories as columns of 0 and 1, gaps of numbers filled with the mean and marked in a column of their own.

    >>> encoder([1], 2).fit_transform(np.array([[1.0, 0.0], [np.nan, 1.0], [3.0, 0.0]] * 10)).shape
    (30, 4)
    """
    numbers = [k for k in range(d) if k not in codes]
    hot: Any = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=RARE, sparse_output=False)
    parts = [
        ("numbers", SimpleImputer(add_indicator=True, keep_empty_features=True), numbers),
        ("categories", hot, codes),
    ]
    return ColumnTransformer([part for part in parts if part[2]])


def coarse(x: np.ndarray) -> np.ndarray:
    """Columns of many values with each value replaced by the nearest quantile below it, at most 250 of them.

    Boosting bins them so anyway; where rows are weighted it takes twenty times as long for it as for all its trees.

    >>> len(np.unique(coarse(np.arange(1000.0)[:, None]))), coarse(np.array([[1.0], [np.nan], [3.0]])).ravel().tolist()
    (250, [1.0, nan, 3.0])
    """
    found = np.array(x, float)
    for k in range(found.shape[1]):
        column = found[:, k]
        values = np.unique(column[~np.isnan(column)])
        if len(values) > BINS:
            edges = np.unique(np.quantile(column[~np.isnan(column)], np.linspace(0, 1, BINS + 1)[:-1], method="lower"))
            place = np.searchsorted(edges, column, side="right") - 1
            found[:, k] = np.where(np.isnan(column), np.nan, edges[np.clip(place, 0, None)])
    return found


BINS = 250


class WeightedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of positive against negative: each unlabeled row counts as both, by its probability to be positive.

    Cross-fitted, calibrated scores of ``base`` on P against U give p_U of every unlabeled row; the base is then fitted
    on P with weight 1 and on U twice, as positive with weight p_U and as negative with 1 − p_U.

    Args:
        base: a classifier that takes sample weights. prior: π_U; None = estimated. cv: folds.
        random_state: of the folds.

    Source: Elkan and Noto, Learning Classifiers from Only Positive and Unlabeled Data, KDD 2008, section 3.

    Example:
        >>> x, s = np.repeat([1.0, 1.0, 0.0], 40)[:, None], np.arange(120) < 40
        >>> base = prior.default_candidates()["logistic C=0.3"]
        >>> odds = WeightedClassifier(base).fit(x, s.astype(int)).decision_function(np.array([[1.0], [0.0]]))
        >>> bool(odds[0] > 2 > -2 > odds[1])
        True
    """

    def __init__(self, base: Any = None, *, prior: float | None = None, cv: int = 3, random_state: int = 0):
        self.base = base
        self.prior = prior
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "WeightedClassifier":
        """Fit on rows X (n, d) of which y (n,) says with 1 which are labeled."""
        labeled = np.asarray(y) == 1
        weight = np.ones(len(labeled)) if sample_weight is None else np.asarray(sample_weight, float)
        self.classes_ = np.array([0, 1])
        if min(labeled.sum(), (~labeled).sum()) < 2:  # nothing can be held out: labeled against unlabeled
            self.fitted_ = fit_weighted(clone(self.base), X, labeled.astype(int), sample_weight)
            return self
        fold = prior.folds(labeled, self.cv, self.random_state)
        z = prior.cross_fit(X, labeled, fold, {"base": self.base}, weight=sample_weight).z
        share = prior.bbe(z, labeled, weight) if self.prior is None else self.prior
        p = prior.probability(prior.cross_calibrated(z, labeled, fold, weight), share)
        p = np.minimum(p, 1 - 1e-6)  # lest no negative is left where all may be positive
        unlabeled = np.flatnonzero(~labeled)
        rows = np.concatenate([np.flatnonzero(labeled), unlabeled, unlabeled])
        target = np.repeat([1, 1, 0], [labeled.sum(), len(unlabeled), len(unlabeled)])
        shares = np.concatenate([np.ones(labeled.sum()), p[unlabeled], 1 - p[unlabeled]])
        self.fitted_ = fit_weighted(clone(self.base), coarse(X)[rows], target, weight[rows] * shares)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Log odds of positive against negative (m,)."""
        check_is_fitted(self)
        return log_odds(self.fitted_, X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(negative) and P(positive), (m, 2)."""
        p = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -700, 700)))
        return np.stack([1 - p, p], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """1 where positive is more likely."""
        return (self.decision_function(X) > 0).astype(int)
