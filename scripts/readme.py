"""Write the results of README.md from the committed results, or check that they are up to date.

python scripts/readme.py [--check]
"""

import argparse
import json
import re
import sys
from pathlib import Path

import polars as pl

from jaxpu.report import claims, tables
from jaxpu.report.text import Markdown, table

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- results: .*? -->\n).*?(<!-- /results -->)", re.DOTALL)

ROWS = (
    ("softlabel_rate", "Without the anchor, most runs score"),
    ("softlabel_rate", "Under the same rule without the rescue"),
    ("few_labels", "With 1 % of the positives labelled, Fixed"),
    ("h1_anchor", "The anchor is worth at least"),
    ("collapse_search", "Somewhere VPU without its anchor"),
    ("prior_misspecification", "VPU, which does not use the prior"),
    ("selection_noise", "Label-free selection by PU accuracy"),
    ("encouraging_digits", "At a learning rate of 1e-3 cross-entropy beats the seed's bonus"),
    ("cf_inverted", "Most runs were stopped early"),
)
"""The claims that README shows: experiment, and how their words begin."""


def row(experiment: str, start: str) -> tuple[str | Markdown, ...]:
    """One claim with what was measured, its verdict, and the command that repeats it."""
    rows = pl.read_csv(ROOT / "results" / experiment / "claims.csv", glob=False).with_columns(
        pl.col("source").fill_null("")
    )
    found = [claim for claim in rows.iter_rows(named=True) if claim["claim"].startswith(start)]
    if len(found) != 1:
        sys.exit(f"results/{experiment}: {len(found)} claims begin with {start!r}, expected one: see scripts/readme.py")
    command = Markdown(f"[`jaxpu run {experiment}`](results/{experiment}/table.md)")
    return found[0]["claim"], claims.measured(found[0]), tables.bold(found[0]["verdict"]), command


def speed(path: Path) -> str:
    """What bench.py measured on the CPU, in a sentence."""
    report = json.loads(path.read_text(encoding="utf-8"))
    rates = {r["contender"]: r["per_cpu_second_to_torch"]["median"] for r in report["table"]}
    ours = [rate for name, rate in rates.items() if not name.startswith("PyTorch")]
    return (
        f"Training steps per second of a core, times those of a PyTorch loop beside it: {min(ours):.1f} to "
        f"{max(ours):.1f} ([how it was measured](results/bench/cpu.md))."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    shown = table(("claim", "measured [95 % interval]", "verdict", "repeat"), [row(*asked) for asked in ROWS], "lrll")
    readme = ROOT / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = BLOCK.sub(lambda m: f"{m[1]}\n{shown}\n\n{speed(ROOT / 'results/bench/cpu.json')}\n\n{m[2]}", old)
    if arguments.check:
        sys.exit("README.md is not what results/ say; run: python scripts/readme.py" if old != new else 0)
    readme.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
