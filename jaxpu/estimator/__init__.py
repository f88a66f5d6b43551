"""scikit-learn's interface: ``PUClassifier``, ``PriorEstimator``, ``PUScorer`` and ``CFEnsembleClassifier``."""

from jaxpu.estimator.classifier import PUClassifier
from jaxpu.estimator.ensemble import CFEnsembleClassifier
from jaxpu.estimator.labels import LabelWarning
from jaxpu.estimator.prior import PriorEstimator, PriorWarning
from jaxpu.estimator.scorer import PUScorer

__all__ = ["CFEnsembleClassifier", "LabelWarning", "PUClassifier", "PUScorer", "PriorEstimator", "PriorWarning"]
