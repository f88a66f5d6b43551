"""The numbers of a method as the traced arguments of a compiled program."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxpu import losses
from jaxpu.config import TrainingConfig
from jaxpu.methods import DECISIONS, PENALTIES, SURROGATES, Method
from jaxpu.types import ScalarLike

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
    ``log_end_schedule`` indexes :data:`jaxpu.losses.LOG_END_SCHEDULES`, ``class_weights`` has one entry a class;
    ``optimizer`` is ``TrainingConfig.numbers()``.
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
    optimizer: dict[str, ScalarLike]


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
    values = Hyper(
        risk=RISKS.index(_RISK_OF.get(method.base, method.base)),
        oracle=method.base == "pn",
        reversal=method.base == "nnpu_reversal",
        surrogate=SURROGATES.index(method.surrogate),
        log_end=method.log_end,
        log_end_last=method.log_end if method.log_end_last is None else method.log_end_last,
        log_end_schedule=list(losses.LOG_END_SCHEDULES).index(method.log_end_schedule),
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
        optimizer={name: np.float32(value) for name, value in training.numbers().items()},
    )
    kinds: dict[type, Any] = {int: np.int32, float: np.float32, bool: np.float32, np.ndarray: np.float32, dict: dict}
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
    start, end = hyper.log_end, hyper.log_end_last
    courses = [losses.log_end_schedule(kind, epochs, start, end) for kind in losses.LOG_END_SCHEDULES]
    return jnp.stack(courses)[hyper.log_end_schedule]


def _initial_p(training: TrainingConfig, prior: float) -> float:
    if isinstance(training.initial_p, str):
        return {"prior": prior, "init": float("nan")}[training.initial_p]
    return training.initial_p
