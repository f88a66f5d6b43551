"""What an experiment on guided training is: a configuration with ``kind: guided``. No jax is imported here."""

import dataclasses
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from jaxpu.config.base import AnyExperiment
from jaxpu.config.common import STRICT, PositiveInt, Share
from jaxpu.config.ensemble import SCORES
from jaxpu.config.grid import points, swept
from jaxpu.config.schema import as_dict
from jaxpu.config.validate import validate, value_at

Teacher = Literal["mixup", "plain"]
Sees = Literal["all", "train"]
StudentFilter = Literal["whole", "low", "high"]


@dataclasses.dataclass(frozen=True)
class GuidedCell:
    """The students of one filter and one teacher: ``method_name`` is the filter's; ``none`` has no teacher.

    ``experiment`` holds all other settings, those of the grid point among them.
    """

    method_name: str
    teacher: str | None
    sees: str | None
    point: dict[str, Any]
    experiment: "GuidedExperiment"
    seeds: int
    first_seed: int

    @property
    def dataset(self) -> str:
        """What stands in the column ``dataset``."""
        return self.experiment.dataset

    @property
    def settings(self) -> tuple[Any, ...]:
        """What makes a run of this cell another run."""
        e = self.experiment
        numbers = [getattr(e, name) for name in e.SWEEPS]
        return "guided", numbers, e.probes, self.method_name, self.teacher, self.sees

    @property
    def identity(self) -> tuple[Any, ...]:
        """As :attr:`settings`."""
        return self.settings


@dataclass(frozen=True, config=STRICT)
class GuidedExperiment(AnyExperiment):
    """Every student with every teacher for every seed, and the student without a teacher.

    Attributes:
        dataset: a registered dataset. test: share of the rows held out.
        scaling: ``unit`` divides inputs by the largest magnitude in the training rows, as pixels are; ``standard``
            gives every feature mean 0 and standard deviation 1 there.
        hidden: widths of the hidden layers, of teachers and students.
        teachers: how teachers train, with or without mixup. sees: on all rows, the test rows among them (an ideal that
            cannot be had), or on the training rows alone.
        filters: which mixed pairs enter a student's loss; the names of the methods. ``none`` is the plain student.
        epochs, batch_size, lr: of teachers and students; SGD with momentum 0.9 and a cosine schedule.
    """

    SWEEPS = ("dataset", "test", "scaling", "hidden", "epochs", "batch_size", "lr")
    METRICS = (*SCORES, "accuracy", "kept")

    kind: Literal["guided"] = "guided"
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

    @property
    def grid_columns(self) -> tuple[str, ...]:
        """Who teaches, and the grid's."""
        return ("teacher", "sees", *swept(self.grid))

    def teaching(self) -> list[tuple[Teacher, Sees]]:
        """All teachers, in the order of the results."""
        return [(teacher, sees) for teacher in self.teachers for sees in self.sees]

    def cells(self) -> list[GuidedCell]:
        """At every grid point the student without a teacher, then those of every teacher.

        >>> cells = GuidedExperiment(teachers=("plain",), sees=("all",), filters=("low", "high")).cells()
        >>> [(cell.method_name, cell.teacher, cell.sees) for cell in cells]
        [('none', None, None), ('low', 'plain', 'all'), ('high', 'plain', 'all')]
        """
        students = [("none", None, None)]
        students += [(name, *pair) for pair in self.teaching() for name in self.filters]
        return [self._cell(*student, point) for point in points(self.grid) for student in students]

    def _cell(self, method: str, teacher: str | None, sees: str | None, point: dict[str, Any]) -> GuidedCell:
        raw = as_dict(self) | {"grid": {}, "claims": (), "description": ""} | point
        made = validate(GuidedExperiment, raw, where=f"grid point {point}")
        at = {"teacher": teacher, "sees": sees} | {path: value_at(made, path) for path in swept([point])}
        return GuidedCell(method, teacher, sees, at, made, made.seeds, made.first_seed)
