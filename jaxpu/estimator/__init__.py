"""scikit-learn's interface: ``PUClassifier``, ``PriorEstimator``, ``PUScorer`` and ``CFEnsembleClassifier``."""

from jaxpu.estimator.classifier import PUClassifier, PUScorer
from jaxpu.estimator.ensemble import CFEnsembleClassifier
from jaxpu.estimator.prior import PriorEstimator, PriorWarning

__all__ = ["CFEnsembleClassifier", "PUClassifier", "PUScorer", "PriorEstimator", "PriorWarning"]
