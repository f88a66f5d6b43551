"""What an experiment will cost, from a short calibration: each program compiled, and run for one segment.

    t = Σ over programs of ⌈runs / at once⌉ · epochs · (seconds of a segment / its epochs)

Runs that end early make it less: no run ends before its rules have lost patience. The truth lies between the time if
all did so at once and the time if none did, and their geometric mean is within a factor √(most / least) of both.
"""

import math
import resource
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxpu.runs.compiling import precision_of
from jaxpu.runs.engine import Engine
from jaxpu.runs.job import Job, Kind
from jaxpu.runs.placement import Placement
from jaxpu.runs.pool import Pool
from jaxpu.runs.store import Memory


class Program(NamedTuple):
    """One program.

    Attributes:
        dataset, methods: whose runs it has. runs, epochs: how many, and the most of a run. at_once: runs side by side.
        bytes: what the runs that go at once hold, with the arrays that they share; NaN where the kind does not say.
        compile_seconds: to compile it. epoch_seconds: an epoch of the runs that go at once; NaN where it was not tried,
            since its runs need what others keep.
    """

    dataset: str
    methods: tuple[str, ...]
    runs: int
    epochs: int
    at_once: int
    bytes: float
    compile_seconds: float
    epoch_seconds: float

    def seconds(self, epochs: int | None = None) -> float:
        """How long its runs take if each has so many epochs; None = all."""
        return math.ceil(self.runs / self.at_once) * min(epochs or self.epochs, self.epochs) * self.epoch_seconds


class Forecast(NamedTuple):
    """What an experiment will cost.

    Attributes:
        programs: one by one. runs: in all. least: epochs before which no run ends; None = all have all.
        peak_bytes: the most memory that this process has held, after every program was tried.
    """

    programs: tuple[Program, ...]
    runs: int
    least: int | None
    peak_bytes: int

    @property
    def range(self) -> tuple[float, float]:
        """Seconds of training if every run ends as early as it can, and if none ends early."""
        tried = [program for program in self.programs if not math.isnan(program.epoch_seconds)]
        return sum(program.seconds(self.least) for program in tried), sum(program.seconds() for program in tried)

    @property
    def seconds(self) -> float:
        """The estimate: the geometric mean of the two ends.

        >>> program = Program("d", ("vpu",), 8, 40, 2, 0.0, 1.0, 0.5)
        >>> forecast = Forecast((program,), 8, 10, 0)
        >>> forecast.range, forecast.seconds
        ((20.0, 80.0), 40.0)
        """
        low, high = self.range
        return math.sqrt(low * high)


def forecast(
    experiment: Any,
    kind: Kind,
    *,
    least: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Forecast:
    """Compile every program of an experiment and run it for one segment; nothing is recorded.

    The programs are those of the experiment: compiled ones are kept for it where there is a cache of them.

    Args:
        experiment, kind: as of :func:`jaxpu.runs.run`. least: epochs before which no run ends. clock: for tests.

    Raises:
        ConfigError: what cannot be run, as :func:`jaxpu.runs.run`.
    """
    engine = Engine(experiment, kind, lambda progress: None)
    programs = [
        _tried(engine, job, placement, clock) for job, placement in zip(engine.jobs, engine.placements, strict=True)
    ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Forecast(tuple(programs), len(engine.runs), least, peak)


def _tried(engine: Engine, job: Job, placement: Placement, clock: Callable[[], float]) -> Program:
    across = placement.mesh.shape["run"]
    at_once = min(across * placement.chunk, len(job.runs))
    memory = job.functions.memory
    held = math.nan if memory is None else at_once * memory(job.static, job.shared)
    first = job.runs[0].columns
    methods = tuple(dict.fromkeys(str(run.columns.get("method", "")) for run in job.runs))
    program = Program(str(first.get("dataset", "")), methods, len(job.runs), job.epochs, at_once, held, 0.0, math.nan)
    if any(run.needs for run in job.runs):
        return program
    with precision_of(job):
        pool = Pool(job, placement, engine.asked, Memory(), lambda run: {}, job.runs[0])
        began = clock()
        pool.compile()
        compiled = clock()
        epochs = pool.trial(deque(job.runs[:at_once]))
        return program._replace(compile_seconds=compiled - began, epoch_seconds=(clock() - compiled) / epochs)
