"""scikit-learn's interface: ``PUClassifier``, ``PriorEstimator``, ``PUScorer`` and ``CFEnsembleClassifier``."""

from jaxpu.estimator.classifier import PUClassifier, PUScorer
from jaxpu.estimator.ensemble import CFEnsembleClassifier
from jaxpu.estimator.labels import LabelWarning
from jaxpu.estimator.prior import PriorEstimator, PriorWarning

__all__ = ["CFEnsembleClassifier", "LabelWarning", "PUClassifier", "PUScorer", "PriorEstimator", "PriorWarning"]
