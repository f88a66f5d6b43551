"""Where runs are kept while and after they train: a results folder, or memory.

Nothing that is read back is trusted: what is damaged is named and redone, what is foreign is named and left alone.
"""

import contextlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from jaxpu.runs.files import Damaged, ResultsError, read_sealed, write_frame, write_sealed
from jaxpu.runs.inventory import Inventory, check_version, gathered, read_runs
from jaxpu.runs.provenance import read_provenance, write_provenance
from jaxpu.runs.trees import pack, unpack

# The only files below parts/ and parameters/ that are ever removed: named by a digest, or a temporary file of such.
_OURS = re.compile(r"\.?[0-9a-f]{16}\.(parquet|failed\.json|state|npz)(\.\d+\.tmp)?")


class Memory:
    """Keeps everything in memory, and the working state nowhere: an interrupted experiment begins again."""

    keeps_state = False

    def __init__(self) -> None:
        self._frames: list[pl.DataFrame] = []
        self._kept: dict[str, bytes] = {}

    def __str__(self) -> str:
        return "memory"

    def begin(self, config: bytes) -> None:
        """Keep no configuration."""

    def take(self, wanted: Sequence[str]) -> Inventory:
        """The finished runs."""
        return Inventory(gathered(self._frames, wanted)[0])

    def add(self, name: str, runs: pl.DataFrame) -> None:
        """Keep the rows of finished runs."""
        self._frames.append(runs)

    def keep(self, run_id: str, tree: Any) -> None:
        """Keep what a run leaves to others."""
        self._kept[run_id] = pack(tree)

    def kept(self, run_id: str) -> Any:
        """What a run has left.

        Raises:
            Damaged: it is not there, or not what was kept.
        """
        if run_id not in self._kept:
            raise Damaged("nothing was kept")
        return unpack(self._kept[run_id])

    def save(self, name: str, state: bytes) -> None:
        """Keep no working state."""

    def saved(self, name: str) -> bytes | None:
        """No working state."""
        return None

    def drop(self, name: str) -> None:
        """Forget a working state."""

    def fail(self, name: str, run_ids: Sequence[str], error: str) -> None:
        """Leave no mark."""

    def clear_failures(self) -> None:
        """There are no marks."""

    def finish(self, runs: pl.DataFrame, build: Callable[[], dict[str, Any]], *, whole: bool) -> dict[str, Any]:
        """Provenance of all runs."""
        return build()


class Folder:
    """Keeps an experiment in a results folder."""

    keeps_state = True

    def __init__(self, path: Path):
        self.path, self._parts = path, path / "parts"

    def __str__(self) -> str:
        return str(self.path)

    def begin(self, config: bytes) -> None:
        """Write down what is run."""
        write_sealed(self.path / "config.yaml", config)

    def take(self, wanted: Sequence[str]) -> Inventory:
        """The finished runs that the folder holds, and everything in it that cannot be used.

        Raises:
            ResultsError: the folder was made by an older version, or ``runs.parquet`` is a table of something else.
        """
        check_version(self.path)
        whole = self.path / "runs.parquet"
        frames, notes = [], []
        for path in [whole, *sorted(self._parts.glob("*.parquet"))]:
            frame, problem = read_runs(path)
            if frame is not None:
                frames.append(frame)
            if problem and path == whole and "left alone" in problem:
                raise ResultsError(f"{self.path}: {problem}. Give another --out, or --fresh to replace it")
            notes += [problem] if problem else []
        runs, foreign = gathered(frames, wanted)
        if foreign:
            notes.append(f"{self.path} holds {foreign} runs that this experiment does not ask for")
        if runs is None and (self.path / "shards").is_dir():
            notes.append(f"{self.path} holds shards that are not gathered; jaxpu gather {self.path} does that")
        return Inventory(runs, tuple(notes + self._damaged() + self._failures() + self._strangers()), foreign)

    def add(self, name: str, runs: pl.DataFrame) -> None:
        """Keep the rows of finished runs under a name that is a digest."""
        write_frame(self._parts / f"{name}.parquet", runs)

    def keep(self, run_id: str, tree: Any) -> None:
        """Keep what a run leaves to others, as ``parameters/<run_id>.npz``."""
        write_sealed(self._kept_file(run_id), pack(tree))

    def kept(self, run_id: str) -> Any:
        """What a run has left.

        Raises:
            Damaged: it is not there, or not what was kept.
        """
        return unpack(read_sealed(self._kept_file(run_id)))

    def _kept_file(self, run_id: str) -> Path:
        return self.path / "parameters" / f"{run_id}.npz"

    def save(self, name: str, state: bytes) -> None:
        """Keep the working state of a job."""
        write_sealed(self._parts / f"{name}.state", state)

    def saved(self, name: str) -> bytes | None:
        """The working state of a job, or None if there is none to go on from."""
        try:
            return read_sealed(self._parts / f"{name}.state")
        except Damaged:
            return None

    def drop(self, name: str) -> None:
        """Forget a working state."""
        (self._parts / f"{name}.state").unlink(missing_ok=True)

    def fail(self, name: str, run_ids: Sequence[str], error: str) -> None:
        """Leave a note that runs failed, so that the next ``jaxpu run`` knows and redoes them."""
        mark = json.dumps({"run_ids": list(run_ids), "error": error}, indent=1)
        write_sealed(self._parts / f"{name}.failed.json", mark.encode())

    def _damaged(self) -> list[str]:
        """What else is not as it was written, and what becomes of it."""
        written_again = {self.path / name: "it is written again" for name in ("config.yaml", "provenance.json")}
        begin_again = dict.fromkeys(sorted(self._parts.glob("*.state")), "unfinished runs begin again")
        notes = []
        for path, remedy in (written_again | begin_again).items():
            try:
                read_sealed(path)
            except Damaged as error:
                notes += [f"{path.name} is damaged ({error}); {remedy}"] if path.exists() else []
        return notes

    def _failures(self) -> list[str]:
        notes = []
        for path in sorted(self._parts.glob("*.failed.json")):
            try:
                mark = json.loads(read_sealed(path))
                notes.append(f"{path.name}: {len(mark['run_ids'])} runs had failed ({mark['error']}); they are redone")
            except Damaged:
                notes.append(f"{path.name} is damaged; ignored")
        return notes

    def _strangers(self) -> list[str]:
        return [
            f"parts/{path.name} is not a file of jaxpu; left alone"
            for path in sorted(self._parts.glob("*"))
            if not _OURS.fullmatch(path.name) and path.suffix != ".parquet"
        ]

    def clear_failures(self) -> None:
        """Forget the failure marks, once their runs are being redone."""
        for path in self._parts.glob("*.failed.json"):
            path.unlink()

    def finish(self, runs: pl.DataFrame, build: Callable[[], dict[str, Any]], *, whole: bool) -> dict[str, Any]:
        """Record all runs, where that has not been done, and return their provenance.

        Args:
            runs: all of them, in order. build: makes the provenance. whole: whether none is missing.
        """
        provenance = read_provenance(self.path)
        recorded = read_runs(self.path / "runs.parquet")[0]
        if provenance is None or recorded is None or recorded["run_id"].n_unique() < runs["run_id"].n_unique():
            # in this order, a crash between the two leaves runs that are counted as not yet gathered
            earlier = (provenance or {}).get("claims", {})
            provenance = build()
            provenance["claims"] = provenance.get("claims", {}) | earlier  # as asked before there were results
            write_provenance(self.path, provenance)
        if recorded is None or not recorded.equals(runs):
            write_frame(self.path / "runs.parquet", runs)
        if whole:
            _clear(self._parts)
        return provenance

    def remove(self) -> None:
        """Remove what an experiment has recorded, for ``--fresh``; files that are not jaxpu's stay."""
        _clear(self._parts)
        _clear(self.path / "parameters")
        (self.path / "runs.parquet").unlink(missing_ok=True)
        (self.path / "provenance.json").unlink(missing_ok=True)


def _clear(folder: Path) -> None:
    """Remove working files; files that are not jaxpu's stay."""
    for path in folder.glob("*"):
        if _OURS.fullmatch(path.name):
            path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()
