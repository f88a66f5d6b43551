"""Which metrics are heavy-tailed over seeds: declared by metric, never decided from the data."""

from typing import Literal

HEAVY_TAILED: dict[str, str] = dict.fromkeys(
    (
        "f1",
        "regret",
        *(f"test_oracle_f1{end}" for end in ("", "_decision", "_rescue", "_max_shift", "_quantile", "_best")),
        "test_oracle_precision",
        "test_oracle_recall",
        "precision",
        "recall",
        "f1_best",
    ),
    "a run that collapses falls from its usual value to 0, once in many seeds",
)
HEAVY_TAILED |= dict.fromkeys(
    ("test_oracle_log_loss", "log_loss", "train_loss"), "a run that is sure of a wrong label has a loss without bound"
)
HEAVY_TAILED |= dict.fromkeys(
    ("average_precision", "auc"), "of ensembles: a ranking that is inverted falls from 1 to 0"
)
HEAVY_TAILED |= dict.fromkeys(
    ("accuracy", "balanced_accuracy", "kept"),
    "of guided training: a student that starves stays at chance, and its filter keeps all or nothing",
)
HEAVY_TAILED |= dict.fromkeys(
    ("epoch", "epochs_run", "iterations", "ranked_at", "healthy_at", "flipped_at")
    + ("overtakes_accuracy", "overtakes_log_loss", "crossing", "crossing_later"),
    "a time until something happens, which in some runs takes many times as long",
)
"""Columns of ``selected`` of which a mean over seeds cannot be judged, and why: the rare run is not in the sample."""


def statistic_of(metric: str, asked: str | None = None) -> Literal["mean", "median"]:
    """The statistic over seeds: what is asked for, else the median of heavy-tailed metrics and the mean of others.

    >>> statistic_of("f1"), statistic_of("test_oracle_accuracy"), statistic_of("f1", "mean")
    ('median', 'mean', 'mean')
    """
    if asked is not None:
        return "mean" if asked == "mean" else "median"
    return "median" if metric in HEAVY_TAILED else "mean"
