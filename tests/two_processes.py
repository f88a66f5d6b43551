"""What test_processes runs in each of two processes: ADDRESS i/2 VICTIM SIGNAL SECONDS FOLDER."""

import json
import os
import sys
import time
from pathlib import Path

import jax
import toy
from toy import Toy

from jaxpu.config import ConfigError, PlacementConfig
from jaxpu.runs import ResultsError, placement, processes

ASKED = PlacementConfig(segment=2, devices=4, checkpoint_seconds=0)
SIX = Toy(seeds=6, students=True, keep=True, placement=ASKED)
ACROSS = Toy(seeds=3, placement=PlacementConfig(kind="vmap", devices=1, row_devices=4))
LONG = Toy(seeds=4, epochs=300, placement=ASKED)


def said(find):
    try:
        return processes.agreed(find)
    except ResultsError as error:
        return str(error)


def full():
    raise ResultsError("full" if processes.first() else "not asked")


def mesh(seeds, **asked):
    """Whose device is where, for so many runs."""
    some = Toy(rates=(0.5,), seeds=seeds)
    [job] = toy.jobs_of(some, toy.runs_of(some))
    try:
        found = placement.resolve(PlacementConfig(**asked), job).mesh.devices
    except ConfigError as error:
        return str(error)
    return [[device.process_index for device in row] for row in found]


def main(address, process, victim, signal, late, folder):
    """Say what this process finds, leave results, and be killed in the last experiment if it is the victim."""
    processes.join(address, process)
    first, home, large = processes.first(), Path(folder), "x" * (1 << 21)

    def compiled_late(progress):
        if progress.note.startswith("compiled") and not first and not progress.runs_done:
            time.sleep(float(late))

    def ends(progress):
        if progress.epochs_done > 40 and process == victim:
            os.kill(os.getpid(), int(signal))

    told = [
        first,
        said(lambda: [first, large]) == [True, large],
        said(full),
        [mesh(9), mesh(3), mesh(1, row_devices=2), mesh(1, row_devices=4), mesh(1), mesh(9, devices=6)],
        toy.run(SIX, home / "six", watch=compiled_late).runs["run_id"].n_unique(),
        toy.run(ACROSS, home / "across").provenance["placement"][0]["mesh"],
    ]
    (home / f"told{process[0]}.json").write_text(json.dumps(told))
    toy.run(LONG, home.parent / "long", watch=ends)


if __name__ == "__main__":
    jax.config.update("jax_compilation_cache_dir", os.environ["JAXPU_CACHE_DIR"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    main(*sys.argv[1:])
