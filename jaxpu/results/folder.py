"""A finished results folder, read whole."""

from pathlib import Path
from typing import Any

import polars as pl

from jaxpu.results.files import ResultsError
from jaxpu.results.inventory import read_runs
from jaxpu.results.provenance import read_provenance


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Any], pl.DataFrame]:
    """Read a finished results folder: (resolved config, provenance, runs).

    Raises:
        ResultsError: naming the file that is missing or damaged.
    """
    import yaml

    if not folder.is_dir():
        raise ResultsError(f"no results folder at {folder}; make one with: jaxpu run CONFIG --out {folder}")
    for name in ("config.yaml", "provenance.json", "runs.parquet"):
        if not (folder / name).exists():
            raise ResultsError(f"{folder} has no {name}; it is unfinished: repeat its jaxpu run to complete it")
    frame, problem = read_runs(folder / "runs.parquet")
    if frame is None or problem:
        raise ResultsError(f"{folder}: {problem}; repeat its jaxpu run")
    try:
        config = yaml.safe_load((folder / "config.yaml").read_bytes())
    except yaml.YAMLError:
        raise ResultsError(f"{folder}: config.yaml is damaged; repeat its jaxpu run") from None
    provenance = read_provenance(folder)
    if provenance is None:
        raise ResultsError(f"{folder}: provenance.json is damaged; repeat its jaxpu run")
    return config, provenance, frame


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a configuration that :func:`read_folder` or ``jaxpu run`` left; {} where there is none.

    Raises:
        ResultsError: it is damaged.
    """
    import yaml

    try:
        raw = yaml.safe_load(path.read_bytes()) if path.exists() else {}
    except yaml.YAMLError:
        raw = None
    if not isinstance(raw, dict):
        raise ResultsError(f"{path.parent}: {path.name} is damaged; repeat its jaxpu run")
    return raw
