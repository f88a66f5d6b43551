"""A results folder as commands read it: its experiment, what was recorded, what is missing, and its page."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxpu.cli.arguments import devices, home

if TYPE_CHECKING:
    import polars as pl


class Finished(NamedTuple):
    """A results folder, its runs compared with what its configuration asks for; ``missing`` of them are not there."""

    experiment: Any
    provenance: dict[str, Any]
    runs: "pl.DataFrame"
    missing: int


def stand(folder: Path) -> None:
    """Put what an interrupted ``jaxpu run`` has finished into its folder's tables; nothing where it was not.

    Raises:
        ResultsError: it is damaged, or at work.
    """
    from jaxpu import api, config, kinds, runs

    folder = home(folder)
    if not any((folder / "parts").glob("*.parquet")):
        return
    raw = runs.read_config(folder)
    api.set_up(devices(raw))
    experiment = config.parse(raw, where=str(folder / "config.yaml"))
    runs.stand(experiment, kinds.kind_of(experiment), folder)


def read(folder: Path) -> Finished:
    """Read a results folder, and say on the standard error which runs are missing.

    Raises:
        ResultsError: it is unfinished or damaged, or holds runs that its configuration does not ask for.
    """
    from jaxpu import config, kinds, runs

    folder = home(folder)
    resolved, provenance, recorded = runs.read_folder(folder)
    experiment = config.parse(resolved, where=str(folder / "config.yaml"))
    missing = runs.missing(recorded, [run.run_id for run in kinds.kind_of(experiment).runs(experiment)])
    if missing:
        print(f"jaxpu: {missing} runs of {folder} are not finished; repeat its jaxpu run", file=sys.stderr)
    return Finished(experiment, provenance, recorded, missing)


def publish(folder: Path, experiment: Any, recorded: "pl.DataFrame", provenance: dict[str, Any]) -> None:
    """Write tables, figures and page into a results folder, and show what matters of them."""
    from jaxpu import report

    report.console().print(report.publish(folder, experiment, recorded, provenance))
    print(f"page: {folder / 'report.html'}")
