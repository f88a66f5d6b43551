"""What an experiment is to decide."""

from typing import Any

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.config.common import STRICT
from jaxpu.selection import RuleChoice


@dataclass(frozen=True, config=STRICT)
class Which:
    """Which runs one side of a claim speaks of; what is not said does not matter.

    Attributes:
        method, dataset: their names. selection: the rule that selects; None = the experiment's default.
        where: values of grid columns, for example ``{training.lr: 1e-3}``; null = the runs without such a setting.
    """

    method: str | None = None
    dataset: str | None = None
    where: dict[str, Any] = Field(default_factory=dict)
    selection: RuleChoice | None = None


@dataclass(frozen=True, config=STRICT)
class Claim:
    """A statement that the runs of an experiment support, refute, or cannot decide; see :mod:`jaxpu.analysis.claims`.

    Attributes:
        claim: the statement, in words. source: who says so. item: what it settles in a list of statements, if any.
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
    item: str = ""
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

    @property
    def sides(self) -> tuple[Which, ...]:
        """What it speaks of: ``of``, and ``minus`` where there is one."""
        return (self.of,) if self.minus is None else (self.of, self.minus)

    @model_validator(mode="after")
    def _can_be_tested(self) -> "Claim":
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a claim needs at_least or at_most, one of them: the bound that it amounts to")
        if self.verdicts and self.below is not None:
            raise ValueError("a claim counts runs by verdicts or by a metric below a number, not by both")
        if self.verdicts and self.metric != "f1":
            raise ValueError(f"metric {self.metric!r} has no effect in a claim that counts verdicts; leave it out")
        bound = self.at_least if self.at_least is not None else self.at_most
        if self.is_event and self.minus is None and bound is not None and not 0 < bound < 1:
            raise ValueError(f"a share of runs is compared with a bound strictly between 0 and 1, got {bound}")
        return self
