"""What :class:`jaxpu.CFEnsembleClassifier` is given, checked: options, labels of any kind, base classifiers."""

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped

from jaxpu.ensemble.confidence import CONFIDENCE
from jaxpu.ensemble.trainers import TRAINERS

LINKS = ("probability", "sigmoid")
"""What base scores are: probabilities, or decision values to be put through a sigmoid."""

RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("dim", "iterations"), (lambda v: v >= 1, "a whole number of at least 1")),
    **dict.fromkeys(("ridge", "lr"), (lambda v: v > 0, "a positive number")),
    **dict.fromkeys(("alpha", "class_weights", "focal"), (lambda v: v >= 0, "a number of at least 0")),
    "rho": (lambda v: 0 <= v <= 1, "a number between 0 and 1"),
}
"""What numbers may be, as in the configuration of an ensemble."""


def check_options(model: Any) -> None:
    """Refuse names that there are none of, and numbers out of their ranges.

    Args:
        model: whose parameters are read.

    Raises:
        ValueError: with the option's name, its value and what was expected.

    Example:
        >>> from types import SimpleNamespace
        >>> check_options(SimpleNamespace(link="probit"))
        Traceback (most recent call last):
        ValueError: link is 'probit', expected one of probability, sigmoid
    """
    for name, known in (("link", LINKS), ("trainer", TRAINERS), ("confidence", CONFIDENCE)):
        value = getattr(model, name)
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"{name} is {value!r}, expected one of {', '.join(known)}")
    for name, (allowed, wanted) in RANGES.items():
        value: Any = getattr(model, name)
        kind: Any = numbers.Integral if name in ("dim", "iterations") else numbers.Real
        if isinstance(value, bool) or not isinstance(value, kind) or not (np.isfinite(value) and allowed(value)):
            raise ValueError(f"{name} is {value!r}, expected {wanted}")
    if model.estimators is not None and model.link != "probability":
        raise ValueError(f"link is {model.link!r}, expected 'probability': estimators give probabilities")


def known_labels(y: Shaped[np.ndarray, " n"], missing: Any) -> tuple[Bool[np.ndarray, " n"], Shaped[np.ndarray, " k"]]:
    """Which labels are known, and those, of one kind.

    Args:
        y: labels of any type, shape (n,). missing: the value of those that are not known; None: NaN, None and NA.

    Raises:
        ValueError: labels of several kinds, such as numbers and text.

    Example:
        >>> known, labels = known_labels(np.array(["P", None, "U"], object), None)
        >>> known.tolist(), labels.tolist()
        ([True, False, True], ['P', 'U'])
    """
    values = y.tolist()
    known = np.array([not _is_missing(value, missing) for value in values], bool)
    kept = [value for value, there in zip(values, known, strict=True) if there]
    kinds = sorted({"number" if isinstance(v, int | float) else type(v).__name__ for v in kept})
    labels = np.array(kept) if y.dtype == object else y[known]
    if len(kinds) > 1 or labels.dtype == object or labels.ndim != 1:
        raise ValueError(f"labels are of kind {' and '.join(kinds)}, expected numbers or text, one kind for all")
    return known, labels


def positive_class(classes: Shaped[np.ndarray, " k"], positive: Any) -> Any:
    """The positive one of two classes: the one that is named, else the last.

    Args:
        classes: those of the known labels, sorted. positive: its name, or None.

    Raises:
        ValueError: there are not two classes, or none of that name.

    Example:
        >>> str(positive_class(np.array(["P", "U"]), "P")), int(positive_class(np.array([0, 1]), None))
        ('P', 1)
    """
    if classes.size > 2:
        raise ValueError(f"Only binary classification is supported; got {classes.size} classes")
    if classes.size < 2:
        raise ValueError(f"expected known labels of two classes; got {classes.size} class: label one more")
    if positive is None:
        return classes[1]
    if positive not in classes.tolist():
        raise ValueError(f"positive is {positive!r}, expected one of the labels {classes.tolist()}")
    return classes[classes.tolist().index(positive)]


def base_scores(
    models: Sequence[Any], x: Float[np.ndarray, "n d"], classes: Shaped[np.ndarray, " 2"], positive: Any
) -> Float[np.ndarray, "n m"]:
    """Probabilities of the positive class that fitted classifiers give.

    Args:
        models: with ``predict_proba``, and ``classes_`` where they have them. x: features. classes, positive: known.

    Raises:
        ValueError: a classifier of other classes, or NaN or infinity among its probabilities, naming it.
    """
    if not len(models):
        raise ValueError("estimators is empty, expected at least one fitted classifier")
    wanted, columns = classes.tolist(), []
    for k, model in enumerate(models):
        p = np.asarray(model.predict_proba(x), np.float64)
        own = np.asarray(getattr(model, "classes_", classes)).tolist()
        if p.shape != (x.shape[0], 2) or sorted(own, key=str) != sorted(wanted, key=str):
            raise ValueError(
                f"estimators[{k}] knows the classes {str(own)[:80]} and gives probabilities of shape {p.shape}, "
                f"expected the classes {wanted} and shape {(x.shape[0], 2)}: fit it on labels of both"
            )
        if not np.isfinite(p).all():
            row = np.argwhere(~np.isfinite(p))[0][0]
            raise ValueError(f"estimators[{k}] gives NaN or infinite probabilities, first for row {row} of X")
        columns.append(p[:, own.index(positive)])
    return np.stack(columns, axis=1)


def _is_missing(value: Any, missing: Any) -> bool:
    """Whether a label says that none is known."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    if missing is None or missing != missing:
        return value is None or bool(value != value)
    return bool(value == missing)
