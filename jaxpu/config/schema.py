"""The groups of settings of an experiment: frozen, validated, with nothing unknown in them."""

import dataclasses
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, field_validator, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.config.claim import STRICT
from jaxpu.config.errors import unknown
from jaxpu.methods import METHODS, Method
from jaxpu.selection import RULES, RuleChoice

PositiveInt = Annotated[int, Field(strict=True, ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True, config=STRICT)
class DataConfig:
    """The dataset, and how positive and unlabelled rows are drawn from it.

    Attributes:
        name: a registered dataset (``jaxpu list``). options: its arguments, for the synthetic ones.
        task: ``pu``, or ``multiclass`` = all classes of the dataset, with all training labels known; what is said of
            labelled positives and the prior below does not matter then.
        scenario: ``case_control``, ``single_set`` (labelled rows leave U) or ``single_set_overlap``.
        mechanism: which positives get labelled: ``scar``, ``sar_lbe_a``, ``sar_lbe_b``, ``sar_pusb``.
        c: label frequency; floor(c n_P) training positives are labelled.
        imbalance: thin the training rows out until the largest class has so many times the rows of the smallest
            (a long tail, Cui et al. 2019), the later the class the fewer; 1 leaves them as they are.
        outside: another dataset with rows of the same shape, of which a thousand are looked at after every epoch: how
            sure is the network of what it was never shown? Empty = none.
        test: share of all rows held out (ignored where the dataset has an official split).
        validation: nested shares of the training part held out; the first is the one that rules read.
        prior: the π that methods are told: ``unlabeled`` = share of positives in U, ``all`` = in P and U
            together (as in the code behind seed 000), or a number. prior_scale multiplies it.
    """

    name: str = "spambase"
    options: dict[str, float | int | str] = Field(default_factory=dict)
    task: Literal["pu", "multiclass"] = "pu"
    imbalance: float = Field(default=1.0, ge=1)
    outside: str = ""
    scenario: Literal["case_control", "single_set", "single_set_overlap"] = "case_control"
    mechanism: Literal["scar", "sar_lbe_a", "sar_lbe_b", "sar_pusb"] = "scar"
    c: float = Field(default=0.1, gt=0, le=1)
    test: Share = 0.2
    validation: tuple[Share, ...] = Field(default=(0.1,), min_length=1)
    prior: Literal["unlabeled", "all"] | Share = "unlabeled"
    prior_scale: float = Field(default=1.0, gt=0)


@dataclass(frozen=True, config=STRICT)
class ModelConfig:
    """The network.

    Attributes:
        name: ``linear``, ``mlp``, ``cnn`` or ``resnet``; the last two want images, one grey value a pixel, (h, w), or
            colours, (h, w, c); digits are 8 x 8.
        hidden: widths of the hidden layers (``mlp``, and behind the convolutions of ``cnn``). dropout: rate after each
            of the first of them; rates beyond the last layer are not used.
        channels: of ``cnn`` one 3 x 3 convolution each, halving height and width; of ``resnet`` one stage each.
        blocks: residual blocks a stage (``resnet``): with three stages, 3 blocks are 20 layers.
        init: ``torch`` = U(±1/sqrt(fan_in)) for weights and biases, ``lecun`` = LeCun normal, zero biases.
    """

    name: Literal["linear", "mlp", "cnn", "resnet"] = "mlp"
    hidden: tuple[PositiveInt, ...] = (512, 256, 128, 64)
    dropout: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = (0.3, 0.3, 0.2)
    channels: tuple[PositiveInt, ...] = Field(default=(16, 32), min_length=1)
    blocks: PositiveInt = 3
    init: Literal["torch", "lecun"] = "torch"


@dataclass(frozen=True, config=STRICT)
class TrainingConfig:
    """The optimisation: Adam with L2 inside the gradient (not decoupled).

    Attributes:
        epochs: most epochs of a run. batch_size: rows a step (``separate`` batching: of P and of U each).
        lr: learning rate. weight_decay: L2 coefficient.
        alpha: of λ ~ Beta(α, α); 0 = no mixup. alpha_schedule: how α moves over the epochs.
        lam_per: one λ a ``batch`` or a ``row``.
        initial_p: where p starts, by way of the last bias: ``prior`` = logit of the π that the method is told,
            a number = its logit (0.5: bias 0), ``init`` = as the initialisation draws it.
    """

    epochs: PositiveInt = 40
    batch_size: PositiveInt = 256
    lr: float = Field(default=3e-4, gt=0)
    weight_decay: float = Field(default=1e-4, ge=0)
    alpha: float = Field(default=0.3, ge=0)
    alpha_schedule: Literal["constant", "easy", "hard", "easy_hard_easy", "early_stop"] = "constant"
    lam_per: Literal["batch", "row"] = "batch"
    initial_p: Literal["prior", "init"] | Share = "prior"


@dataclass(frozen=True, config=STRICT)
class SelectionConfig:
    """Which epoch counts.

    Attributes:
        rules: rules replayed on every run: names, or ``{rule: val_f1, validation: 0.05}`` to read the nested
            validation set of that share.
        default: the rule of the headline table. Of the label-free rules PU accuracy loses the least F1 with 20 %
            of the rows held out, and is not to be told from the non-negative risk with 10 % (results/selection_noise).
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
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"selection rules must differ; {', '.join(twice)} appears twice")
        if self.default not in self.rules:
            raise ValueError(f"default rule {self.default.name!r} is not among the rules {names}; add it there")
        return self


@dataclass(frozen=True, config=STRICT)
class PlacementConfig:
    """Where runs go; none of it changes a result beyond rounding.

    Attributes:
        kind: ``map`` (one run after the other), ``vmap`` (all at once), ``chunk`` (vmap of ``chunk`` runs,
            mapped), or ``auto``: map on CPU, on accelerators as many at once as fit into memory.
        chunk: runs at once for ``chunk``; None = by memory.
        devices: how many devices share the runs; None = all.
        row_devices: devices over which the rows of one step are split (mesh axis "batch").
        segment: epochs between two looks at the runs: progress, finished ones, checkpoint.
        checkpoint_seconds: least time between two checkpoints of the working state; what a crash may cost.
        part: how many unfinished runs a program holds; None = eight a device, or on accelerators as many as
            run at once.
    """

    kind: Literal["auto", "map", "vmap", "chunk"] = "auto"
    chunk: PositiveInt | None = None
    devices: PositiveInt | None = None
    row_devices: PositiveInt = 1
    segment: PositiveInt = 5
    checkpoint_seconds: float = Field(default=20.0, ge=0)
    part: PositiveInt | None = None


def named_method(entry: str | dict[str, Any]) -> tuple[str, Method]:
    """Resolve an entry of ``methods`` to its name and its numbers.

    Raises:
        ValueError: for an unknown preset or field, with the choices.

    >>> named_method({"preset": "vpudra_softlabel", "name": "half", "anchor": 0.5})[1].anchor
    0.5
    """
    changes = {"preset": entry} if isinstance(entry, str) else dict(entry)
    preset = changes.pop("preset", None)
    if preset not in METHODS:
        raise ValueError(unknown("method", preset, METHODS))
    name = changes.pop("name", preset)
    fields = [f.name for f in dataclasses.fields(Method)]
    for key in changes:
        if key not in fields:
            raise ValueError(unknown("method field", key, ["preset", "name", *fields]))
    plain = {**as_dict(METHODS[preset]), **changes}
    return str(name), TypeAdapter(Method).validate_python(plain)


def as_dict(value: Any) -> Any:
    """A group of settings as plain data."""
    return TypeAdapter(type(value)).dump_python(value, mode="json")
