"""Splits and standardisation: what must hold for every input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from jaxpu.data.sampling import split, standardization

check = settings(max_examples=30, deadline=None, derandomize=True)

KEYS = st.one_of(st.integers(0, 2**64), st.tuples(st.integers(0, 2**32), st.integers(1, 9)))
LABELS = st.lists(st.booleans(), min_size=20, max_size=150).map(lambda bits: np.array(bits, np.int8))


def share_error(labels: np.ndarray, part: np.ndarray, whole: np.ndarray) -> float:
    """How many rows the positives of a part are away from the share in the whole."""
    return abs(labels[part].sum() - len(part) * labels[whole].mean())


@check
@given(LABELS, KEYS, st.sampled_from([0.0, 0.07, 0.2, 0.5]), st.sampled_from([(), (0.01,), (0.2, 0.05, 0.1)]))
def test_split_is_disjoint_complete_and_stratified(labels, key, test, validation):
    parts = split(labels, key, test=test, validation=validation)
    every = np.concatenate([parts.train, parts.validation, parts.test])
    assert sorted(every) == list(range(len(labels)))
    n_test = math.ceil(Fraction(str(test)) * len(labels))
    rest = len(labels) - n_test
    assert len(parts.test) == n_test
    assert parts.validation_sizes == tuple(math.ceil(Fraction(str(f)) * rest) for f in validation)
    assert len(parts.validation) == max(parts.validation_sizes, default=0)
    everything = np.arange(len(labels))
    outside_test = np.concatenate([parts.train, parts.validation])
    assert share_error(labels, parts.test, everything) <= 0.5
    for size in parts.validation_sizes:
        assert share_error(labels, parts.validation[:size], outside_test) <= 0.5


@check
@given(LABELS, KEYS, KEYS)
def test_split_counts_do_not_depend_on_the_key(labels, one, other):
    a, b = (split(labels, key, validation=(0.05, 0.2)) for key in (one, other))
    assert a.validation_sizes == b.validation_sizes
    for part, same_part in zip(a[:3], b[:3], strict=True):
        assert len(part) == len(same_part)
        assert labels[part].sum() == labels[same_part].sum()
    small = a.validation_sizes[0]
    assert labels[a.validation[:small]].sum() == labels[b.validation[:small]].sum()


@check
@given(LABELS, KEYS)
def test_nested_validation_sets_are_those_asked_for_alone(labels, key):
    nested = split(labels, key, validation=(0.3, 0.05, 0.05, 0.1))
    for fraction, size in zip((0.3, 0.05, 0.05, 0.1), nested.validation_sizes, strict=True):
        alone = split(labels, key, validation=(fraction,))
        assert set(nested.validation[:size]) == set(alone.validation)
        np.testing.assert_array_equal(nested.test, alone.test)


@check
@given(LABELS, KEYS, KEYS)
def test_split_is_a_function_of_its_key(labels, one, other):
    first = split(labels, one)
    for part, again in zip(first[:3], split(labels, one)[:3], strict=True):
        np.testing.assert_array_equal(part, again)
    assume(one != other)
    # By chance alone two test sets of 300 rows agree in about 60, never in all.
    many = np.tile(labels, 15)
    assert not np.array_equal(split(many, one).test, split(many, other).test)


@pytest.mark.parametrize(("n", "n_positive"), [(4601, 1813), (1000, 333), (37, 11)])
def test_split_sizes_are_those_of_scikit_learn(n: int, n_positive: int):
    labels = np.arange(n) < n_positive
    rest, test = train_test_split(np.arange(n), test_size=0.2, stratify=labels, random_state=0)
    train, validation = train_test_split(rest, test_size=0.1, stratify=labels[rest], random_state=0)
    mine = split(labels, 5, test=0.2, validation=(0.1,))
    for ours, theirs in zip(mine[:3], (train, validation, test), strict=True):
        assert (len(ours), labels[ours].sum()) == (len(theirs), labels[theirs].sum())


def test_split_sizes_are_those_of_exact_arithmetic():
    labels = np.arange(100) < 50
    assert 0.07 * 100 > 7  # in binary
    assert len(split(labels, 0, test=0.07).test) == 7


@check
@given(LABELS, KEYS)
def test_official_test_rows_are_kept(labels, key):
    official = np.arange(0, len(labels), 4)[::-1]
    parts = split(labels, key, validation=(0.1, 0.2), test_rows=official)
    np.testing.assert_array_equal(parts.test, np.sort(official))
    assert sorted(np.concatenate(parts[:3])) == list(range(len(labels)))
    outside_test = np.setdiff1d(np.arange(len(labels)), official)
    assert parts.validation_sizes[1] == math.ceil(Fraction("0.2") * len(outside_test))
    assert share_error(labels, parts.validation, outside_test) <= 0.5


@pytest.mark.parametrize(
    ("labels", "key", "options", "message"),
    [
        (np.zeros((4, 1), np.int8), 0, {}, r"shape \(n,\), got \(4, 1\)"),
        (np.array([-1, 1, 1]), 0, {}, "expected labels 0, 1, ..., got"),
        (np.array([0, 1, 1]), None, {}, "got None, which is not reproducible"),
        (np.array([0, 1, 1]), 0, {"test": 1.0}, r"test fractions in \[0, 1\), got 1.0"),
        (np.array([0, 1, 1]), 0, {"test": -0.1}, "test fractions"),
        (np.array([0, 1, 1]), 0, {"validation": (0.1, 0.0)}, r"validation fractions in \(0, 1\), got 0.0"),
        (np.array([0, 1]), 0, {}, "no training row is left of 2"),
        (np.array([], np.int8), 0, {}, "no training row is left of 0"),
        (np.array([0, 1, 1]), 0, {"test_rows": np.array([0, 0])}, "distinct test rows in 0..2"),
        (np.array([0, 1, 1]), 0, {"test_rows": np.array([3])}, "distinct test rows in 0..2"),
        (np.array([0, 1, 1]), 0, {"test_rows": np.array([-1])}, "distinct test rows in 0..2"),
    ],
)
def test_split_refuses(labels, key, options, message):
    with pytest.raises(ValueError, match=message):
        split(labels, key, **options)


# Standardisation


@check
@given(st.integers(0, 1000), st.sampled_from([(4,), (3, 2)]))
def test_standardization_sees_the_given_rows_only(seed, shape):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(30, *shape)) * 10.0 ** rng.integers(-3, 4, shape)).astype(np.float32)
    rows = rng.permutation(30)[:20]
    mean, sd = standardization(x, rows)
    assert mean.shape == sd.shape == shape
    assert mean.dtype == sd.dtype == np.float32
    scaler = StandardScaler().fit(x[rows].reshape(20, -1).astype(np.float64))
    np.testing.assert_allclose(mean.ravel(), np.asarray(scaler.mean_), rtol=1e-6)
    np.testing.assert_allclose(sd.ravel(), np.asarray(scaler.scale_), rtol=1e-6)
    elsewhere = x.copy()
    elsewhere[np.setdiff1d(np.arange(30), rows)] = 1e6
    for value, same in zip((mean, sd), standardization(elsewhere, rows), strict=True):
        np.testing.assert_array_equal(value, same)


def test_standardization_is_computed_in_float64():
    x = np.float32(16_777_216) + np.arange(0, 2000, 2, dtype=np.float32)[:, None]  # float32 sums lose these steps
    mean, sd = standardization(x, np.arange(1000))
    assert mean[0] == np.float32(16_777_216 + 999)
    assert sd[0] == np.float32(np.sqrt((1000**2 - 1) / 12) * 2)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e6, 1e-30])
def test_a_constant_feature_becomes_zero(value: float):
    x = np.full((37, 1), value, np.float32)
    mean, sd = standardization(x, np.arange(37))
    assert sd[0] == 1
    np.testing.assert_array_equal((x - mean) / sd, np.zeros_like(x))


def test_standardization_needs_rows():
    with pytest.raises(ValueError, match="at least one row"):
        standardization(np.ones((3, 2)), np.array([], int))
