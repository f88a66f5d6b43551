import dataclasses
import math
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm
from sklearn import metrics as sklearn_metrics

from jaxpu import collapse
from jaxpu.analysis import rates
from jaxpu.collapse import Diagnosis, Thresholds, Verdict, diagnose, diagnose_epoch, diagnose_run
from jaxpu.metrics import oracle_metrics

FEW = settings(max_examples=30, deadline=None, derandomize=True)

# One epoch of each kind at π = 0.4, where always answering positive has F1 0.5714.
HEALTHY = {
    "oracle_f1": 0.85,
    "oracle_f1_best": 0.88,
    "oracle_auc": 0.95,
    "predicted_positive": 0.4,
    "score_sd": 0.4,
    "score_mean": 0.4,
    "prevalence": 0.4,
}
SHIFTED = HEALTHY | {"oracle_f1": 0.02, "predicted_positive": 0.02, "score_sd": 0.05, "score_mean": 0.3}
DOWN = HEALTHY | {
    "oracle_f1": 0.0,
    "oracle_f1_best": 0.6,
    "oracle_auc": 0.5,
    "predicted_positive": 0.0,
    "score_sd": 0.01,
    "score_mean": 0.01,
}
UP = DOWN | {"oracle_f1": 2 * 0.4 / 1.4, "predicted_positive": 1.0, "score_mean": 0.99}
INVERTED = DOWN | {"oracle_f1": 0.3, "oracle_auc": 0.0, "predicted_positive": 0.5, "score_sd": 0.02}
WEAK = DOWN | {"oracle_f1": 0.4, "oracle_auc": 0.6, "predicted_positive": 0.3, "score_sd": 0.2}
BROKEN = HEALTHY | {name: math.nan for name in HEALTHY if name != "prevalence"}


def trajectory(*epochs, **columns):
    run = {name: np.array([epoch[name] for epoch in epochs]) for name in HEALTHY}
    return run | {name: np.asarray(column) for name, column in columns.items()}


def without(name, metrics):
    return {other: value for other, value in metrics.items() if other != name}


def gaussian_scores(n=400, distance=2.0, seed=0):
    """Logits of n rows, 40 % of them positive."""
    labels = np.arange(n) < 0.4 * n
    return np.random.default_rng(seed).normal(size=n) + distance * labels, labels


# --- numbers from scores ---


@FEW
@given(st.integers(0, 10**6), st.integers(5, 60), st.booleans())
def test_score_metrics_agree_with_scikit_learn(seed, n, ties):
    rng = np.random.default_rng(seed)
    scores, labels = rng.uniform(size=n), rng.permutation(np.arange(n) < rng.integers(1, n))
    if ties:
        scores = np.round(scores, 1)
    ours = collapse.score_metrics(scores, labels, threshold=0.45)
    predicted = scores > 0.45
    assert ours["oracle_f1"] == pytest.approx(sklearn_metrics.f1_score(labels, predicted))
    assert ours["oracle_recall"] == pytest.approx(sklearn_metrics.recall_score(labels, predicted))
    assert ours["oracle_accuracy"] == pytest.approx(sklearn_metrics.accuracy_score(labels, predicted))
    if predicted.any():
        assert ours["oracle_precision"] == pytest.approx(sklearn_metrics.precision_score(labels, predicted))
    else:
        assert math.isnan(ours["oracle_precision"])
    assert ours["oracle_auc"] == pytest.approx(sklearn_metrics.roc_auc_score(labels, scores))
    precision, recall, _ = sklearn_metrics.precision_recall_curve(labels, scores)
    with np.errstate(invalid="ignore"):
        assert ours["oracle_f1_best"] == pytest.approx(np.nanmax(2 * precision * recall / (precision + recall)))
    at_quantile = scores >= np.sort(scores)[n - labels.sum()]
    assert ours["oracle_f1_quantile"] == pytest.approx(sklearn_metrics.f1_score(labels, at_quantile))
    shares = [ours[name] for name in ("predicted_positive", "prevalence", "score_mean", "score_sd")]
    assert shares == pytest.approx([predicted.mean(), labels.mean(), scores.mean(), scores.std()])


def test_score_metrics_are_those_that_training_records():
    rng = np.random.default_rng(6)
    logits, labels = np.round(rng.normal(size=80), 1), rng.uniform(size=80) < 0.3
    recorded = jax.jit(oracle_metrics)(
        jnp.asarray(logits, jnp.float32), jnp.asarray(labels, jnp.float32), prior=labels.mean(), log_p_max=0.0
    )
    ours = without("prevalence", collapse.score_metrics(expit(logits), labels))
    assert ours == pytest.approx({name: float(recorded[name]) for name in ours}, abs=1e-5)


def test_score_trajectory_is_one_row_an_epoch():
    scores, labels = gaussian_scores(50)
    run = collapse.score_trajectory([scores, -scores], labels, threshold=0.0)
    for name, values in collapse.score_metrics(-scores, labels, threshold=0.0).items():
        assert run[name].shape == (2,)
        assert run[name][1] == values
    assert run["oracle_auc"].sum() == pytest.approx(1)
    with pytest.raises(ValueError, match=r"\(epochs, n\)"):
        collapse.score_trajectory(scores, labels)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (np.ones((3, 1)), np.ones(3), r"\(3, 1\) and \(3,\)"),
        (np.ones((3, 1)), np.ones((3, 1)), "one shape"),
        (np.ones(3), np.ones(2), r"\(3,\) and \(2,\)"),
        (np.ones(3), np.array([-1, 1, 1]), "map the positive class to 1"),
        (np.ones(3), np.array([0.0, 1.0, np.nan]), "labels 0 and 1"),
    ],
)
def test_diagnose_refuses_what_it_would_have_to_guess(scores, labels, message):
    with pytest.raises(ValueError, match=message):
        diagnose(scores, labels)
    with pytest.raises(ValueError, match="threshold is nan, expected a finite number"):
        diagnose([0.1, 0.9], [0, 1], threshold=np.float64("nan"))


# --- one set of scores ---


@pytest.mark.parametrize("logit", [5.0, -5.0])
@pytest.mark.parametrize("as_logits", [True, False])
def test_constant_predictors_are_never_a_good_run(logit, as_logits):
    labels = np.arange(100) < 20
    scores = np.full(100, logit if as_logits else expit(logit))
    diagnosis = diagnose(scores, labels, threshold=0.0 if as_logits else 0.5)
    assert diagnosis.verdict == (Verdict.ALL_POSITIVE if logit > 0 else Verdict.ALL_NEGATIVE)
    assert Verdict.CONSTANT in diagnosis.flags
    assert Verdict.HEALTHY not in diagnosis.flags
    assert diagnosis.failing
    assert diagnosis.evidence["collapsed"] == 1
    assert diagnosis.evidence["f1_always_positive"] == pytest.approx(2 * 20 / 120)
    assert diagnosis.evidence["f1"] == pytest.approx(2 * 20 / 120 if logit > 0 else 0)
    assert "always answering positive gives 0.333" in diagnosis.explanation
    assert "practically equal" in diagnosis.explanation


def test_a_score_at_the_threshold_is_not_predicted_positive():
    assert diagnose([0.5] * 4, [1, 1, 0, 0]).verdict == Verdict.ALL_NEGATIVE


def test_verdicts_on_real_scores():
    logits, labels = gaussian_scores()
    centred = logits - 1.2
    noise = np.random.default_rng(1).normal(size=labels.size)
    expected = {
        Verdict.HEALTHY: centred,
        Verdict.THRESHOLD_SHIFT: centred - 6,
        Verdict.INVERTED: -centred,
        Verdict.ALL_NEGATIVE: noise - 9,
        Verdict.ALL_POSITIVE: noise + 9,
        Verdict.CONSTANT: 1e-5 * noise,
        Verdict.WEAK_RANKING: noise,
        Verdict.DIVERGED: np.where(np.arange(labels.size) == 7, np.nan, centred),
    }
    for verdict, scores in expected.items():
        assert diagnose(scores, labels, threshold=0.0).verdict == verdict
    probabilities = {verdict: expit(scores) for verdict, scores in expected.items()}
    del probabilities[Verdict.ALL_NEGATIVE], probabilities[Verdict.ALL_POSITIVE]
    for verdict, scores in probabilities.items():
        assert diagnose(scores, labels).verdict == verdict


def test_infinite_scores_have_diverged():
    scores, labels = gaussian_scores(20)
    scores[3] = -np.inf
    diagnosis = diagnose(scores, labels, threshold=0.0)
    assert diagnosis.flags == (Verdict.DIVERGED,)
    assert diagnosis.explanation == "Some scores are NaN or infinite."


@pytest.mark.parametrize("labels", [[], [0, 0, 0], [1, 1, 1]])
def test_labels_of_one_class_are_undefined_and_never_a_number(labels):
    diagnosis = diagnose([0.2, 0.7, 0.9][: len(labels)], labels)
    assert diagnosis.flags == (Verdict.UNDEFINED,)
    assert all(math.isnan(diagnosis.evidence[name]) for name in ("f1", "f1_best", "auc"))
    assert diagnosis.failing
    assert "both classes" in diagnosis.explanation


def test_the_seeds_headline_epoch_is_a_threshold_shift():
    """F1 0.0218 with precision 1, recall 4/363 and AUC 0.9253 on 921 rows: the collapse of seed 000."""
    labels = np.arange(921) < 363
    logits = spread_to_auc(labels, 0.9253)
    fourth, fifth = np.sort(logits)[[-4, -5]]
    logits -= (fourth + fifth) / 2  # four scores remain above 0, all of them of positives
    diagnosis = diagnose(expit(0.1 * logits), labels)
    assert diagnosis.evidence["f1"] == pytest.approx(0.0218, abs=5e-5)
    assert diagnosis.evidence["precision"] == 1
    assert diagnosis.evidence["recall"] == pytest.approx(4 / 363)
    assert diagnosis.evidence["auc"] == pytest.approx(0.9253, abs=2e-3)
    assert diagnosis.verdict == Verdict.THRESHOLD_SHIFT
    assert Verdict.ALL_NEGATIVE in diagnosis.flags  # 4 predicted positives for 363
    assert Verdict.CONSTANT not in diagnosis.flags
    assert "F1 0.022, with 0.4 % predicted positive where 39.4 % are" in diagnosis.explanation


def spread_to_auc(labels, auc):
    """Normal quantiles for either class, as far apart as the AUC asks for."""
    scores = math.sqrt(2) * norm.ppf(auc) * labels
    for rows in (labels, ~labels):
        scores[rows] += norm.ppf((np.arange(rows.sum()) + 0.5) / rows.sum())
    return scores


@FEW
@given(st.integers(0, 10**6), st.floats(-3, 3), st.floats(-3, 3))
def test_diagnose_does_not_depend_on_the_order_of_the_rows(seed, distance, shift):
    scores, labels = gaussian_scores(60, distance, seed)
    order = np.random.default_rng(seed + 1).permutation(60)
    once = diagnose(expit(scores + shift), labels)
    again = diagnose(expit(scores + shift)[order], labels[order])
    assert (again.verdict, again.flags, again.explanation) == (once.verdict, once.flags, once.explanation)
    assert again.evidence == pytest.approx(once.evidence, nan_ok=True)


# --- one recorded epoch: each rule, and the number at which it just does not hold ---


@pytest.mark.parametrize(
    ("row", "change", "verdict", "otherwise"),
    [
        (HEALTHY, {}, Verdict.HEALTHY, {"oracle_f1": 0.8 * 0.88 - 1e-6}),
        (HEALTHY | {"oracle_auc": 0.7}, {}, Verdict.HEALTHY, {"oracle_auc": 0.7 - 1e-6}),
        (HEALTHY | {"oracle_f1_best": 0.6, "oracle_f1": 0.5715}, {}, Verdict.HEALTHY, {"oracle_f1": 0.5714}),
        (SHIFTED, {}, Verdict.THRESHOLD_SHIFT, {"oracle_auc": 0.7 - 1e-6}),
        (SHIFTED | {"oracle_f1": 0.8 * 0.88 - 1e-6}, {}, Verdict.THRESHOLD_SHIFT, {"oracle_f1": 0.8 * 0.88}),
        (INVERTED, {"oracle_auc": 0.2}, Verdict.INVERTED, {"oracle_auc": 0.2 + 1e-6}),
        (DOWN, {"predicted_positive": 0.02 * 0.4}, Verdict.ALL_NEGATIVE, {"predicted_positive": 0.0081}),
        (UP, {"predicted_positive": 1 - 0.0119}, Verdict.ALL_POSITIVE, {"predicted_positive": 1 - 0.0121}),
        (WEAK, {"score_sd": 1e-3 * 0.489}, Verdict.CONSTANT, {"score_sd": 1e-3 * 0.491}),
        (WEAK, {}, Verdict.WEAK_RANKING, {"oracle_auc": 0.7}),
        (BROKEN, {}, Verdict.DIVERGED, {"score_sd": 0.1}),
        (HEALTHY, {"oracle_auc": math.nan}, Verdict.UNDEFINED, {"oracle_auc": 0.9}),
    ],
)
def test_each_epoch_verdict_holds_and_just_does_not(row, change, verdict, otherwise):
    assert diagnose_epoch(row | change).verdict == verdict
    assert diagnose_epoch(row | change | otherwise).verdict != verdict


def test_cause_goes_before_symptom():
    assert diagnose_epoch(SHIFTED | {"predicted_positive": 0.0}).flags == (
        Verdict.THRESHOLD_SHIFT,
        Verdict.ALL_NEGATIVE,
    )
    assert diagnose_epoch(INVERTED | {"predicted_positive": 1.0}).flags == (
        Verdict.INVERTED,
        Verdict.ALL_POSITIVE,
    )
    # Where nine of ten rows are positive, calling all but a handful positive has nearly the best F1.
    mostly = {"prevalence": 0.9, "oracle_f1": 0.9479, "oracle_f1_best": 0.96, "predicted_positive": 0.999}
    assert diagnose_epoch(HEALTHY | mostly).flags == (Verdict.THRESHOLD_SHIFT, Verdict.ALL_POSITIVE)
    # Without spread a ranking is rounding noise: neither its quality nor its direction counts.
    for auc in (0.0, 0.5, 0.95):
        flat = diagnose_epoch(DOWN | {"oracle_auc": auc, "score_sd": 1e-6})
        assert flat.verdict == Verdict.ALL_NEGATIVE
        assert Verdict.CONSTANT in flat.flags


def test_scores_of_any_scale_are_healthy_if_the_threshold_fits():
    scores, labels = gaussian_scores()
    assert diagnose(1e-9 * (scores - 1.2), labels, threshold=0.0).verdict == Verdict.HEALTHY


@pytest.mark.parametrize(
    ("row", "collapsed"),
    [
        (HEALTHY, False),
        (WEAK, False),
        (SHIFTED, True),
        (SHIFTED | {"oracle_f1": 0.1}, False),
        (SHIFTED | {"oracle_f1": 0.0999}, True),
        (UP, True),
        (INVERTED, True),
        (BROKEN, True),
        (WEAK | {"score_sd": 0.0}, True),
        # One positive in a hundred: F1 0.09 is close to the best there is, and far above always positive.
        (
            HEALTHY | {"prevalence": 0.01, "predicted_positive": 0.1, "oracle_f1": 0.09, "oracle_f1_best": 0.1},
            False,
        ),
        (HEALTHY | {"oracle_auc": math.nan, "oracle_f1": math.nan}, False),
    ],
)
def test_collapsed_means_low_f1_or_one_class_but_never_healthy(row, collapsed):
    assert diagnose_epoch(row).evidence["collapsed"] == collapsed
    assert bool(collapse.collapsed_epochs(row)) == collapsed


@pytest.mark.parametrize("shift", [0.0, -9.0, 9.0, -3.0])
def test_prevalence_is_derived_from_what_is_recorded(shift):
    scores, labels = gaussian_scores()
    recorded = collapse.score_metrics(scores + shift, labels, threshold=0.0)
    expected = diagnose_epoch(recorded)
    assert recorded.pop("prevalence") == 0.4
    single_precision = {name: np.float32(value) for name, value in recorded.items()}
    for row in (recorded, single_precision):
        diagnosis = diagnose_epoch(row)
        assert diagnosis.flags == expected.flags
        assert diagnosis.evidence["prevalence"] == pytest.approx(0.4, abs=1e-6)


def test_a_methods_own_decision_is_judged():
    """A method that cuts at the π-quantile is not all negative because nothing exceeds 0.5."""
    row = SHIFTED | {"predicted_positive": 0.0, "oracle_f1": 0.0}
    assert diagnose_epoch(row | {"oracle_f1_decision": 0.84}).flags == (Verdict.HEALTHY,)
    assert diagnose_epoch(row | {"oracle_f1_decision": 0.0}).flags == diagnose_epoch(row).flags
    poor = diagnose_epoch(row | {"oracle_f1_decision": 0.4})
    assert poor.flags == (Verdict.THRESHOLD_SHIFT,)
    assert poor.explanation.endswith("but the threshold cuts it badly: F1 0.400.")


def test_missing_and_misshapen_metrics_are_named():
    with pytest.raises(ValueError, match=r"missing metrics \['oracle_auc'\]"):
        diagnose_epoch(without("oracle_auc", HEALTHY))
    with pytest.raises(ValueError, match="oracle_accuracy', 'oracle_precision"):
        diagnose_epoch(without("prevalence", HEALTHY))
    with pytest.raises(ValueError, match="one shape"):
        collapse.epoch_verdicts(trajectory(DOWN, HEALTHY, oracle_auc=[0.5]))


@pytest.mark.parametrize(
    ("name", "looser", "verdicts"),
    [
        ("good_auc", -1, (Verdict.HEALTHY,)),
        ("inverted_auc", 1, (Verdict.INVERTED,)),
        ("healthy_share", -1, (Verdict.HEALTHY,)),
        ("one_class", 1, (Verdict.ALL_NEGATIVE, Verdict.ALL_POSITIVE)),
        ("constant_spread", 1, (Verdict.CONSTANT,)),
        ("collapsed_f1", 1, ("collapsed",)),
    ],
)
def test_rules_are_monotone_in_their_thresholds(name, looser, verdicts):
    rng = np.random.default_rng(8)
    rows = {column: rng.uniform(size=4000) for column in HEALTHY}
    rows["predicted_positive"] = rng.choice([0.0, 1.0, 0.003, 0.997, 0.4], size=4000)
    rows["score_sd"] = 10 ** rng.uniform(-5, 0, size=4000)
    previous = {verdict: np.zeros(4000, bool) for verdict in verdicts}
    sizes = []
    start = getattr(Thresholds(), name)
    for step in range(4):
        value = start * (1 + looser * 0.2 * step)
        assessment = collapse.assess(rows, thresholds=dataclasses.replace(Thresholds(), **{name: value}))
        held = {**assessment.flags, "collapsed": assessment.collapsed}
        for verdict in verdicts:
            assert (held[verdict] >= previous[verdict]).all()
            previous[verdict] = held[verdict]
        sizes.append(sum(held[verdict].sum() for verdict in verdicts))
    assert sizes[0] < sizes[-1]


def test_every_epoch_has_a_verdict_and_arrays_equal_the_loop():
    rng = np.random.default_rng(9)
    rows = {column: rng.uniform(size=(30, 20)) for column in HEALTHY}
    rows["predicted_positive"] = rng.choice([0.0, 1.0, 0.4], size=(30, 20))
    rows["oracle_auc"][rng.uniform(size=(30, 20)) < 0.1] = np.nan
    rows["score_sd"][rng.uniform(size=(30, 20)) < 0.1] = np.inf
    verdicts, collapsed = collapse.epoch_verdicts(rows), collapse.collapsed_epochs(rows)
    for index in np.ndindex(30, 20):
        alone = diagnose_epoch({name: column[index] for name, column in rows.items()})
        assert verdicts[index] == alone.verdict
        assert collapsed[index] == alone.evidence["collapsed"]
        assert alone.explanation
        assert "nan" not in alone.explanation
    assert set(verdicts.ravel()) >= {"diverged", "undefined", "inverted", "threshold_shift", "healthy"}


def test_thresholds_must_not_contradict_each_other():
    with pytest.raises(ValueError, match="inverted_auc < good_auc"):
        Thresholds(good_auc=0.4, inverted_auc=0.5)


# --- whole runs: each verdict, and a run that just does not have it ---


def test_a_healthy_run_starts_slowly_and_is_no_transient():
    diagnosis = diagnose_run(trajectory(DOWN, SHIFTED, HEALTHY, HEALTHY), 3)
    assert diagnosis.flags == (Verdict.HEALTHY,)
    assert not diagnosis.failing
    assert diagnosis.explanation.startswith("Epoch 4 was selected. The ranking is good (AUC 0.950)")
    assert diagnosis.evidence["longest_collapse"] == 0, "what has not started has not collapsed"
    assert math.isnan(diagnosis.evidence["onset_epoch"])
    late = trajectory(DOWN, DOWN, DOWN, DOWN, HEALTHY, DOWN, HEALTHY)
    assert diagnose_run(late, -1).flags == (Verdict.HEALTHY,)
    assert collapse.fallen_epochs(late).tolist() == [False] * 5 + [True, False]
    again = trajectory(DOWN, HEALTHY, DOWN, DOWN, DOWN, HEALTHY)
    assert diagnose_run(again, -1).verdict == Verdict.TRANSIENT
    assert diagnose_run(again, -1).explanation.startswith("Collapsed for 3 epochs from epoch 3 on, but healthy")


def test_transient_is_a_lasting_collapse_that_healed():
    run = trajectory(HEALTHY, INVERTED, SHIFTED, UP, WEAK, HEALTHY, HEALTHY)
    for selected in (0, 5, 6, -1):
        diagnosis = diagnose_run(run, selected)
        assert diagnosis.flags == (Verdict.TRANSIENT, Verdict.HEALTHY)
        assert not diagnosis.failing
        assert diagnosis.explanation.startswith("Collapsed for 3 epochs from epoch 2 on, but healthy")
    assert diagnose_run(trajectory(HEALTHY, INVERTED, SHIFTED, HEALTHY), 0).verdict == Verdict.HEALTHY
    assert diagnose_run(run, 2).verdict == Verdict.SELECTION_ARTEFACT
    assert diagnose_run(trajectory(HEALTHY, DOWN, DOWN, DOWN), 0).verdict == Verdict.HEALTHY
    patient = Thresholds(lasting_epochs=4)
    assert diagnose_run(run, 0, thresholds=patient).verdict == Verdict.HEALTHY


def test_selection_artefact_needs_a_later_healthy_epoch():
    artefact = diagnose_run(trajectory(DOWN, SHIFTED, WEAK, HEALTHY), 1)
    assert artefact.flags == (Verdict.SELECTION_ARTEFACT, Verdict.THRESHOLD_SHIFT)
    assert artefact.failing
    assert artefact.evidence["healthy_later"] == 1
    assert artefact.explanation == (
        "Epoch 2 was selected, with F1 0.020 at AUC 0.950, but 1 later epoch is healthy, the first being "
        "epoch 4 with F1 0.850: the selection failed."
    )
    assert diagnose_run(trajectory(DOWN, SHIFTED, WEAK, WEAK), 1).verdict == Verdict.THRESHOLD_SHIFT
    assert diagnose_run(trajectory(HEALTHY, HEALTHY, DOWN, DOWN), 2).verdict == Verdict.ALL_NEGATIVE
    assert diagnose_run(trajectory(DOWN, SHIFTED, HEALTHY, WEAK), 1).verdict == Verdict.SELECTION_ARTEFACT


def test_stopped_early_needs_a_longer_run_that_heals():
    short = trajectory(HEALTHY, INVERTED, INVERTED)
    healed = trajectory(HEALTHY, INVERTED, INVERTED, INVERTED, HEALTHY)
    stopped = diagnose_run(short, 2, longer=healed)
    assert stopped.flags == (Verdict.STOPPED_EARLY, Verdict.INVERTED)
    assert "longer run is healthy at its end, epoch 5 (F1 0.850)" in stopped.explanation
    assert diagnose_run(short, 2).verdict == Verdict.INVERTED
    relapsed = trajectory(HEALTHY, INVERTED, INVERTED, HEALTHY, INVERTED)
    assert diagnose_run(short, 2, longer=relapsed).verdict == Verdict.INVERTED
    assert diagnose_run(trajectory(DOWN, WEAK), 1, longer=healed).verdict == Verdict.WEAK_RANKING  # not collapsed
    kept = diagnose_run(short, 0, longer=healed)
    assert kept.flags == (Verdict.HEALTHY, Verdict.STOPPED_EARLY)
    with pytest.raises(ValueError, match="more than 3 epochs; got 3"):
        diagnose_run(short, 2, longer=short)


FALLING = trajectory(HEALTHY, HEALTHY, DOWN, DOWN, score_mean=[0.40, 0.35, 0.10, 0.01])


def test_self_reinforcing_needs_a_driver_that_went_down_with_the_scores():
    run = diagnose_run(FALLING, -1, driver=[0.5, 0.42, 0.12, 0.02])
    assert run.flags[:2] == (Verdict.SELF_REINFORCING, Verdict.ALL_NEGATIVE)
    assert run.evidence["driver_reference"] == 0.5
    assert run.evidence["driver_correlation"] > 0.99
    assert "ends at 0.02 against a reference of 0.5" in run.explanation
    for driver in (
        [0.8, 0.75, 0.55, 0.51],  # anchored: it follows, but stops far above
        [0.5, 0.1, 0.5, 0.2],  # it is low at the end, but does not follow
        [math.nan] * 4,
        [0.02, 0.02, 0.02, 0.02],  # low all the time, by what standard?
    ):
        assert diagnose_run(FALLING, -1, driver=driver).verdict == Verdict.ALL_NEGATIVE
    assert diagnose_run(FALLING, -1).verdict == Verdict.ALL_NEGATIVE
    threshold = Thresholds(driver_share=0.039)
    assert diagnose_run(FALLING, -1, driver=[0.5, 0.42, 0.12, 0.02], thresholds=threshold).verdict != run.verdict


def test_a_drivers_reference_is_its_maximum_before_the_collapse():
    assert diagnose_run(FALLING, -1, driver=[0.3, 0.4, 0.1, 0.9]).evidence["driver_reference"] == 0.4
    still = FALLING | {"score_mean": np.full(4, 0.01)}  # scores that stand still move together with nothing
    assert diagnose_run(still, -1, driver=[0.5, 0.4, 0.1, 0.02]).verdict == Verdict.ALL_NEGATIVE


def test_a_starved_filter_is_self_reinforcing_against_its_reference():
    """Seed 001's high filter lets 1 % through from the first epoch to the last."""
    kept = [0.011, 0.010, 0.012, 0.010]
    starved = diagnose_run(FALLING, -1, driver=kept, driver_reference=1.0)
    assert starved.verdict == Verdict.SELF_REINFORCING
    open_filter = diagnose_run(FALLING, -1, driver=[0.9, 0.91, 0.9, 0.9], driver_reference=1.0)
    assert open_filter.verdict == Verdict.ALL_NEGATIVE


def test_a_collapse_to_positive_may_have_a_driver_too():
    run = trajectory(HEALTHY, HEALTHY, UP, UP, score_mean=[0.4, 0.5, 0.9, 0.99])
    assert diagnose_run(run, -1, driver=[0.6, 0.5, 0.1, 0.01]).verdict == Verdict.SELF_REINFORCING


def test_a_healthy_end_is_never_self_reinforcing():
    healed = trajectory(HEALTHY, DOWN, DOWN, HEALTHY, score_mean=[0.4, 0.1, 0.05, 0.01])
    assert Verdict.SELF_REINFORCING not in diagnose_run(healed, 1, driver=[0.4, 0.1, 0.05, 0.01]).flags


@pytest.mark.parametrize(
    ("loss", "diverged"),
    [
        ([0.7, 0.5, 101.0], True),
        ([0.7, 0.5, 99.0], False),
        ([0.7, 0.5, -101.0], True),
        ([700.0, 500.0, 600.0], False),  # large, but not growing
        ([0.7, 0.5, math.nan], True),
        ([math.nan, math.nan, math.inf], True),
        ([0.7, math.nan, 0.5], False),  # a bad epoch that training survived
    ],
)
def test_diverged_by_loss(loss, diverged):
    diagnosis = diagnose_run(trajectory(HEALTHY, WEAK, DOWN, loss=loss), 2)
    assert diagnosis.verdict == (Verdict.DIVERGED if diverged else Verdict.ALL_NEGATIVE)
    if diverged:
        assert diagnosis.explanation.startswith("At epoch 3, the last,")


def test_diverged_by_scores():
    diagnosis = diagnose_run(trajectory(WEAK, WEAK, BROKEN), 1)
    assert diagnosis.flags == (Verdict.DIVERGED, Verdict.WEAK_RANKING)
    assert "NaN or infinite" in diagnosis.explanation
    assert diagnose_run(trajectory(BROKEN, HEALTHY), 0).verdict == Verdict.DIVERGED
    rescued = diagnose_run(trajectory(HEALTHY, WEAK, BROKEN), 0)
    assert rescued.flags == (Verdict.HEALTHY, Verdict.DIVERGED)
    assert rescued.explanation.endswith("From epoch 3 to the end the run is collapsed.")


def test_failing_training_goes_before_failing_selection():
    """Healthy for a while after the selected epoch, and collapsed by its own targets in the end."""
    run = trajectory(SHIFTED, HEALTHY, HEALTHY, DOWN, DOWN, score_mean=[0.3, 0.4, 0.4, 0.1, 0.01])
    driver = [0.3, 0.4, 0.4, 0.1, 0.01]
    diagnosis = diagnose_run(run, 0, driver=driver)
    assert diagnosis.flags[:2] == (Verdict.SELF_REINFORCING, Verdict.SELECTION_ARTEFACT)
    exploding = run | {"loss": [1.0, 1.0, 1.0, 1.0, 1e6]}
    assert diagnose_run(exploding, 0, driver=driver).flags[:2] == (Verdict.SELF_REINFORCING, Verdict.DIVERGED)
    assert diagnose_run(exploding, 0).flags[:2] == (Verdict.DIVERGED, Verdict.SELECTION_ARTEFACT)
    healed = {name: np.append(column, HEALTHY[name]) for name, column in run.items()}
    assert diagnose_run(run, 0, driver=driver, longer=healed).verdict == Verdict.STOPPED_EARLY


def test_a_static_verdict_stands_where_no_run_rule_holds():
    for row in (DOWN, UP, INVERTED, WEAK, SHIFTED):
        diagnosis = diagnose_run(trajectory(row, row), 1)
        assert diagnosis.flags == diagnose_epoch(row).flags
        assert diagnosis.explanation == f"Epoch 2 was selected. {diagnose_epoch(row).explanation}"
    undefined = HEALTHY | dict.fromkeys(("oracle_f1", "oracle_f1_best", "oracle_auc"), math.nan)
    assert diagnose_run(trajectory(undefined, undefined), 0).verdict == Verdict.UNDEFINED


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"selected": 4}, "one of 4 epochs; got 4"),
        ({"selected": -5}, "one of 4 epochs"),
        ({"driver": [0.1]}, r"driver of shape \(4,\)"),
        ({"trajectory": FALLING | {"loss": [0.1]}}, r"loss of shape \(4,\)"),
        ({"trajectory": HEALTHY}, r"\(epochs,\)"),
        ({"trajectory": trajectory()}, "at least one"),
        ({"trajectory": without("score_mean", FALLING), "driver": [0.1] * 4}, "score_mean"),
    ],
)
def test_diagnose_run_refuses_what_it_would_have_to_guess(arguments, message):
    with pytest.raises(ValueError, match=message):
        diagnose_run(**({"trajectory": FALLING, "selected": 0} | arguments))


def test_onset_epoch_is_the_start_of_the_first_lasting_collapse():
    collapsed = [True, False, True, True, False, True, True, True]
    assert collapse.onset_epoch(collapsed) == 1
    assert collapse.onset_epoch(collapsed, lasting=2) == 3
    assert collapse.onset_epoch(collapsed, lasting=3) == 6
    assert collapse.onset_epoch(collapsed, lasting=4) is None
    assert collapse.onset_epoch([]) is None


# --- planted and measured failures ---

# Seed 5 of the original vpudra_softlabel on Spambase: what its six epochs predicted on the 921 test rows, of
# which 363 are positive. F1 is that at 0.5: epoch 1 was reported as 0.8112, re-thresholded at the π-quantile.
ORIGINAL_PREDICTED = np.array([0, 4, 159, 283, 363, 368]) / 921
ORIGINAL_F1 = np.array([0.0, 0.0218, 0.5900, 0.7802, 0.8595, 0.8700])


def test_the_original_trace_is_a_selection_artefact():
    """Epoch 2 was selected. Its AUC is known, 0.9253, and taken for all; F1 was at best 0.8112 or more."""
    best = np.maximum(ORIGINAL_F1, 0.8112)
    run = {
        "oracle_f1": ORIGINAL_F1,
        "oracle_f1_best": best,
        "oracle_auc": np.full(6, 0.9253),
        "predicted_positive": ORIGINAL_PREDICTED,
        "score_sd": np.array([0.03, 0.04, 0.1, 0.2, 0.25, 0.3]),
        "prevalence": np.full(6, 363 / 921),
    }
    assert collapse.epoch_verdicts(run).tolist() == ["threshold_shift"] * 3 + ["healthy"] * 3
    diagnosis = diagnose_run(run, selected=1)
    assert diagnosis.flags == (Verdict.SELECTION_ARTEFACT, Verdict.THRESHOLD_SHIFT, Verdict.ALL_NEGATIVE)
    assert diagnosis.explanation == (
        "Epoch 2 was selected, with F1 0.022 at AUC 0.925, but 3 later epochs are healthy, the first being "
        "epoch 4 with F1 0.780: the selection failed."
    )
    assert diagnose_run(run, selected=-1).verdict == Verdict.HEALTHY


def train(pull):
    """Logistic regression that starts below 0.5; after ten of 40 epochs pull · mean(p) is added to its loss.

    Returns the trajectory and the mean soft target of each epoch, here that of pairs of a row and a positive.
    """
    rng = np.random.default_rng(4)
    labels = np.arange(500) < 200
    x = rng.normal(size=(500, 3)) + 1.2 * labels[:, None]
    weights, bias = 0.02 * np.ones(3), math.log(0.417 / 0.583)
    scores, targets = [], []
    for step in range(200):
        p = expit(x @ weights + bias)
        if step % 5 == 0:
            scores.append(p)
            targets.append((p.mean() + p[labels].mean()) / 2)
        gradient = (p - labels + (pull if step >= 50 else 0) * p * (1 - p)) / 500
        weights, bias = weights - 0.2 * x.T @ gradient, bias - 0.2 * gradient.sum()
    return collapse.score_trajectory(scores, labels), np.array(targets)


def test_a_planted_collapse_and_a_planted_artefact_are_told_apart():
    sound, targets = train(pull=0.0)
    artefact = diagnose_run(sound, 0, driver=targets)
    assert artefact.flags == (Verdict.SELECTION_ARTEFACT, Verdict.THRESHOLD_SHIFT, Verdict.ALL_NEGATIVE)
    assert diagnose_run(sound, -1, driver=targets).flags == (Verdict.HEALTHY,)

    pushed, targets = train(pull=20.0)
    assert collapse.epoch_verdicts(pushed)[10] == Verdict.HEALTHY  # before the push
    assert collapse.onset_epoch(collapse.collapsed_epochs(pushed), lasting=3) == 12
    for selected in (15, 39):
        real = diagnose_run(pushed, selected)  # p goes to 0, the ranking is left
        assert real.flags == (Verdict.THRESHOLD_SHIFT, Verdict.ALL_NEGATIVE)
        assert real.evidence["healthy_later"] == 0
        assert diagnose_run(pushed, selected, driver=targets).verdict == Verdict.SELF_REINFORCING
        anchored = (1 + targets) / 2
        assert diagnose_run(pushed, selected, driver=anchored).verdict == Verdict.THRESHOLD_SHIFT


# --- methods ---


def runs(**counts):
    return [Diagnosis(Verdict(name), (Verdict(name),), {}, "") for name, k in counts.items() for _ in range(k)]


def test_a_method_is_named_by_its_most_frequent_failure():
    judged = rates.judge_method(runs(healthy=20, threshold_shift=1, selection_artefact=2, transient=1))
    assert judged.verdict == Verdict.SELECTION_ARTEFACT
    assert judged.failing[:2] == (3, 24)
    assert judged.rates[Verdict.SELECTION_ARTEFACT].interval == pytest.approx((0.0232, 0.2585), abs=5e-5)
    assert list(judged.rates)[:2] == [Verdict.HEALTHY, Verdict.SELECTION_ARTEFACT]
    assert judged.explanation == (
        "selection_artefact in 2 of 24 runs (8.3 %, 95 % CI 2.3 to 25.8 %); "
        "healthy in 20; threshold_shift in 1; transient in 1."
    )


def test_a_method_without_failures_is_healthy_within_its_interval():
    judged = rates.judge_method(runs(healthy=23, transient=1))
    assert judged.verdict == Verdict.HEALTHY
    assert judged.explanation == "healthy: 0 of 24 runs (0.0 %, 95 % CI 0.0 to 13.8 %) fail."
    assert judged.rates[Verdict.TRANSIENT].share == pytest.approx(1 / 24)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_one_failure_of_any_kind_makes_a_method_fail(verdict):
    judged = rates.judge_method(runs(healthy=9) + runs(**{verdict: 1}))
    fails = verdict not in (Verdict.HEALTHY, Verdict.TRANSIENT)
    assert judged.verdict == (verdict if fails else Verdict.HEALTHY)
    assert judged.failing.occurred == fails


def test_a_method_without_runs_cannot_be_judged():
    with pytest.raises(ValueError, match="at least one diagnosis"):
        rates.judge_method([])


def test_collapse_rate_counts_the_seeds_sense():
    rate = rates.collapse_rate([0.0218, 0.0588, 0.1, 0.87] + [0.85] * 20)
    assert (rate.occurred, rate.n) == (2, 24)
    assert rate.interval == pytest.approx((0.0232, 0.2585), abs=5e-5)
    assert rates.collapse_rate([math.nan, 0.9]).occurred == 1
    assert rates.collapse_rate([0.5, 0.9], threshold=0.6).occurred == 1
    empty = rates.collapse_rate([])
    assert empty[:2] == (0, 0)
    assert empty.interval == (0, 1)
    assert math.isnan(empty.share)
    with pytest.raises(ValueError, match=r"\(runs,\)"):
        rates.collapse_rate([[0.1], [0.2]])


def test_collapse_needs_no_jax():
    code = "import sys, jaxpu.collapse; sys.exit('jax' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
