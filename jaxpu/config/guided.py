"""What an experiment on guided training is: a configuration with ``kind: guided``. No jax is imported here."""

from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from jaxpu.config import STRICT, Claim, PositiveInt, Share, check_names
from jaxpu.config.ensemble import SELECTION

KIND = "guided"

Teacher = Literal["mixup", "plain"]
Sees = Literal["all", "train"]
StudentFilter = Literal["whole", "low", "high"]


@dataclass(frozen=True, config=STRICT)
class GuidedExperiment:
    """Every student with every teacher for every seed, and the student without a teacher.

    Attributes:
        name, description, seeds, first_seed, claims: as in :class:`jaxpu.config.Experiment`.
        dataset: a registered dataset. test: share of the rows held out.
        scaling: ``unit`` divides inputs by the largest magnitude in the training rows, as pixels are; ``standard``
            gives every feature mean 0 and standard deviation 1 there.
        hidden: widths of the hidden layers, of teachers and students.
        teachers: how teachers train, with or without mixup. sees: on all rows, the test rows among them (the ideal
            of seed 001, its method 1), or on the training rows alone (method 2).
        filters: which mixed pairs enter a student's loss; the names of the methods. ``none`` is the plain student.
        epochs, batch_size, lr: of teachers and students; SGD with momentum 0.9 and a cosine schedule.
    """

    kind: Literal["guided"] = KIND
    name: str = Field(default="experiment", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    description: str = ""
    dataset: str = "digits"
    test: Share = 0.4
    scaling: Literal["unit", "standard"] = "unit"
    hidden: tuple[PositiveInt, ...] = (64, 32)
    teachers: tuple[Teacher, ...] = Field(default=("mixup", "plain"), min_length=1)
    sees: tuple[Sees, ...] = Field(default=("all", "train"), min_length=1)
    filters: tuple[StudentFilter, ...] = Field(default=("whole", "low", "high"), min_length=1)
    epochs: PositiveInt = 60
    batch_size: PositiveInt = 64
    lr: float = Field(default=0.05, gt=0)
    seeds: PositiveInt = 8
    first_seed: int = Field(default=0, ge=0)
    claims: tuple[Claim, ...] = ()

    def teaching(self) -> list[tuple[Teacher, Sees]]:
        """All teachers, in the order of the results."""
        return [(teacher, sees) for teacher in self.teachers for sees in self.sees]


def label(teacher: str, sees: str) -> str:
    """The ``cell`` of the students of a teacher.

    >>> label("mixup", "all")
    'teacher=mixup sees=all'
    """
    return f"teacher={teacher} sees={sees}"


def check_guided_claims(experiment: GuidedExperiment) -> None:
    """Whether every claim speaks of runs that this experiment has.

    Raises:
        ConfigError: naming the claim, what it asks for, and the choices.
    """
    has: dict[str, Any] = {
        "method": {"none", *experiment.filters},
        "dataset": {experiment.dataset},
        "selection": {SELECTION},
        "cell": {piece for pair in experiment.teaching() for piece in label(*pair).split()},
    }
    check_names(experiment.claims, has)
