"""``jaxpu list``: what there is to name in a configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def list_all() -> int:
    """Print the names and what they mean; the exit code."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from jaxpu import config, data, ensemble
    from jaxpu.data.dataset import first_line
    from jaxpu.methods import METHODS, describe
    from jaxpu.selection import RULES

    def documented(entries: Mapping[str, Any]) -> dict[str, str]:
        return {name: first_line(entry.__doc__) for name, entry in entries.items()}

    console = Console()
    for title, rows in (
        ("configurations", {name: _description(path) for name, path in config.list_configs().items()}),
        ("datasets", {name: data.describe(name) for name in data.DATASETS}),
        ("methods", {name: describe(method) for name, method in METHODS.items()}),
        ("selection rules", {name: rule.meaning for name, rule in RULES.items()}),
        ("trainers of ensembles", documented(ensemble.TRAINERS)),
        ("baselines of ensembles", documented(ensemble.BASELINES)),
        ("confidence in ratings", documented(ensemble.CONFIDENCE)),
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
