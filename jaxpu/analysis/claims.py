"""Claims put to the test: an effect over seeds with its interval, a corrected p-value, and a verdict.

A claim says that a number over seeds is at least, or at most, some bound, or that two sides differ by at most that
much. The seed is the unit: where several cells match, a seed's value is its mean, or its share, over them.

=============================  ===================================  ==============================================
claim about                    number over seeds                    interval and test
=============================  ===================================  ==============================================
a metric declared heavy-tailed  median (of paired differences)      order statistics, sign test: exact
another metric                 mean (of paired differences)         Student's t with the sample's skewness
a share of runs                mean of the seeds' shares            Clopper-Pearson, for what the seeds are worth
two shares on the same seeds   mean of the differences              Tango's score, for what the seeds are worth
``within``                     the same                             two one-sided tests at both ends
``somewhere``                  of the best cell                     each cell's own, Holm over the cells
=============================  ===================================  ==============================================

Each test holds 2.5 % a side (``scripts/claims_error_rates.py`` measures it), and its p-value, twice the one-sided one,
inverts its interval. Then, with p corrected for all claims of one experiment (Holm):

==============  =======================================================================================
verdict         rule
==============  =======================================================================================
supported       the whole 95 % interval is on the claim's side of the bound, and p (Holm) < 0.05
refuted         the whole interval is on the other side, and p (Holm) < 0.05
undecided       otherwise: these runs cannot tell
==============  =======================================================================================

For ``within`` the claim's side is between the two ends. So an effect that is real but smaller than what was claimed
refutes the claim; the bound is part of it and stands in the configuration, next to its wording. Holm's correction for
``somewhere`` multiplies the best cell's p by the number of cells; to refute such a claim, every cell must refute it.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl

from jaxpu.analysis import stats
from jaxpu.analysis.effects import Effect, by_rule, measure
from jaxpu.analysis.metrics import HEAVY_TAILED
from jaxpu.config import Claim, Which, point_label

SIGNIFICANCE = 0.05


class ClaimVerdict(StrEnum):
    """What the runs say of a claim."""

    SUPPORTED = "supported"
    UNDECIDED = "undecided"
    REFUTED = "refuted"


SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("claim", "source", "item", "question", "statistic", "bound"), pl.String),
    "n": pl.Int64,
    **dict.fromkeys(("estimate", "ci_low", "ci_high", "p", "p_holm"), pl.Float64),
    "verdict": pl.String,
    **dict.fromkeys(("mean", "median", "failing_of", "failing_minus"), pl.Float64),
    "rule": pl.String,
    "other_rules": pl.String,
    "flips": pl.Boolean,
    **dict.fromkeys(("network", "lr", "epochs", "validation", "changed", "note"), pl.String),
}
"""Columns of the claims table; see :func:`judge`."""


def judge(
    claims: Sequence[Claim],
    selected: pl.DataFrame,
    default_rule: str,
    *,
    grid_columns: Sequence[str] = (),
    protocols: Sequence[Mapping[str, str]] = (),
    changes: Sequence[str] = (),
) -> pl.DataFrame:
    """Judge all claims of an experiment.

    Args:
        claims: the claims. selected: one row a run and rule, from :func:`jaxpu.analysis.summary.tables`.
        default_rule: the name of the selection rule of claims that name none. grid_columns: of the experiment.
        protocols: of each claim, see :func:`jaxpu.analysis.protocol.protocol`. changes: of each claim, whether it was
            changed after results existed, in words.

    Returns:
        One row a claim: claim, source, item, question (what was measured, in words), statistic (median, mean or share),
        bound, n (seeds), estimate, ci_low, ci_high, p, p_holm, verdict; mean and median of what was measured, and the
        shares of failing runs of both sides (failing_of, failing_minus), where it is a number; rule, other_rules (the
        verdict by each other recorded rule, in words) and flips (whether one of them differs); network, lr, epochs,
        validation: the protocol; changed; note (mean and median on different sides of the bound, a mean asked for).

    Raises:
        ConfigError: a claim names runs or a metric that there are none of.
    """
    judged = _family(claims, selected, default_rule, grid_columns)
    others = [name for name in selected["selection"].unique(maintain_order=True) if len(claims) and name]
    families = {name: _family(claims, selected, default_rule, grid_columns, name) for name in others}
    rows = []
    for place, (claim, (effect, p_holm)) in enumerate(zip(claims, judged, strict=True)):
        verdict = decide(effect, p_holm)
        rule = _rules(claim, default_rule)
        elsewhere = {
            name: decide(*family[place]) for name, family in families.items() if by_rule(claim, name) and name != rule
        }
        rows.append(
            _row(claim, effect, p_holm, default_rule)
            | {
                "verdict": str(verdict),
                "rule": rule,
                "other_rules": "; ".join(f"{name}: {other}" for name, other in elsewhere.items()),
                "flips": any(other != verdict for other in elsewhere.values()),
                "changed": changes[place] if changes else "",
                **(protocols[place] if protocols else {}),
            }
        )
    return pl.DataFrame(rows, schema=SCHEMA)


def decide(effect: Effect, p_holm: float) -> ClaimVerdict:
    """The rules of the table above; the interval is the p-values', so that they decide."""
    if not p_holm < SIGNIFICANCE:
        return ClaimVerdict.UNDECIDED
    return ClaimVerdict.SUPPORTED if effect.supports < effect.refutes else ClaimVerdict.REFUTED


def _family(
    claims: Sequence[Claim],
    selected: pl.DataFrame,
    default_rule: str,
    grid_columns: Sequence[str],
    rule: str | None = None,
) -> list[tuple[Effect, float]]:
    """The effect and Holm's p-value of every claim; by another rule, those that may be judged by it."""
    effects = [
        measure(claim, selected, default_rule, grid_columns, rule if rule and by_rule(claim, rule) else None)
        for claim in claims
    ]
    return [(e, float(p)) for e, p in zip(effects, stats.holm([e.p_value for e in effects]), strict=True)]


def _row(claim: Claim, effect: Effect, p_holm: float, default_rule: str) -> dict[str, Any]:
    return {
        "claim": claim.claim,
        "source": claim.source,
        "item": claim.item,
        "question": question(claim, effect.statistic, default_rule),
        "statistic": effect.statistic,
        "bound": bound(claim),
        "n": effect.n,
        "estimate": effect.estimate,
        "ci_low": effect.interval.low,
        "ci_high": effect.interval.high,
        "p": effect.p_value,
        "p_holm": p_holm,
        "mean": effect.mean,
        "median": effect.median,
        "failing_of": effect.failing[0],
        "failing_minus": effect.failing[1],
        "note": "; ".join(_notes(claim, effect)),
    }


def _notes(claim: Claim, effect: Effect) -> list[str]:
    notes = []
    if effect.mean is not None and effect.median is not None and np.isfinite([effect.mean, effect.median]).all():
        if _holds(claim, effect.mean) != _holds(claim, effect.median):
            notes.append(
                f"mean ({effect.mean:.4g}) and median ({effect.median:.4g}) lie on different sides of the bound"
            )
        if effect.statistic == "mean" and claim.metric in HEAVY_TAILED:
            notes.append("a mean of a heavy-tailed metric: read it with the shares of failing runs")
    return notes


def _holds(claim: Claim, value: float) -> bool:
    if claim.within is not None:
        return abs(value) <= claim.within
    return value >= claim.bound if claim.at_least is not None else value <= claim.bound


def bound(claim: Claim) -> str:
    """What a number was held against, in signs.

    >>> bound(Claim(claim="", of=Which(), at_least=0.05))
    '>= 0.05'
    """
    sign = ">=" if claim.at_least is not None else "<=" if claim.at_most is not None else "within"
    return f"{sign} {claim.bound:g}"


def question(claim: Claim, statistic: str, default_rule: str) -> str:
    """What is measured, in words.

    >>> c = Claim(claim="", of=Which(method="pudra"), below=0.1, at_least=0.5)
    >>> question(c, "share", "last")
    'share of runs with f1 < 0.1: pudra by last'
    >>> question(Claim(claim="", of=Which(method="vpu"), minus=Which(method="pn"), at_least=0), "median", "last")
    'median difference of f1: vpu by last minus pn by last'
    """
    if claim.verdicts:
        what = f"share of runs that are {' or '.join(claim.verdicts)}"
    elif claim.below is not None:
        what = f"share of runs with {claim.metric} < {claim.below:g}"
    else:
        what = f"{statistic} {'' if claim.minus is None else 'difference of '}{claim.metric}"
    where = ", best cell" if claim.somewhere else ""
    return f"{what}{where}: {' minus '.join(_side(which, default_rule) for which in claim.sides)}"


def _side(which: Which, default_rule: str) -> str:
    words = (which.method, which.dataset, point_label(which.where))
    name = " ".join(word for word in words if word) or "all runs"
    return f"{name} by {which.selection.name if which.selection else default_rule}"


def _rules(claim: Claim, default_rule: str) -> str:
    names = [side.selection.name if side.selection else default_rule for side in claim.sides]
    return " against ".join(dict.fromkeys(names))
