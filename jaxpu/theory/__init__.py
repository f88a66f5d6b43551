"""What formulas say of training: loss geometry, the mean field, an aggregator's flow, mixup.

What mixup does has a module a concept: ``mixup_loss`` (standard loss and three regularisers), ``glm``, ``mixupe``,
``rademacher``, ``random_features`` (gradient flow), ``rare_features``, ``gradient_noise``.
"""

from jaxpu.theory import glm, gradient_noise, mixup_loss, mixupe, rademacher, random_features, rare_features
from jaxpu.theory.aggregator import (
    FastEnd,
    LinearFlow,
    critical_rate,
    fast_end,
    flip_time,
    flow_at,
    healing_time,
    linear_flow,
    time_scales,
)
from jaxpu.theory.geometry import FixedPoint, Shape, penalty_shape, risk_shape, sign_changes
from jaxpu.theory.meanfield import FixedPoints, fixed_points, iterate, slope
from jaxpu.theory.points import Setting, beta_nodes, grid, setting

__all__ = [
    "FastEnd",
    "FixedPoint",
    "FixedPoints",
    "LinearFlow",
    "Setting",
    "Shape",
    "beta_nodes",
    "critical_rate",
    "fast_end",
    "fixed_points",
    "flip_time",
    "flow_at",
    "glm",
    "gradient_noise",
    "grid",
    "healing_time",
    "iterate",
    "linear_flow",
    "mixup_loss",
    "mixupe",
    "penalty_shape",
    "rademacher",
    "random_features",
    "rare_features",
    "risk_shape",
    "setting",
    "sign_changes",
    "slope",
    "time_scales",
]
