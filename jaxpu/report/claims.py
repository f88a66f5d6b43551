"""Claims and their verdicts in tables, for terminals, pages and files."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from jaxpu.report.tables import bold
from jaxpu.report.text import Markdown, number, plain, table

CLAIM_NOTE = (
    "Supported or refuted only if the whole 95 % interval lies on one side of what was claimed, and p against that "
    "bound, corrected for all claims of this experiment (Holm), is below 0.05; otherwise undecided: these runs cannot "
    "tell. n counts seeds. Heavy-tailed metrics, F1 among them, are judged by the median of paired differences, others "
    "by the mean. A claim marked † has another verdict by another recorded selection rule."
)


def claims_table(claims: pl.DataFrame) -> Markdown:
    """The claims of an experiment, each with its test, and under what it was measured."""
    rows = []
    for row in claims.iter_rows(named=True):
        asked = "; ".join(plain(part) for part in (row.get("question"), *beside(row)) if part)
        said = Markdown(claim_text(row) + (f" *{asked}*" if asked else ""))
        p = "< 0.001" if row["p_holm"] < 0.001 else number(row["p_holm"])
        verdict = Markdown(bold(row["verdict"]) + (" †" if row.get("flips") else ""))
        rows.append((said, measured(row), claimed(row), p, verdict))
    return table(("claim", "measured [95 % interval]", "claimed", "p (Holm)", "verdict"), rows, "lrrrl")


def beside(row: Mapping[str, Any]) -> list[str]:
    """What must stand beside a verdict: the protocol, failing runs, other rules, changes and notes.

    >>> beside({"network": "mlp 64", "lr": "0.001", "failing_of": 0.5, "other_rules": "last: refuted"})
    ['mlp 64, lr 0.001', 'failing runs 50 %', 'by last: refuted']
    """
    names = {"network": "{}", "lr": "lr {}", "epochs": "{} epochs", "validation": "validation {}"}
    words = [text.format(row[name]) for name, text in names.items() if row.get(name)]
    parts = [", ".join(words)]
    shares = [row[name] for name in ("failing_of", "failing_minus") if row.get(name) is not None]
    parts.append(f"failing runs {' against '.join(f'{100 * share:.3g} %' for share in shares)}" if shares else "")
    parts += [f"by {other}" for other in (row.get("other_rules") or "").split("; ") if other]
    parts += [row.get("note"), row.get("changed"), f"item {row['item']}" if row.get("item") else ""]
    return [part for part in parts if part]


def claim_text(row: Mapping[str, Any]) -> Markdown:
    """The words of a claim, and who says so."""
    return Markdown(plain(row["claim"]) + (f" ({plain(row['source'])})" if row.get("source") else ""))


def measured(row: Mapping[str, Any]) -> str:
    """What was measured of a claim, with its interval and n."""
    return f"{number(row['estimate'])} [{number(row['ci_low'])}, {number(row['ci_high'])}], n = {row['n']}"


def ended(claims: pl.DataFrame) -> str:
    """How many claims there are, and how they ended.

    >>> ended(pl.DataFrame({"verdict": ["refuted", "supported", "refuted"]}))
    '3 claims: 1 supported, 2 refuted'
    """
    counts = {word: int((claims["verdict"] == word).sum()) for word in ("supported", "refuted", "undecided")}
    return f"{claims.height} claims: " + ", ".join(f"{n} {word}" for word, n in counts.items() if n)


def claimed(row: Mapping[str, Any]) -> str:
    """The bound of a claim."""
    return str(row["bound"]).replace(">=", "≥").replace("<=", "≤")
