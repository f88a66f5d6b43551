"""What a results folder holds: finished runs, parts of unfinished sweeps, failure marks, and strangers."""

import contextlib
import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from jaxpu.results.files import ResultsError, write_text

# Columns that say which run a row belongs to; all others are recorded numbers. A study has a row a run, a sweep
# one an epoch.
RUN = ("run_id", "dataset", "method", "seed")
IDENTITY = (*RUN, "epochs_run", "epoch")


# The only files below parts/ that are ever removed: named by a digest, or a temporary file of such a one.
_OURS = re.compile(r"\.?[0-9a-f]{16}\.(parquet|failed\.json|state\.npz)(\.\d+\.tmp)?")


@dataclasses.dataclass(frozen=True)
class Inventory:
    """What a folder already holds: finished runs of this experiment, notes for people, foreign run count."""

    runs: pl.DataFrame | None
    notes: tuple[str, ...]
    foreign_runs: int

    @property
    def done(self) -> set[str]:
        """Identifiers of the finished runs."""
        return set() if self.runs is None else set(self.runs["run_id"].unique())


def take_inventory(folder: Path, wanted: Sequence[str]) -> Inventory:
    """Read the finished runs of a folder and name everything in it that cannot be used.

    A run counts as finished when all its epochs 1 to ``epochs_run`` are there. Damaged files and runs marked
    failed are left for the sweep to redo; rows of runs that are not ``wanted`` are counted as foreign.

    Raises:
        ResultsError: if ``runs.parquet``, which the sweep would replace, is a table of something else.
    """
    return _inventory(folder, _run_files(folder), wanted, IDENTITY)


def take_parts(folder: Path, wanted: Sequence[str]) -> Inventory:
    """What an interrupted study left in ``parts/``: as :func:`take_inventory`, of tables with one row a run."""
    return _inventory(folder, _part_files(folder), wanted, RUN)


def _inventory(folder: Path, paths: Sequence[Path], wanted: Sequence[str], columns: Sequence[str]) -> Inventory:
    known, row = set(wanted), [name for name in ("run_id", "epoch") if name in columns]
    frames, notes, foreign = [], [], 0
    for path in paths:
        frame, problem = read_runs(path, columns)
        if problem and "is foreign" in problem and path.parent == folder:
            raise ResultsError(f"{folder}: {problem}. Give another --out, or --fresh to replace it")
        if problem:
            notes.append(problem)
        if frame is not None:
            strangers = frame.filter(~pl.col("run_id").is_in(known))["run_id"].n_unique()
            if strangers:
                foreign += strangers
                notes.append(f"{path.name} holds {strangers} runs that this experiment does not ask for")
            frames.append(frame.filter(pl.col("run_id").is_in(known)))
    notes += _failures(folder) + _strangers(folder)
    runs = pl.concat(frames, how="diagonal_relaxed").unique(row, keep="first", maintain_order=True) if frames else None
    return Inventory(runs if runs is not None and runs.height else None, tuple(notes), foreign)


def _run_files(folder: Path) -> list[Path]:
    whole = folder / "runs.parquet"
    return ([whole] if whole.exists() else []) + _part_files(folder)


def _part_files(folder: Path) -> list[Path]:
    return sorted((folder / "parts").glob("*.parquet"))


def read_runs(path: Path, columns: Sequence[str] = IDENTITY) -> tuple[pl.DataFrame | None, str | None]:
    """The whole runs of a table with these columns, and what is wrong with the table, if anything."""
    try:
        frame = pl.read_parquet(path)
    except Exception as error:  # polars raises many kinds for a file that is not whole parquet
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return None, f"{path.name} is damaged or truncated ({first}); its runs are redone"
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        return None, f"{path.name} is foreign (no column {missing[0]!r}); left alone"
    if "epoch" not in columns:
        return frame, None
    whole = frame.group_by("run_id").agg(
        ok=(pl.col("epoch").sort() == pl.int_range(1, pl.len() + 1)).all() & (pl.col("epochs_run").first() == pl.len())
    )
    bad = whole.filter(~pl.col("ok"))["run_id"].to_list()
    if not bad:
        return frame, None
    return frame.filter(~pl.col("run_id").is_in(bad)), f"{path.name}: {len(bad)} incomplete runs are redone"


def mark_failed(folder: Path, name: str, run_ids: Sequence[str], error: str) -> None:
    """Leave a note that runs failed, so that the next ``jaxpu run`` knows and redoes them."""
    mark = {"run_ids": list(run_ids), "error": error}
    write_text(folder / "parts" / f"{name}.failed.json", json.dumps(mark, indent=1))


def _failures(folder: Path) -> list[str]:
    notes = []
    for path in sorted((folder / "parts").glob("*.failed.json")):
        try:
            mark = json.loads(path.read_text(encoding="utf-8"))
            notes.append(f"{path.name}: {len(mark['run_ids'])} runs had failed ({mark['error']}); they are redone")
        except (ValueError, KeyError, TypeError):
            notes.append(f"{path.name} is damaged; ignored")
    return notes


def clear_failures(folder: Path) -> None:
    """Forget the failure marks, once their runs are being redone."""
    for path in (folder / "parts").glob("*.failed.json"):
        path.unlink()


def _strangers(folder: Path) -> list[str]:
    return [
        f"parts/{path.name} is not a file of jaxpu; left alone"
        for path in sorted((folder / "parts").glob("*"))
        if not _OURS.fullmatch(path.name) and path.suffix != ".parquet"
    ]


def clear_parts(folder: Path) -> None:
    """Remove the working files of a finished sweep; files that are not jaxpu's stay."""
    parts = folder / "parts"
    for path in parts.glob("*"):
        if _OURS.fullmatch(path.name):
            path.unlink()
    with contextlib.suppress(OSError):
        parts.rmdir()


def remove_results(folder: Path) -> None:
    """Remove what a sweep has recorded in a folder, for ``--fresh``."""
    clear_parts(folder)
    (folder / "runs.parquet").unlink(missing_ok=True)


def count_runs(folder: Path) -> int:
    """How many finished runs ``runs.parquet`` holds; 0 if it is missing or damaged."""
    frame, _ = read_runs(folder / "runs.parquet")
    return 0 if frame is None else frame["run_id"].n_unique()
