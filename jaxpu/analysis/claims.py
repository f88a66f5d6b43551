"""Claims put to the test: an effect over seeds with its interval, a corrected p-value, and a verdict.

A claim says that a number (a mean over seeds, a paired difference, or a share of runs) is at least, or at most,
some bound. Its interval decides:

==============  =======================================================================================
verdict         rule
==============  =======================================================================================
supported       the whole 95 % interval is on the claim's side of the bound, and p (Holm) < 0.05
refuted         the whole interval is on the other side, and p (Holm) < 0.05
not supported   otherwise: these runs cannot tell
==============  =======================================================================================

So an effect that is real but smaller than what was claimed refutes the claim; the bound is part of it and stands
in the configuration, next to its wording. p tests the bound, not zero: Wilcoxon's signed ranks of value - bound for
a number, the binomial test for a share, Tango's score test for the difference of two shares on the same seeds (the t
test where a seed's share is over several cells). Holm's correction is over the claims of one experiment.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float

from jaxpu.analysis import stats
from jaxpu.config import Claim, ConfigError, Which, point_label, same

SIGNIFICANCE = 0.05


class ClaimVerdict(StrEnum):
    """What the runs say of a claim."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not supported"
    REFUTED = "refuted"


class Effect(NamedTuple):
    """What was measured: the estimate, its 95 % interval, the p-value against the bound, and n seeds or runs."""

    estimate: float
    interval: stats.Interval
    p_value: float
    n: int


def judge(claims: Sequence[Claim], selected: pl.DataFrame, default_rule: str) -> pl.DataFrame:
    """Judge all claims of an experiment.

    Args:
        claims: the claims. selected: one row a run and rule, from :func:`jaxpu.analysis.summary.tables`.
        default_rule: the name of the selection rule of claims that name none.

    Returns:
        One row a claim: claim, source, item, question (what was measured, in words), bound, n, estimate, ci_low,
        ci_high, p, p_holm, verdict.

    Raises:
        ConfigError: a claim names runs or a metric that there are none of.
    """
    effects = [measure(claim, selected, default_rule) for claim in claims]
    adjusted = stats.holm([effect.p_value for effect in effects])
    rows = [
        _row(claim, effect, float(p), default_rule) for claim, effect, p in zip(claims, effects, adjusted, strict=True)
    ]
    return pl.DataFrame(rows, schema=_SCHEMA)


_SCHEMA = {
    "claim": pl.String,
    "source": pl.String,
    "item": pl.String,
    "question": pl.String,
    "bound": pl.String,
    "n": pl.Int64,
    "estimate": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "verdict": pl.String,
}


def measure(claim: Claim, selected: pl.DataFrame, default_rule: str) -> Effect:
    """Estimate what a claim is about; see :func:`judge`.

    With ``minus``, values are paired by seed. Where several cells match, a seed's value is their mean, so that n
    counts seeds, which are independent, and not cells, which are not.
    """
    bound = claim.at_least if claim.at_least is not None else claim.at_most
    assert bound is not None  # exactly one is given: Claim checks it
    rows = _rows(claim, claim.of, selected, default_rule)
    if claim.minus is None and claim.is_event:
        return _share(rows["value"].to_numpy(), bound)
    values = _by_seed(rows)
    if claim.minus is not None:
        other = _by_seed(_rows(claim, claim.minus, selected, default_rule))
        if set(values) != set(other):
            raise ConfigError(f"claim {claim.claim!r}: both sides need the same seeds to be paired")
        pairs = np.array([(value, other[seed]) for seed, value in values.items()])
        return (_shares if claim.is_event else _difference)(pairs[:, 0], pairs[:, 1], bound)
    alone = np.array(list(values.values()))
    return _difference(alone, np.zeros(alone.size), bound)


def decide(effect: Effect, p_holm: float, claim: Claim) -> ClaimVerdict:
    """The rules of the table above."""
    low, high = effect.interval
    if not p_holm < SIGNIFICANCE:
        return ClaimVerdict.NOT_SUPPORTED
    if claim.at_least is not None:
        holds, fails = low >= claim.at_least, high < claim.at_least
    else:
        assert claim.at_most is not None
        holds, fails = high <= claim.at_most, low > claim.at_most
    if holds:
        return ClaimVerdict.SUPPORTED
    return ClaimVerdict.REFUTED if fails else ClaimVerdict.NOT_SUPPORTED


def _share(events: Float[np.ndarray, " runs"], bound: float) -> Effect:
    occurred, n = int(events.sum()), events.size
    from scipy import stats as scipy_stats  # takes two seconds to import

    p_value = float(scipy_stats.binomtest(occurred, n, bound).pvalue)
    return Effect(occurred / n, stats.wilson(occurred, n), p_value, n)


def _shares(of: Float[np.ndarray, " seeds"], minus: Float[np.ndarray, " seeds"], bound: float) -> Effect:
    """The difference of two shares; where several cells match, an entry is a seed's share of them."""
    if np.isin([*of, *minus], (0.0, 1.0)).all():
        result = stats.paired_shares(of, minus, bound)
        return Effect(result.difference, result.interval, result.p_value, result.n)
    # shares of shares are no longer mostly ties, but far from symmetric: a test of their mean, not of their ranks
    from scipy import stats as scipy_stats  # takes two seconds to import

    p_value = float(np.asarray(scipy_stats.ttest_1samp(of - minus, bound))[1])
    return Effect(float((of - minus).mean()), stats.mean_interval(of - minus), p_value, of.size)


def _difference(of: Float[np.ndarray, " seeds"], minus: Float[np.ndarray, " seeds"], bound: float) -> Effect:
    result = stats.paired_difference(of, minus + bound)
    low, high = result.interval
    return Effect(result.mean + bound, stats.Interval(low + bound, high + bound), result.p_value, result.n)


def _rows(claim: Claim, which: Which, selected: pl.DataFrame, default_rule: str) -> pl.DataFrame:
    """The rows that a side of a claim speaks of, with their ``value``."""
    wanted = {"selection": which.selection.name if which.selection else default_rule}
    wanted |= {
        name: value for name, value in (("method", which.method), ("dataset", which.dataset)) if value is not None
    }
    for column in which.where:
        if column not in selected.columns:
            raise ConfigError(f"claim {claim.claim!r}: no column {column!r} among {', '.join(selected.columns)}")
    found = selected.filter(*(_is(selected, column, value) for column, value in (wanted | which.where).items()))
    if found.is_empty():
        seen = ", ".join(f"{column} {_values(selected, column)}" for column in ("method", "selection", *which.where))
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
    return (metric < claim.below) | metric.is_nan()  # a run without a number is no success


def _values(frame: pl.DataFrame, column: str) -> str:
    return ", ".join(map(repr, frame[column].unique(maintain_order=True).head(8).to_list()))


def _by_seed(rows: pl.DataFrame) -> dict[int, float]:
    means = rows.group_by("seed", maintain_order=True).agg(pl.col("value").mean())
    return dict(means.select("seed", "value").sort("seed").iter_rows())


def _row(claim: Claim, effect: Effect, p_holm: float, default_rule: str) -> dict[str, Any]:
    return {
        "claim": claim.claim,
        "source": claim.source,
        "item": claim.item,
        "question": question(claim, default_rule),
        "bound": f">= {claim.at_least:g}" if claim.at_least is not None else f"<= {claim.at_most:g}",
        "n": effect.n,
        "estimate": effect.estimate,
        "ci_low": effect.interval.low,
        "ci_high": effect.interval.high,
        "p": effect.p_value,
        "p_holm": p_holm,
        "verdict": str(decide(effect, p_holm, claim)),
    }


def question(claim: Claim, default_rule: str) -> str:
    """What is measured, in words.

    >>> c = Claim(claim="", of=Which(method="pudra"), below=0.1, at_least=0.5)
    >>> question(c, "last")
    'share of runs with f1 < 0.1: pudra by last'
    """
    if claim.verdicts:
        what = f"share of runs that are {' or '.join(claim.verdicts)}"
    elif claim.below is not None:
        what = f"share of runs with {claim.metric} < {claim.below:g}"
    else:
        what = f"mean {claim.metric}"
    sides = [_side(which, default_rule) for which in (claim.of, claim.minus) if which is not None]
    return f"{what}: {' minus '.join(sides)}"


def _side(which: Which, default_rule: str) -> str:
    words = (which.method, which.dataset, point_label(which.where))
    name = " ".join(word for word in words if word) or "all runs"
    return f"{name} by {which.selection.name if which.selection else default_rule}"
