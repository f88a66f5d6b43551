"""Labelling mechanisms and scenarios: what must hold for every input."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from jaxpu.config import ConfigError, DataConfig
from jaxpu.data import Dataset, load, prepare
from jaxpu.data.sampling import MECHANISMS, SCENARIOS, label_positives, propensity_score, pu_sample, split
from jaxpu.data.shifts import mislabeled, resampled

check = settings(max_examples=30, deadline=None, derandomize=True)

KEYS = st.one_of(st.integers(0, 2**64), st.tuples(st.integers(0, 2**32), st.integers(1, 9)))
LABELS = st.lists(st.booleans(), min_size=20, max_size=150).map(lambda bits: np.array(bits, np.int8))
MIXED_LABELS = LABELS.filter(lambda labels: 0 < labels.sum() < len(labels))


# The labeled positives


@check
@given(MIXED_LABELS, KEYS, st.sampled_from([0.01, 0.1, 0.29, 0.5, 1.0]), st.sampled_from(list(MECHANISMS)))
def test_labeled_rows_are_that_many_distinct_positives(labels, key, c, mechanism):
    score = np.random.default_rng(0).random(len(labels))
    rows = label_positives(labels, key, c=c, mechanism=mechanism, score=score)
    n_positive = int(labels.sum())
    assert len(rows) == max(1, int(Fraction(str(c)) * n_positive))
    assert (np.diff(rows) > 0).all()
    assert labels[rows].all()
    np.testing.assert_array_equal(rows, label_positives(labels, key, c=c, mechanism=mechanism, score=score))
    smaller = label_positives(labels, key, c=c / 2, mechanism=mechanism, score=score)
    assert set(smaller) <= set(rows)


@check
@given(KEYS, KEYS, st.sampled_from(list(MECHANISMS)))
def test_other_keys_label_other_rows_unless_the_mechanism_is_deterministic(one, other, mechanism):
    assume(one != other)
    labels, score = np.ones(300, np.int8), np.random.default_rng(1).random(300)
    a, b = (label_positives(labels, key, c=0.5, mechanism=mechanism, score=score) for key in (one, other))
    assert np.array_equal(a, b) == (mechanism == "sar_pusb")


def test_number_of_labeled_rows_is_that_of_exact_arithmetic():
    assert 0.29 * 100 < 29  # in binary
    assert len(label_positives(np.ones(100, np.int8), 0, c=0.29)) == 29


def pair_probabilities(weights: np.ndarray) -> dict[tuple[int, int], float]:
    """P of each unordered pair when two are drawn one after the other with probabilities ∝ weights."""
    w = weights / weights.sum()
    return {
        (i, j): w[i] * w[j] / (1 - w[i]) + w[j] * w[i] / (1 - w[j]) for i, j in itertools.combinations(range(len(w)), 2)
    }


Q = np.array([0.55, 0.7, 0.8, 0.9, 0.95])
WEIGHTS = {
    "scar": np.ones(5),
    "sar_lbe_a": 0.9 * Q**10 / (Q**10).sum() + 0.1 / 5,
    "sar_lbe_b": (2.5 - Q) ** 10,
}


@pytest.mark.parametrize("mechanism", WEIGHTS)
def test_mechanisms_draw_with_their_weights(mechanism: str):
    labels, score = np.array([0, 1, 1, 1, 0, 1, 1]), np.array([0.99, *Q[:3], 0.0, *Q[3:]])
    place = {1: 0, 2: 1, 3: 2, 5: 3, 6: 4}
    expected = pair_probabilities(WEIGHTS[mechanism])
    observed = dict.fromkeys(expected, 0)
    draws = 4000
    for key in range(draws):
        i, j = label_positives(labels, key, c=0.4, mechanism=mechanism, score=score)
        observed[place[i], place[j]] += 1
    frequencies = draws * np.array(list(expected.values()))
    assert chisquare(list(observed.values()), frequencies).pvalue > 0.01
    # The test can tell the mechanisms apart.
    for other in WEIGHTS.keys() - {mechanism}:
        wrong = draws * np.array(list(pair_probabilities(WEIGHTS[other]).values()))
        assert chisquare(list(observed.values()), wrong).pvalue < 1e-9


@pytest.mark.parametrize("mechanism", WEIGHTS)
def test_mechanisms_rank_by_their_log_weights_plus_noise(mechanism: str):
    noise = np.linspace(-1, 1, 5)
    difference = MECHANISMS[mechanism](Q, noise) - noise - np.log(WEIGHTS[mechanism])
    np.testing.assert_allclose(difference, 0, atol=1e-12)


def test_pusb_labels_the_top_scores_and_ties_go_by_row():
    labels = np.array([1, 0, 1, 1, 1, 1, 0, 1, 1])
    score = np.array([0.2, 1.0, 0.9, 0.5, 0.5, 0.5, 1.0, 0.1, 1.0])
    rows = label_positives(labels, 0, c=0.6, mechanism="sar_pusb", score=score)
    assert rows.tolist() == [2, 3, 4, 8]


@pytest.mark.parametrize("mechanism", ["sar_lbe_a", "sar_lbe_b", "sar_pusb"])
@pytest.mark.parametrize("value", [0.0, 1e-300, 1.0])
def test_degenerate_scores_still_label(mechanism: str, value: float):
    rows = label_positives(np.ones(10, np.int8), 0, c=0.3, mechanism=mechanism, score=np.full(10, value))
    assert len(rows) == 3


def test_equal_scores_are_scar():
    labels, score = np.ones(50, np.int8), np.full(50, 0.7)
    at_random = label_positives(labels, 8, c=0.3)
    for mechanism in ("sar_lbe_a", "sar_lbe_b"):
        np.testing.assert_array_equal(label_positives(labels, 8, c=0.3, mechanism=mechanism, score=score), at_random)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (np.zeros(3, np.int8), {"c": 0.5}, "no positive row to label"),
        (np.ones(3, np.int8), {"c": 0.0}, r"c in \(0, 1\], got 0.0"),
        (np.ones(3, np.int8), {"c": 1.5}, r"c in \(0, 1\], got 1.5"),
        (np.ones(3, np.int8), {"c": float("nan")}, r"c in \(0, 1\], got nan"),
        (
            np.ones(3, np.int8),
            {"c": 0.5, "mechanism": "sar"},
            "'sar' .*; choose from scar, sar_lbe_a, sar_lbe_b",
        ),
        (np.ones(3, np.int8), {"c": 0.5, "mechanism": "sar_pusb"}, r"needs score=propensity_score\(x, y\)"),
        (np.ones(3, np.int8), {"c": 0.5, "mechanism": "sar_pusb", "score": np.ones((3, 1))}, r"got \(3, 1\)"),
        (np.ones(3, np.int8), {"c": 0.5, "mechanism": "sar_pusb", "score": np.ones(2)}, r"shape \(3,\), got"),
        (
            np.ones(1, np.int8),
            {"c": 0.5, "mechanism": "sar_pusb", "score": np.array([1.1])},
            r"scores in \[0, 1\]",
        ),
        (np.ones(1, np.int8), {"c": 0.5, "mechanism": "sar_pusb", "score": np.array([np.nan])}, "scores in"),
        (np.ones((3, 1), np.int8), {"c": 0.5}, r"got \(3, 1\)"),
    ],
)
def test_label_positives_refuses(labels, options, message):
    with pytest.raises(ValueError, match=message):
        label_positives(labels, 0, **options)


def test_propensity_score_is_a_logistic_regression_on_standardised_features():
    data = load("breast_cancer")
    scaled = StandardScaler().fit_transform(data.x.astype(np.float64))
    expected = LogisticRegression(max_iter=5000, tol=1e-8).fit(scaled, data.y).predict_proba(scaled)[:, 1]
    score = propensity_score(data.x, data.y)
    np.testing.assert_allclose(score, expected, atol=0.01)  # the default tolerance of the optimiser
    images = data.x.reshape(-1, 5, 6)
    np.testing.assert_allclose(propensity_score(images, data.y), score)
    rows = np.arange(0, len(data.y), 2)
    part, others = StandardScaler().fit(data.x[rows].astype(np.float64)), data.y.copy()
    known = LogisticRegression(max_iter=5000, tol=1e-8).fit(part.transform(data.x[rows]), data.y[rows])
    seen = propensity_score(data.x, data.y, rows)
    np.testing.assert_allclose(seen, known.predict_proba(part.transform(data.x))[:, 1], atol=0.01)
    others[1::2] = 1 - others[1::2]
    np.testing.assert_array_equal(propensity_score(data.x, others, rows), seen)
    with pytest.raises(ValueError, match="one class only"):
        propensity_score(data.x, np.ones_like(data.y))
    with pytest.raises(ValueError, match="one class only"):
        propensity_score(data.x, data.y, np.flatnonzero(data.y == 1))
    with pytest.raises(ValueError, match="one label a row"):
        propensity_score(data.x[:-1], data.y)


def test_whole_label_frequencies_are_whole_and_int_would_lose_one():
    differing = 0
    for hundredths in range(1, 100):
        c = hundredths / 100
        labeled = len(label_positives(np.ones(100, np.int8), 0, c=c))
        assert labeled == hundredths
        assert labeled - int(c * 100) in (0, 1)
        differing += labeled != int(c * 100)
    assert differing == 3, "29, 57 and 58 of 100"
    assert int(0.29 * 100) == 28


# Scenarios


@pytest.mark.parametrize(
    ("scenario", "n_unlabeled", "n_positive"),
    [("case_control", 500, 100), ("single_set", 480, 80), ("single_set_overlap", 500, 100)],
)
def test_the_prior_that_a_scenario_implies(scenario: str, n_unlabeled: int, n_positive: int):
    sample = pu_sample(np.arange(500) >= 400, 1, scenario=scenario, c=0.2)
    assert len(sample.labeled) == 20
    assert len(sample.unlabeled) == n_unlabeled
    assert sample.prior == n_positive / n_unlabeled
    assert sample.prior_all == (n_positive + 20) / (n_unlabeled + 20)


@check
@given(MIXED_LABELS, KEYS, st.sampled_from([0.1, 0.5]), st.sampled_from(list(MECHANISMS)))
def test_scenarios_share_the_labeled_set(labels, key, c, mechanism):
    score = np.random.default_rng(2).random(len(labels))
    expected = label_positives(labels, key, c=c, mechanism=mechanism, score=score)
    n, n_positive = len(labels), int(labels.sum())
    for scenario in SCENARIOS:
        sample = pu_sample(labels, key, scenario=scenario, c=c, mechanism=mechanism, score=score)
        np.testing.assert_array_equal(sample.labeled, expected)
        negatives = sample.unlabeled[labels[sample.unlabeled] == 0]
        assert sorted(negatives) == np.flatnonzero(labels == 0).tolist()
        assert sample.prior == np.mean(labels[sample.unlabeled])
        if scenario == "single_set":
            assert not set(sample.unlabeled) & set(expected)
            assert sample.prior_all == n_positive / n
        else:
            assert sorted(sample.unlabeled) == list(range(n))
            assert sample.prior_all == pytest.approx((n_positive + len(expected)) / (n + len(expected)))


@pytest.mark.parametrize("seed", [0, 1, 42])
def test_the_seed_protocol_on_spambase(seed: int):
    data = load("spambase")
    parts = split(data.y, seed)
    assert [len(part) for part in parts[:3]] == [3643, 37, 921]
    assert int(data.y[parts.test].sum()) == 363
    sample = pu_sample(data.y[parts.train], seed, scenario="case_control", c=0.1)
    assert (len(sample.labeled), len(sample.unlabeled)) == (143, 3643)
    assert round(sample.prior, 4) == 0.3939
    assert round(sample.prior_all, 4) == 0.4168


def test_pu_sample_refuses():
    with pytest.raises(ValueError, match="unknown scenario 'overlap'; choose from case_control, single_set"):
        pu_sample(np.ones(3, np.int8), 0, scenario="overlap", c=0.5)
    with pytest.raises(ValueError, match="no unlabeled row is left"):
        pu_sample(np.ones(3, np.int8), 0, scenario="single_set", c=1.0)


# Training samples that are not as the data are


@check
@given(MIXED_LABELS, KEYS, st.sampled_from([0.1, 0.25, 0.5, 0.8]))
def test_resampled_rows_have_the_share_of_positives_that_was_asked_for_and_are_as_many_as_can_be(labels, key, prior):
    n = {True: int(labels.sum()), False: int((1 - labels).sum())}
    p = Fraction(str(prior))
    expected = {True: min(n[True], int(n[False] * p / (1 - p))), False: min(n[False], int(n[True] * (1 - p) / p))}
    every = np.arange(len(labels))
    if not all(expected.values()):
        with pytest.raises(ValueError, match="cannot have a share of"):
            resampled(labels, every, key, prior)
        return
    kept = resampled(labels, every, key, prior)
    assert (np.diff(kept) > 0).all()
    assert {one: int((labels[kept] == one).sum()) for one in (True, False)} == expected
    assert n[True] in expected.values() or n[False] in expected.values(), "one class stays whole"
    np.testing.assert_array_equal(kept, resampled(labels, every, key, prior))


def test_fewer_negatives_are_some_of_more_and_other_keys_keep_others():
    labels = np.arange(400) < 100
    few, more, other = (set(resampled(labels, np.arange(400), key, p)) for key, p in ((0, 0.6), (0, 0.4), (1, 0.4)))
    assert few < more
    assert more != other
    for prior in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match=r"a share of positives in \(0, 1\)"):
            resampled(labels, np.arange(400), 0, prior)


@check
@given(MIXED_LABELS, KEYS, st.sampled_from([0.0, 0.1, 0.3, 0.5]))
def test_so_many_labels_are_wrong_and_no_more(labels, key, noise):
    labeled = label_positives(labels, key, c=0.5)
    wrong = int(Fraction(str(noise)) * len(labeled))
    assume(wrong <= (labels == 0).sum())
    rows = mislabeled(labels, labeled, key, noise)
    assert len(rows) == len(labeled) == len(set(rows))
    assert (labels[rows] == 0).sum() == wrong
    assert set(rows[labels[rows] == 1]) <= set(labeled)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_priors_count_what_is_where_when_labels_are_wrong(scenario):
    labels = np.arange(200) < 80
    plain, noisy = (pu_sample(labels, 3, scenario=scenario, c=0.5, noise=noise) for noise in (0.0, 0.25))
    assert len(noisy.labeled) == len(plain.labeled) == 40
    assert labels[noisy.labeled].sum() == 30
    assert noisy.prior == labels[noisy.unlabeled].mean()
    both = np.concatenate([noisy.labeled, noisy.unlabeled])
    assert noisy.prior_all == pytest.approx(labels[both].mean())
    if scenario == "single_set":
        assert sorted(both) == list(range(200)), "who lost its label is unlabeled, who got one is not"


def test_a_training_prior_changes_training_and_validation_and_leaves_the_test_set_alone():
    config = {"name": "gaussians", "options": {"n": 2000, "pi": 0.4}, "validation": (0.2, 0.05)}
    plain, thin = (prepare(c, load(c), 0) for c in (DataConfig(**config), DataConfig(**config, train_prior=0.1)))
    y = load(DataConfig(**config)).y
    np.testing.assert_array_equal(plain.rows.test, thin.rows.test)
    parts = [set(getattr(thin.rows, name).tolist()) for name in ("train", "val", "test")]
    assert [len(a & b) for a, b in itertools.combinations(parts, 2)] == [0, 0, 0]
    assert thin.prior == pytest.approx(0.1, abs=0.002)
    for size in dict(thin.val_sizes).values():
        assert y[thin.rows.val[:size]].mean() == pytest.approx(0.1, abs=0.01)
    assert (y[sorted(parts[0] | parts[1])] == 0).sum() == (y == 0).sum() - (y[plain.rows.test] == 0).sum()
    shapes = [
        [a.shape for a in prepare(DataConfig(**config, train_prior=0.1), load(DataConfig(**config)), s).rows]
        for s in (1, 2)
    ]
    assert shapes[0] == shapes[1]


def test_observed_labels_are_neither_noisy_nor_thinned():
    seen = Dataset.from_arrays(np.eye(40), y=np.arange(40) % 2, s=(np.arange(40) % 2) * (np.arange(40) < 20))
    for settings_ in ({"noise": 0.1}, {"train_prior": 0.3}):
        with pytest.raises(ConfigError, match=f"data.{next(iter(settings_))}: labels of own are observed"):
            prepare(DataConfig(name="own", **settings_), seen, 0)
