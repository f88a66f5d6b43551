"""Write results/CLAIMS.md, all claims of all results, or check that it is up to date.

python scripts/claims.py [--check]
"""

import argparse
import json
import sys
from pathlib import Path

import polars as pl

from jaxpu.report import claims
from jaxpu.report.text import Markdown, code, plain

ROOT = Path(__file__).parents[1]


def experiment(folder: Path) -> str:
    """The claims of one experiment, with the command that repeats it."""
    provenance = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    body = claims.claims_table(pl.read_csv(folder / "claims.csv", glob=False))
    where = f"{code(provenance['command'])}, commit {code(str(provenance['commit'])[:9])}"
    return f"## {plain(folder.name)}\n\n{body}\n\n{where}; [its tables]({folder.name}/table.md)"


def text(folders: list[Path]) -> str:
    """The whole file."""
    verdicts = pl.concat([pl.read_csv(folder / "claims.csv", glob=False).select("verdict") for folder in folders])
    counts = verdicts["verdict"].value_counts(sort=True).iter_rows()
    said = ", ".join(f"{n} {word}" for word, n in counts)
    head = f"# Claims\n\n{verdicts.height} claims of {len(folders)} experiments: {said}. {claims.CLAIM_NOTE}"
    note = Markdown("Written by `scripts/claims.py` from the `claims.csv` of the results; do not edit.")
    return "\n\n".join([head, note, *map(experiment, folders)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    target = ROOT / "results" / "CLAIMS.md"
    new = text(sorted(path.parent for path in (ROOT / "results").glob("*/claims.csv") if path.parent.name != "quick"))
    if arguments.check:
        old = target.read_text(encoding="utf-8") if target.exists() else ""
        sys.exit("results/CLAIMS.md is not what results/ say; run: python scripts/claims.py" if old != new else 0)
    target.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
