"""The page of one results folder, of any kind of experiment."""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import yaml
from rich.console import Group

from jaxpu import analysis, config, plots
from jaxpu.plots.frames import F1, NothingToShow, labelled, seeds_behind
from jaxpu.plots.kinds import DEFAULTS, Figure, Frames, Picture
from jaxpu.plots.rules import choices, rule_name, shown_rules
from jaxpu.report import answers, claims, tables, terminal
from jaxpu.report.page import fill, page, slug
from jaxpu.report.text import Markdown, block, code, fold, number, paragraphs, plain, table
from jaxpu.report.words import DECISIONS, VERDICTS, glossary, verdict_name
from jaxpu.runs import atomic_write, took, write_frame, write_text

HEADINGS = {
    "grid": "Over the grid",
    "story": "How selection misleads: one run",
    "methods": "Methods compared",
    "seeds": "Every seed",
    "training": "During training",
}
"""Headings of the sections of figures; other sections are called as they are named."""

MOST_RUNS = 40


class Drawing(NamedTuple):
    """What an experiment's figures came to: pictures, and sentences in place of those that were asked for in vain."""

    pictures: list[Picture]
    sentences: dict[str, list[str]]


def frames_of(frames: Mapping[str, pl.DataFrame], resolved: Mapping[str, Any]) -> Frames:
    """The frames of an experiment by name, with the selection rules that its report shows.

    >>> frames_of({"selected": pl.DataFrame({"selection": ["val_f1", "pu_auc"]})}, {}).shown
    ('val_f1', 'pu_auc')
    """
    if "runs" in frames:
        frames = {**frames, "paths": analysis.paths(frames["runs"])}
    with_rules = (frames[name] for name in ("selected", "summary") if _has_rules(frames.get(name)))
    recorded = next((frame["selection"] for frame in with_rules), [])
    shown = shown_rules(list(dict.fromkeys(recorded)), default_rule(resolved))
    return Frames(**frames, shown=tuple(shown))


def _has_rules(frame: pl.DataFrame | None) -> bool:
    return frame is not None and "selection" in frame.columns


def default_rule(resolved: Mapping[str, Any]) -> str | None:
    """The selection rule that an experiment shows first."""
    return next(iter(choices(resolved)), None)


def drawn(frames: Frames, resolved: Mapping[str, Any]) -> Drawing:
    """Draw the figures that a configuration asks for, or those of its kind that have something to show."""
    asked = resolved.get("figures") or ()
    kind = tables.kind_of(resolved, frames.summary)
    pictures, sentences = [], {}
    for figure in plots.figures_of(asked or DEFAULTS[kind], frames):
        try:
            pictures.append(plots.draw(_with_id(figure)))
        except NothingToShow as reason:
            if asked:
                sentences.setdefault(slug(figure.section), []).append(str(reason))
    return Drawing(pictures, sentences)


def _with_id(figure: Figure) -> Figure:
    return figure._replace(section=slug(figure.section))


def text(frames: Frames, provenance: Mapping[str, Any], resolved: Mapping[str, Any], drawing: Drawing) -> Markdown:
    """The page of an experiment as Markdown; frames without rows give sentences in place of tables."""
    kind, rule = tables.kind_of(resolved, frames.summary), next(iter(frames.shown), "")
    found = tables.sections(frames.summary, frames.verdicts, frames.shown, kind, default_rule(resolved))
    about_f1 = kind in ("pu", "multiclass", "observed")
    said = answers.headline if about_f1 else answers.verdict_counts
    sections = dict.fromkeys([*(p.section for p in drawing.pictures), *drawing.sentences])
    values = {
        "name": str(resolved.get("name") or "jaxpu report"),
        "facts": _facts(frames.selected, provenance),
        "answer": Markdown(
            f"**{plain(' '.join([said(frames.selected, frames.shown), answers.claims_sentence(frames.claims)]))}**"
        ),
        "description": paragraphs(resolved.get("description")),
        "answers": answers.answers(frames.verdicts, frames.shown),
        "claims": claims.claims_table(frames.claims) if frames.claims.height else "",
        "claim_note": claims.CLAIM_NOTE,
        "results": tables.results(found, kind, most=tables.MOST),
        "other": tables.other_metrics(frames.summary, rule, kind),
        "rules": tables.rules_table(frames.rules) if about_f1 else "",
        "rule_note": tables.RULE_NOTE,
        "sections": [
            {"heading": HEADINGS.get(name, name.capitalize()), "id": Markdown(f"{{#{name}}}"), "sentences": sentences}
            for name in sorted(sections, key=[*HEADINGS, *sections].index)
            for sentences in [drawing.sentences.get(name, [])]
        ],
        "verdicts": _verdicts(frames.selected, frames.shown),
        "failing": _failing(frames.selected, frames.shown),
        "words": _words(frames.selected, frames.shown),
        "repeat": _repeat(provenance, resolved),
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
    parts = [f"# {plain(resolved.get('name') or 'Results')}", paragraphs(resolved.get("description"))]
    if frames.claims.height:
        parts += ["## Claims", claims.claims_table(frames.claims), claims.CLAIM_NOTE]
    parts += ["## Results", tables.results(found, kind)]
    rules = tables.rules_table(frames.rules)
    parts += ["## Selection rules compared", rules, tables.RULE_NOTE] if rules else []
    write_text(folder / "table.md", "\n\n".join(part for part in parts if part) + "\n")
    write_text(folder / "report.html", page(text(frames, provenance, resolved, drawing), drawing.pictures))
    return folder / "report.html"


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


INDEX = "figures.json"


def write_pictures(folder: Path, pictures: Sequence[Picture]) -> None:
    """Write pictures into a folder with an index, and remove those of the last index that are no longer there."""
    files = {f"{picture.name}.{picture.suffix}": picture for picture in pictures}
    for entry in _index(folder):
        if entry["file"] not in files:
            (folder / Path(entry["file"]).name).unlink(missing_ok=True)
    for name, picture in files.items():
        atomic_write(folder / name, lambda path, image=picture.image: path.write_bytes(image))
    index = [
        {"file": name, "section": p.section, "caption": p.caption, "alternative": p.alternative}
        for name, p in files.items()
    ]
    if index or folder.exists():
        write_text(folder / INDEX, json.dumps(index, indent=1, ensure_ascii=False) + "\n")


def read_pictures(folder: Path) -> list[Picture]:
    """The pictures that :func:`write_pictures` left; files that are no image in that folder are not read."""
    found = []
    for entry in _index(folder):
        path = folder / entry["file"]
        if path.name == entry["file"] and path.is_file() and not path.is_symlink():
            image = path.read_bytes()
            if image.startswith((b"\x89PNG", b"<?xml", b"<svg")):
                found.append(Picture(path.stem, entry["section"], image, entry["caption"], entry["alternative"]))
    return found


def _index(folder: Path) -> list[dict[str, str]]:
    try:
        return json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []


# The parts of the page


def _facts(selected: pl.DataFrame, provenance: Mapping[str, Any]) -> str:
    """Which data, how many methods and seeds, and when."""
    facts = []
    if {"dataset", "method", "seed"} <= {*selected.columns} and selected.height:
        methods = selected["method"].n_unique()
        facts = [", ".join(selected["dataset"].unique(maintain_order=True))]
        facts += [f"{methods} method{'s' if methods > 1 else ''}", f"{seeds_behind(selected)} seeds each"]
    return " · ".join([*facts, *([str(provenance["started"])] if provenance.get("started") else [])]) or "jaxpu"


def _verdicts(selected: pl.DataFrame, rules: Sequence[str]) -> Markdown:
    """The verdicts given, what they mean, and how many runs have them under each rule; the others folded."""
    counts: dict[tuple[str, str], int] = {}
    if {"verdict", "selection"} <= {*selected.columns}:
        known = selected.filter(pl.col("selection").is_in(list(rules)), pl.col("verdict").is_not_null())
        counts = {(word, rule): n for word, rule, n in known.group_by("verdict", "selection").len().iter_rows()}
    given = sorted({word for word, _ in counts}, key=lambda word: ([*VERDICTS, word].index(word), word))
    heads = ["verdict", "meaning", *(f"runs, {rule_name(rule)}" for rule in rules)]

    def row(word: str, numbers: list[int]) -> list[Any]:
        return [tables.bold(verdict_name(word)), answers.meaning(word), *numbers]

    rows = [row(word, [counts.get((word, rule), 0) for rule in rules]) for word in given]
    others = [row(word, []) for word in VERDICTS if word not in given]
    first = table(heads, rows, "ll") if rows else "No verdict was given yet."
    return Markdown(f"{first}\n\n{fold('Verdicts that no run has here', table(heads[:2], others, 'll'))}")


def _failing(selected: pl.DataFrame, rules: Sequence[str]) -> Markdown:
    """The runs with a failing verdict under the rules shown, one by one, with the reason."""
    try:
        data = labelled(selected, "seed", "selection", "verdict")
    except NothingToShow:
        return Markdown()
    fails = ~pl.col("verdict").is_in(["healthy", "transient"])
    failing = data.filter(pl.col("selection").is_in(list(rules)), fails)
    if failing.is_empty():
        return plain("No run has a failing verdict under these rules.")
    failing = failing.sort(F1, maintain_order=True) if "f1" in failing.columns else failing
    rows = [
        [
            code(row["label"]), str(row["seed"]), rule_name(row["selection"]), str(row.get("epoch", "–")),
            number(row.get("f1")), number(row.get("test_oracle_auc", row.get("auc"))),
            tables.bold(verdict_name(row["verdict"])), row.get("explanation") or "",
        ]
        for row in failing.head(MOST_RUNS).iter_rows(named=True)
    ]  # fmt: skip
    more = failing.height - len(rows)
    note = f"\n\n{more} more are in selected.csv." if more else ""
    heads = ("method", "seed", "rule", "epoch", "F1", "AUC", "verdict", "why")
    return fold(f"Failing runs, one by one ({failing.height})", table(heads, rows, "lrlrrrll") + note)


def _words(selected: pl.DataFrame, rules: Sequence[str]) -> Markdown:
    """The words of the report, with the decision rules that its methods use."""
    terms = glossary(rules)
    if {"method", "decision"} <= {*selected.columns} and selected.height:
        used = selected.group_by("decision", maintain_order=True).agg(pl.col("method").unique(maintain_order=True))
        terms["decision rule"] = "What counts as a positive prediction. " + " ".join(
            f"{', '.join(methods)}: {DECISIONS.get(decision, decision)}." for decision, methods in used.iter_rows()
        )
    return Markdown("\n".join(f"- **{plain(term)}**: {plain(said)}" for term, said in terms.items()))


def _repeat(provenance: Mapping[str, Any], resolved: Mapping[str, Any]) -> Markdown:
    """The command, where the numbers are from, and the whole configuration."""
    command = provenance.get("command")
    said = " ".join(map(str, command)) if isinstance(command, list | tuple) else str(command or "")
    facts = [[key.replace("_", " "), _flat(value)] for key, value in map(_pair, provenance.items()) if key != "command"]
    origin = table(["provenance", ""], facts, "ll") if facts else "No provenance was recorded."
    whole = yaml.safe_dump(json.loads(json.dumps(dict(resolved), default=str)), sort_keys=False, allow_unicode=True)
    first = block(said) if said else "The command was not recorded."
    return Markdown(f"{first}\n\n{origin}\n\n{fold('The whole configuration', block(whole))}")


def _pair(item: tuple[Any, Any]) -> tuple[str, Any]:
    return str(item[0]), item[1]


def _flat(value: Any) -> str:
    """A value of the provenance in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flat(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_flat, value))
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def origin(provenance: Mapping[str, Any]) -> Markdown:
    """The command that repeats an experiment, and where its numbers are from, in a sentence."""
    commit = str(provenance.get("commit") or "unknown")[:9] + (
        ", with uncommitted changes" if provenance.get("dirty") else ""
    )
    precision = f" in {provenance['precision']}" if "precision" in provenance else ""
    said = (
        f"{provenance['runs']} runs, {provenance['seeds']} seeds a cell, {took(provenance)} on {provenance['device']}"
    )
    return Markdown(f"Repeat: {code(provenance['command'])}; {plain(said + precision)}, commit {code(commit)}.")
