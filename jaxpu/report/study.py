"""What the pages of all experiments of :mod:`jaxpu.study` share: files, claims, results, figures, verdicts, command."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich import box
from rich.table import Table

from jaxpu.analysis import Tables
from jaxpu.config.ensemble import EnsembleExperiment
from jaxpu.config.guided import GuidedExperiment
from jaxpu.report.claims import claims_markdown
from jaxpu.report.markdown import markdown_page
from jaxpu.report.parts import repeat
from jaxpu.report.tables import plain
from jaxpu.report.words import VERDICTS, verdict_name
from jaxpu.results import write_frame, write_text
from jaxpu.study import Outcome


def write_folder(
    folder: Path,
    outcome: Outcome,
    tables: Tables,
    experiment: EnsembleExperiment | GuidedExperiment,
    results: str,
    figures: Mapping[str, str],
) -> Path:
    """Write ``summary.csv``, ``verdicts.csv``, ``claims.csv``, ``table.md`` and ``report.html``.

    Args:
        folder: the results folder. outcome, tables: what was run, and its tables. experiment: its configuration.
        results: the section of results in Markdown. figures: names of those in ``figures/``, with their titles.

    Returns:
        The path of the page.
    """
    for name, frame in tables._asdict().items():
        if not frame.is_empty():
            write_frame(folder / f"{name}.csv", frame)
    table = f"# {experiment.name}\n\n{plain(experiment.description)}\n{claims_markdown(tables.claims)}\n{results}"
    write_text(folder / "table.md", table)
    drawn = "\n\n".join(f"![{title}](figures/{name}.svg)" for name, title in figures.items())
    given = tables.verdicts["verdict"].unique(maintain_order=True)
    words = "## Verdicts\n\n" + "\n".join(f"- **{verdict_name(v)}**: {plain(VERDICTS[v])}" for v in given)
    page = markdown_page(f"{table}\n\n{drawn}\n\n{words}\n\n{repeat(outcome.provenance)}\n", folder)
    write_text(folder / "report.html", page)
    return folder / "report.html"


def terminal_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """The table of results for a terminal: names at both ends to the left, numbers between them to the right."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head.replace(" interval", ""), justify="left" if place in (0, len(heads) - 1) else "right")
    for row in rows:
        table.add_row(*row)
    return table
