"""Labels, hard or soft: distributions over the classes, margins of the classes, and means of a margin loss.

Hard labels are integers 0 … k - 1, shape (n,). A soft label is a distribution over the k classes, shape (n, k); for two
classes also the probability of class 1, shape (n,).
"""

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxpu.losses.batch import check_range, wide, without_padding
from jaxpu.margins import all_margins, one_hot, own_margin
from jaxpu.positive import counted_rows
from jaxpu.types import ClassLabels, ClassLogits, Mask, ScalarLike, Weights

Loss: TypeAlias = Float[Array, ""] | Float[Array, " n"]
"""A scalar, or with ``reduction="none"`` one number a row."""

REDUCTIONS = ("mean", "sum", "none")
"""What becomes of the losses of the rows: Σ w ℓ / Σ w, Σ w ℓ, or each w ℓ."""

INFINITE = 1e30
"""Logits of several classes beyond it count as infinite."""

ENDLESS = 1e15
"""Size from which a margin counts as infinite where the label has no share: 0 times its loss is 0, and not NaN."""

ROUNDING = 0.01
"""How far a soft label may be outside [0, 1]: averages of labels in bfloat16 are, by its rounding."""


def distribution(labels: ClassLabels, classes: int) -> Float[Array, "n k"]:
    """Labels of either kind as shares of the classes, shape (n, classes).

    The shares of a soft label are taken as they are: a row that sums to c counts c times.

    Args:
        labels: (n,) integers; (n, classes); or, for two classes, (n,) probabilities of class 1.
        classes: k ≥ 2.

    Returns:
        The shares, float32 or wider; NaN for what is no label: an integer that is no class, a share outside [0, 1].

    Raises:
        ValueError: other shapes, fractions as labels of more than two classes, less than two classes.

    Example:
        >>> distribution(jnp.array([2, 0]), 3).tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
        >>> distribution(jnp.array([0.25]), 2).tolist()
        [[0.75, 0.25]]
    """
    labels = jnp.asarray(labels)
    check_labels(labels, classes)
    if labels.ndim == 2:
        return _shares(labels)
    if jnp.issubdtype(labels.dtype, jnp.floating):
        positive = _shares(labels)
        return jnp.stack([1 - positive, positive], axis=-1)
    hit = one_hot(labels, classes)
    return jnp.where(hit.any(axis=-1, keepdims=True), hit.astype(float), jnp.nan)


def smooth_labels(labels: ClassLabels, classes: int, amount: ScalarLike) -> Float[Array, "n k"]:
    """Label smoothing: the distribution (1 - a) q + a / k, of hard or soft labels (Szegedy et al., CVPR 2016).

    For one logit a row, take the probability of class 1: ``smooth_labels(labels, 2, amount)[:, 1]``.

    Args:
        labels, classes: as for :func:`distribution`. amount: a in [0, 1]; may be traced.

    Raises:
        ValueError: a Python number as ``amount`` outside [0, 1]; what :func:`distribution` refuses.

    Example:
        >>> [round(x, 2) for x in smooth_labels(jnp.array([1]), 4, 0.2)[0].tolist()]
        [0.05, 0.85, 0.05, 0.05]
    """
    check_range("amount", amount, 0, 1)
    shares = distribution(labels, classes)
    amount = jnp.asarray(amount, shares.dtype)
    return (1 - amount) * shares + amount / classes


@jax.jit  # one call outside a compiled program, and one trace for all the losses inside it
def margins(logits: ClassLogits, labels: ClassLabels) -> tuple[Float[Array, "n c"], Float[Array, "n c"]]:
    """Margins of classes, and the share of the label that is on each.

    The margin of class k is m = z_k - log Σ exp z_j over the other classes, so that σ(m) = p_k and σ(-m) = 1 - p_k
    with all digits on both sides; for one logit a row, ±z. Only the label's class is there if the label is hard and
    there are several logits, else all are.

    Args:
        logits: (n,) or (n, k), finite, float32 or wider. labels: that fit them, see :func:`check_shapes`.

    Example:
        >>> m, share = margins(jnp.array([[0.0, 2.0]]), jnp.array([1]))
        >>> m.tolist(), share.tolist()
        ([[2.0]], [[1.0]])
        >>> m, share = margins(jnp.array([2.0]), jnp.array([0.75]))
        >>> m.tolist(), share.tolist()
        ([[2.0, -2.0]], [[0.75, 0.25]])
    """
    if logits.ndim == 1:
        positive = _shares(labels).astype(logits.dtype)
        return jnp.stack([logits, -logits], axis=-1), jnp.stack([positive, 1 - positive], axis=-1)
    classes = logits.shape[1]
    logits = jnp.clip(logits, -INFINITE, INFINITE)  # differences of infinite logits, and their gradients, are NaN
    if labels.ndim == 2 or jnp.issubdtype(labels.dtype, jnp.floating):
        return _endless(all_margins(logits)), distribution(labels, classes).astype(logits.dtype)
    hit = one_hot(labels, classes)
    share = jnp.where(hit.any(axis=-1, keepdims=True), 1.0, jnp.nan)
    return _endless(own_margin(logits, hit)), share.astype(logits.dtype)


def _endless(m: Float[Array, "n c"]) -> Float[Array, "n c"]:
    """Margins of infinite logits are infinite again in value; the gradient passes."""
    return m + jax.lax.stop_gradient(jnp.where(jnp.abs(m) >= INFINITE / 2, m * jnp.inf, 0))


def check_labels(labels: ClassLabels, classes: int) -> None:
    """Refuse labels that are neither (n,) nor (n, k), or fractions of more than two classes.

    Raises:
        ValueError: so, or with less than two classes.

    Example:
        >>> check_labels(jnp.zeros((5, 3)), 10)
        Traceback (most recent call last):
        ValueError: labels have shape (5, 3), expected (n,) integers or (n, 10) shares of the classes
    """
    if classes < 2:
        raise ValueError(f"classes is {classes}, expected at least 2: for one logit a row pass logits of shape (n,)")
    if labels.ndim not in (1, 2) or (labels.ndim == 2 and labels.shape[1] != classes):
        raise ValueError(
            f"labels have shape {labels.shape}, expected (n,) integers or (n, {classes}) shares of the classes"
        )
    if labels.ndim == 1 and classes > 2 and jnp.issubdtype(labels.dtype, jnp.floating):
        raise ValueError(f"labels are {labels.dtype} of shape (n,), expected integers from 0 to {classes - 1}")


def check_shapes(logits: ClassLogits, labels: ClassLabels) -> None:
    """Refuse logits that are neither (n,) nor (n, k), and labels that do not fit them.

    Raises:
        ValueError: with the shape that came and the one that was expected.

    Example:
        >>> check_shapes(jnp.zeros((4, 1)), jnp.zeros(4))
        Traceback (most recent call last):
        ValueError: logits have shape (4, 1), expected (n,) for two classes or (n, k) with k of at least 2: ...
    """
    if logits.ndim == 2 and logits.shape[1] > 1:
        check_labels(labels, logits.shape[1])
    elif logits.ndim != 1:
        raise ValueError(
            f"logits have shape {logits.shape}, expected (n,) for two classes or (n, k) with k of at least 2: "
            "try logits.ravel() for one logit a row"
        )
    elif labels.ndim != 1:
        raise ValueError(f"labels have shape {labels.shape}, expected {logits.shape}: one a row, like the logits")
    if labels.shape[0] != logits.shape[0]:
        raise ValueError(f"labels have {labels.shape[0]} rows, expected {logits.shape[0]} like the logits")


def expectation(
    margin_loss: Callable[[Array], Array],
    logits: ClassLogits,
    labels: ClassLabels,
    weights: Weights | None,
    mask: Mask | None,
    reduction: str,
) -> Loss:
    """Weighted mean over the rows of Σ q_k ℓ(m_k), ℓ a margin loss, or what ``reduction`` says.

    A share q_k or a weight of 0 contributes 0, in value and gradient, also where ℓ(m_k) is infinite.

    Raises:
        ValueError: shapes that do not fit, a reduction that does not exist.

    Example:
        >>> import jax
        >>> float(expectation(jax.nn.sigmoid, jnp.zeros(2), jnp.array([0, 1]), None, None, "mean"))
        0.5
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction is {reduction!r}, expected one of {list(REDUCTIONS)}")
    logits, labels = jnp.asarray(logits), jnp.asarray(labels)
    check_shapes(logits, labels)
    counted = counted_rows(labels.shape[0], mask)
    logits = wide(without_padding(logits, counted))
    weights = _row_weights(weights, counted, logits)
    absent = jnp.expand_dims(weights == 0, range(1, logits.ndim))
    logits = jnp.where(absent & ~jnp.isfinite(logits), 0, logits)
    m, share = margins(logits, without_padding(labels, counted))
    m = jnp.where((share == 0) & ~(jnp.abs(m) < ENDLESS), 0, m)
    each = weights * (share * margin_loss(m)).sum(axis=-1)
    if reduction == "none":
        return each
    total = weights.sum() if reduction == "mean" else 1
    return each.sum() / jnp.where(total > 0, total, 1)


def _shares(labels: ClassLabels) -> Float[Array, "n *k"]:
    shares = wide(labels)
    return jnp.where(jnp.abs(shares - 0.5) <= 0.5 + ROUNDING, shares, jnp.nan)


def _row_weights(weights: Weights | None, counted: Array, logits: ClassLogits) -> Float[Array, " n"]:
    """The weights in the logits' type, 0 in padding."""
    if weights is None:
        return counted.astype(logits.dtype)
    weights = jnp.asarray(weights)
    if weights.shape != counted.shape:
        raise ValueError(f"weights have shape {weights.shape}, expected {counted.shape}, one a row")
    return without_padding(weights, counted).astype(logits.dtype)
