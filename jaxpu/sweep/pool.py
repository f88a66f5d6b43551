"""A pool of slots: each holds one unfinished run; a finished run is written down and the next one takes its slot.

So a run that stops early makes room at once, nothing waits for the slowest run of a batch, the program's shape
never changes, and a crash loses at most ``checkpoint_seconds`` and a segment.
"""

import dataclasses
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

from jaxpu import results
from jaxpu.config import PlacementConfig, digest
from jaxpu.objective import Hyper
from jaxpu.sweep import checkpoint
from jaxpu.sweep.placement import Placement, Program, Slots
from jaxpu.sweep.rows import Rows, arrays, prepare
from jaxpu.sweep.runs import Group, RunSpec, traced_part


@dataclasses.dataclass
class Slot:
    """One place in the program: the run in it and what it has recorded."""

    run: RunSpec | None = None
    history: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def append(self, columns: dict[str, np.ndarray]) -> None:
        """Add a segment; epochs that were not run are NaN in every column and are left out."""
        ran = ~np.isnan(columns["train_skipped"])
        for name, values in columns.items():
            earlier = self.history.get(name)
            kept = values[ran]
            self.history[name] = kept if earlier is None else np.concatenate([earlier, kept])


class Pool:
    """The runs of one group on their way through one compiled program."""

    def __init__(self, group: Group, placement: Placement, asked: PlacementConfig, folder: Path):
        self.group, self.folder = group, folder
        self.program = Program(placement, group.config, min(asked.segment, group.config.epochs))
        self._checkpoint_seconds = asked.checkpoint_seconds
        shared = arrays(group.origin)
        self._x = jax.device_put(jnp.asarray(shared.x), self.program.everywhere)
        self._y = jax.device_put(jnp.asarray(shared.y, jnp.int32), self.program.everywhere)
        self.slots = [Slot() for _ in range(placement.slots)]
        self._example = group.runs[0]
        rows, hyper = self._inputs(self._example)
        self._states: Any = self.program.empty_states(self._x, rows, hyper)
        self._name = digest(sorted(run.run_id for run in group.runs))
        self._stacked: Slots | None = None

    def _inputs(self, run: RunSpec) -> tuple[Rows, Hyper]:
        return self.group.rows(run), traced_part(run.cell, prepare(run.cell.data, run.seed))

    @property
    def _state_file(self) -> Path:
        return self.folder / "parts" / f"{self._name}.state.npz"

    def compile(self) -> None:
        """Compile the program without running it."""
        self.program.compile(self._x, self._y, self._stack(), self._put(self._states))

    def resume(self, waiting: deque[RunSpec]) -> int:
        """Put runs with a saved state back into slots, take them off ``waiting``, and say how many."""
        saved = checkpoint.load(self._state_file, self._states)
        if saved is None:
            return 0
        run_ids, states, histories = saved
        by_id = {run.run_id: run for run in waiting}
        free = iter(self._order())
        back = 0
        for place, run_id in enumerate(run_ids):
            if run_id not in by_id or back >= len(self.slots):
                continue
            run, target = by_id[run_id], next(free)
            self.slots[target] = Slot(run, histories[place])
            for mine, theirs in zip(jax.tree.leaves(self._states), jax.tree.leaves(states), strict=True):
                mine[target] = theirs[place]
            waiting.remove(run)
            back += 1
        self._stacked = None  # those of the slots as they were
        return back

    def work(self, waiting: deque[RunSpec], on_segment: Callable[[int, int], None]) -> None:
        """Run until no run is left; ``on_segment(epochs run, runs finished)`` after each segment.

        Whatever has finished is on disk before the state that no longer holds it, so a crash between the two
        repeats nothing and loses nothing.
        """
        states = self._put(self._fill(self._states, waiting))
        saved = time.monotonic()
        while any(slot.run for slot in self.slots):
            states, history, over = self.program(self._x, self._y, self._stack(), states)
            columns = {name: np.asarray(values) for name, values in history.items()}
            before = self._epochs()
            for place, slot in enumerate(self.slots):
                if slot.run:
                    slot.append({name: values[place] for name, values in columns.items()})
            epochs = self._epochs() - before
            finished = self._write_finished(np.asarray(over), states.kept)
            if finished and waiting:
                filled = self._fill(states._replace(epoch=np.array(states.epoch)), waiting)
                states = states._replace(epoch=self._put(filled.epoch))
            if time.monotonic() - saved >= self._checkpoint_seconds:
                self._save(states)
                saved = time.monotonic()
            on_segment(epochs, finished)
        self._state_file.unlink(missing_ok=True)

    def _save(self, states: Any) -> None:
        checkpoint.save(
            self._state_file,
            jax.tree.map(np.asarray, states),
            [slot.history for slot in self.slots],
            [slot.run.run_id if slot.run else None for slot in self.slots],
        )

    def _epochs(self) -> int:
        return sum(len(slot.history.get("train_loss", ())) for slot in self.slots)

    def _order(self) -> list[int]:
        """Slots in the order in which they are filled: round the devices, so that each has its share."""
        across = self.program.placement.mesh.shape["run"]
        each = len(self.slots) // across
        return [device * each + i for i in range(each) for device in range(across)]

    def _fill(self, states: Any, waiting: deque[RunSpec]) -> Any:
        for place in self._order():
            if self.slots[place].run is None and waiting:
                self.slots[place] = Slot(waiting.popleft())
                states.epoch[place] = 0
                self._stacked = None
        return states

    def _stack(self) -> Slots:
        """Inputs of all slots on the devices; an empty slot repeats the first run's, and never trains."""
        if self._stacked is None:
            runs = [slot.run or self._example for slot in self.slots]
            inputs = [(np.int32(run.seed), *self._inputs(run)) for run in runs]
            stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *[Slots(*i) for i in inputs])
            self._stacked = self._put(stacked)
        assert self._stacked is not None
        return self._stacked

    def _put(self, tree: Any) -> Any:
        return jax.device_put(tree, self.program.by_run)

    def _write_finished(self, over: np.ndarray, kept: Any) -> int:
        done = [place for place, slot in enumerate(self.slots) if slot.run and over[place]]
        if not done:
            return 0
        slots = [self.slots[place] for place in done]
        frame = pl.concat([_frame(slot.run, slot.history) for slot in slots if slot.run])
        name = digest([slot.run.run_id for slot in slots if slot.run])
        for place in done if kept is not None else []:
            parameters = jax.tree.map(lambda leaf, place=place: np.asarray(leaf[place]), kept)
            run = self.slots[place].run
            assert run is not None  # done holds only slots with a run
            results.write_parameters(self.folder, run.run_id, parameters._asdict())
        results.write_frame(self.folder / "parts" / f"{name}.parquet", frame)
        for place in done:
            self.slots[place] = Slot()
        return len(done)


def _frame(run: RunSpec, history: dict[str, np.ndarray]) -> pl.DataFrame:
    """The recorded columns of one finished run, with its identity in front."""
    epochs = len(history["train_loss"])
    identity = pl.DataFrame(
        {
            "run_id": [run.run_id] * epochs,
            "dataset": run.cell.data.name,
            "method": run.cell.method_name,
            "cell": run.cell.label,
            "seed": run.seed,
            "epochs_run": epochs,
            "epoch": np.arange(1, epochs + 1),
        }
    )
    scalars = {name: values.astype(np.float32) for name, values in history.items() if values.ndim == 1}
    return identity.hstack(pl.DataFrame(scalars))
