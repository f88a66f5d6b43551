"""``jaxpu analyze``: what failed in a results folder, training or selection, and when."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Analyze:
    """Say what failed in a results folder: training, judged by each run's last epoch, or the selection of epochs."""

    folder: Annotated[Path, tyro.conf.Positional]
    """The results folder."""
    worst: int = 3
    """How many failing runs to explain, for each method."""


def analyze(command: Analyze) -> int:
    """Print the analysis of a folder; 0, whatever it says."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from jaxpu import analysis, config, results

    resolved, _, runs = results.read_folder(command.folder)
    experiment = config.parse(resolved, where=str(command.folder / "config.yaml"))
    found = analysis.analyze(runs, experiment)
    console = Console(highlight=False)
    for method in found:
        console.print(f"[bold]{escape(method.label)}[/]: {escape(method.sentence)}")
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="dim")
        for head in ("", "verdicts", "failing [95 % interval]"):
            table.add_column(head)
        for row in method.rows:
            counts = ", ".join(f"{verdict} {rate.occurred}" for verdict, rate in row.judged.rates.items())
            low, high = row.judged.failing.interval
            failing = f"{row.judged.failing.occurred}/{row.judged.failing.n} [{100 * low:.0f}, {100 * high:.0f}] %"
            table.add_row(escape(row.name), escape(counts), escape(failing))
        console.print(table)
        for seed, rule, explanation in method.failures[: command.worst]:
            console.print(f"  seed {seed}, {escape(rule)}: {escape(explanation)}", soft_wrap=True)
        if len(method.failures) > command.worst:
            console.print(f"  ... and {len(method.failures) - command.worst} more failing runs (selected.csv)")
        console.print()
    return 0
