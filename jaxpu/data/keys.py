"""The vocabulary of splitting and labelling: keys, rows, and counts that come from fractions."""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from jaxtyping import Integer

Key: TypeAlias = int | Sequence[int] | None
"""A source of randomness: one non-negative int or several, such as (seed, dataset number); None is refused."""

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


def ceil_of(fraction: float, n: int) -> int:
    """⌈fraction · n⌉ as in decimals: ⌈0.07 · 100⌉ is 7, though the binary product exceeds 7.

    Example:
        >>> ceil_of(0.07, 100), ceil_of(0.2, 4601)
        (7, 921)
    """
    return math.ceil(round(fraction * n, 6))


def floor_of(fraction: float, n: int) -> int:
    """⌊fraction · n⌋ as in decimals: ⌊0.29 · 100⌋ is 29, though the binary product is below 29.

    Code that takes int(0.29 * 100), as that behind the nine-dataset table, gets 28: where c · n_P is whole in decimals
    and not in binary, it labels one positive fewer.

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
