"""What an experiment on ensembles is: a configuration with ``kind: ensemble``. No jax is imported here."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.config.base import AnyExperiment, check_names
from jaxpu.config.experiment import Experiment
from jaxpu.config.grid import COUNTS, points
from jaxpu.config.schema import as_dict
from jaxpu.config.validate import put, validate, value_at
from jaxpu.settings import STRICT, Count, PositiveInt, Share, refuse_idle

BASELINE_TRAINERS = ("mean", "weighted_mean", "stacking", "isotonic_mean")
SCORES = ("average_precision", "auc", "brier", "log_loss", "ece", "f1", "f1_best", "predicted_positive", "prevalence")
SCORES += ("score_mean", "score_sd", "score_min", "score_max")
"""Columns with what the scores of a run are worth."""
WEIGHTS = ("w_mean", "w_sd", "w_min", "w_max", "b", "iterations", "flipped_at")
"""Columns with where a run's weights end."""
THEORY = ("flip_theory", "heal_theory", "total_theory", "slow_updates", "fast_updates", "labeled_rate", "level")
"""Columns with what closed forms say of a run."""
CONTINUED = ("ranked_at", "healthy_at")
"""Columns of runs that went on after their training."""


@dataclass(frozen=True, config=STRICT)
class RatingsConfig:
    """Where ratings come from, and which labels are known.

    Attributes:
        source: ``synthetic`` (:func:`jaxpu.ensemble.synthetic_ratings`), ``classifiers`` (out-of-fold probabilities of
            ten kinds of scikit-learn classifiers on ``dataset``) or ``runs`` (those of ``base`` are the classifiers).
        n, classifiers, quality: of the synthetic ratings. rate: share of positives; of ``classifiers`` positives are
            left out until it is reached, None leaves the data as they are.
        labeled: share of the instances whose label is known; the others are the test set.
        dataset: a registered dataset.
    """

    source: Literal["synthetic", "classifiers", "runs"] = "synthetic"
    n: PositiveInt = 500
    classifiers: PositiveInt = 10
    quality: float = 0.7
    rate: Share | None = 0.1
    labeled: Share = 0.5
    dataset: str = "spambase"

    @model_validator(mode="after")
    def _what_the_source_reads(self) -> "RatingsConfig":
        read = {"n": "synthetic", "classifiers": "synthetic", "quality": "synthetic", "dataset": "classifiers"}
        idle = [name for name, source in read.items() if source != self.source]
        refuse_idle(self, idle, f"source {self.source!r}")
        return self


@dataclass(frozen=True, config=STRICT)
class FactorsConfig:
    """The factorisation: d, λ, confidence with its α, and the spread of the random start."""

    dim: PositiveInt = 15
    ridge: float = Field(default=0.01, gt=0)
    confidence: Literal["uniform", "certainty", "label_aware", "calibration", "adaptive"] = "label_aware"
    alpha: float = Field(default=1.0, ge=0)
    start_scale: float = Field(default=0.01, gt=0)


@dataclass(frozen=True, config=STRICT)
class EnsembleMethod:
    """How an ensemble is trained; the numbers are those of :class:`jaxpu.ensemble.Step`.

    Attributes:
        name: in tables; by default the trainer's. trainer: ``als``, ``joint`` or a baseline.
        iterations: of the trainer. rho: weight of the factorisation in joint training.
        plateau: factor on the learning rate of ``joint`` after every plateau of its objective of more than
            ``plateau_patience`` iterations; 0.5 and 10 in the original code, 1 = a constant rate.
        stop: ``als`` stops when its objective changes by less than 1e-4, ``joint`` after 20 iterations in vain.
    """

    name: str = ""
    trainer: Literal["als", "joint", "mean", "weighted_mean", "stacking", "isotonic_mean"] = "als"
    iterations: PositiveInt = 100
    rho: float = Field(default=0.5, ge=0, le=1)
    lr: float = Field(default=0.01, gt=0)
    bias_lr: float = Field(default=1.0, gt=0)
    class_weights: float = Field(default=0.0, ge=0)
    focal: float = Field(default=0.0, ge=0)
    freeze: Count = 0
    bias_first: Count = 0
    initial_total: float = 1.0
    initial_bias: float = 0.0
    centre: bool = False
    newton: bool = False
    damping: float = Field(default=1e-3, gt=0)
    plateau: float = Field(default=1.0, gt=0, le=1)
    plateau_patience: Count = 10
    stop: bool = False

    @model_validator(mode="after")
    def _what_the_trainer_reads(self) -> "EnsembleMethod":
        others = [f.name for f in dataclasses.fields(self) if f.name not in ("name", "trainer")]
        idle = others if self.is_baseline else ["plateau", "plateau_patience"] * (self.trainer != "joint")
        refuse_idle(self, idle, f"trainer {self.trainer!r}")
        return self

    @property
    def is_baseline(self) -> bool:
        """Whether nothing is factorised."""
        return self.trainer in BASELINE_TRAINERS


@dataclass(frozen=True, config=STRICT)
class EnsembleCell:
    """One method at one grid point."""

    method: EnsembleMethod
    dataset: str
    point: dict[str, Any]
    ratings: RatingsConfig
    factors: FactorsConfig
    continue_to: int = 0
    precision: str = "float64"
    seeds: int = 8
    first_seed: int = 0

    @property
    def method_name(self) -> str:
        """What stands in the column ``method``."""
        return self.method.name

    @property
    def settings(self) -> tuple[Any, ...]:
        """What makes a run of this cell another run; the name of its method does not."""
        method = dataclasses.replace(self.method, name="")
        return "ensemble", method, self.ratings, self.factors, self.continue_to, self.precision

    @property
    def identity(self) -> tuple[Any, ...]:
        """As :attr:`settings`."""
        return self.settings


@dataclass(frozen=True, config=STRICT)
class EnsembleExperiment(AnyExperiment):
    """One experiment on ensembles: every method at every grid point for every seed.

    Attributes:
        methods: names of trainers, or mappings of :class:`EnsembleMethod`'s fields.
        grid: of ``ratings``, ``factors`` and ``method``. Baselines have neither factors nor settings: they run once
            for each point of ``ratings``, and have nothing in the other columns.
        base: an experiment of the kind ``pu`` on one dataset, whose runs are the base classifiers where ratings come
            from ``runs``; they are trained first, as part of this one.
        continue_to: runs of ``als`` that are not healthy go on with their factors held fixed, by the same gradient
            updates, until they are or so many have been made; 0 = they do not. Not with Newton steps or a focal
            exponent.
        precision: of all arrays.
    """

    SWEEPS = ("ratings", "factors", "method")
    METRICS = (*SCORES, *WEIGHTS, *THEORY, *CONTINUED)

    kind: Literal["ensemble"] = "ensemble"
    ratings: RatingsConfig = Field(default_factory=RatingsConfig)
    factors: FactorsConfig = Field(default_factory=FactorsConfig)
    methods: tuple[str | dict[str, Any], ...] = Field(default=("als",), min_length=1)
    base: Experiment | None = None
    continue_to: Count = 0
    precision: Literal["float64", "float32"] = "float64"

    def cells(self) -> list[EnsembleCell]:
        """Methods times grid points, in the order written.

        >>> grid = {"ratings.rate": [0.5, 0.1], "method.lr": [0.01, 0.1]}
        >>> [(c.method_name, *c.point.values()) for c in EnsembleExperiment(methods=("als", "mean"), grid=grid).cells()]
        [('als', 0.5, 0.01), ('als', 0.5, 0.1), ('als', 0.1, 0.01), ('als', 0.1, 0.1), ('mean', 0.5), ('mean', 0.1)]
        """
        made = []
        for method in map(named, self.methods):
            idle = [path for path in self.grid_columns if not path.startswith("ratings.")] if method.is_baseline else ()
            made += [self._cell(method, point) for point in points(self.grid, idle)]
        return made

    def _cell(self, method: EnsembleMethod, point: dict[str, Any]) -> EnsembleCell:
        raw = {"method": as_dict(method), "ratings": as_dict(self.ratings), "factors": as_dict(self.factors)}
        raw |= {"seeds": self.seeds, "first_seed": self.first_seed}
        for path, value in point.items():
            put(raw, path, value)
        raw |= {"point": {}, "dataset": "", "continue_to": self.continue_to, "precision": self.precision}
        cell = validate(EnsembleCell, raw, where=f"grid point {point}")
        at = {path: value_at(cell, path) for path in point if path not in COUNTS}
        return dataclasses.replace(cell, point=at, dataset=self._dataset(cell.ratings))

    def _dataset(self, ratings: RatingsConfig) -> str:
        if ratings.source == "runs":
            return self.base.data.name if self.base else ""
        return ratings.dataset if ratings.source == "classifiers" else ratings.source

    @model_validator(mode="after")
    def _runs_have_a_base(self) -> "EnsembleExperiment":
        wanted = self.ratings.source == "runs"
        if wanted != (self.base is not None):
            raise ValueError(
                "ratings.source is runs, and base is missing: give the experiment that trains them"
                if wanted
                else "base has no effect unless ratings.source is runs: leave it out"
            )
        if self.base and (self.base.kind != "pu" or len({cell.dataset for cell in self.base.cells()}) > 1):
            raise ValueError("base must be an experiment of the kind pu on one dataset")
        return self

    @field_validator("methods")
    @classmethod
    def _names_differ(cls, value: tuple[str | dict[str, Any], ...]) -> tuple[str | dict[str, Any], ...]:
        check_names([named(entry).name for entry in value])
        return value


def named(entry: str | Mapping[str, Any]) -> EnsembleMethod:
    """An entry of ``methods`` as a method with a name.

    >>> named("joint").name, named({"trainer": "als", "name": "weighted", "class_weights": 1}).class_weights
    ('joint', 1.0)
    """
    raw = {"trainer": entry} if isinstance(entry, str) else dict(entry)
    method = validate(EnsembleMethod, raw, where="methods")
    return method if method.name else dataclasses.replace(method, name=method.trainer)
