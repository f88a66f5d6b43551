"""Risks that leave out the rows that fit least: CVIR, and the two halves of LBE's expectation maximisation.

Called as the risks of :mod:`jaxpu.losses.pu`, which says what the arguments mean.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from jaxpu.checks import check_prior, check_range
from jaxpu.losses.batch import clean, mean, sets
from jaxpu.losses.surrogates import soft_cross_entropy
from jaxpu.types import Labeled, Logits, Mask, Scalar, ScalarLike


def lowest(
    values: Float[Array, " n"], rows: Bool[Array, " n"], count: ScalarLike | Float[Array, ""]
) -> Float[Array, " n"]:
    """1 for the ``count`` lowest values of a set of rows, 0 for the others; those equal at its end share what is left.

    Example:
        >>> lowest(jnp.array([3.0, 1.0, 2.0, 2.0, 0.0]), jnp.array([True, True, True, True, False]), 2).tolist()
        [0.0, 1.0, 0.5, 0.5, 0.0]
    """
    ordered = jnp.sort(jnp.where(rows, values, jnp.inf))
    edge = ordered[jnp.clip(jnp.asarray(count).astype(int) - 1, 0, values.size - 1)]
    below, at = rows & (values < edge), rows & (values == edge)
    share = (count - below.sum()) / jnp.maximum(at.sum(), 1)
    return jax.lax.stop_gradient(jnp.where(below, 1, jnp.where(at, share, 0)).astype(values.dtype))


def cvir(logits: Logits, labeled: Labeled, *, prior: ScalarLike, mask: Mask | None = None) -> Scalar:
    """Conditional value ignoring risk π E_P[-log p] + (1 - π) E_U'[-log(1 - p)], U' being U without its largest losses.

    Of n unlabeled rows the ⌊π n⌋ with the largest p, which are positives if the network ranks well, are left out.

    Source: Garg et al., "Mixture Proportion Estimation and PU Learning: A Modern Approach", NeurIPS 2021, with the
    weights of Wang et al., ICLR 2026 (arXiv 2509.24228). There rows are ranked once an epoch over all of U, here over
    that of the batch; and the paper estimates π anew in turns, here it is given.

    Example:
        >>> z, s = jnp.array([0.0, 0.0, 9.0]), jnp.array([1, 0, 0])
        >>> round(float(cvir(z, s, prior=0.5)), 4)  # the last row is left out
        0.6931
    """
    check_prior(prior)
    positive, unlabeled = sets(labeled, mask)
    z = clean(logits, positive | unlabeled)
    as_negative = -jax.nn.log_sigmoid(-z)
    n = unlabeled.sum()
    kept = lowest(as_negative, unlabeled, n - jnp.floor(prior * n + 1e-4))
    of_unlabeled = (kept * as_negative).sum() / jnp.maximum(kept.sum(), 1)
    return (1 - prior) * of_unlabeled - prior * mean(jax.nn.log_sigmoid(z), positive)


def lbe(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike | None = None,
    mask: Mask | None = None,
    memory: dict[str, Any] | None = None,
    rows: Int[Array, " n"] | None = None,
    keep: ScalarLike = 0.8,
) -> Scalar:
    """LBE's step of the classifier h: mean of H(q, p) over the share ``keep`` of the batch where it is smallest.

    q is 1 on P and the probability that an unlabeled row is positive elsewhere, :func:`lbe_posterior` of h and of the
    network η that says how likely positives are labeled, as it was when the row was last seen; a constant.

    Args:
        memory, rows: q of all training rows, ``memory["posterior"]``, and which of them these are; None = q is p.
        keep: the share of the rows that is kept. prior: not used.
        logits, labeled, mask: as for all, see :mod:`jaxpu.losses.pu`.

    Source: Gong et al., "Instance-Dependent Positive and Unlabeled Learning with Labeling Bias Estimation", TPAMI 2021,
    and the formulas of its code as PU-Bench (ICLR 2026) has them. There posteriors are computed for all rows at once,
    and then several steps taken, each on a tenth of all rows.

    Example:
        >>> round(float(lbe(jnp.array([0.0, 0.0, 5.0]), jnp.array([1, 0, 0]))), 4)  # two of three rows
        0.3667
    """
    check_range("keep", keep, 0, 1)
    positive, unlabeled = sets(labeled, mask)
    counted = positive | unlabeled
    z = clean(logits, counted)
    said = jax.nn.sigmoid(z) if memory is None or rows is None else memory["posterior"][rows].astype(z.dtype)
    each = soft_cross_entropy(z, jax.lax.stop_gradient(jnp.where(positive, 1, said)))
    kept = lowest(each, counted, jnp.maximum(jnp.floor(keep * counted.sum() + 1e-4), 1))
    return (kept * each).sum() / jnp.maximum(kept.sum(), 1)


def lbe_posterior(h: Float[Array, "*shape"], eta: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """P(y = 1 | x, s = 0) = h (1 - η) / (h (1 - η) + 1 - h), of the logits of h and η; a labeled row is positive.

    h is P(y = 1 | x), and η is P(s = 1 | y = 1, x). The posterior's logit is that of h plus log(1 - η).

    Example:
        >>> round(float(lbe_posterior(jnp.array(0.0), jnp.array(0.0))), 4)
        0.3333
    """
    return jax.nn.sigmoid(h + jax.nn.log_sigmoid(-eta))


def lbe_labeling(eta: Logits, labeled: Labeled, posterior: Float[Array, " n"], *, mask: Mask | None = None) -> Scalar:
    """LBE's step of η: mean of -q [s log η + (1 - s) log(1 - η)], q = 1 on P and ``posterior`` on U.

    Example:
        >>> round(float(lbe_labeling(jnp.zeros(2), jnp.array([1, 0]), jnp.array([0.5, 0.5]))), 4)  # (1 + 0.5) / 2 log 2
        0.5199
    """
    positive, unlabeled = sets(labeled, mask)
    z = clean(eta, positive | unlabeled)
    q = jax.lax.stop_gradient(jnp.where(positive, 1, posterior))
    return mean(q * soft_cross_entropy(z, positive.astype(z.dtype)), positive | unlabeled)
