"""Collaborative-filtering ensembles: base classifiers' probabilities, factorised and aggregated with few labels.

>>> import jax, jax.numpy as jnp
>>> from jaxpu import ensemble
>>> drawn = ensemble.synthetic_ratings(jax.random.key(0), n=200, m=10, rate=0.1, quality=0.7)
>>> labeled = jnp.arange(200) < 100
>>> c = ensemble.confidence("label_aware", drawn.ratings, drawn.labels, labeled)
>>> start = ensemble.start_factors(jax.random.key(1), (10, 200), 5)
>>> step = ensemble.Step(class_weights=1.0)
>>> fit = ensemble.fit_als(start, drawn.ratings, c, drawn.labels, labeled, iterations=50, step=step)
>>> bool((fit.aggregator.w > 0).all())
True
"""

from jaxpu.ensemble.aggregate import (
    Aggregator,
    Step,
    aggregate,
    gradient,
    instance_weights,
    start_aggregator,
    supervised_loss,
    update,
)
from jaxpu.ensemble.als import als_sweep, factorisation_loss, fold_in, reconstruct, solve_columns, start_factors
from jaxpu.ensemble.baselines import BASELINES
from jaxpu.ensemble.confidence import CONFIDENCE, confidence
from jaxpu.ensemble.descent import descend
from jaxpu.ensemble.synthetic import Drawn, synthetic_ratings
from jaxpu.ensemble.trainers import TRAINERS, Fit, History, fit_als, fit_joint, objective
from jaxpu.ensemble.trajectory import continue_aggregator, factor_trajectory, fit_aggregator
from jaxpu.ensemble.types import Factors
from jaxpu.ensemble.weights import class_weights, focal_weights

__all__ = [
    "BASELINES",
    "CONFIDENCE",
    "TRAINERS",
    "Aggregator",
    "Drawn",
    "Factors",
    "Fit",
    "History",
    "Step",
    "aggregate",
    "als_sweep",
    "class_weights",
    "confidence",
    "continue_aggregator",
    "descend",
    "factor_trajectory",
    "factorisation_loss",
    "fit_aggregator",
    "fit_als",
    "fit_joint",
    "focal_weights",
    "fold_in",
    "gradient",
    "instance_weights",
    "objective",
    "reconstruct",
    "solve_columns",
    "start_aggregator",
    "start_factors",
    "supervised_loss",
    "synthetic_ratings",
    "update",
]
