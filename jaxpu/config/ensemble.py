"""What an experiment on ensembles is: a configuration with ``kind: ensemble``. No jax is imported here."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass

from jaxpu.config import STRICT, Claim, ConfigError, Experiment, PositiveInt, Share, check_names, put, to_dict, unknown, validate

KIND = "ensemble"
BASELINE_TRAINERS = ("mean", "weighted_mean", "stacking", "isotonic_mean")
SELECTION = "end"
"""What stands in the column ``selection``: an ensemble is judged where its training ended."""

Count = Annotated[int, Field(strict=True, ge=0)]


@dataclass(frozen=True, config=STRICT)
class RatingsConfig:
    """Where ratings come from, and which labels are known.

    Attributes:
        source: ``synthetic`` (:func:`jaxpu.ensemble.synthetic_ratings`), ``classifiers`` (out-of-fold probabilities of
            ten kinds of scikit-learn classifiers on ``dataset``) or ``runs`` (the runs of ``base`` are the classifiers).
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
    stop: bool = False

    @property
    def is_baseline(self) -> bool:
        """Whether nothing is factorised."""
        return self.trainer in BASELINE_TRAINERS


@dataclass(frozen=True, config=STRICT)
class EnsembleExperiment:
    """One experiment on ensembles: every method at every grid point for every seed.

    Attributes:
        name, description, seeds, first_seed, claims: as in :class:`jaxpu.config.Experiment`.
        methods: names of trainers, or mappings of :class:`EnsembleMethod`'s fields.
        grid: dotted paths below ``ratings``, ``factors`` and ``method`` to lists of values. Baselines have neither
            factors nor settings: they run once for each point of ``ratings``.
        base: an experiment of the kind ``pu`` on one dataset, all of whose runs are base classifiers, for ratings from
            the source ``runs``; it is trained first, as part of this one.
        continue_to: runs of ``als`` that are not healthy go on with their factors held fixed, by the same gradient
            updates, until they are or so many have been made; 0 = they do not. Not with Newton steps or a focal
            exponent.
        precision: of all arrays.
    """

    kind: Literal["ensemble"] = KIND
    name: str = Field(default="experiment", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    description: str = ""
    ratings: RatingsConfig = Field(default_factory=RatingsConfig)
    factors: FactorsConfig = Field(default_factory=FactorsConfig)
    methods: tuple[str | dict[str, Any], ...] = Field(default=("als",), min_length=1)
    grid: dict[str, list[Any]] = Field(default_factory=dict)
    base: Experiment | None = None
    seeds: PositiveInt = 8
    first_seed: Count = 0
    claims: tuple[Claim, ...] = ()
    continue_to: Count = 0
    precision: Literal["float64", "float32"] = "float64"

    @field_validator("methods")
    @classmethod
    def _names_differ(cls, value: tuple[str | dict[str, Any], ...]) -> tuple[str | dict[str, Any], ...]:
        names = [named(entry).name for entry in value]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"method names must differ; {', '.join(twice)} appears twice (give the variant a 'name')")
        return value


@dataclass(frozen=True, config=STRICT)
class EnsembleCell:
    """One method at one grid point."""

    method: EnsembleMethod
    dataset: str
    point: dict[str, Any]
    ratings: RatingsConfig
    factors: FactorsConfig

    @property
    def label(self) -> str:
        """The grid point for people."""
        return " ".join(f"{path.rpartition('.')[2]}={value}" for path, value in self.point.items())


def named(entry: str | Mapping[str, Any]) -> EnsembleMethod:
    """An entry of ``methods`` as a method with a name.

    >>> named("joint").name, named({"trainer": "als", "name": "weighted", "class_weights": 1}).class_weights
    ('joint', 1.0)
    """
    raw = {"trainer": entry} if isinstance(entry, str) else dict(entry)
    method = validate(EnsembleMethod, raw, where="methods")
    return method if method.name else dataclasses.replace(method, name=method.trainer)


def expand_ensemble(experiment: EnsembleExperiment) -> list[EnsembleCell]:
    """All cells: methods times grid points, in the order written.

    Raises:
        ConfigError: for a grid path that does not exist or a value that does not fit.

    >>> grid = {"ratings.rate": [0.5, 0.1], "method.lr": [0.01, 0.1]}
    >>> cells = expand_ensemble(validate(EnsembleExperiment, {"methods": ["als", "mean"], "grid": grid}))
    >>> [f"{c.method.name} {c.label}" for c in cells]
    ['als rate=0.5 lr=0.01', 'als rate=0.5 lr=0.1', 'als rate=0.1 lr=0.01', 'als rate=0.1 lr=0.1',
     'mean rate=0.5', 'mean rate=0.1']
    """
    for path in experiment.grid:
        if path.partition(".")[0] not in ("ratings", "factors", "method"):
            raise ConfigError(f"grid path {path!r}: {unknown('group', path, ['ratings', 'factors', 'method'])}")
    cells = []
    for entry in experiment.methods:
        method = named(entry)
        paths = [p for p in experiment.grid if p.startswith("ratings.") or not method.is_baseline]
        for values in itertools.product(*(experiment.grid[p] for p in paths)):
            cells.append(_cell(experiment, method, dict(zip(paths, values, strict=True))))
    return cells


def check_ensemble_claims(experiment: EnsembleExperiment) -> None:
    """Whether every claim speaks of runs that this experiment has.

    Raises:
        ConfigError: naming the claim, what it asks for, and the choices.
    """
    cells = expand_ensemble(experiment)
    has = {
        "method": {c.method.name for c in cells},
        "dataset": {c.dataset for c in cells},
        "selection": {SELECTION},
        "cell": {piece for c in cells for piece in c.label.split()},
    }
    check_names(experiment.claims, has)


def _cell(experiment: EnsembleExperiment, method: EnsembleMethod, point: dict[str, Any]) -> EnsembleCell:
    raw: dict[str, Any] = {
        "method": to_dict(method),
        "dataset": "",
        "point": {},
        "ratings": to_dict(experiment.ratings),
        "factors": to_dict(experiment.factors),
    }
    for path, value in point.items():
        put(raw, path, value)
    cell = validate(EnsembleCell, raw, where=f"grid point {point}")
    return dataclasses.replace(cell, point=point, dataset=_dataset(experiment, cell.ratings))


def _dataset(experiment: EnsembleExperiment, ratings: RatingsConfig) -> str:
    """What stands in the column ``dataset``."""
    if ratings.source == "synthetic":
        return ratings.source
    if ratings.source == "classifiers":
        return ratings.dataset
    if experiment.base is None:
        raise ConfigError("ratings.source is runs, and there is no base: give the experiment that trains them")
    return experiment.base.data.name
