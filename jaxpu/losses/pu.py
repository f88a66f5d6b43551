"""Losses for positive-unlabelled learning, each a pure function of logits and the labelled flag.

All are called as ``loss(logits, labeled, *, prior=..., mask=None, ...)`` and return a scalar:

- ``logits``: z, shape (n,). float16 and bfloat16 are computed with in float32, float64 in float64.
- ``labeled``: 1 = labelled positive, 0 = unlabelled, shape (n,).
- ``prior``: π, the share of positives among the unlabelled rows; may be traced. Only a Python number can be
  checked: outside (0, 1) it raises ``ValueError``. A formula without π accepts it and does not use it, so
  that all losses can be called alike.
- ``mask``: 1 = the row counts, 0 = padding, shape (n,); None counts every row. What a padded row holds, NaN
  included, reaches neither the value nor the gradient.

E_P is the mean over the labelled positives, E_U over the unlabelled rows, and the mean of an empty set is 0:
a batch that lacks one of the two has a finite value and gradient. A shape other than (n,), such as (n, 1),
raises ``ValueError``; so does the name of a surrogate or variant that does not exist.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool

from jaxpu.losses.density_ratio import pudra, pudra_naive, variational
from jaxpu.losses.options import check_prior
from jaxpu.losses.rows import clean, mean, sets
from jaxpu.losses.surrogates import SURROGATES
from jaxpu.types import Labeled, Logits, Mask, Scalar, ScalarLike


class NnpuTerms(NamedTuple):
    """The non-negative risk taken apart; see :func:`nnpu_terms`."""

    value: Scalar
    objective: Scalar
    clipped: Bool[Array, ""]
    positive_risk: Scalar
    negative_risk: Scalar


def upu(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike,
    mask: Mask | None = None,
    surrogate: str | Callable[[Array], Array] = "sigmoid",
) -> Scalar:
    """Unbiased risk π E_P[ℓ(z)] + (E_U[ℓ(-z)] - π E_P[ℓ(-z)]) of du Plessis et al. (ICML 2015).

    It estimates the risk of a classifier without bias, and can fall below 0. ``surrogate`` is the margin
    loss ℓ: a name from ``SURROGATES``, or a function such as ``surrogates.zero_one``.

    Example:
        >>> round(float(upu(jnp.array([1.0, -1.0]), jnp.array([1, 0]), prior=0.5)), 4)
        0.0379
    """
    positive_risk, negative_risk = _risks(logits, labeled, prior, mask, surrogate)
    return positive_risk + negative_risk


def nnpu_terms(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike,
    mask: Mask | None = None,
    surrogate: str | Callable[[Array], Array] = "sigmoid",
    variant: str = "clip",
    beta: ScalarLike = 0.0,
    gamma: ScalarLike = 1.0,
) -> NnpuTerms:
    """Non-negative risk with its parts: what is reported, what is descended, whether it was clipped.

    Returns:
        ``positive_risk`` R_p = π E_P[ℓ(z)]; ``negative_risk`` R_n = E_U[ℓ(-z)] - π E_P[ℓ(-z)];
        ``clipped`` R_n < -β; ``value`` R_p + max(R_n, -β); ``objective`` the value if ``variant`` is "clip".
        If it is "reversal", the objective is R_p + R_n, or -γ R_n where clipped, so that a step pushes R_n
        back up (Kiryo et al., NeurIPS 2017, algorithm 1).

    Example:
        >>> terms = nnpu_terms(jnp.array([4.0, -4.0]), jnp.array([1, 0]), prior=0.5, variant="reversal")
        >>> bool(terms.clipped), round(float(terms.value), 4), round(float(terms.objective), 4)
        (True, 0.009, 0.473)
    """
    if variant not in ("clip", "reversal"):
        raise ValueError(f"variant is {variant!r}, expected 'clip' or 'reversal'")
    positive_risk, negative_risk = _risks(logits, labeled, prior, mask, surrogate)
    clipped = negative_risk < -beta
    value = positive_risk + jnp.where(clipped, -beta, negative_risk)
    reversal = jnp.where(clipped, -gamma * negative_risk, positive_risk + negative_risk)
    objective = value if variant == "clip" else reversal
    return NnpuTerms(value, objective, clipped, positive_risk, negative_risk)


def nnpu(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike,
    mask: Mask | None = None,
    surrogate: str | Callable[[Array], Array] = "sigmoid",
    variant: str = "clip",
    beta: ScalarLike = 0.0,
    gamma: ScalarLike = 1.0,
) -> Scalar:
    """Non-negative risk: the value is ``nnpu_terms(...).value``, the gradient that of its ``objective``.

    Both variants therefore report the same number, and ``jax.grad`` gives the step of the chosen one.

    Example:
        >>> z, labeled = jnp.array([4.0, -4.0]), jnp.array([1, 0])
        >>> for variant in ("clip", "reversal"):
        ...     gradient = jax.grad(nnpu)(z, labeled, prior=0.5, variant=variant)
        ...     print([round(float(g), 4) for g in gradient])
        [-0.0088, 0.0]
        [0.0088, -0.0177]
    """
    terms = nnpu_terms(
        logits, labeled, prior=prior, mask=mask, surrogate=surrogate, variant=variant, beta=beta, gamma=gamma
    )
    only_gradient = terms.objective - jax.lax.stop_gradient(terms.objective)
    return jax.lax.stop_gradient(terms.value) + only_gradient


def nnpusb(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike,
    mask: Mask | None = None,
    variant: str = "clip",
    beta: ScalarLike = 0.0,
    gamma: ScalarLike = 1.0,
) -> Scalar:
    """The risk of nnPUSB, which is :func:`nnpu` with the logistic surrogate, for labels chosen with a bias.

    The method (Kato et al., ICLR 2019) trusts only the ranking: its threshold is the quantile of the scores
    that leaves a share π above it, not z > 0. That is a matter of evaluation, not of this loss.

    Example:
        >>> round(float(nnpusb(jnp.array([1.0, -1.0]), jnp.array([1, 0]), prior=0.5)), 4)
        0.1566
    """
    return nnpu(logits, labeled, prior=prior, mask=mask, surrogate="logistic", variant=variant, beta=beta, gamma=gamma)


def pn(
    logits: Logits,
    labels: Labeled,
    *,
    prior: ScalarLike | None = None,
    mask: Mask | None = None,
    surrogate: str | Callable[[Array], Array] = "logistic",
) -> Scalar:
    """Mean of the margin loss ℓ(±z), by default the binary cross-entropy; ``prior`` is not used.

    With the true classes as ``labels`` (1 = positive, 0 = negative) this is the oracle; with the labelled
    flag the naive method, which takes every unlabelled row for a negative.

    Example:
        >>> round(float(pn(jnp.array([0.0, 0.0]), jnp.array([1, 0]))), 4)
        0.6931
    """
    positive, negative = sets(labels, mask)
    z = clean(logits, positive | negative)
    return mean(_margin_loss(surrogate)(jnp.where(positive, z, -z)), positive | negative)


def batch_prior(labeled: Labeled, mask: Mask | None = None) -> Scalar:
    """Share of labelled positives in the batch, n_P / n: the prior of the empirical vPUDRa; 0 without rows.

    Example:
        >>> float(batch_prior(jnp.array([1, 0, 0, 0])))
        0.25
    """
    positive, unlabeled = sets(labeled, mask)
    return positive.sum() / jnp.maximum((positive | unlabeled).sum(), 1)


LOSSES: dict[str, Callable[..., Array]] = {
    "pn": pn,
    "upu": upu,
    "nnpu": nnpu,
    "nnpusb": nnpusb,
    "pudra": pudra,
    "pudra_naive": pudra_naive,
    "variational": variational,
}
"""The losses by name, all called as ``loss(logits, labeled, prior=..., mask=...)``."""


def _risks(
    logits: Logits,
    labeled: Labeled,
    prior: ScalarLike,
    mask: Mask | None,
    surrogate: str | Callable[[Array], Array],
) -> tuple[Scalar, Scalar]:
    """The risks R_p and R_n of :func:`nnpu_terms`."""
    check_prior(prior)
    positive, unlabeled = sets(labeled, mask)
    z = clean(logits, positive | unlabeled)
    as_positive, as_negative = _margin_loss(surrogate)(jnp.stack([z, -z]))
    negative_risk = mean(as_negative, unlabeled) - prior * mean(as_negative, positive)
    return prior * mean(as_positive, positive), negative_risk


def _margin_loss(surrogate: str | Callable[[Array], Array]) -> Callable[[Array], Array]:
    if not isinstance(surrogate, str):
        return surrogate
    if surrogate not in SURROGATES:
        raise ValueError(f"surrogate is {surrogate!r}, expected a function or one of {list(SURROGATES)}")
    return SURROGATES[surrogate]
