"""The vocabulary of failure: the verdicts, the numbers that their rules compare with, and a diagnosis.

The rules themselves: :mod:`jaxpu.collapse.rules` for one set of scores or one epoch,
:mod:`jaxpu.collapse.runs` for a whole run, :mod:`jaxpu.collapse.rates` for a method over its seeds.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """What is wrong, if anything; the last four are about a run, not about one epoch.

    ``prior_mismatch`` is a verdict without true labels: the share of U that is predicted positive is far from the
    given prior, which with true labels would be a threshold_shift or a wrong prior.
    """

    HEALTHY = "healthy"
    UNDEFINED = "undefined"
    DIVERGED = "diverged"
    INVERTED = "inverted"
    THRESHOLD_SHIFT = "threshold_shift"
    PRIOR_MISMATCH = "prior_mismatch"
    ALL_NEGATIVE = "all_negative"
    ALL_POSITIVE = "all_positive"
    CONSTANT = "constant"
    WEAK_RANKING = "weak_ranking"
    STOPPED_EARLY = "stopped_early"
    SELF_REINFORCING = "self_reinforcing"
    SELECTION_ARTEFACT = "selection_artefact"
    TRANSIENT = "transient"


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Every number that the rules compare with.

    Attributes:
        good_auc: AUC from which a ranking is good. 0.7 is a usual lower limit of acceptable discrimination.
        inverted_auc: AUC up to which a ranking is inverted; 0.2 is out of reach of chance on 40 rows.
        healthy_share: Share of the best F1 that the threshold in use must reach.
        one_class: Predicted positives, as a share of the positives, up to which a classifier is all_negative
            (and the same of the other class for all_positive). 0 asks for not a single one.
        constant_spread: Standard deviation of the scores, as a share of that of the labels, up to which they
            are constant.
        prior_distance: How far the share of U predicted positive may be from the given prior π, as a share of
            min(π, 1 - π), before they do not fit (without true labels).
        collapsed_f1: F1 below which a classifier that is not healthy counts as collapsed.
        lasting_epochs: Consecutive collapsed epochs that make a collapse transient rather than a slow start.
        exploding_loss: Ratio of |loss| at the last epoch to its least value (or 1) above which it has
            diverged.
        driver_share: Share of its reference that a driver may keep and still count as gone down.
        driver_correlation: |Pearson correlation| of driver and mean score from which they move together.
    """

    good_auc: float = 0.7
    inverted_auc: float = 0.2
    healthy_share: float = 0.8
    one_class: float = 0.02
    constant_spread: float = 1e-3
    prior_distance: float = 0.5
    collapsed_f1: float = 0.1
    lasting_epochs: int = 3
    exploding_loss: float = 100.0
    driver_share: float = 0.5
    driver_correlation: float = 0.8

    def __post_init__(self) -> None:
        if not self.inverted_auc < self.good_auc:
            raise ValueError(
                f"expected inverted_auc < good_auc; got {self.inverted_auc} and {self.good_auc}: "
                "a ranking cannot be inverted and good"
            )


DEFAULT_THRESHOLDS = Thresholds()


class Diagnosis(NamedTuple):
    """A verdict with its reasons.

    Attributes:
        verdict: The headline.
        flags: All verdicts whose rules hold, the headline first.
        evidence: The numbers that the rules looked at; epochs count from 1.
        explanation: One or two plain sentences with the numbers.
    """

    verdict: Verdict
    flags: tuple[Verdict, ...]
    evidence: dict[str, float]
    explanation: str

    @property
    def failing(self) -> bool:
        """Whether the classifier that came out is no good: all verdicts but healthy and transient."""
        return self.verdict not in (Verdict.HEALTHY, Verdict.TRANSIENT)
