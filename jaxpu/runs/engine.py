"""The engine: jobs in waves, each a pool of slots, until every run is recorded.

kind -> runs and jobs -> what the store has not -> waves of jobs whose runs have what they need -> record
"""

import contextlib
import dataclasses
import datetime
import functools
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
import polars as pl

from jaxpu.config import ConfigError, PlacementConfig, claims_digest, digest, dump
from jaxpu.runs import processes
from jaxpu.runs.compiling import in_turn, precision_of
from jaxpu.runs.files import Damaged, NothingFinished, ResultsError
from jaxpu.runs.inventory import named
from jaxpu.runs.job import FORMAT, Job, Kind, Run, Tree, check
from jaxpu.runs.placement import Placement, resolve
from jaxpu.runs.pool import Pool, Store
from jaxpu.runs.provenance import commit, versions


@dataclasses.dataclass(frozen=True)
class Progress:
    """What an experiment is doing, for whoever watches: totals, and a note for people when there is one."""

    runs_done: int
    runs_total: int
    epochs_done: int
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A finished experiment: all recorded rows, where they came from, and runs that failed with their error.

    ``kept(run_id)`` is what a run has kept.
    """

    runs: pl.DataFrame
    provenance: dict[str, Any]
    failures: tuple[str, ...]
    kept: Callable[[str], Tree]


class Engine:
    """One experiment on its way; see :func:`jaxpu.runs.run`."""

    def __init__(self, experiment: Any, kind: Kind, watch: Callable[[Progress], None]):
        self.experiment, self._watch = experiment, watch
        self.asked: PlacementConfig = getattr(experiment, "placement", None) or PlacementConfig()
        self.runs = tuple(kind.runs(experiment))
        self.jobs = tuple(kind.jobs(experiment, self.runs))
        check(self.runs, self.jobs)
        self.placements = [resolve(self.asked, job) for job in self.jobs]
        self._began, self._started = time.perf_counter(), datetime.datetime.now(datetime.UTC)
        self._compile, self._each = 0.0, list[float]()
        self._used: list[Placement] = []
        self._finished: set[str] = set()
        self._failed: set[str] = set()
        self._failures: list[str] = []
        self._epochs = self._slot_epochs = 0

    def go(self, store: Store) -> Outcome:
        """Run what a store does not hold yet."""
        wanted = [run.run_id for run in self.runs]
        if processes.agreed(lambda: digest(wanted)) != digest(wanted):
            raise ConfigError("this process has other settings or data than process 0; give all of them the same")
        held = store.take(wanted)
        if held.foreign_runs:
            raise ResultsError(
                f"{store} holds {held.foreign_runs} runs of another configuration or of other data; nothing was "
                "changed. Give another --out, or --fresh to replace them"
            )
        store.begin(dump(self.experiment).encode())
        for note in held.notes:
            self._tell(note)
        self._finished = held.done - self._without_output(store, held.done)
        if self._finished:
            self._tell(f"{len(self._finished)} of {len(wanted)} runs are finished already and kept")
        store.clear_failures()
        self._waves(store)
        return self._finish(store, wanted)

    def stand(self, store: Store) -> Outcome:
        """Record what a store holds so far, as it stands, and run nothing."""
        self._used = self.placements
        return self._finish(store, [run.run_id for run in self.runs])

    def _tell(self, note: str = "") -> None:
        self._watch(Progress(len(self._finished), len(self.runs), self._epochs, note))

    def _without_output(self, store: Store, done: Collection[str]) -> set[str]:
        """Finished runs whose output is to be kept and is not there, or damaged."""
        lost = set()
        for run in (run for job in self.jobs if job.keep for run in job.runs if run.run_id in done):
            try:
                store.kept(run.run_id)
            except Damaged as error:
                lost.add(run.run_id)
                self._tell(f"parameters/{run.run_id}.npz is damaged or missing ({error}); its run is redone")
        return lost

    def _waves(self, store: Store) -> None:
        waiting = [(job, placement) for job, placement in zip(self.jobs, self.placements, strict=True)]
        while waiting:
            over = self._finished | self._failed
            ready = [pair for pair in waiting if over.issuperset(_needs(pair[0], self._finished))]
            if not ready:
                raise ValueError("jobs wait for each other: put runs that others need into a job that needs none")
            self._wave(store, ready)
            waiting = [pair for pair in waiting if pair not in ready]

    def _wave(self, store: Store, ready: Sequence[tuple[Job, Placement]]) -> None:
        kept = functools.lru_cache(maxsize=32)(store.kept)

        def needed(run: Run) -> dict[str, Tree]:
            try:
                return {run_id: kept(run_id) for run_id in run.needs}
            except Damaged as error:
                raise ResultsError(f"what run {run.run_id} needs is lost ({error}); repeat the command") from None

        pools, lefts, place = list[Pool](), deque[deque[Run]](), _once()
        for job, placement in ready:
            left = [run for run in job.runs if run.run_id not in self._finished]
            lost = [run for run in left if self._failed.intersection(run.needs)]
            if lost:
                self._fail(store, lost, "runs that they need have failed")
            left = [run for run in left if run.run_id not in self._failed]
            if left:
                with precision_of(job):
                    pools.append(Pool(job, placement, self.asked, store, needed, left[0], place))
                lefts.append(deque(left))
        if not pools:
            return
        many = len(pools)
        self._tell(f"compiling {many} program{'s' if many > 1 else ''} for {sum(map(len, lefts))} runs")
        began = time.perf_counter()
        with contextlib.closing(in_turn(pools)) as compiled:  # what is not compiled yet is given up where this ends
            for pool in compiled:
                self._compile += time.perf_counter() - began
                self._used.append(pool.program.placement)
                self._each.append(round(pool.compile_seconds, 2))
                which = f"program {many - len(lefts) + 1} of {many}: " if many > 1 else ""
                self._tell(f"{which}compiled in {pool.compile_seconds:.1f} s")
                self._run_pool(store, pool, lefts.popleft())
                began = time.perf_counter()

    def _run_pool(self, store: Store, pool: Pool, waiting: deque[Run]) -> None:
        with precision_of(pool.job):
            back = pool.resume(waiting)
            if back:
                self._tell(f"{back} unfinished runs go on where they stopped")

            def on_segment(epochs: int, finished: Collection[str]) -> None:
                self._epochs += epochs
                self._finished.update(finished)
                self._tell()

            try:
                pool.work(waiting, on_segment)
                self._slot_epochs += pool.slot_epochs
            except ResultsError:
                raise
            except (RuntimeError, MemoryError, FloatingPointError) as error:
                if processes.several():  # others may know nothing of it, and wait
                    raise processes.lost(error) from error
                lost = [slot.run for slot in pool.slots if slot.run] + list(waiting)
                self._fail(store, lost, str(error).splitlines()[0][:300] if str(error) else type(error).__name__)

    def _fail(self, store: Store, lost: Sequence[Run], reason: str) -> None:
        ids = [run.run_id for run in lost]
        store.fail(digest(ids), ids, reason)
        self._failed.update(ids)
        self._failures.append(f"{len(ids)} runs failed: {reason}")
        self._tell(self._failures[-1])

    def _finish(self, store: Store, wanted: Sequence[str]) -> Outcome:
        recorded = store.take(wanted).runs
        if recorded is None:
            raise NothingFinished(f"no run of {self.experiment.name} finished: {'; '.join(self._failures)}")
        runs = named(recorded, self.runs)
        left = len(wanted) - runs["run_id"].n_unique()
        told = {"unfinished": left} if left else {}
        provenance = store.finish(runs, lambda: self._provenance() | told, whole=not left)
        return Outcome(runs, provenance, tuple(self._failures), store.kept)

    def _provenance(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment.name,
            "kind": getattr(self.experiment, "kind", ""),
            "format": FORMAT,
            "started": self._started.isoformat(timespec="seconds"),
            "command": " ".join(["jaxpu", *sys.argv[1:]]),
            **commit(),
            "versions": versions(),
            "device": self._used[0].describe()["device"] if self._used else "none",
            "placement": [placement.describe() for placement in self._used],
            "precision": sorted({job.precision for job in self.jobs}),
            "programs": len(self._used),
            "seeds": self.experiment.seeds,
            "first_seed": self.experiment.first_seed,
            "runs": len(self.runs),
            "epochs": self._epochs,
            "claims": claims_digest(self.experiment) if getattr(self.experiment, "claims", ()) else {},
            "slot_epochs": self._slot_epochs,
            "compile_seconds": round(self._compile, 2),
            "compile_seconds_each": self._each,
            "run_seconds": round(time.perf_counter() - self._began - self._compile, 2),
        }


def _once() -> Callable[[Tree, Any], Tree]:
    """:func:`jaxpu.runs.processes.put` that copies an array once, however many jobs share it."""
    placed: dict[Any, tuple[Any, Any]] = {}

    def one(leaf: Any, sharding: Any) -> Any:
        wide = jax.config.read("jax_enable_x64")
        key = (id(leaf), sharding, wide)
        if key not in placed:
            placed[key] = (leaf, processes.put(leaf, sharding))  # the array is held, so that its id stays its own
        return placed[key][1]

    return lambda tree, sharding: jax.tree.map(lambda leaf: one(leaf, sharding), tree)


def _needs(job: Job, finished: Collection[str]) -> set[str]:
    return {needed for run in job.runs if run.run_id not in finished for needed in run.needs}
