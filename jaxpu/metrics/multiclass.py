"""Metrics of k logits a row with true classes, under the conventions of :mod:`jaxpu.metrics`.

The prediction is the class of the largest logit, the first of equal ones, and p = softmax(z). All are NaN without rows,
or with a NaN among the logits that count.
"""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Num

from jaxpu.margins import all_margins, one_hot
from jaxpu.metrics.checks import weighted_mean
from jaxpu.metrics.ranking import auc
from jaxpu.positive import counted_rows
from jaxpu.types import Mask, Scalar

Logits: TypeAlias = Float[Array, "n k"]
"""One logit a class."""

Classes: TypeAlias = Num[Array, " n"]
"""Class numbers 0 .. k - 1."""


class _Rows(NamedTuple):
    """Logits, predictions and classes of the rows; the weight is 0 on padding, NaN if a logit that counts is NaN."""

    z: Float[Array, "n k"]
    predicted: Bool[Array, "n k"]
    true: Bool[Array, "n k"]
    weight: Float[Array, " n"]

    @property
    def right(self) -> Bool[Array, " n"]:
        """Whether the prediction is the class."""
        return (self.predicted & self.true).any(axis=1)

    @property
    def confidence(self) -> Float[Array, " n"]:
        """The largest p."""
        return jax.nn.softmax(self.z, axis=1).max(axis=1)

    def rows_of(self, which: Bool[Array, "n k"]) -> Float[Array, " k"]:
        """Rows of each class among those that count."""
        return jnp.where(which, self.weight[:, None], 0).sum(axis=0)


def accuracy(logits: Logits, labels: Classes, *, mask: Mask | None = None) -> Scalar:
    """Share of rows whose prediction is their class.

    Args:
        logits: z, shape (n, k). labels: class numbers, shape (n,). mask: 1 for a row that counts, shape (n,).

    Raises:
        ValueError: other shapes; so do all functions of this module.

    Example:
        >>> z = jnp.array([[2.0, 0.0, 1.0], [0.0, 1.0, 3.0]])
        >>> float(accuracy(z, jnp.array([0, 1])))
        0.5
    """
    rows = _rows(logits, labels, mask)
    return weighted_mean(rows.right, rows.weight)


def balanced_accuracy(logits: Logits, labels: Classes, *, mask: Mask | None = None) -> Scalar:
    """Mean of the recalls of the classes that have rows.

    Example:
        >>> z = jnp.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]])
        >>> float(balanced_accuracy(z, jnp.array([0, 0, 1])))
        0.5
    """
    rows = _rows(logits, labels, mask)
    size, hits = rows.rows_of(rows.true), rows.rows_of(rows.true & rows.predicted)
    return _mean_where(size != 0, hits, size)


def macro_f1(logits: Logits, labels: Classes, *, mask: Mask | None = None) -> Scalar:
    """Mean of F1 = 2 TP / (rows + predictions) over the classes that have rows or are predicted.

    Example:
        >>> z = jnp.array([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
        >>> round(float(macro_f1(z, jnp.array([0, 1, 1]))), 4)
        0.6667
    """
    rows = _rows(logits, labels, mask)
    total = rows.rows_of(rows.true) + rows.rows_of(rows.predicted)
    return _mean_where(total != 0, 2 * rows.rows_of(rows.true & rows.predicted), total)


def macro_auc(logits: Logits, labels: Classes, *, mask: Mask | None = None) -> Scalar:
    """Mean of the areas under the ROC curves of p_k, each class against the rest, over the classes that have rows.

    NaN with less than two of them.

    Example:
        >>> z = jnp.array([[2.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
        >>> float(macro_auc(z, jnp.array([0, 1, 1])))
        1.0
    """
    rows = _rows(logits, labels, mask)
    area = jax.vmap(lambda margin, own: auc(margin, own, mask=mask), in_axes=1)(all_margins(rows.z), rows.true)
    size = rows.rows_of(rows.true)
    return _mean_where(size != 0, area, jnp.ones_like(area))


def log_loss(logits: Logits, labels: Classes, *, mask: Mask | None = None) -> Scalar:
    """Mean of -log p_y, not clipped.

    Example:
        >>> round(float(log_loss(jnp.zeros((2, 4)), jnp.array([0, 3]))), 4)
        1.3863
    """
    rows = _rows(logits, labels, mask)
    log_p = jnp.where(rows.true, jax.nn.log_softmax(rows.z, axis=1), 0).sum(axis=1)
    return weighted_mean(-log_p, rows.weight)


def brier(logits: Logits, labels: Classes, *, mask: Mask | None = None) -> Scalar:
    """Brier score over all classes: mean of Σ_k (p_k - 1[k = y])², between 0 and 2.

    Source: Brier, Verification of forecasts expressed in terms of probability, Monthly Weather Review 78, 1950.

    Example:
        >>> float(brier(jnp.zeros((1, 2)), jnp.array([0])))
        0.5
    """
    rows = _rows(logits, labels, mask)
    return weighted_mean(((jax.nn.softmax(rows.z, axis=1) - rows.true) ** 2).sum(axis=1), rows.weight)


def ece(logits: Logits, labels: Classes, *, bins: int = 15, mask: Mask | None = None) -> Scalar:
    """Expected calibration error of the confidence: Σ_b (n_b / n) |accuracy_b - mean_b max_k p_k|.

    The bins are those of :func:`jaxpu.metrics.ece`, which for two classes looks at the p of the positive one.

    Raises:
        ValueError: if ``bins`` is below 1.

    Source: Guo et al., On Calibration of Modern Neural Networks, ICML 2017.

    Example:
        >>> round(float(ece(jnp.zeros((4, 2)), jnp.array([0, 0, 0, 1]))), 4)
        0.25
    """
    if bins < 1:
        raise ValueError(f"expected at least one bin, got bins={bins}")
    rows = _rows(logits, labels, mask)
    inner_edges = jnp.arange(1, bins, dtype=rows.z.dtype) / bins
    bin_of_row = jnp.sum(rows.confidence[None, :] > inner_edges[:, None], axis=0)
    inside = bin_of_row[None, :] == jnp.arange(bins)[:, None]
    excess = rows.weight * (rows.right - rows.confidence)
    return jnp.sum(jnp.abs(jnp.sum(inside * excess[None, :], axis=1))) / jnp.sum(rows.weight)


def confidence_logit(logits: Float[Array, "n *k"]) -> Float[Array, " n"]:
    """The log odds of the largest p of each row, log(max p / (1 - max p)); for one logit a row |z|.

    Example:
        >>> confidence_logit(jnp.array([[0.0, 2.0], [1.0, 0.0]])).tolist(), confidence_logit(jnp.array([-3.0])).tolist()
        ([2.0, 1.0], [3.0])
    """
    return jnp.abs(logits) if logits.ndim == 1 else all_margins(logits).max(axis=1)


def oracle_metrics(logits: Logits, labels: Classes, *, mask: Mask | None = None) -> dict[str, Scalar]:
    """All metrics of one split by their recorded names.

    ``predicted_most`` is the share of the rows that is predicted as the class predicted most often, ``largest_class``
    the share of the class that has most rows; ``score_mean`` and ``score_sd`` are those of the confidence max p.

    Example:
        >>> found = oracle_metrics(jnp.array([[2.0, 0.0], [1.0, 0.0]]), jnp.array([0, 1]))
        >>> float(found["oracle_accuracy"]), float(found["predicted_most"]), float(found["largest_class"])
        (0.5, 1.0, 0.5)
    """
    rows = _rows(logits, labels, mask)
    mean, n = weighted_mean(rows.confidence, rows.weight), rows.weight.sum()
    return {
        "oracle_accuracy": accuracy(logits, labels, mask=mask),
        "oracle_balanced_accuracy": balanced_accuracy(logits, labels, mask=mask),
        "oracle_f1": macro_f1(logits, labels, mask=mask),
        "oracle_auc": macro_auc(logits, labels, mask=mask),
        "oracle_ece": ece(logits, labels, mask=mask),
        "oracle_brier": brier(logits, labels, mask=mask),
        "oracle_log_loss": log_loss(logits, labels, mask=mask),
        "predicted_most": rows.rows_of(rows.predicted).max() / n,
        "largest_class": rows.rows_of(rows.true).max() / n,
        "score_mean": mean,
        "score_sd": jnp.sqrt(weighted_mean((rows.confidence - mean) ** 2, rows.weight)),
    }


def _rows(logits: Logits, labels: Classes, mask: Mask | None) -> _Rows:
    """Check shapes, promote the dtype, put zeros in padding."""
    logits, labels = jnp.asarray(logits), jnp.asarray(labels)
    n = logits.shape[0] if logits.ndim == 2 and logits.shape[1] > 1 else -1
    shapes = [labels.shape] if mask is None else [labels.shape, jnp.shape(mask)]
    if any(shape != (n,) for shape in shapes):
        raise ValueError(
            f"expected logits (n, k) with k of at least 2, labels (n,) and mask (n,), got {logits.shape} and "
            f"{' and '.join(map(str, shapes))}; for one logit a row see jaxpu.metrics"
        )
    counts = counted_rows(n, mask)
    z = jnp.where(counts[:, None], logits.astype(jnp.promote_types(logits.dtype, jnp.float32)), 0)
    unit = jnp.where(jnp.isnan(z).any(), jnp.nan, 1).astype(z.dtype)
    predicted = one_hot(jnp.argmax(z, axis=1), z.shape[1])
    return _Rows(z, predicted, one_hot(labels, z.shape[1]), jnp.where(counts, unit, 0))


def _mean_where(chosen: Bool[Array, " k"], numerator: Float[Array, " k"], denominator: Float[Array, " k"]) -> Scalar:
    """Mean of the ratios of the chosen classes; NaN if there are none, or one of them is NaN."""
    ratios = jnp.where(chosen, numerator, 0) / jnp.where(chosen, denominator, 1)
    return ratios.sum() / chosen.sum()
