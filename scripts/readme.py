"""Write the results table of README.md from the committed results, or check that it is up to date.

python scripts/readme.py [--check]
"""

import argparse
import json
import re
import sys
from pathlib import Path

import polars as pl

from jaxpu.results import took

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- results: .*? -->\n).*?(<!-- /results -->)", re.DOTALL)
RULES = {"val_f1_rescue": "with the rescue", "val_f1": "without"}


def experiment_table(folder: Path) -> str:
    """One experiment: a row a method, F1 and the share of runs below 0.1 under the two rules, and the verdict."""
    summary = pl.read_csv(folder / "summary.csv")
    verdicts = pl.read_csv(folder / "verdicts.csv")
    provenance = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    lines = [
        f"**[{folder.name}]({folder.relative_to(ROOT)}/table.md)**: `jaxpu run configs/{folder.name}.yaml`, "
        f"{provenance['seeds']} seeds a method, {took(provenance)} on {provenance['placement'][0]['mesh']['run']} "
        f"{provenance['device']} devices; commit `{provenance['commit'][:9]}`.",
        "",
        "| method | median F1, rescue | median F1, without | F1 < 0.1, rescue | F1 < 0.1, without | verdict, rescue |",
        "|---|---|---|---|---|---|",
    ]
    for method in summary["method"].unique(maintain_order=True):
        rows = {rule: summary.filter(method=method, selection=rule) for rule in RULES}
        medians = [f"{r.filter(metric='f1')['median'][0]:.3f}" for r in rows.values()]
        shares = [share(r.filter(metric="f1_below_0.1").row(0, named=True)) for r in rows.values()]
        [sentence] = verdicts.filter(method=method, selection="val_f1_rescue")["sentence"]
        lines.append(f"| {method} | {' | '.join(medians)} | {' | '.join(shares)} | {words(sentence)} |")
    return "\n".join(lines)


def is_headline(folder: Path) -> bool:
    """Whether an experiment compares methods under the two rules of the headline, without a grid."""
    summary = pl.read_csv(folder / "summary.csv")
    plain = summary["cell"].is_null() | (summary["cell"] == "")
    return plain.all() and set(summary["selection"]) == set(RULES)


def claims_table(folders: list[Path]) -> list[str]:
    """All claims of all experiments, with the command that repeats each."""
    lines = []
    for folder in folders:
        command = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))["command"]
        for row in pl.read_csv(folder / "claims.csv").iter_rows(named=True):
            measured = f"{row['estimate']:.3f} [{row['ci_low']:.3f}, {row['ci_high']:.3f}]"
            lines.append(
                f"| {row['claim']} | {row['bound']} | {measured} | {row['n']} | **{row['verdict']}** | `{command}` |"
            )
    heads = ["| claim | claimed | measured, 95 % interval | n | verdict | command |", "|---|---|---|---|---|---|"]
    return ["\n".join(["**Claims**, each with its test:", "", *heads, *lines])] if lines else []


def rules_paragraph(folder: Path) -> list[str]:
    """What the choice of the epoch costs, a label-free rule and size of the validation set each."""
    if not (folder / "rules.csv").exists():
        return []
    rules = pl.read_csv(folder / "rules.csv").filter(pl.col("selection").str.contains("last|pu_accuracy|nn_risk"))
    costs = [
        f"`{row['selection']}` {row['regret']:.3f} [{row['regret_low']:.3f}, {row['regret_high']:.3f}]"
        for row in rules.sort("regret").iter_rows(named=True)
    ]
    return [
        f"**[Which epoch is kept]({folder.relative_to(ROOT)}/table.md)** matters. F1 lost against each run's best "
        f"epoch by label-free rules, `rule@share of the rows held out`, mean of {rules['n_seeds'][0]} seeds and "
        f"{rules['n_runs'][0]} runs with its 95 % interval: {', '.join(costs)}."
    ]


def share(row: dict[str, float]) -> str:
    return f"{row['count']:.0f}/{row['n']:.0f} [{100 * row['ci_low']:.1f}, {100 * row['ci_high']:.1f}] %"


def words(sentence: str) -> str:
    """The counts of a verdict sentence, without its interval."""
    return re.sub(r" runs \([^)]*\)", "", sentence).rstrip(".")


def bench_table(folder: Path) -> list[str]:
    """What bench.py measured, a block a device."""
    blocks = []
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        rows = {r["contender"]: r.get("per_cpu_second_to_torch") for r in report["table"]}
        best = ", ".join(
            f"{name} {r['median']:.2f} [{r['low']:.2f}, {r['high']:.2f}]"
            for name, r in rows.items()
            if r and not name.startswith("PyTorch")
        )
        blocks.append(
            f"**[Speed on {report['device']}]({path.relative_to(ROOT).with_suffix('.md')})**: "
            f"`{report['command']}`; seed-steps per CPU-second, times a PyTorch loop in the same process and round: "
            f"{best}."
        )
    return blocks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    folders = sorted(p.parent for p in (ROOT / "results").glob("*/summary.csv") if p.parent.name != "quick")
    blocks = [experiment_table(folder) for folder in folders if is_headline(folder)]
    blocks += claims_table([folder for folder in folders if (folder / "claims.csv").exists()])
    blocks += rules_paragraph(ROOT / "results" / "selection_noise")
    blocks += bench_table(ROOT / "results" / "bench")
    readme = ROOT / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = BLOCK.sub(lambda m: m[1] + "\n" + "\n\n".join(blocks) + "\n\n" + m[2], old)
    if arguments.check:
        sys.exit("README.md is not what results/ say; run: python scripts/readme.py" if old != new else 0)
    readme.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
