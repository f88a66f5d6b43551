"""From one row a run to what people read: a summary over seeds, verdicts a method, and judged claims."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from jaxpu import claims, collapse, stats
from jaxpu.config import Claim
from jaxpu.config.ensemble import SELECTION

IDENTITY = ("dataset", "method", "cell", "selection")
SUMMARISED = (
    "pr_auc",
    "roc_auc",
    "brier",
    "log_loss",
    "accuracy",
    "kept",
    "ece",
    "f1",
    "f1_best",
    "predicted_positive",
    "score_mean",
    "score_sd",
    "score_min",
    "score_max",
    "w_mean",
    "w_sd",
    "w_min",
    "w_max",
    "b",
    "iterations",
    "flipped_at",
    "flip_theory",
    "ranked_at",
    "healthy_at",
    "heal_theory",
    "slow_updates",
)
"""Columns that are summarised, in this order."""


class Tables(NamedTuple):
    """The tables of one experiment."""

    summary: pl.DataFrame
    verdicts: pl.DataFrame
    claims: pl.DataFrame


def tables(runs: pl.DataFrame, wanted: Sequence[Claim]) -> Tables:
    """Summarise runs over seeds and judge the claims.

    Args:
        runs: one row a run. wanted: the claims to judge.

    Returns:
        ``summary``: dataset, method, cell, selection, metric, n, mean, median, sd, ci_low, ci_high (95 % BCa
        bootstrap of the mean), missing (runs that never got there, of times); for the share of runs ``inverted``
        (ROC-AUC up to ``inverted_auc``) the Wilson interval. ``verdicts``: one row a method and cell, with counts.
        ``claims``: as from :func:`jaxpu.claims.judge_by`.
    """
    groups = list(runs.group_by(*IDENTITY, maintain_order=True))
    summary = [row for identity, group in groups for row in _summary(dict(zip(IDENTITY, identity, strict=True)), group)]
    verdicts = [_verdict(dict(zip(IDENTITY, identity, strict=True)), group) for identity, group in groups]
    judged = claims.judge_by(wanted, runs, SELECTION)
    return Tables(pl.DataFrame(summary, infer_schema_length=None), pl.DataFrame(verdicts), judged)


def _summary(head: dict, group: pl.DataFrame) -> list[dict]:
    rows = [head | {"metric": "inverted"} | _share(group["roc_auc"].to_numpy() <= collapse.Thresholds().inverted_auc)]
    for name in SUMMARISED:
        if name in group.columns and group[name].null_count() < group.height:
            rows.append(head | {"metric": name} | _moments(group[name].cast(pl.Float64).to_numpy()))
    return rows


def _moments(values: np.ndarray) -> dict:
    known = values[np.isfinite(values)]
    if not known.size:
        return {"n": 0, "missing": values.size}
    interval = stats.mean_interval(known)
    return {
        "n": int(known.size),
        "mean": float(known.mean()),
        "median": float(np.median(known)),
        "sd": float(known.std(ddof=1)) if known.size > 1 else float("nan"),
        "ci_low": interval.low,
        "ci_high": interval.high,
        "missing": int(values.size - known.size),
    }


def _share(events: np.ndarray) -> dict:
    interval = stats.wilson(int(events.sum()), events.size)
    return {
        "n": int(events.size),
        "mean": float(events.mean()),
        "median": None,
        "sd": None,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "missing": 0,
    }


def _verdict(head: dict, group: pl.DataFrame) -> dict:
    diagnoses = [
        collapse.Diagnosis(collapse.Verdict(word), (collapse.Verdict(word),), {}, "") for word in group["verdict"]
    ]
    judged = collapse.judge_method(diagnoses)
    return head | {
        "verdict": str(judged.verdict),
        "n": judged.failing.n,
        "failing": judged.failing.occurred,
        "rate": judged.failing.share,
        "ci_low": judged.failing.interval.low,
        "ci_high": judged.failing.interval.high,
        "sentence": judged.explanation,
    }
