"""Class priors from positive and unlabeled rows: values by hand, limits, invariances, scikit-learn's checks."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from jaxpu import prior
from jaxpu.estimator import PriorEstimator, PriorWarning
from jaxpu.prior.kernel_mean import distance_at, embed, norm_of

ON_SCORES = {"bbe": prior.bbe, "dedpul": prior.dedpul, "pen_l1": prior.pen_l1, "elkan_noto": prior.elkan_noto}
LOGISTIC = {"logistic": prior.default_candidates()["logistic C=0.03"]}


def scored(pi: float, n_p: int = 300, n_u: int = 1000, apart: float = 4.0, seed: int = 0):
    """Scores that are log f_P / f_U of two normal densities, labels, and the truth."""
    rng = np.random.default_rng(seed)
    positive = np.arange(n_p + n_u) < n_p + round(pi * n_u)
    x = rng.normal(np.where(positive, apart / 2, -apart / 2))
    of_p, of_n = np.exp(-((x - apart / 2) ** 2) / 2), np.exp(-((x + apart / 2) ** 2) / 2)
    return np.log(of_p / (pi * of_p + (1 - pi) * of_n)), np.arange(n_p + n_u) < n_p, positive


def bbe_by_hand(z, labeled):
    best, ratio = math.inf, 1.0
    p, u = z[labeled], z[~labeled]
    slack = 1.01 * (math.sqrt(math.log(2) / (2 * len(u))) + math.sqrt(math.log(2) / (2 * len(p))))
    for t in sorted(set(z), reverse=True):
        q_p, q_u = np.mean(p >= t), np.mean(u >= t)
        if q_p and (q_u + slack) / q_p < best:
            best, ratio = (q_u + slack) / q_p, q_u / q_p
    return min(1.0, ratio)


def test_bbe_and_the_upper_bound_are_their_formulas():
    for seed in range(5):
        z, labeled, _ = scored(0.4, 30, 90, 2.0, seed)
        z = z.round(1)  # with ties
        assert prior.bbe(z, labeled) == pytest.approx(bbe_by_hand(z, labeled), abs=1e-12)
        e_p, e_u = (math.sqrt(math.log(40) / (2 * n)) for n in (30, 90))
        q = [(np.mean(z[labeled] >= t), np.mean(z[~labeled] >= t)) for t in z]
        least = min([1.0] + [(u + e_u) / (p - e_p) for p, u in q if p > e_p])
        assert prior.at_most(z, labeled) == pytest.approx(least, abs=1e-12)
        assert prior.auc(z, labeled) == pytest.approx(roc_auc_score(labeled, z), abs=1e-12)


@pytest.mark.parametrize("name", ON_SCORES)
@pytest.mark.parametrize("pi", [0.2, 0.6])
def test_classes_that_part_give_the_truth(name, pi):
    z, labeled, _ = scored(pi, apart=8.0)
    assert abs(ON_SCORES[name](z, labeled) - pi) < 0.08


@pytest.mark.parametrize("name", ["bbe", "pen_l1"])
def test_only_the_order_of_scores_matters(name):
    z, labeled, _ = scored(0.4)
    z = z.round(2)
    assert ON_SCORES[name](z, labeled) == ON_SCORES[name](np.arctan(z) ** 3, labeled)


@pytest.mark.parametrize("name", ["bbe", "dedpul", "elkan_noto"])
def test_order_of_rows_does_not_matter(name):
    z, labeled, _ = scored(0.4)
    order = np.random.default_rng(1).permutation(len(z))
    assert ON_SCORES[name](z, labeled) == pytest.approx(ON_SCORES[name](z[order], labeled[order]), abs=1e-9)


@given(st.integers(0, 1000))
def test_frequencies_are_repeated_rows(seed):
    z, labeled, _ = scored(0.4, 12, 30, 2.0, seed)
    times = np.random.default_rng(seed).integers(1, 4, len(z))
    weight, again = times.astype(float), (np.repeat(z, times), np.repeat(labeled, times))
    fold = np.arange(len(z)) % 3
    for of in (prior.bbe, prior.at_most, prior.auc, prior.elkan_noto, prior.lee_liu):
        assert of(z, labeled, weight) == pytest.approx(of(*again), abs=1e-12)
    assert prior.pu_f1(z, labeled, 0.4, weight) == prior.pu_f1(*again, 0.4)
    upper = prior.upper_end(*again, np.repeat(fold, times))
    assert prior.upper_end(z, labeled, fold, weight) == pytest.approx(upper, abs=1e-12)


def test_frequencies_are_repeated_rows_for_features_too():
    rng = np.random.default_rng(0)
    labeled = np.arange(90) < 30
    x = rng.normal(np.where(np.arange(90) < 55, 1.5, -1.5)[:, None], size=(90, 2))
    times, fold = rng.integers(1, 3, 90), np.arange(90) % 3
    again, weight = [np.repeat(a, times, axis=0) for a in (x, labeled, fold)], times.astype(float)
    assert prior.tice(x, labeled, fold, weight) == pytest.approx(prior.tice(*again), abs=1e-12)
    assert prior.kernel_mean(x, labeled, weight) == pytest.approx(prior.kernel_mean(*again[:2]), abs=0.02)


def test_without_a_difference_all_of_u_may_be_positive():
    z = np.random.default_rng(0).normal(size=800)
    labeled = np.arange(800) < 400
    assert prior.bbe(z, labeled) > 0.9
    assert prior.at_most(z, labeled) == 1.0
    assert prior.bbe(np.zeros(800), labeled) == 1.0


def test_without_a_positive_in_u_little_is_left():
    z, labeled, _ = scored(0.0, apart=10.0)
    z = np.where(labeled, 5.0, -5.0) + 0 * np.nan_to_num(z)
    assert prior.bbe(z, labeled) == 0
    assert prior.lower_end([z], labeled) < 0.02 < prior.upper_end(z, labeled, np.arange(len(z)) % 5) + 0.02 < 0.05


def test_interval_covers():
    inside = 0
    for seed in range(100):
        z, labeled, positive = scored(0.3, 60, 600, 3.0, seed)
        fold = np.random.default_rng(seed).permutation(len(z)) % 5
        truth = positive[~labeled].mean()
        inside += prior.lower_end([z], labeled) <= truth <= prior.upper_end(z, labeled, fold)
    assert inside >= 93


def test_nearest_distribution_is_that_of_nnls():
    rng = np.random.default_rng(0)
    x = rng.normal(np.repeat([1.0, 1.0, -1.0], 20)[:, None], size=(60, 2))
    found = embed(x, np.arange(60) < 20, None, rng)
    root = np.linalg.cholesky(found.kernel + 1e-10 * np.eye(60)).T
    for scale in (1.5, 3.0):
        target = scale * found.mixture + (1 - scale) * found.component
        a, b = np.vstack([root, 1e4 * np.ones(60)]), np.append(root @ target, 1e4)
        exact = norm_of(found.kernel, target - nnls(a, b, maxiter=5000)[0])
        d, slope = distance_at(found, scale)
        assert d == pytest.approx(exact, abs=1e-4)
        assert slope == pytest.approx((distance_at(found, scale + 0.01)[0] - d) / 0.01, rel=0.05)


def test_scenarios_differ_in_words_only():
    x = np.random.default_rng(0).normal(np.where(np.arange(400) < 180, 2.0, -2.0)[:, None], size=(400, 2))
    labeled = np.arange(400) < 60
    one, two = (
        PriorEstimator(scenario=s, candidates=LOGISTIC, random_state=0).fit(x, labeled) for s in prior.SCENARIOS
    )
    assert one.prior_ == two.prior_ == two.alpha_
    assert one.interval_ == two.interval_
    assert abs(one.alpha_ - (60 + one.prior_ * 340) / 400) < 1e-12
    c = one.label_frequency_
    assert abs(one.alpha_ * (1 - c) / (1 - one.alpha_ * c) - one.prior_) < 1e-12
    assert abs(prior.prior_of(one.alpha_, 60, 340) - one.prior_) < 1e-12
    assert abs(prior.prior_of_frequency(c, 60, 340) - one.prior_) < 1e-12


def test_calibrated_probabilities_are_the_posterior():
    pi = 0.3
    z, labeled, positive = scored(pi, 2000, 6000, 2.0)
    squashed = z / 3 + 1  # as of a classifier that is calibrated badly
    found = prior.cross_calibrated(squashed, labeled, np.arange(len(z)) % 5)
    p, truth = prior.probability(found, pi)[~labeled], prior.probability(z, pi)[~labeled]
    assert np.abs(p - truth).mean() < 0.03
    assert abs(p.mean() - positive[~labeled].mean()) < 0.02
    of_all = prior.probability(z, pi, of="population", n_labeled=2000, n_unlabeled=6000)
    g = 1 / (1 + 3 * np.exp(-z))  # P(s = 1 | x): 2,000 to 6,000
    np.testing.assert_allclose(of_all, np.minimum(1, g + (1 - g) * pi * np.exp(z)), rtol=1e-9)


def test_thresholds_find_what_they_are_asked_for():
    pi = 0.4
    z, labeled, positive = scored(pi, 1000, 3000, 3.0)
    y, of_u = positive[~labeled], z[~labeled]

    def f1(t):
        return 2 * (y & (of_u >= t)).sum() / (y.sum() + (of_u >= t).sum())

    best = max(f1(t) for t in np.quantile(of_u, np.linspace(0.3, 0.9, 200)))
    assert f1(prior.quantile(z, labeled, pi)) > best - 0.02
    for t in (prior.pu_f1(z, labeled, pi), prior.lee_liu(z, labeled)):
        assert f1(t) > best - 0.03
    assert (of_u >= prior.budget(z, labeled, 250)).sum() == 250
    t = prior.precision(z, labeled, pi, 0.97)
    assert abs(y[of_u >= t].mean() - 0.97) < 0.03
    told = prior.performance(z, labeled, pi, t)
    assert abs(told.recall - (of_u[y] >= t).mean()) < 0.03
    assert abs(told.f1 - f1(t)) < 0.03


@pytest.mark.slow
def test_a_bootstrap_of_copies_is_far_too_low():
    rng = np.random.default_rng(0)
    labeled = np.arange(360) < 60
    x = rng.normal(np.where(np.arange(360) < 60 + 120, 0.5, -0.5)[:, None], size=(360, 40))
    forest = {"near": LogisticRegression(C=100.0, max_iter=2000)}

    def estimate(rows, w=None):
        fold = prior.folds(labeled[rows], 5, 0)
        return prior.bbe(prior.cross_fit(x[rows], labeled[rows], fold, forest, weight=w).z, labeled[rows], w)

    whole = estimate(np.arange(360))
    grouped = prior.estimates(estimate, labeled, times=6).mean()
    copies = prior.estimates(lambda rows, w: estimate(np.repeat(rows, w.astype(int))), labeled, times=6).mean()
    assert abs(grouped - whole) < 0.12
    assert copies < grouped - 0.15


SLOW = [pytest.param(name, marks=pytest.mark.slow) if name.startswith("km") else name for name in prior.METHODS]


@pytest.mark.parametrize("method", SLOW)
def test_every_method_from_rows(method):
    rng = np.random.default_rng(0)
    n = 60 if method.startswith("km") else 100  # kernels cost the cube of it
    labeled = np.arange(5 * n) < n
    x = rng.normal(np.where(np.arange(5 * n) < 2.6 * n, 2.0, -2.0)[:, None], size=(5 * n, 2))  # 1.6 of 4
    found = PriorEstimator(method, candidates=LOGISTIC, times=2, random_state=0).fit(x, labeled)
    assert abs(found.prior_ - 0.4) < 0.15
    low, high = found.interval_
    assert 0 <= low <= found.prior_ <= high <= 1
    assert "At most" in found.statement()
    same = PriorEstimator(method, candidates=LOGISTIC, times=0, random_state=0).fit(x, labeled)
    assert same.prior_ == found.prior_


def test_codings_of_labels():
    x = np.random.default_rng(0).normal(np.where(np.arange(120) < 60, 2.0, -2.0)[:, None], size=(120, 2))
    s = (np.arange(120) < 30).astype(int)
    known = [s, 2 * s - 1, s == 1, s.astype(float)]
    words = np.where(s == 1, "positive", "unlabeled")
    found = [PriorEstimator(candidates=LOGISTIC, random_state=0).fit(x, y) for y in known]
    found.append(PriorEstimator(candidates=LOGISTIC, random_state=0, pos_label="positive").fit(x, words))
    assert len({f.prior_ for f in found}) == 1
    with pytest.raises(ValueError, match=r"'unlabeled'\]: say with pos_label"):
        PriorEstimator().fit(x, words)
    with pytest.raises(ValueError, match="pos_label is 'P', expected one of"):
        PriorEstimator(pos_label="P").fit(x, words)


def test_what_cannot_be_estimated_is_said():
    x, s = np.arange(40.0)[:, None], np.arange(40) < 10
    for wrong, message in (
        ((x, np.zeros(40)), "y has one class"),
        ((x, np.ones(40)), "y has one class"),
        ((np.where(x > 3, np.nan, x), s), "NaN"),
        ((x, np.arange(40) % 3), "y has 3 classes"),
        ((x, np.arange(40) < 1), "at least two labeled and two unlabeled"),
    ):
        with pytest.raises(ValueError, match=message):
            PriorEstimator().fit(*wrong)
    for options, message in (
        ({"method": "bbe2"}, "did you mean 'bbe'"),
        ({"scenario": "both"}, "choose from single_set, case_control"),
        ({"level": 95}, "level is 95"),
        ({"cv": 1}, "at least 2 folds"),
    ):
        with pytest.raises(ValueError, match=message):
            PriorEstimator(**options).fit(x, s)
    with pytest.raises(ValueError, match="NaN or infinite"):
        prior.bbe(np.array([1.0, np.nan]), np.array([True, False]))
    with pytest.raises(ValueError, match="no labeled row"):
        prior.bbe(np.zeros(2), np.zeros(2, bool))


def test_few_labels_give_an_upper_bound_and_a_warning():
    x = np.random.default_rng(0).normal(np.where(np.arange(200) < 80, 2.0, -2.0)[:, None], size=(200, 2))
    with pytest.warns(PriorWarning, match="19 rows are labeled, fewer than 20"):
        found = PriorEstimator(candidates=LOGISTIC, random_state=0).fit(x, np.arange(200) < 19)
    assert found.interval_ == (0.0, found.at_most_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PriorEstimator(candidates=LOGISTIC, random_state=0).fit(x, np.arange(200) < 20)


@pytest.mark.filterwarnings("ignore::jaxpu.estimator.PriorWarning")
@parametrize_with_checks([PriorEstimator(candidates=LOGISTIC, random_state=0)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
