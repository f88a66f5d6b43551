"""What an experiment decides: its claims, and its selection rules compared; rows for Markdown and for the page."""

from typing import Any, NamedTuple

import polars as pl

from jaxpu.plots.frames import rule_name
from jaxpu.report.tables import plain
from jaxpu.selection import RULES

CLAIM_HEADS = ("claim", "measured [95 % interval]", "claimed", "p (Holm)", "verdict")
CLAIM_NOTE = (
    "Supported or refuted only if the whole 95 % interval lies on one side of what was claimed, and p against "
    "that bound, corrected for all claims of this experiment, is below 0.05; otherwise these runs cannot tell. n "
    "counts seeds, or runs where a share of runs is measured."
)


class ClaimLine(NamedTuple):
    """One claim, ready to print."""

    claim: str
    question: str
    measured: str
    bound: str
    p: str
    verdict: str


def claim_lines(claims: pl.DataFrame) -> list[ClaimLine]:
    """The rows of the table of claims; the argument is that of :func:`jaxpu.claims.judge`."""
    return [_line(row) for row in claims.iter_rows(named=True)]


def _line(row: dict[str, Any]) -> ClaimLine:
    source = f" ({row['source']})" if row["source"] else ""
    measured = f"{row['estimate']:.3f} [{row['ci_low']:.3f}, {row['ci_high']:.3f}], n = {row['n']}"
    p = "< 0.001" if row["p_holm"] < 0.001 else f"{row['p_holm']:.3f}"
    bound = row["bound"].replace(">=", "≥").replace("<=", "≤")
    return ClaimLine(f"{row['claim']}{source}", row["question"], measured, bound, p, row["verdict"])


def claims_markdown(claims: pl.DataFrame | None) -> str:
    """The table of claims as a section of a Markdown file; empty without claims."""
    if claims is None or claims.is_empty():
        return ""
    return f"\n## Claims\n\n{claims_table(claims)}\n\n{CLAIM_NOTE}\n"


def claims_table(claims: pl.DataFrame) -> str:
    """The table of claims in Markdown."""
    rows = [
        f"| {plain(row.claim)} *{plain(row.question)}* | {plain(row.measured)} | {row.bound} | {plain(row.p)} "
        f"| **{row.verdict}** |"
        for row in claim_lines(claims)
    ]
    return "\n".join([f"| {' | '.join(CLAIM_HEADS)} |", "|---|---:|---:|---:|---|", *rows])


FEW_RULES = 3
"""Fewer rules than this need no table of their own."""

RULE_HEADS = ("selection rule", "mean F1", "regret [95 % interval]", "F1 < 0.1", "artefacts", "runs")
RULE_NOTE = (
    "All methods together. Regret is the test F1 that a rule loses against the best epoch of the same run, which "
    "nobody knows; its interval is over seeds. An artefact is a run whose selected epoch is not healthy while a "
    "later one is."
)


def rule_lines(rules: pl.DataFrame) -> list[tuple[str, ...]]:
    """The rows of the table of selection rules, the least regret first; the argument is that of the summary."""
    ordered = rules.sort("regret", maintain_order=True)
    return [
        (
            rule_name(row["selection"]) + ("" if _label_free(row["selection"]) else " (needs true labels)"),
            f"{row['f1']:.3f}",
            f"{row['regret']:.3f} [{row['regret_low']:.3f}, {row['regret_high']:.3f}]",
            str(row["below"]),
            str(row["artefacts"]),
            str(row["n_runs"]),
        )
        for row in ordered.iter_rows(named=True)
    ]


def _label_free(rule: str) -> bool:
    return rule in RULES and RULES[rule].label_free


def rules_markdown(rules: pl.DataFrame | None) -> str:
    """The table of selection rules as a section of a Markdown file; empty for fewer than three rules."""
    if rules is None or rules.height < FEW_RULES:
        return ""
    rows = [f"| {' | '.join(map(plain, line))} |" for line in rule_lines(rules)]
    table = "\n".join([f"| {' | '.join(RULE_HEADS)} |", "|---|---:|---:|---:|---:|---:|", *rows])
    return f"\n## Selection rules compared\n\n{table}\n\n{RULE_NOTE}\n"
