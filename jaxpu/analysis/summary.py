"""From recorded runs to answers: the tables of an experiment of whatever kind.

runs -> selected (a row a run and rule) -> summary and verdicts (a row a cell and rule), rules, claims
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from jaxpu import collapse
from jaxpu.analysis import claims, rates, stats
from jaxpu.analysis.protocol import changed, protocol
from jaxpu.analysis.selection import select
from jaxpu.config import AnyExperiment, SelectionConfig

COLLAPSED_F1 = 0.1
"""F1 below which a selected run counts as collapsed."""

NAMES = {
    "f1": "f1",
    "test_oracle_accuracy": "accuracy",
    "test_oracle_balanced_accuracy": "balanced_accuracy",
    "test_oracle_precision": "precision",
    "test_oracle_recall": "recall",
    "test_oracle_auc": "auc",
    "test_oracle_average_precision": "average_precision",
    "test_oracle_f1_best": "f1_best",
    "test_oracle_f1_quantile": "f1_quantile",
    "test_oracle_ece": "ece",
    "test_oracle_brier": "brier",
    "test_oracle_log_loss": "log_loss",
    "test_predicted_positive": "predicted_positive",
    "test_predicted_most": "predicted_most",
    "test_outside_auc": "outside_auc",
    "test_outside_confidence": "outside_confidence",
    "regret": "regret",
    "epoch": "epoch",
    "epochs_run": "epochs_run",
}
"""Columns of ``selected`` that come first in the summary, in its order, and what they are called there."""

_LEFT_OUT = {f"test_oracle_f1{end}" for end in ("", "_decision", "_rescue", "_max_shift")}
# one of them is the f1 that the method and the rule report

_NUMBERS: tuple[str, ...] = ("mean", "median", "sd", "ci_low", "ci_high", "iqm", "median_ci_low", "median_ci_high")


class Tables(NamedTuple):
    """All tables of one experiment; see :func:`tables`."""

    selected: pl.DataFrame
    summary: pl.DataFrame
    verdicts: pl.DataFrame
    rules: pl.DataFrame
    claims: pl.DataFrame


def tables(runs: pl.DataFrame, experiment: AnyExperiment, claims_then: Mapping[str, str] | None = None) -> Tables:
    """Replay every selection rule on every run, summarise over seeds, and judge the claims.

    Args:
        runs: recorded rows, see :func:`jaxpu.analysis.selection.select`. experiment: of any kind.
        claims_then: :func:`jaxpu.config.claims_digest` of when the runs were made, if it was recorded; what was changed
            since is said in the table of claims.

    Returns:
        Every frame names runs by typed columns: ``dataset``, ``method``, the experiment's grid columns, ``seed``
        and ``selection``, the name of a rule.

        ``selected``: one row a run and rule, with the epoch kept, the F1 that the rule reports, its regret
        against the best epoch recorded of the run (one yardstick for all rules), the test metrics there and the
        verdict with its explanation. What needs labels is not there without them; the verdict is then one of what P
        and U tell of the validation rows.
        ``summary``: dataset, method, grid columns, selection, metric, threshold, n, mean, median, sd, ci_low, ci_high
        (95 % BCa bootstrap of the mean; Wilson for shares of runs), iqm, median_ci_low, median_ci_high (of F1 only),
        count (of shares), missing (runs that have no finite value). Shares are ``f1_below`` its threshold, and
        ``inverted``: ROC-AUC at most that of :class:`jaxpu.collapse.Thresholds`.
        ``verdicts``: one row a cell and rule: verdict, n, failing, rate, ci_low, ci_high, sentence.
        ``rules``: one row a selection rule, over all methods and cells; see :func:`compare_rules`.
        ``claims``: one row a claim, see :func:`jaxpu.analysis.claims.judge`.
    """
    selected, diagnoses = select(runs, experiment)
    identity = ("dataset", "method", *experiment.grid_columns, "selection")
    return Tables(
        selected,
        summarise(selected, identity),
        _verdicts(selected, identity, diagnoses),
        compare_rules(selected, getattr(experiment, "selection", None)),
        claims.judge(
            experiment.claims,
            selected,
            experiment.rules[0],
            grid_columns=experiment.grid_columns,
            protocols=[protocol(claim, experiment) for claim in experiment.claims],
            changes=changed(experiment, claims_then),
        ),
    )


def summarise(selected: pl.DataFrame, identity: Sequence[str]) -> pl.DataFrame:
    """The summary table of selected runs, in long form; see :func:`tables`."""
    rows: list[dict[str, Any]] = []
    samples: dict[int, tuple[str, np.ndarray]] = {}
    for values, group in selected.group_by(*identity, maintain_order=True):
        head = dict(zip(identity, values, strict=True))
        for column, name in _metrics(group, identity):
            found = group[column].cast(pl.Float64).to_numpy()
            known = found[np.isfinite(found)]
            if known.size:
                samples[len(rows)] = name, known
            rows.append(head | {"metric": name, "n": known.size, "missing": found.size - known.size})
        rows += [head | share for share in _shares(group)]
    for place, numbers in _described(samples):
        rows[place] |= numbers
    schema = {name: selected.schema[name] for name in identity} | _SCHEMA
    return pl.DataFrame(rows, schema=schema)


_SCHEMA: dict[str, Any] = {
    "metric": pl.String,
    "threshold": pl.Float64,
    "n": pl.Int64,
    **dict.fromkeys(_NUMBERS, pl.Float64),
    "count": pl.Int64,
    "missing": pl.Int64,
}


def _metrics(group: pl.DataFrame, identity: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The columns that are summarised, and their names: those of :data:`NAMES`, then whatever else was recorded."""
    first = {name: column for column, name in NAMES.items() if column in group.columns}
    by_rules = "rule_defined" in group.columns  # then what training recorded is there, too
    for column, kind in group.schema.items():
        known = column in NAMES or column in _LEFT_OUT or column in identity or column == "seed"
        wanted = column.startswith(("test_", "probe_", "val_")) if by_rules else kind.is_numeric()
        if wanted and not known and group[column].null_count() < group.height:
            name = column.removeprefix("test_").removeprefix("val_").removeprefix("oracle_")
            first.setdefault(name, column)
    yield from ((column, name) for name, column in first.items())


def _described(samples: Mapping[int, tuple[str, np.ndarray]]) -> Iterator[tuple[int, dict[str, float]]]:
    """The moments of samples with their keys, all of one size at once: they share their resampling."""
    by_size: dict[tuple[int, bool], list[int]] = {}
    for place, (name, values) in samples.items():
        by_size.setdefault((values.size, name == "f1"), []).append(place)
    for (size, with_median), places in by_size.items():
        stacked = np.stack([samples[place][1] for place in places])
        low, high = stats.mean_intervals(stacked)
        middle = stats.median_intervals(stacked) if with_median else stats.Interval(*np.full((2, len(places)), np.nan))
        deviations = stacked.std(-1, ddof=1) if size > 1 else np.full(len(places), np.nan)
        columns = (stacked.mean(-1), np.median(stacked, axis=-1), deviations, low, high)
        numbers = np.stack([*columns, stats.interquartile_means(stacked), *middle], axis=1)
        yield from (
            (place, dict(zip(_NUMBERS, row, strict=True))) for place, row in zip(places, numbers.tolist(), strict=True)
        )


def _shares(group: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Shares of runs that went wrong, with Wilson's interval."""
    if "auc" in group.columns:
        inverted = group["auc"].to_numpy() <= collapse.Thresholds().inverted_auc
        yield {"metric": "inverted"} | _rate(rates.rate(int(inverted.sum()), inverted.size))
    if "f1" in group.columns and "regret" in group.columns:
        below = rates.collapse_rate(group["f1"].to_numpy(), COLLAPSED_F1)
        yield {"metric": "f1_below", "threshold": COLLAPSED_F1} | _rate(below)


def _rate(rate: rates.Rate) -> dict[str, Any]:
    low, high = rate.interval
    return {"n": rate.n, "mean": rate.share, "ci_low": low, "ci_high": high, "count": rate.occurred, "missing": 0}


def compare_rules(selected: pl.DataFrame, settings: SelectionConfig | None) -> pl.DataFrame:
    """How the selection rules compare over all runs, whatever the method; empty where there are none, or no labels.

    Returns:
        selection, rule, validation (share of the training part; null = the first), n_seeds, n_runs, f1 (mean over
        runs), regret (mean F1 lost against each run's best epoch), regret_low, regret_high (95 % BCa bootstrap over
        seeds, of the seeds' means: the runs of a seed are not independent), below and artefacts (runs with F1 below
        0.1, and with the verdict selection_artefact).
    """
    if settings is None or "f1" not in selected.columns:
        return pl.DataFrame()
    choices = {choice.name: choice for choice in settings.rules}
    rows = []
    for (name,), group in selected.group_by("selection", maintain_order=True):
        by_seed = group.group_by("seed", maintain_order=True).agg(pl.col("regret").mean()).sort("seed")
        interval = stats.mean_interval(by_seed["regret"])
        rows.append(
            {
                "selection": name,
                "rule": choices[str(name)].rule,
                "validation": choices[str(name)].validation,
                "n_seeds": by_seed.height,
                "n_runs": group.height,
                "f1": group["f1"].mean(),
                "regret": group["regret"].mean(),
                "regret_low": interval.low,
                "regret_high": interval.high,
                "below": int((~(group["f1"].to_numpy() >= COLLAPSED_F1)).sum()),  # in polars, NaN >= 0.1
                "artefacts": int((group["verdict"] == "selection_artefact").sum()),
            }
        )
    return pl.DataFrame(rows, schema_overrides={"validation": pl.Float64}, infer_schema_length=None)


def _verdicts(selected: pl.DataFrame, identity: Sequence[str], diagnoses: Sequence[collapse.Diagnosis]) -> pl.DataFrame:
    if not diagnoses:
        return pl.DataFrame()
    rows = []
    indexed = selected.filter(pl.col("verdict").is_not_null()).with_row_index("place")
    for values, group in indexed.group_by(*identity, maintain_order=True):
        judged = rates.judge_method([diagnoses[i] for i in group["place"]])
        failing = judged.failing
        rows.append(
            dict(zip(identity, values, strict=True))
            | {
                "verdict": str(judged.verdict),
                "count": judged.rates[judged.verdict].occurred if judged.verdict in judged.rates else 0,
                "n": failing.n,
                "failing": failing.occurred,
                "rate": failing.share,
                "ci_low": failing.interval.low,
                "ci_high": failing.interval.high,
                "sentence": judged.explanation,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)
