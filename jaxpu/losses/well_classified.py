"""Losses that reward what is classified well, and schedules of the point where the reward stops growing fast.

They are called as the other losses of :mod:`jaxpu.losses.classification`, which says what logits, labels, weights, mask
and reduction are, and what the gradient size s is.
"""

import functools
from collections.abc import Callable

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxpu.losses import surrogates
from jaxpu.losses.expectation import Loss, expectation
from jaxpu.losses.options import check_range
from jaxpu.types import ClassLabels, ClassLogits, Mask, ScalarLike, Weights


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
    the gradient falls from 1 to that of the cross-entropy, 1 - p ≤ f.

    Args:
        logits, labels, weights, mask, reduction: as for all, see the module.
        floor: f in [0, 1]. The published code has 1e-5.

    Source: Zhao et al., "Well-classified examples are underestimated in classification with deep neural networks",
    AAAI 2022.

    Example:
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
    the published one, or a = 1, "unit", which is the seed's C - p_y with C = log(1 - LE) + LE by continuity.

    Gradient: s = 1 up to LE and (1 - p) (1 + a p) beyond. With the tangent it is continuous; with the unit slope it
    falls at LE from 1 to 1 - LE². As p → 1 it is (1 + a) times that of the cross-entropy: 5 times for the tangent at
    LE = 0.75, twice for the unit slope. So it vanishes as fast, and the seed's note that the loss is :func:`mae` there
    holds for its line alone: the cross-entropy is still in it.

    LE = 1 is :func:`bonus`; LE = 0 is cross-entropy + mae - 1 with either slope, everywhere.

    Args:
        logits, labels, weights, mask, reduction: as for all, see the module.
        log_end: LE in [0, 1]. 0.75 is the default of the published code.
        slope: "tangent" or "unit".

    Source: Zhao et al., AAAI 2022, as :func:`bonus`; seed 002 for the unit slope.

    Example:
        >>> logits, labels = jnp.array([1.0, 2.0]), jnp.array([1, 1])
        >>> [round(x, 4) for x in encouraging(logits, labels, reduction="none").tolist()]
        [-1.0, -1.7826]
        >>> [round(x, 4) for x in encouraging(logits, labels, slope="unit", reduction="none").tolist()]
        [-1.0, -1.3902]
    """
    loss = functools.partial(surrogates.encouraging, log_end=log_end, slope=slope)
    return expectation(loss, logits, labels, weights, mask, reduction)


def constant(epochs: int) -> Float[Array, " epochs"]:
    """Stays at the start.

    Example:
        >>> constant(3).tolist()
        [0.0, 0.0, 0.0]
    """
    return jnp.zeros(epochs)


def linear(epochs: int) -> Float[Array, " epochs"]:
    """Goes evenly, from the start in the first epoch to the end in the last.

    Example:
        >>> linear(3).tolist()
        [0.0, 0.5, 1.0]
    """
    return jnp.arange(epochs) / max(epochs - 1, 1)


def step(epochs: int) -> Float[Array, " epochs"]:
    """Goes at half time; a middle epoch is in the second half.

    Example:
        >>> step(5).tolist()
        [0.0, 0.0, 1.0, 1.0, 1.0]
    """
    return jnp.where(jnp.arange(epochs) < epochs // 2, 0.0, 1.0)


LOG_END_SCHEDULES: dict[str, Callable[[int], Array]] = {"constant": constant, "linear": linear, "step": step}
"""The share of the way from start to end that is done in every epoch, by the schedule's name."""


def log_end_schedule(
    kind: str, epochs: int, start: ScalarLike, end: ScalarLike | None = None
) -> Float[Array, " epochs"]:
    """LE of every epoch: start + (end - start) times the share of the way that is done.

    Args:
        kind: a name from ``LOG_END_SCHEDULES``. epochs: at least 1.
        start, end: in [0, 1]; may be traced. No end is the start; "constant" does not use it.

    Raises:
        ValueError: no schedule of that name, less than one epoch, a Python number outside [0, 1].

    Example:
        >>> log_end_schedule("linear", 3, 0.5, 1.0).tolist()
        [0.5, 0.75, 1.0]
    """
    if kind not in LOG_END_SCHEDULES:
        raise ValueError(f"kind is {kind!r}, expected one of {list(LOG_END_SCHEDULES)}")
    if epochs < 1:
        raise ValueError(f"epochs is {epochs}, expected at least 1")
    end = start if end is None else end
    check_range("start", start, 0, 1)
    check_range("end", end, 0, 1)
    return start + (end - start) * LOG_END_SCHEDULES[kind](epochs)
