"""A finished results folder, read whole."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import polars as pl

from jaxpu.config import load_yaml
from jaxpu.runs.files import Damaged, ResultsError, read_frame, read_sealed
from jaxpu.runs.inventory import check_version
from jaxpu.runs.provenance import read_provenance
from jaxpu.runs.store import Folder


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Any], pl.DataFrame]:
    """Read a finished results folder: (resolved config, provenance, runs).

    Raises:
        ResultsError: naming the file that is missing or damaged, or that another version has made it.
    """
    if not folder.is_dir():
        raise ResultsError(f"no results folder at {folder}; make one with: jaxpu run CONFIG --out {folder}")
    for name in ("config.yaml", "provenance.json", "runs.parquet"):
        if not (folder / name).exists():
            raise ResultsError(f"{folder} has no {name}; it is unfinished: repeat its jaxpu run to complete it")
    check_version(folder)
    try:
        runs = read_frame(folder / "runs.parquet")
    except Damaged as error:
        raise ResultsError(f"{folder}: runs.parquet is damaged ({error}); repeat its jaxpu run") from None
    provenance = read_provenance(folder)
    if provenance is None:
        raise ResultsError(f"{folder}: provenance.json is damaged; repeat its jaxpu run")
    return read_config(folder), provenance, runs


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration that ``jaxpu run`` left in a folder.

    Raises:
        ResultsError: it is missing, damaged or changed by hand.
    """
    try:
        raw = load_yaml(read_sealed(folder / "config.yaml"))
    except Damaged as error:
        check_version(folder)
        raise ResultsError(f"{folder}: config.yaml is damaged or changed ({error}); repeat its jaxpu run") from None
    return raw


def read_parameters(folder: Path, run_id: str) -> Any:
    """Read what a run has kept, its parameters say: nested dictionaries, lists and tuples of arrays.

    Raises:
        ResultsError: if the run kept none, or they are damaged.
    """
    try:
        return Folder(folder).kept(run_id)
    except Damaged as error:
        raise ResultsError(
            f"{folder} keeps no whole parameters of run {run_id} ({error}); run with selection.keep_best=true"
        ) from None


def missing(runs: pl.DataFrame, wanted: Collection[str]) -> int:
    """How many of the wanted runs a table does not hold.

    Args:
        runs: of a folder. wanted: identities that its configuration asks for.

    Raises:
        ResultsError: it holds runs that the configuration does not ask for, so the two are not of one experiment.
    """
    have = set(runs["run_id"].unique())
    strangers = len(have - set(wanted))
    if strangers:
        raise ResultsError(
            f"runs.parquet holds {strangers} runs that config.yaml does not ask for: settings, data or version have "
            "changed; repeat the jaxpu run with --fresh"
        )
    return len(set(wanted) - have)
