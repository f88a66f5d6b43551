"""Did it collapse? The answer in words, for the whole experiment and for each method."""

from collections.abc import Sequence

import polars as pl

from jaxpu.analysis.summary import COLLAPSED_F1
from jaxpu.plots.frames import BELOW, F1, NothingToShow, below_counts, with_label
from jaxpu.plots.rules import rule_name
from jaxpu.report.text import Markdown, listed, plain
from jaxpu.report.words import VERDICTS, verdict_name


def headline(selected: pl.DataFrame, rules: Sequence[str]) -> str:
    """Answer the question for the whole experiment, in a few sentences.

    >>> selected = pl.DataFrame({"selection": ["val_f1_rescue", "val_f1"], "f1": [0.02, 0.87],
    ...                          "verdict": ["selection_artefact", "healthy"]})
    >>> print(headline(selected, ["val_f1_rescue", "val_f1"]))
    Training did not collapse: 1 of 1 runs scores F1 below 0.1 under validation F1 with legacy rescue and none
    under validation F1; a later epoch of that run is healthy, so the rule picked a bad epoch.
    """
    if selected.is_empty() or "selection" not in selected.columns:
        return "No run has been recorded yet, so there is no answer."
    if "f1" not in selected.columns:
        return f"No true labels are known, so there is no F1. {verdict_counts(selected, rules)}"
    counts = below_counts(selected, rules)
    shown = selected.filter(pl.col("selection").is_in(list(rules)))
    low, rest = shown.filter(BELOW), _other_findings(shown)
    under = listed([rule_name(rule) for rule in counts], "or")
    if low.is_empty():
        start = "No run" if rest else "No collapse: no run"
        runs = max(n for _, n in counts.values())
        return f"{start} of {runs} scores test F1 below {COLLAPSED_F1:g} under {under}.{rest}"
    parts = [
        f"{below} of {n} runs score{'s' if below == 1 else ''} F1 below {COLLAPSED_F1:g} under {rule_name(rule)}"
        for rule, (below, n) in counts.items()
        if below
    ]
    clean = [rule_name(rule) for rule, (below, _) in counts.items() if not below]
    told = listed(parts) + (f" and none under {listed(clean, 'or')}" if clean else "")
    if "verdict" not in shown.columns or (low["verdict"] != "selection_artefact").any():
        return f"{told}; the verdicts below say why.{rest}"
    whose = "that run" if low.height == 1 else "each of these runs"
    told = told if rest else f"Training did not collapse: {told}"
    return f"{told}; a later epoch of {whose} is healthy, so the rule picked a bad epoch.{rest}"


def _other_findings(shown: pl.DataFrame) -> str:
    """What the line at F1 = 0.1 does not show: other verdicts, and runs without a finite F1."""
    missing = shown.filter(F1.is_null()).height
    text = f" An undefined F1 (NaN), {missing} times, counts as below." if missing else ""
    if "verdict" not in shown.columns:
        return text
    counted = _counted(shown.filter(pl.col("verdict") != "healthy", ~BELOW))
    return text + (f" Other verdicts, counted over runs and rules: {counted}." if counted else "")


def verdict_counts(selected: pl.DataFrame, rules: Sequence[str]) -> str:
    """How many runs have which verdict, for experiments that are not about F1.

    >>> verdict_counts(pl.DataFrame({"selection": "end", "verdict": ["inverted", "healthy", "healthy"]}), ["end"])
    'Verdicts at the end of training: healthy (2), inverted (1), of 3 runs.'
    """
    if selected.is_empty() or "selection" not in selected.columns:
        return "No run has been recorded yet, so there is no answer."
    if "verdict" not in selected.columns:
        return f"{selected.height} runs, none of which is judged."
    told = []
    for rule in rules:
        mine = selected.filter(pl.col("selection") == rule)
        told.append(f"Verdicts {under(rule)}: {_counted(mine)}, of {mine.height} runs.")
    return " ".join(told)


def under(rule: str) -> str:
    """Which runs are meant, by the rule that selected their epoch."""
    return f"at the {rule_name(rule)}" if rule in ("last", "end") else f"under {rule_name(rule)}"


def _counted(frame: pl.DataFrame) -> str:
    counts = frame.group_by("verdict").len().sort("len", "verdict", descending=[True, False])
    return ", ".join(f"{verdict_name(word)} ({n})" for word, n in counts.iter_rows())


def claims_sentence(claims: pl.DataFrame) -> str:
    """How the claims came out.

    >>> claims_sentence(pl.DataFrame({"verdict": ["refuted", "supported", "refuted"]}))
    'Of 3 claims 2 are refuted and 1 is supported.'
    """
    if claims.is_empty():
        return ""
    counts = claims["verdict"].value_counts(sort=True, name="n").sort("n", "verdict", descending=[True, False])
    parts = [f"{n} {'is' if n == 1 else 'are'} {word}" for word, n in counts.iter_rows()]
    return f"Of {claims.height} claim{'s' if claims.height > 1 else ''} {listed(parts)}."


def answers(verdicts: pl.DataFrame, rules: Sequence[str], most: int = 5) -> Markdown:
    """A line for each row with failing runs, the highest rate first; all rows without share one.

    Args:
        verdicts: dataset, method, the grid, selection, verdict, n, rate, ci_low, ci_high. rules: those shown.
        most: the most lines, and the most labels in the shared one.
    """
    try:
        data = with_label(verdicts, "selection", "verdict", "n", "rate", "ci_low", "ci_high")
    except NothingToShow:
        return Markdown()
    data = data.filter(pl.col("selection").is_in(list(rules)))
    failing = pl.col("verdict") != "healthy"
    order = data.filter(failing).sort("rate", descending=True, maintain_order=True)["label"].unique(maintain_order=True)
    told = [_row(label, data.filter(failing, pl.col("label") == label), rules) for label in order[:most]]
    told += [f"{order.len() - most} more have failing runs: see the table."] if order.len() > most else []
    healthy = data.filter(~pl.col("label").is_in(order.implode()))
    if not healthy.is_empty():
        labels = healthy["label"].unique(maintain_order=True).to_list()
        names = [*map(plain, labels[:most]), *([f"{len(labels) - most} more"] if len(labels) > most else [])]
        n, high = healthy.sort("n").select("n", "ci_high").row(0)
        each = " each" if len(labels) > 1 else ""
        told.append(
            f"{listed(names)}: **healthy**; under every rule shown 0 of {n} runs{each} fail (95 % interval 0 to "
            f"{100 * high:.0f} %)."
        )
    return Markdown("\n".join(f"- {line}" for line in told))


def _row(label: str, rows: pl.DataFrame, rules: Sequence[str]) -> str:
    words = [f"**{verdict_name(word)}**" for word in rows["verdict"].unique(maintain_order=True)]
    said = [
        f"{round(row['rate'] * row['n'])} of {row['n']} runs fail {under(row['selection'])} (95 % interval "
        f"{100 * row['ci_low']:.0f} to {100 * row['ci_high']:.0f} %)"
        for row in sorted(rows.iter_rows(named=True), key=lambda row: rules.index(row["selection"]))
    ]
    return f"{plain(label)}: {', '.join(words)}; {plain('; '.join(said))}."


def meaning(verdict: str) -> str:
    """What a verdict means."""
    return VERDICTS.get(verdict, "No explanation is known for this word.")
