"""The base risk, the margin loss and the penalty that the traced numbers of a method choose."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from jaxpu import losses, mixup
from jaxpu.losses.expectation import expectation
from jaxpu.methods import PENALTIES, SURROGATES
from jaxpu.objective.hyper import RISKS, Hyper
from jaxpu.types import ClassLogits, Labeled, Logits, Mask, Scalar, ScalarLike


class Terms(NamedTuple):
    """A loss and its parts: ``loss = base + weighted penalty``; ``target`` is the mean μ, ``clipped`` 0 or 1."""

    loss: Scalar
    base: Scalar
    penalty: Scalar
    target: Scalar
    clipped: Scalar


def base_risk(
    hyper: Hyper, logits: ClassLogits, labeled: Labeled, labels: Labeled, mask: Mask
) -> tuple[Scalar, Scalar]:
    """The chosen base risk of a batch, and whether nnPU's bracket was clipped in it (0 or 1).

    Args:
        hyper: which risk, and its numbers. logits: (n,); with a logit a class, (n, k), the risk is the supervised one.
        labeled: (n,) 1 = labelled positive.
        labels: (n,) true labels; only ``pn`` reads them. mask: (n,) 1 = the row counts.

    >>> from jaxpu.config import TrainingConfig
    >>> from jaxpu.methods import METHODS
    >>> from jaxpu.objective import hyper_of
    >>> z, s, one = jnp.array([2.0, -1.0]), jnp.array([1.0, 0.0]), jnp.ones(2)
    >>> risk, _ = base_risk(hyper_of(METHODS["pudra"], TrainingConfig(), 0.4), z, s, s, one)
    >>> round(float(risk), 4)
    0.3197
    """
    chosen = functools.partial(margin_loss, hyper)

    def supervised(z: Array) -> Scalar:
        classes = labels if z.ndim > 1 else jnp.where(hyper.oracle > 0, labels, labeled)
        classes = classes.astype(jnp.int32)
        return expectation(chosen, z, classes, jnp.asarray(hyper.class_weights)[classes], mask, "mean")

    if logits.ndim > 1:
        return _never_clipped(supervised)(logits)
    prior = jnp.where(hyper.batch_prior > 0, losses.batch_prior(labeled, mask=mask), hyper.prior)

    def nonnegative(z: Array) -> tuple[Scalar, Scalar]:
        terms = losses.nnpu_terms(
            z,
            labeled,
            prior=prior,
            surrogate=chosen,
            variant="reversal",
            beta=hyper.beta,
            gamma=hyper.gamma,
            mask=mask,
        )
        objective = jnp.where(hyper.reversal > 0, terms.objective, terms.value)
        value = lax.stop_gradient(terms.value) + objective - lax.stop_gradient(objective)
        return value, terms.clipped.astype(value.dtype)

    softplus = functools.partial(losses.pudra, activation="softplus")
    plain: dict[str, Callable[[Array], Scalar]] = {
        "supervised": supervised,
        "pudra": lambda z: losses.pudra(z, labeled, prior=prior, mask=mask),
        "pudra_softplus": lambda z: softplus(z, labeled, prior=prior, mask=mask),
        "pudra_naive": lambda z: losses.pudra_naive(z, labeled, mask=mask),
        "variational": lambda z: losses.variational(z, labeled, over="all", mask=mask),
        "variational_unlabeled": lambda z: losses.variational(z, labeled, over="unlabeled", mask=mask),
    }
    risks = {name: _never_clipped(risk) for name, risk in plain.items()} | {"nonnegative": nonnegative}
    return _switch(hyper.risk, [risks[name] for name in RISKS], logits)


def margin_loss(hyper: Hyper, margin: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The chosen surrogate ℓ(m), elementwise, with its option.

    >>> from jaxpu.config import TrainingConfig
    >>> from jaxpu.methods import METHODS
    >>> from jaxpu.objective import hyper_of
    >>> h = hyper_of(METHODS["pn"], TrainingConfig(), 0.4)
    >>> round(float(margin_loss(h, jnp.array(0.0))), 4)
    0.6931
    """
    encouraging = functools.partial(losses.surrogates.encouraging, log_end=hyper.log_end)
    with_options = {
        "encouraging": encouraging,
        "encouraging_unit": functools.partial(encouraging, slope="unit"),
        "focal": functools.partial(losses.surrogates.focal, gamma=hyper.focus),
    }
    named = {**losses.SURROGATES, **with_options}
    return lax.switch(hyper.surrogate, [named[name] for name in SURROGATES], margin)


def _never_clipped(risk: Callable[[Array], Scalar]) -> "Valued":
    def valued(z: Array) -> tuple[Scalar, Scalar]:
        value = risk(z)
        return value, jnp.zeros_like(value)

    return valued


Valued = Callable[[Array], tuple[Scalar, Scalar]]


def _switch(index: ScalarLike, functions: list[Valued], z: Array) -> tuple[Scalar, Scalar]:
    """``functions[index](z)`` with its gradient in z computed inside the branch; (value, auxiliary).

    Differentiating ``lax.switch`` itself would make every branch return the residuals of all others, most of
    what there is to compile. Here the branch returns value and gradient, and the first-order term that is
    added has the value 0 and that gradient. Second derivatives are lost.
    """
    branches = [jax.value_and_grad(function, has_aux=True) for function in functions]
    (value, auxiliary), gradient = lax.switch(index, branches, lax.stop_gradient(z))
    return value + jnp.vdot(gradient, z - lax.stop_gradient(z)), auxiliary


def penalty(
    hyper: Hyper,
    logits: Logits,
    partner: Array,
    logits_mixed: Logits,
    lam: ScalarLike | Array,
    anchor: ScalarLike,
    labeled: Labeled,
    mask: Mask,
) -> tuple[Scalar, Scalar]:
    """Weighted mixup consistency term of a batch, and the mean target μ.

    Args:
        hyper: which penalty, floors and weight. logits: (n,) of the rows. partner: (n,) row numbers of the
            mixing partners. logits_mixed: (n,) of λ x + (1 - λ) x[partner]. lam: λ, scalar or (n,).
        anchor: a at this epoch. labeled, mask: (n,).

    The mean runs over all unmasked rows, or the unlabelled ones among them (``mix_unlabeled_only``); over no
    row it is 0.
    """
    log_p = jax.nn.log_sigmoid(logits)
    log_mu = mixup.log_target(
        log_p,
        log_p[partner],
        lam,
        anchor=anchor,
        floor=hyper.floor,
        partner_floor=hyper.partner_floor,
    )
    counts = mask * (1.0 - hyper.mix_unlabeled_only * labeled)
    total = jnp.maximum(counts.sum(), 1.0)
    weight = counts * hyper.weight * jnp.where(hyper.weight_by_lambda > 0, lam, 1.0) / total

    def weighted(name: str) -> Valued:
        return lambda z: (
            (weight * mixup.PENALTIES[name](log_mu, jax.nn.log_sigmoid(z))).sum(),
            jnp.zeros(()),
        )

    value, _ = _switch(hyper.penalty, [weighted(name) for name in PENALTIES[1:]], logits_mixed)
    return value, (counts * jnp.exp(log_mu)).sum() / total
