"""The later parts of an experiment's page: verdicts and words explained, failing runs, how to repeat it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import yaml

from jaxpu.plots.frames import F1, NothingToShow, seeds_behind, with_label
from jaxpu.plots.rules import rule_name
from jaxpu.report import answers, tables
from jaxpu.report.text import Markdown, block, code, fold, number, plain, table
from jaxpu.report.words import DECISIONS, VERDICTS, glossary, verdict_name
from jaxpu.runs import took

MOST_RUNS = 40


def facts(selected: pl.DataFrame, provenance: Mapping[str, Any]) -> str:
    """Which data, how many methods and seeds, and when."""
    facts = []
    if {"dataset", "method", "seed"} <= {*selected.columns} and selected.height:
        methods = selected["method"].n_unique()
        facts = [", ".join(selected["dataset"].unique(maintain_order=True))]
        facts += [f"{methods} method{'s' if methods > 1 else ''}", f"{seeds_behind(selected)} seeds each"]
    return " · ".join([*facts, *([str(provenance["started"])] if provenance.get("started") else [])]) or "jaxpu"


def verdicts(selected: pl.DataFrame, rules: Sequence[str]) -> Markdown:
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


def failing_runs(selected: pl.DataFrame, rules: Sequence[str]) -> Markdown:
    """The runs with a failing verdict under the rules shown, one by one, with the reason."""
    try:
        data = with_label(selected, "seed", "selection", "verdict")
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


def words(selected: pl.DataFrame, rules: Sequence[str]) -> Markdown:
    """The words of the report, with the decision rules that its methods use."""
    terms = glossary(rules)
    if {"method", "decision"} <= {*selected.columns} and selected.height:
        used = selected.group_by("decision", maintain_order=True).agg(pl.col("method").unique(maintain_order=True))
        terms["decision rule"] = "What counts as a positive prediction. " + " ".join(
            f"{', '.join(methods)}: {DECISIONS.get(decision, decision)}." for decision, methods in used.iter_rows()
        )
    return Markdown("\n".join(f"- **{plain(term)}**: {plain(said)}" for term, said in terms.items()))


def repeat(provenance: Mapping[str, Any], resolved: Mapping[str, Any]) -> Markdown:
    """The command, where the numbers are from, and the whole configuration."""
    command = provenance.get("command")
    said = " ".join(map(str, command)) if isinstance(command, list | tuple) else str(command or "")
    told = [[str(key).replace("_", " "), _flat(value)] for key, value in provenance.items() if key != "command"]
    origin = table(["provenance", ""], told, "ll") if told else "No provenance was recorded."
    whole = yaml.safe_dump(json.loads(json.dumps(dict(resolved), default=str)), sort_keys=False, allow_unicode=True)
    first = block(said) if said else "The command was not recorded."
    return Markdown(f"{first}\n\n{origin}\n\n{fold('The whole configuration', block(whole))}")


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
    """The command that repeats an experiment, and where its numbers are from, in a sentence.

    >>> told = {"runs": 4, "seeds": 2, "device": "cpu", "precision": ["float32"]}
    >>> told |= {"run_seconds": 3.0, "compile_seconds": 1.0}
    >>> origin({**told, "command": "jaxpu run quick", "commit": "0123456789ab"})
    'Repeat: `jaxpu run quick`; 4 runs, 2 seeds a cell, 4 s on cpu in float32, commit `012345678`.'
    """
    commit = str(provenance.get("commit") or "unknown")[:9] + (
        ", with uncommitted changes" if provenance.get("dirty") else ""
    )
    precision = f" in {', '.join(provenance['precision'])}" if "precision" in provenance else ""
    said = (
        f"{provenance['runs']} runs, {provenance['seeds']} seeds a cell, {took(provenance)} on {provenance['device']}"
    )
    return Markdown(f"Repeat: {code(provenance['command'])}; {plain(said + precision)}, commit {code(commit)}.")
