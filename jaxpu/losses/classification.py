"""Classification losses, binary and multi-class, each a pure function of logits and labels.

All are called as ``loss(logits, labels, *, weights=None, mask=None, reduction="mean", ...)``:

- ``logits``: z, shape (n,) for two classes, p = σ(z) being the probability of class 1; or (n, k), p = softmax(z).
  float16 and bfloat16 are computed with in float32, float64 in float64.
- ``labels``: for logits (n,), 0 or 1 or the probability of class 1, shape (n,); for logits (n, k), integers
  0 … k - 1, shape (n,), or distributions, shape (n, k). What is no label, such as -1, makes its row NaN.
- ``weights``: w ≥ 0, shape (n,); None is 1 each.
- ``mask``: 1 = the row counts, 0 = padding, shape (n,); None counts every row. What a padded row holds, NaN
  included, reaches neither the value nor the gradient.
- ``reduction``: "mean" is Σ w ℓ / Σ w, divided by the sum of the weights and not by n, so that a weight of 2 is a row
  that is there twice; 0 where Σ w is 0. "sum" is Σ w ℓ, "none" the w ℓ of every row, 0 in padding.

Options that are numbers may be traced; a Python number out of its range raises ``ValueError``, and so do other shapes
and unknown words.

**One number.** The loss of a hard label is a function f of p_y, the probability of the label. With the margin
m = z_y - log Σ exp z_j over the other classes, which is ±z for one logit a row, p_y = σ(m): each of these losses is a
margin loss of :mod:`jaxpu.losses.surrogates`, and a logit z is the same as two logits (0, z). All of them descend in
one direction,

    ∂ℓ/∂z = s(p_y) (r - e_y),  r the softmax over the classes other than y;
    for one logit a row -s(p) if y = 1, and s(1 - p) if y = 0,

and differ in the size s alone. The table has s; as functions they are in :mod:`jaxpu.losses.gradients`.

    mse            (1 - p_y)²                          2 p (1 - p)²
    cross_entropy  -log p_y                            1 - p
    mae            1 - p_y                             p (1 - p)
    mae_mse        their sum                           their sum
    bonus          -log p_y + log(1 - p_y)             1
    encouraging    the same up to p_y = LE,            1
                   beyond it a line instead of log     (1 - p) (1 + p / (1 - LE))
    focal          -(1 - p_y)^γ log p_y                (1 - p)^γ (1 - p - γ p log p)

**Soft labels.** The loss of a distribution q is the expectation Σ q_k f(p_k): it is linear in the label, so that mixing
two labels is mixing their losses. For two classes, q (1 - p)² + (1 - q) p² = (p - q)² + q (1 - q): the mean squared
error exceeds (p - q)² by the variance of the label and has the same gradient. The mean absolute error is not |p - q|,
which is least at p = q; the expectation is least at the likelier class.

>>> import jax.numpy as jnp
>>> from jaxpu import losses
>>> logits, labels = jnp.array([[2.0, 0.0, -1.0], [0.5, 0.0, 0.0]]), jnp.array([0, 2])
>>> round(float(losses.cross_entropy(logits, labels)), 4)
0.7321
>>> [round(x, 4) for x in losses.cross_entropy(logits, labels, reduction="none", mask=jnp.array([0, 1])).tolist()]
[0.0, 1.2944]
"""

import functools
from collections.abc import Callable

from jax import Array

from jaxpu.losses import surrogates
from jaxpu.losses.labels import Loss, expectation
from jaxpu.types import ClassLabels, ClassLogits, Mask, ScalarLike, Weights


def mse(
    logits: ClassLogits,
    labels: ClassLabels,
    *,
    weights: Weights | None = None,
    mask: Mask | None = None,
    reduction: str = "mean",
) -> Loss:
    """Squared error of the label's probability, (1 - p_y)², for one logit (p - y)².

    Gradient: s = 2 p (1 - p)², in one logit 2 (p - y) p (1 - p). It vanishes at both ends: quadratically where the
    label is predicted well, linearly where it is not. Summed over both classes, as in the Brier score, it is twice
    this; with more classes the Brier score is another loss, for it looks at the other probabilities too.

    Example:
        >>> import jax.numpy as jnp
        >>> round(float(mse(jnp.array([0.0, 2.0]), jnp.array([1, 1]))), 4)
        0.1321
    """
    return expectation(surrogates.savage, logits, labels, weights, mask, reduction)


def cross_entropy(
    logits: ClassLogits,
    labels: ClassLabels,
    *,
    weights: Weights | None = None,
    mask: Mask | None = None,
    reduction: str = "mean",
) -> Loss:
    """Cross-entropy -log p_y, -Σ q_k log p_k of a soft label; binary if there is one logit a row.

    Gradient: s = 1 - p, in all logits p - q.

    Example:
        >>> import jax.numpy as jnp
        >>> round(float(cross_entropy(jnp.array([0.0, 2.0]), jnp.array([1, 1]))), 4)
        0.41
    """
    return expectation(surrogates.logistic, logits, labels, weights, mask, reduction)


def mae(
    logits: ClassLogits,
    labels: ClassLabels,
    *,
    weights: Weights | None = None,
    mask: Mask | None = None,
    reduction: str = "mean",
) -> Loss:
    """Absolute error of the label's probability, 1 - p_y, for one logit |p - y| (Ghosh et al., AAAI 2017).

    Gradient: s = p (1 - p), in one logit sign(p - y) p (1 - p), ≃ 1 - p for p → 1 and ≃ p for p → 0. So at a label
    that is predicted well its gradient is that of the cross-entropy, at one that is not it is close to 0, where that
    of the cross-entropy is 1. Summed over all classes, Σ |q_k - p_k| is twice this.

    Example:
        >>> import jax.numpy as jnp
        >>> round(float(mae(jnp.array([0.0, 2.0]), jnp.array([1, 1]))), 4)
        0.3096
    """
    return expectation(surrogates.sigmoid, logits, labels, weights, mask, reduction)


def mae_mse(
    logits: ClassLogits,
    labels: ClassLabels,
    *,
    weights: Weights | None = None,
    mask: Mask | None = None,
    reduction: str = "mean",
) -> Loss:
    """Sum of :func:`mae` and :func:`mse`.

    Gradient: s = p (1 - p) (3 - 2 p).

    Example:
        >>> import jax.numpy as jnp
        >>> round(float(mae_mse(jnp.array([0.0, 2.0]), jnp.array([1, 1]))), 4)
        0.4417
    """
    return expectation(surrogates.mae_mse, logits, labels, weights, mask, reduction)


def focal(
    logits: ClassLogits,
    labels: ClassLabels,
    *,
    gamma: ScalarLike = 2.0,
    weights: Weights | None = None,
    mask: Mask | None = None,
    reduction: str = "mean",
) -> Loss:
    """Focal loss -(1 - p_y)^γ log p_y, γ ≥ 0, the opposite of :func:`bonus`: what is classified well counts less.

    Gradient: s = (1 - p)^γ (1 - p - γ p log p). γ = 0 is :func:`cross_entropy`. The paper's α are ``weights``, whose
    mean divides by their sum.

    Source: Lin et al., "Focal loss for dense object detection", ICCV 2017.

    Example:
        >>> import jax.numpy as jnp
        >>> [round(x, 4) for x in focal(jnp.array([0.0, 2.0]), jnp.array([1, 1]), reduction="none").tolist()]
        [0.1733, 0.0018]
    """
    return expectation(functools.partial(surrogates.focal, gamma=gamma), logits, labels, weights, mask, reduction)


def bonus(
    logits: ClassLogits,
    labels: ClassLabels,
    *,
    floor: ScalarLike = 0.0,
    weights: Weights | None = None,
    mask: Mask | None = None,
    reduction: str = "mean",
) -> Loss:
    """Cross-entropy with a bonus for what is classified well, L_O = -log p_y + log(1 - p_y) = -m.

    Gradient: s = 1. What diverges as p → 1 is the value, to -∞, and the derivative in p; in the logits the loss is
    linear, and its gradient has the same size everywhere. So nothing overflows here, but nothing holds the logits
    either: L_O has no minimum.

    With a floor f > 0 the bonus is log max(1 - p_y, f), and L_O ≥ log f. Beyond p_y = 1 - f the bonus is constant, and
    the gradient falls from 1 to that of the cross-entropy, 1 - p ≤ f. ``floor`` is f in [0, 1]; the published code has
    1e-5.

    Source: Zhao et al., "Well-classified examples are underestimated ...", AAAI 2022.

    Example:
        >>> import jax.numpy as jnp
        >>> float(bonus(jnp.array([1.0, 2.0]), jnp.array([1, 1])))
        -1.5
    """
    return expectation(functools.partial(surrogates.bonus, floor=floor), logits, labels, weights, mask, reduction)


def encouraging(
    logits: ClassLogits,
    labels: ClassLabels,
    *,
    log_end: ScalarLike = 0.75,
    slope: str = "tangent",
    weights: Weights | None = None,
    mask: Mask | None = None,
    reduction: str = "mean",
) -> Loss:
    """Encouraging loss L_LE: :func:`bonus` up to p_y = LE, beyond it with a line in place of the bonus's logarithm.

    For p_y > LE the loss is -log p_y + log(1 - LE) - a (p_y - LE), with a = 1 / (1 - LE) for the "tangent", which is
    the published one, or a = 1, "unit", the line C - p_y with C = log(1 - LE) + LE by continuity.

    Gradient: s = 1 up to LE and (1 - p) (1 + a p) beyond. With the tangent it is continuous; with the unit slope it
    falls at LE from 1 to 1 - LE². As p → 1 it is (1 + a) times that of the cross-entropy: 5 times for the tangent at
    LE = 0.75, twice for the unit slope. So it vanishes as fast; its line alone is :func:`mae`
    there, and the cross-entropy is still in it.

    LE = 1 is :func:`bonus`; LE = 0 is cross-entropy + mae - 1 with either slope, everywhere.

    Args:
        logits, labels, weights, mask, reduction: as for all, see the module.
        log_end: LE in [0, 1]. 0.75 is the default of the published code.
        slope: "tangent" or "unit".

    Source: Zhao et al., AAAI 2022, as :func:`bonus`.

    Example:
        >>> import jax.numpy as jnp
        >>> logits, labels = jnp.array([1.0, 2.0]), jnp.array([1, 1])
        >>> [round(x, 4) for x in encouraging(logits, labels, reduction="none").tolist()]
        [-1.0, -1.7826]
        >>> [round(x, 4) for x in encouraging(logits, labels, slope="unit", reduction="none").tolist()]
        [-1.0, -1.3902]
    """
    loss = functools.partial(surrogates.encouraging, log_end=log_end, slope=slope)
    return expectation(loss, logits, labels, weights, mask, reduction)


CLASSIFICATION: dict[str, Callable[..., Array]] = {
    "mse": mse,
    "cross_entropy": cross_entropy,
    "mae": mae,
    "mae_mse": mae_mse,
    "bonus": bonus,
    "encouraging": encouraging,
    "focal": focal,
}
"""The losses by name, all called as ``loss(logits, labels, weights=..., mask=..., reduction=...)``."""
