"""Which epoch of a run is kept: the table of rules, and a rule with the validation set that it reads.

Training follows the rules on the device (:mod:`jaxpu.train`); :mod:`jaxpu.analysis.selection` replays them on what
was recorded. ``val_f1_rescue`` is the rule of the original benchmark code: predictions of one class are silently
re-thresholded before F1 is computed, on validation and on test alike. It is kept to reproduce that code, and to show
what it does; it is not a recommendation.
"""

from typing import Any, NamedTuple

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass


class Rule(NamedTuple):
    """A selection rule: the recorded column it watches, its direction, and the test F1 that it reports.

    Attributes:
        column: recorded column without split prefix, read on the validation set; None = the last epoch.
        sign: +1 if larger is better, -1 if smaller is better.
        reported: test column that counts as "the F1" of a run selected by this rule.
        label_free: whether the rule needs no true labels.
        any_task: whether it is there for many classes, too; ``val_f1`` then means the mean F1 of the classes.
        meaning: one line for people.
    """

    column: str | None
    sign: int
    reported: str
    label_free: bool
    meaning: str
    any_task: bool = False


_F1 = "oracle_f1_decision"

RULES: dict[str, Rule] = {
    "last": Rule(None, 1, _F1, True, "the last epoch trained", any_task=True),
    "val_f1": Rule(
        _F1, 1, _F1, False, "best validation F1 on true labels, at the method's own threshold", any_task=True
    ),
    "val_accuracy": Rule("oracle_accuracy", 1, _F1, False, "best validation accuracy on true labels", any_task=True),
    "val_f1_rescue": Rule(
        "oracle_f1_rescue",
        1,
        "oracle_f1_rescue",
        False,
        "the legacy rule: validation F1, one-class predictions re-thresholded at the π-quantile",
    ),
    "pu_accuracy": Rule("proxy_pu_accuracy", 1, _F1, True, "best validation accuracy estimated from P and U"),
    "pu_auc": Rule("proxy_pu_auc", 1, _F1, True, "best validation AUC estimated from P and U"),
    "nn_risk": Rule("proxy_nn_risk", -1, _F1, True, "least validation non-negative risk"),
    "variational": Rule("proxy_variational", -1, _F1, True, "least validation variational loss"),
}


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class RuleChoice:
    """A rule as an experiment asks for it; where a plain name will do, a configuration says just that.

    Attributes:
        rule: a name of :data:`RULES`.
        validation: the nested validation set that it reads, by its share of the training part (one of
            ``data.validation``); None = the first of them.

    >>> RuleChoice("val_f1"), RuleChoice("val_f1", 0.05).name
    (RuleChoice(rule='val_f1', validation=None), 'val_f1 on 5 %')
    """

    rule: str
    validation: float | None = Field(default=None, gt=0, lt=1)

    @property
    def name(self) -> str:
        """What stands in the column ``selection`` of tables. It is shown and compared, never taken apart."""
        return self.rule if self.validation is None else f"{self.rule} on {100 * self.validation:g} %"

    @property
    def column(self) -> str | None:
        """The recorded column that the rule reads; None for the last epoch.

        Raises:
            ValueError: for an unknown rule, with the choices.

        >>> RuleChoice("val_f1_rescue").column, RuleChoice("pu_auc", 0.05).column, RuleChoice("last").column
        ('val_oracle_f1_rescue', 'val@0.05_proxy_pu_auc', None)
        """
        column = self.entry.column
        split = "val" if self.validation is None else f"val@{self.validation:g}"
        return None if column is None else f"{split}_{column}"

    @property
    def entry(self) -> Rule:
        """What :data:`RULES` says of it.

        Raises:
            ValueError: for an unknown rule, with the choices.
        """
        if self.rule not in RULES:
            raise ValueError(f"unknown selection rule {self.rule!r}; choose from {', '.join(RULES)}")
        return RULES[self.rule]

    @model_validator(mode="before")
    @classmethod
    def _from_a_name(cls, value: Any) -> Any:
        return {"rule": value} if isinstance(value, str) else value
