"""What to do in practice, read off the experiments: which method, which selection rule, how large a validation set."""

from pathlib import Path
from typing import Any

import polars as pl

from jaxpu.report.claims import rule_lines, rules_markdown
from jaxpu.report.tables import mean

TRUE_PRIOR, TOLD = "prior_scale=1.0", {"prior_scale=0.5": "half of it", "prior_scale=1.5": "1.5 times it"}


def practice(results: Path) -> str:
    """The section of the failure analysis; empty without the experiment on selection.

    Args:
        results: the folder of results folders.
    """
    path = results / "selection_noise" / "rules.csv"
    if not path.exists():
        return ""
    rules = pl.read_csv(path).sort("regret")
    advice = [*which_method(results), *which_rule(rules), *how_large(rules), _SAY]
    return "\n".join(["## What to do in practice\n", *(f"- {line}" for line in advice), rules_markdown(rules)])


_SAY = (
    "**Report** F1 at a stated threshold beside AUC: a good AUC with a bad F1 is a threshold or a selection, not a "
    "collapse. `jaxpu diagnose` says which."
)


def which_method(results: Path) -> list[str]:
    """What a wrong prior costs each method, at the last epoch; nothing without that experiment.

    >>> which_method(Path("nowhere"))
    []
    """
    path = results / "prior_misspecification" / "summary.csv"
    if not path.exists():
        return []
    f1 = pl.read_csv(path).filter(selection="last", metric="f1")
    rows = {(row["method"], row["cell"]): row for row in f1.iter_rows(named=True)}
    told = [TRUE_PRIOR, *TOLD]
    lines = [
        f"`{method}` {', '.join(mean(rows[method, cell]) for cell in told)}"
        for method in f1["method"].unique(maintain_order=True)
    ]
    return [
        "**Method.** Where the class prior may be wrong, take a method that does not use it (`vpu`), or that it moves "
        "least; too small a prior costs most. Mean F1 at the last epoch, "
        f"told the true prior, {' and '.join(TOLD.values())}: {'; '.join(lines)}."
    ]


def which_rule(rules: pl.DataFrame) -> list[str]:
    """The label-free rule that loses least, and what the legacy rescue does with 1 % of the rows."""
    names = dict(zip(rules["selection"], (line[0] for line in rule_lines(rules)), strict=True))
    free = [row for row in rules.iter_rows(named=True) if "needs true labels" not in names[row["selection"]]]
    best, rescue = free[0], rules.filter(pl.col("selection") == "val_f1_rescue@0.01").row(0, named=True)
    return [
        f"**Selection.** Without true labels, of the rules compared the least F1 is lost by "
        f"{names[best['selection']]}: {_regret(best)} against each run's best epoch.",
        f"**Never re-threshold silently**: on 1 % of the rows that rule loses {_regret(rescue)} and gave "
        f"{rescue['artefacts']} artefacts in {rescue['n_runs']} runs.",
    ]


def how_large(rules: pl.DataFrame) -> list[str]:
    """F1 lost by validation F1 and by PU accuracy for every share of the rows held out, where it was measured.

    >>> rules = pl.DataFrame({"selection": ["val_f1@0.2"], "regret": 0.005, "regret_low": 0.004, "regret_high": 0.006})
    >>> print(how_large(rules)[0])
    **Validation set.** F1 lost by the share of the training rows held out: with true labels (validation F1)
    0.005 [0.004, 0.006] with 20 %.
    """
    said = []
    for rule, name in (("val_f1", "with true labels (validation F1)"), ("pu_accuracy", "without (PU accuracy)")):
        mine = rules.filter(pl.col("selection").str.starts_with(f"{rule}@"))
        share = pl.col("selection").str.split("@").list.last().cast(float)
        sizes = mine.with_columns(share=share).sort("share").iter_rows(named=True)
        losses = [f"{_regret(row)} with {100 * row['share']:g} %" for row in sizes]
        said += [f"{name} {', '.join(losses)}"] if losses else []
    return (
        [f"**Validation set.** F1 lost by the share of the training rows held out: {'; '.join(said)}."] if said else []
    )


def _regret(row: dict[str, Any]) -> str:
    return f"{row['regret']:.3f} [{row['regret_low']:.3f}, {row['regret_high']:.3f}]"
