"""What labels may be: 0 and 1, class numbers, and the ways in which other people code two values."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Int8, Int64, Integer, Shaped

Unchecked: TypeAlias = Shaped[np.ndarray, "..."]
"""An array whose shape and values the function checks itself, to say what to do."""

Labels: TypeAlias = Integer[np.ndarray, " n"] | Bool[np.ndarray, " n"]
"""True labels: 1 = positive, 0 = negative."""


def is_positive(labels: Unchecked) -> Bool[np.ndarray, " n"]:
    """Check labels and return where they are positive.

    Raises:
        ValueError: If the labels are not of shape (n,) or hold something else than 0 and 1.

    Example:
        >>> is_positive(np.array([0, 1]))
        array([False,  True])
    """
    if labels.ndim != 1:
        raise ValueError(f"expected labels of shape (n,), got {labels.shape}; flatten them first")
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(f"expected labels 0 and 1, got {np.unique(labels)[:5]}; recode them first")
    return labels == 1


def class_numbers(labels: Unchecked) -> Int64[np.ndarray, " n"]:
    """Check labels that may be of more than two classes and return them as class numbers.

    Raises:
        ValueError: If the labels are not of shape (n,) or hold something else than 0, 1, ..., k - 1.

    Example:
        >>> class_numbers(np.array([False, True])).tolist()
        [0, 1]
    """
    if labels.ndim != 1:
        raise ValueError(f"expected labels of shape (n,), got {labels.shape}; flatten them first")
    numbers = labels.astype(np.int64)
    if (numbers != labels).any() or (numbers < 0).any():
        raise ValueError(f"expected labels 0, 1, ..., got {np.unique(labels)[:5]}; recode them first")
    return numbers


def coded(
    values: Iterable[Any],
    *,
    one: Any = None,
    column: str = "y",
    meaning: str = "positive",
    blank: bool = False,
    first_row: int = 0,
    setting: str = "",
) -> Int8[np.ndarray, " n"]:
    """Two values of any kind as 1 and 0.

    Text loses the blanks around it, and "1", 1 and 1.0 are one value. Without ``one`` it is known which value is 1 of
    0/1, -1/1, 1/2 (the larger), False/True however written, and, with ``blank``, of any value beside unlabeled, u or
    nothing at all.

    Args:
        values: n numbers, booleans or texts; None, NaN and empty text are missing.
        one: the value that becomes 1.
        column: what the values are called in messages. meaning: what 1 means, in messages.
        blank: whether a missing value is one of the two, the one that becomes 0. first_row: its number, in messages.
        setting: what ``one`` is called where it is asked for; "positive" or "labeled", as the meaning is, if empty.

    Returns:
        1 where the value is ``one``, 0 elsewhere.

    Raises:
        ValueError: there are not two values, which are then counted; one is missing; or nobody knows which is 1.

    Example:
        >>> coded(["yes", " no", "yes "], one="yes").tolist(), coded([-1, 1, -1]).tolist()
        ([1, 0, 1], [0, 1, 0])
        >>> coded(["labeled", "", ""], blank=True).tolist()
        [1, 0, 0]
        >>> coded(["a", "b", "c", "b"])
        Traceback (most recent call last):
        ...
        ValueError: y holds 3 values, expected two: 'b' (2 rows), 'a' (1 row), 'c' (1 row); keep two of them
    """
    keys = [_key(value) for value in values]
    counts = Counter(keys)
    if counts[None] and not blank:
        row = f"row {keys.index(None) + first_row} (the first is {first_row})"
        raise ValueError(f"{column} is empty in {_rows(counts[None])}, first in {row}; label or drop them")
    counts = +counts  # asking for None has counted it
    if len(counts) != 2:
        remedy = "keep two of them" if len(counts) > 2 else "one is not enough to learn from"
        raise ValueError(f"{column} holds {_rows(len(counts), 'value')}, expected two: {_listed(counts)}; {remedy}")
    setting = setting or ("positive" if meaning == "positive" else "labeled")
    chosen = _given(one, counts, column) if one is not None else _known(counts, blank)
    if chosen is _UNKNOWN:
        raise ValueError(f"{column} holds {_listed(counts)}: say which of them means {meaning} ({setting}: ...)")
    if chosen is None:
        raise ValueError(f"{column}: a blank cannot mean {meaning}; name the other value")
    return np.array([key == chosen for key in keys], np.int8)


_UNKNOWN = object()
_NO = {"unlabeled", "unlabelled", "u"}
_TRUE = ("true", 1.0, "yes", "y", "on", "t")
_FALSE = ("false", 0.0, "no", "n", "off", "f")


def _key(value: Any) -> Hashable:
    """A value as it is compared: a finite number, "true" or "false", text without blanks around it, None for none."""
    if isinstance(value, bytes | np.bytes_):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        value = value.strip()
        try:
            number = float(value) if "_" not in value else math.inf
        except ValueError:
            number = math.inf
        lower = value.lower()
        if lower in ("", "nan"):
            return None
        return number if math.isfinite(number) else lower if lower in ("true", "false") else value
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float | np.number):
        return None if value != value else float(value)
    return value if value is None else str(value)


def _given(one: Any, counts: Counter, column: str) -> Hashable:
    """The value that was asked for; YAML's booleans stand for the words that it takes for them."""
    words = {"true": _TRUE, "false": _FALSE}.get(str(_key(one)), ())
    same = [_key(one)] if _key(one) in counts else [key for key in counts if str(key).lower() in map(str, words)]
    if len(same) != 1:
        raise ValueError(f"{column} holds no {one!r}; it holds {_listed(counts)}")
    return same[0]


def _known(counts: Counter, blank: bool) -> Any:
    found = set(counts)
    if found in ({0.0, 1.0}, {-1.0, 1.0}, {1.0, 2.0}):
        return max(counts)
    if found == {"false", "true"}:
        return "true"
    others = [key for key in counts if key is not None and str(key).lower() not in _NO]
    return others[0] if blank and len(others) == 1 else _UNKNOWN


def _rows(number: int, what: str = "row") -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _listed(counts: Counter) -> str:
    """The most frequent values with their rows."""
    first = sorted(counts.items(), key=lambda pair: -pair[1])[:6]
    shown = [f"{'blank' if key is None else _shown(key)} ({_rows(number)})" for key, number in first]
    return ", ".join(shown) + (", ..." if len(counts) > len(first) else "")


def _shown(key: Any) -> str:
    text = f"{key:g}" if isinstance(key, float) else repr(key)
    return text if len(text) <= 40 else f"{text[:37]}..."
