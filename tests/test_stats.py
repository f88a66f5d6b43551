import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from jaxpu.analysis import stats

FEW = settings(max_examples=30, deadline=None, derandomize=True)

# A skewed sample: many good runs and a collapsed one, so that BCa and percentile intervals differ.
SKEWED = np.append(np.linspace(0.82, 0.89, 15), 0.02)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [  # Newcombe, "Two-sided confidence intervals for the single proportion", Stat. Med. 17, 1998, table I
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_reproduces_published_intervals(successes, n, low, high):
    assert stats.wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@FEW
@given(st.integers(1, 300), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_solves_its_quadratic_and_is_symmetric(n, data, level):
    k = data.draw(st.integers(0, n))
    low, high = stats.wilson(k, n, level)
    z = scipy_stats.norm.ppf((1 + level) / 2)
    for end in (low, high):
        assert (k / n - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / n, abs=1e-9)
    assert 0 <= low <= k / n + 1e-12
    assert k / n - 1e-12 <= high <= 1
    mirrored = stats.wilson(n - k, n, level)
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-9)


def test_wilson_without_trials_knows_nothing():
    assert stats.wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("successes", "n", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 0.0), (1, 2, 95.0)])
def test_wilson_refuses_impossible_input(successes, n, level):
    with pytest.raises(ValueError, match="must lie between"):
        stats.wilson(successes, n, level)


def independent_bca(sample, resamples, rng):
    """Efron's formula, written out in NumPy: bias z0, acceleration a, percentiles of the resampled means."""
    means = np.sort(rng.choice(sample, size=(resamples, sample.size)).mean(axis=1))
    z0 = scipy_stats.norm.ppf(((means < sample.mean()).mean() + (means <= sample.mean()).mean()) / 2)
    influence = (sample.sum() - sample) / (sample.size - 1)
    lean = influence.mean() - influence
    a = (lean**3).sum() / (6 * (lean**2).sum() ** 1.5)
    z = z0 + scipy_stats.norm.ppf([0.025, 0.975])
    return np.quantile(means, scipy_stats.norm.cdf(z0 + z / (1 - a * z))), np.quantile(means, [0.025, 0.975])


def test_mean_interval_is_bca_and_not_percentile():
    bca, percentile = independent_bca(SKEWED, 40_000, np.random.default_rng(5))
    low, high = stats.mean_interval(SKEWED, resamples=19_999)
    assert (low, high) == pytest.approx(bca, abs=0.012)
    assert bca[0] < percentile[0] - 0.03


def test_mean_interval_of_many_normal_values_is_that_of_student():
    sample = np.random.default_rng(2).normal(3.0, 2.0, size=400)
    student = scipy_stats.t.interval(0.9, 399, sample.mean(), scipy_stats.sem(sample))
    assert stats.mean_interval(sample, 0.9) == pytest.approx(student, abs=0.02)


def test_mean_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(11)
    intervals = [stats.mean_interval(rng.exponential(size=32), resamples=599) for _ in range(200)]
    assert 0.88 <= np.mean([low <= 1 <= high for low, high in intervals]) <= 0.98


def test_median_interval_is_the_exact_bootstrap_percentile():
    # P(resampled median ≤ k-th value) = P(Binomial(n, k/n) ≥ (n + 1)/2): the ends are order statistics.
    values = np.arange(1.0, 16.0) ** 2
    below = scipy_stats.binom.sf(7, 15, np.arange(1, 16) / 15)
    expected = values[np.searchsorted(below, 0.025)], values[np.searchsorted(below, 0.975)]
    assert stats.median_interval(values[::-1]) == expected


@pytest.mark.parametrize("interval", [stats.mean_interval, stats.median_interval])
def test_bootstrap_is_a_function_of_values_and_seed(interval):
    noise = np.random.default_rng(3).normal(size=40)
    np.random.seed(1)  # noqa: NPY002 the global state must not matter
    first = interval(noise, seed=4)
    np.random.seed(2)  # noqa: NPY002 as above
    assert interval(noise, seed=4) == first
    assert len({interval(noise, seed=seed, resamples=99) for seed in range(5)}) > 1
    assert first.low < first.high
    wider = interval(noise, 0.99, seed=4)
    assert wider.low < first.low < first.high < wider.high


@pytest.mark.parametrize("interval", [stats.mean_interval, stats.median_interval])
def test_bootstrap_limiting_cases(interval):
    assert interval([0.7] * 5) == (0.7, 0.7)
    assert interval([0.3, 0.1 + 0.2, 0.3]) == pytest.approx((0.3, 0.3))  # equal up to rounding
    assert interval([0.0, 0.0]) == (0.0, 0.0)
    for unknown in ([], [0.7], [0.7, math.nan], [0.7, math.inf]):
        assert all(math.isnan(end) for end in interval(unknown))
    low, high = interval([0.0, 1.0])
    assert 0 <= low < high <= 1
    with pytest.raises(ValueError, match="shape"):
        interval(np.ones((3, 1)))
    with pytest.raises(ValueError, match="level"):
        interval([0.1, 0.2], 95.0)


def test_mean_interval_bounds_its_memory(monkeypatch):
    sample = np.random.default_rng(0).normal(size=2000)
    whole = stats.mean_interval(sample, resamples=99)
    monkeypatch.setattr(stats.estimates, "_BATCH_ELEMENTS", 20_000)
    tracemalloc.start()
    in_batches = stats.mean_interval(sample, resamples=99)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6  # a jackknife in one piece takes 2000² numbers of 8 bytes
    assert in_batches == pytest.approx(whole)


def test_interquartile_mean_cuts_a_quarter_from_each_end():
    assert stats.interquartile_mean([9.0, -50.0, 1.0, 2.0, 3.0, 4.0, 800.0, 0.0]) == pytest.approx(2.5)
    assert stats.interquartile_mean([1.0, 2.0, 6.0]) == pytest.approx(3.0)
    assert math.isnan(stats.interquartile_mean([]))
    assert math.isnan(stats.interquartile_mean([1.0, math.nan, 2.0, 3.0]))


# Hollander and Wolfe (1973), depression scale at two visits, as in R's ?wilcox.test: two-sided p = 0.0390625.
FIRST = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
SECOND = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]


def test_paired_difference_reproduces_r():
    result = stats.paired_difference(FIRST, SECOND)
    assert result.p_value == pytest.approx(0.0390625)
    assert result.mean == pytest.approx(np.mean(FIRST) - np.mean(SECOND))
    assert result.interval == stats.mean_interval(np.subtract(FIRST, SECOND))
    assert result.n == 9


def test_paired_difference_is_antisymmetric():
    forth, back = stats.paired_difference(FIRST, SECOND), stats.paired_difference(SECOND, FIRST)
    assert back.mean == pytest.approx(-forth.mean)
    assert back.p_value == pytest.approx(forth.p_value)


def test_paired_difference_drops_pairs_without_difference():
    zeros = [0.5] * 40  # enough for the normal approximation, which must not warn
    padded = stats.paired_difference(FIRST + zeros, SECOND + zeros)
    correct = scipy_stats.wilcoxon(np.subtract(FIRST, SECOND), method="asymptotic").pvalue
    assert padded.p_value == pytest.approx(correct)
    assert padded.n == 49
    assert stats.paired_difference([1.0, 2.0], [1.0, 2.0]) == (0.0, (0.0, 0.0), 1.0, 2)


def test_paired_difference_of_nothing_is_unknown():
    for a, b in (([], []), ([1.0, math.nan], [1.0, 2.0]), ([1.0, 2.0], [math.inf, 2.0])):
        result = stats.paired_difference(a, b)
        assert math.isnan(result.mean)
        assert math.isnan(result.p_value)
        assert all(math.isnan(end) for end in result.interval)
        assert result.n == len(a)
    single = stats.paired_difference([2.0], [1.0])
    assert (single.mean, single.p_value) == (1.0, 1.0)
    assert math.isnan(single.interval.low)


def test_paired_difference_refuses_unpaired_values():
    with pytest.raises(ValueError, match="3 and 2"):
        stats.paired_difference([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="shape"):
        stats.paired_difference(np.ones((3, 1)), np.ones(3))


def test_holm_reproduces_r():
    # p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")
    assert stats.holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    # p.adjust(c(0.04, 0.001, 0.6, 0.03), "holm")
    assert stats.holm([0.04, 0.001, 0.6, 0.03]) == pytest.approx([0.09, 0.004, 0.6, 0.09])


def test_holm_leaves_out_tests_that_were_not_made():
    adjusted = stats.holm([0.01, math.nan, 0.04])
    assert adjusted[[0, 2]] == pytest.approx([0.02, 0.04])
    assert math.isnan(adjusted[1])
    assert stats.holm([]).shape == (0,)


@pytest.mark.parametrize("wrong", [[0.1, 1.2], [-0.1]])
def test_holm_refuses_what_is_no_probability(wrong):
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        stats.holm(wrong)


@FEW
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_holm_properties(pvalues, random):
    p, adjusted = np.array(pvalues), stats.holm(pvalues)
    assert ((adjusted >= p) & (adjusted <= np.minimum(1, p.size * p) + 1e-15)).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
    order = random.sample(range(p.size), p.size)
    np.testing.assert_allclose(stats.holm(p[order]), adjusted[order])


def pairs(more, less, both, neither):
    a = [1] * more + [0] * less + [1] * both + [0] * neither
    b = [0] * more + [1] * less + [1] * both + [0] * neither
    return a, b


def test_paired_shares_reproduce_a_published_interval():
    # Fagerland, Lydersen, Laake, "Recommended tests and confidence intervals for paired binomial proportions",
    # Stat. Med. 33, 2014: airway hyper-responsiveness before and after stem cell transplantation, 1 against 7 of 21
    result = stats.paired_shares(*pairs(1, 7, 1, 12))
    assert (result.difference, *result.interval) == pytest.approx((-0.286, -0.517, -0.026), abs=5e-4)


@FEW
@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.floats(-0.9, 0.9))
def test_paired_shares_are_a_likelihood_score_and_symmetric(more, less, both, neither, margin):
    n = more + less + both + neither
    if n == 0:
        return
    a, b = pairs(more, less, both, neither)
    result, mirrored = stats.paired_shares(a, b, margin), stats.paired_shares(b, a, -margin)
    assert result.p_value == pytest.approx(mirrored.p_value, abs=1e-7)
    assert result.interval == pytest.approx((-mirrored.interval.high, -mirrored.interval.low), abs=1e-6)
    low, high = result.interval
    assert low <= result.difference + 1e-12
    assert result.difference <= high + 1e-12
    # the variance of the score, with P(0, 1) by a search for the most likely value under P(1, 0) - P(0, 1) = margin
    q = np.linspace(max(0, -margin), (1 - margin) / 2, 200_001)[1:-1]
    likelihood = more * np.log(q + margin) + less * np.log(q) + (both + neither) * np.log1p(-2 * q - margin)
    best = q[likelihood.argmax()]
    z = (more - less - n * margin) / math.sqrt(n * (2 * best + margin - margin**2))
    assert result.p_value == pytest.approx(2 * scipy_stats.norm.sf(abs(z)), abs=2e-3)


def test_paired_shares_without_an_event_are_as_unsure_as_wilson():
    result = stats.paired_shares([0] * 30, [0] * 30, 0.05)
    assert result.interval.high == pytest.approx(stats.wilson(0, 30).high, abs=1e-6)
    assert result.p_value > 0.05
    mcnemar = (7 - 1) / math.sqrt(7 + 1)
    assert stats.paired_shares(*pairs(7, 1, 3, 10)).p_value == pytest.approx(2 * scipy_stats.norm.sf(mcnemar))
    assert math.isnan(stats.paired_shares([], []).difference)


@pytest.mark.parametrize(
    ("a", "b", "margin", "said"),
    [
        ([0, 1], [0], 0.0, "one outcome a seed in both"),
        ([0, 0.5], [0, 1], 0.0, "paired_difference"),
        ([0, 1], [0, 1], 1.0, "margin must lie"),
    ],
)
def test_paired_shares_say_what_they_expect(a, b, margin, said):
    with pytest.raises(ValueError, match=said):
        stats.paired_shares(a, b, margin)
