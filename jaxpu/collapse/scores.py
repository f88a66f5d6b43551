"""The numbers that the verdicts need, from anyone's scores and labels (NumPy only).

Names are those of the recorded columns without their split ("oracle_f1" for "test_oracle_f1"), so that scores
from another program and a recorded run meet the same rules.
"""

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike


def score_metrics(scores: ArrayLike, labels: ArrayLike, *, threshold: float = 0.5) -> dict[str, float]:
    """Measure one set of scores against true labels.

    A row is predicted positive if its score > threshold; F1 = 2 TP / (2 TP + FP + FN). ``oracle_f1_best`` is
    the largest F1 over all thresholds, always answering positive included; ``oracle_f1_quantile`` calls
    the πn highest scores positive (all that tie with the last of them too); ``oracle_auc`` counts a tie as ½.

    Args:
        scores: (n,) scores, larger = more positive.
        labels: (n,) true labels, 0/1 or bool.
        threshold: 0.5 for probabilities, 0 for logits.

    Returns:
        oracle_accuracy, oracle_precision (NaN if nothing is predicted positive), oracle_recall, oracle_f1,
        oracle_f1_quantile, oracle_f1_best, oracle_auc, predicted_positive, prevalence (π), score_mean and
        score_sd. If a score is NaN or infinite all but prevalence are NaN. If the labels hold one class only,
        every oracle_ number is NaN; with n = 0 so are the shares and the mean, and score_sd is 0.

    Raises:
        ValueError: scores and labels are not one-dimensional and of equal length, labels are not 0/1, or the
            threshold is not finite.

    >>> metrics = score_metrics([0.9, 0.4, 0.3, 0.1], [1, 1, 0, 0])
    >>> round(metrics["oracle_f1"], 3), metrics["oracle_f1_best"], metrics["oracle_auc"]
    (0.667, 1.0, 1.0)
    """
    if not np.isfinite(threshold):
        raise ValueError(f"threshold is {threshold}, expected a finite number; 0.5 for probabilities, 0 for logits")
    values, positive = _checked(scores, labels)
    metrics: dict[str, float] = dict.fromkeys(_NAMES, float("nan"))
    if not positive.size:
        return metrics | {"score_sd": 0.0}
    metrics["prevalence"] = float(positive.mean())
    if not np.isfinite(values).all():
        return metrics
    scale = max(1.0, float(np.abs(values).max()) / 1e150)  # so that squares and sums of finite scores are finite
    metrics |= {"score_mean": scale * float((values / scale).mean()), "score_sd": scale * float((values / scale).std())}
    metrics["predicted_positive"] = float((values > threshold).mean())
    if 0 < metrics["prevalence"] < 1:
        metrics |= _against_labels(values, positive, threshold)
    return metrics


def score_trajectory(
    scores: ArrayLike, labels: ArrayLike, *, threshold: float = 0.5
) -> dict[str, Float[np.ndarray, " epochs"]]:
    """Measure the scores of every epoch of a run, as `diagnose_run` wants them.

    Args:
        scores: (epochs, n) scores, one row an epoch.
        labels: (n,) true labels, 0/1 or bool.
        threshold: 0.5 for probabilities, 0 for logits.

    Returns:
        The metrics of `score_metrics`, each an array with one entry an epoch.

    Raises:
        ValueError: scores are not of shape (epochs ≥ 1, n), or as in `score_metrics`.

    >>> score_trajectory([[0.1, 0.2], [0.2, 0.9]], [0, 1])["oracle_f1"].tolist()
    [0.0, 1.0]
    """
    epochs = np.asarray(scores)
    if epochs.ndim != 2 or not len(epochs):
        raise ValueError(f"expected scores of shape (epochs, n), at least one epoch; got shape {epochs.shape}")
    rows = [score_metrics(row, labels, threshold=threshold) for row in epochs]
    return {name: np.array([row[name] for row in rows]) for name in _NAMES}


_NAMES = (
    "oracle_accuracy",
    "oracle_precision",
    "oracle_recall",
    "oracle_f1",
    "oracle_f1_quantile",
    "oracle_f1_best",
    "oracle_auc",
    "predicted_positive",
    "prevalence",
    "score_mean",
    "score_sd",
)


def _against_labels(
    values: Float[np.ndarray, " n"], positive: Bool[np.ndarray, " n"], threshold: float
) -> dict[str, float]:
    predicted = values > threshold
    hits, calls, positives = int((predicted & positive).sum()), int(predicted.sum()), int(positive.sum())
    at_quantile = values >= np.sort(values)[-positives]
    quantile_hits = int((at_quantile & positive).sum())
    best, auc = _ranking(values, positive)
    return {
        "oracle_accuracy": float((predicted == positive).mean()),
        "oracle_precision": hits / calls if calls else float("nan"),
        "oracle_recall": hits / positives,
        "oracle_f1": 2 * hits / (calls + positives),
        "oracle_f1_quantile": 2 * quantile_hits / (int(at_quantile.sum()) + positives),
        "oracle_f1_best": best,
        "oracle_auc": auc,
    }


def _ranking(values: Float[np.ndarray, " n"], positive: Bool[np.ndarray, " n"]) -> tuple[float, float]:
    """Best F1 over all thresholds, and AUC, from one sort."""
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    last_of_tie = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), values.size - 1)
    hits = np.append(0, np.cumsum(positive[order])[last_of_tie])
    false_alarms = np.append(0, last_of_tie + 1) - hits
    positives, negatives = hits[-1], false_alarms[-1]
    best = np.max(2 * hits / (hits + false_alarms + positives))
    area = np.sum(np.diff(false_alarms) * (hits[1:] + hits[:-1]) / 2)
    return float(best), float(area / (positives * negatives))


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(labels)
    if values.ndim != 1 or values.shape != truth.shape:
        raise ValueError(
            f"expected scores and labels of one shape (n,); got {values.shape} and {truth.shape}: "
            "squeeze a trailing axis, one score a row"
        )
    if not np.isin(truth, (0, 1)).all():
        found = np.unique(truth)[:5].tolist()
        raise ValueError(f"expected labels 0 and 1 (or bool); got {found}: map the positive class to 1")
    return values, truth.astype(bool)
