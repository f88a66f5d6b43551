"""Selection rules as figures and tables call them, and the columns that they read and report."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from jaxpu.plots.frames import DEFAULT_RULES
from jaxpu.selection import RULES, Rule, RuleChoice

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


def choices(config: Mapping[str, Any]) -> dict[str, RuleChoice]:
    """The rules that a resolved configuration asks for, by what stands in the column ``selection``, the default first.

    >>> list(choices({"selection": {"default": "last", "rules": ["val_f1", {"rule": "val_f1", "validation": 0.05}]}}))
    ['last', 'val_f1', 'val_f1 on 5 %']
    """
    selection = config.get("selection")
    settings = selection if isinstance(selection, Mapping) else {}
    entries = [*([settings["default"]] if settings.get("default") else []), *settings.get("rules", ())]
    found = [RuleChoice(**entry) if isinstance(entry, Mapping) else RuleChoice(entry) for entry in entries]
    return {choice.name: choice for choice in found}


def known(rule: str) -> Rule | None:
    """A rule by its name; None if it is none."""
    return RULES.get(rule)


def rule_name(rule: str, validation: float | None = None) -> str:
    """A selection rule as a reader calls it, with the share of the training rows that it reads.

    >>> rule_name("pu_auc"), rule_name("val_f1", 0.05)
    ('PU AUC', 'validation F1 on 5 %')
    """
    return RULE_NAMES.get(rule, rule) + (f" on {100 * validation:g} %" if validation is not None else "")


def watched(rule: str) -> str | None:
    """The recorded column that a rule watches; None for the last epoch and for what is no rule by itself."""
    return RuleChoice(rule).column if rule in RULES else None


def f1_column(runs: pl.DataFrame, rule: str, split: str = "test") -> str:
    """The recorded F1 that counts under a rule, or plain F1 (p > 0.5) where that was not recorded.

    >>> f1_column(pl.DataFrame({"test_oracle_f1_rescue": [0.9]}), "val_f1_rescue")
    'test_oracle_f1_rescue'
    """
    column = f"{split}_{RULES[rule].reported}" if rule in RULES else f"{split}_oracle_f1"
    return column if column in runs.columns else f"{split}_oracle_f1"


def shown_rules(recorded: Sequence[str], default: str | None = None) -> list[str]:
    """The recorded rules that a report shows: its default, the legacy rule with and without its rescue, or the first.

    >>> shown_rules(["last", "val_f1", "pu_auc"], "pu_auc"), shown_rules(["last", "val_f1_rescue", "val_f1"], "last")
    (['pu_auc', 'last', 'val_f1'], ['last', 'val_f1_rescue', 'val_f1'])
    """
    others = list(DEFAULT_RULES if RESCUE in recorded else recorded)
    wanted = [default, *others] if default else others
    return [rule for rule in dict.fromkeys(wanted) if rule in recorded][:3]


def below_sentence(counts: Mapping[str, tuple[int, int]], bound: float) -> str:
    """Say how many runs score F1 below a bound under each rule.

    >>> below_sentence({"last": (1, 2), "val_f1": (0, 1)}, 0.1)
    'Runs with test F1 below 0.1: 1 of 2 under last epoch, 0 of 1 under validation F1'
    """
    parts = [f"{below} of {n} under {rule_name(rule)}" for rule, (below, n) in counts.items()]
    return f"Runs with test F1 below {bound:g}: {', '.join(parts)}"
