"""What experiments of every kind have."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.config.claim import Claim
from jaxpu.config.grid import COUNTS, Grid, always_set, checked_grid, count, swept
from jaxpu.config.validate import value_at
from jaxpu.errors import repeated, unknown
from jaxpu.settings import STRICT, Count, PositiveInt

MOST_RUNS = 1_000_000
END = "end"
"""What stands in the column ``selection`` where no rule selects: a run is judged where it ended."""


@dataclass(frozen=True, config=STRICT)
class PlacementConfig:
    """Where runs go; none of it changes a result beyond rounding.

    Attributes:
        kind: ``map`` (one run after the other), ``vmap`` (all at once), ``chunk`` (vmap of ``chunk`` runs,
            mapped), or ``auto``: map on CPU, on accelerators as many at once as fit into memory.
        chunk: runs at once for ``chunk``; None = by memory.
        devices: how many devices share the runs; None = all.
        row_devices: devices over which the rows of one step are split (mesh axis "batch").
        segment: epochs between two looks at the runs: progress, finished ones, checkpoint; up to the next multiple of
            ``training.evaluate_every``.
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

    @model_validator(mode="after")
    def _chunk_has_an_effect(self) -> "PlacementConfig":
        if self.chunk is not None and self.kind in ("map", "vmap"):
            raise ValueError(f"placement.chunk has no effect with kind {self.kind!r}; leave it out")
        return self


@dataclass(frozen=True, config=STRICT)
class AnyExperiment:
    """What experiments of every kind have: every cell for every seed.

    A kind adds its settings, says in ``SWEEPS`` which of them a grid may set and in ``METRICS`` what its runs record
    (of networks, training knows), and makes its cells: frozen dataclasses with ``method_name``, ``dataset``, ``point``
    (typed values by grid column), ``settings`` (all that makes it another cell), ``identity`` (all that makes a run
    another run, but the seed), ``seeds`` and ``first_seed``.

    Attributes:
        kind: what is trained. name: also the folder below ``results/``. description: what is asked; shown in the
            report.
        seeds: how many. first_seed: the first of them.
        grid: dotted paths to lists of values, e.g. ``{training.lr: [1e-3, 3e-4], method.anchor: [0, 0.5]}``, for all
            combinations; or rows of settings that go together, e.g.
            ``[{data.name: digits, training.epochs: 20, seeds: 8}, {data.name: spambase, training.epochs: 40}]``.
        claims: what is to be decided. placement: where runs go.
        probes: what else is recorded after every epoch: names, or ``package.module:function``.
        figures: what its page shows, each a ``kind`` of :mod:`jaxpu.plots.kinds` with its options; if none, those of
            its kind.
    """

    SWEEPS: ClassVar[tuple[str, ...]] = ()
    METRICS: ClassVar[tuple[str, ...]] = ()

    kind: str = ""
    name: str = Field(default="experiment", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    description: str = ""
    seeds: PositiveInt = 8
    first_seed: Count = 0
    grid: Grid = Field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    placement: PlacementConfig = Field(default_factory=PlacementConfig)
    probes: tuple[str, ...] = ()
    figures: tuple[dict[str, Any], ...] = ()

    @property
    def grid_columns(self) -> tuple[str, ...]:
        """The columns of tables that say at which grid point a run is."""
        return swept(self.grid)

    @property
    def rules(self) -> tuple[str, ...]:
        """What may stand in the column ``selection``, the default first."""
        return (END,)

    def cells(self) -> Sequence[Any]:
        """All cells, in the order written; :func:`jaxpu.config.expand` checks them."""
        raise NotImplementedError

    @field_validator("grid", mode="before")
    @classmethod
    def _grid_has_points(cls, value: Any) -> Any:
        return checked_grid(value)

    @field_validator("probes")
    @classmethod
    def _probes_differ(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if repeated(value):
            raise ValueError("a probe is named twice")
        return value

    @model_validator(mode="after")
    def _can_be_counted(self) -> "AnyExperiment":
        runs = self.seeds * count(self.grid) * len(getattr(self, "methods", ("one",)))
        if runs > MOST_RUNS:
            raise ValueError(f"{runs:.2g} runs are asked for, expected at most {MOST_RUNS:,}: fewer seeds or values")
        if self.first_seed + self.seeds > 2**31:
            raise ValueError(f"seeds must be below 2^31, got first_seed {self.first_seed}")
        return self

    @model_validator(mode="after")
    def _grid_sets_what_can_be_set(self) -> "AnyExperiment":
        rows = () if isinstance(self.grid, Mapping) else COUNTS
        for path in (*swept(self.grid), *(p for p in always_set(self.grid) if p in COUNTS)):
            group, dot, _ = path.partition(".")
            if path not in rows and (group not in self.SWEEPS or path == "data.task"):
                choices = [*self.SWEEPS, *rows]
                raise ValueError(f"grid path {path!r}: {unknown('setting of a grid', group, choices)}")
            own = getattr(self, group, None)
            nested = group == "method" or dataclasses.is_dataclass(own) or isinstance(own, dict)
            if path not in rows and nested != bool(dot):
                raise ValueError(f"grid path {path!r}: expected one setting, such as training.lr, not a group of them")
        return self

    @model_validator(mode="after")
    def _what_the_grid_sets_is_not_set_elsewhere(self) -> "AnyExperiment":
        for path in always_set(self.grid) if self.grid else ():
            if path.startswith("method."):
                entries = [e for e in getattr(self, "methods", ()) if isinstance(e, Mapping)]
                elsewhere = any(value_at(entry, path.partition(".")[2]) is not None for entry in entries)
            else:
                elsewhere = value_at(self, path) not in (None, value_at(type(self)(), path))
            if elsewhere:
                raise ValueError(f"{path} is set by the grid; its other value would have no effect: leave one out")
        return self


def check_names(names: Sequence[str]) -> None:
    """Whether methods can be told apart by their names.

    Raises:
        ValueError: naming those that stand there twice.
    """
    if twice := repeated(names):
        raise ValueError(
            f"method names must differ; {', '.join(sorted(twice))} appears twice (give the variant a 'name')"
        )
