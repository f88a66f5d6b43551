"""A method is a point in one family of objectives; this table names the points that the literature uses.

    loss = base risk + weight · (λ if weight_by_lambda else 1) · penalty(target μ, p(x_mix))
    μ    = max(λ p(x) + (1 - λ) [a + (1 - a) max(p(partner), partner_floor)], floor),   a = anchor

Every number and choice here becomes a traced argument of the training function, so methods that share shapes
share one compiled program. Only two things are structural: whether there is a mixed forward pass at all
(``penalty != "none"``) and how batches are drawn (``batching``). No jax is needed to read this table.
"""

from dataclasses import replace
from typing import Literal, get_args

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

Base = Literal[
    "pn",
    "pn_naive",
    "upu",
    "nnpu",
    "nnpu_reversal",
    "pudra",
    "pudra_softplus",
    "pudra_naive",
    "variational",
    "variational_unlabeled",
]
Surrogate = Literal[
    "sigmoid", "logistic", "squared", "savage", "mae_mse", "bonus", "encouraging", "encouraging_unit", "focal"
]
Penalty = Literal["none", "log_mse", "point_process"]
Decision = Literal["half", "quantile", "max_shift"]
LogEndSchedule = Literal["linear", "step"]
ClassWeighting = Literal["none", "inverse_frequency", "effective_number"]

BASES: tuple[str, ...] = get_args(Base)
SURROGATES: tuple[str, ...] = get_args(Surrogate)
PENALTIES: tuple[str, ...] = get_args(Penalty)
DECISIONS: tuple[str, ...] = get_args(Decision)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Method:
    """One method: a base risk, a mixup consistency term, and how its scores become decisions.

    Attributes:
        base: the risk on the batch. ``pn`` sees the true labels (an oracle); all others only P and U.
        surrogate: margin loss of ``upu``, ``nnpu``, ``pn`` and ``pn_naive``; see :mod:`jaxpu.losses.surrogates`.
        log_end: where the bonus of ``encouraging`` goes over into a line. log_end_last: where in the last epoch, on the
            way that log_end_schedule names (see :func:`jaxpu.losses.log_end_schedule`); None keeps it.
        focus: γ of ``focal``.
        class_weights: how ``pn`` and ``pn_naive`` weigh a row, by how rare its class is among the training rows; see
            :mod:`jaxpu.losses.weighting`. effective_beta: β of ``effective_number``.
        batch_prior: use π̂ = n_P / N of each batch instead of the given class prior.
        beta, gamma: nnPU's tolerance and step against the clipped risk.
        penalty: consistency of p(x_mix) with the target μ; ``none`` means no mixup.
        anchor: a in the target; 1 treats the partner as certainly positive, 0 is the soft label.
        anchor_end: value of a at the last epoch (linear in between); None keeps it constant.
        floor: lower bound of μ. partner_floor: lower bound of p(partner).
        weight: constant factor of the penalty. weight_by_lambda: multiply it with the batch's λ.
        mix_unlabeled_only: the penalty runs over unlabelled rows only (published VPU).
        batching: ``mixed`` shuffles P and U together; ``separate`` draws a P and a U batch each step.
        decision: ``half`` predicts positive at p > 1/2, ``quantile`` the top π share of the scores,
            ``max_shift`` p > max over the training set / 2 (published VPU).
        source: where the method is from.
    """

    base: Base
    surrogate: Surrogate = "sigmoid"
    log_end: float = Field(default=0.75, ge=0, le=1)
    log_end_last: float | None = Field(default=None, ge=0, le=1)
    log_end_schedule: LogEndSchedule = "linear"
    focus: float = Field(default=2.0, ge=0)
    class_weights: ClassWeighting = "none"
    effective_beta: float = Field(default=0.999, ge=0, le=1)
    batch_prior: bool = False
    beta: float = Field(default=0.0, ge=0)
    gamma: float = Field(default=1.0, ge=0)
    penalty: Penalty = "none"
    anchor: float = Field(default=1.0, ge=0, le=1)
    anchor_end: float | None = Field(default=None, ge=0, le=1)
    floor: float = Field(default=0.0, ge=0, le=1)
    partner_floor: float = Field(default=0.0, ge=0, le=1)
    weight: float = Field(default=1.0, ge=0)
    weight_by_lambda: bool = True
    mix_unlabeled_only: bool = False
    batching: Literal["mixed", "separate"] = "mixed"
    decision: Decision = "half"
    source: str = ""

    @model_validator(mode="after")
    def _only_means_have_class_weights(self) -> "Method":
        if self.class_weights != "none" and self.base not in ("pn", "pn_naive"):
            raise ValueError(
                f"class_weights is {self.class_weights!r}, expected 'none' for {self.base!r}: not a plain mean"
            )
        return self

    @property
    def mixup(self) -> bool:
        """Whether the method needs the mixed forward pass."""
        return self.penalty != "none"


_FORMULAS = {
    "pn": "mean loss on true labels",
    "pn_naive": "mean loss, U as negatives",
    "upu": "π R_P⁺ + R_U⁻ - π R_P⁻",
    "nnpu": "π R_P⁺ + max(R_U⁻ - π R_P⁻, 0)",
    "nnpu_reversal": "π R_P⁺ + max(R_U⁻ - π R_P⁻, 0), gradient reversed where clipped",
    "pudra": "π E_P[-log p] + E_U[p]",
    "pudra_softplus": "π E_P[-log g] + E_U[g], g = softplus(z)",
    "pudra_naive": "E_P[-log p + p] + E_U[p]",
    "variational": "log E[p] - E_P[log p]",
    "variational_unlabeled": "log E_U[p] - E_P[log p]",
}


WITH_SURROGATE = ("pn", "pn_naive", "upu", "nnpu", "nnpu_reversal")
"""The bases that are means of a margin loss."""


def _surrogate(method: Method) -> str:
    last = method.log_end_last
    log_end = f" up to {method.log_end:g}" + ("" if last is None else f", {method.log_end_schedule} to {last:g}")
    options = {
        "encouraging": log_end,
        "encouraging_unit": log_end,
        "focal": f", γ = {method.focus:g}",
    }
    return f"{method.surrogate} loss{options.get(method.surrogate, '')}"


def formula(method: Method) -> str:
    """A method's objective in one line.

    >>> formula(METHODS["vpudra_softlabel"])
    'π E_P[-log p] + E_U[p] + λ · point_process(μ, p_mix), soft target (a = 0)'
    """
    text = _FORMULAS[method.base]
    if method.class_weights != "none":
        beta = f" (β = {method.effective_beta:g})" if method.class_weights == "effective_number" else ""
        text += f", classes weighted by {method.class_weights.replace('_', ' ')}{beta}"
    if method.base in WITH_SURROGATE:
        text += f", {_surrogate(method)}"
    if not method.mixup:
        return text
    weight = "λ" if method.weight_by_lambda else f"{method.weight:g}"
    a = f"a = {method.anchor:g}" + ("" if method.anchor_end is None else f" to {method.anchor_end:g}")
    kind = (
        "anchored" if method.anchor == 1 and method.anchor_end is None else "soft" if method.anchor == 0 else "blended"
    )
    floors = "".join(
        f", {name} >= {value:g}" for name, value in (("μ", method.floor), ("p(partner)", method.partner_floor)) if value
    )
    return f"{text} + {weight} · {method.penalty}(μ, p_mix), {kind} target ({a}){floors}"


_VPU = "Chen et al., A Variational Approach for Learning from Positive and Unlabeled Data, NeurIPS 2020"
_CODE = "the benchmark code behind the seed's nine-dataset table"
_SEED = "seed 000, alternative formulations"
_WELL_CLASSIFIED = "Zhao et al., AAAI 2022, and seed 002"
_VPUDRA = Method("pudra", penalty="log_mse", anchor=1.0, source=_CODE)
_SOFT = replace(_VPUDRA, penalty="point_process", anchor=0.0)

METHODS: dict[str, Method] = {
    "pn": Method("pn", surrogate="logistic", source="supervised oracle: binary cross-entropy on the true labels"),
    "pn_mse": Method("pn", surrogate="savage", source=f"supervised, squared error of p; {_WELL_CLASSIFIED}"),
    "pn_mae": Method("pn", surrogate="sigmoid", source=f"supervised, absolute error of p; {_WELL_CLASSIFIED}"),
    "pn_mae_mse": Method("pn", surrogate="mae_mse", source=f"supervised, their sum; {_WELL_CLASSIFIED}"),
    "pn_bonus": Method("pn", surrogate="bonus", source=f"supervised; {_WELL_CLASSIFIED}"),
    "pn_encouraging": Method("pn", surrogate="encouraging", source=f"supervised; {_WELL_CLASSIFIED}"),
    "pn_focal": Method("pn", surrogate="focal", source="supervised; Lin et al., ICCV 2017"),
    "pn_naive": Method("pn_naive", surrogate="logistic", source="binary cross-entropy with U taken as negative"),
    "upu": Method("upu", source="du Plessis et al., ICML 2015"),
    "nnpu": Method("nnpu_reversal", source="Kiryo et al., NeurIPS 2017, algorithm 1"),
    "nnpu_clip": Method("nnpu", source="Kiryo et al., NeurIPS 2017, the risk differentiated as written"),
    "nnpusb": Method(
        "nnpu_reversal",
        surrogate="logistic",
        decision="quantile",
        source="Kato et al., Learning from Positive and Unlabeled Data with a Selection Bias, ICLR 2019",
    ),
    "pudra": Method("pudra", source=_CODE),
    "pudra_softplus": Method("pudra_softplus", source=_CODE),
    "pudra_naive": Method("pudra_naive", source=_CODE),
    "vpu_nomixup": Method("variational", source=_CODE),
    "vpu": Method("variational", penalty="log_mse", source=_CODE),
    "vpu_published": Method(
        "variational_unlabeled",
        penalty="log_mse",
        weight=0.3,
        weight_by_lambda=False,
        mix_unlabeled_only=True,
        batching="separate",
        decision="max_shift",
        source=_VPU,
    ),
    "vpudra": replace(_VPUDRA, batch_prior=True),
    "vpudra_fixed": _VPUDRA,
    "vpudra_pp": replace(_VPUDRA, penalty="point_process"),
    "vpudra_softlabel": _SOFT,
    "soft_anchor": replace(_SOFT, anchor=1.0, anchor_end=0.5, source=_SEED),
    "soft_floor": replace(_SOFT, floor=0.5, source=_SEED),
    "soft_partner_floor": replace(_SOFT, partner_floor=0.7, source=_SEED),
    "soft_logmse": replace(_SOFT, penalty="log_mse", source=_SEED),
}
