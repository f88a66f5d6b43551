"""Losses as pure functions of (logits, labels); nothing but jax is imported.

>>> import jax.numpy as jnp
>>> from jaxpu import losses
>>> logits, labeled = jnp.array([2.0, -1.0, 0.5]), jnp.array([1, 0, 0])
>>> round(float(losses.nnpu(logits, labeled, prior=0.4)), 4)
0.1411
"""

from jaxpu.losses import gradients, surrogates
from jaxpu.losses.batch import Mixed
from jaxpu.losses.classification import CLASSIFICATION, bonus, cross_entropy, encouraging, focal, mae, mae_mse, mse
from jaxpu.losses.density_ratio import (
    batch_prior,
    log_softplus,
    pudra,
    pudra_batch,
    pudra_naive,
    pudra_softplus,
    variational,
)
from jaxpu.losses.dist_pu import dist_pu, label_distribution
from jaxpu.losses.gradients import GRADIENT_SIZES, gradient_size, logit_gradient
from jaxpu.losses.labels import distribution, smooth_labels
from jaxpu.losses.p3mix import p3mix_c, p3mix_e
from jaxpu.losses.pu import NnpuTerms, nnpu, nnpu_clip, nnpu_terms, nnpusb, upu
from jaxpu.losses.supervised import pn, pn_naive
from jaxpu.losses.surrogates import SURROGATES, binary_entropy, soft_cross_entropy
from jaxpu.losses.trimmed import cvir, lbe, lbe_labeling, lbe_posterior
from jaxpu.losses.weighting import class_counts, effective_number, inverse_frequency, row_weights

__all__ = [
    "CLASSIFICATION",
    "GRADIENT_SIZES",
    "SURROGATES",
    "Mixed",
    "NnpuTerms",
    "batch_prior",
    "binary_entropy",
    "bonus",
    "class_counts",
    "cross_entropy",
    "cvir",
    "dist_pu",
    "distribution",
    "effective_number",
    "encouraging",
    "focal",
    "gradient_size",
    "gradients",
    "inverse_frequency",
    "label_distribution",
    "lbe",
    "lbe_labeling",
    "lbe_posterior",
    "log_softplus",
    "logit_gradient",
    "mae",
    "mae_mse",
    "mse",
    "nnpu",
    "nnpu_clip",
    "nnpu_terms",
    "nnpusb",
    "p3mix_c",
    "p3mix_e",
    "pn",
    "pn_naive",
    "pudra",
    "pudra_batch",
    "pudra_naive",
    "pudra_softplus",
    "row_weights",
    "smooth_labels",
    "soft_cross_entropy",
    "surrogates",
    "upu",
    "variational",
]
