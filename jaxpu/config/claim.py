"""What an experiment is to decide."""

from pydantic import ConfigDict, model_validator
from pydantic.dataclasses import dataclass

STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=STRICT)
class Which:
    """Which runs one side of a claim speaks of; what is not said does not matter.

    Attributes:
        method, dataset: their names. selection: the rule that selects; None = the experiment's default.
        cell: pieces of the grid point's label, for example ``c=0.1 anchor=0``.
    """

    method: str | None = None
    dataset: str | None = None
    cell: str = ""
    selection: str | None = None


@dataclass(frozen=True, config=STRICT)
class Claim:
    """A statement that the runs of an experiment support, refute, or cannot decide; see :mod:`jaxpu.claims`.

    Attributes:
        claim: the statement, in words. source: who says so.
        of: the runs. minus: the runs that they are compared with, seed by seed.
        metric: a column of ``selected.csv``, for example ``f1``, ``regret``, ``test_oracle_auc``.
        below: with it, a run counts as 1 if its metric is below this, else 0.
        verdicts: with them, a run counts as 1 if its verdict is among these (:class:`jaxpu.collapse.Verdict`),
            else 0.
        at_least, at_most: the bound that the statement amounts to; exactly one of them.
    """

    claim: str
    of: Which
    source: str = ""
    minus: Which | None = None
    metric: str = "f1"
    below: float | None = None
    verdicts: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_event(self) -> bool:
        """Whether a run counts as 0 or 1."""
        return bool(self.verdicts) or self.below is not None

    @model_validator(mode="after")
    def _can_be_tested(self) -> "Claim":
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a claim needs at_least or at_most, one of them: the bound that it amounts to")
        if self.verdicts and self.below is not None:
            raise ValueError("a claim counts runs by verdicts or by a metric below a number, not by both")
        bound = self.at_least if self.at_least is not None else self.at_most
        if self.is_event and self.minus is None and bound is not None and not 0 < bound < 1:
            raise ValueError(f"a share of runs is compared with a bound strictly between 0 and 1, got {bound}")
        return self
