"""Diagnose one set of scores, or one recorded epoch, by the rules of :mod:`jaxpu.collapse.rules`."""

from numpy.typing import ArrayLike

from jaxpu.collapse.explanations import explain_epoch
from jaxpu.collapse.rules import EPOCH_ORDER, Assessment, Metrics, assess
from jaxpu.collapse.scores import score_metrics
from jaxpu.collapse.verdicts import DEFAULT_THRESHOLDS, Diagnosis, Thresholds


def diagnose(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    threshold: float = 0.5,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Diagnosis:
    """Say in what way scores from any program fail.

    Args:
        scores: (n,) scores, larger = more positive.
        labels: (n,) true labels, 0/1 or bool. Without rows the verdict is undefined.
        threshold: A row is predicted positive if its score is above: 0.5 for probabilities, 0 for logits.
        thresholds: The numbers that the rules compare with.

    Returns:
        The diagnosis, by the rules of :mod:`jaxpu.collapse.rules`.

    Raises:
        ValueError: scores and labels are not one-dimensional and of equal length, or labels are not 0/1.

    >>> diagnosis = diagnose([0.41, 0.45, 0.30, 0.20, 0.10], [1, 1, 0, 0, 0])
    >>> print(diagnosis.verdict, [str(flag) for flag in diagnosis.flags])
    threshold_shift ['threshold_shift', 'all_negative']
    >>> print(diagnosis.explanation)
    The ranking is good (AUC 1.000, F1 up to 1.000) but the threshold cuts it badly: F1 0.000, with 0.0 %
    predicted positive where 40.0 % are.
    """
    return diagnose_epoch(score_metrics(scores, labels, threshold=threshold), thresholds=thresholds)


def diagnose_epoch(metrics: Metrics, *, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Diagnosis:
    """Say in what way one epoch fails, from its recorded metrics.

    Args:
        metrics: Recorded columns of one split without its prefix: those that `assess` needs. Quantile
            F1, precision, recall and mean score go into the evidence if they are there, the rest is ignored.
        thresholds: The numbers that the rules compare with.

    Returns:
        The diagnosis.

    Raises:
        ValueError: a metric that the rules need is missing.

    >>> row = {"oracle_f1": 0.0, "oracle_f1_best": 0.6, "oracle_auc": 0.5, "predicted_positive": 0.0,
    ...        "score_sd": 0.0, "prevalence": 0.4}
    >>> print(*diagnose_epoch(row).flags)
    all_negative constant weak_ranking
    """
    return diagnosis_at(assess(metrics, thresholds=thresholds), ())


def diagnosis_at(assessment: Assessment, index: int | tuple[()]) -> Diagnosis:
    """Read the diagnosis of one epoch off an assessment of many.

    Args:
        assessment: From `assess`.
        index: Which epoch; () if the metrics were those of a single one.

    >>> metrics = {"oracle_f1": [0.0, 0.7], "oracle_f1_best": [0.7, 0.8], "oracle_auc": [0.8, 0.9],
    ...            "predicted_positive": [0.0, 0.3], "score_sd": [0.1, 0.2], "prevalence": [0.4, 0.4]}
    >>> print(diagnosis_at(assess(metrics), 1).verdict)
    healthy
    """
    flags = tuple(verdict for verdict in EPOCH_ORDER if assessment.flags[verdict][index])
    evidence = {name: float(values[index]) for name, values in assessment.numbers.items()}
    evidence["collapsed"] = float(assessment.collapsed[index])
    return Diagnosis(flags[0], flags, evidence, explain_epoch(flags, evidence))
