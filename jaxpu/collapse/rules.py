"""The rules for one set of scores or one epoch: in what way is this classifier failing?

The symbols: π the share of positives, q the share predicted positive, F1 at the threshold in use, F1* at the
best threshold, F1₊ = 2π / (1 + π) that of always answering positive. The threshold "cuts well" if neither
class is missing from the predictions, F1 ≥ healthy_share · F1* and F1 > F1₊. Scores "have no spread" if their
standard deviation is at most constant_spread times that of the labels, √(π(1 − π)), and the threshold does
not cut well.

===============  ====================================================================================
verdict          rule
===============  ====================================================================================
diverged         a score is NaN or infinite; nothing else is asked
undefined        the labels are of one class, so F1 and AUC say nothing; nothing else is asked
inverted         AUC ≤ inverted_auc, with spread
threshold_shift  AUC ≥ good_auc, with spread, but the threshold does not cut well
all_negative     q ≤ one_class · π: next to nothing is predicted positive
all_positive     1 − q ≤ one_class · (1 − π)
constant         no spread
weak_ranking     inverted_auc < AUC < good_auc
healthy          AUC ≥ good_auc and the threshold cuts well
===============  ====================================================================================

Read downwards, the first rule that holds is the verdict; all that hold are its flags. So the cause goes
before the symptom: an all-negative classifier with a good ranking is a threshold_shift with the flag
all_negative, and a constant one is all_negative with the flag constant. A classifier is "collapsed" if it is
diverged, inverted, constant, all_negative or all_positive, or if it is not healthy and F1 < collapsed_f1.

Many classes are judged by the means over them, F1 at the largest logit and AUC of class against rest. There is no
threshold to be moved, so F1* is F1, and the class predicted most often takes the place of both one-class rules: the
decision "cuts well" unless nearly all rows, all but one_class of those of the other classes, are predicted as it.

Where no true label is known, P, U and the given prior are judged: :mod:`jaxpu.collapse.label_free`. Verdicts on whole
runs are in :mod:`jaxpu.collapse.runs`.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

from jaxpu.collapse import label_free
from jaxpu.collapse.columns import Metrics, Numbers, aligned, require
from jaxpu.collapse.flags import always_positive, epoch_flags, flags_of_many
from jaxpu.collapse.verdicts import DEFAULT_THRESHOLDS, Thresholds, Verdict

EPOCH_ORDER: tuple[Verdict, ...] = (
    Verdict.DIVERGED,
    Verdict.UNDEFINED,
    Verdict.INVERTED,
    Verdict.THRESHOLD_SHIFT,
    Verdict.PRIOR_MISMATCH,
    Verdict.ALL_NEGATIVE,
    Verdict.ALL_POSITIVE,
    Verdict.CONSTANT,
    Verdict.WEAK_RANKING,
    Verdict.HEALTHY,
)
"""Precedence: of the epoch rules that hold, the first one here is the verdict."""

_COLLAPSED = (
    Verdict.DIVERGED,
    Verdict.INVERTED,
    Verdict.ALL_NEGATIVE,
    Verdict.ALL_POSITIVE,
    Verdict.CONSTANT,
)
_NEEDED = ("oracle_f1", "oracle_f1_best", "oracle_auc", "predicted_positive", "score_sd")
_FOR_PREVALENCE = ("oracle_accuracy", "oracle_precision")
_NEEDED_OF_MANY = ("oracle_f1", "oracle_auc", "predicted_most", "largest_class", "score_sd")
_OPTIONAL = ("prevalence", "oracle_f1_decision", "oracle_f1_quantile", "oracle_recall", "score_mean")


class Assessment(NamedTuple):
    """What the rules say about every epoch, each array in the shape of the metrics.

    Attributes:
        numbers: What they looked at, names without "oracle_": f1 (at the method's own decision rule where
            that is recorded), f1_best, auc, predicted_positive (NaN where it belongs to another decision than
            f1), score_sd, prevalence, f1_always_positive, and f1_quantile, precision, recall, score_mean if
            given.
        flags: For each epoch verdict whether its rule holds.
        collapsed: Whether the epoch is collapsed.
    """

    numbers: Numbers
    flags: dict[Verdict, Bool[np.ndarray, "..."]]
    collapsed: Bool[np.ndarray, "..."]

    def of(self, epochs: Any) -> "Assessment":
        """Of some of the epochs; ``epochs`` is whatever picks them from an array."""
        numbers = {name: values[epochs] for name, values in self.numbers.items()}
        return Assessment(numbers, {v: holds[epochs] for v, holds in self.flags.items()}, self.collapsed[epochs])


def assess(metrics: Metrics, *, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Assessment:
    """Apply every epoch rule to arrays of metrics: one epoch, a run, or (runs, epochs) at once.

    Args:
        metrics: oracle_f1, oracle_f1_best, oracle_auc, predicted_positive, score_sd, and prevalence or, to
            derive it from, oracle_accuracy and oracle_precision: π = 1 − accuracy − q + 2 q precision. All
            of one shape. If oracle_f1_decision is there (F1 at a method's own decision rule), it is judged in
            the place of oracle_f1; where the two differ, q belongs to another decision and neither
            all_negative nor all_positive can hold. Of many classes oracle_f1, oracle_auc, predicted_most,
            largest_class and score_sd, as :func:`jaxpu.metrics.multiclass.oracle_metrics` records them. Without
            true labels those of :mod:`jaxpu.collapse.label_free`.
        thresholds: The numbers that the rules compare with.

    Returns:
        The assessment.

    Raises:
        ValueError: a metric is missing, or the shapes differ.

    >>> row = {"oracle_f1": 0.5, "oracle_f1_best": 0.6, "oracle_auc": 0.8, "score_sd": 0.1,
    ...        "predicted_positive": 0.5, "oracle_accuracy": 0.5, "oracle_precision": 0.5}
    >>> assessment = assess(row)
    >>> float(assessment.numbers["prevalence"]), bool(assessment.flags[Verdict.THRESHOLD_SHIFT])
    (0.5, True)
    """
    if "oracle_f1" not in metrics and "unlabeled_positive" in metrics:
        numbers = label_free.numbers(metrics)
        flags = label_free.flags(numbers, thresholds)
    elif "predicted_most" in metrics:
        numbers = _numbers_of_many(metrics)
        flags = flags_of_many(numbers, thresholds)
    else:
        numbers = _numbers(metrics)
        flags = {verdict: np.asarray(holds) for verdict, holds in epoch_flags(numbers, thresholds).items()}
    low = ~flags[Verdict.HEALTHY] & (numbers["f1"] < thresholds.collapsed_f1)
    collapsed = np.any([low, *(flags[verdict] for verdict in _COLLAPSED)], axis=0)
    return Assessment(numbers, flags, np.asarray(collapsed))


def epoch_verdicts(metrics: Metrics, *, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Shaped[np.ndarray, "..."]:
    """Name the verdict of every epoch, as an array of strings in the shape of the metrics.

    Args:
        metrics: As in `assess`.
        thresholds: The numbers that the rules compare with.

    Raises:
        ValueError: a metric is missing, or the shapes differ.

    >>> metrics = {"oracle_f1": [0.0, 0.7], "oracle_f1_best": [0.7, 0.8], "oracle_auc": [0.8, 0.9],
    ...            "predicted_positive": [0.0, 0.3], "score_sd": [0.1, 0.2], "prevalence": [0.4, 0.4]}
    >>> epoch_verdicts(metrics).tolist()
    ['threshold_shift', 'healthy']
    """
    flags = assess(metrics, thresholds=thresholds).flags
    return np.select([flags[verdict] for verdict in EPOCH_ORDER], [str(verdict) for verdict in EPOCH_ORDER], "")


def collapsed_epochs(metrics: Metrics, *, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Bool[np.ndarray, "..."]:
    """Say which epochs are collapsed, by the definition at the head of this module.

    Args:
        metrics: As in `assess`.
        thresholds: The numbers that the rules compare with.

    Raises:
        ValueError: a metric is missing, or the shapes differ.

    >>> metrics = {"oracle_f1": [0.05, 0.6], "oracle_f1_best": [0.8, 0.8], "oracle_auc": [0.9, 0.9],
    ...            "predicted_positive": [0.02, 0.2], "score_sd": [0.1, 0.2], "prevalence": [0.4, 0.4]}
    >>> collapsed_epochs(metrics).tolist()
    [True, False]
    """
    return assess(metrics, thresholds=thresholds).collapsed


def fallen_epochs(metrics: Metrics, *, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Bool[np.ndarray, " epochs"]:
    """Say which epochs of a run are collapsed after it was healthy: before that a run has not started.

    Args:
        metrics: As in `assess`, arrays (epochs,).
        thresholds: The numbers that the rules compare with.

    Raises:
        ValueError: a metric is missing, or the shapes differ.

    >>> metrics = {"oracle_f1": [0.0, 0.7, 0.0], "oracle_f1_best": [0.7, 0.8, 0.7], "oracle_auc": [0.8, 0.9, 0.8],
    ...            "predicted_positive": [0.0, 0.3, 0.0], "score_sd": [0.1, 0.2, 0.1], "prevalence": [0.4, 0.4, 0.4]}
    >>> fallen_epochs(metrics).tolist()
    [False, False, True]
    """
    return fallen(assess(metrics, thresholds=thresholds))


def fallen(run: Assessment) -> Bool[np.ndarray, " epochs"]:
    """:func:`fallen_epochs` of a run that is assessed."""
    return run.collapsed & (np.cumsum(run.flags[Verdict.HEALTHY]) > 0)


def _numbers_of_many(metrics: Metrics) -> Numbers:
    require(metrics, _NEEDED_OF_MANY, ", ".join(_NEEDED_OF_MANY))
    columns = aligned(metrics, (*_NEEDED_OF_MANY, "score_mean"))
    unknown = np.full_like(columns["oracle_f1"], np.nan)
    return {name.removeprefix("oracle_"): column for name, column in columns.items()} | {
        "f1_best": columns["oracle_f1"],
        "predicted_positive": unknown,
        "prevalence": unknown,
        "f1_always_positive": unknown,
    }


def _numbers(metrics: Metrics) -> Numbers:
    needed = _NEEDED if "prevalence" in metrics else (*_NEEDED, *_FOR_PREVALENCE)
    require(metrics, needed, f"{', '.join(_NEEDED)}, and prevalence or {' and '.join(_FOR_PREVALENCE)}")
    columns = aligned(metrics, (*_NEEDED, *_FOR_PREVALENCE, *_OPTIONAL))
    prevalence = columns["prevalence"] if "prevalence" in columns else _prevalence(columns)
    f1 = columns.pop("oracle_f1_decision", columns["oracle_f1"])
    here = f1 == columns["oracle_f1"]
    return {name.removeprefix("oracle_"): column for name, column in columns.items()} | {
        "f1": f1,
        "predicted_positive": np.where(here, columns["predicted_positive"], np.nan),
        **{name: np.asarray(column) for name, column in always_positive(prevalence).items()},
    }


def _prevalence(columns: Numbers) -> Float[np.ndarray, "..."]:
    """π from accuracy = TP + TN = q precision + (1 − π − q (1 − precision)), in shares of the rows."""
    predicted = columns["predicted_positive"]
    hits = np.where(predicted > 0, predicted * columns["oracle_precision"], 0.0)
    return np.asarray(np.clip(1 - columns["oracle_accuracy"] - predicted + 2 * hits, 0.0, 1.0))
