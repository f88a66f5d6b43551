"""Metrics without true labels: from labeled positives P, unlabeled rows U and the class prior π of U.

The first three write the unseen negatives as U minus π parts of P, which assumes that P is drawn at random
from the positives (SCAR). ``pu_accuracy`` and ``pu_auc`` are unbiased: with few rows, or a wrong π, they
leave [0, 1]. They are not clipped to it, since clipping would hide that, and tie runs that differ.
"""

from typing import Any

import jax.numpy as jnp

from jaxpu import losses
from jaxpu.checks import check_range
from jaxpu.metrics.checks import Rows, rows_of, weighted_mean
from jaxpu.metrics.ranking import auc
from jaxpu.types import Labeled, Logits, Mask, Scalar, ScalarLike


def pu_accuracy(logits: Logits, labeled: Labeled, *, prior: ScalarLike, mask: Mask | None = None) -> Scalar:
    """Accuracy on U without labels: π P_P(z > 0) + P_U(z ≤ 0) − π P_P(z ≤ 0).

    Accuracy is π TPR + (1 − π) TNR. TPR is P_P(z > 0), and P_U(z ≤ 0) = π P_P(z ≤ 0) + (1 − π) TNR. It equals
    one minus the unbiased PU risk with the zero-one loss. Unbiased, not clipped: it may leave [0, 1].

    Args:
        logits: z, shape (n,).
        labeled: 1 = labeled positive, 0 = unlabeled, shape (n,).
        prior: π, the share of positives in U.
        mask: 1 for a row that counts, shape (n,).

    Returns:
        The estimate; NaN without labeled or without unlabeled rows.

    Source: du Plessis, Niu and Sugiyama, Analysis of Learning from Positive and Unlabeled Data, NIPS 2014.

    Example:
        >>> z, s = jnp.array([2.0, 1.0, 3.0, -1.0]), jnp.array([1, 1, 0, 0])
        >>> round(float(pu_accuracy(z, s, prior=0.5)), 4)
        1.0
    """
    check_range("prior", prior, 0, 1)
    rows = rows_of(logits, labeled, mask)
    tpr = weighted_mean(rows.z > 0, rows.positive)
    return prior * tpr + weighted_mean(rows.z <= 0, rows.negative) - prior * (1 - tpr)


def pu_auc(logits: Logits, labeled: Labeled, *, prior: ScalarLike, mask: Mask | None = None) -> Scalar:
    """AUC without labels: (AUC_PU − π/2) / (1 − π), with AUC_PU that of P against U.

    A share π of U is positive and ties with P on average, so AUC_PU = π/2 + (1 − π) AUC. Not clipped: it may
    leave [0, 1].

    Args:
        logits: z, shape (n,).
        labeled: 1 = labeled positive, 0 = unlabeled, shape (n,).
        prior: π, the share of positives in U.
        mask: 1 for a row that counts, shape (n,).

    Returns:
        The estimate; NaN without labeled or without unlabeled rows, or if π = 1.

    Source: Menon, van Rooyen, Ong and Williamson, Learning from Corrupted Binary Labels via Class-Probability
    Estimation, ICML 2015; Jain, White and Radivojac, Recovering True Classifier Performance in
    Positive-Unlabeled Learning, AAAI 2017.

    Example:
        >>> z, s = jnp.array([2.0, 2.0, 2.0, 0.0]), jnp.array([1, 1, 0, 0])
        >>> float(pu_auc(z, s, prior=0.5))
        1.0
    """
    check_range("prior", prior, 0, 1)
    corrupted = auc(logits, labeled, mask=mask)
    return jnp.where(prior == 1, jnp.nan, (corrupted - prior / 2) / (1 - prior))


def nn_risk(logits: Logits, labeled: Labeled, *, prior: ScalarLike, mask: Mask | None = None) -> Scalar:
    """Non-negative PU risk with the sigmoid loss ℓ(z) = σ(−z), :func:`jaxpu.losses.nnpu` where P and U are there.

    π E_P ℓ(z) + max(0, E_U ℓ(−z) − π E_P ℓ(−z)). The sigmoid loss is the zero-one loss made smooth, so the risk reads
    as an error rate. Smaller is better.

    Args:
        logits: z, shape (n,).
        labeled: 1 = labeled positive, 0 = unlabeled, shape (n,).
        prior: π, the share of positives in U.
        mask: 1 for a row that counts, shape (n,).

    Returns:
        The risk; NaN without labeled or without unlabeled rows.

    Source: Kiryo, Niu, du Plessis and Sugiyama, Positive-Unlabeled Learning with Non-Negative Risk Estimator,
    NIPS 2017.

    Example:
        >>> z, s = jnp.zeros(4), jnp.array([1, 1, 0, 0])
        >>> float(nn_risk(z, s, prior=0.25))
        0.5
    """
    rows = rows_of(logits, labeled, mask)
    risk = losses.nnpu(rows.z, rows.positive != 0, prior=jnp.asarray(prior), mask=rows.weight != 0)
    return _where_both(rows, risk)


def variational(logits: Logits, labeled: Labeled, *, mask: Mask | None = None) -> Scalar:
    """Variational risk of VPU as published, log E_U[p] − E_P[log p]: :func:`jaxpu.losses.variational` over U.

    Smaller is better, and π is not needed. Unchanged if p is multiplied by a constant, so it says nothing about the
    threshold.

    Args:
        logits: z, shape (n,).
        labeled: 1 = labeled positive, 0 = unlabeled, shape (n,).
        mask: 1 for a row that counts, shape (n,).

    Returns:
        The loss; NaN without labeled or without unlabeled rows.

    Source: Chen, Liu, Wang, Zhao and Wu, A Variational Approach for Learning from Positive and Unlabeled
    Data, NeurIPS 2020.

    Example:
        >>> z, s = jnp.array([0.0, 0.0, -300.0, -300.0]), jnp.array([1, 1, 0, 0])
        >>> round(float(variational(z, s)), 2)
        -299.31
    """
    rows = rows_of(logits, labeled, mask)
    risk = losses.variational(rows.z, rows.positive != 0, mask=rows.weight != 0, over="unlabeled")
    return _where_both(rows, risk)


def _where_both(rows: Rows, risk: Any) -> Scalar:
    """The risk, NaN without labeled or without unlabeled rows, whose means are 0 in a loss."""
    both = jnp.any(rows.positive != 0) & jnp.any(rows.negative != 0)
    return jnp.where(both, risk, jnp.nan)


def proxy_metrics(
    logits: Logits, labeled: Labeled, *, prior: ScalarLike, mask: Mask | None = None
) -> dict[str, Scalar]:
    """All proxies of one split by their recorded names.

    Args:
        logits: z, shape (n,).
        labeled: 1 = labeled positive, 0 = unlabeled, shape (n,).
        prior: π, the share of positives in U.
        mask: 1 for a row that counts, shape (n,).

    Returns:
        Scalars ``proxy_nn_risk``, ``proxy_pu_accuracy``, ``proxy_pu_auc``, ``proxy_variational``.

    Example:
        >>> z, s = jnp.array([2.0, 1.0, -1.0, -2.0]), jnp.array([1, 1, 0, 0])
        >>> values = proxy_metrics(z, s, prior=0.5)
        >>> round(float(values["proxy_pu_accuracy"]), 4)
        1.5
    """
    return {
        "proxy_nn_risk": nn_risk(logits, labeled, prior=prior, mask=mask),
        "proxy_pu_accuracy": pu_accuracy(logits, labeled, prior=prior, mask=mask),
        "proxy_pu_auc": pu_auc(logits, labeled, prior=prior, mask=mask),
        "proxy_variational": variational(logits, labeled, mask=mask),
    }
