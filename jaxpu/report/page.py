"""The page: one HTML file that needs nothing else, neither network nor script, and reads in a minute."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

import polars as pl

from jaxpu.plots import render
from jaxpu.plots.frames import RUN
from jaxpu.report.answers import answers, headline
from jaxpu.report.appendix import definitions, failing_runs, fold, pill, repeat, section, table, verdict_table
from jaxpu.report.claims import (
    CLAIM_HEADS,
    CLAIM_NOTE,
    FEW_RULES,
    RULE_HEADS,
    RULE_NOTE,
    ClaimLine,
    claim_lines,
    rule_lines,
)
from jaxpu.report.pictures import Picture, pictures
from jaxpu.report.tables import NO_TABLE, Line, heads, note, report_rules, sections

SVG_LIMIT = 400_000
"""Bytes; a figure with more marks than that is embedded as PNG."""

LONG_TABLE = 20
"""Rows a selection rule; longer tables are folded, so that the figures are not out of sight."""

MOST_ROWS = 200


def html(
    runs: pl.DataFrame,
    selected: pl.DataFrame,
    summary: pl.DataFrame,
    verdicts: pl.DataFrame,
    provenance: Mapping[str, Any],
    config: Mapping[str, Any],
    *,
    rules: pl.DataFrame | None = None,
    claims: pl.DataFrame | None = None,
    drawn: Sequence[Picture] | None = None,
) -> str:
    """Write the page that answers whether a method collapsed, and shows and explains the numbers.

    Args:
        runs: one row a run and epoch.
        selected: one row a run and selection rule.
        summary: one row a method, cell, selection rule and metric.
        verdicts: one row a method, cell and selection rule.
        provenance: where the numbers are from; ``command`` repeats them, ``started`` is the only date shown.
        config: the resolved experiment.
        rules: one row a selection rule, if several are to be compared.
        claims: one row a claim of the experiment, with its verdict.
        drawn: the figures, if they are at hand; else they are drawn from the frames.

    Returns:
        The page. Frames without rows give sentences in place of tables and figures. The same input gives the
        same bytes.
    """
    shown = report_rules(selected, config)
    drawn = pictures(runs, selected, verdicts, shown) if drawn is None else drawn
    figures = {picture.name: _figure(picture) for picture in drawn}
    drawn_names = {picture.name for picture in drawn if picture.figure}
    folded = fold(
        "AUC, and the share predicted positive",
        figures["trajectories_auc"] + figures["trajectories_positive"],
    )
    story = "How selection misleads: one run" if "selection_story" in drawn_names else "Selection artefacts"
    title = str(config.get("name") or "jaxpu report")
    parts = [
        _header(title, selected, provenance, config),
        *_claims(claims),
        _answer(selected, verdicts, shown),
        section("results", "Results", _results(summary, verdicts, config)),
        *_rules(rules),
        *([section("phase", "Over the grid", figures["phase_diagram"])] if "phase_diagram" in drawn_names else []),
        section("story", story, figures["selection_story"]),
        section("seeds", "Every seed", figures["final_f1"] + figures["failure_rates"]),
        section("training", "During training", figures["trajectories_f1"] + folded),
        section(
            "verdicts",
            "What the verdicts mean",
            verdict_table(selected, shown) + failing_runs(selected, shown),
        ),
        section("words", "Words used here", definitions(selected, shown)),
        section("repeat", "How to repeat this", repeat(provenance, config)),
    ]
    return _document(title, "\n".join(parts))


def _document(title: str, body: str) -> str:
    style = resources.files("jaxpu.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}: did it collapse?</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"{body}\n</body>\n</html>\n"
    )


def _header(title: str, selected: pl.DataFrame, provenance: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    facts = []
    if {*RUN} <= {*selected.columns} and selected.height:
        names = ", ".join(selected["dataset"].unique(maintain_order=True))
        methods, seeds = selected["method"].n_unique(), selected["seed"].n_unique()
        runs = selected.select(RUN).n_unique()
        facts = [names, _count(methods, "method"), _count(seeds, "seed"), _count(runs, "run")]
    facts += [str(provenance["started"])] if provenance.get("started") else []
    meta = f'<p class="meta">{escape(" · ".join(facts)) or "jaxpu"}</p>'
    texts = [text for text in str(config.get("description") or "").split("\n\n") if text.strip()]
    paragraphs = "".join(f"<p>{escape(text)}</p>\n" for text in texts)
    return f"<header>\n{meta}\n<h1>{escape(title)}</h1>\n{paragraphs}</header>"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _answer(selected: pl.DataFrame, verdicts: pl.DataFrame, rules: Sequence[str]) -> str:
    items = [
        f"<li><b>{escape(label)}</b> {' '.join(map(pill, words))}<br>{'<br>'.join(map(escape, lines))}</li>\n"
        for label, words, lines in answers(verdicts, rules)
    ]
    listed = f'<ul class="methods">\n{"".join(items)}</ul>' if items else ""
    told = f'<p class="answer">{escape(headline(selected, rules))}</p>\n'
    return section("answer", "Did it collapse?", told + listed)


def _claims(claims: pl.DataFrame | None) -> list[str]:
    if claims is None or claims.is_empty():
        return []
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in CLAIM_HEADS)
    rows = "".join(_claim(row) for row in claim_lines(claims))
    table = f'<div class="scroll"><table class="claims"><thead><tr>{heads}</tr></thead>{rows}</table></div>\n'
    return [section("claims", "What was claimed", f'<p class="quiet">{escape(CLAIM_NOTE)}</p>\n{table}')]


def _rules(rules: pl.DataFrame | None) -> list[str]:
    if rules is None or rules.height < FEW_RULES:
        return []
    rows = [[escape(cell) for cell in line] for line in rule_lines(rules)]
    body = f'<p class="quiet">{escape(RULE_NOTE)}</p>\n{table(RULE_HEADS, rows, "results")}'
    return [section("rules", "Selection rules compared", body)]


def _claim(row: ClaimLine) -> str:
    numbers = "".join(f"<td>{escape(text)}</td>" for text in (row.measured, row.bound, row.p))
    return (
        f'<tr><th scope="row">{escape(row.claim)}<br><span class="quiet">{escape(row.question)}</span></th>'
        f"{numbers}<td>{pill(row.verdict)}</td></tr>\n"
    )


def _results(summary: pl.DataFrame, verdicts: pl.DataFrame, config: Mapping[str, Any]) -> str:
    """The table for two selection rules, a body for each; other rules, and long tables, are to unfold."""
    found = sections(summary, verdicts, config)
    if not found:
        return f'<p class="quiet">{escape(NO_TABLE)}</p>'
    bodies = [_body(heading, lines) for heading, lines in found]
    most = max(len(lines) for _, lines in found)
    open_bodies = 2 if most <= LONG_TABLE else 0
    column_heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads(summary))
    first = _table(column_heads, bodies[:open_bodies]) if open_bodies else ""
    name = "The same for other selection rules" if open_bodies else f"The table, {most} rows a selection rule"
    rest = fold(name, _table(column_heads, bodies[open_bodies:])) if bodies[open_bodies:] else ""
    return f'<p class="quiet">{escape(note(summary))}</p>\n{first}{rest}'


def _body(heading: str, lines: Sequence[Line]) -> str:
    head = f'<tr><th class="rule" colspan="6" scope="rowgroup">{escape(heading)}</th></tr>\n'
    more = len(lines) - MOST_ROWS
    tail = f'<tr><td colspan="6">{more} more rows are in table.md.</td></tr>\n' if more > 0 else ""
    return f"<tbody>\n{head}{''.join(map(_row, lines[:MOST_ROWS]))}{tail}</tbody>\n"


def _table(heads: str, bodies: Sequence[str]) -> str:
    inner = f"<thead><tr>{heads}</tr></thead>\n{''.join(bodies)}"
    return f'<div class="scroll"><table class="results">\n{inner}</table></div>\n'


def _row(line: Line) -> str:
    look = ' class="low"' if line.any_below else ""
    return (
        f'<tr><th scope="row">{escape(line.label)}</th><td>{escape(line.first)}</td>'
        f"<td>{escape(line.mean)}</td><td{look}>{escape(line.below)}</td><td>{escape(line.auc)}</td>"
        f"<td>{pill(line.verdict)}</td></tr>\n"
    )


def _figure(picture: Picture) -> str:
    """A figure as an inline image with its caption; SVG unless that is large."""
    if picture.figure is None:
        return f'<p class="quiet">{escape(picture.caption)}</p>\n'
    image, kind = picture.svg, "svg+xml"
    if len(image) > SVG_LIMIT:
        image, kind = render(picture.figure, "png"), "png"
    source = f"data:image/{kind};base64,{base64.b64encode(image).decode()}"
    return (
        f'<figure id="{picture.name}"><img src="{source}" alt="{escape(picture.alt)}">\n'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>\n"
    )
