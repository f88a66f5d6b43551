import itertools
import math
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
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


def of_scipy(sample, statistic, method, level=0.95):
    found = scipy_stats.bootstrap(
        (sample,), statistic, n_resamples=4999, confidence_level=level, method=method, rng=np.random.default_rng(0)
    )
    return found.confidence_interval


@pytest.mark.parametrize("n", [2, 3, 10, 11, 40, 1000])
@pytest.mark.parametrize("ties", [False, True], ids=["continuous", "ties"])
def test_intervals_are_those_of_scipy_with_the_same_resamples(n, ties):
    generator = np.random.default_rng(n)
    samples = np.stack([generator.beta(8, 2, n), generator.exponential(size=n), generator.normal(size=n)])
    samples = np.round(samples * 20) / 20 + np.arange(n) / 20 * (n < 4) if ties else samples
    for level in (0.95, 0.8):
        low, high = stats.mean_intervals(samples, level)
        median_low, median_high = stats.median_intervals(samples, level)
        for place, sample in enumerate(samples):
            np.testing.assert_allclose((low[place], high[place]), of_scipy(sample, np.mean, "BCa", level), rtol=1e-12)
            middle = of_scipy(sample, np.median, "percentile", level)
            np.testing.assert_allclose((median_low[place], median_high[place]), middle, rtol=1e-12)
            assert stats.mean_interval(sample, level) == (low[place], high[place])


def test_many_samples_at_once_are_each_alone():
    generator = np.random.default_rng(0)
    samples = generator.normal(size=(50, 7))
    samples[3], samples[4, 2], samples[5, 0] = 0.3, np.nan, np.inf
    for many, one in ((stats.mean_intervals, stats.mean_interval), (stats.median_intervals, stats.median_interval)):
        low, high = many(samples, resamples=199)
        np.testing.assert_array_equal(np.stack([low, high], 1), [one(sample, resamples=199) for sample in samples])
        assert (low[3], high[3]) == (0.3, 0.3)
        assert np.isnan(low[[4, 5]]).all()
    finite = np.delete(samples, [4, 5], axis=0)
    means = stats.interquartile_means(finite)
    np.testing.assert_allclose(means, scipy_stats.trim_mean(finite, 0.25, axis=-1), rtol=1e-15)
    assert means.tolist() == [stats.interquartile_mean(sample) for sample in finite]


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
    sample = np.random.default_rng(0).normal(size=20_000)
    whole = stats.mean_interval(sample, resamples=99)
    monkeypatch.setattr(stats.bootstrap, "_HELD", 20_000)
    tracemalloc.start()
    in_batches = stats.mean_interval(sample, resamples=99)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6  # a jackknife in one piece takes 20,000² numbers of 8 bytes
    assert in_batches == whole


def test_interquartile_mean_cuts_a_quarter_from_each_end():
    assert stats.interquartile_mean([9.0, -50.0, 1.0, 2.0, 3.0, 4.0, 800.0, 0.0]) == pytest.approx(2.5)
    assert stats.interquartile_mean([1.0, 2.0, 6.0]) == pytest.approx(3.0)
    assert math.isnan(stats.interquartile_mean([]))
    assert math.isnan(stats.interquartile_mean([1.0, math.nan, 2.0, 3.0]))


# Hollander and Wolfe (1973), depression scale at two visits, as in R's ?wilcox.test
FIRST = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
SECOND = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]


def independent_mean_test(values, bound, level=0.95):
    """The documented formula, one sample at a time, the p-value by a search for the level whose end is the bound."""
    n, mean = values.size, values.mean()
    skew = scipy_stats.skew(values, bias=False)
    moved = skew * (1 / (6 * math.sqrt(n)) + 4.5 / n)

    def ends(level):
        t = scipy_stats.t.ppf((1 + level) / 2, n - 1)
        low, high = (t + max(side * moved, 0) * (1 + 2 * t * t) for side in (-1, 1))
        return mean - low * scipy_stats.sem(values), mean + high * scipy_stats.sem(values)

    def covered(level):
        low, high = ends(level)
        return (high if bound > mean else low) - bound

    inside = covered(1e-12) * (1 if bound > mean else -1) > 0
    p = 1.0 if inside else 1 - optimize.brentq(covered, 1e-12, 1 - 1e-12, xtol=1e-14)
    return ends(level), p


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_paired_differences_are_those_of_an_independent_computation(statistic):
    difference = np.subtract(FIRST, SECOND)
    for bound in (0.0, 0.2, 0.9, 1.2):
        result = stats.paired_difference(FIRST, SECOND, bound, statistic=statistic)
        if statistic == "mean":
            ends, p = independent_mean_test(difference, bound)
            assert result.interval == pytest.approx(ends)
            assert result.p_value == pytest.approx(p, abs=1e-9)
        else:  # BSDA::SIGN.test: with n = 9 the ends are the second and the last but one, P(Bin(9, 1/2) <= 1) = 0.0195
            assert result.interval == pytest.approx(tuple(np.sort(difference)[[1, 7]]))
            counts = (difference > bound).sum(), (difference < bound).sum()
            assert result.p_value == pytest.approx(scipy_stats.binomtest(int(max(counts)), 9, 0.5).pvalue)
        assert result.n == 9
    assert result.estimate == pytest.approx(getattr(np, statistic)(difference))


def test_a_symmetric_sample_has_the_interval_and_p_of_student():
    values = np.array([-3.0, -1.0, 0.0, 1.0, 3.0]) + 0.7
    result = stats.mean_test(values, -1.0)
    assert tuple(result.interval) == pytest.approx(scipy_stats.t.interval(0.95, 4, 0.7, scipy_stats.sem(values)))
    assert result.p_value == pytest.approx(scipy_stats.ttest_1samp(values, -1.0).pvalue)
    assert result.above == result.p_value
    assert result.below == 1


@pytest.mark.parametrize("n", [6, 7, 9, 12])
def test_the_median_s_interval_is_exact_by_enumeration(n):
    """All 2ⁿ ways in which values may lie around the median: as often missed as the binomial says, and never more."""
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    values = signs * np.arange(1.0, n + 1)
    result = stats.median_test(values)
    low, high = result.interval
    missed = [(low > 0).mean(), (high < 0).mean()]
    k = max(k for k in range(n) if sum(math.comb(n, i) for i in range(k + 1)) / 2**n <= 0.025)
    assert missed == pytest.approx([sum(math.comb(n, i) for i in range(k + 1)) / 2**n] * 2)
    np.testing.assert_array_equal(result.above < 0.05, low > 0)
    np.testing.assert_array_equal(result.below < 0.05, high < 0)
    tied = stats.median_test(np.where(np.arange(n) < 2, 0.0, values))  # two values at the median itself
    assert max((tied.above < 0.05).mean(), (tied.below < 0.05).mean()) <= 0.025


@pytest.mark.parametrize(("n", "bound"), [(1, 0.3), (8, 0.05), (8, 0.5), (20, 0.31), (30, 0.9)])
def test_a_share_is_exact_by_enumeration(n, bound):
    k = np.arange(n + 1)
    shares = np.array([[1.0] * int(i) + [0.0] * int(n - i) for i in k])
    result = stats.share_test(shares, bound)
    chance = scipy_stats.binom.pmf(k, n, bound)
    for p, one_sided in ((result.above, "greater"), (result.below, "less")):
        exact = [scipy_stats.binomtest(int(i), n, bound, one_sided).pvalue for i in k]
        assert p == pytest.approx(np.minimum(2 * np.array(exact), 1))
        assert chance[p < 0.05].sum() <= 0.025
    wanted = [scipy_stats.binomtest(int(i), n).proportion_ci(0.95, "exact") for i in k]
    assert result.interval.low == pytest.approx([ends.low for ends in wanted])
    assert result.interval.high == pytest.approx([ends.high for ends in wanted])


def test_cells_of_a_seed_are_worth_what_they_differ():
    alike = np.repeat([0.0, 1.0], [10, 20])
    one = stats.share_test(alike, 0.5)
    assert stats.share_test(alike, 0.5, 6).interval == pytest.approx(tuple(one.interval), abs=0.01), (
        "six times the same"
    )
    apart = np.tile([1 / 3, 2 / 3, 1 / 2, 1 / 2], 15)
    low, high = stats.share_test(apart, 0.5, 6).interval
    alone = stats.share_test(np.tile([0.0, 1.0], 30), 0.5).interval
    assert high - low < 0.6 * (alone.high - alone.low), "six different cells tell more than one"
    none = stats.share_test(np.zeros(32), 0.05, 6)
    assert none.interval.high == pytest.approx(1 - 0.025 ** (1 / 32)), "no event: n is the number of seeds"
    assert stats.paired_shares(np.zeros(32), np.zeros(32), 0.05, cells=6).interval == pytest.approx(
        tuple(stats.paired_shares(np.zeros(32), np.zeros(32), 0.05).interval)
    )


TESTS = {"mean": stats.mean_test, "median": stats.median_test}
SAMPLES = st.lists(st.integers(-50, 50), min_size=2, max_size=20)


@FEW
@given(SAMPLES, st.integers(-20, 20), st.integers(-500, 500), st.sampled_from(sorted(TESTS)), st.randoms())
def test_tests_move_with_their_values_and_know_no_order(numbers, bound, shift, statistic, random):
    values, test = np.array(numbers) / 8, TESTS[statistic]
    one, moved = test(values, bound / 8), test(values + shift / 8, (bound + shift) / 8)
    assert (moved.above, moved.below) == pytest.approx((one.above, one.below), abs=1e-7)
    assert np.array(moved.interval) - shift / 8 == pytest.approx(np.array(one.interval), abs=1e-7, nan_ok=True)
    shuffled = test(np.array(random.sample(numbers, len(numbers))) / 8, bound / 8)
    assert (shuffled.above, *shuffled.interval) == pytest.approx((one.above, *one.interval), abs=1e-9, nan_ok=True)
    mirrored = test(-values, -bound / 8)
    assert (mirrored.below, mirrored.above) == pytest.approx((one.above, one.below), abs=1e-9)
    assert mirrored.interval == pytest.approx((-one.interval.high, -one.interval.low), abs=1e-9, nan_ok=True)
    low, high = one.interval
    if not np.isnan(low) and np.ptp(values) > 0:  # the p-values invert the interval
        assert (one.above < 0.05) == (low > bound / 8)
        assert (one.below < 0.05) == (high < bound / 8)
        assert low <= one.estimate <= high


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_differences_that_equal_the_bound_but_for_rounding_are_ties(statistic):
    assert 0.3 - 0.2 != 0.1
    result = stats.paired_difference([0.3] * 32, [0.2] * 32, 0.1, statistic=statistic)
    assert (result.estimate, *result.interval, result.above, result.below) == (0.1, 0.1, 0.1, 1.0, 1.0)
    six = stats.paired_difference([0.3] * 6, [0.2] * 6, 0.1, statistic=statistic)
    assert six.p_value == 1.0
    away = stats.paired_difference([0.3 + 1e-9] * 32, [0.2] * 32, 0.1, statistic=statistic)
    assert away.above == pytest.approx(2 * 0.5**32)


def test_many_ties_take_no_time():
    values = np.array([0.1] * 7 + [0.2] * 3 + [-0.1] * 3)
    begun = time.perf_counter()
    for _ in range(20):
        stats.paired_difference(values, 0 * values, statistic="median")
        stats.paired_difference(values, 0 * values)
    assert time.perf_counter() - begun < 1


def test_differences_of_nothing_are_unknown():
    for a, b in (([], []), ([1.0, math.nan], [1.0, 2.0]), ([1.0, 2.0], [math.inf, 2.0])):
        for statistic in ("mean", "median"):
            result = stats.paired_difference(a, b, statistic=statistic)
            assert all(math.isnan(x) for x in (result.estimate, result.above, result.below, *result.interval))
            assert result.n == len(a)
    single = stats.paired_difference([2.0], [1.0])
    assert single.estimate == 1.0
    assert math.isnan(single.p_value)
    few = stats.paired_difference([1, 2, 3, 4, 5], [0, 0, 0, 0, 0], statistic="median")
    assert few.p_value == 0.0625
    assert math.isnan(few.interval.low), "five values have no 95 % interval of the median"


def test_paired_difference_refuses_what_it_cannot_compare():
    with pytest.raises(ValueError, match="3 and 2"):
        stats.paired_difference([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="shape"):
        stats.paired_difference(np.ones((3, 1)), np.ones(3))
    with pytest.raises(ValueError, match="mean or median"):
        stats.paired_difference([1.0], [1.0], statistic="mode")
    with pytest.raises(ValueError, match="shares must lie"):
        stats.share_test(np.array([0.5, 2.0]), 0.5)


def rate(p_values):
    return float((p_values < 0.05).mean())


def test_error_rates_of_a_rare_collapse_and_of_clustered_runs():
    rng = np.random.default_rng(12)
    shape = (1500, 12)
    values = np.where(rng.random(shape) < 1 / 24, -0.8, rng.normal(0.035, 0.01, shape))
    median = 0.035 + 0.01 * scipy_stats.norm.ppf((0.5 - 1 / 24) / (23 / 24))
    by_median = stats.median_test(values, median)
    assert max(rate(by_median.above), rate(by_median.below)) <= 0.035
    assert rate(stats.mean_test(values, 0.035 * 23 / 24 - 0.8 / 24).above) > 0.3, "why a mean stands never alone"
    runs = rng.binomial(6, rng.beta(0.5, 0.5, (1500, 30))) / 6  # correlation 1/2 within a seed
    clustered = stats.share_test(runs, 0.5, 6)
    assert max(rate(clustered.above), rate(clustered.below)) <= 0.035
    assert rate(clustered.above) + rate(clustered.below) > 0.005, "and not by never deciding"
    skewed = stats.mean_test(rng.lognormal(0, 1, shape), math.exp(0.5))
    assert max(rate(skewed.above), rate(skewed.below)) <= 0.035


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
    assert (result.estimate, *result.interval) == pytest.approx((-0.286, -0.517, -0.026), abs=5e-4)


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
    assert low <= result.estimate + 1e-12
    assert result.estimate <= high + 1e-12
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
    assert math.isnan(stats.paired_shares([], []).estimate)


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
