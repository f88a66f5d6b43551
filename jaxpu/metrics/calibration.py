"""Metrics of the probabilities themselves, with true labels, and the spread of the scores."""

import jax
import jax.numpy as jnp

from jaxpu.metrics.checks import Labels, rows_of, weighted_mean
from jaxpu.types import Logits, Mask, Scalar


def ece(logits: Logits, labels: Labels, *, bins: int = 15, mask: Mask | None = None) -> Scalar:
    """Expected calibration error of p: Σ_b (n_b / n) |mean_b(y) − mean_b(p)| over bins of equal width.

    Bin b of B is (b / B, (b + 1) / B], closed on the right; p = 0 falls into the first. p is the
    probability of the positive class, not the confidence in the predicted class. NaN without rows.

    Raises:
        ValueError: if ``bins`` is below 1.

    Source: Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian Binning,
    AAAI 2015.

    Example:
        >>> round(float(ece(jnp.array([0.0, 0.0, 0.0, 0.0]), jnp.array([1, 1, 1, 0]))), 4)
        0.25
    """
    if bins < 1:
        raise ValueError(f"expected at least one bin, got bins={bins}")
    rows = rows_of(logits, labels, mask)
    p = jax.nn.sigmoid(rows.z)
    inner_edges = jnp.arange(1, bins, dtype=p.dtype) / bins
    bin_of_row = jnp.sum(p[None, :] > inner_edges[:, None], axis=0)
    inside = bin_of_row[None, :] == jnp.arange(bins)[:, None]
    # Within a bin n_b |mean(y) − mean(p)| is |Σ (y − p)|.
    excess = rows.positive - rows.weight * p
    return jnp.sum(jnp.abs(jnp.sum(inside * excess[None, :], axis=1))) / jnp.sum(rows.weight)


def brier(logits: Logits, labels: Labels, *, mask: Mask | None = None) -> Scalar:
    """Brier score: mean (p − y)²; NaN without rows.

    Example:
        >>> float(brier(jnp.array([0.0, 0.0, 0.0, 0.0]), jnp.array([1, 0, 0, 0])))
        0.25
    """
    rows = rows_of(logits, labels, mask)
    return weighted_mean((jax.nn.sigmoid(rows.z) - (rows.positive != 0)) ** 2, rows.weight)


def log_loss(logits: Logits, labels: Labels, *, mask: Mask | None = None) -> Scalar:
    """Mean of −log p on positives and −log(1 − p) on negatives, not clipped; NaN without rows.

    Example:
        >>> round(float(log_loss(jnp.array([0.0, 0.0, -100.0, -100.0]), jnp.array([1, 0, 1, 0]))), 4)
        25.3466
    """
    rows = rows_of(logits, labels, mask)
    return weighted_mean(jax.nn.softplus(jnp.where(rows.positive != 0, -rows.z, rows.z)), rows.weight)


def score_mean(logits: Logits, *, mask: Mask | None = None) -> Scalar:
    """Mean of p; NaN without rows.

    Example:
        >>> float(score_mean(jnp.array([0.0, 0.0, 100.0, 100.0])))
        0.75
    """
    rows = rows_of(logits, jnp.zeros(logits.shape), mask)
    return weighted_mean(jax.nn.sigmoid(rows.z), rows.weight)


def score_sd(logits: Logits, *, mask: Mask | None = None) -> Scalar:
    """Standard deviation of p (divisor n); 0 for a constant predictor, NaN without rows.

    Example:
        >>> float(score_sd(jnp.array([0.0, 0.0, 100.0, 100.0])))
        0.25
    """
    rows = rows_of(logits, jnp.zeros(logits.shape), mask)
    p = jax.nn.sigmoid(rows.z)
    return jnp.sqrt(weighted_mean((p - weighted_mean(p, rows.weight)) ** 2, rows.weight))
