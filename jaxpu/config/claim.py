"""What an experiment is to decide."""

from typing import Any, Literal

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.selection import RuleChoice
from jaxpu.settings import STRICT


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
        statistic: over seeds, ``mean`` or ``median``; None = what is declared for the metric
            (:data:`jaxpu.analysis.metrics.HEAVY_TAILED`).
        somewhere: the claim is about the best of the matching cells: that it holds in one of them, whichever.
        at_least, at_most: the bound that the statement amounts to. within: the two sides differ by at most this,
            either way: they are equivalent. Exactly one of the three.
    """

    claim: str
    of: Which
    source: str = ""
    item: str = ""
    minus: Which | None = None
    metric: str = "f1"
    below: float | None = None
    verdicts: tuple[str, ...] = ()
    statistic: Literal["mean", "median"] | None = None
    somewhere: bool = False
    at_least: float | None = None
    at_most: float | None = None
    within: float | None = Field(default=None, gt=0)

    @property
    def is_event(self) -> bool:
        """Whether a run counts as 0 or 1."""
        return bool(self.verdicts) or self.below is not None

    @property
    def sides(self) -> tuple[Which, ...]:
        """What it speaks of: ``of``, and ``minus`` where there is one."""
        return (self.of,) if self.minus is None else (self.of, self.minus)

    @property
    def fixed(self) -> set[str]:
        """The columns that a side fixes: cells of the two sides that agree in all others belong together."""
        names = {name for name in ("method", "dataset") for side in self.sides if getattr(side, name) is not None}
        return names.union(*(side.where for side in self.sides))

    @property
    def bound(self) -> float:
        """The number that stands in ``at_least``, ``at_most`` or ``within``."""
        [bound] = [value for value in (self.at_least, self.at_most, self.within) if value is not None]
        return bound

    @model_validator(mode="after")
    def _can_be_tested(self) -> "Claim":
        if sum(bound is not None for bound in (self.at_least, self.at_most, self.within)) != 1:
            raise ValueError("a claim needs at_least or at_most or within, one of them: the bound that it amounts to")
        if self.verdicts and self.below is not None:
            raise ValueError("a claim counts runs by verdicts or by a metric below a number, not by both")
        if self.verdicts and self.metric != "f1":
            raise ValueError(f"metric {self.metric!r} has no effect in a claim that counts verdicts; leave it out")
        if self.is_event and self.minus is None and not 0 < self.bound < 1:
            raise ValueError(f"a share of runs is compared with a bound strictly between 0 and 1, got {self.bound}")
        if self.is_event and not -1 < self.bound < 1:
            raise ValueError(f"two shares of runs differ by less than 1, got {self.bound}")
        return self

    @model_validator(mode="after")
    def _asks_for_what_there_is(self) -> "Claim":
        if self.statistic is not None and self.is_event:
            raise ValueError("statistic has no effect in a claim about a share of runs; leave it out")
        if self.within is not None and self.minus is None:
            raise ValueError("within says that two sides are equivalent; a claim with it needs minus")
        if self.within is not None and self.somewhere:
            raise ValueError("somewhere is about the best cell, and within about none; leave one out")
        return self
