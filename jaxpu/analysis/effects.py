"""What a claim is about, measured over seeds: statistic, interval, p-values; see :mod:`jaxpu.analysis.claims`."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from jaxpu.analysis import stats
from jaxpu.analysis.metrics import statistic_of
from jaxpu.analysis.stats import Interval, Tested
from jaxpu.collapse import Verdict
from jaxpu.config import Claim, ConfigError, Which, same

LEVEL = 0.95
FINE = (str(Verdict.HEALTHY), str(Verdict.TRANSIENT))
"""Verdicts of runs that do not fail."""


class Effect(NamedTuple):
    """What was measured.

    Attributes:
        estimate: of the statistic. interval: its 95 % interval.
        supports, refutes: p-values that speak for the claim and against it, each twice a one-sided one.
        n: seeds. statistic: ``median``, ``mean`` or ``share``. mean, median: both over seeds, where they were numbers.
        failing: shares of failing runs of each side, where runs have verdicts.
    """

    estimate: float
    interval: Interval
    supports: float
    refutes: float
    n: int
    statistic: str
    mean: float | None = None
    median: float | None = None
    failing: tuple[float | None, float | None] = (None, None)

    @property
    def p_value(self) -> float:
        """The two-sided p-value against the bound."""
        return min(self.supports, self.refutes)


class Values(NamedTuple):
    """One number a seed of both sides, in the order of seeds; ``cells`` is how many cells a seed has on average."""

    of: np.ndarray
    minus: np.ndarray | None
    cells: float

    @property
    def difference(self) -> np.ndarray:
        """Of the two sides, seed by seed; of one side its values."""
        return self.of if self.minus is None else self.of - self.minus


def measure(
    claim: Claim, selected: pl.DataFrame, default_rule: str, grid_columns: Sequence[str] = (), rule: str | None = None
) -> Effect:
    """Estimate what a claim is about, over seeds.

    Args:
        claim: of these runs. selected: one row a run and rule. default_rule: of sides that name none.
        grid_columns: of the experiment; needed where a claim is about the best cell. rule: in place of every side's.

    Raises:
        ConfigError: a claim names runs or a metric that there are none of, or sides without the same seeds or cells.
    """
    sides = [_rows(claim, which, selected, rule or default_rule, rule is not None) for which in claim.sides]
    found = _best(claim, sides, grid_columns) if claim.somewhere else _effect(claim, _values(claim, sides))
    shares = [_failing(rows) for rows in sides] + [None]
    return found._replace(failing=(shares[0], shares[1])) if not claim.is_event else found


def _effect(claim: Claim, values: Values, level: float = LEVEL) -> Effect:
    """The test of a claim on one number a seed; equivalence is two one-sided tests."""
    statistic = "share" if claim.is_event else statistic_of(claim.metric, claim.statistic)
    test = _test(claim, values, statistic, level)
    if claim.within is not None:
        high = test(claim.within)
        supports, refutes = map(float, equivalent(test(-claim.within), high))
    else:
        high = test(claim.bound)
        supports, refutes = (high.above, high.below) if claim.at_most is None else (high.below, high.above)
    both = (None, None) if claim.is_event else (float(values.difference.mean()), float(np.median(values.difference)))
    return Effect(high.estimate, high.interval, supports, refutes, high.n, statistic, *both)


def equivalent(low: Tested, high: Tested) -> tuple[Any, Any]:
    """p-values for and against a number between two bounds, from its tests against both: two one-sided tests each."""
    return np.maximum(low.above, high.below), np.minimum(low.below, high.above)


def somewhere(supports: Any, refutes: Any) -> tuple[Any, Any]:
    """p-values for "one of the cells does", after Holm over them, and for "none does", which takes every cell."""
    return np.minimum(len(supports) * np.min(supports, axis=0), 1.0), np.max(refutes, axis=0)


def _test(claim: Claim, values: Values, statistic: str, level: float) -> Callable[[float], Tested]:
    """A test of the values against any bound."""
    of, minus, cells = values
    if claim.is_event and minus is None:
        return lambda bound: stats.share_test(of, bound, cells, level).plain()
    other = np.zeros_like(of) if minus is None else minus
    if claim.is_event:
        return lambda bound: stats.paired_shares(of, other, bound, level, cells=cells).plain()
    return lambda bound: stats.paired_difference(of, other, bound, level, statistic=statistic)


def _best(claim: Claim, sides: Sequence[pl.DataFrame], grid_columns: Sequence[str]) -> Effect:
    """The best of several cells: supported if one is after Holm over them, refuted if all are.

    The interval is one of the best cell's number: its end on the claim's side holds for all cells at once.
    """
    columns = [name for name in ("dataset", "method", *grid_columns) if name not in claim.fixed]
    parts = [rows.partition_by(columns, as_dict=True, maintain_order=True) if columns else {(): rows} for rows in sides]
    if set(parts[0]) != set(parts[-1]):
        raise ConfigError(f"claim {claim.claim!r}: both sides need the same cells, to compare each with its own")
    values = [_values(claim, [part[key] for part in parts]) for key in parts[0]]
    alone = [_effect(claim, value) for value in values]
    jointly = [_effect(claim, value, 1 - (1 - LEVEL) / len(values)) for value in values]
    best = np.max if claim.at_least is not None else np.min
    simultaneous, single = (np.array([effect.interval for effect in effects]) for effects in (jointly, alone))
    low, high = (simultaneous, single) if claim.at_least is not None else (single, simultaneous)
    place = int((np.argmax if claim.at_least is not None else np.argmin)([effect.estimate for effect in alone]))
    supports, refutes = somewhere(*([getattr(e, name) for e in alone] for name in ("supports", "refutes")))
    return alone[place]._replace(
        interval=Interval(float(best(low[:, 0])), float(best(high[:, 1]))),
        supports=float(supports),
        refutes=float(refutes),
        n=min(effect.n for effect in alone),
    )


def _values(claim: Claim, sides: Sequence[pl.DataFrame]) -> Values:
    seeds = [_by_seed(rows) for rows in sides]
    if len(seeds) > 1 and set(seeds[0]) != set(seeds[1]):
        raise ConfigError(f"claim {claim.claim!r}: both sides need the same seeds to be paired")
    of, *minus = (np.array([side[seed] for seed in sorted(side)]) for side in seeds)
    cells = max(rows.height / len(side) for rows, side in zip(sides, seeds, strict=True))
    return Values(of, minus[0] if minus else None, cells)


def _by_seed(rows: pl.DataFrame) -> dict[int, float]:
    means = rows.group_by("seed").agg(pl.col("value").mean())
    return dict(means.select("seed", pl.col("value").fill_null(float("nan"))).iter_rows())


def _failing(rows: pl.DataFrame) -> float | None:
    if "verdict" not in rows.columns or rows["verdict"].null_count():
        return None
    return float((~rows["verdict"].is_in(FINE)).mean())  # pyright: ignore[reportArgumentType]


def _rows(claim: Claim, which: Which, selected: pl.DataFrame, default_rule: str, anew: bool) -> pl.DataFrame:
    """The rows that a side of a claim speaks of, with their ``value``; ``anew``: by another rule than its own."""
    rule = default_rule if anew or which.selection is None else which.selection.name
    wanted: dict[str, Any] = {"selection": rule}
    wanted |= {name: value for name in ("method", "dataset") if (value := getattr(which, name)) is not None}
    for column in which.where:
        if column not in selected.columns:
            raise ConfigError(f"claim {claim.claim!r}: no column {column!r} among {', '.join(selected.columns)}")
    found = selected.filter(*(_is(selected, column, value) for column, value in (wanted | which.where).items()))
    if found.is_empty():
        seen = ", ".join(f"{column} {_seen(selected, column)}" for column in ("method", "selection", *which.where))
        raise ConfigError(f"claim {claim.claim!r}: no run matches {which}; there are {seen}")
    if not claim.verdicts and claim.metric not in found.columns:
        raise ConfigError(f"claim {claim.claim!r}: no metric {claim.metric!r} among {', '.join(found.columns)}")
    return found.with_columns(_value(claim).cast(pl.Float64).alias("value"))


def _is(frame: pl.DataFrame, column: str, wanted: Any) -> pl.Expr:
    """Whether a column holds what a claim asks for, however that was written; see :func:`jaxpu.config.same`."""
    if wanted is None:
        return pl.col(column).is_null()
    alike = [value for value in frame[column].unique() if value is not None and same(value, wanted)]
    return pl.col(column).is_in(alike)


def _value(claim: Claim) -> pl.Expr:
    if claim.verdicts:
        return pl.col("verdict").is_in(list(claim.verdicts))
    metric = pl.col(claim.metric)
    if claim.below is None:
        return metric
    return ((metric < claim.below) | metric.is_nan()).fill_null(True)  # a run without a number is no success


def _seen(frame: pl.DataFrame, column: str) -> str:
    return ", ".join(map(repr, frame[column].unique(maintain_order=True).head(8).to_list()))


def by_rule(claim: Claim, rule: str) -> bool:
    """Whether a claim may be judged by this rule instead of its own: not if the rules are what it is about."""
    named = {side.selection.name for side in claim.sides if side.selection is not None}
    mixed = len({side.selection for side in claim.sides}) > 1
    return not mixed and rule not in named
