"""Losses as pure functions of (logits, labels); nothing but jax is imported.

>>> import jax.numpy as jnp
>>> from jaxpu import losses
>>> logits, labeled = jnp.array([2.0, -1.0, 0.5]), jnp.array([1, 0, 0])
>>> round(float(losses.nnpu(logits, labeled, prior=0.4)), 4)
0.1411
"""

from jaxpu.losses import surrogates
from jaxpu.losses.pu import (
    LOSSES,
    NnpuTerms,
    batch_prior,
    log_softplus,
    nnpu,
    nnpu_terms,
    nnpusb,
    pn,
    pudra,
    pudra_naive,
    upu,
    variational,
)
from jaxpu.losses.surrogates import SURROGATES

__all__ = [
    "LOSSES",
    "SURROGATES",
    "NnpuTerms",
    "batch_prior",
    "log_softplus",
    "nnpu",
    "nnpu_terms",
    "nnpusb",
    "pn",
    "pudra",
    "pudra_naive",
    "surrogates",
    "upu",
    "variational",
]
