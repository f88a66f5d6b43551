"""A pool of slots: each holds one unfinished run; a finished run is written down and the next one takes its slot.

So a run that stops early makes room at once, nothing waits for the slowest run of a batch, the program's shape
never changes, and a crash loses at most ``checkpoint_seconds`` and a segment.
"""

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import polars as pl

from jaxpu.config import PlacementConfig, digest
from jaxpu.runs import processes
from jaxpu.runs.job import Job, Run, Tree
from jaxpu.runs.placement import EMPTY, GOING, START, Placement, Program, Slots
from jaxpu.runs.store import Folder, Memory
from jaxpu.runs.trees import pack_slots, unpack_slots

Store = Folder | Memory | processes.Led


@dataclasses.dataclass
class Slot:
    """One place in the program: the run in it, and what it has recorded."""

    run: Run | None = None
    history: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    epochs: int = 0

    def append(self, columns: dict[str, np.ndarray], *, over: bool) -> int:
        """Add a segment without the epochs that were not run; how many were."""
        segment = len(next(iter(columns.values())))
        ran = segment if not over else max(_ran(columns), int(self.epochs == 0))
        for name, values in columns.items():
            earlier = self.history.get(name)
            self.history[name] = values[:ran] if earlier is None else np.concatenate([earlier, values[:ran]])
        self.epochs += ran
        return ran


def _ran(columns: dict[str, np.ndarray]) -> int:
    """How many epochs of a run's last segment were run: up to the last in which any number is recorded.

    >>> _ran({"loss": np.array([0.5, np.nan, 0.4, np.nan])})
    3
    >>> _ran({"f1": np.full(3, np.nan), "steps": np.array([4, 4, 0])})
    2
    """
    recorded = [
        (~np.isnan(values) if np.issubdtype(values.dtype, np.inexact) else values != 0).reshape(len(values), -1).any(1)
        for values in columns.values()
    ]
    places = np.flatnonzero(np.any(recorded, axis=0))
    return int(places[-1]) + 1 if len(places) else 0


class Pool:
    """The runs of one job on their way through one compiled program."""

    def __init__(
        self,
        job: Job,
        placement: Placement,
        asked: PlacementConfig,
        store: Store,
        needed: Callable[[Run], dict[str, Tree]],
        example: Run,
        place: Callable[[Tree, Any], Tree] = processes.put,
    ):
        self.job, self._store, self._needed = job, store, needed
        self.program = Program(placement, job, asked.segment)
        self._checkpoint_seconds = asked.checkpoint_seconds
        self._name = digest(sorted(run.run_id for run in job.runs))
        self._shared = place(job.shared, self.program.everywhere)
        self.slots = [Slot() for _ in range(placement.slots)]
        self._phases = np.full(placement.slots, EMPTY, np.int32)
        alone = self._inputs(example)
        self._states: Any = self.program.empty_states(self._shared, alone)
        # an empty slot repeats the inputs of an example, or of the run that was there, and never trains
        self._seeds = np.zeros(placement.slots, np.uint32)
        self._stacked = jax.tree.map(lambda leaf: np.repeat(leaf[None], placement.slots, axis=0), alone)
        self._placed: tuple[Any, Any] | None = None
        self._run: Callable[..., Any] | None = None
        self.slot_epochs = 0
        self.compile_seconds = 0.0

    def compile(self) -> None:
        """Compile the program without running it."""
        began = time.perf_counter()
        self._run = self.program.compile(self._shared, self._arguments(), self._put(self._states))
        self.compile_seconds = time.perf_counter() - began

    def resume(self, waiting: deque[Run]) -> int:
        """Put runs with a saved state back into slots, take them off ``waiting``, and say how many."""
        leaves, structure = jax.tree.flatten(self._states)
        body = self._store.saved(self._name)
        saved = None if body is None else unpack_slots(body, leaves)
        if saved is None:
            return 0
        run_ids, states, histories = saved
        by_id = {run.run_id: run for run in waiting}
        free = self._order()
        back = [(place, by_id.pop(name)) for place, name in enumerate(run_ids) if name in by_id][: len(free)]
        for target, (place, run) in zip(free, back, strict=False):
            epochs = len(next(iter(histories[place].values())))
            self._seat(target, Slot(run, histories[place], epochs), GOING)
            for mine, theirs in zip(leaves, states, strict=True):
                mine[target] = theirs[place]
        gone = {run.run_id for _, run in back}
        left = [run for run in waiting if run.run_id not in gone]
        waiting.clear()
        waiting.extend(left)
        self._states = structure.unflatten(leaves)
        return len(back)

    def work(self, waiting: deque[Run], on_segment: Callable[[int, list[str]], None]) -> None:
        """Run until no run is left; ``on_segment(epochs run, runs that have finished)`` after each segment.

        Whatever has finished is in the store before the state that no longer holds it, so a crash between the two
        repeats nothing and loses nothing.
        """
        run_segment = self._run
        assert run_segment is not None  # compiled before it works
        states = self._put(self._states)
        self._states = None  # so many parameters on the host are enough
        self._fill(waiting)
        saved = time.monotonic()
        while any(slot.run for slot in self.slots):
            processes.meet()
            states, history, over = run_segment(self._shared, self._arguments(), states)
            columns, over = processes.on_host((history, over))
            epochs = 0
            for place, slot in enumerate(self.slots):
                if slot.run:
                    segment = {name: values[place] for name, values in columns.items()}
                    epochs += slot.append(segment, over=bool(over[place]))
            vmapped = self.program.placement.chunk > 1
            self.slot_epochs += self.program.computed(self._phases != EMPTY) if vmapped else epochs
            self._phases[self._phases == START] = GOING
            finished = self._write_finished(over, states)
            self._fill(waiting)
            states = states if waiting else self._closed_up(states)
            if self._store.keeps_state and self._due(saved):
                self._save(states)
                saved = time.monotonic()
            on_segment(epochs, finished)
        self._store.drop(self._name)

    def trial(self, runs: deque[Run]) -> int:
        """Run the first segment of some runs, to see what it costs, and keep nothing of it; its epochs."""
        assert self._run is not None  # compiled before it works
        self._fill(runs)
        jax.block_until_ready(self._run(self._shared, self._arguments(), self._put(self._states)))
        return self.program.epochs

    def _closed_up(self, states: Any) -> Any:
        """Put the last runs into as few chunks as hold them: a chunk without a run is skipped."""
        order = self.program.closed_up(self._phases != EMPTY)
        if order is None:
            return states
        self.slots = [self.slots[place] for place in order]
        self._phases, self._seeds = self._phases[order], self._seeds[order]
        self._stacked = jax.tree.map(lambda rows: rows[order], self._stacked)
        self._placed = None
        return self.program.ordered(states, order)

    def _due(self, saved: float) -> bool:
        return processes.agreed(lambda: time.monotonic() - saved >= self._checkpoint_seconds)

    def _save(self, states: Any) -> None:
        """Write down the state of the runs that have begun."""
        begun = [slot if self._phases[place] == GOING else Slot() for place, slot in enumerate(self.slots)]
        run_ids = [slot.run.run_id if slot.run else None for slot in begun]
        self._store.save(
            self._name,
            pack_slots(processes.on_host(jax.tree.leaves(states)), [slot.history for slot in begun], run_ids),
        )

    def _inputs(self, run: Run) -> Tree:
        return jax.tree.map(np.asarray, self.job.inputs(run, self._needed(run)))

    def _seat(self, place: int, slot: Slot, phase: int) -> None:
        """Put a run into a slot, its inputs into their place among those of all, or empty it."""
        self.slots[place], self._phases[place] = slot, phase
        if slot.run is None:
            return
        (mine, shape), (stack, wanted) = (jax.tree.flatten(tree) for tree in (self._inputs(slot.run), self._stacked))
        fits = shape == wanted and all(
            a.shape == b.shape[1:] and a.dtype == b.dtype for a, b in zip(mine, stack, strict=True)
        )
        if not fits:
            shapes = sorted({tuple(leaf.shape for leaf in leaves) for leaves in (mine, [b[0] for b in stack])})
            raise ValueError(f"inputs of the runs of one job differ in shape or type: {shapes}; pad them")
        for row, rows in zip(mine, stack, strict=True):
            rows[place] = row
        self._seeds[place], self._placed = slot.run.seed, None

    def _order(self) -> list[int]:
        """Slots in the order in which they are filled: round the devices, so that each has its share."""
        across = self.program.placement.mesh.shape["run"]
        each = len(self.slots) // across
        return [device * each + i for i in range(each) for device in range(across)]

    def _fill(self, waiting: deque[Run]) -> None:
        for place in self._order():
            if self.slots[place].run is None and waiting:
                self._seat(place, Slot(waiting.popleft()), START)

    def _arguments(self) -> Slots:
        """The slots on the devices, which on CPU may keep the very arrays that they are given: copies."""
        if self._placed is None:
            self._placed = self._put(self._seeds.copy()), self._put(jax.tree.map(np.copy, self._stacked))
        return Slots(self._put(self._phases.copy()), *self._placed)

    def _put(self, tree: Any) -> Any:
        return processes.put(tree, self.program.by_run)

    def _write_finished(self, over: np.ndarray, states: Any) -> list[str]:
        done = [(place, slot.run) for place, slot in enumerate(self.slots) if slot.run and over[place]]
        if not done:
            return []
        if self.job.keep:
            self._keep(done, states)
        frames = [
            pl.DataFrame({"run_id": [run.run_id] * frame.height}).hstack(frame)
            for run, frame in ((run, self.job.functions.record(run, self.slots[place].history)) for place, run in done)
        ]
        ids = [run.run_id for _, run in done]
        self._store.add(digest(ids), pl.concat(frames, how="diagonal_relaxed"))
        for place, _ in done:
            self._seat(place, Slot(), EMPTY)
        return ids

    def _keep(self, done: Sequence[tuple[int, Run]], states: Any) -> None:
        assert self.job.functions.kept is not None  # the engine has refused it
        for place, run in done:
            kept = self.job.functions.kept(self.program.static, self.program.one(states, place))
            self._store.keep(run.run_id, jax.tree.map(np.asarray, kept))
