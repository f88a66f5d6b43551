"""``jaxpu list``: what there is to name in a configuration."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args, get_type_hints


@dataclass(frozen=True)
class List:
    """List configurations, datasets, methods and selection rules, and what ensembles are made of.

    Exit status: 0.
    """


def list_all() -> int:
    """Print the names and what they mean; the exit code."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from jaxpu import config, data
    from jaxpu.config.ensemble import EnsembleMethod, FactorsConfig, RatingsConfig
    from jaxpu.methods import METHODS, describe
    from jaxpu.selection import RULES

    choices = (RatingsConfig, "source"), (FactorsConfig, "confidence"), (EnsembleMethod, "trainer")
    console = Console()
    for title, rows in (
        ("configurations", {name: _description(path) for name, path in config.list_configs().items()}),
        ("datasets", {name: data.describe(name) for name in data.DATASETS}),
        ("methods", {name: describe(method) for name, method in METHODS.items()}),
        ("selection rules", {name: rule.meaning for name, rule in RULES.items()}),
        ("ensembles", {name: ", ".join(get_args(get_type_hints(group)[name])) for group, name in choices}),
    ):
        table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
        for name, meaning in rows.items():
            table.add_row(Text(name, style="bold"), Text(meaning))
        console.print(table, "")
    return 0


def _description(path: Path) -> str:
    """What a configuration asks, without reading all of it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("description:")), "")
