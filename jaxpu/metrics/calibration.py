"""Metrics of the probabilities themselves, with true labels, and the spread of the scores."""

import jax
import jax.numpy as jnp

from jaxpu.metrics.rows import Labels, rows_of, weighted_mean
from jaxpu.types import Logits, Mask, Scalar


def ece(logits: Logits, labels: Labels, *, bins: int = 15, mask: Mask | None = None) -> Scalar:
    """Expected calibration error of p: Σ_b (n_b / n) |mean_b(y) − mean_b(p)| over bins of equal width.

    Bin b of B is (b / B, (b + 1) / B], closed on the right; p = 0 falls into the first. p is the probability of the positive
    class, not the confidence in the predicted class. NaN without rows.

    Source: Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian Binning, AAAI 2015.

    Example:
        >>> round(float(ece(jnp.array([0.0, 0.0, 0.0, 0.0]), jnp.array([1, 1, 1, 0]))), 4)
        0.25
    """
    rows = rows_of(logits, labels, mask)
    p = jax.nn.sigmoid(rows.z)[None, :]
    edges = jnp.arange(bins + 1, dtype=p.dtype)[:, None] / bins
    inside = ((p > edges[:-1]) | (jnp.arange(bins)[:, None] == 0)) & (p <= edges[1:])
    # Within a bin n_b |mean(y) − mean(p)| is |Σ (y − p)|.
    excess = jnp.sum(inside * (rows.positive - rows.weight * p[0])[None, :], axis=1)
    return jnp.sum(jnp.abs(excess)) / jnp.sum(rows.weight)


def brier(logits: Logits, labels: Labels, *, mask: Mask | None = None) -> Scalar:
    """Brier score: mean (p − y)²; NaN without rows.

    Example:
        >>> float(brier(jnp.array([0.0, 0.0]), jnp.array([1, 0])))
        0.25
    """
    rows = rows_of(logits, labels, mask)
    return weighted_mean((jax.nn.sigmoid(rows.z) - (rows.positive != 0)) ** 2, rows.weight)


def log_loss(logits: Logits, labels: Labels, *, mask: Mask | None = None) -> Scalar:
    """Mean of −log p on positives and −log(1 − p) on negatives, from logits and without clipping; NaN without rows.

    Example:
        >>> round(float(log_loss(jnp.array([0.0, -100.0]), jnp.array([0, 1]))), 4)
        50.3466
    """
    rows = rows_of(logits, labels, mask)
    return weighted_mean(jax.nn.softplus(jnp.where(rows.positive != 0, -rows.z, rows.z)), rows.weight)


def score_mean(logits: Logits, *, mask: Mask | None = None) -> Scalar:
    """Mean of p; NaN without rows.

    Example:
        >>> float(score_mean(jnp.array([0.0, 100.0])))
        0.75
    """
    rows = rows_of(logits, jnp.zeros(logits.shape), mask)
    return weighted_mean(jax.nn.sigmoid(rows.z), rows.weight)


def score_sd(logits: Logits, *, mask: Mask | None = None) -> Scalar:
    """Standard deviation of p (divisor n); 0 for a constant predictor, NaN without rows.

    Example:
        >>> float(score_sd(jnp.array([0.0, 100.0])))
        0.25
    """
    rows = rows_of(logits, jnp.zeros(logits.shape), mask)
    p = jax.nn.sigmoid(rows.z)
    return jnp.sqrt(weighted_mean((p - weighted_mean(p, rows.weight)) ** 2, rows.weight))
