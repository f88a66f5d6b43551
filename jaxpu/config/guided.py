"""What an experiment on guided training is: a configuration with ``kind: guided``. No jax is imported here."""

import dataclasses
from typing import Any, Literal

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.config.base import AnyExperiment
from jaxpu.config.common import STRICT, with_defaults
from jaxpu.config.data import DataConfig
from jaxpu.config.grid import COUNTS, points, swept
from jaxpu.config.schema import ModelConfig, TrainingConfig, as_dict
from jaxpu.config.validate import put, validate, value_at

Teacher = Literal["mixup", "plain"]
Sees = Literal["all", "train"]
StudentFilter = Literal["whole", "low", "high"]
Loss = Literal["cross_entropy", "mse", "mae", "mae_mse", "bonus", "encouraging", "focal"]

TEACHER, NONE = "teacher", "none"
"""The methods that are no filters: the teachers themselves, and the student without a teacher."""

SCORES = ("accuracy", "balanced_accuracy", "f1", "auc", "ece", "brier", "log_loss")
SCORES += ("predicted_most", "largest_class", "score_mean", "score_sd")
SCORES += ("f1_best", "average_precision", "predicted_positive", "prevalence")
"""Columns with what a network's scores are worth at its end; the last line is of two classes."""

_DEFAULTS: dict[str, dict[str, Any]] = {
    "data": {"name": "digits", "test": 0.4},
    "model": {"hidden": (64, 32), "dropout": ()},
    "training": {
        "epochs": 60,
        "batch_size": 64,
        "lr": 0.05,
        "weight_decay": 0.0,
        "optimizer": "sgd",
        "schedule": "cosine",
        "alpha": 1.0,
    },
}
"""What differs from the defaults of the kind ``pu``; what is left out of a group is one of these."""


@dataclasses.dataclass(frozen=True)
class GuidedCell:
    """The students of one filter and one teacher, the teacher, or the student without one, at one grid point.

    ``method_name`` is the filter's name, ``teacher`` or ``none``; ``teacher`` and ``sees`` are None for ``none``.
    """

    method_name: str
    teacher: str | None
    sees: str | None
    point: dict[str, Any]
    data: DataConfig
    standardize: bool | None
    two_classes: bool
    model: ModelConfig
    training: TrainingConfig
    loss: str
    probes: tuple[str, ...]
    seeds: int
    first_seed: int

    @property
    def dataset(self) -> str:
        """What stands in the column ``dataset``."""
        return self.data.name

    @property
    def mixes(self) -> bool:
        """Whether training rows are mixed; plain teachers, and the student without one, take them as they are."""
        return self.method_name != NONE and (self.method_name != TEACHER or self.teacher == "mixup")

    @property
    def settings(self) -> tuple[Any, ...]:
        """What makes this cell another cell."""
        trained = (self.data, self.standardize, self.two_classes, self.model, self.training, self.loss, self.probes)
        return "guided", trained, self.method_name, self.teacher, self.sees

    @property
    def identity(self) -> tuple[Any, ...]:
        """What makes a run of this cell another run, but its data and its teacher."""
        return self.settings


@dataclass(frozen=True, config=STRICT)
class GuidedExperiment(AnyExperiment):
    """Every teacher, every student with every teacher, and the student without one, for every seed.

    Attributes:
        data: a dataset, all of whose training labels are known; with two classes there are two logits. Left out:
            digits, 40 % of the rows held out.
        two_classes: learn positive against negative, even where the dataset has more classes.
        standardize: whether features get mean 0 and standard deviation 1 over the training rows; None = as usual for
            the dataset.
        model: the network of teachers and students; left out: two hidden layers, 64 and 32. training: how they are
            trained, ``alpha`` and its schedule where rows are mixed; left out: SGD with momentum and a cosine schedule.
        loss: of the mixed rows, by its name in :data:`jaxpu.losses.CLASSIFICATION`. Filters go by the cross-entropy.
        teachers: how teachers train, with or without mixup. sees: on all rows, the test rows among them (an ideal that
            cannot be had), or on the training rows alone.
        filters: which mixed pairs enter a student's loss; the names of the methods, besides ``none``, the student
            without a teacher, and ``teacher``.
    """

    SWEEPS = ("data", "standardize", "two_classes", "model", "training", "loss")
    METRICS = (*SCORES, "kept", "train_loss")

    kind: Literal["guided"] = "guided"
    data: DataConfig = Field(default_factory=lambda: DataConfig(**_DEFAULTS["data"]))
    standardize: bool | None = None
    two_classes: bool = False
    model: ModelConfig = Field(default_factory=lambda: ModelConfig(**_DEFAULTS["model"]))
    training: TrainingConfig = Field(default_factory=lambda: TrainingConfig(**_DEFAULTS["training"]))
    loss: Loss = "cross_entropy"
    teachers: tuple[Teacher, ...] = Field(default=("mixup", "plain"), min_length=1)
    sees: tuple[Sees, ...] = Field(default=("all", "train"), min_length=1)
    filters: tuple[StudentFilter, ...] = Field(default=("whole", "low", "high"), min_length=1)

    @property
    def grid_columns(self) -> tuple[str, ...]:
        """Who teaches, and the grid's."""
        return ("teacher", "sees", *swept(self.grid))

    def cells(self) -> list[GuidedCell]:
        """At every grid point the student without a teacher, then every teacher and its students.

        >>> cells = GuidedExperiment(teachers=("plain",), sees=("all",), filters=("low", "high")).cells()
        >>> [(cell.method_name, cell.teacher, cell.sees) for cell in cells]
        [('none', None, None), ('teacher', 'plain', 'all'), ('low', 'plain', 'all'), ('high', 'plain', 'all')]
        """
        teachers = [(teacher, sees) for teacher in self.teachers for sees in self.sees]
        runs: list[tuple[str, str | None, str | None]] = [(NONE, None, None)]
        runs += [(name, teacher, sees) for teacher, sees in teachers for name in (TEACHER, *self.filters)]
        return [self._cell(*one, point) for point in points(self.grid) for one in runs]

    def _cell(self, method: str, teacher: str | None, sees: str | None, point: dict[str, Any]) -> GuidedCell:
        raw = as_dict(self) | {"grid": {}, "claims": (), "description": ""}
        for path, value in point.items():
            put(raw, path, value)
        made = validate(GuidedExperiment, raw, where=f"grid point {point}")
        at = {"teacher": teacher, "sees": sees}
        at |= {path: value_at(made, path) for path in point if path not in COUNTS}
        return GuidedCell(
            method, teacher, sees, at, made.data, made.standardize, made.two_classes, made.model, made.training,
            made.loss, made.probes, made.seeds, made.first_seed,
        )  # fmt: skip

    @model_validator(mode="before")
    @classmethod
    def _groups_have_defaults(cls, given: Any) -> Any:
        def add(raw: dict[str, Any]) -> dict[str, Any]:
            groups = {name: own for name in _DEFAULTS if isinstance(own := raw.get(name), dict)}
            kept = {name: own for name, own in groups.items() if not own.get("file") and not own.get("module")}
            return raw | {name: _DEFAULTS[name] | own for name, own in kept.items()}

        return with_defaults(given, add)

    @model_validator(mode="after")
    def _all_labels_are_known(self) -> "GuidedExperiment":
        for name in ("scenario", "mechanism", "c", "prior", "prior_scale", "outside"):
            if getattr(self.data, name) != getattr(DataConfig(), name):
                raise ValueError(f"data.{name} has no effect where all training labels are known: leave it out")
        if not self.data.truth:
            raise ValueError("data has no true labels, which teachers and students learn from; name data.label")
        object.__setattr__(self, "data", dataclasses.replace(self.data, task="multiclass"))
        return self
