"""Which epoch of a run is kept: rules replayed on recorded trajectories, each with its patience.

A rule reads one recorded column, an epoch improves on it when it beats the best so far by more than
``min_delta``, and the rule stops once ``patience`` epochs have passed without improvement. Training itself
(:mod:`jaxpu.train`) follows the same rule on the device; here it is replayed in NumPy.

``val_f1_rescue`` is the rule of the code behind seed 000: predictions of one class are silently
re-thresholded before F1 is computed, on validation and on test alike. It is kept to reproduce that code,
and to show what it does; it is not a recommendation.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Rule(NamedTuple):
    """A selection rule: the recorded column it watches, its direction, and the test F1 that it reports.

    Attributes:
        column: recorded column without split prefix, read on the validation set; None = the last epoch.
        sign: +1 if larger is better, -1 if smaller is better.
        reported: test column that counts as "the F1" of a run selected by this rule.
        label_free: whether the rule needs no true labels.
        any_task: whether it is there for many classes, too; ``val_f1`` then means the mean F1 of the classes.
        meaning: one line for people.
    """

    column: str | None
    sign: int
    reported: str
    label_free: bool
    meaning: str
    any_task: bool = False


class Selected(NamedTuple):
    """What a rule did on one trajectory: 0-based epoch kept, and the number of epochs it looked at."""

    epoch: int
    epochs_run: int
    defined: bool


_F1 = "oracle_f1_decision"

RULES: dict[str, Rule] = {
    "last": Rule(None, 1, _F1, True, "the last epoch trained", any_task=True),
    "val_f1": Rule(
        _F1, 1, _F1, False, "best validation F1 on true labels, at the method's own threshold", any_task=True
    ),
    "val_accuracy": Rule("oracle_accuracy", 1, _F1, False, "best validation accuracy on true labels", any_task=True),
    "val_f1_rescue": Rule(
        "oracle_f1_rescue",
        1,
        "oracle_f1_rescue",
        False,
        "the legacy rule: validation F1, one-class predictions re-thresholded at the π-quantile",
    ),
    "pu_accuracy": Rule("proxy_pu_accuracy", 1, _F1, True, "best validation accuracy estimated from P and U"),
    "pu_auc": Rule("proxy_pu_auc", 1, _F1, True, "best validation AUC estimated from P and U"),
    "nn_risk": Rule("proxy_nn_risk", -1, _F1, True, "least validation non-negative risk"),
    "variational": Rule("proxy_variational", -1, _F1, True, "least validation variational loss"),
}


def replay(
    values: Float[np.ndarray, " epochs"],
    *,
    sign: int = 1,
    patience: int | None = None,
    min_delta: float = 0.0,
) -> Selected:
    """Replay one rule on one recorded column.

    An epoch improves when ``sign * value > best + min_delta``; NaN never improves. The rule stops at the
    first epoch that lies ``patience`` epochs after the best. A column without a single number selects the
    last epoch and says ``defined=False``.

    Args:
        values: the column, one value an epoch; only epochs that were run.
        sign: +1 if larger is better, -1 if smaller is better.
        patience: epochs without improvement after which the rule stops; None looks at all epochs.
        min_delta: least improvement that counts.

    Raises:
        ValueError: for an empty trajectory, or a patience below 1.

    >>> replay(np.array([0.87, 0.93, 0.33, 0.75, 0.90, 0.93]), patience=4)
    Selected(epoch=1, epochs_run=6, defined=True)
    >>> replay(np.array([3.0, 1.0, 2.0]), sign=-1)
    Selected(epoch=1, epochs_run=3, defined=True)
    """
    if len(values) == 0:
        raise ValueError("expected a trajectory of at least one epoch, got none; was the run recorded?")
    if patience is not None and patience < 1:
        raise ValueError(f"expected patience >= 1 (or None), got {patience}")
    best, best_epoch = -np.inf, -1
    epoch = 0
    for epoch, value in enumerate(sign * np.asarray(values, dtype=np.float64)):
        if value > best + min_delta:
            best, best_epoch = value, epoch
        if patience is not None and epoch - max(best_epoch, -1) >= patience:
            break
    if best_epoch < 0:
        return Selected(epoch, epoch + 1, False)
    return Selected(best_epoch, epoch + 1, True)


def watched_column(rule: str) -> str | None:
    """The recorded column that a rule reads, with its validation set: ``val_f1@0.05`` reads ``val@0.05_...``.

    Raises:
        ValueError: for an unknown rule, with the choices.

    >>> watched_column("val_f1_rescue"), watched_column("pu_auc@0.05"), watched_column("last")
    ('val_oracle_f1_rescue', 'val@0.05_proxy_pu_auc', None)
    """
    name, _, size = rule.partition("@")
    if name not in RULES:
        raise ValueError(f"unknown selection rule {name!r}; choose from {', '.join(RULES)}")
    column = RULES[name].column
    if column is None:
        return None
    return f"val@{size}_{column}" if size else f"val_{column}"
