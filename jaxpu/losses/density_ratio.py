"""Losses that fit a density ratio, or its variational bound, from positive and unlabelled rows.

Called as those of :mod:`jaxpu.losses.pu`, which says what the arguments mean.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxpu.losses.options import check_prior
from jaxpu.losses.rows import clean, mean, sets
from jaxpu.types import Labeled, Logits, Mask, Scalar, ScalarLike


def pudra(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike,
    mask: Mask | None = None,
    activation: str = "sigmoid",
) -> Scalar:
    """Density-ratio loss π E_P[-log g] + E_U[g], least where g(x) = π p(x | positive) / p_U(x).

    ``activation`` "sigmoid" keeps g = σ(z) a probability, "softplus" lets g = log(1 + eᶻ) exceed 1. For the
    empirical version pass ``prior=batch_prior(labeled, mask)``.

    Example:
        >>> round(float(pudra(jnp.array([0.0, 0.0]), jnp.array([1, 0]), prior=0.5)), 4)
        0.8466
    """
    if activation not in ("sigmoid", "softplus"):
        raise ValueError(f"activation is {activation!r}, expected 'sigmoid' or 'softplus'")
    check_prior(prior)
    positive, unlabeled = sets(labeled, mask)
    z = clean(logits, positive | unlabeled)
    bounded = activation == "sigmoid"
    ratio = jax.nn.sigmoid(z) if bounded else jax.nn.softplus(z)
    log_ratio = jax.nn.log_sigmoid(z) if bounded else log_softplus(z)
    return mean(ratio, unlabeled) - prior * mean(log_ratio, positive)


def pudra_naive(
    logits: Logits, labeled: Labeled, *, prior: ScalarLike | None = None, mask: Mask | None = None
) -> Scalar:
    """Density-ratio loss without a prior, E_P[-log p + p] + E_U[p]; ``prior`` is not used.

    Example:
        >>> round(float(pudra_naive(jnp.array([0.0, 0.0]), jnp.array([1, 0]))), 4)
        1.6931
    """
    positive, unlabeled = sets(labeled, mask)
    z = clean(logits, positive | unlabeled)
    p = jax.nn.sigmoid(z)
    return mean(p - jax.nn.log_sigmoid(z), positive) + mean(p, unlabeled)


def variational(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike | None = None,
    mask: Mask | None = None,
    over: str = "all",
) -> Scalar:
    """Variational loss log mean(p) - E_P[log p], unchanged when every p is scaled; ``prior`` is not used.

    The first mean is ``over`` "all" rows of the mixed batch, as in the code behind the nine-dataset table, or
    over the "unlabeled" ones, as published (Chen et al., NeurIPS 2020). Without such a row that term is 0.

    Example:
        >>> round(float(variational(jnp.array([0.0, -100.0]), jnp.array([1, 0]))), 4)
        -0.6931
    """
    if over not in ("all", "unlabeled"):
        raise ValueError(f"over is {over!r}, expected 'all' or 'unlabeled'")
    positive, unlabeled = sets(labeled, mask)
    log_p = jax.nn.log_sigmoid(clean(logits, positive | unlabeled))
    rows = positive | unlabeled if over == "all" else unlabeled
    count = rows.sum()
    # An empty logsumexp is -inf with NaN as gradient: then sum over everything, and discard that.
    log_sum = jax.nn.logsumexp(log_p, where=rows | (count == 0))
    log_mean = jnp.where(count > 0, log_sum - jnp.log(jnp.maximum(count, 1).astype(log_p.dtype)), 0)
    return log_mean - mean(log_p, positive)


def log_softplus(z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Logarithm of the unbounded density ratio, log log(1 + eᶻ), finite where softplus itself underflows.

    Example:
        >>> log_softplus(jnp.array([-100.0])).tolist()
        [-100.0]
    """
    far_left = z < -20  # log(eᶻ - e²ᶻ/2 + ...) = z - eᶻ/2 + O(e²ᶻ)
    near = jnp.log(jax.nn.softplus(jnp.where(far_left, 0, z)))
    return jnp.where(far_left, z - jnp.exp(jnp.where(far_left, z, 0)) / 2, near)
