"""Train, validation and test rows, long tails, and the standardisation that the training rows imply.

All are pure functions of their arguments. The numbers of rows of each class in each part depend on the
labels alone, not on the key, so that arrays have the same shapes for every seed.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float32, Int64, Integer, Num

from jaxpu.data.labels import Unchecked, class_numbers

Key: TypeAlias = int | Sequence[int] | None
"""A source of randomness: one non-negative int or several, such as (seed, dataset number); None is refused."""

Rows: TypeAlias = Integer[np.ndarray, " _"]
"""Row numbers."""

# Each purpose has its own stream of random numbers. Results depend on these numbers: never change one.
STREAMS = {"split": 0, "label": 1, "thin": 2, "mislabel": 3, "resample": 4, "noise": 5}


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


class Split(NamedTuple):
    """Disjoint row numbers that together are all rows.

    Attributes:
        train: Rows to train on, ascending.
        validation: Rows of the largest validation set. The first m of them, for each m in
            ``validation_sizes``, are a stratified validation set of their own.
        test: Test rows, ascending.
        validation_sizes: Sizes m of the nested validation sets, in the order in which they were asked for.
    """

    train: Rows
    validation: Rows
    test: Rows
    validation_sizes: tuple[int, ...]


def split(
    labels: Unchecked,
    key: Key,
    *,
    test: float = 0.2,
    validation: Sequence[float] = (0.01,),
    test_rows: Rows | None = None,
) -> Split:
    """Split rows into train, validation and test sets, each with the shares of the classes of the whole.

    Sizes are those of scikit-learn's ``train_test_split``: ⌈test · n⌉ test rows, then ⌈f · rest⌉ validation
    rows for each fraction f of ``validation``. Classes are allotted by largest remainder, a tie going to the
    later class, of two to the positives. Validation sets of different sizes are nested.

    Args:
        labels: True labels (n,): 0 and 1, or the classes 0 .. k - 1.
        key: Source of randomness.
        test: Fraction of all rows for the test set; 0 for none. Ignored if there are ``test_rows``.
        validation: Fractions of the rows that are not test rows, in any order; empty for no validation set.
        test_rows: Rows of an official test split, to be used instead of a drawn one.

    Returns:
        The split. What is in neither the test set nor the largest validation set is training rows.

    Raises:
        ValueError: If labels are no class numbers of shape (n,), a fraction is out of range, or no row is left over.

    Example:
        >>> parts = split(np.arange(100) < 40, 7, validation=(0.1, 0.25))
        >>> len(parts.train), len(parts.validation), len(parts.test), parts.validation_sizes
        (60, 20, 20, (8, 20))
    """
    classes = class_numbers(labels)
    _check_fractions([test], "test", low_included=True)
    _check_fractions(validation, "validation", low_included=False)
    rows = generator(key, "split").permutation(len(classes))
    if test_rows is None:
        test_set, rest = _take_stratified(rows, classes, ceil_of(test, len(rows)))
    else:
        test_set, rest = _checked_test_rows(test_rows, len(rows)), rows[~np.isin(rows, test_rows)]
    sizes = tuple(ceil_of(fraction, len(rest)) for fraction in validation)
    nested = rest[:0]
    # Each size is allotted out of all the rest: a set does not depend on which others are asked for.
    for size in sorted(sizes):
        chosen, _ = _take_stratified(rest, classes, size)
        nested = np.concatenate([nested, chosen[~np.isin(chosen, nested)]])
    train = rest[~np.isin(rest, nested)]
    if len(train) == 0:
        raise ValueError(f"no training row is left of {len(rows)}; make test={test} or validation smaller")
    return Split(np.sort(train), nested, np.sort(test_set), sizes)


def long_tail(labels: Unchecked, rows: Rows, key: Key, *, ratio: float) -> Rows:
    """Thin rows out until the largest class has ``ratio`` times the rows of the smallest, by a geometric profile.

    Class j of k keeps ⌊n ratio^(-j / (k - 1))⌋ rows, at least 1, n being the rows of the class that has fewest.

    Args:
        labels: True labels (n,) of all rows.
        rows: Rows to thin out, those of the training part.
        key: Source of randomness.
        ratio: At least 1; 1 keeps n rows of every class.

    Returns:
        The rows kept, ascending. How many depends on the labels alone.

    Raises:
        ValueError: If labels are no class numbers, a class has no row among the rows, or the ratio is below 1.

    Source: Cui et al., "Class-balanced loss based on effective number of samples", CVPR 2019.

    Example:
        >>> labels = np.repeat([0, 1, 2], 100)
        >>> np.bincount(labels[long_tail(labels, np.arange(300), 0, ratio=100.0)]).tolist()
        [100, 10, 1]
    """
    classes = class_numbers(labels)
    counts = np.bincount(classes[rows], minlength=classes.max(initial=1) + 1)
    if not ratio >= 1:
        raise ValueError(f"expected a ratio of at least 1 between the largest and the smallest class, got {ratio}")
    if not counts.all():
        raise ValueError(f"class {int(counts.argmin())} has no row to keep; give each class at least one")
    shares = float(ratio) ** (-np.arange(len(counts)) / (len(counts) - 1))
    kept = np.array([max(floor_of(share, int(counts.min())), 1) for share in shares])
    shuffled = generator(key, "thin").permutation(rows)
    return np.sort(shuffled[_place_in_class(classes[shuffled]) < kept[classes[shuffled]]])


def standardization(
    x: Num[np.ndarray, "n *features"], rows: Rows
) -> tuple[Float32[np.ndarray, "*features"], Float32[np.ndarray, "*features"]]:
    """Mean and standard deviation of each feature over some rows: pass those of the training part.

    Computed in float64, rounded to float32. A feature that is constant over the rows gets a deviation of 1.

    Args:
        x: Features of all rows.
        rows: Rows to look at.

    Returns:
        (mean, sd), so that (x - mean) / sd has zero mean and unit deviation over the rows.

    Raises:
        ValueError: If there are no rows.

    Example:
        >>> mean, sd = standardization(np.array([[1.0, 5.0], [3.0, 5.0], [99.0, 0.0]]), np.array([0, 1]))
        >>> mean.tolist(), sd.tolist()
        ([2.0, 5.0], [1.0, 1.0])
    """
    if len(rows) == 0:
        raise ValueError("standardisation needs at least one row, got none")
    part = x[rows].astype(np.float64)
    # A constant feature is found by its values: rounding of the mean can leave a deviation that is not 0.
    constant = (part == part[0]).all(axis=0)
    sd = np.where(constant, 1.0, part.std(axis=0))
    return part.mean(axis=0).astype(np.float32), sd.astype(np.float32)


def _take_stratified(rows: Rows, classes: Int64[np.ndarray, " n"], size: int) -> tuple[Rows, Rows]:
    """Take the first rows of each class, ``size`` in all, allotted by largest remainder; keep the order."""
    own = classes[rows]
    taken = _place_in_class(own) < _quotas(np.bincount(own, minlength=2), size)[own]
    return rows[taken], rows[~taken]


def _quotas(counts: Int64[np.ndarray, " k"], size: int) -> Int64[np.ndarray, " k"]:
    """``size`` rows shared out in proportion to the counts, in integers."""
    whole, remainder = np.divmod(size * counts, max(counts.sum(), 1))
    first = np.lexsort((-np.arange(len(counts)), -remainder))  # the largest remainder, then the latest class
    whole[first[: size - whole.sum()]] += 1
    return whole


def _place_in_class(own: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
    """How many of the rows before each are of its class."""
    order = np.argsort(own, kind="stable")
    starts = np.cumsum(np.bincount(own, minlength=1)) - np.bincount(own, minlength=1)
    place = np.empty(len(own), np.int64)
    place[order] = np.arange(len(own)) - starts[own[order]]
    return place


def _check_fractions(fractions: Sequence[float], name: str, *, low_included: bool) -> None:
    for fraction in fractions:
        if not (0 <= fraction < 1 if low_included else 0 < fraction < 1):
            bracket = "[" if low_included else "("
            raise ValueError(f"expected {name} fractions in {bracket}0, 1), got {fraction}")


def _checked_test_rows(test_rows: Rows, n: int) -> Rows:
    if len(np.unique(test_rows)) != len(test_rows) or not ((test_rows >= 0) & (test_rows < n)).all():
        raise ValueError(f"expected distinct test rows in 0..{n - 1}")
    return test_rows
