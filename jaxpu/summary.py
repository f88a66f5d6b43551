"""From recorded trajectories to answers: which epoch each rule keeps, what it scores there, and the verdicts.

runs (a row a run and epoch) -> selected (a row a run and rule) -> summary and verdicts (a row a method)
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from jaxpu import claims, collapse, stats
from jaxpu.config import Cell, Experiment, expand
from jaxpu.selection import RULES, replay, watched_column

COLLAPSED_F1 = 0.1
"""F1 below which a selected run counts as collapsed, in the sense of seed 000."""

IDENTITY = ("dataset", "method", "cell", "selection")

# Metrics of the summary, in its order: column of `selected` -> name in the summary. Those that are recorded count.
SUMMARISED = {
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


class Tables(NamedTuple):
    """All tables of one experiment; see :func:`tables`."""

    selected: pl.DataFrame
    summary: pl.DataFrame
    verdicts: pl.DataFrame
    rules: pl.DataFrame
    claims: pl.DataFrame


def tables(runs: pl.DataFrame, experiment: Experiment) -> Tables:
    """Replay every selection rule on every run, and summarise over seeds.

    Args:
        runs: recorded rows. experiment: whose rules and methods apply.

    Returns:
        ``selected``: one row a run and rule, with the epoch kept, the F1 that the rule reports, its regret
        against the best epoch recorded of the run (one yardstick for all rules), the test metrics there and the
        verdict with its explanation.
        ``summary``: dataset, method, cell, selection, metric, n, mean, median, sd, ci_low, ci_high (95 % BCa
        bootstrap of the mean; Wilson for the share of runs with F1 below 0.1), iqm, median_ci_low,
        median_ci_high (of F1 only), count. ``verdicts``: one row a method and rule.
        ``rules``: one row a selection rule, over all methods and cells; see :func:`compare_rules`.
        ``claims``: one row a claim of the experiment, as :func:`jaxpu.claims.judge` returns them.
    """
    selected, diagnoses = select(runs, experiment)
    judged = claims.judge(experiment.claims, selected, experiment)
    return Tables(selected, summarise(selected), _verdicts(selected, diagnoses), compare_rules(selected), judged)


def select(runs: pl.DataFrame, experiment: Experiment) -> tuple[pl.DataFrame, list[collapse.Diagnosis]]:
    """Replay every rule on every run: the frame ``selected`` of :func:`tables`, and the diagnosis of each row."""
    cells = {(c.data.name, c.method_name, c.label): c for c in expand(experiment)}
    rows: list[dict[str, Any]] = []
    diagnoses: list[collapse.Diagnosis] = []
    for run in runs.partition_by("run_id", maintain_order=True):
        cell = cells[run["dataset"][0], run["method"][0], run["cell"][0]]
        columns = _columns(run)
        for rule in experiment.selection.rules:
            row, diagnosis = _select_one(run.row(0, named=True), columns, cell, rule)
            rows.append(row)
            diagnoses.append(diagnosis)
    return pl.DataFrame(rows, infer_schema_length=None), diagnoses


def trajectory(run: pl.DataFrame) -> dict[str, np.ndarray]:
    """The recorded columns of one run as :func:`jaxpu.collapse.diagnose_run` takes them."""
    return _trajectory(_columns(run))


def _columns(run: pl.DataFrame) -> dict[str, np.ndarray]:
    return {name: run[name].to_numpy() for name in run.columns if name.startswith(("test_", "val", "train_"))}


def _trajectory(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    test = {name.removeprefix("test_"): v for name, v in columns.items() if name.startswith("test_")}
    return test | {"loss": columns["train_loss"]}


def _select_one(
    first: dict[str, Any], columns: dict[str, np.ndarray], cell: Cell, rule_name: str
) -> tuple[dict[str, Any], collapse.Diagnosis]:
    rule, watched = RULES[rule_name.partition("@")[0]], watched_column(rule_name)
    settings = cell.selection
    epochs = len(columns["train_loss"])
    if watched is None:
        kept, looked_at, defined = epochs - 1, epochs, True
    else:
        kept, looked_at, defined = replay(
            columns[watched], sign=rule.sign, patience=settings.patience, min_delta=settings.min_delta
        )
    reported = columns[f"test_{rule.reported}"]
    test = _trajectory(columns) | {"oracle_f1_decision": reported}
    driver = columns["train_target"] if cell.method.mixup else None
    # a rule judges the run that it would have trained: later epochs are there for other rules' patience
    trained = {name: values[:looked_at] for name, values in test.items()}
    diagnosis = collapse.diagnose_run(trained, kept, driver=None if driver is None else driver[:looked_at])
    row = {name: first[name] for name in ("dataset", "method", "cell", "seed")}
    row |= {
        "selection": rule_name,
        "epoch": kept + 1,
        "epochs_run": looked_at,
        "rule_defined": defined,
        "decision": cell.method.decision,
        "f1": float(reported[kept]),
        "regret": float(np.nanmax(reported) - reported[kept]),
        "verdict": str(diagnosis.verdict),
        "explanation": diagnosis.explanation,
    }
    row |= {name: float(v[kept]) for name, v in columns.items() if name.startswith(("test_", "train_"))}
    return row, diagnosis


def summarise(selected: pl.DataFrame) -> pl.DataFrame:
    """The summary table of selected runs, in long form; see :func:`tables`."""
    rows = []
    for identity, group in selected.group_by(*IDENTITY, maintain_order=True):
        head = dict(zip(IDENTITY, identity, strict=True))
        for column, name in SUMMARISED.items():
            if column not in group.columns:
                continue
            rows.append(head | {"metric": name} | _moments(group[column].cast(pl.Float64).to_numpy(), name == "f1"))
        rows.append(head | {"metric": f"f1_below_{COLLAPSED_F1}"} | _collapse(group["f1"].to_numpy()))
    return pl.DataFrame(rows, infer_schema_length=None)


def _moments(values: np.ndarray, with_median: bool) -> dict[str, float | int | None]:
    known = values[np.isfinite(values)]
    if not known.size:
        return {"n": 0} | dict.fromkeys((*_NUMBERS, "count"))
    interval = stats.mean_interval(known)
    middle = stats.median_interval(known) if with_median else stats.Interval(np.nan, np.nan)
    numbers = {
        "mean": known.mean(),
        "median": np.median(known),
        "sd": known.std(ddof=1) if known.size > 1 else np.nan,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "iqm": stats.interquartile_mean(known),
        "median_ci_low": middle.low,
        "median_ci_high": middle.high,
    }
    return {"n": int(known.size)} | {k: float(v) for k, v in numbers.items()} | {"count": None}


_NUMBERS = ("mean", "median", "sd", "ci_low", "ci_high", "iqm", "median_ci_low", "median_ci_high")


def _collapse(f1: np.ndarray) -> dict[str, float | int | None]:
    rate = collapse.collapse_rate(f1, COLLAPSED_F1)
    empty = dict.fromkeys(_NUMBERS)
    known = {"mean": rate.share, "ci_low": rate.interval.low, "ci_high": rate.interval.high}
    return {"n": rate.n} | empty | known | {"count": rate.occurred}


def compare_rules(selected: pl.DataFrame) -> pl.DataFrame:
    """How the selection rules compare over all runs, whatever the method.

    Returns:
        selection, n_seeds, n_runs, f1 (mean over runs), regret (mean F1 lost against each run's best epoch),
        regret_low, regret_high (95 % BCa bootstrap over seeds, of the seeds' means: the runs of a seed are not
        independent), below and artefacts (runs with F1 below 0.1, and with the verdict selection_artefact).
    """
    rows = []
    for (rule,), group in selected.group_by("selection", maintain_order=True):
        by_seed = group.group_by("seed", maintain_order=True).agg(pl.col("regret").mean()).sort("seed")
        interval = stats.mean_interval(by_seed["regret"])
        rows.append(
            {
                "selection": rule,
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
    return pl.DataFrame(rows, infer_schema_length=None)


def _verdicts(selected: pl.DataFrame, diagnoses: Sequence[collapse.Diagnosis]) -> pl.DataFrame:
    rows = []
    indexed = selected.with_row_index("place")
    for identity, group in indexed.group_by(*IDENTITY, maintain_order=True):
        judged = collapse.judge_method([diagnoses[i] for i in group["place"]])
        failing = judged.failing
        rows.append(
            dict(zip(IDENTITY, identity, strict=True))
            | {
                "verdict": str(judged.verdict),
                "n": failing.n,
                "failing": failing.occurred,
                "rate": failing.share,
                "ci_low": failing.interval.low,
                "ci_high": failing.interval.high,
                "sentence": judged.explanation,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)
