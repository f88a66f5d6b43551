"""A method: a risk, a mixup consistency term or mixed labels, and how its scores become decisions.

    loss = risk + weight · (λ if weight_by_lambda else 1) · penalty(target μ, p(x_mix))
    μ    = max(λ p(x) + (1 - λ) [a + (1 - a) max(p(partner), partner_floor)], floor),   a = anchor

or, where labels are known and mixed with the inputs,

    loss = plain_weight · risk(x, y) + mixed_weight · risk(x_mix, y_mix),   y_mix = λ y + (1 - λ) y[partner], one-hot

Every number here becomes a traced argument of the training function, so methods that share a structure share one
compiled program. Structural are whether there is a mixed forward pass at all (``penalty`` or ``mixes`` not "none"), and
a plain one beside it (``plain_weight`` not 0), how batches are drawn (``batching``), and what is carried over steps
(``memory``). No jax is needed to read this file.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, field_serializer, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.methods.risks import Function, label
from jaxpu.settings import refuse_idle, with_defaults

Penalty = Literal["none", "log_mse", "point_process"]
Pairing = Literal["labeled_positives", "permuted_positives", "shuffle", "within_set", "boundary_positives"]
Mixes = Literal["none", "mixup", "cutmix"]
Decision = Literal["half", "quantile", "max_shift"]
ClassWeighting = Literal["none", "inverse_frequency", "effective_number"]

PENALTIES: tuple[str, ...] = get_args(Penalty)
DECISIONS: tuple[str, ...] = get_args(Decision)

_STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


@dataclass(frozen=True, config=_STRICT)
class Schedule:
    """A number that moves along the epochs, evenly (``linear``) or at half time (``step``), from start to end."""

    start: Annotated[float, Field(allow_inf_nan=False)]
    end: Annotated[float, Field(allow_inf_nan=False)]
    schedule: Literal["linear", "step"] = "linear"

    def __str__(self) -> str:
        return f"{self.start:g} to {self.end:g}" + ("" if self.schedule == "linear" else f" ({self.schedule})")


@dataclasses.dataclass(frozen=True)
class Memory:
    """State that a method carries over steps: an averaged teacher, a second network, pseudo-labels.

    Attributes:
        init: ``init(params, n_rows) -> memory``, any tree of arrays, before the first step.
        update: ``update(memory, *, ...) -> memory`` after every step that was taken. By the name of a keyword it may
            ask for ``params`` (the new ones), ``rows``, ``logits`` (n,), ``labeled``, ``mask``, ``progress``,
            ``prior`` and ``forward``; numbers with a default are options of the method, as those of a risk.
    """

    init: Callable[..., Any]
    update: Callable[..., Any]


UPDATE = ("params", "rows", "logits", "labeled", "mask", "progress", "prior", "forward")
"""What the update of a memory may ask for."""


def as_number(value: Any) -> float | Schedule:
    """A finite number, also one that is written as text, or the schedule of one.

    Raises:
        ValueError: it is neither.

    >>> as_number("1e-3"), str(as_number({"start": 1, "end": 0.5}))
    (0.001, '1 to 0.5')
    """
    if isinstance(value, Schedule):
        return value
    try:
        number: Any = (
            Schedule(**value) if isinstance(value, Mapping) else math.nan if isinstance(value, bool) else value
        )
        if isinstance(number, Schedule):
            return number.start if number.start == number.end else number
        number = float(number)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is no finite number, and no {{start: ..., end: ..., schedule: linear or step}}")
    return number


def _share(value: Any) -> float | Schedule:
    number = as_number(value)
    ends = (number.start, number.end) if isinstance(number, Schedule) else (number,)
    if not all(0 <= end <= 1 for end in ends):
        raise ValueError("expected a number between 0 and 1, or a schedule between two")
    return number


def _with_schedules(options: Any) -> Any:
    if not isinstance(options, Mapping):
        return options
    return {name: as_number(value) if isinstance(value, Mapping) else value for name, value in options.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(inside) for name, inside in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return label(value) if callable(value) else value


ItsOptions = Annotated[dict[str, Any], BeforeValidator(_with_schedules)]
Unit = Annotated[float, Field(ge=0, le=1)]

_SHUFFLED = {"pairing": "shuffle"}
"""Whom rows are mixed with where ``mixes`` is given and the pairing is not."""


@dataclass(frozen=True, config=_STRICT)
class Stage:
    """Another risk for the first epochs: until the share ``until`` of them is done."""

    until: Annotated[float, Field(gt=0, lt=1)]
    risk: Function
    options: ItsOptions = Field(default_factory=dict)

    @field_serializer("risk", "options")
    def _as_text(self, value: Any) -> Any:
        return _plain(value)

    def __hash__(self) -> int:
        return hash((self.until, self.risk, *self.options))


@dataclass(frozen=True, config=_STRICT)
class Method:
    """One method: a risk, a mixup consistency term or mixed labels, and how its scores become decisions.

    Attributes:
        risk: a name of :data:`jaxpu.methods.RISKS`, a function of your own, or ``package.module:function``. One that
            asks for ``mixed`` gets a pass over mixed rows, whose targets are its own affair.
        options: of that risk (of the memory's update, of the pairing): numbers, choices, or a :class:`Schedule` of one;
            what is not there is at its default. In YAML they stand beside other fields: ``{risk: nnpu, gamma: 0.5}``.
        stages: other risks for the first epochs, one after the other; then comes ``risk``.
        memory: what is carried over steps, a :class:`Memory` or where it is, ``package.module:name``.
        class_weights: how a risk that asks for them weighs a row, by how rare its class is among the training rows; see
            :mod:`jaxpu.losses.weighting`. effective_beta: β of ``effective_number``.
        penalty: consistency of p(x_mix) with the target μ; ``none`` means no mixup.
        anchor: a in the target, a number or a :class:`Schedule`; 1 treats the partner as certainly positive, 0 is the
            soft label.
        mixes: whether a risk that asks for the true labels gets rows that are mixed, inputs and labels alike: ``mixup``
            (Zhang et al., ICLR 2018), or ``cutmix``, a box of the partner's image (Yun et al., ICCV 2019); a number of
            ``training.alpha`` above 0 goes with it.
        plain_weight: of the risk on the rows as they are; 0 = there is no such pass. mixed_weight: of the risk on the
            mixed rows. RegMixup (Pinto et al., NeurIPS 2022) has 1 and η, with α = 20.
        pairing: whom a row is mixed with, see :mod:`jaxpu.mixup.pairing`: ``labeled_positives`` are drawn with
            replacement, ``permuted_positives`` are gone through in a random order (published VPU); ``shuffle``, what is
            taken where ``mixes`` is given and the pairing is not, is a permutation of all rows.
        alpha: α of λ ~ Beta(α, α), for methods that are made for one; None = that of ``training``.
        at_least_half: λ is max(λ, 1 - λ), for risks that ask for mixed rows.
        detach: μ is a constant of the step; False lets the gradient through it too (published VPU).
        same_dropout: the pass that gives μ and the mixed one drop the same units; False gives each a mask of its own.
        floor: lower bound of μ. partner_floor: lower bound of p(partner).
        weight: constant factor of the penalty. weight_by_lambda: multiply it with the batch's λ.
        mix_unlabeled_only: the penalty runs over unlabeled rows only (published VPU).
        batching: ``mixed`` shuffles P and U together; ``separate`` draws a P and a U batch each step.
        decision: ``half`` predicts positive at p > 1/2, ``quantile`` the top π share of the scores,
            ``max_shift`` p > max over the training set / 2 (published VPU).
        decision_offset: subtracted from logits before they are judged; None = what the risk's registry entry says.
        skip_without_positives: a batch without a labeled positive changes nothing. None = as in the benchmark code: so
            it is for methods with mixup, which lack a partner there, and for the risks that say so in their registry
            entry (``variational``, ``pudra_batch``, ``pudra_naive``); the other registered risks step on the unlabeled
            rows alone. A function of your own skips, unless it asks for ``y``: an oracle's batches all have labels.
        source: where the method is from.
    """

    risk: Function
    options: ItsOptions = Field(default_factory=dict)
    stages: tuple[Stage, ...] = ()
    memory: str | Memory | None = None
    class_weights: ClassWeighting = "none"
    effective_beta: Unit = 0.999
    penalty: Penalty = "none"
    mixes: Mixes = "none"
    plain_weight: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    mixed_weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    anchor: Annotated[float | Schedule, PlainValidator(_share)] = 1.0
    pairing: Pairing = "labeled_positives"
    alpha: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    at_least_half: bool = False
    detach: bool = True
    same_dropout: bool = False
    floor: Unit = 0.0
    partner_floor: Unit = 0.0
    weight: float = Field(default=1.0, ge=0)
    weight_by_lambda: bool = True
    mix_unlabeled_only: bool = False
    batching: Literal["mixed", "separate"] = "mixed"
    decision: Decision = "half"
    decision_offset: float | None = None
    skip_without_positives: bool | None = None
    source: str = ""

    @model_validator(mode="after")
    def _stages_follow_each_other(self) -> "Method":
        ends = [stage.until for stage in self.stages]
        if ends != sorted(set(ends)):
            raise ValueError(f"stages end at {ends}, expected shares of the epochs that rise")
        return self

    @model_validator(mode="after")
    def _beta_has_an_effect(self) -> "Method":
        if self.class_weights != "effective_number":
            refuse_idle(self, ("effective_beta",), f"class_weights {self.class_weights!r}")
        return self

    @model_validator(mode="before")
    @classmethod
    def _mixed_rows_are_shuffled(cls, given: Any) -> Any:
        return with_defaults(given, lambda raw: raw if raw.get("mixes", "none") == "none" else _SHUFFLED | raw)

    @model_validator(mode="after")
    def _labels_are_mixed_alone(self) -> "Method":
        if self.mixes == "none":
            refuse_idle(self, ("plain_weight", "mixed_weight"), "mixes 'none'")
        elif self.penalty != "none" or self.memory is not None:
            raise ValueError(f"mixes is {self.mixes!r}, expected 'none' for a method with a penalty or a memory")
        return self

    @field_serializer("risk", "options", "memory", "anchor")
    def _as_text(self, value: Any) -> Any:
        return _plain(value)

    def __hash__(self) -> int:
        return hash((self.risk, self.penalty, self.weight, *self.options))

    @property
    def mixup(self) -> bool:
        """Whether the method has a consistency term, with its target, on mixed rows."""
        return self.penalty != "none"

    @property
    def parts(self) -> list[tuple[Function, dict[str, Any]]]:
        """The risks in their order, with the options that are set: those of the stages, then the main one."""
        return [*((stage.risk, stage.options) for stage in self.stages), (self.risk, self.options)]
