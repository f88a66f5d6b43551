"""The later parts of the page: verdicts and words explained, failing runs one by one, how to repeat it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import polars as pl
import yaml

from jaxpu.plots.frames import F1, NothingToShow, labelled, rule_name
from jaxpu.report.tables import number
from jaxpu.report.words import DECISIONS, VERDICTS, glossary, verdict_name

MOST_RUNS = 40
UNKNOWN = "No explanation is known for this word."


def section(anchor: str, heading: str, body: str) -> str:
    """A part of the page; the body is HTML."""
    return f'<section id="{anchor}">\n<h2>{escape(heading)}</h2>\n{body}\n</section>'


def fold(summary: str, body: str) -> str:
    """A part that the reader opens; the body is HTML."""
    return f"<details>\n<summary>{escape(summary)}</summary>\n{body}\n</details>\n"


def pill(verdict: str) -> str:
    """A verdict, set apart: green when healthy."""
    look = "verdict healthy" if verdict in ("healthy", "supported") else "verdict"
    return "–" if verdict == "–" else f'<span class="{look}">{escape(verdict_name(verdict))}</span>'


def _quiet(sentence: str) -> str:
    return f'<p class="quiet">{escape(sentence)}</p>\n'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], look: str) -> str:
    """A table; the cells are HTML."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    inner = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>"
    return f'<div class="scroll"><table class="{look}">\n{inner}</table></div>\n'


def verdict_table(selected: pl.DataFrame, rules: Sequence[str]) -> str:
    """The verdicts given, what they mean, and how many runs have them under each rule; the others folded."""
    counts: dict[tuple[str, str], int] = {}
    if {"verdict", "selection"} <= {*selected.columns}:
        shown = selected.filter(pl.col("selection").is_in(list(rules)), pl.col("verdict").is_not_null())
        counts = {(verdict, rule): n for verdict, rule, n in shown.group_by("verdict", "selection").len().iter_rows()}
    given = sorted({verdict for verdict, _ in counts}, key=lambda word: ([*VERDICTS, word].index(word), word))
    heads = ["verdict", "meaning", *(f"runs, {escape(rule_name(rule))}" for rule in rules)]
    rows = []
    for word in given:
        numbers = [str(counts.get((word, rule), 0)) for rule in rules]
        rows.append([pill(word), escape(VERDICTS.get(word, UNKNOWN)), *numbers])
    others = [[pill(word), escape(text)] for word, text in VERDICTS.items() if word not in given]
    first = table(heads, rows, "text") if rows else _quiet("No verdict was given yet.")
    return first + (fold("Verdicts that no run has here", table(heads[:2], others, "text")) if others else "")


def failing_runs(selected: pl.DataFrame, rules: Sequence[str]) -> str:
    """The runs with a failing verdict under the rules shown, one by one, with the reason."""
    try:
        data = labelled(selected, "seed", "selection", "epoch", "f1", "verdict", "explanation")
    except NothingToShow:
        return ""
    fails = ~pl.col("verdict").is_in(["healthy", "transient"])
    failing = data.filter(pl.col("selection").is_in(list(rules)), fails).sort(F1, maintain_order=True)
    if failing.is_empty():
        return _quiet("No run has a failing verdict under these rules.")
    heads = ["method", "seed", "rule", "epoch", "F1", "AUC", "verdict", "why"]
    rows = [_failing_run(row) for row in failing.head(MOST_RUNS).iter_rows(named=True)]
    more = failing.height - len(rows)
    note = _quiet(f"{more} more are in selected.csv.") if more else ""
    return fold(f"Failing runs, one by one ({failing.height})", table(heads, rows, "text") + note)


def _failing_run(row: Mapping[str, Any]) -> list[str]:
    texts = (row["label"], str(row["seed"]), rule_name(row["selection"]), str(row["epoch"]))
    numbers = (number(row["f1"]), number(row.get("test_oracle_auc")))
    return [*map(escape, texts), *numbers, pill(row["verdict"]), escape(row["explanation"] or "")]


def definitions(selected: pl.DataFrame, rules: Sequence[str]) -> str:
    """The words of the report, with the decision rules that its methods use."""
    terms = glossary(rules)
    if {"method", "decision"} <= {*selected.columns} and selected.height:
        used = selected.group_by("decision", maintain_order=True).agg(pl.col("method").unique(maintain_order=True))
        terms["decision rule"] = "What counts as a positive prediction. " + " ".join(
            f"{', '.join(methods)}: {DECISIONS.get(decision, decision)}." for decision, methods in used.iter_rows()
        )
    items = "".join(f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>\n" for term, text in terms.items())
    return f"<dl>\n{items}</dl>"


def repeat(provenance: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The command, where the numbers are from, and the whole configuration."""
    command = provenance.get("command")
    text = " ".join(map(str, command)) if isinstance(command, list | tuple) else str(command or "")
    first = f"<pre><code>{escape(text)}</code></pre>\n" if text else _quiet("The command was not recorded.")
    facts = {str(key).replace("_", " "): _flat(value) for key, value in provenance.items() if key != "command"}
    rows = [[escape(key), escape(value)] for key, value in facts.items()]
    origin = table(["provenance", ""], rows, "text") if rows else _quiet("No provenance was recorded.")
    plain = json.loads(json.dumps(dict(config), default=str))
    whole = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)
    return first + origin + fold("The whole configuration", f"<pre><code>{escape(whole)}</code></pre>")


def _flat(value: Any) -> str:
    """A value of the provenance in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flat(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_flat, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
