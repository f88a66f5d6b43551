"""Risks for positive-unlabeled learning, each a pure function of logits and the labeled flag.

What is written here is what trains, what the proxies measure and what ``jaxpu.methods.RISKS`` names. All are called
as ``risk(logits, labeled, *, prior=..., mask=None, ...)`` and return a scalar:

- ``logits``: z, shape (n,). float16 and bfloat16 are computed with in float32, float64 in float64.
- ``labeled``: 1 = labeled positive, 0 = unlabeled, shape (n,).
- ``prior``: π, the share of positives among the unlabeled rows; may be traced. Only a Python number can be
  checked: outside (0, 1) it raises ``ValueError``. A formula without π accepts it and does not use it, so
  that all risks can be called alike.
- ``mask``: 1 = the row counts, 0 = padding, shape (n,); None counts every row. What a padded row holds, NaN
  included, reaches neither the value nor the gradient.
- ``surrogate``: the margin loss ℓ, a name from ``SURROGATES`` or a function such as ``surrogates.zero_one``;
  ``log_end`` is the option of ``encouraging``, ``focus`` the γ of ``focal``, and the other surrogates use neither.
- ``aux``: True for ``(value, {"clipped": 0 or 1})`` from the risks that clip, which is what training records.

E_P is the mean over the labeled positives, E_U over the unlabeled rows, and the mean of an empty set is 0:
a batch that lacks one of the two has a finite value and gradient. A shape other than (n,), such as (n, 1),
raises ``ValueError``; so does the name of a surrogate that does not exist. Numbers may be traced; choices may not.

R_p = π E_P[ℓ(z)] and R_n = E_U[ℓ(-z)] - π E_P[ℓ(-z)] are the two parts of the PU risk.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool

from jaxpu.checks import check_prior, check_range
from jaxpu.losses import surrogates
from jaxpu.losses.batch import clean, mean, sets
from jaxpu.losses.surrogates import Surrogate
from jaxpu.types import Labeled, Logits, Mask, Scalar, ScalarLike

Valued: TypeAlias = Scalar | tuple[Scalar, dict[str, Scalar]]
"""A risk, or with ``aux=True`` the risk and whether it was clipped."""


class NnpuTerms(NamedTuple):
    """The non-negative risk taken apart; see :func:`nnpu_terms`."""

    value: Scalar
    reversed: Scalar
    clipped: Bool[Array, ""]
    positive_risk: Scalar
    negative_risk: Scalar


def upu(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike,
    mask: Mask | None = None,
    surrogate: Surrogate = "sigmoid",
    log_end: ScalarLike = 0.75,
    focus: ScalarLike = 2.0,
) -> Scalar:
    """Unbiased risk R_p + R_n = π E_P[ℓ(z)] + (E_U[ℓ(-z)] - π E_P[ℓ(-z)]) of du Plessis et al. (ICML 2015).

    It estimates the risk of a classifier without bias, and can fall below 0.

    Example:
        >>> round(float(upu(jnp.array([1.0, -1.0]), jnp.array([1, 0]), prior=0.5)), 4)
        0.0379
    """
    positive_risk, negative_risk = _parts(
        logits, labeled, prior, mask, surrogates.chosen(surrogate, log_end=log_end, focus=focus)
    )
    return positive_risk + negative_risk


def nnpu_terms(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike,
    mask: Mask | None = None,
    surrogate: Surrogate = "sigmoid",
    beta: ScalarLike = 0.0,
    gamma: ScalarLike = 1.0,
    log_end: ScalarLike = 0.75,
    focus: ScalarLike = 2.0,
) -> NnpuTerms:
    """Non-negative risk with its parts: what is reported, what reversal descends, whether it was clipped.

    Returns:
        ``positive_risk`` R_p; ``negative_risk`` R_n; ``clipped`` R_n < -β; ``value`` R_p + max(R_n, -β);
        ``reversed`` R_p + R_n, or -γ R_n where clipped, so that a step pushes R_n back up (Kiryo et al., NeurIPS
        2017, algorithm 1).

    Example:
        >>> terms = nnpu_terms(jnp.array([4.0, -4.0]), jnp.array([1, 0]), prior=0.5)
        >>> bool(terms.clipped), round(float(terms.value), 4), round(float(terms.reversed), 4)
        (True, 0.009, 0.473)
    """
    check_range("beta", beta, 0)
    check_range("gamma", gamma, 0)
    positive_risk, negative_risk = _parts(
        logits, labeled, prior, mask, surrogates.chosen(surrogate, log_end=log_end, focus=focus)
    )
    clipped = negative_risk < -beta
    value = positive_risk + jnp.where(clipped, -beta, negative_risk)
    reversal = jnp.where(clipped, -gamma * negative_risk, positive_risk + negative_risk)
    return NnpuTerms(value, reversal, clipped, positive_risk, negative_risk)


def nnpu(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike,
    mask: Mask | None = None,
    surrogate: Surrogate = "sigmoid",
    beta: ScalarLike = 0.0,
    gamma: ScalarLike = 1.0,
    log_end: ScalarLike = 0.75,
    focus: ScalarLike = 2.0,
    aux: bool = False,
) -> Valued:
    """Non-negative risk R_p + max(R_n, -β), with a gradient that steps back where it is clipped.

    The value is that of :func:`nnpu_clip`; the gradient is that of R_p + R_n, and of -γ R_n where R_n < -β (Kiryo et
    al., NeurIPS 2017, algorithm 1). So where clipped it is not the gradient of the value, on purpose.

    Example:
        >>> z, labeled = jnp.array([4.0, -4.0]), jnp.array([1, 0])
        >>> for risk in (nnpu, nnpu_clip):
        ...     print([round(float(g), 4) for g in jax.grad(risk)(z, labeled, prior=0.5)])
        [0.0088, -0.0177]
        [-0.0088, 0.0]
    """
    terms = nnpu_terms(
        logits,
        labeled,
        prior=prior,
        mask=mask,
        surrogate=surrogate,
        beta=beta,
        gamma=gamma,
        log_end=log_end,
        focus=focus,
    )
    only_gradient = terms.reversed - jax.lax.stop_gradient(terms.reversed)
    return _valued(jax.lax.stop_gradient(terms.value) + only_gradient, terms, aux)


def nnpu_clip(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike,
    mask: Mask | None = None,
    surrogate: Surrogate = "sigmoid",
    beta: ScalarLike = 0.0,
    log_end: ScalarLike = 0.75,
    focus: ScalarLike = 2.0,
    aux: bool = False,
) -> Valued:
    """Non-negative risk R_p + max(R_n, -β), differentiated as it is written: where clipped, R_p alone is left.

    Example:
        >>> round(float(nnpu_clip(jnp.array([4.0, -4.0]), jnp.array([1, 0]), prior=0.5)), 4)
        0.009
    """
    terms = nnpu_terms(
        logits, labeled, prior=prior, mask=mask, surrogate=surrogate, beta=beta, log_end=log_end, focus=focus
    )
    return _valued(terms.value, terms, aux)


def nnpusb(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike,
    mask: Mask | None = None,
    beta: ScalarLike = 0.0,
    gamma: ScalarLike = 1.0,
    aux: bool = False,
) -> Valued:
    """The risk of nnPUSB, which is :func:`nnpu` with the logistic surrogate, for labels chosen with a bias.

    The method (Kato et al., ICLR 2019) trusts only the ranking: its threshold is the quantile of the scores
    that leaves a share π above it, not z > 0. That is a matter of evaluation, not of this risk.

    Example:
        >>> round(float(nnpusb(jnp.array([1.0, -1.0]), jnp.array([1, 0]), prior=0.5)), 4)
        0.1566
    """
    return nnpu(logits, labeled, prior=prior, mask=mask, surrogate="logistic", beta=beta, gamma=gamma, aux=aux)


def _valued(value: Scalar, terms: NnpuTerms, aux: bool) -> Valued:
    return (value, {"clipped": terms.clipped.astype(value.dtype)}) if aux else value


def _parts(
    logits: Logits, labeled: Labeled, prior: ScalarLike, mask: Mask | None, margin_loss: Callable[[Array], Array]
) -> tuple[Scalar, Scalar]:
    """The risks R_p and R_n."""
    check_prior(prior)
    positive, unlabeled = sets(labeled, mask)
    z = clean(logits, positive | unlabeled)
    as_positive, as_negative = margin_loss(jnp.stack([z, -z]))
    negative_risk = mean(as_negative, unlabeled) - prior * mean(as_negative, positive)
    return prior * mean(as_positive, positive), negative_risk
