"""From a method's numbers to a loss: base risk + weight · penalty(μ, p(x_mix)), all choices traced.

Which risk, surrogate and penalty is used are integers in :class:`Hyper`, resolved by ``lax.switch``: inside a
loop only the chosen branch runs, and methods that share shapes share one compiled program.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from jaxpu import losses, mixup
from jaxpu.config import TrainingConfig
from jaxpu.losses.expectation import expectation
from jaxpu.methods import DECISIONS, PENALTIES, SURROGATES, Method
from jaxpu.types import ClassLogits, Labeled, Logits, Mask, Scalar, ScalarLike

RISKS = (
    "supervised",
    "nonnegative",
    "pudra",
    "pudra_softplus",
    "pudra_naive",
    "variational",
    "variational_unlabeled",
)
"""The branches of the base risk. Fewer branches compile sooner, so near relatives share one: ``pn`` and
``pn_naive`` differ in the labels, uPU is the non-negative risk with β = ∞, and nnPU's two gradients share a value."""

_RISK_OF = {
    "pn": "supervised",
    "pn_naive": "supervised",
    "upu": "nonnegative",
    "nnpu": "nonnegative",
    "nnpu_reversal": "nonnegative",
}


class Hyper(NamedTuple):
    """Everything that may differ between runs of one compiled program; all traced, and scalars but for class_weights.

    The integers index :data:`RISKS`, :data:`jaxpu.methods.SURROGATES`, ``PENALTIES[1:]`` and ``DECISIONS``;
    ``oracle`` lets the supervised risk see the true labels, ``reversal`` makes nnPU step back where clipped;
    ``decision_offset`` is subtracted from logits before they are judged (log(e^½ - 1) for the softplus ratio,
    whose estimate of p passes ½ there); ``initial_p`` is NaN where the last bias stays as drawn;
    ``log_end_schedule`` indexes :data:`jaxpu.losses.LOG_END_SCHEDULES`, ``class_weights`` has one entry a class.
    """

    risk: ScalarLike
    oracle: ScalarLike
    reversal: ScalarLike
    surrogate: ScalarLike
    log_end: ScalarLike
    log_end_last: ScalarLike
    log_end_schedule: ScalarLike
    class_weights: Float[Array | np.ndarray, "*runs k"]
    focus: ScalarLike
    penalty: ScalarLike
    decision: ScalarLike
    decision_offset: ScalarLike
    prior: ScalarLike
    batch_prior: ScalarLike
    beta: ScalarLike
    gamma: ScalarLike
    anchor: ScalarLike
    anchor_end: ScalarLike
    floor: ScalarLike
    partner_floor: ScalarLike
    weight: ScalarLike
    weight_by_lambda: ScalarLike
    mix_unlabeled_only: ScalarLike
    alpha: ScalarLike
    lr: ScalarLike
    weight_decay: ScalarLike
    initial_p: ScalarLike


class Terms(NamedTuple):
    """A loss and its parts: ``loss = base + weighted penalty``; ``target`` is the mean μ, ``clipped`` 0 or 1."""

    loss: Scalar
    base: Scalar
    penalty: Scalar
    target: Scalar
    clipped: Scalar


def hyper_of(method: Method, training: TrainingConfig, prior: float, class_counts: Sequence[int] = (1, 1)) -> Hyper:
    """The traced numbers of a method trained with the given settings and class prior.

    ``class_counts`` are the training rows of every class, which class weights come from. Where there is no prior, with
    many classes, it is NaN.

    >>> from jaxpu.methods import METHODS
    >>> h = hyper_of(METHODS["vpudra_softlabel"], TrainingConfig(), 0.4)
    >>> float(h.anchor), round(float(h.lr), 6)
    (0.0, 0.0003)
    """
    end = method.anchor if method.anchor_end is None else method.anchor_end
    log_end = {"log_end": method.log_end, "log_end_last": method.log_end, "log_end_schedule": 0}
    if method.log_end_last is not None:
        schedule = list(losses.LOG_END_SCHEDULES).index(method.log_end_schedule)
        log_end |= {"log_end_last": method.log_end_last, "log_end_schedule": schedule}
    values = Hyper(
        risk=RISKS.index(_RISK_OF.get(method.base, method.base)),
        oracle=method.base == "pn",
        reversal=method.base == "nnpu_reversal",
        surrogate=SURROGATES.index(method.surrogate),
        **log_end,
        class_weights=_class_weights(method, class_counts),
        focus=method.focus,
        penalty=max(PENALTIES.index(method.penalty) - 1, 0),
        decision=DECISIONS.index(method.decision),
        decision_offset=float(np.log(np.expm1(0.5))) if method.base == "pudra_softplus" else 0.0,
        prior=prior,
        batch_prior=method.batch_prior,
        beta=float("inf") if method.base == "upu" else method.beta,
        gamma=method.gamma,
        anchor=method.anchor,
        anchor_end=end,
        floor=method.floor,
        partner_floor=method.partner_floor,
        weight=method.weight,
        weight_by_lambda=method.weight_by_lambda,
        mix_unlabeled_only=method.mix_unlabeled_only,
        alpha=training.alpha,
        lr=training.lr,
        weight_decay=training.weight_decay,
        initial_p=_initial_p(training, prior),
    )
    kinds = {int: np.int32, float: np.float32, bool: np.float32, np.ndarray: np.float32}
    return Hyper(*(kinds[type(v)](v) for v in values))


def _class_weights(method: Method, counts: Sequence[int]) -> np.ndarray:
    if method.class_weights == "none":
        return np.ones(len(counts))
    if method.class_weights == "effective_number":
        return np.asarray(losses.effective_number(jnp.array(counts), method.effective_beta))
    return np.asarray(losses.inverse_frequency(jnp.repeat(jnp.arange(len(counts)), jnp.array(counts)), len(counts)))


def log_ends(hyper: Hyper, epochs: int) -> Float[Array, " epochs"]:
    """LE of every epoch; which schedule is traced.

    >>> from jaxpu.methods import METHODS, Method
    >>> method = Method("pn", surrogate="encouraging", log_end=0.5, log_end_last=1.0, log_end_schedule="step")
    >>> log_ends(hyper_of(method, TrainingConfig(), 0.4), 4).tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    ways = jnp.stack([way(epochs) for way in losses.LOG_END_SCHEDULES.values()])
    return hyper.log_end + (hyper.log_end_last - hyper.log_end) * ways[hyper.log_end_schedule]


def _initial_p(training: TrainingConfig, prior: float) -> float:
    if isinstance(training.initial_p, str):
        return {"prior": prior, "init": float("nan")}[training.initial_p]
    return training.initial_p


def base_risk(
    hyper: Hyper, logits: ClassLogits, labeled: Labeled, labels: Labeled, mask: Mask
) -> tuple[Scalar, Scalar]:
    """The chosen base risk of a batch, and whether nnPU's bracket was clipped in it (0 or 1).

    Args:
        hyper: which risk, and its numbers. logits: (n,); with a logit a class, (n, k), the risk is the supervised one.
        labeled: (n,) 1 = labelled positive.
        labels: (n,) true labels; only ``pn`` reads them. mask: (n,) 1 = the row counts.

    >>> from jaxpu.methods import METHODS
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

    >>> from jaxpu.methods import METHODS
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
