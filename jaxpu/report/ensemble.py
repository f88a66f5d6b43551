"""Tables, figures and page of an experiment on ensembles."""

from pathlib import Path
from typing import Any


def write(folder: Path, outcome: Any, tables: Any, experiment: Any) -> Path:
    """Write the summary tables of an experiment."""
    from jaxpu.results import write_frame

    for name, frame in tables._asdict().items():
        if not frame.is_empty():
            write_frame(folder / f"{name}.csv", frame)
    return folder


def rich_table(tables: Any) -> str:
    """The table for a terminal."""
    return ""
