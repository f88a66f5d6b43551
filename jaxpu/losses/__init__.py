"""Losses as pure functions of (logits, labels); nothing but jax is imported.

>>> import jax.numpy as jnp
>>> from jaxpu import losses
>>> logits, labeled = jnp.array([2.0, -1.0, 0.5]), jnp.array([1, 0, 0])
>>> round(float(losses.nnpu(logits, labeled, prior=0.4)), 4)
0.1411
"""

from jaxpu.losses import gradients, surrogates
from jaxpu.losses.classification import CLASSIFICATION, cross_entropy, focal, mae, mae_mse, mse
from jaxpu.losses.density_ratio import log_softplus, pudra, pudra_naive, variational
from jaxpu.losses.gradients import GRADIENT_SIZES, gradient_size, logit_gradient
from jaxpu.losses.labels import distribution, smooth_labels
from jaxpu.losses.pu import (
    LOSSES,
    NnpuTerms,
    batch_prior,
    nnpu,
    nnpu_terms,
    nnpusb,
    pn,
    upu,
)
from jaxpu.losses.surrogates import SURROGATES
from jaxpu.losses.weighting import class_counts, effective_number, inverse_frequency, row_weights
from jaxpu.losses.well_classified import LOG_END_SCHEDULES, bonus, encouraging, log_end_schedule

__all__ = [
    "CLASSIFICATION",
    "GRADIENT_SIZES",
    "LOG_END_SCHEDULES",
    "LOSSES",
    "SURROGATES",
    "NnpuTerms",
    "batch_prior",
    "bonus",
    "class_counts",
    "cross_entropy",
    "distribution",
    "effective_number",
    "encouraging",
    "focal",
    "gradient_size",
    "gradients",
    "inverse_frequency",
    "log_end_schedule",
    "log_softplus",
    "logit_gradient",
    "mae",
    "mae_mse",
    "mse",
    "nnpu",
    "nnpu_terms",
    "nnpusb",
    "pn",
    "pudra",
    "pudra_naive",
    "row_weights",
    "smooth_labels",
    "surrogates",
    "upu",
    "variational",
]
