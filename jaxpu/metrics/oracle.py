"""All metrics with true labels in one call, from one ranking: what the training loop records every epoch."""

import jax
from jax import numpy as jnp

from jaxpu.checks import counted_rows
from jaxpu.metrics.calibration import brier, ece, log_loss, score_mean, score_sd
from jaxpu.metrics.checks import Labels, rows_of
from jaxpu.metrics.ranking import auc_of, average_precision_of, f1_best_of, f1_quantile_of, f1_rescue_of, rank
from jaxpu.metrics.threshold import accuracy, f1, f1_max_shift, precision, predicted_positive, recall
from jaxpu.types import Logits, Mask, Scalar, ScalarLike

_PLAIN = ("f1", "f1_best", "auc", "average_precision", "ece", "brier", "log_loss", "accuracy")


def oracle_metrics(
    logits: Logits, labels: Labels, *, prior: ScalarLike, log_p_max: ScalarLike, mask: Mask | None = None
) -> dict[str, Scalar]:
    """Metrics of one split by their recorded names, each computed by the function of that name.

    Args:
        logits: z, shape (n,).
        labels: 1 or 0, shape (n,).
        prior: π of the quantile rules.
        log_p_max: maximum of log p over the training set, for the max shift.
        mask: 1 for a row that counts, shape (n,).

    Returns:
        Scalars ``oracle_accuracy``, ``oracle_precision`` and so on; the decision is p > 0.5 unless the name
        says otherwise. ``predicted_positive``, ``score_mean`` and ``score_sd`` need no labels, hence no
        prefix.

    Example:
        >>> import jax.numpy as jnp
        >>> z, y = jnp.array([2.0, 1.0, -1.0, -2.0]), jnp.array([1, 1, 0, 0])
        >>> values = oracle_metrics(z, y, prior=0.5, log_p_max=0.0)
        >>> float(values["oracle_f1"]), float(values["predicted_positive"])
        (1.0, 0.5)
    """
    ranking = rank(rows_of(logits, labels, mask))
    return {
        "oracle_accuracy": accuracy(logits, labels, mask=mask),
        "oracle_precision": precision(logits, labels, mask=mask),
        "oracle_recall": recall(logits, labels, mask=mask),
        "oracle_f1": f1(logits, labels, mask=mask),
        "oracle_f1_quantile": f1_quantile_of(ranking, prior),
        "oracle_f1_max_shift": f1_max_shift(logits, labels, log_p_max=log_p_max, mask=mask),
        "oracle_f1_rescue": f1_rescue_of(ranking, prior),
        "oracle_f1_best": f1_best_of(ranking),
        "oracle_auc": auc_of(ranking),
        "oracle_average_precision": average_precision_of(ranking),
        "oracle_ece": ece(logits, labels, mask=mask),
        "oracle_brier": brier(logits, labels, mask=mask),
        "oracle_log_loss": log_loss(logits, labels, mask=mask),
        "predicted_positive": predicted_positive(logits, mask=mask),
        "score_mean": score_mean(logits, mask=mask),
        "score_sd": score_sd(logits, mask=mask),
    }


def plain_metrics(logits: Logits, labels: Labels, *, mask: Mask | None = None) -> dict[str, Scalar]:
    """Metrics of scores of whatever origin by their plain names: at p > 0.5, with no prior that was given.

    Args:
        logits, labels, mask: as in :func:`oracle_metrics`.

    Returns:
        f1, f1_best, auc, average_precision, ece, brier, log_loss, accuracy, predicted_positive, score_mean, score_sd,
        score_min, score_max (of p), and prevalence, the share of positives.

    Example:
        >>> found = plain_metrics(jnp.array([2.0, -1.0, 5.0]), jnp.array([1, 0, 0]), mask=jnp.array([1, 1, 0]))
        >>> float(found["auc"]), float(found["prevalence"])
        (1.0, 0.5)
    """
    rows_of(logits, labels, mask)  # refuses other shapes
    rows = counted_rows(logits.shape[0], mask)
    p = jax.nn.sigmoid(logits)
    prevalence = jnp.sum(rows * labels) / jnp.sum(rows)
    low, high = jnp.where(rows, p, jnp.inf).min(), jnp.where(rows, p, -jnp.inf).max()
    found = oracle_metrics(logits, labels, prior=prevalence, log_p_max=jnp.log(high), mask=rows)
    named = {name: found[f"oracle_{name}"] for name in _PLAIN}
    free = {name: found[name] for name in ("predicted_positive", "score_mean", "score_sd")}
    return named | free | {"score_min": low, "score_max": high, "prevalence": prevalence}
