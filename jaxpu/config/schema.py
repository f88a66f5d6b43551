"""The groups of settings of an experiment: frozen, validated, with nothing unknown in them."""

import dataclasses
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.errors import repeated, unknown
from jaxpu.functions import is_path, taken_apart
from jaxpu.selection import RULES, RuleChoice
from jaxpu.settings import STRICT, AlphaSchedule, PositiveInt, Share, is_default, refuse_idle

OF_NETWORKS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("linear", "lenet", "cifar_net", "mri_net"), ()),
    "mlp": ("hidden", "dropout"),
    "cnn": ("hidden", "dropout", "channels"),
    "resnet": ("channels", "blocks"),
}
"""What each network reads of the sizes."""


@dataclass(frozen=True, config=STRICT)
class ModelConfig:
    """The network.

    Attributes:
        name: ``linear``, ``mlp``, or one that wants images, (h, w) or (h, w, c): ``cnn``, ``resnet``, and the networks
            of the benchmark of PU methods, whose layers are fixed: ``lenet`` (28 x 28), ``cifar_net`` (32 x 32) and
            ``mri_net`` (128 x 128; any multiple of 16), the last two with BatchNorm.
        hidden: widths of the hidden layers (``mlp``, and behind the convolutions of ``cnn``). dropout: rate after each
            of the first of them; rates beyond the last layer are not used.
        channels: of ``cnn`` one 3 x 3 convolution each, halving height and width; of ``resnet`` one stage each.
        blocks: residual blocks a stage (``resnet``): with three stages, 3 blocks are 20 layers.
        init: ``torch`` = U(±1/sqrt(fan_in)) for weights and biases, ``lecun`` = LeCun normal, zero biases.
        module: a network of your own in place of all this: ``"package.module:Class"``, or in Python the object: a
            module of flax.linen, a pair (init, apply) or a :class:`jaxpu.models.Model`; see
            :func:`jaxpu.models.of_module`. arguments: what its class is made with.
    """

    name: Literal["linear", "mlp", "cnn", "resnet", "lenet", "cifar_net", "mri_net"] = "mlp"
    hidden: tuple[PositiveInt, ...] = (512, 256, 128, 64)
    dropout: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = (0.3, 0.3, 0.2)
    channels: tuple[PositiveInt, ...] = Field(default=(16, 32), min_length=1)
    blocks: PositiveInt = 3
    init: Literal["torch", "lecun"] = "torch"
    module: Any = None
    arguments: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_network(self) -> "ModelConfig":
        if self.module is None:
            if self.arguments:
                raise ValueError("arguments are those of model.module, which is not given")
            idle = [name for name in ("hidden", "dropout", "channels", "blocks") if name not in OF_NETWORKS[self.name]]
            refuse_idle(self, idle, f"model.name {self.name!r}")
            return self
        if isinstance(self.module, str) and not is_path(self.module):
            raise ValueError(f"module is {self.module!r}, expected 'package.module:Class'")
        if dataclasses.is_dataclass(self.module) and not isinstance(self.module, type):
            if self.arguments:
                raise ValueError("arguments are those of a class, and model.module is made already; leave them out")
            for name, value in zip(("module", "arguments"), taken_apart(self.module), strict=True):
                object.__setattr__(self, name, value)
        named = [f for f in dataclasses.fields(self) if f.name not in ("module", "arguments")]
        idle = [f.name for f in named if not is_default(f, self)]
        if idle:
            raise ValueError(f"{', '.join(idle)} say nothing of a module of your own; give model.arguments instead")
        return self

    def __hash__(self) -> int:
        plain = [getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in ("module", "arguments")]
        try:
            module = hash(self.module)
        except TypeError:  # an object with lists or dictionaries in it
            module = 0
        return hash((*plain, module, repr(sorted(self.arguments.items()))))


OPTIMIZERS: dict[str, tuple[str, ...]] = {
    "adam": ("b1", "b2", "eps"),
    "adamw": ("b1", "b2", "eps"),
    "nadam": ("b1", "b2", "eps"),
    "sgd": ("momentum",),
}
"""The optimisers that have a name, each with the numbers that it has besides lr and weight_decay."""
OF_SCHEDULES = {"constant": (), "cosine": (), "warmup_cosine": ("warmup",), "step": ("factor", "every")}
"""The schedules of the learning rate, each with its numbers."""


@dataclass(frozen=True, config=STRICT)
class TrainingConfig:
    """The optimisation.

    Attributes:
        epochs: most epochs of a run. batch_size: rows a step (``separate`` batching: of P and of U each).
        lr: learning rate. weight_decay: L2 coefficient, part of the gradient; of ``adamw`` decoupled from it.
        optimizer: ``adam``, ``adamw``, ``nadam``, ``sgd`` (with momentum), or ``"package.module:function"``, in Python
            the function itself: :class:`jaxpu.train.optimizers.Numbers` to an optax transformation.
        schedule: of the learning rate over the steps: ``constant``, ``cosine`` = to 0 along half a cosine,
            ``warmup_cosine`` = from 0 along a line for the share ``warmup`` of all steps, then cosine, ``step`` = times
            ``factor`` after every ``every`` epochs.
        momentum: of ``sgd``, nesterov = Nesterov's form of it. b1, b2, eps: of ``adam``, ``adamw`` and ``nadam``.
        directional_penalty: weight of Σ_i |∂R/∂z_i · J_i (x̄ - x_i)|, see :mod:`jaxpu.theory.mixupe`; 0 = none.
        alpha: of λ ~ Beta(α, α), 0 = no mixup. alpha_schedule: over the epochs. lam_per: one λ a ``batch`` or ``row``.
        evaluate_every: every so many epochs, and at the last, the network is evaluated, on all sets; what is recorded
            of them in the other epochs is NaN, and selection rules see the evaluated epochs alone.
        initial_p: where p starts, by way of the last bias: ``prior`` = logit of the π that the method is given,
            a number = its logit (0.5: bias 0), ``init`` = as the initialisation draws it.
    """

    epochs: PositiveInt = 40
    batch_size: PositiveInt = 256
    lr: float = Field(default=3e-4, gt=0)
    weight_decay: float = Field(default=1e-4, ge=0)
    optimizer: Any = "adam"
    schedule: Literal["constant", "cosine", "warmup_cosine", "step"] = "constant"
    warmup: float = Field(default=0.05, ge=0, lt=1)
    factor: float = Field(default=0.5, gt=0, le=1)
    every: PositiveInt = 20
    momentum: float = Field(default=0.9, ge=0, lt=1)
    nesterov: bool = False
    b1: float = Field(default=0.9, ge=0, lt=1)
    b2: float = Field(default=0.999, ge=0, lt=1)
    eps: float = Field(default=1e-8, gt=0)
    directional_penalty: float = Field(default=0.0, ge=0)
    alpha: float = Field(default=0.3, ge=0)
    alpha_schedule: AlphaSchedule = "constant"
    lam_per: Literal["batch", "row"] = "batch"
    evaluate_every: PositiveInt = 1
    initial_p: Literal["prior", "init"] | Share = "prior"

    @field_validator("optimizer")
    @classmethod
    def _is_an_optimizer(cls, value: Any) -> Any:
        if not (callable(value) or (isinstance(value, str) and (value in OPTIMIZERS or is_path(value)))):
            raise ValueError(unknown("optimizer", value, [*OPTIMIZERS, "package.module:function"]))
        return value

    @model_validator(mode="after")
    def _nothing_without_effect(self) -> "TrainingConfig":
        """What the optimiser and the schedule do not read must stay at its default; a function may read all."""
        read = OPTIMIZERS.get(self.optimizer) if isinstance(self.optimizer, str) else None
        idle = [] if read is None else [name for name in ("momentum", "b1", "b2", "eps") if name not in read]
        idle += ["nesterov"] * (read == OPTIMIZERS["adam"])
        refuse_idle(self, idle, f"optimizer {self.optimizer!r}")
        of_others = [name for name in ("warmup", "factor", "every") if name not in OF_SCHEDULES[self.schedule]]
        refuse_idle(self, of_others, f"schedule {self.schedule!r}")
        return self

    def numbers(self) -> dict[str, float]:
        """The numbers of optimiser and schedule that are traced, besides lr and weight_decay.

        Those of Adam are left out where they are the usual ones, so that 1 - β is what it is in double precision.

        >>> TrainingConfig().numbers(), TrainingConfig(optimizer="sgd").numbers(), TrainingConfig(b1=0.8).numbers()
        ({}, {'momentum': 0.9}, {'b1': 0.8})
        """
        of_adam = [f for f in dataclasses.fields(self) if f.name in ("b1", "b2", "eps")]
        found = {f.name: getattr(self, f.name) for f in of_adam if not is_default(f, self)}
        found |= {"momentum": self.momentum} if self.optimizer not in OPTIMIZERS or self.optimizer == "sgd" else {}
        return found | {name: float(getattr(self, name)) for name in OF_SCHEDULES[self.schedule]}


@dataclass(frozen=True, config=STRICT)
class SelectionConfig:
    """Which epoch counts.

    Attributes:
        rules: rules replayed on every run: names, or ``{rule: val_f1, validation: 0.05}`` to read the nested
            validation set of that share. Where true labels are unknown, the default ones are those without labels.
        default: the rule of the headline table. Of the label-free rules PU accuracy loses the least F1 with 20 %
            of the rows held out, and does not differ from the non-negative risk with 10 % (results/selection_noise).
        patience, min_delta: of every rule but ``last``.
        stop: end a run when all its rules have met their patience (never with ``last`` among the rules).
        keep_best: keep the parameters of the epoch that ``default`` selects.
    """

    rules: tuple[RuleChoice, ...] = Field(
        default=(RuleChoice("pu_accuracy"), RuleChoice("last"), RuleChoice("val_f1")), min_length=1
    )
    default: RuleChoice = RuleChoice("pu_accuracy")
    patience: PositiveInt = 10
    min_delta: float = Field(default=1e-4, ge=0)
    stop: bool = True
    keep_best: bool = False

    @field_validator("rules", "default")
    @classmethod
    def _known(cls, value: Any) -> Any:
        for choice in (value,) if isinstance(value, RuleChoice) else value:
            if choice.rule not in RULES:
                raise ValueError(unknown("selection rule", choice.rule, RULES))
            if choice.validation is not None and choice.entry.column is None:
                raise ValueError(f"selection rule {choice.rule!r} reads no validation set; leave validation out")
        return value

    @model_validator(mode="after")
    def _rules_differ_and_one_is_the_default(self) -> "SelectionConfig":
        names = [choice.name for choice in self.rules]
        if twice := repeated(names):
            raise ValueError(f"selection rules must differ; {', '.join(sorted(twice))} appears twice")
        if self.default not in self.rules:
            raise ValueError(f"default rule {self.default.name!r} is not among the rules {names}; add it there")
        if not any(choice.entry.column for choice in self.rules):
            refuse_idle(self, ("patience", "min_delta"), "'last' as the only rule")
        return self


def as_dict(value: Any) -> Any:
    """Settings as plain data, ``parse(to_dict(e)) == e``; functions and objects of the user stay what they are.

    >>> as_dict(ModelConfig(hidden=(8,)))["hidden"], as_dict(TrainingConfig(optimizer=sorted))["optimizer"]
    ([8], <built-in function sorted>)
    """
    if isinstance(value, RuleChoice):
        return value.rule if value.validation is None else dataclasses.asdict(value)
    if hasattr(type(value), "__pydantic_fields__"):
        return {name: as_dict(getattr(value, name)) for name in type(value).__pydantic_fields__}
    if isinstance(value, dict):
        return {name: as_dict(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple) and not any(map(callable, value)):
        return [as_dict(entry) for entry in value]
    return value
