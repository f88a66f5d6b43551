"""What a kind of experiment gives the engine: runs with identities, and jobs of runs that share one program.

A kind is a module (or any object) with two functions, and nothing else of it is known to the engine::

    runs(experiment) -> list[Run]         every run with its identity, in the order of the record
    jobs(experiment, runs) -> list[Job]   the same runs, grouped by what is static

The engine compiles ``init`` and ``advance`` of each job once and gives the rest: where runs go, segments, early exit,
checkpoints and resuming, checksums, provenance, progress.
"""

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import polars as pl

from jaxpu.config import ConfigError, digest

FORMAT = 3
"""Part of every run's identity: raise it when the meaning of recorded numbers changes."""

Tree = Any
"""A pytree of arrays."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a seed.

    Attributes:
        run_id: its identity, from :func:`identity`. seed: its seed.
        columns: what stands in front of its rows, typed: dataset, method, grid columns by dotted path, and ``seed``
            last. They may change without a run being another; where a run has one not, it is null.
        cell: its settings, for the functions of its kind.
        needs: identities of runs whose kept outputs ``Job.inputs`` asks for, a teacher's parameters say.
    """

    run_id: str
    columns: Mapping[str, Any]
    seed: int
    cell: Any = None
    needs: tuple[str, ...] = ()


class Functions(NamedTuple):
    """The pure functions of a job, all defined at the top of a module, so that equal programs are one.

    Attributes:
        init: ``(static, key, shared, inputs) -> state``: the state before the first epoch, a pytree of arrays (of a
            random key its data). ``key`` is the seed's own, ``fold_in(key(0), seed)``.
        advance: ``(static, key, state, shared, inputs, epochs) -> (state, history)``: ``epochs`` (static) more epochs.
            A history maps a column to an array with one entry an epoch in front, numbers or arrays. Epochs after the
            end of a run cost and change nothing, and are NaN in every column of floats and 0 in every other: this is
            how the engine tells how many epochs a run has had, so one column at least must be told from that in every
            epoch, even of a run that diverges. A run has one epoch at least, and is the same in one segment or in many.
        finished: ``(static, state) -> bool``: whether the run is over.
        record: ``(run, history) -> pl.DataFrame``, on the host: what is recorded of a finished run, a row an epoch
            (see :func:`epoch_rows`) or one row in all, without ``run.columns``, which the engine puts in front.
            Columns may be lists, curves say.
        kept: ``(static, state) -> tree``, on the host, of arrays of NumPy: what a job with ``keep`` keeps of a finished
            run, nested dictionaries, lists or tuples of arrays.
        memory: ``(static, shared) -> bytes`` that one run holds while it runs; None = small.
        split: ``(static, spec) -> static``: the static part of a program whose rows of one step lie on several devices,
            sharded as ``spec`` (a PartitionSpec); None = such a placement is refused.
    """

    init: Callable[..., Tree]
    advance: Callable[..., tuple[Tree, dict[str, Any]]]
    finished: Callable[[Any, Tree], Any]
    record: Callable[[Run, dict[str, Any]], pl.DataFrame]
    kept: Callable[[Any, Tree], Tree] | None = None
    memory: Callable[[Any, Tree], int] | None = None
    split: Callable[[Any, Any], Hashable] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """Runs that share one compiled program.

    Attributes:
        static: what the program is compiled for. shared: arrays that all runs read, not copied for each of them.
        runs: its runs, in the order to start them.
        inputs: ``(run, needed) -> tree of NumPy arrays``: a run's own numbers and rows, of equal shapes for all runs.
            ``needed`` maps each identity in ``run.needs`` to what that run has kept.
        epochs: most epochs of a run. functions: what the program does.
        keep: keep ``functions.kept`` of every run; asked for by runs that others need.
        precision: of the program. every: a segment is a multiple of so many epochs.
    """

    static: Hashable
    shared: Tree
    runs: tuple[Run, ...]
    inputs: Callable[[Run, dict[str, Tree]], Tree]
    epochs: int
    functions: Functions
    keep: bool = False
    precision: Literal["float32", "float64"] = "float32"
    every: int = 1


class Kind(Protocol):
    """What :func:`jaxpu.runs.run` asks of a kind."""

    def runs(self, experiment: Any) -> Sequence[Run]:
        """Every run, in the order of the record."""
        ...

    def jobs(self, experiment: Any, runs: Sequence[Run]) -> Sequence[Job]:
        """The same runs, grouped into programs."""
        ...


def identity(kind: str, settings: Any, content: str, seed: int) -> str:
    """The identity under which a run is kept: equal for equal settings, data and seed, and never for others.

    Args:
        kind: of the experiment. settings: all that the run's numbers depend on, as typed values.
        content: digest of the data's content. seed: the run's.

    >>> identity("toy", {"lr": 1e-3}, "", 0) == identity("toy", {"lr": 0.001}, "", 0)
    True
    >>> identity("toy", {"lr": 1e-3}, "", 0) == identity("toy", {"lr": 1e-3}, "other", 0)
    False
    """
    return digest(FORMAT, kind, settings, content, seed)


def epoch_rows(run: Run, history: dict[str, Any]) -> pl.DataFrame:
    """A ``record`` with a row an epoch: ``epochs_run``, ``epoch`` from 1, and each column in single precision.

    Columns with an array an epoch become lists, of lists where it has more dimensions.

    >>> import numpy as np
    >>> run = Run("a", {"seed": 0}, 0)
    >>> frame = epoch_rows(run, {"train_loss": np.array([0.5, 0.25]), "path": np.zeros((2, 3))})
    >>> frame["epoch"].to_list(), frame["path"].to_list()[0]
    ([1, 2], [0.0, 0.0, 0.0])
    """
    import numpy as np

    epochs = len(next(iter(history.values())))
    head = pl.DataFrame({"epochs_run": [epochs] * epochs, "epoch": np.arange(1, epochs + 1)})
    columns = {name: np.asarray(values, np.float32) for name, values in history.items()}
    return head.hstack([_series(name, values) for name, values in columns.items()])


def _series(name: str, values: Any) -> pl.Series:
    if values.ndim == 1:  # nearly all, and a detour by a list is slow
        return pl.Series(name, values)
    return pl.Series(name, values.tolist(), dtype=_kind(values.ndim))


def _kind(dimensions: int) -> Any:
    return pl.Float32 if dimensions == 1 else pl.List(_kind(dimensions - 1))


def check(runs: Sequence[Run], jobs: Sequence[Job]) -> None:
    """Whether runs have identities of their own, each a job, and all that is needed is kept.

    Raises:
        ConfigError: two runs are the same, or a seed is too large. ValueError: a mistake of the kind.
    """
    ids = [run.run_id for run in runs]
    by_id = {run.run_id: run for run in runs}
    if not runs:
        raise ConfigError("the experiment has no runs; give methods, grid points and seeds")
    if len(by_id) < len(ids):
        twice = next(run for run in runs if ids.count(run.run_id) > 1)
        raise ConfigError(f"two runs are the same: {dict(twice.columns)}; settings must differ")
    largest = max(run.seed for run in runs)
    if largest >= 2**32:
        raise ConfigError(f"seeds must be below 2^32, got {largest}; lower first_seed")
    if sorted(run.run_id for job in jobs for run in job.runs) != sorted(ids):
        raise ValueError("jobs must hold every run, each once")
    if any([*run.columns][-1:] != ["seed"] for run in runs):
        raise ValueError("the last of a run's columns must be 'seed'")
    if any(job.keep and job.functions.kept is None for job in jobs):
        raise ValueError("a job keeps what its runs leave, and its functions have no 'kept'")
    keeping = {run.run_id for job in jobs if job.keep for run in job.runs}
    for run in runs:
        for needed in run.needs:
            if needed not in keeping:
                raise ValueError(f"run {run.run_id} needs {needed}, which keeps nothing")
