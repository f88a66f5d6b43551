"""What the reports on the seeds share: parts, one an experiment, each with claims, mechanism, figure and command."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import yaml
from matplotlib.figure import Figure

from jaxpu.config import load_yaml
from jaxpu.plots import render
from jaxpu.report.claims import claim_lines, claims_table
from jaxpu.report.markdown import markdown_page
from jaxpu.report.tables import plain
from jaxpu.results import atomic_write, took, write_text


class Part(NamedTuple):
    """One experiment of a report: its name, the heading, the mechanism, and the figure that shows it."""

    experiment: str
    heading: str
    mechanism: str
    figure: str


def words_of(name: str) -> Any:
    """The words of a report, from the file beside this one."""
    return load_yaml(resources.files("jaxpu.report").joinpath(name).read_bytes())


def write_report(folder: Path, figures: Mapping[str, Callable[[], Figure]], sections: Sequence[str]) -> Path:
    """Write ``report.md``, ``report.html`` and their figures; the path of the page."""
    for name, draw in figures.items():
        image = render(draw(), "svg")
        atomic_write(folder / "figures" / f"{name}.svg", lambda p, image=image: p.write_bytes(image))
    text = "\n\n".join(text for text in sections if text) + "\n"
    write_text(folder / "report.md", text)
    write_text(folder / "report.html", markdown_page(text, folder))
    return folder / "report.html"


def finished(results: Path, parts: Sequence[Part]) -> list[Part]:
    """The parts whose experiments are there."""
    return [part for part in parts if (results / part.experiment / "claims.csv").exists()]


def claims_summary(results: Path, parts: Sequence[Part]) -> str:
    """All claims of all parts in one table, with their verdicts."""
    rows = []
    for part in parts:
        for line in claim_lines(_claims(results, part)):
            where = f"[{part.experiment}](../{part.experiment}/table.md)"
            rows.append(
                f"| {plain(line.claim)} | **{line.verdict}** | {plain(line.measured)} | {line.bound} | {where} |"
            )
    heads = "| claim | verdict | measured [95 % interval] | claimed | experiment |\n|---|---|---:|---:|---|"
    return f"{heads}\n" + "\n".join(rows)


def section(results: Path, configs: Path, part: Part) -> str:
    """One part: what was claimed and tested, what was found, why, the figure, and how to repeat it."""
    folder = results / part.experiment
    provenance = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    config = yaml.safe_load((folder / "config.yaml").read_bytes())
    image = f"![{config['description']}](../{part.experiment}/figures/{part.figure}.svg)"
    blocks = [
        f"## {part.heading}",
        head_of(configs / f"{part.experiment}.yaml"),
        claims_table(_claims(results, part)),
        f"**Mechanism.** {part.mechanism}",
        image if (folder / "figures" / f"{part.figure}.svg").exists() else "",
        repeat(provenance),
    ]
    return "\n\n".join(block for block in blocks if block)


def repeat(provenance: dict[str, Any]) -> str:
    """The command that repeats an experiment, and where its numbers are from."""
    commit = (provenance["commit"] or "unknown")[:9] + (", with uncommitted changes" if provenance["dirty"] else "")
    precision = f" in {provenance['precision']}" if "precision" in provenance else ""
    return (
        f"Repeat: `{provenance['command']}`; {provenance['runs']} runs, {provenance['seeds']} seeds a cell, "
        f"{took(provenance)} on {provenance['device']}{precision}, commit `{commit}`."
    )


def not_here(parts: Sequence[Part], there: Sequence[Part]) -> str:
    """The section that names what has not been run; empty if all has."""
    absent = [part.experiment for part in parts if part not in there]
    return f"## What is not here\n\nNot run yet: {', '.join(absent)}." if absent else ""


def _claims(results: Path, part: Part) -> pl.DataFrame:
    frame = pl.read_csv(results / part.experiment / "claims.csv")
    return frame.with_columns(pl.col("source").fill_null(""))


def head_of(path: Path) -> str:
    """Claim and test from the comment at the head of a configuration."""
    comment = [line[1:].strip() for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    found = re.search(r"(Claims?.*?: .*?) (Test: .*?) Expectation", " ".join(comment))
    if not found:
        return ""
    claim, test = (plain(group) for group in found.groups())
    return f"**{claim.replace(': ', ':** ', 1)}\n\n**{test.replace(': ', ':** ', 1)}"
