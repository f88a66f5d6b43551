"""Selection rules as figures and tables call them, and the columns that they read and report."""

from collections.abc import Sequence

import polars as pl

from jaxpu.plots.frames import DEFAULT_RULES
from jaxpu.selection import RULES, Rule, watched_column

RULE_NAMES = {
    "last": "last epoch",
    "val_f1": "validation F1",
    "val_f1_rescue": "validation F1 with legacy rescue",
    "val_accuracy": "validation accuracy",
    "pu_accuracy": "PU accuracy",
    "pu_auc": "PU AUC",
    "nn_risk": "non-negative risk",
    "variational": "variational loss",
    "end": "end of training",
}

RESCUE = "val_f1_rescue"


def known(rule: str) -> Rule | None:
    """The rule of an entry of the column ``selection``, which may name a validation share; None if it is none."""
    return RULES.get(rule.partition("@")[0])


def rule_name(rule: str) -> str:
    """A selection rule as a reader calls it.

    >>> rule_name("pu_auc"), rule_name("val_f1@0.05")
    ('PU AUC', 'validation F1 (validation share 0.05)')
    """
    name, _, share = rule.partition("@")
    return RULE_NAMES.get(name, name) + (f" (validation share {share})" if share else "")


def watched(rule: str) -> str | None:
    """The recorded column that a rule watches; None for the last epoch and for unknown rules."""
    return watched_column(rule) if known(rule) else None


def f1_column(runs: pl.DataFrame, rule: str, split: str = "test") -> str:
    """The recorded F1 that counts under a rule, or plain F1 (p > 0.5) where that was not recorded.

    >>> f1_column(pl.DataFrame({"test_oracle_f1_rescue": [0.9]}), "val_f1_rescue")
    'test_oracle_f1_rescue'
    """
    found = known(rule)
    column = f"{split}_{found.reported}" if found else f"{split}_oracle_f1"
    return column if column in runs.columns else f"{split}_oracle_f1"


def shown_rules(recorded: Sequence[str], default: str | None = None) -> list[str]:
    """The recorded rules that a report shows: its default, the legacy rule, and that without its rescue.

    >>> shown_rules(["last", "val_f1", "pu_auc"], "pu_auc"), shown_rules(["last"])
    (['pu_auc', 'val_f1'], ['last'])
    """
    wanted = ([default] if default else []) + [rule for rule in DEFAULT_RULES if rule != default]
    return [rule for rule in wanted if rule in recorded] or list(dict.fromkeys(recorded))[:3]


def below_sentence(counts: dict[str, tuple[int, int]], bound: float) -> str:
    """Say how many runs score F1 below a bound under each rule.

    >>> below_sentence({"last": (1, 2), "val_f1": (0, 1)}, 0.1)
    'Runs with test F1 below 0.1: 1 of 2 under last epoch, 0 of 1 under validation F1'
    """
    parts = [f"{below} of {n} under {rule_name(rule)}" for rule, (below, n) in counts.items()]
    return f"Runs with test F1 below {bound:g}: {', '.join(parts)}"
