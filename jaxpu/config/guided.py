"""What an experiment on guided training is: a configuration with ``kind: guided``. No jax is imported here."""

import dataclasses
from typing import Any, Literal

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.config.base import AnyExperiment
from jaxpu.config.data import DataConfig
from jaxpu.config.grid import COUNTS, points, swept
from jaxpu.config.guide import GuideConfig, StudentConfig, StudentFilter
from jaxpu.config.schema import OF_NETWORKS, ModelConfig, TrainingConfig, as_dict
from jaxpu.config.validate import put, validate, value_at
from jaxpu.settings import STRICT, with_defaults

Teacher = Literal["mixup", "regmixup", "cutmix", "plain"]
Sees = Literal["all", "train"]
Loss = Literal["cross_entropy", "mse", "mae", "mae_mse", "bonus", "encouraging", "focal"]

TEACHER, NONE = "teacher", "none"
"""The methods that are no filters: the teachers themselves, and the student that learns plain rows without one."""

SCORES = ("accuracy", "balanced_accuracy", "f1", "auc", "ece", "brier", "log_loss")
SCORES += ("predicted_most", "largest_class", "score_mean", "score_sd")
SCORES += ("f1_best", "average_precision", "predicted_positive", "prevalence")
"""Columns with what a network's scores are worth at its end; the last line is of two classes."""

OF_PAIRS = ("negative", "risk", "risk_size", "rho_size_lambda", "rho_risk_el2n", "rho_size_el2n", "rho_conflict")
OF_PAIRS += ("teacher_accuracy", "teacher_log_loss")
"""Of a student with a teacher, on a fixed sample of pairs of training rows with λ uniform in (0, 1), and of its teacher
on the test rows: share with r̂ < 0, means of r̂ and |r̂|, rank correlations of |r̂| with min(λ, 1 - λ), of r̂ and of |r̂|
with the mean EL2N of the parents, and of r̂ with what a step on the pair costs the failure set."""

TIMES = ("overtakes_accuracy", "overtakes_log_loss", "crossing", "crossing_later")
"""Epochs until the student is better than its teacher on the test rows, by accuracy and by log-loss, and until less
than half of the pairs have r̂ < 0, each one more than all epochs where that never happens; the third less the first."""

TAILS = ("tail_lambda", "centre_lambda", "tail_el2n", "centre_el2n")
"""Means of min(λ, 1 - λ) and of EL2N over the pairs with the largest |r̂| (tail), and with the least (centre)."""

RANKINGS = ("suspects_risk", "suspects_credit", "suspects_el2n", "suspects_loss")
"""With ``mislabel``: share of wrong labels among as many rows as have one, those that a ranking puts first."""

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
    mislabel: float
    student: StudentConfig
    guide: GuideConfig
    probes: tuple[str, ...]
    seeds: int
    first_seed: int

    @property
    def dataset(self) -> str:
        """What stands in the column ``dataset``."""
        return self.data.name

    @property
    def mixing(self) -> str:
        """How training rows are mixed; plain teachers, and the student without one, take them as they are."""
        if self.method_name == NONE:
            return "plain"
        return str(self.teacher) if self.method_name == TEACHER else self.student.mixing

    @property
    def trained(self) -> TrainingConfig:
        """How this network is trained: the student's own α where it has one, and 0 where nothing is mixed."""
        if self.mixing == "plain":
            return dataclasses.replace(self.training, alpha=0.0)
        own = {"alpha": self.student.alpha, "alpha_schedule": self.student.alpha_schedule}
        return dataclasses.replace(self.training, **{name: value for name, value in own.items() if value is not None})

    @property
    def settings(self) -> tuple[Any, ...]:
        """What makes this cell another cell."""
        trained = (self.data, self.standardize, self.two_classes, self.model, self.training, self.loss, self.probes)
        return "guided", trained, self.mislabel, self.method_name, self.teacher, self.sees, self.student, self.guide

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
        mislabel: share of the training rows whose label is replaced by another class, drawn by the seed.
        teachers: how teachers train: on rows as they are, with mixup, or with both (Pinto et al., RegMixup, 2022).
        sees: on training and test rows (an ideal that cannot be had), or on the training rows alone.
        filters: which mixed pairs enter a student's loss; the names of the methods, besides ``none``, the student
            without a teacher, and ``teacher``. ``whole`` is training with mixup alone, measured against the teacher.
        student: what students do otherwise than their teachers. guide: how they are guided. A grid may set both;
            teachers and the student without one are trained once for all values.
    """

    SWEEPS = ("data", "standardize", "two_classes", "model", "training", "loss", "mislabel", "student", "guide")
    METRICS = (*SCORES, "kept", "entered", "train_loss", *OF_PAIRS, *TIMES, *TAILS, *RANKINGS)

    kind: Literal["guided"] = "guided"
    data: DataConfig = Field(default_factory=lambda: DataConfig(**_DEFAULTS["data"]))
    standardize: bool | None = None
    two_classes: bool = False
    model: ModelConfig = Field(default_factory=lambda: ModelConfig(**_DEFAULTS["model"]))
    training: TrainingConfig = Field(default_factory=lambda: TrainingConfig(**_DEFAULTS["training"]))
    loss: Loss = "cross_entropy"
    mislabel: float = Field(default=0.0, ge=0, lt=1)
    teachers: tuple[Teacher, ...] = Field(default=("mixup", "plain"), min_length=1)
    sees: tuple[Sees, ...] = Field(default=("all", "train"), min_length=1)
    filters: tuple[StudentFilter, ...] = Field(default=("whole", "low", "high"), min_length=1)
    student: StudentConfig = Field(default_factory=StudentConfig)
    guide: GuideConfig = Field(default_factory=GuideConfig)

    @property
    def grid_columns(self) -> tuple[str, ...]:
        """Who teaches, and the grid's."""
        return ("teacher", "sees", *swept(self.grid))

    def cells(self) -> list[GuidedCell]:
        """The student without a teacher and every teacher, where a grid point makes another of them; and students.

        >>> cells = GuidedExperiment(teachers=("plain",), sees=("all",), filters=("low", "high")).cells()
        >>> [(cell.method_name, cell.teacher, cell.sees) for cell in cells]
        [('none', None, None), ('teacher', 'plain', 'all'), ('low', 'plain', 'all'), ('high', 'plain', 'all')]
        >>> swept = GuidedExperiment(teachers=("plain",), sees=("all",), filters=("low",), grid={"guide.draws": [1, 2]})
        >>> [(cell.method_name, cell.point["guide.draws"]) for cell in swept.cells()]
        [('none', None), ('teacher', None), ('low', 1), ('low', 2)]
        """
        teachers = [(teacher, sees) for teacher in self.teachers for sees in self.sees]
        cells, made = [], []
        for point in points(self.grid):
            of_teachers = {
                path: value for path, value in point.items() if path.split(".")[0] not in ("student", "guide")
            }
            if of_teachers not in made:
                made.append(of_teachers)
                cells.append(self._cell(NONE, None, None, of_teachers))
                cells += [self._cell(TEACHER, *one, of_teachers) for one in teachers]
            cells += [self._cell(name, *one, point) for one in teachers for name in self.filters]
        return cells

    def _cell(self, method: str, teacher: str | None, sees: str | None, point: dict[str, Any]) -> GuidedCell:
        raw = as_dict(self) | {"grid": {}, "claims": (), "description": ""}
        if method in (NONE, TEACHER):
            raw |= {"student": {}, "guide": {}}
        for path, value in point.items():
            put(raw, path, value)
        made = validate(GuidedExperiment, raw, where=f"grid point {point}")
        at: dict[str, Any] = dict.fromkeys(swept(self.grid)) | {"teacher": teacher, "sees": sees}
        at |= {path: value_at(made, path) for path in point if path not in COUNTS}
        return GuidedCell(
            method, teacher, sees, at, made.data, made.standardize, made.two_classes, made.model, made.training,
            made.loss, made.mislabel, made.student, made.guide, made.probes, made.seeds, made.first_seed,
        )  # fmt: skip

    @model_validator(mode="before")
    @classmethod
    def _groups_have_defaults(cls, given: Any) -> Any:
        def add(raw: dict[str, Any]) -> dict[str, Any]:
            groups = {name: own for name in _DEFAULTS if isinstance(own := raw.get(name), dict)}
            kept = {name: own for name, own in groups.items() if not own.get("file") and not own.get("module")}
            read = OF_NETWORKS.get(kept.get("model", {}).get("name", "mlp"), ())
            sizes = {name: value for name, value in _DEFAULTS["model"].items() if name in read}
            usual = _DEFAULTS | {"model": sizes}
            return raw | {name: usual[name] | own for name, own in kept.items()}

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
