"""Experiments of the kinds ``pu`` and ``multiclass``, which train networks by methods, and their cells."""

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.config.base import AnyExperiment, check_names
from jaxpu.config.data import DataConfig
from jaxpu.config.grid import COUNTS, points
from jaxpu.config.schema import ModelConfig, SelectionConfig, TrainingConfig, as_dict
from jaxpu.config.validate import mistaken, put, validate, value_at
from jaxpu.methods import Method, as_entry, asks_for, in_one_form, named_method
from jaxpu.selection import RULES
from jaxpu.settings import STRICT

MIXING = (
    *(f"training.{name}" for name in ("alpha", "alpha_schedule", "lam_per")),
    *(f"method.{name}" for name in ("anchor", "floor", "partner_floor", "weight", "weight_by_lambda")),
    "method.mix_unlabeled_only",
)
"""Settings of mixup: to change them for a method without it would make equal runs under different names."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One method at one grid point: all that its runs share but the seed."""

    method_name: str
    method: Method
    point: dict[str, Any]
    data: DataConfig
    model: ModelConfig
    training: TrainingConfig
    selection: SelectionConfig
    probes: tuple[str, ...] = ()
    kind: str = "pu"
    seeds: int = 8
    first_seed: int = 0

    @property
    def dataset(self) -> str:
        """What stands in the column ``dataset``."""
        return self.data.name

    @property
    def settings(self) -> tuple[Any, ...]:
        """What makes this cell another cell; where a method is from does not, nor what goes without saying."""
        return self.kind, in_one_form(self.method), self.data, self.model, self.training, self.selection, self.probes

    @property
    def identity(self) -> tuple[Any, ...]:
        """What makes a run of this cell another run: its settings, but of the selection only what is recorded.

        That is where a run stops, and whose parameters are kept; rules are replayed on what was recorded.
        """
        kind, method, data, model, training, s, probes = self.settings
        kept = [s.default, s.patience, s.min_delta] if s.keep_best else []
        stops = s.stop and all(rule.column for rule in s.rules)
        where = [sorted(rule.name for rule in s.rules), s.patience, s.min_delta] if stops else []
        swept = {path: value for path, value in self.point.items() if path.startswith("selection.")}
        return kind, method, data, model, training, where, kept, swept, probes


@dataclass(frozen=True, config=STRICT)
class Experiment(AnyExperiment):
    """Networks trained by methods: every method at every grid point for every seed.

    Attributes:
        kind: ``pu``, or ``multiclass`` = all classes of the dataset, with all training labels known.
        methods: names of presets (``jaxpu list``), mappings ``{preset: ..., name: ..., anchor: 0.5}`` that change
            one, or a :class:`jaxpu.methods.Method`.
    """

    SWEEPS = ("data", "model", "training", "selection", "method")

    kind: Literal["pu", "multiclass"] = "pu"
    data: DataConfig = Field(default_factory=DataConfig)
    model: ModelConfig = Field(default_factory=ModelConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    selection: SelectionConfig = Field(default_factory=SelectionConfig)
    methods: tuple[str | dict[str, Any] | Method, ...] = Field(default=("vpu",), min_length=1)

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the selection rules, the default first."""
        first = self.selection.default.name
        return (first, *(rule.name for rule in self.selection.rules if rule.name != first))

    def cells(self) -> list[Cell]:
        """Methods times grid points."""
        groups = {name: as_dict(getattr(self, name)) for name in self.SWEEPS if name != "method"}
        base = groups | {"kind": self.kind, "seeds": self.seeds, "first_seed": self.first_seed, "probes": self.probes}
        return [self._cell(base, entry, point) for entry in self.methods for point in points(self.grid)]

    def _cell(self, base: dict[str, Any], entry: str | dict[str, Any] | Method, point: dict[str, Any]) -> Cell:
        where, raw = f"grid point {point}", copy.deepcopy(base)
        method = as_entry(entry)
        for path, value in point.items():
            put({"method": method} if path.startswith("method.") else raw, path, value)
        made = validate(type(self), raw | {"methods": (method,)}, where)
        name, values = named_method(method)
        seen = {path: value_at({"method": values}, path) if path.startswith("method.") else value_at(made, path)
                for path in point if path not in COUNTS}  # fmt: skip
        return Cell(
            name, values, seen, made.data, made.model, made.training, made.selection, made.probes, made.kind,
            made.seeds, made.first_seed,
        )  # fmt: skip

    @field_validator("methods")
    @classmethod
    def _methods_exist(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        resolved = [named_method(entry) for entry in value]
        check_names([name for name, _ in resolved])
        wrong = [line for entry, (_, method) in zip(value, resolved, strict=True) for line in mistaken(entry, method)]
        if wrong:
            raise ValueError(wrong[0])
        return value

    @model_validator(mode="after")
    def _mixup_is_set_where_there_is_some(self) -> "Experiment":
        swept = self.grid_columns
        for entry in self.methods if not {"method.penalty", "method.mixes"} & set(swept) else ():
            (name, method), own = named_method(entry), entry if isinstance(entry, Mapping) else {}
            idle = [path for path in MIXING if path in swept or path.removeprefix("method.") in own]
            mixes = method.mixes != "none" or (bool(idle) and asks_for(method, "mixed"))
            if mixes:  # it has λ, and no target
                idle = [path for path in idle if path.startswith("method.")]
            if idle and not method.mixup:
                raise ValueError(
                    f"{idle[0]} has no effect on method {name!r}, which "
                    f"{'has no penalty' if mixes else 'does not mix'}; leave one of them out"
                )
            if method.alpha is not None and "training.alpha" in swept:
                raise ValueError(f"training.alpha has no effect on method {name!r}, which has an alpha of its own")
        return self

    @model_validator(mode="after")
    def _the_kind_says_the_task(self) -> "Experiment":
        if self.kind == "pu" and self.data.task != "pu":
            raise ValueError("data.task is the kind of the experiment: write kind: multiclass instead")
        object.__setattr__(self, "data", dataclasses.replace(self.data, task=self.kind))
        return self

    @model_validator(mode="after")
    def _default_rules_need_no_unknown_label(self) -> "Experiment":
        s = self.selection
        if not self.data.truth and s.rules == SelectionConfig().rules and s.default.entry.label_free:
            known = tuple(rule for rule in s.rules if rule.entry.label_free)
            object.__setattr__(self, "selection", dataclasses.replace(s, rules=known))
        return self

    @model_validator(mode="after")
    def _what_many_classes_allow(self) -> "Experiment":
        if self.kind == "pu":
            return self
        for rule in self.selection.rules:
            if not rule.entry.any_task:
                choices = [name for name, rule in RULES.items() if rule.any_task]
                raise ValueError(
                    f"selection rule {rule.name!r} wants positive and unlabeled rows; of many classes {choices}"
                )
        for name, method in map(named_method, self.methods):
            if not asks_for(method, "y") or method.mixup or method.batching != "mixed" or method.decision != "half":
                raise ValueError(
                    f"method {name!r} is one of positive and unlabeled data; of many classes "
                    "'pn' with any surrogate, without penalty"
                )
        for name in ("scenario", "mechanism", "c", "noise", "train_prior", "prior", "prior_scale"):
            if getattr(self.data, name) != getattr(DataConfig(), name):
                raise ValueError(f"data.{name} is of labeled positives; of many classes it has no effect: leave it out")
        return self

    @model_validator(mode="after")
    def _rules_see_an_epoch_within_their_patience(self) -> "Experiment":
        every, patience = self.training.evaluate_every, self.selection.patience
        for rule in self.selection.rules if every > patience else ():
            if rule.column:
                raise ValueError(
                    f"training.evaluate_every is {every}, and rule {rule.name!r} gives up after selection.patience = "
                    f"{patience} epochs; expected no more than that"
                )
        return self

    @model_validator(mode="after")
    def _rules_have_their_validation_set(self) -> "Experiment":
        for rule in self.selection.rules:
            if rule.validation is not None and rule.validation not in self.data.validation:
                sizes = [f"{share:g}" for share in self.data.validation]
                raise ValueError(
                    f"selection rule {rule.name!r} wants validation share {rule.validation:g}; data.validation has "
                    f"{sizes}"
                )
        return self
