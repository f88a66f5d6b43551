"""scikit-learn's interface: ``PriorEstimator`` of labeled and unlabeled rows, ``CFEnsembleClassifier``."""

from jaxpu.estimator.ensemble import CFEnsembleClassifier
from jaxpu.estimator.prior import PriorEstimator, PriorWarning

__all__ = ["CFEnsembleClassifier", "PriorEstimator", "PriorWarning"]
