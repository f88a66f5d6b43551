"""Scores of classifiers that need no true label, for scikit-learn's searches: ``PUScorer``."""

from typing import Any, Literal

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from jaxpu import prior
from jaxpu.estimator.labels import labels_of


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
        self._request = MetadataRequest(owner=self)

    def set_score_request(self, *, sample_weight: bool | str | None) -> "PUScorer":
        """Ask for weights, or not, where a search routes metadata; see scikit-learn's guide to it."""
        self._request.score.add_request(param="sample_weight", alias=sample_weight)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """What is asked for."""
        return self._request

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
