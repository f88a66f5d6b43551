"""What is recorded of a teacher or a student: one row, with its verdict, and its way as columns of lists."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from jax import Array
from jax import numpy as jnp

from jaxpu import collapse, metrics
from jaxpu.config.base import END
from jaxpu.config.guided import OF_PAIRS, RANKINGS, SCORES, TAILS, TIMES
from jaxpu.runs.job import Run
from jaxpu.train import ProbeInput
from jaxpu.valuation.measure import BINS, EXTREME, OF_AN_EXTREME, PROBE

PATH = ("accuracy", "auc", "log_loss", "kept", *OF_PAIRS[:7])
"""What is recorded of every epoch that was evaluated; nulls where there is no teacher."""

BY_LAMBDA = ("lambda_size", "lambda_risk")
"""Columns of lists: means of |r̂| and r̂ at the last epoch in equal bins of λ."""

TWO_CLASSES = "two_classes"
"""Name of the probe that measures two classes as such."""

PLAIN = ("f1", "f1_best", "auc", "average_precision", "ece", "brier", "log_loss", "accuracy")
PLAIN += ("predicted_positive", "score_mean", "score_sd", "prevalence")
"""What :func:`two_classes` measures, in its order."""

_ORACLE = ("f1", "f1_best", "auc")


def two_classes(seen: ProbeInput) -> Array:
    """:data:`PLAIN` metrics of the test rows by the difference of the two logits; they have a threshold and a rate."""
    z = seen.logits(seen.x_test)
    found = metrics.plain_metrics(z[:, 1] - z[:, 0], seen.data.y[seen.data.test])
    return jnp.stack([found[name] for name in PLAIN])


def record(run: Run, history: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """One row: the last epoch, its verdict, and the way there over the epochs that were evaluated.

    Two classes are measured and judged as such, more by means over them. A filter starves a student if it keeps next to
    nothing: what it keeps is the driver of :func:`jaxpu.collapse.diagnose_run`.
    """
    looked = np.isfinite(np.asarray(history["test_oracle_accuracy"], float))
    history = {name: np.asarray(values, float)[looked] for name, values in history.items()}
    test = {name.removeprefix("test_"): values for name, values in history.items() if name.startswith("test_")}
    known = {name.removeprefix("oracle_"): values for name, values in test.items()}
    if (two := history.get(f"probe_{TWO_CLASSES}")) is not None:
        known |= {name: two[:, place] for place, name in enumerate(PLAIN)}
        test = {f"oracle_{name}" if name in _ORACLE else name: known[name] for name in PLAIN}
    known |= {"kept": history["train_passed"], "entered": history["train_entered"]}
    found = collapse.diagnose_run(
        test | {"loss": history["train_loss"]}, -1, driver=known["kept"], driver_reference=1.0
    )
    epochs = np.flatnonzero(looked) + 1
    valued = _valued(history.get(f"probe_{PROBE}"), known, epochs)
    known |= {name: valued[name] for name in OF_PAIRS if valued[name] is not None}
    row: dict[str, Any] = {"selection": END, "verdict": str(found.verdict)}
    row |= {name: float(known[name][-1]) for name in (*SCORES, "kept", "entered", *OF_PAIRS) if name in known}
    row |= {name: float(values[-1]) for name, values in history.items() if _number(name, values)}
    row |= {name: value for name, value in valued.items() if name not in OF_PAIRS}
    path = {"path_epoch": epochs.tolist()} | {f"path_{name}": _listed(known, name) for name in PATH}
    frame = pl.DataFrame([row | path], infer_schema_length=None)
    absent = [
        pl.lit(None, pl.Float64).alias(name) for name in (*OF_PAIRS, *TIMES, *TAILS, *RANKINGS) if name not in row
    ]
    lists = [*BY_LAMBDA, *_EXTREMES, *(f"path_{name}" for name in PATH)]
    missing = [pl.lit(None, pl.List(pl.Float64)).alias(name) for name in lists if name not in frame.columns]
    return frame.with_columns(
        *absent, *missing, pl.col(*[n for n in lists if n in frame.columns]).cast(pl.List(pl.Float64))
    )


_EXTREMES = tuple(f"extreme_{name}" for name in OF_AN_EXTREME)
"""Columns of lists, in three equal parts: the pairs of the least r̂, of the largest, and of that nearest to 0."""


def _listed(known: Mapping[str, np.ndarray], name: str) -> list[float | None]:
    return known[name].tolist() if name in known else [None] * len(known["kept"])


def _valued(probe: np.ndarray | None, known: Mapping[str, np.ndarray], epochs: np.ndarray) -> dict[str, Any]:
    """What :func:`jaxpu.valuation.measure.measure` found: ways for ``OF_PAIRS``, else what is so at the end."""
    if probe is None:
        return dict.fromkeys(OF_PAIRS)
    scalars = (*OF_PAIRS, *TAILS, *RANKINGS)
    numbers, by_lambda, extremes = np.split(probe, [len(scalars), len(scalars) + 2 * BINS], axis=1)
    ways = dict(zip(scalars, numbers.T, strict=True))
    found: dict[str, Any] = {name: ways[name] for name in OF_PAIRS}
    found |= {name: _finite(ways[name][-1]) for name in (*TAILS, *RANKINGS)}
    found |= dict(zip(BY_LAMBDA, by_lambda[-1].reshape(2, BINS).tolist(), strict=True))
    found |= dict(zip(_EXTREMES, extremes[-1].reshape(len(_EXTREMES), 3 * EXTREME).tolist(), strict=True))
    passed = {
        "overtakes_accuracy": known["accuracy"] > ways["teacher_accuracy"],
        "overtakes_log_loss": known["log_loss"] < ways["teacher_log_loss"],
        "crossing": ways["negative"] < 0.5,
    }
    for name, happened in passed.items():
        found[name] = float(epochs[happened.argmax()] if happened.any() else epochs[-1] + 1)
    return found | {"crossing_later": found["crossing"] - found["overtakes_accuracy"]}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _number(name: str, values: np.ndarray) -> bool:
    return name.startswith(("probe_", "train_loss", "train_relative_risk")) and np.ndim(values) == 1
