"""One engine for everything that has seeds: what a kind gives it stands in :mod:`jaxpu.runs.job`.

    results/<experiment>/
      config.yaml  provenance.json  runs.parquet  and the tables, figures and page of the report
      parameters/  what runs keep for others, or for you
      parts/       only while an experiment runs: finished runs, and the state of the unfinished ones
      shards/      where it is run in several processes (:mod:`jaxpu.runs.shards`): such a folder each

Every file is written beside its place and moved there, so a reader, or a run after a crash, finds an old file or a
new one, never half a file. All that is read back has a checksum: what is damaged, marked failed or foreign is named,
and nothing foreign is touched. Nothing here knows what is trained; no jax is imported before something runs.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxpu.runs.files import (
    Damaged,
    NothingFinished,
    ResultsError,
    Unfinished,
    atomic_write,
    locked,
    read_frame,
    read_sealed,
    write_frame,
    write_sealed,
    write_text,
)
from jaxpu.runs.folder import missing, read_config, read_folder, read_parameters
from jaxpu.runs.gathering import experiment_of, gather
from jaxpu.runs.inventory import check_version
from jaxpu.runs.job import FORMAT, Functions, Job, Kind, Run, epoch_rows, identity
from jaxpu.runs.provenance import commit, read_provenance, took, versions, write_provenance
from jaxpu.runs.shards import Part, Shard
from jaxpu.runs.store import Folder, Memory

if TYPE_CHECKING:
    from jaxpu.runs.engine import Outcome, Progress

__all__ = [
    "FORMAT",
    "Damaged",
    "Functions",
    "Job",
    "Kind",
    "NothingFinished",
    "ResultsError",
    "Run",
    "Shard",
    "Unfinished",
    "atomic_write",
    "check_version",
    "commit",
    "epoch_rows",
    "experiment_of",
    "gather",
    "identity",
    "locked",
    "missing",
    "read_config",
    "read_folder",
    "read_frame",
    "read_parameters",
    "read_provenance",
    "read_sealed",
    "run",
    "stand",
    "took",
    "versions",
    "write_frame",
    "write_provenance",
    "write_sealed",
    "write_text",
]


def run(
    experiment: Any,
    kind: Kind,
    folder: Path | None,
    *,
    fresh: bool = False,
    watch: "Callable[[Progress], None]" = lambda progress: None,
    shard: Shard | None = None,
) -> "Outcome":
    """Run an experiment into a results folder, or what is left of it.

    Runs that the folder already holds are kept, whole; an interrupted experiment goes on from its last segment.

    Args:
        experiment: what to run. kind: what knows its runs and jobs.
        folder: where results are kept; None keeps everything in memory.
        fresh: forget what the folder holds and start again.
        watch: called with the progress after every segment.
        shard: the share of the seeds to run, into a folder of its own below ``folder``; None = all.

    Returns:
        All runs, provenance, failures (empty if all went well), and what runs have kept.

    Raises:
        ResultsError: if the folder is in use, was made by an older version, or holds runs of another experiment.
        ConfigError: for settings that cannot be run or a placement that is not to be had.
    """
    from jaxpu.runs.engine import Engine
    from jaxpu.runs.processes import Led, agreed, several

    # refuses what cannot run before anything is touched
    engine = Engine(experiment, kind if shard is None else Part(kind, shard), watch)
    if folder is None:
        return engine.go(Memory())
    folder = folder if shard is None else shard.below(folder)
    store = Led(Folder(folder)) if several() else Folder(folder)
    with contextlib.ExitStack() as held:
        agreed(lambda: held.enter_context(locked(folder)))
        if fresh:
            store.remove()
        return engine.go(store)


def stand(experiment: Any, kind: Kind, folder: Path) -> None:
    """Put what has finished of an interrupted experiment into its folder, to be reported as it stands.

    ``runs.parquet`` has the runs that are there, provenance how many are not (``unfinished``); :func:`run` goes on.

    Raises:
        ResultsError: as :func:`run`; no run is finished.
    """
    from jaxpu.runs.engine import Engine

    engine = Engine(experiment, kind, lambda progress: None)
    with locked(folder):
        engine.stand(Folder(folder))
