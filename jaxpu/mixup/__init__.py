"""Mixup: draw λ, choose partners, mix; for PU learning set the target and penalise the distance from it.

>>> import jax, jax.numpy as jnp
>>> from jaxpu import mixup
>>> x, labeled = jnp.array([[0.0], [1.0], [2.0]]), jnp.array([0, 0, 1])
>>> partner = mixup.labeled_positives(jax.random.key(0), labeled)
>>> mixup.mix(x, partner, 0.5).tolist()
[[1.0], [1.5], [2.0]]
"""

from jaxpu.mixup.coefficient import SCHEDULES, sample, schedule
from jaxpu.mixup.consistency import PENALTIES, log_mse, point_process
from jaxpu.mixup.mix import cutmix, mix
from jaxpu.mixup.pairing import (
    PAIRINGS,
    boundary_positives,
    labeled_positives,
    permuted_positives,
    shuffle,
    within_set,
)
from jaxpu.mixup.targets import log_target

__all__ = [
    "PAIRINGS",
    "PENALTIES",
    "SCHEDULES",
    "boundary_positives",
    "cutmix",
    "labeled_positives",
    "log_mse",
    "log_target",
    "mix",
    "permuted_positives",
    "point_process",
    "sample",
    "schedule",
    "shuffle",
    "within_set",
]
