"""Results on disk: atomic files, finished runs that are never recomputed, and where a number came from.

    results/<experiment>/
      config.yaml  provenance.json  runs.parquet  selected.csv  summary.csv  verdicts.csv  table.md
      figures/  report.html
      parameters/  with selection.keep_best: those of every run's best epoch
      parts/       only while a sweep or a study runs: finished runs, and the state of the unfinished ones

Every file is written beside its place and moved there, so a reader, or a run after a crash, finds an old file
or a new one, never half a file. What is damaged, marked failed or foreign is named, and nothing foreign is
touched.
"""

from jaxpu.results.files import (
    NothingFinished,
    ResultsError,
    atomic_write,
    locked,
    read_parameters,
    write_frame,
    write_parameters,
    write_text,
)
from jaxpu.results.folder import read_folder, read_yaml
from jaxpu.results.inventory import (
    IDENTITY,
    RUN,
    Inventory,
    clear_failures,
    clear_parts,
    count_runs,
    mark_failed,
    remove_results,
    take_inventory,
    take_parts,
)
from jaxpu.results.provenance import commit, read_provenance, took, versions, write_provenance

__all__ = [
    "IDENTITY",
    "RUN",
    "Inventory",
    "NothingFinished",
    "ResultsError",
    "atomic_write",
    "clear_failures",
    "clear_parts",
    "commit",
    "count_runs",
    "locked",
    "mark_failed",
    "read_folder",
    "read_parameters",
    "read_provenance",
    "read_yaml",
    "remove_results",
    "take_inventory",
    "take_parts",
    "took",
    "versions",
    "write_frame",
    "write_parameters",
    "write_provenance",
    "write_text",
]
