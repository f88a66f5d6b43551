"""P3Mix: cross-entropy on mixed rows, U taken for negative, and two corrections of that.

Called as the risks of :mod:`jaxpu.losses.pu`, which says what the arguments mean. Whom a row is mixed with is half of
the method: :func:`jaxpu.mixup.boundary_positives`. Without ``mixed`` every row is mixed with itself.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool

from jaxpu.checks import check_range
from jaxpu.losses.batch import Mixed, clean, mean, sets
from jaxpu.losses.surrogates import binary_entropy, soft_cross_entropy
from jaxpu.types import Labeled, Logits, Mask, Scalar, ScalarLike

LEAST = 1e-4
"""p stays that far from 0 and 1 in the term of early learning, which has no minimum otherwise."""


def p3mix_c(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike | None = None,
    mask: Mask | None = None,
    mixed: Mixed | None = None,
    upper: ScalarLike = 0.85,
    unlabeled_weight: ScalarLike = 0.5,
    entropy: ScalarLike = 0.05,
) -> Scalar:
    """E_P[H(y_mix, p_mix)] + w E_U[H(y_mix, p_mix)] + β E[H(p_mix)], where y corrects labels that the network denies.

    y is 1 on P and where p > ``upper`` on U, else 0, a constant; y_mix = λ y + (1 - λ) y[partner].

    Args:
        mixed: the pass over mixed rows. upper: the p beyond which an unlabeled row counts as positive, 1 = none does.
        unlabeled_weight: w. entropy: β. prior: not used.
        logits, labeled, mask: as for all, see :mod:`jaxpu.losses.pu`.

    Source: Li et al., "Who Is Your Right Mixup Partner in Positive and Unlabeled Learning", ICLR 2022, the variant
    P3Mix-C; the coefficients are those of PU-Bench (ICLR 2026).

    Example:
        >>> z, s = jnp.array([0.0, 0.0]), jnp.array([1, 0])
        >>> round(float(p3mix_c(z, s)), 4)  # (1 + 0.5 + 0.05) log 2
        1.0744
    """
    check_range("upper", upper, 0, 1)
    positive, unlabeled = sets(labeled, mask)
    z = clean(logits, positive | unlabeled)
    y = jnp.where(positive | (unlabeled & (jax.nn.sigmoid(z) > upper)), 1.0, 0.0).astype(z.dtype)
    mixed = _given(mixed, z)
    return _supervised(mixed, y, positive, unlabeled, unlabeled_weight, entropy)


def p3mix_e(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike | None = None,
    mask: Mask | None = None,
    mixed: Mixed | None = None,
    memory: dict[str, Any] | None = None,
    forward: Callable[[Any], Array] | None = None,
    lower: ScalarLike = 0.15,
    upper: ScalarLike = 0.85,
    unlabeled_weight: ScalarLike = 1.0,
    entropy: ScalarLike = 0.01,
    early: ScalarLike = 0.5,
) -> Scalar:
    """As :func:`p3mix_c` with y = 1 on P and 0 on U, and + η E[log(1 - t_mix p_mix - (1 - t_mix)(1 - p_mix))].

    That term keeps what was learned early: it falls as p_mix nears t, what a teacher, the average of the network over
    steps, says of the rows. t of a partner from the pool of boundary positives is 1.

    Args:
        mixed: the pass over mixed rows. memory, forward: the teacher's parameters, ``memory["params"]``, and what gives
            the logits of the batch from them; None = the network itself is its teacher, a constant.
        lower, upper: the rows that the pairing gives partners from the pool are those of U with p between them.
        unlabeled_weight: w. entropy: β. early: η. prior: not used.
        logits, labeled, mask: as for all, see :mod:`jaxpu.losses.pu`.

    Source: Li et al., ICLR 2022, the variant P3Mix-E, whose term is that of Liu et al., "Early-Learning Regularization
    Prevents Memorization of Noisy Labels", NeurIPS 2020; coefficients as in :func:`p3mix_c`. In PU-Bench the teacher is
    averaged once an epoch, here at every step; all terms clip p to 1e-4 from its ends there, here this one alone.

    Example:
        >>> z, s = jnp.array([0.0, 0.0]), jnp.array([1, 0])
        >>> round(float(p3mix_e(z, s)), 4)  # (1 + 1 + 0.01 - 0.5) log 2
        1.0467
    """
    check_range("lower", lower, 0, 1)
    check_range("upper", upper, 0, 1)
    positive, unlabeled = sets(labeled, mask)
    counted = positive | unlabeled
    z = clean(logits, counted)
    mixed = _given(mixed, z)
    value = _supervised(mixed, positive.astype(z.dtype), positive, unlabeled, unlabeled_weight, entropy)
    p = jax.nn.sigmoid(z)
    said = p if memory is None or forward is None else jax.nn.sigmoid(clean(forward(memory["params"]), counted))
    pooled = unlabeled & (p > lower) & (p < upper)
    t = jax.lax.stop_gradient(mixed.of(said, jnp.where(pooled, 1, said[mixed.partner])))
    furthest = jnp.log((1 - LEAST) / LEAST)
    p_mixed = jax.nn.sigmoid(jnp.clip(clean(mixed.logits, counted), -furthest, furthest))
    return value + early * mean(jnp.log(t * (1 - p_mixed) + (1 - t) * p_mixed), counted)


def _supervised(
    mixed: Mixed,
    y: Array,
    positive: Bool[Array, " n"],
    unlabeled: Bool[Array, " n"],
    unlabeled_weight: ScalarLike,
    entropy: ScalarLike,
) -> Scalar:
    check_range("unlabeled_weight", unlabeled_weight, 0)
    check_range("entropy", entropy, 0)
    counted = positive | unlabeled
    z = clean(mixed.logits, counted)
    apart = soft_cross_entropy(z, jax.lax.stop_gradient(mixed.of(y)))
    value = mean(apart, positive) + unlabeled_weight * mean(apart, unlabeled)
    return value + entropy * mean(binary_entropy(z), counted)


def _given(mixed: Mixed | None, z: Logits) -> Mixed:
    return Mixed(z, jnp.arange(z.shape[0]), 1.0) if mixed is None else mixed
