"""Did it collapse? The answer in words, for the whole experiment and for each method."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from jaxpu.analysis.summary import COLLAPSED_F1
from jaxpu.plots.frames import BELOW, F1, NothingToShow, below_counts, labelled, rule_name
from jaxpu.report.words import VERDICTS, verdict_name


class Answer(NamedTuple):
    """What the report says about a row, or about several at once: verdicts, and a line for each rule."""

    label: str
    verdicts: tuple[str, ...]
    lines: tuple[str, ...]


def headline(selected: pl.DataFrame, rules: Sequence[str]) -> str:
    """Answer the question for the whole experiment, in a few sentences.

    >>> import polars as pl
    >>> selected = pl.DataFrame({"selection": ["val_f1_rescue", "val_f1"], "f1": [0.02, 0.87],
    ...                          "verdict": ["selection_artefact", "healthy"]})
    >>> print(headline(selected, ["val_f1_rescue", "val_f1"]))
    Training did not collapse: 1 of 1 runs scores F1 below 0.1 under validation F1 with legacy rescue and none
    under validation F1; a later epoch of that run is healthy, so the rule picked a bad epoch.
    """
    if selected.is_empty() or not {"selection", "f1"} <= {*selected.columns}:
        return "No run has been recorded yet, so there is no answer."
    counts = below_counts(selected, rules)
    shown = selected.filter(pl.col("selection").is_in(list(rules)))
    low, rest = shown.filter(BELOW), _other_findings(shown)
    if low.is_empty():
        start = "No run" if rest else "No collapse: no run"
        total = max(n for _, n in counts.values())
        under = listed([rule_name(rule) for rule in counts], "or")
        return f"{start} of {total} scores test F1 below {COLLAPSED_F1:g} under {under}.{rest}"
    told = _told(counts)
    if "verdict" not in shown.columns or (low["verdict"] != "selection_artefact").any():
        return f"{told}; the verdicts below say why.{rest}"
    whose = "that run" if low.height == 1 else "each of these runs"
    told = told if rest else f"Training did not collapse: {told}"
    return f"{told}; a later epoch of {whose} is healthy, so the rule picked a bad epoch.{rest}"


def _told(counts: Mapping[str, tuple[int, int]]) -> str:
    """How many runs score low under each rule."""
    parts = [
        f"{below} of {n} runs score{'s' if below == 1 else ''} F1 below {COLLAPSED_F1:g} under {rule_name(rule)}"
        for rule, (below, n) in counts.items()
        if below
    ]
    clean = [rule_name(rule) for rule, (below, _) in counts.items() if not below]
    return listed(parts, "and") + (f" and none under {listed(clean, 'or')}" if clean else "")


def _other_findings(shown: pl.DataFrame) -> str:
    """What the line at F1 = 0.1 does not show: other verdicts, and runs without a finite F1."""
    missing = shown.filter(F1.is_null()).height
    text = f" An undefined F1 (NaN), {missing} times, counts as below." if missing else ""
    if "verdict" not in shown.columns:
        return text
    others = shown.filter(pl.col("verdict") != "healthy", ~BELOW)
    counted = others.group_by("verdict").len().sort("len", "verdict", descending=[True, False])
    parts = [f"{verdict_name(word)} ({n})" for word, n in counted.iter_rows()]
    return text + (f" Other verdicts, counted over runs and rules: {', '.join(parts)}." if parts else "")


def answers(verdicts: pl.DataFrame, rules: Sequence[str], most: int = 8) -> list[Answer]:
    """Answer for each row, those with failing runs first; all rows without share one answer.

    Args:
        verdicts: dataset, method, cell, selection, verdict, n, rate, ci_low, ci_high, and perhaps sentence.
        rules: the selection rules shown.
        most: the most answers, and the most labels in the shared one.

    Returns:
        The answers, the highest rate of failure first; none without verdicts.
    """
    try:
        data = labelled(verdicts, "selection", "verdict", "n", "rate", "ci_low", "ci_high")
    except NothingToShow:
        return []
    data = data.filter(pl.col("selection").is_in(list(rules)))
    found, healthy = [], []
    for (label,), group in data.group_by("label", maintain_order=True):
        rows = sorted(group.iter_rows(named=True), key=lambda row: (-row["rate"], rules.index(row["selection"])))
        words = tuple(dict.fromkeys(row["verdict"] for row in rows if row["verdict"] != "healthy"))
        if words:
            found.append((rows[0]["rate"], Answer(str(label), words, tuple(map(_line, rows)))))
        else:
            healthy.append((str(label), rows[0]))
    found.sort(key=lambda pair: -pair[0])
    shown = [answer for _, answer in found[:most]]
    if len(found) > most:
        shown.append(Answer(f"{len(found) - most} more", (), ("With failing runs too: see the table.",)))
    return shown + _healthy(healthy, most)


def _healthy(rows: Sequence[tuple[str, Mapping[str, Any]]], most: int) -> list[Answer]:
    """One answer for all rows that are healthy under every rule shown."""
    if not rows:
        return []
    names = [label for label, _ in rows[:most]] + ([f"{len(rows) - most} more"] if len(rows) > most else [])
    least = min((row for _, row in rows), key=lambda row: row["n"])
    runs = f"0 of {least['n']} runs" + (" each" if len(rows) > 1 else "")
    line = f"Under every rule shown {runs} fail (95 % interval 0 to {100 * least['ci_high']:.0f} %)."
    return [Answer(listed(names, "and"), ("healthy",), (line,))]


def _line(row: Mapping[str, Any]) -> str:
    """What happened to one row under one rule, with how many of n and the interval."""
    sentence = row.get("sentence")
    if not sentence:
        low, high = 100 * row["ci_low"], 100 * row["ci_high"]
        count = f"{round(row['rate'] * row['n'])} of {row['n']} runs fail"
        sentence = f"{count} (95 % interval {low:.0f} to {high:.0f} %)."
    for word in VERDICTS:
        sentence = sentence.replace(word, verdict_name(word))
    return f"Under {rule_name(row['selection'])}: {sentence}"


def listed(parts: Sequence[str], word: str) -> str:
    """Join as a sentence does.

    >>> listed(["a", "b", "c"], "and")
    'a, b and c'
    """
    return f" {word} ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
