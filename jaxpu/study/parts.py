"""An experiment in parts: each is kept when it is finished and never computed again; all together are its record."""

import datetime
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import polars as pl

from jaxpu import results
from jaxpu.config import AnyExperiment, digest, dump
from jaxpu.study.programs import Program

FORMAT = 1  # part of every run's identity: raise it when the meaning of recorded numbers changes

PATH = "path"
"""Column of a part with what happened on a run's way: a list of points, their first field the time."""


class Outcome(NamedTuple):
    """What an experiment leaves: one row a run, the paths (medians over seeds), and where they are from."""

    runs: pl.DataFrame
    paths: pl.DataFrame
    provenance: dict[str, Any]


class Part(NamedTuple):
    """A piece of an experiment: its name for people, the identities of its runs, and what computes their rows."""

    name: str
    run_ids: tuple[str, ...]
    compute: Callable[[], pl.DataFrame]


def run_parts(
    experiment: AnyExperiment,
    folder: Path,
    parts: Sequence[Part],
    wanted: Sequence[str],
    *,
    precision: str,
    fresh: bool = False,
    watch: Callable[[str], None] = print,
) -> Outcome:
    """Compute the parts that a folder does not hold yet, and record the experiment when all are there.

    Until then the folder keeps whatever it held before, so an interruption costs the part that was being computed.

    Args:
        experiment: what to run. folder: where. parts: its parts, in the order to compute them.
        wanted: all run identities, in the order of the record. precision: of its arrays.
        fresh: forget what the folder holds. watch: called with a line for people after each part.

    Returns:
        The outcome, which is on disk then as config.yaml, runs.parquet, paths.csv and provenance.json.

    Raises:
        ResultsError: the folder is being written by another run, or holds parts of another experiment.
    """
    began, started = time.perf_counter(), datetime.datetime.now(datetime.UTC)
    compiled = Program.compile_seconds
    with results.locked(folder):
        if fresh:
            results.remove_results(folder)
        for line in _work(folder, parts, wanted, began):
            watch(line)
        runs = results.take_parts(folder, wanted).runs
        assert runs is not None  # an experiment has at least one run
        took = Program.compile_seconds - compiled
        provenance = _provenance(experiment, started, precision, len(wanted)) | {
            "compile_seconds": round(took, 2),
            "run_seconds": round(time.perf_counter() - began - took, 2),
        }
        outcome = _record(folder, experiment, _ordered(runs, wanted, experiment), provenance)
        results.clear_parts(folder)
        return outcome


def _work(folder: Path, parts: Sequence[Part], wanted: Sequence[str], began: float) -> Iterable[str]:
    held = results.take_parts(folder, wanted)
    if held.foreign_runs:
        raise results.ResultsError(
            f"{folder} holds {held.foreign_runs} runs of another configuration, unfinished; nothing was changed. "
            "Give another --out, or --fresh to replace them"
        )
    yield from held.notes
    left = [part for part in parts if not held.done.issuperset(part.run_ids)]
    if len(left) < len(parts):
        yield f"{len(parts) - len(left)} of {len(parts)} parts are finished already and kept"
    for number, part in enumerate(left, len(parts) - len(left) + 1):
        results.write_frame(folder / "parts" / f"{digest(list(part.run_ids))}.parquet", part.compute())
        yield f"{number} of {len(parts)} parts: {part.name} ({time.perf_counter() - began:.0f} s)"


def _ordered(runs: pl.DataFrame, wanted: Sequence[str], experiment: AnyExperiment) -> pl.DataFrame:
    """Rows as they were asked for, columns in one order whatever part came first."""
    place = pl.DataFrame({"run_id": wanted, "place": range(len(wanted))})
    runs = runs.join(place, on="run_id").sort("place").drop("place", "run_id")
    head = ("dataset", "method", *experiment.grid_columns, "seed", "selection", "verdict", *experiment.METRICS)
    return runs.select(sorted(runs.columns, key=lambda c: (head.index(c) if c in head else len(head), c)))


def _record(folder: Path, experiment: AnyExperiment, runs: pl.DataFrame, provenance: dict[str, Any]) -> Outcome:
    paths = _rounded(_paths(runs, experiment))
    runs = _rounded(runs.drop(PATH, strict=False))
    (folder / "provenance.json").unlink(missing_ok=True)  # from here on the folder is unfinished
    results.write_text(folder / "config.yaml", dump(experiment))
    results.write_frame(folder / "runs.parquet", runs)
    results.write_frame(folder / "paths.csv", paths)
    results.write_provenance(folder, provenance)
    return Outcome(runs, paths, provenance)


def _paths(runs: pl.DataFrame, experiment: AnyExperiment) -> pl.DataFrame:
    """Medians over the seeds at every point in time."""
    cell = ["dataset", "method", *experiment.grid_columns]
    if PATH not in runs.columns:
        return pl.DataFrame()
    points = runs.filter(pl.col(PATH).is_not_null()).select(*cell, PATH).explode(PATH).unnest(PATH)
    moment = points.columns[len(cell)]
    found = points.group_by(*cell, moment, maintain_order=True).median()
    return found.select(column for column in found if column.null_count() < found.height)


def _rounded(frame: pl.DataFrame) -> pl.DataFrame:
    numbers = [name for name, kind in frame.schema.items() if kind == pl.Float64]
    return frame.with_columns(pl.col(numbers).round_sig_figs(6))


def _provenance(experiment: AnyExperiment, started: datetime.datetime, precision: str, runs: int) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "started": started.isoformat(timespec="seconds"),
        "command": " ".join(["jaxpu", *sys.argv[1:]]),
        **results.commit(),
        "versions": results.versions(),
        "device": jax.default_backend(),
        "precision": precision,
        "seeds": experiment.seeds,
        "first_seed": experiment.first_seed,
        "runs": runs,
    }


def read(folder: Path) -> Outcome:
    """Read what :func:`run_parts` recorded.

    Raises:
        ResultsError: a file is missing or damaged.
    """
    provenance = results.read_provenance(folder)
    if provenance is None:
        raise results.ResultsError(f"{folder} has no whole provenance.json; repeat its jaxpu run")
    try:
        runs = pl.read_parquet(folder / "runs.parquet")
        text = (folder / "paths.csv").read_text(encoding="utf-8").strip()
    except Exception as error:  # polars raises many kinds for a file that is not whole parquet
        raise results.ResultsError(f"{folder} is unfinished or damaged ({error}); repeat its jaxpu run") from None
    paths = pl.read_csv(folder / "paths.csv", infer_schema_length=None) if text else pl.DataFrame()
    return Outcome(runs, paths, provenance)


def finished(folder: Path, experiment: AnyExperiment) -> bool:
    """Whether a folder holds just this experiment, complete."""
    config = folder / "config.yaml"
    same = config.exists() and config.read_text(encoding="utf-8") == dump(experiment)
    return same and results.read_provenance(folder) is not None and (folder / "runs.parquet").exists()
