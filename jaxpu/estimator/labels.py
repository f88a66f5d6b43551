"""Which value of y means labeled: one rule for the estimators of this room."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from jaxpu.errors import shown


class Labels(NamedTuple):
    """The labels of rows.

    Attributes:
        classes: the two values, sorted. positive: the one that means labeled. labeled: where it stands (n,).
    """

    classes: np.ndarray
    positive: Any
    labeled: Bool[np.ndarray, " n"]


class LabelWarning(UserWarning):
    """Nobody said which of two words means labeled, and one was taken."""


def labels_of(y: Any, n: int, pos_label: Any = None, *, guess: bool = False) -> Labels:
    """Labels of n rows, checked.

    Args:
        y: two values. pos_label: the one that means labeled; None: the larger of two numbers, True.
        guess: whether of two words the later in order is taken, with a warning; else that is an error.

    Raises:
        ValueError: y is missing, of another length or number of classes, or nobody knows what means labeled.

    >>> labels_of([-1, 1, -1], 3).labeled.tolist()
    [False, True, False]
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: which rows are labeled?")
    any_kind: Any = None
    y = column_or_1d(check_array(y, ensure_2d=False, dtype=any_kind, input_name="y"), warn=True)
    if len(y) != n:
        raise ValueError(f"inconsistent numbers of samples: X has {n}, y has {len(y)}")
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) != 2:
        what = "one class" if len(classes) == 1 else f"{len(classes)} classes"
        kind = (
            ""
            if len(classes) == 1
            else "Only binary classification is supported. The type of the target is multiclass. "
        )
        raise ValueError(f"{kind}y has {what}, {shown(classes.tolist())}; expected two: labeled and unlabeled")
    positive = _positive(classes, pos_label, guess)
    return Labels(classes, positive, np.asarray(y == positive))


def _positive(classes: np.ndarray, pos_label: Any, guess: bool) -> Any:
    if pos_label is not None:
        if pos_label not in classes.tolist():
            raise ValueError(f"pos_label is {pos_label!r}, expected one of {shown(classes.tolist())}")
        return pos_label
    if not (np.issubdtype(classes.dtype, np.number) or classes.dtype == bool):
        said = f"y holds {shown(classes.tolist())}: say with pos_label which of them means labeled"
        if not guess:
            raise ValueError(said)
        warnings.warn(f"{said}; {classes[1]!r} was taken", LabelWarning, stacklevel=4)
    return classes[1]
