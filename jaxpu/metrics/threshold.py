"""Metrics of a decision: predict positive iff z > threshold, with true labels."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxpu.metrics.checks import Labels, Rows, rows_of, weighted_mean
from jaxpu.types import Logits, Mask, Scalar, ScalarLike


def accuracy(logits: Logits, labels: Labels, *, threshold: ScalarLike = 0.0, mask: Mask | None = None) -> Scalar:
    """Share of rows whose prediction equals their label; NaN without rows.

    Example:
        >>> float(accuracy(jnp.array([2.0, -1.0, 0.0, 1.0]), jnp.array([1, 0, 1, 0])))
        0.5
    """
    rows = rows_of(logits, labels, mask)
    return weighted_mean((rows.z > threshold) == (rows.positive != 0), rows.weight)


def precision(logits: Logits, labels: Labels, *, threshold: ScalarLike = 0.0, mask: Mask | None = None) -> Scalar:
    """TP / (TP + FP): share of positives among the rows predicted positive.

    0 if no row is predicted positive (scikit-learn's ``zero_division=0``), NaN without rows.

    Example:
        >>> float(precision(jnp.array([2.0, -1.0, 1.0, -2.0]), jnp.array([1, 1, 0, 0])))
        0.5
    """
    rows = rows_of(logits, labels, mask)
    share = weighted_mean(rows.positive != 0, rows.weight * (rows.z > threshold))
    nothing_predicted = weighted_mean(rows.z > threshold, rows.weight) == 0
    return jnp.where(nothing_predicted, 0, share)


def recall(logits: Logits, labels: Labels, *, threshold: ScalarLike = 0.0, mask: Mask | None = None) -> Scalar:
    """TP / (TP + FN): share of the positives that is predicted positive; NaN without positives.

    Example:
        >>> float(recall(jnp.array([2.0, -1.0, 1.0, -2.0]), jnp.array([1, 1, 0, 0])))
        0.5
    """
    rows = rows_of(logits, labels, mask)
    return weighted_mean(rows.z > threshold, rows.positive)


def f1(logits: Logits, labels: Labels, *, threshold: ScalarLike = 0.0, mask: Mask | None = None) -> Scalar:
    """2 TP / (2 TP + FP + FN), the harmonic mean of precision and recall.

    0 if no positive is found, NaN without positives. Read it beside ``f1_always_positive``.

    Example:
        >>> float(f1(jnp.array([2.0, -1.0, 1.0, -2.0]), jnp.array([1, 1, 0, 0])))
        0.5
    """
    rows = rows_of(logits, labels, mask)
    return f1_of(rows, rows.z > threshold)


def f1_max_shift(logits: Logits, labels: Labels, *, log_p_max: ScalarLike, mask: Mask | None = None) -> Scalar:
    """F1 of the published VPU rule: positive iff log p − log p_max > log ½.

    The variational objective does not change if p is multiplied by a constant, so the published method scales
    p to a maximum of 1 before it compares with ½.

    Args:
        logits: z, shape (n,).
        labels: 1 or 0, shape (n,).
        log_p_max: maximum of log p over the training set (not over these rows).
        mask: 1 for a row that counts, shape (n,).

    Returns:
        F1; NaN without positives or if ``log_p_max`` is NaN.

    Source: Chen, Liu, Wang, Zhao and Wu, A Variational Approach for Learning from Positive and Unlabeled
    Data, NeurIPS 2020.

    Example:
        >>> z, y = jnp.array([-1.0, -1.2, -3.0, -3.0]), jnp.array([1, 1, 0, 0])
        >>> float(f1(z, y)), float(f1_max_shift(z, y, log_p_max=-1.3))
        (0.0, 1.0)
    """
    rows = rows_of(logits, labels, mask)
    shifted = f1_of(rows, jax.nn.log_sigmoid(rows.z) - log_p_max > math.log(0.5))
    return jnp.where(jnp.isnan(log_p_max), jnp.nan, shifted)


def f1_always_positive(labels: Labels, *, mask: Mask | None = None) -> Scalar:
    """2π / (1 + π): the F1 of predicting positive everywhere, with π the share of positives in ``labels``.

    The floor that any useful F1 must pass. NaN without positives.

    Example:
        >>> round(float(f1_always_positive(jnp.array([1, 1, 0, 0]))), 4)
        0.6667
    """
    rows = rows_of(jnp.zeros(labels.shape), labels, mask)
    return f1_of(rows, jnp.ones(rows.z.shape, bool))


def predicted_positive(logits: Logits, *, threshold: ScalarLike = 0.0, mask: Mask | None = None) -> Scalar:
    """Share of rows with z > threshold; NaN without rows. 0 or 1 is the sign of a collapse.

    Example:
        >>> float(predicted_positive(jnp.array([2.0, 0.0, -1.0, 3.0])))
        0.5
    """
    rows = rows_of(logits, jnp.zeros(logits.shape), mask)
    return weighted_mean(rows.z > threshold, rows.weight)


def f1_of(rows: Rows, predicted: Bool[Array, " n"]) -> Scalar:
    """F1 of a decision already taken; NaN without positives."""
    found, claimed = jnp.sum(rows.positive * predicted), jnp.sum(rows.weight * predicted)
    return f1_from_counts(found, claimed, jnp.sum(rows.positive))


def f1_from_counts(found: Array, claimed: Array, positives: Array) -> Array:
    """2 TP / (positives + predicted positives), elementwise; NaN without positives."""
    return jnp.where(positives == 0, jnp.nan, 2 * found / (positives + claimed))
