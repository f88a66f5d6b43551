"""A report on disk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from jaxpu.plots import render
from jaxpu.report.claims import claims_markdown, rules_markdown
from jaxpu.report.page import SVG_LIMIT, html
from jaxpu.report.pictures import Picture, pictures
from jaxpu.report.tables import report_rules, table_markdown
from jaxpu.results import atomic_write, write_text


def write(
    folder: Path,
    runs: pl.DataFrame,
    selected: pl.DataFrame,
    summary: pl.DataFrame,
    verdicts: pl.DataFrame,
    provenance: Mapping[str, Any],
    config: Mapping[str, Any],
    *,
    rules: pl.DataFrame | None = None,
    claims: pl.DataFrame | None = None,
) -> Path:
    """Write ``table.md``, ``figures/`` and ``report.html`` into a results folder, each file atomically.

    Figures are written as SVG, or as PNG where that would be too large; those of an earlier report that no
    longer apply are removed. The arguments are those of ``html``.

    Returns:
        The path of the page.
    """
    drawn = pictures(runs, selected, verdicts, report_rules(selected, config))
    for picture in drawn:
        _write_figure(folder / "figures", picture)
    write_text(
        folder / "table.md", table_markdown(summary, verdicts, config) + rules_markdown(rules) + claims_markdown(claims)
    )
    page = folder / "report.html"
    write_text(
        page, html(runs, selected, summary, verdicts, provenance, config, rules=rules, claims=claims, drawn=drawn)
    )
    return page


def _write_figure(folder: Path, picture: Picture) -> None:
    """Write a figure as SVG, or as PNG where that would be too large, and remove what no longer applies."""
    images: dict[str, bytes] = {}
    if picture.figure is not None:
        small = len(picture.svg) <= SVG_LIMIT
        images = {"svg": picture.svg} if small else {"png": render(picture.figure, "png")}
    for kind in ("svg", "png"):
        path = folder / f"{picture.name}.{kind}"
        if kind in images:
            atomic_write(path, lambda p, kind=kind: p.write_bytes(images[kind]))
        else:
            path.unlink(missing_ok=True)
