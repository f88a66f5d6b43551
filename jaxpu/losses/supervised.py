"""Risks that are the mean of a margin loss over labels: the oracle, and the method that takes U for negative.

Called as those of :mod:`jaxpu.losses.pu`, which says what the arguments mean.
"""

import jax.numpy as jnp

from jaxpu.losses import surrogates
from jaxpu.losses.batch import sets
from jaxpu.losses.labels import expectation
from jaxpu.losses.surrogates import Surrogate
from jaxpu.losses.weighting import ClassWeights, row_weights
from jaxpu.types import ClassLabels, ClassLogits, Labeled, Logits, Mask, Scalar, ScalarLike, Weights


def pn(
    logits: ClassLogits,
    labeled: Labeled,
    *,
    y: ClassLabels,
    prior: ScalarLike | None = None,
    mask: Mask | None = None,
    class_weights: ClassWeights | None = None,
    weights: Weights | None = None,
    surrogate: Surrogate = "logistic",
    log_end: ScalarLike = 0.75,
    focus: ScalarLike = 2.0,
) -> Scalar:
    """Mean of the margin loss with the true labels ``y``, by default the cross-entropy: the supervised oracle.

    With two classes a logit a row, y = 1 or 0; with k of them logits (n, k), y = 0 … k - 1. ``labeled`` and ``prior``
    are not used. It is a loss of :mod:`jaxpu.losses.classification`: the margin losses are the same functions.

    Args:
        y: (n,) true labels, or soft ones as there.
        class_weights: (k,) how much a row of each class counts, a soft label by its shares. weights: (n,) how much each
            row counts, times that of its class. The mean divides by the sum of both together; None is 1 each.
        logits, labeled, prior, mask, surrogate, log_end, focus: as for all, see the module.

    Example:
        >>> z, y = jnp.array([0.0, 0.0]), jnp.array([1, 0])
        >>> round(float(pn(z, jnp.zeros(2), y=y)), 4)
        0.6931
    """
    if class_weights is not None:
        of_class = row_weights(class_weights, y, mask=mask)
        weights = of_class if weights is None else of_class * weights
    margin_loss = surrogates.chosen(surrogate, log_end=log_end, focus=focus)
    return expectation(margin_loss, logits, y, weights, mask, "mean")


def pn_naive(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike | None = None,
    mask: Mask | None = None,
    class_weights: ClassWeights | None = None,
    surrogate: Surrogate = "logistic",
    log_end: ScalarLike = 0.75,
    focus: ScalarLike = 2.0,
) -> Scalar:
    """:func:`pn` that takes every unlabeled row for a negative; ``prior`` is not used.

    Example:
        >>> round(float(pn_naive(jnp.array([0.0, 0.0]), jnp.array([1, 0]))), 4)
        0.6931
    """
    positive, _ = sets(labeled, mask)
    return pn(
        logits,
        labeled,
        y=positive.astype(jnp.int32),
        mask=mask,
        class_weights=class_weights,
        surrogate=surrogate,
        log_end=log_end,
        focus=focus,
    )
