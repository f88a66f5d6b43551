"""The page of one results folder, of any kind of experiment."""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Group

from jaxpu import analysis, config, plots
from jaxpu.plots.figure import Frames
from jaxpu.plots.rules import choices, rule_name, shown_rules
from jaxpu.report import answers, claims, parts, tables, terminal
from jaxpu.report.page import fill, page
from jaxpu.report.pictures import Drawing, drawn, write_pictures
from jaxpu.report.text import Markdown, fold, paragraphs, plain
from jaxpu.runs import write_frame, write_text

HEADINGS = {
    "grid": "Over the grid",
    "story": "How selection misleads: one run",
    "methods": "Methods compared",
    "seeds": "Every seed",
    "training": "During training",
}
"""Headings of the sections of figures; other sections are called as they are named."""


def frames_of(frames: Mapping[str, pl.DataFrame], resolved: Mapping[str, Any]) -> Frames:
    """The frames of an experiment by name, with the selection rules that its report shows.

    >>> frames_of({"selected": pl.DataFrame({"selection": ["val_f1", "pu_auc"]})}, {}).shown
    ('val_f1', 'pu_auc')
    """
    if "runs" in frames:
        frames = {**frames, "paths": analysis.paths(frames["runs"])}
    with_rules = [frames[n] for n in ("selected", "summary") if n in frames and "selection" in frames[n].columns]
    recorded = dict.fromkeys(with_rules[0]["selection"]) if with_rules else ()
    return Frames(**frames, shown=tuple(shown_rules(list(recorded), default_rule(resolved))))


def default_rule(resolved: Mapping[str, Any]) -> str | None:
    """The selection rule that an experiment shows first."""
    return next(iter(choices(resolved)), None)


def text(frames: Frames, provenance: Mapping[str, Any], resolved: Mapping[str, Any], drawing: Drawing) -> Markdown:
    """The page of an experiment as Markdown; frames without rows give sentences in place of tables."""
    kind, rule = tables.kind_of(resolved, frames.summary), next(iter(frames.shown), "")
    found = tables.sections(frames.summary, frames.verdicts, frames.shown, kind, default_rule(resolved))
    about_f1 = kind in ("pu", "multiclass", "observed")
    said = answers.headline if about_f1 else answers.verdict_counts
    sections = dict.fromkeys([*(p.section for p in drawing.pictures), *drawing.sentences])
    values = {
        "name": str(resolved.get("name") or "jaxpu report"),
        "facts": parts.facts(frames.selected, provenance),
        "answer": Markdown(
            f"**{plain(' '.join([said(frames.selected, frames.shown), answers.claims_sentence(frames.claims)]))}**"
        ),
        "description": paragraphs(resolved.get("description")),
        "answers": answers.answers(frames.verdicts, frames.shown),
        "claims": claims.claims_table(frames.claims) if frames.claims.height else "",
        "claim_note": claims.CLAIM_NOTE,
        "results": tables.results(found, kind, most=tables.MOST),
        "other": fold(f"{OTHERS}, selected by {rule_name(rule)}", tables.other_metrics(frames.summary, rule, kind)),
        "rules": tables.rules_table(frames.rules) if about_f1 else "",
        "rule_note": tables.RULE_NOTE,
        "sections": [
            {"heading": HEADINGS.get(name, name.capitalize()), "id": Markdown(f"{{#{name}}}"), "sentences": sentences}
            for name in sorted(sections, key=[*HEADINGS, *sections].index)
            for sentences in [drawing.sentences.get(name, [])]
        ],
        "verdicts": parts.verdicts(frames.selected, frames.shown),
        "failing": parts.failing_runs(frames.selected, frames.shown),
        "words": parts.words(frames.selected, frames.shown),
        "repeat": parts.repeat(provenance, resolved),
    }
    source = resources.files("jaxpu.report").joinpath("experiment.md").read_text(encoding="utf-8")
    return fill(source, values, "experiment.md")


def write(folder: Path, frames: Frames, provenance: Mapping[str, Any], resolved: Mapping[str, Any]) -> Path:
    """Write ``table.md``, ``figures/`` and ``report.html`` into a results folder, each file atomically.

    Figures are written as SVG, or as PNG where that would be too large, with ``figures.json``, which has their captions
    and alternative texts; those of an earlier report that no longer apply are removed.

    Args:
        folder: the results folder. frames: what was recorded and made of it, from :func:`frames_of`.
        provenance: where the numbers are from; ``command`` repeats them. resolved: the experiment's configuration.

    Returns:
        The path of the page.
    """
    drawing = drawn(frames, resolved)
    write_pictures(folder / "figures", drawing.pictures)
    kind = tables.kind_of(resolved, frames.summary)
    found = tables.sections(frames.summary, frames.verdicts, frames.shown, kind, default_rule(resolved))
    blocks = [f"# {plain(resolved.get('name') or 'Results')}", paragraphs(resolved.get("description"))]
    if frames.claims.height:
        blocks += ["## Claims", claims.claims_table(frames.claims), claims.CLAIM_NOTE]
    blocks += ["## Results", tables.results(found, kind)]
    others = tables.other_metrics(frames.summary, next(iter(frames.shown), ""), kind)
    blocks += [f"## {OTHERS}", others] if others else []
    rules = tables.rules_table(frames.rules)
    blocks += ["## Selection rules compared", rules, tables.RULE_NOTE] if rules else []
    write_text(folder / "table.md", "\n\n".join(filter(None, blocks)) + "\n")
    write_text(folder / "report.html", page(text(frames, provenance, resolved, drawing), drawing.pictures))
    return folder / "report.html"


OTHERS = "Other measures, means over seeds"


def check_figures(experiment: Any) -> None:
    """Check the figures that an experiment asks for, before it is run.

    Raises:
        ConfigError: naming the figure and what was expected.
    """
    try:
        plots.figures_of(getattr(experiment, "figures", ()), Frames())
    except ValueError as error:
        raise config.ConfigError(f"figures: {error}") from None


def publish(folder: Path, experiment: Any, recorded: pl.DataFrame, provenance: Mapping[str, Any]) -> Group:
    """Write all tables and the page of an experiment of any kind.

    Args:
        folder: the results folder. experiment: what was run. recorded: its runs. provenance: where they are from.

    Returns:
        The table of results and the claims, for a terminal.
    """
    made = analysis.tables(recorded, experiment, provenance.get("claims"))
    for name, frame in made._asdict().items():
        if not frame.is_empty():
            write_frame(folder / f"{name}.csv", frame)
    resolved = config.to_dict(experiment)
    frames = frames_of({"runs": recorded, **made._asdict()}, resolved)
    write(folder, frames, provenance, resolved)
    return terminal.results(frames, resolved)
