"""Sweeps: every method at every grid point for every seed, resumable, on whatever devices there are.

cells x seeds -> runs -> groups of equal static part -> placement -> pool of slots -> runs.parquet
"""

import dataclasses
import datetime
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl

from jaxpu import config, results
from jaxpu.config import Experiment
from jaxpu.sweep.placement import Placement, Program, Slots, resolve
from jaxpu.sweep.pool import Pool
from jaxpu.sweep.rows import arrays, prepare
from jaxpu.sweep.runs import Group, RunSpec, groups_of, inputs, runs_of, static_part, traced_part

__all__ = [
    "Group",
    "Outcome",
    "Placement",
    "Pool",
    "Program",
    "Progress",
    "RunSpec",
    "Slots",
    "groups_of",
    "inputs",
    "prepare",
    "resolve",
    "run",
    "runs_of",
    "static_part",
    "traced_part",
]


@dataclasses.dataclass(frozen=True)
class Progress:
    """What a sweep is doing, for whoever watches: totals, and a note for people when there is one."""

    runs_done: int
    runs_total: int
    epochs_done: int
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A finished sweep: all recorded rows, where they came from, and runs that failed with their error."""

    runs: pl.DataFrame
    provenance: dict[str, Any]
    failures: tuple[str, ...] = ()


def run(
    experiment: Experiment,
    folder: Path,
    *,
    fresh: bool = False,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """Run an experiment into a results folder, or what is left of it.

    Runs that the folder already holds are kept, whole; an interrupted sweep goes on from its last segment.

    Args:
        experiment: what to run. folder: where results are kept.
        fresh: forget what the folder holds and start again.
        watch: called with the progress after every segment.

    Returns:
        All runs, provenance, and failures (empty if all went well).

    Raises:
        ResultsError: if the folder is in use, or holds runs of another experiment.
        ConfigError: for a dataset that does not exist or a placement that is not to be had.
    """
    sweep = _Sweep(experiment, folder, watch)  # refuses what cannot run before anything is touched
    with results.locked(folder):
        if fresh:
            results.remove_results(folder)
        return sweep.go()


class _Sweep:
    def __init__(self, experiment: Experiment, folder: Path, watch: Callable[[Progress], None]):
        self.experiment, self.folder, self._watch = experiment, folder, watch
        self.runs = runs_of(experiment)
        self._placed = [(group, self._place(group)) for group in groups_of(self.runs)]
        self._began, self._started = time.perf_counter(), datetime.datetime.now(datetime.UTC)
        self._done = self._epochs = 0
        self._compile = 0.0
        self._failures: list[str] = []

    def go(self) -> Outcome:
        wanted = [r.run_id for r in self.runs]
        held = results.take_inventory(self.folder, wanted)
        if held.foreign_runs:
            raise results.ResultsError(
                f"{self.folder} holds {held.foreign_runs} runs of another configuration; nothing was changed. "
                "Give another --out, or --fresh to replace them"
            )
        results.write_text(self.folder / "config.yaml", config.dump(self.experiment))
        self._done = len(held.done)
        left = [r for r in self.runs if r.run_id not in held.done]
        for note in held.notes:
            self._tell(note)
        if held.done:
            self._tell(f"{len(held.done)} of {len(self.runs)} runs are finished already and kept")
        results.clear_failures(self.folder)
        placements = self._work(left)
        return self._finish(wanted, placements)

    def _tell(self, note: str = "") -> None:
        self._watch(Progress(self._done, len(self.runs), self._epochs, note))

    def _work(self, left: list[RunSpec]) -> list[Placement]:
        if not left:
            return []
        ids = {r.run_id for r in left}
        pools = [
            Pool(group, placement, self.experiment.placement, self.folder)
            for group, placement in self._placed
            if ids & {r.run_id for r in group.runs}
        ]
        self._tell(f"compiling {len(pools)} program{'s' if len(pools) > 1 else ''} for {len(left)} runs")
        began = time.perf_counter()
        with ThreadPoolExecutor() as threads:
            list(threads.map(Pool.compile, pools))
        self._compile = time.perf_counter() - began
        for pool in pools:
            waiting = deque(r for r in pool.group.runs if r.run_id in ids)
            self._run_pool(pool, waiting)
        return [pool.program.placement for pool in pools]

    def _place(self, group: Group) -> Placement:
        rows = group.rows(group.runs[0])
        count = sum(len(r) for r in (rows.train, rows.val, rows.test))
        shape = arrays(group.runs[0].cell.data).x.shape[1:]
        return resolve(self.experiment.placement, group.config, shape, count, len(group.runs))

    def _run_pool(self, pool: Pool, waiting: deque[RunSpec]) -> None:
        back = pool.resume(waiting)
        if back:
            self._tell(f"{back} unfinished runs go on where they stopped")

        def on_segment(epochs: int, finished: int) -> None:
            self._epochs += epochs
            self._done += finished
            self._tell()

        try:
            pool.work(waiting, on_segment)
        except (RuntimeError, MemoryError, FloatingPointError) as error:
            lost = [slot.run.run_id for slot in pool.slots if slot.run] + [r.run_id for r in waiting]
            reason = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
            results.mark_failed(self.folder, config.digest(lost), lost, reason)
            self._failures.append(f"{len(lost)} runs failed: {reason}")
            self._tell(self._failures[-1])

    def _finish(self, wanted: list[str], placements: list[Placement]) -> Outcome:
        held = results.take_inventory(self.folder, wanted)
        if held.runs is None:
            raise results.NothingFinished(f"no run of {self.experiment.name} finished: {'; '.join(self._failures)}")
        order = pl.DataFrame({"run_id": wanted, "place": range(len(wanted))})
        runs = held.runs.join(order, on="run_id").sort("place", "epoch").drop("place")
        provenance = results.read_provenance(self.folder)
        if provenance is None or results.count_runs(self.folder) < runs["run_id"].n_unique():
            # in this order, a crash between the two leaves runs that are counted as not yet gathered
            provenance = self._provenance(placements)
            results.write_provenance(self.folder, provenance)
            results.write_frame(self.folder / "runs.parquet", runs)
        if not self._failures:
            results.clear_parts(self.folder)
        return Outcome(runs, provenance, tuple(self._failures))

    def _provenance(self, placements: list[Placement]) -> dict[str, Any]:
        return {
            "experiment": self.experiment.name,
            "started": self._started.isoformat(timespec="seconds"),
            "command": " ".join(["jaxpu", *sys.argv[1:]]),
            **results.commit(),
            "versions": results.versions(),
            "device": placements[0].describe()["device"] if placements else "none",
            "placement": [p.describe() for p in placements],
            "programs": len(placements),
            "seeds": self.experiment.seeds,
            "first_seed": self.experiment.first_seed,
            "runs": len(self.runs),
            "epochs": self._epochs,
            "compile_seconds": round(self._compile, 2),
            "run_seconds": round(time.perf_counter() - self._began - self._compile, 2),
        }
