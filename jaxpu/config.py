"""What an experiment is: frozen, validated dataclasses, read from YAML and written back resolved.

No jax is imported here, so that the command line answers at once. Unknown keys, misspelt names and wrong
types are errors that name the path, what was expected and the choices.
"""

import dataclasses
import difflib
import hashlib
import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.methods import METHODS, Method
from jaxpu.selection import RULES

STRICT = ConfigDict(extra="forbid")
"""Unknown keys are errors."""
PositiveInt = Annotated[int, Field(strict=True, ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]


Kind = TypeVar("Kind")


class ConfigError(ValueError):
    """A configuration that cannot be used; the message says where, what was expected, and the choices."""


@dataclass(frozen=True, config=STRICT)
class DataConfig:
    """The dataset, and how positive and unlabelled rows are drawn from it.

    Attributes:
        name: a registered dataset (``jaxpu list``). options: its arguments, for the synthetic ones.
        scenario: ``case_control``, ``single_set`` (labelled rows leave U) or ``single_set_overlap``.
        mechanism: which positives get labelled: ``scar``, ``sar_lbe_a``, ``sar_lbe_b``, ``sar_pusb``.
        c: label frequency; floor(c n_P) training positives are labelled.
        test: share of all rows held out (ignored where the dataset has an official split).
        validation: nested shares of the training part held out; the first is the one that rules read.
        prior: the π that methods are told: ``unlabeled`` = share of positives in U, ``all`` = in P and U
            together (as in the code behind seed 000), or a number. prior_scale multiplies it.
    """

    name: str = "spambase"
    options: dict[str, float | int | str] = Field(default_factory=dict)
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
        name: ``linear`` or ``mlp``.
        hidden: widths of the hidden layers (``mlp``). dropout: rate after each of the first layers; rates
            beyond the last layer are not used.
        init: ``torch`` = U(±1/sqrt(fan_in)) for weights and biases, ``lecun`` = LeCun normal, zero biases.
    """

    name: Literal["linear", "mlp"] = "mlp"
    hidden: tuple[PositiveInt, ...] = (512, 256, 128, 64)
    dropout: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = (0.3, 0.3, 0.2)
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
        rules: rules replayed on every run; ``val_f1@0.05`` reads the nested validation set of that share.
        default: the rule of the headline table. Of the label-free rules PU accuracy loses the least F1 with 20 %
            of the rows held out, and is not to be told from the non-negative risk with 10 % (results/selection_noise).
        patience, min_delta: of every rule but ``last``.
        stop: end a run when all its rules have met their patience (never with ``last`` among the rules).
        keep_best: keep the parameters of the epoch that ``default`` selects.
    """

    rules: tuple[str, ...] = ("pu_accuracy", "last", "val_f1")
    default: str = "pu_accuracy"
    patience: PositiveInt = 10
    min_delta: float = Field(default=1e-4, ge=0)
    stop: bool = True
    keep_best: bool = False

    @field_validator("rules", "default")
    @classmethod
    def _known(cls, value: Any) -> Any:
        for rule in (value,) if isinstance(value, str) else value:
            if rule.partition("@")[0] not in RULES:
                raise ValueError(unknown("selection rule", rule, RULES))
        return value

    @model_validator(mode="after")
    def _default_is_replayed(self) -> "SelectionConfig":
        if self.default not in self.rules:
            raise ValueError(f"default rule {self.default!r} is not among the rules {list(self.rules)}; add it there")
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


@dataclass(frozen=True, config=STRICT)
class Which:
    """Which runs one side of a claim speaks of; what is not said does not matter.

    Attributes:
        method, dataset: their names. selection: the rule that selects; None = the experiment's default.
        cell: pieces of the grid point's label, for example ``c=0.1 anchor=0``.
    """

    method: str | None = None
    dataset: str | None = None
    cell: str = ""
    selection: str | None = None


@dataclass(frozen=True, config=STRICT)
class Claim:
    """A statement that the runs of an experiment support, refute, or cannot decide; see :mod:`jaxpu.claims`.

    Attributes:
        claim: the statement, in words. source: who says so.
        of: the runs. minus: the runs that they are compared with, seed by seed.
        metric: a column of ``selected.csv``, for example ``f1``, ``regret``, ``test_oracle_auc``.
        below: with it, a run counts as 1 if its metric is below this, else 0.
        verdicts: with them, a run counts as 1 if its verdict is among these (:class:`jaxpu.collapse.Verdict`),
            else 0.
        at_least, at_most: the bound that the statement amounts to; exactly one of them.
    """

    claim: str
    of: Which
    source: str = ""
    minus: Which | None = None
    metric: str = "f1"
    below: float | None = None
    verdicts: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_event(self) -> bool:
        """Whether a run counts as 0 or 1."""
        return bool(self.verdicts) or self.below is not None

    @model_validator(mode="after")
    def _can_be_tested(self) -> "Claim":
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a claim needs at_least or at_most, one of them: the bound that it amounts to")
        if self.verdicts and self.below is not None:
            raise ValueError("a claim counts runs by verdicts or by a metric below a number, not by both")
        bound = self.at_least if self.at_least is not None else self.at_most
        if self.is_event and self.minus is None and bound is not None and not 0 < bound < 1:
            raise ValueError(f"a share of runs is compared with a bound strictly between 0 and 1, got {bound}")
        return self


@dataclass(frozen=True, config=STRICT)
class Experiment:
    """One experiment: every method at every grid point for every seed.

    Attributes:
        name: also the folder below ``results/``. description: what is asked; shown in the report.
        methods: names of presets (``jaxpu list``), or mappings ``{preset: ..., name: ..., anchor: 0.5}`` that
            change one.
        seeds: how many. first_seed: the first of them.
        grid: dotted paths to lists of values, e.g. ``{training.lr: [1e-3, 3e-4], method.anchor: [0, 0.5]}``.
        claims: what is to be decided.
    """

    name: str = Field(default="experiment", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    description: str = ""
    data: DataConfig = Field(default_factory=DataConfig)
    model: ModelConfig = Field(default_factory=ModelConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    selection: SelectionConfig = Field(default_factory=SelectionConfig)
    methods: tuple[str | dict[str, Any], ...] = Field(default=("vpu",), min_length=1)
    seeds: PositiveInt = 8
    first_seed: Annotated[int, Field(strict=True, ge=0)] = 0
    grid: dict[str, list[Any]] = Field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    placement: PlacementConfig = Field(default_factory=PlacementConfig)

    @field_validator("methods")
    @classmethod
    def _methods_exist(cls, value: tuple[str | dict[str, Any], ...]) -> tuple[str | dict[str, Any], ...]:
        names = [named_method(entry)[0] for entry in value]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"method names must differ; {', '.join(twice)} appears twice (give the variant a 'name')")
        return value

    @model_validator(mode="after")
    def _rules_have_their_validation_set(self) -> "Experiment":
        sizes = {f"{share:g}" for share in self.data.validation}
        for rule in self.selection.rules:
            _, at, size = rule.partition("@")
            if at and size not in sizes:
                raise ValueError(
                    f"selection rule {rule!r} wants validation share {size}; data.validation has {sorted(sizes)}"
                )
        return self


@dataclass(frozen=True, config=STRICT)
class Cell:
    """One method at one grid point: all that its runs share but the seed."""

    method_name: str
    method: Method
    label: str
    data: DataConfig
    model: ModelConfig
    training: TrainingConfig
    selection: SelectionConfig


def unknown(what: str, name: object, choices: Any) -> str:
    """Say that there is no such name, which may have been meant, and which there are."""
    near = difflib.get_close_matches(str(name), list(choices), n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {name!r}{hint}; choose from {', '.join(choices)}"


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
    plain = {**_as_dict(METHODS[preset]), **changes}
    return str(name), TypeAdapter(Method).validate_python(plain)


def load(path: str | Path, overrides: dict[str, Any] | None = None) -> Experiment:
    """Read an experiment from YAML; ``overrides`` maps dotted paths to values.

    Raises:
        ConfigError: with the file, the path inside it, what was expected, what came.
    """
    return parse(read(path, overrides), where=str(path))


def read(path: str | Path, overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    """Read a configuration of whatever kind as a plain mapping, named after its file unless it has a name.

    Raises:
        ConfigError: there is no such file, it is not YAML or no mapping, or an override does not fit.
    """
    path = Path(path)
    if not path.is_file():
        raise ConfigError(f"no configuration at {path}; the ones that come with jaxpu are in configs/")
    try:
        raw = yaml.safe_load(path.read_bytes())  # bytes, so that a file that is no text is a YAMLError
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: expected a mapping of keys, got {type(raw).__name__}")
    raw.setdefault("name", path.stem)
    for dotted, value in (overrides or {}).items():
        put(raw, dotted, value)
    return raw


def parse(raw: dict[str, Any], where: str = "configuration") -> Experiment:
    """Validate a plain mapping into an :class:`Experiment`.

    Raises:
        ConfigError: naming the path, what was expected and what came.

    >>> parse({"training": {"lr": "1e-4"}}).training.lr
    0.0001
    """
    return validate(Experiment, raw, where)


def validate(kind: type[Kind], raw: dict[str, Any], where: str = "configuration") -> Kind:
    """Validate a plain mapping into a configuration dataclass of any kind.

    Raises:
        ConfigError: naming the path, what was expected and what came.
    """
    try:
        return TypeAdapter(kind).validate_python(raw)
    except ValidationError as error:
        lines = [_explain(e, kind) for e in error.errors(include_url=False)]
        raise ConfigError("\n".join(f"{where}: {line}" for line in lines)) from None


def _explain(error: Any, kind: type) -> str:
    path = ".".join(str(p) for p in error["loc"]) or "the whole"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        *parents, key = error["loc"]
        return f"{path}: {unknown('key', key, [f.name for f in dataclasses.fields(_group_at(parents, kind))])}"
    return f"{path}: {message}, got {error['input']!r}"


def _group_at(path: list[str | int], group: Any) -> Any:
    """The dataclass that stands at a path of settings: ``["claims", 0, "of"]`` is a :class:`Which`."""
    for step in path:
        kind = (
            get_args(group)[0] if isinstance(step, int) else {f.name: f.type for f in dataclasses.fields(group)}[step]
        )
        inside = [k for k in get_args(kind) if dataclasses.is_dataclass(k)]
        group = kind if isinstance(step, int) or get_origin(kind) is tuple or not inside else inside[0]
    return group


def put(tree: dict[str, Any], dotted: str, value: Any) -> None:
    """Set the value at a dotted path of a plain mapping.

    Raises:
        ConfigError: something on the way is not a mapping.
    """
    *parents, last = dotted.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"override {dotted}: {parent!r} is not a group of settings")
    tree[last] = value


def _as_dict(value: Any) -> Any:
    return TypeAdapter(type(value)).dump_python(value, mode="json")


def to_dict(experiment: Any) -> dict[str, Any]:
    """The experiment as plain data, everything resolved; ``parse(to_dict(e)) == e``."""
    return _as_dict(experiment)


def dump(experiment: Any) -> str:
    """The resolved experiment as YAML."""
    return yaml.safe_dump(to_dict(experiment), sort_keys=False, allow_unicode=True, width=100)


def digest(*values: Any) -> str:
    """Sixteen hex digits that change when any of the configuration objects or plain values does.

    >>> digest(DataConfig()) == digest(DataConfig(c=0.1)), digest(DataConfig()) == digest(DataConfig(c=0.2))
    (True, False)
    """
    plain = [_as_dict(v) if dataclasses.is_dataclass(v) else v for v in values]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def expand(experiment: Experiment) -> list[Cell]:
    """All cells of an experiment: methods times grid points, in the order written.

    Raises:
        ConfigError: for a grid path that does not exist or a value that does not fit.

    >>> [c.label for c in expand(parse({"grid": {"training.lr": [1e-3, 1e-4]}}))]
    ['lr=0.001', 'lr=0.0001']
    """
    axes = [[(path, value) for value in values] for path, values in experiment.grid.items()]
    return [_cell(experiment, entry, point) for entry in experiment.methods for point in itertools.product(*axes)]


def check_claims(experiment: Experiment) -> None:
    """Whether every claim speaks of runs that this experiment has; before it trains for an hour.

    Raises:
        ConfigError: naming the claim, what it asks for, and the choices.
    """
    cells = expand(experiment)
    has = {
        "method": {c.method_name for c in cells},
        "dataset": {c.data.name for c in cells},
        "selection": set(experiment.selection.rules),
        "cell": {piece for c in cells for piece in c.label.split()},
    }
    check_names(experiment.claims, has)


def check_names(claims: Sequence[Claim], has: Mapping[str, Collection[str]]) -> None:
    """Whether what claims name is there: ``method``, ``dataset``, ``selection`` and the pieces of a ``cell``.

    Raises:
        ConfigError: naming the claim, what it asks for, and the choices.
    """
    for claim in claims:
        for which in (claim.of, claim.minus) if claim.minus else (claim.of,):
            wanted = {"method": which.method, "dataset": which.dataset, "selection": which.selection}
            asked = [(kind, name) for kind, name in wanted.items() if name is not None]
            for kind, name in [*asked, *(("cell", piece) for piece in which.cell.split())]:
                if name not in has[kind]:
                    raise ConfigError(f"claim {claim.claim!r}: {unknown(kind, name, sorted(has[kind]))}")


def _cell(experiment: Experiment, entry: str | dict[str, Any], point: tuple[tuple[str, Any], ...]) -> Cell:
    raw = {**to_dict(experiment), "grid": {}}
    method = {"preset": entry} if isinstance(entry, str) else dict(entry)
    for path, value in point:
        put({"method": method} if path.startswith("method.") else raw, path, value)
    raw["methods"] = [method]
    resolved = parse(raw, where=f"grid point {dict(point)}")
    name, values = named_method(method)
    label = " ".join(f"{path.rpartition('.')[2]}={value}" for path, value in point)
    return Cell(name, values, label, resolved.data, resolved.model, resolved.training, resolved.selection)
