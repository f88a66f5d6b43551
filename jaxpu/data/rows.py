"""The vocabulary of splitting and labelling: keys, labels, rows, and counts that come from fractions."""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from jaxtyping import Bool, Int64, Integer, Shaped

Key: TypeAlias = int | Sequence[int] | None
"""A source of randomness: one non-negative int or several, such as (seed, dataset number); None is refused."""

Unchecked: TypeAlias = Shaped[np.ndarray, "..."]
"""An array whose shape and values the function checks itself, to say what to do."""

Labels: TypeAlias = Integer[np.ndarray, " n"] | Bool[np.ndarray, " n"]
"""True labels: 1 = positive, 0 = negative."""

Rows: TypeAlias = Integer[np.ndarray, " _"]
"""Row numbers."""

Entry = TypeVar("Entry", bound=Callable)

# Each purpose has its own stream of random numbers. Results depend on these numbers: never change one.
STREAMS = {"split": 0, "label": 1, "thin": 2}


def generator(key: Key, purpose: str) -> np.random.Generator:
    """A generator for one key and purpose, independent of those for other keys and purposes.

    Raises:
        ValueError: If the key is ``None``, for which NumPy would take entropy from the system.

    Example:
        >>> generator(7, "split").random() == generator((7,), "split").random()
        True
        >>> generator(7, "split").random() == generator(7, "label").random()
        False
    """
    if key is None:
        raise ValueError("expected a key (an int or a sequence of ints), got None, which is not reproducible")
    return np.random.default_rng(np.random.SeedSequence(key, spawn_key=(STREAMS[purpose],)))


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


def ceil_of(fraction: float, n: int) -> int:
    """⌈fraction · n⌉ as in decimals: ⌈0.07 · 100⌉ is 7, though the binary product exceeds 7.

    Example:
        >>> ceil_of(0.07, 100), ceil_of(0.2, 4601)
        (7, 921)
    """
    return math.ceil(round(fraction * n, 6))


def floor_of(fraction: float, n: int) -> int:
    """⌊fraction · n⌋ as in decimals: ⌊0.29 · 100⌋ is 29, though the binary product is below 29.

    Example:
        >>> floor_of(0.29, 100), floor_of(0.1, 1435)
        (29, 143)
    """
    return math.floor(round(fraction * n, 6))


def choose(registry: dict[str, Entry], name: str, kind: str) -> Entry:
    """Look a name up.

    Raises:
        ValueError: If the name is unknown; the message lists the choices.

    Example:
        >>> choose({"scar": len}, "skar", "mechanism")
        Traceback (most recent call last):
        ...
        ValueError: unknown mechanism 'skar'; choose from scar
    """
    if name not in registry:
        raise ValueError(f"unknown {kind} {name!r}; choose from {', '.join(registry)}")
    return registry[name]
