"""What tables of runs hold, which version has made them, and what is wrong with them."""

import contextlib
import dataclasses
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from jaxpu.runs.files import Damaged, ResultsError, read_frame, read_sealed
from jaxpu.runs.job import FORMAT, Run
from jaxpu.runs.provenance import read_provenance


@dataclasses.dataclass(frozen=True)
class Inventory:
    """What a store already holds: finished runs of this experiment, notes for people, how many runs are foreign."""

    runs: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()
    foreign_runs: int = 0

    @property
    def done(self) -> set[str]:
        """Identities of the finished runs."""
        return set() if self.runs is None else set(self.runs["run_id"].unique())


def gathered(frames: Iterable[pl.DataFrame], wanted: Sequence[str]) -> tuple[pl.DataFrame | None, int]:
    """What was recorded of wanted runs, each from the first table that has it, in order; and how many are foreign.

    Columns are ``run_id``, the epochs, and the others by name, whatever table came first. What says which run it is
    (the columns up to ``seed``) is left out: names may have changed since.
    """
    place = {run_id: i for i, run_id in enumerate(wanted)}
    seen: set[str] = set()
    foreign: set[str] = set()
    taken = []
    for frame in frames:
        ids = set(frame["run_id"].unique())
        foreign |= ids - place.keys()
        new = (ids & place.keys()) - seen
        seen |= new
        if new:
            taken.append(frame.drop(_head(frame)).filter(pl.col("run_id").is_in(sorted(new))))
    if not seen:
        return None, len(foreign)
    order = pl.DataFrame({"run_id": list(wanted), "__place": range(len(wanted))})
    runs = pl.concat(taken, how="diagonal_relaxed").join(order, on="run_id", maintain_order="left")
    runs = runs.sort("__place", maintain_order=True).drop("__place")
    first = ["run_id", *(name for name in ("epochs_run", "epoch") if name in runs.columns)]
    return runs.select(*first, *sorted(set(runs.columns) - set(first))), len(foreign)


def _head(frame: pl.DataFrame) -> list[str]:
    return frame.columns[1 : frame.columns.index("seed") + 1] if "seed" in frame.columns else []


def named(recorded: pl.DataFrame, runs: Sequence[Run]) -> pl.DataFrame:
    """What was recorded, with the columns of its runs between ``run_id`` and the rest; null where a run has none."""
    names = [name for name in dict.fromkeys(name for run in runs for name in run.columns) if name != "seed"]
    head = {name: [run.columns.get(name) for run in runs] for name in [*names, "seed"]}
    columns = pl.DataFrame([pl.Series(name, values, strict=False) for name, values in head.items()])
    columns = columns.insert_column(0, pl.Series("run_id", [run.run_id for run in runs]))
    found = recorded.join(columns, on="run_id", maintain_order="left")
    return found.select(*columns.columns, *(name for name in recorded.columns if name != "run_id"))


def read_runs(path: Path) -> tuple[pl.DataFrame | None, str | None]:
    """A table of runs, and what is wrong with it, if anything; nothing at all where there is no file."""
    if path.is_dir():
        return None, f"{path.name} is a folder; left alone"
    if not path.exists():
        return None, None
    try:
        return read_frame(path), None
    except Damaged as error:
        columns = None if error.marked else _columns(path)
        if columns is not None and "run_id" not in columns:
            return None, f"{path.name} is foreign (no column 'run_id'); left alone"
        return None, f"{path.name} is damaged or truncated ({error}); its runs are redone"


def _columns(path: Path) -> list[str] | None:
    """Columns of a table that anybody may have written, or None if it is none."""
    try:
        return list(pl.read_parquet_schema(io.BytesIO(path.read_bytes())))
    except (Exception, pl.exceptions.PanicException):  # polars raises many kinds for what is no table
        return None


def check_version(folder: Path) -> None:
    """Whether a results folder is one that this version reads; an empty one is.

    Raises:
        ResultsError: it was made by another version. Nothing in it is changed.
    """
    found = _version(folder)
    if found != FORMAT:
        made = f"an older version of jaxpu (format {found})" if found < FORMAT else f"a newer one (format {found})"
        raise ResultsError(
            f"{folder} was made by {made}, this one reads {FORMAT}; nothing was changed. "
            "Run with --fresh to replace it, or with another --out"
        )


def _version(folder: Path) -> int:
    provenance = read_provenance(folder)
    if provenance is not None:
        return int(provenance.get("format", FORMAT))
    with contextlib.suppress(OSError, ValueError, RecursionError):
        raw = json.loads((folder / "provenance.json").read_bytes())
        if isinstance(raw, dict) and "experiment" in raw and not {"format", "sha256"} & raw.keys():
            return 2
    for path in [folder / "runs.parquet", *(folder / "parts").glob("*.parquet")]:
        try:
            read_sealed(path)
        except Damaged as error:
            # identities of grid points were one column of text then
            if not error.marked and "cell" in (_columns(path) or ()):
                return 2
    return FORMAT
