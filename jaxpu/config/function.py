"""What an experiment on a function is: a configuration with ``kind: function``. No jax is imported here."""

import dataclasses
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from jaxpu.config.base import AnyExperiment
from jaxpu.config.grid import COUNTS, points
from jaxpu.config.schema import as_dict
from jaxpu.config.validate import put, validate, value_at
from jaxpu.settings import STRICT


@dataclasses.dataclass(frozen=True)
class FunctionCell:
    """A function with its options at one grid point."""

    function: str
    options: dict[str, Any]
    point: dict[str, Any]
    precision: str
    seeds: int
    first_seed: int

    @property
    def method_name(self) -> str:
        """What stands in the column ``method``."""
        return self.function.rpartition(":")[2]

    @property
    def dataset(self) -> str:
        """What stands in the column ``dataset``: all data are drawn."""
        return "drawn"

    @property
    def settings(self) -> tuple[Any, ...]:
        """What makes a run of this cell another run."""
        return "function", self.function, self.options, self.precision

    @property
    def identity(self) -> tuple[Any, ...]:
        """As :attr:`settings`."""
        return self.settings


@dataclass(frozen=True, config=STRICT)
class FunctionExperiment(AnyExperiment):
    """What a function of a random key gives for every seed, at every grid point: a study that trains nothing of ours.

    Attributes:
        function: a name of :data:`jaxpu.theory.setups.SETUPS`, or ``package.module:function``, called as
            ``function(key, **options)``. It gives a dictionary of arrays: numbers are recorded as columns, and arrays
            of one length as ``path_<name>``.
        options: of the function. grid: of ``options``. precision: of the arrays.
    """

    SWEEPS = ("options",)

    kind: Literal["function"] = "function"
    function: str = "remainder"
    options: dict[str, Any] = Field(default_factory=dict)
    precision: Literal["float64", "float32"] = "float64"

    def cells(self) -> list[FunctionCell]:
        """The grid's points, in the order written.

        >>> [cell.options for cell in FunctionExperiment(options={"n": 5}, grid={"options.alpha": [1, 2]}).cells()]
        [{'n': 5, 'alpha': 1}, {'n': 5, 'alpha': 2}]
        """
        return [self._cell(point) for point in points(self.grid)]

    def _cell(self, point: dict[str, Any]) -> FunctionCell:
        raw = as_dict(self) | {"grid": {}, "claims": (), "description": ""}
        for path, value in point.items():
            put(raw, path, value)
        made = validate(FunctionExperiment, raw, where=f"grid point {point}")
        at = {path: value_at(made, path) for path in point if path not in COUNTS}
        return FunctionCell(made.function, made.options, at, made.precision, made.seeds, made.first_seed)
