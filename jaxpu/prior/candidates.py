"""Classifiers of P against U, each row scored by one that was not fitted on it, and which of them is used.

    rows ─► folds ─► for each candidate: fit on the others, z = logit g − log(n_P / n_U of the others) ─► pooled z
                                                                                          └─► AUC(P, U): the highest

Taking the prior log odds off makes z a log density ratio log f_P / f_U, so that folds of unequal size can be pooled.
The choice sees no true label, and under SCAR a higher AUC of P against U is a higher AUC of positives against
negatives.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Integer
from scipy.special import logit
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _check_method_params, has_fit_parameter

from jaxpu.prior.on_scores import auc
from jaxpu.prior.tails import Labeled, Scores, Weights, sizes

Folds = Integer[np.ndarray, " n"]
"""The number of the fold in which a row is held out."""

STRENGTHS = (0.003, 0.03, 0.3)
"""C of the logistic regressions."""


def default_candidates(random_state: Any = None, *, sparse: bool = False) -> dict[str, Any]:
    """Standardised logistic regressions of three strengths, and gradient boosting, which takes no sparse rows.

    Strong regularisation matters more to the estimate than the method does: few rows are labeled.

    Args:
        random_state: of boosting. sparse: whether rows are sparse, and stay so: columns are scaled and not centered.

    Example:
        >>> list(default_candidates())
        ['logistic C=0.003', 'logistic C=0.03', 'logistic C=0.3', 'boosting']
    """
    linear: dict[str, Any] = {f"logistic C={c:g}": _logistic(c, center=not sparse) for c in STRENGTHS}
    if sparse:
        return linear
    no: Any = False  # the stub of scikit-learn knows its text only
    boosting = HistGradientBoostingClassifier(
        max_iter=40,
        learning_rate=0.15,
        max_leaf_nodes=15,
        min_samples_leaf=10,
        early_stopping=no,
        random_state=random_state,
    )
    return {**linear, "boosting": boosting}


def _logistic(c: float, *, center: bool) -> Pipeline:
    return make_pipeline(StandardScaler(with_mean=center), LogisticRegression(C=c, max_iter=1000))


class Member(NamedTuple):
    """A classifier that was fitted on all folds but one.

    Attributes:
        fold: the one that it has not seen. model: fitted. shift: log(n_P / n_U) of its rows.
    """

    fold: int
    model: Any
    shift: float

    def __call__(self, x: Any) -> Scores:
        """z, log f_P / f_U, of rows."""
        return log_odds(self.model, x) - self.shift


class CrossFit(NamedTuple):
    """Scores of rows by classifiers that were not fitted on them.

    Attributes:
        scores: z (n,) of each candidate, log f_P / f_U. auc: of P against U, of each. chosen: the one with the highest.
        fold: where each row was held out. fitted: the classifiers of each candidate, one a fold.
    """

    scores: dict[str, Scores]
    auc: dict[str, float]
    chosen: str
    fold: Folds
    fitted: dict[str, tuple[Member, ...]]

    @property
    def z(self) -> Scores:
        """The scores of the chosen candidate."""
        return self.scores[self.chosen]


def folds(labeled: Labeled, cv: int | Iterable[Any] = 5, random_state: Any = None) -> Folds:
    """Stratified folds, at most as many as the smaller of P and U has rows; or those of given splits.

    Args:
        labeled: where a row is of P. cv: how many; or a list of (training rows, held-out rows).
        random_state: of the shuffling.

    Raises:
        ValueError: fewer than two rows of P or U, or splits that do not hold each row out once.

    Example:
        >>> folds(np.array([True, True, False, False]), cv=[([0, 2], [1, 3]), ([1, 3], [0, 2])]).tolist()
        [1, 0, 1, 0]
    """
    if isinstance(cv, int | np.integer):
        fewest = int(min(labeled.sum(), (~labeled).sum()))
        if fewest < 2:
            raise ValueError(
                f"expected at least two labeled and two unlabeled rows, to fit on some and score others; got "
                f"{labeled.sum()} and {(~labeled).sum()}"
            )
        splitter = StratifiedKFold(min(int(cv), fewest), shuffle=True, random_state=random_state)
        cv = splitter.split(np.zeros((len(labeled), 1)), labeled)
    held_out = [np.asarray(test) for _, test in cv]
    found = np.full(len(labeled), -1)
    for k, rows in enumerate(held_out):
        found[rows] = k
    if (found < 0).any() or sum(map(len, held_out)) != len(labeled) or len(held_out) < 2:
        raise ValueError("cv: expected splits that hold out each row once, at least two of them")
    return found


def cross_fit(
    x: Any,
    labeled: Labeled,
    fold: Folds,
    candidates: Mapping[str, Any],
    *,
    weight: Weights | None = None,
    fitted: Bool[np.ndarray, " n"] | None = None,
    routed: Mapping[str, Mapping[str, Any]] | None = None,
) -> CrossFit:
    """Score every row by each candidate, fitted on the other folds, and choose one by AUC of P against U.

    Args:
        x: features (n, ...), of any kind that the candidates take. labeled: where a row is of P.
        fold: as :func:`folds` gives. candidates: scikit-learn classifiers by name.
        weight: how often each row counts; reaches the classifiers, too.
        fitted: rows that classifiers may be fitted on; None = all. All are scored.
        routed: what else the ``fit`` of a candidate is given, its weights included, by its name; values with an entry
            a row are cut to the rows of the fold. Candidates that are not named are given ``weight``.

    Raises:
        ValueError: a fold leaves P or U without a row; a candidate takes no weights, or gives scores that are NaN.

    Example:
        >>> x, labeled = np.linspace(0, 1, 40)[:, None], np.arange(40) >= 30
        >>> found = cross_fit(x, labeled, folds(labeled, random_state=0), default_candidates())
        >>> found.z.shape, found.auc[found.chosen] > 0.9
        ((40,), True)
    """
    if not candidates:
        raise ValueError("candidates is empty, expected at least one classifier")
    routed = routed or {}
    models = {
        name: members(c, x, labeled, fold, weight=weight, fitted=fitted, routed=routed.get(name))
        for name, c in candidates.items()
    }
    scores = {name: held_out(name, fitted_to, x, fold) for name, fitted_to in models.items()}
    areas = {name: auc(z, labeled, weight) for name, z in scores.items()}
    return CrossFit(scores, areas, max(areas, key=areas.__getitem__), fold, models)


def members(
    candidate: Any,
    x: Any,
    labeled: Labeled,
    fold: Folds,
    *,
    weight: Weights | None = None,
    fitted: Bool[np.ndarray, " n"] | None = None,
    routed: Mapping[str, Any] | None = None,
) -> tuple[Member, ...]:
    """A classifier for each fold, fitted on the others; arguments and errors as of :func:`cross_fit`."""
    allowed = np.ones(len(labeled), bool) if fitted is None else fitted
    if weight is not None:
        allowed = allowed & (weight > 0)
    found = []
    for k in np.unique(fold):
        rows = np.flatnonzero((fold != k) & allowed)
        w = None if weight is None else weight[rows]
        n_labeled, n_unlabeled = sizes(labeled[rows], w)
        if not n_labeled or not n_unlabeled:
            raise ValueError(f"without fold {k} no {'un' if n_labeled else ''}labeled row is left; take fewer folds")
        y = labeled[rows].astype(int)
        if routed is None:
            model = fit_weighted(clone(candidate), _rows(x, rows), y, w)
        else:
            own: Any = clone(candidate)
            model = own.fit(_rows(x, rows), y, **_check_method_params(x, dict(routed), indices=rows))
        found.append(Member(int(k), model, float(np.log(n_labeled / n_unlabeled))))
    return tuple(found)


def held_out(name: str, fitted: Iterable[Member], x: Any, fold: Folds) -> Scores:
    """Z (n,) of each row by the member that has not seen it.

    Raises:
        ValueError: it is NaN or infinite; with the name of the candidate.
    """
    z = np.empty(len(fold))
    for member in fitted:
        rows = np.flatnonzero(fold == member.fold)
        z[rows] = member(_rows(x, rows))
    if not np.isfinite(z).all():
        raise ValueError(f"candidate {name!r} gives scores that are NaN or infinite")
    return z


def fit_weighted(model: Any, x: Any, y: Any, weight: Weights | None) -> Any:
    """Fit a classifier with weights, those of a pipeline to every step that takes them.

    Raises:
        ValueError: nothing of it takes weights.
    """
    if weight is None:
        return model.fit(x, y)
    if isinstance(model, Pipeline):
        takes = [name for name, step in model.steps if has_fit_parameter(step, "sample_weight")]
        if model.steps[-1][0] in takes:
            with config_context(enable_metadata_routing=False):  # by the names of steps, whoever has asked for what
                return model.fit(x, y, **{f"{name}__sample_weight": weight for name in takes})
    elif has_fit_parameter(model, "sample_weight"):
        return model.fit(x, y, sample_weight=weight)
    raise ValueError(f"{type(model).__name__} takes no sample_weight; leave the weights out, or take another candidate")


def log_odds(model: Any, x: Any) -> Scores:
    """The log odds of class 1 of a fitted classifier: its decision function where there is one."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(x), float)
    tiny = np.finfo(float).eps
    return logit(np.clip(np.asarray(model.predict_proba(x), float)[:, 1], tiny, 1 - tiny))


def _rows(x: Any, rows: np.ndarray) -> Any:
    return x.iloc[rows] if hasattr(x, "iloc") else x[rows]
