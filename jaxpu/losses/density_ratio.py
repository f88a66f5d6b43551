"""Risks that fit a density ratio, or its variational bound, from labeled positive and unlabeled rows.

Called as those of :mod:`jaxpu.losses.pu`, which says what the arguments mean.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from jaxpu.checks import check_prior
from jaxpu.losses.batch import clean, mean, sets
from jaxpu.types import Labeled, Logits, Mask, Scalar, ScalarLike


def pudra(logits: Logits, labeled: Labeled, *, prior: ScalarLike, mask: Mask | None = None) -> Scalar:
    """Density-ratio risk π E_P[-log p] + E_U[p], least where p(x) = π p(x | positive) / p_U(x).

    Example:
        >>> round(float(pudra(jnp.array([0.0, 0.0]), jnp.array([1, 0]), prior=0.5)), 4)
        0.8466
    """
    check_prior(prior)
    z, positive, unlabeled = _rows(logits, labeled, mask)
    return mean(jax.nn.sigmoid(z), unlabeled) - prior * mean(jax.nn.log_sigmoid(z), positive)


def pudra_softplus(logits: Logits, labeled: Labeled, *, prior: ScalarLike, mask: Mask | None = None) -> Scalar:
    """:func:`pudra` of an unbounded ratio g = log(1 + eᶻ): π E_P[-log g] + E_U[g].

    g estimates the posterior that σ(z) estimates elsewhere; it passes 1/2 at z = log(e^½ - 1), not at 0.

    Example:
        >>> round(float(pudra_softplus(jnp.array([0.0, 0.0]), jnp.array([1, 0]), prior=0.5)), 4)
        0.8764
    """
    check_prior(prior)
    z, positive, unlabeled = _rows(logits, labeled, mask)
    return mean(jax.nn.softplus(z), unlabeled) - prior * mean(log_softplus(z), positive)


def pudra_batch(
    logits: Logits, labeled: Labeled, *, prior: ScalarLike | None = None, mask: Mask | None = None
) -> Scalar:
    """:func:`pudra` with the share of labeled positives in the batch, n_P / n, as π; ``prior`` is not used.

    So every labeled row weighs 1 / n, whatever the batch: Σ_P -log p / n + E_U[p].

    Example:
        >>> round(float(pudra_batch(jnp.array([0.0, 0.0]), jnp.array([1, 0]))), 4)
        0.8466
    """
    return pudra(logits, labeled, prior=batch_prior(labeled, mask=mask), mask=mask)


def pudra_naive(
    logits: Logits, labeled: Labeled, *, prior: ScalarLike | None = None, mask: Mask | None = None
) -> Scalar:
    """Density-ratio risk without a prior, E_P[-log p + p] + E_U[p]; ``prior`` is not used.

    Example:
        >>> round(float(pudra_naive(jnp.array([0.0, 0.0]), jnp.array([1, 0]))), 4)
        1.6931
    """
    z, positive, unlabeled = _rows(logits, labeled, mask)
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
    """Variational risk log mean(p) - E_P[log p], unchanged when every p is scaled; ``prior`` is not used.

    The first mean is ``over`` "all" rows of the mixed batch, as in the code behind the nine-dataset table, or
    over the "unlabeled" ones, as published (Chen et al., NeurIPS 2020). Without such a row that term is 0.

    Raises:
        ValueError: an ``over`` that does not exist.

    Example:
        >>> round(float(variational(jnp.array([0.0, -100.0]), jnp.array([1, 0]))), 4)
        -0.6931
    """
    if over not in ("all", "unlabeled"):
        raise ValueError(f"over is {over!r}, expected 'all' or 'unlabeled'")
    z, positive, unlabeled = _rows(logits, labeled, mask)
    log_p = jax.nn.log_sigmoid(z)
    rows = positive | unlabeled if over == "all" else unlabeled
    count = rows.sum()
    # An empty logsumexp is -inf with NaN as gradient: then sum over everything, and discard that.
    log_sum = jax.nn.logsumexp(log_p, where=rows | (count == 0))
    log_mean = jnp.where(count > 0, log_sum - jnp.log(jnp.maximum(count, 1).astype(log_p.dtype)), 0)
    return log_mean - mean(log_p, positive)


def batch_prior(labeled: Labeled, *, mask: Mask | None = None) -> Scalar:
    """Share of labeled positives in the batch, n_P / n; 0 without rows.

    Example:
        >>> float(batch_prior(jnp.array([1, 0, 0, 0])))
        0.25
    """
    positive, unlabeled = sets(labeled, mask)
    return positive.sum() / jnp.maximum((positive | unlabeled).sum(), 1)


def log_softplus(z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Logarithm of the unbounded density ratio, log log(1 + eᶻ), finite where softplus itself underflows.

    Example:
        >>> log_softplus(jnp.array([-100.0])).tolist()
        [-100.0]
    """
    far_left = z < -20  # log(eᶻ - e²ᶻ/2 + ...) = z - eᶻ/2 + O(e²ᶻ)
    near = jnp.log(jax.nn.softplus(jnp.where(far_left, 0, z)))
    return jnp.where(far_left, z - jnp.exp(jnp.where(far_left, z, 0)) / 2, near)


def _rows(logits: Logits, labeled: Labeled, mask: Mask | None) -> tuple[Logits, Bool[Array, " n"], Bool[Array, " n"]]:
    """The logits without padding, and which rows are labeled positives and which unlabeled."""
    positive, unlabeled = sets(labeled, mask)
    return clean(logits, positive | unlabeled), positive, unlabeled
