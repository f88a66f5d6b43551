"""Oracle metrics against scikit-learn: ties, masks, one-class splits, logits that break naive formulas."""

import functools
import inspect
import math

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxpu import metrics

ROWS = 128
PRIOR = 0.39
LOG_P_MAX = math.log(0.7)

bundle = jax.jit(metrics.oracle_metrics)


def padded(z, y, dtype=jnp.float32, junk=(np.nan, np.inf, -np.inf, 3.0)):
    """Arrays of fixed length with junk in the padding, so that one compiled program serves all lengths."""
    order = np.random.default_rng(0).permutation(ROWS)  # padding anywhere, not only at the end
    extra = ROWS - len(z)
    z = np.concatenate([z, np.resize(junk, extra)])[order]
    y = np.concatenate([y, np.resize([1, 0], extra)])[order].astype(int)
    mask = (np.arange(ROWS) < ROWS - extra)[order]
    return jnp.asarray(z, dtype), jnp.asarray(y), jnp.asarray(mask)


@functools.cache
def program():
    """The compiled bundle for padded rows."""
    logits, labels, mask = padded(NORMAL, NOISY)
    return bundle.lower(logits, labels, prior=PRIOR, log_p_max=LOG_P_MAX, mask=mask).compile()


def measured(z, y, prior=PRIOR, log_p_max=LOG_P_MAX):
    """The bundle on padded rows, as Python floats."""
    logits, labels, mask = padded(z, y)
    values = program()(logits, labels, prior=prior, log_p_max=log_p_max, mask=mask)
    return {name: float(value) for name, value in values.items()}


def legacy_quantile(z, prior):
    """Threshold of the original code, or None where it has none."""
    k = round(prior * len(z))
    descending = np.sort(z)[::-1]
    return (descending[k - 1] + descending[k]) / 2 if 0 < k < len(z) else None


def calibration_error(p, y, bins=15):
    """Bin by bin, closed on the right."""
    number = np.clip(np.ceil(p * bins).astype(int) - 1, 0, bins - 1)
    inside = [number == b for b in range(bins)]
    return sum(abs(p[b].mean() - y[b].mean()) * b.mean() for b in inside if b.any())


def expected(z, y, prior=PRIOR, log_p_max=LOG_P_MAX):
    """The same in float64 with scikit-learn; NaN where the convention of the package says so."""
    z, y = np.asarray(z, np.float64), np.asarray(y)
    p = np.exp(-np.logaddexp(0, -z))
    found, missing = y.any(), not y.all()

    def f1(predicted):
        return sk.f1_score(y, predicted, zero_division=0) if found else np.nan

    k, quantile = round(prior * len(z)), legacy_quantile(z, prior)
    at_quantile = np.full(len(z), k > 0) if quantile is None else z >= quantile
    rescued = len(set(z > 0)) == 1 and quantile is not None
    return {
        "oracle_accuracy": sk.accuracy_score(y, z > 0),
        "oracle_precision": sk.precision_score(y, z > 0, zero_division=0),
        "oracle_recall": sk.recall_score(y, z > 0) if found else np.nan,
        "oracle_f1": f1(z > 0),
        "oracle_f1_quantile": f1(at_quantile),
        "oracle_f1_max_shift": f1(-np.logaddexp(0, -z) - log_p_max > np.log(0.5)),
        "oracle_f1_rescue": f1(at_quantile if rescued else z > 0),
        "oracle_f1_best": max(f1(z >= threshold) for threshold in np.unique(z)),
        "oracle_auc": sk.roc_auc_score(y, z) if found and missing else np.nan,
        "oracle_average_precision": sk.average_precision_score(y, z) if found else np.nan,
        "oracle_ece": calibration_error(p, y),
        "oracle_brier": np.mean((p - y) ** 2),
        "oracle_log_loss": np.mean(np.logaddexp(0, np.where(y, -z, z))),
        "predicted_positive": np.mean(z > 0),
        "score_mean": p.mean(),
        "score_sd": p.std(),
    }


def assert_same(actual, wanted, **tolerance):
    assert actual.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(actual[name], value, **tolerance, err_msg=name)


rng = np.random.default_rng(7)
NORMAL = rng.normal(size=100).astype(np.float32)
NOISY = (NORMAL + rng.normal(size=100) > 0.4).astype(int)
ONE_OF_FIVE = (np.arange(100) < 20).astype(int)

CASES = {
    "noisy": (NORMAL, NOISY),
    "full length": (np.resize(NORMAL, ROWS), np.resize(NOISY, ROWS)),
    "tied": (np.round(NORMAL), NOISY),
    "tied at zero and minus zero": (np.resize([0.0, -0.0, 1.0, -1.0], 60), np.resize([1, 0, 0], 60)),
    "inverted": (-3 * NORMAL, NOISY),
    "perfect": (np.where(NOISY, 2.0, -2.0), NOISY),
    "shifted below the threshold": (NORMAL - 5, NOISY),
    "shifted above the threshold": (NORMAL + 5, NOISY),
    "constant 5": (np.full(100, 5.0), ONE_OF_FIVE),
    "constant -5": (np.full(100, -5.0), ONE_OF_FIVE),
    "far": (100 * np.sign(NORMAL), NOISY),
    "farther": (1e4 * NORMAL, NOISY),
    "one positive": (NORMAL, np.arange(100) == 17),
    "one negative": (NORMAL, np.arange(100) != 17),
    "only positives": (NORMAL, np.ones(100, int)),
    "only negatives": (NORMAL, np.zeros(100, int)),
    "one row": (np.array([0.3]), np.array([1])),
}


@pytest.mark.parametrize("case", CASES)
def test_bundle_equals_scikit_learn(case):
    z, y = CASES[case]
    assert_same(measured(z, y), expected(z, y), rtol=1e-5, atol=1e-6)


tied_rows = st.lists(st.tuples(st.integers(-4, 4).map(lambda i: i / 2), st.integers(0, 1)), min_size=1, max_size=ROWS)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(rows=tied_rows, prior=st.sampled_from([0.02, 0.25, 0.39, 0.5, 0.98]))
def test_any_split_with_ties_equals_scikit_learn(rows, prior):
    z, y = (np.array(column) for column in zip(*rows, strict=True))
    actual = measured(z, y, prior=prior)
    assert_same(actual, expected(z, y, prior=prior), rtol=1e-5, atol=1e-6)
    if y.any():
        always = 2 * y.mean() / (1 + y.mean())
        others = [actual[f"oracle_f1{rule}"] for rule in ("", "_quantile", "_rescue", "_max_shift")]
        assert actual["oracle_f1_best"] >= max([always - 1e-6, *others])
    if 0 < y.sum() < len(y):
        assert measured(-z, y)["oracle_auc"] == pytest.approx(1 - actual["oracle_auc"], abs=1e-6)


def every_function(logits, labels, mask):
    """Each public function under the name the bundle gives it."""
    share = {"prior": PRIOR, "mask": mask}
    return {
        "oracle_accuracy": metrics.accuracy(logits, labels, mask=mask),
        "oracle_precision": metrics.precision(logits, labels, mask=mask),
        "oracle_recall": metrics.recall(logits, labels, mask=mask),
        "oracle_f1": metrics.f1(logits, labels, mask=mask),
        "oracle_f1_quantile": metrics.f1_quantile(logits, labels, **share),
        "oracle_f1_max_shift": metrics.f1_max_shift(logits, labels, log_p_max=LOG_P_MAX, mask=mask),
        "oracle_f1_rescue": metrics.f1_rescue(logits, labels, **share),
        "oracle_f1_best": metrics.f1_best(logits, labels, mask=mask),
        "oracle_auc": metrics.auc(logits, labels, mask=mask),
        "oracle_average_precision": metrics.average_precision(logits, labels, mask=mask),
        "oracle_ece": metrics.ece(logits, labels, mask=mask),
        "oracle_brier": metrics.brier(logits, labels, mask=mask),
        "oracle_log_loss": metrics.log_loss(logits, labels, mask=mask),
        "predicted_positive": metrics.predicted_positive(logits, mask=mask),
        "score_mean": metrics.score_mean(logits, mask=mask),
        "score_sd": metrics.score_sd(logits, mask=mask),
    }


alone = jax.jit(every_function)


def test_each_function_alone_equals_the_bundle():
    z, y = CASES["shifted below the threshold"]
    assert_same(alone(*padded(z, y)), measured(z, y), rtol=1e-6)


def test_without_mask_every_row_counts():
    z, y = (np.resize(column, 921) for column in CASES["noisy"])
    values = bundle(jnp.asarray(z), jnp.asarray(y), prior=PRIOR, log_p_max=LOG_P_MAX)
    assert_same(values, expected(z, y), rtol=1e-5, atol=1e-6)


def test_padding_changes_no_bit():
    z, y = CASES["tied"]
    values = [
        program()(*padded(z, y, junk=junk)[:2], prior=PRIOR, log_p_max=LOG_P_MAX, mask=padded(z, y)[2])
        for junk in ([0.0], [np.nan], [np.inf, -np.inf], [1e30, -1e-30])
    ]
    for other in values[1:]:
        jax.tree.map(np.testing.assert_array_equal, values[0], other)


def test_vmap_equals_loop_over_rows_and_hyperparameters():
    stack = [jnp.stack(arrays) for arrays in zip(*(padded(*CASES[c]) for c in CASES), strict=True)]
    priors, maxima = jnp.linspace(0.0, 1.0, len(CASES)), jnp.linspace(-3.0, 0.0, len(CASES))

    def of_run(logits, labels, mask, prior, log_p_max):
        return metrics.oracle_metrics(logits, labels, prior=prior, log_p_max=log_p_max, mask=mask)

    together = jax.jit(jax.vmap(of_run))(*stack, priors, maxima)
    for i, case in enumerate(CASES):
        one = measured(*CASES[case], prior=float(priors[i]), log_p_max=float(maxima[i]))
        assert_same({name: values[i] for name, values in together.items()}, one, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("positives", [10, 24_000, 59_990])
def test_counting_stays_exact_on_60000_rows(positives):
    draw = np.random.default_rng(positives)
    y = draw.permutation(np.arange(60_000) < positives)
    z = np.round(draw.normal(size=60_000) + y, 3).astype(np.float32)  # some 8,000 distinct scores
    actual = large(jnp.asarray(z), jnp.asarray(y))
    assert float(actual["auc"]) == pytest.approx(sk.roc_auc_score(y, z), abs=1e-6)
    assert float(actual["average_precision"]) == pytest.approx(sk.average_precision_score(y, z), abs=1e-6)
    precision, recall, _ = sk.precision_recall_curve(y, z)
    best = np.max(2 * precision * recall / np.maximum(precision + recall, 1e-12))
    assert float(actual["f1_best"]) == pytest.approx(best, abs=1e-6)
    p = 1 / (1 + np.exp(-z.astype(np.float64)))
    assert float(actual["brier"]) == pytest.approx(np.mean((p - y) ** 2), rel=1e-5)
    assert float(actual["log_loss"]) == pytest.approx(sk.log_loss(y, p), rel=1e-5)


@jax.jit
def large(logits, labels):
    names = ["auc", "average_precision", "f1_best", "brier", "log_loss"]
    return {name: getattr(metrics, name)(logits, labels) for name in names}


@pytest.mark.parametrize("threshold", [-1.0, 0.5, 2.0])
def test_threshold_is_a_logit(threshold):
    z, y = np.round(NORMAL * 2) / 2, NOISY  # rows on the threshold are negative
    values = decisions(*padded(z, y), threshold)
    for name in ("accuracy", "precision", "recall", "f1"):
        options = {} if name == "accuracy" else {"zero_division": 0}
        wanted = getattr(sk, f"{name}_score")(y, z > threshold, **options)
        assert float(values[name]) == pytest.approx(wanted, rel=1e-6)
    assert float(values["predicted_positive"]) == pytest.approx(np.mean(z > threshold))


@jax.jit
def decisions(logits, labels, mask, threshold):
    options = {"threshold": threshold, "mask": mask}
    names = ["accuracy", "precision", "recall", "f1"]
    values = {name: getattr(metrics, name)(logits, labels, **options) for name in names}
    return values | {"predicted_positive": metrics.predicted_positive(logits, **options)}


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_half_precision_is_promoted(dtype):
    logits, labels, mask = padded(NORMAL, NOISY, dtype)
    shapes = jax.eval_shape(every_function, logits, labels, mask)
    assert {value.dtype for value in shapes.values()} == {jnp.dtype(jnp.float32)}
    rounded = expected(np.asarray(jnp.asarray(NORMAL, dtype), np.float32), NOISY)
    assert float(auc(logits, labels, mask=mask)) == pytest.approx(rounded["oracle_auc"], rel=1e-6)


auc = jax.jit(metrics.auc)


def test_float64_is_kept():
    z = NORMAL.astype(np.float64)
    z[1] = z[0] + 1e-14  # tied in float32
    with jax.enable_x64(True):
        logits, labels, mask = padded(z, NOISY, jnp.float64)
        values = bundle(logits, labels, prior=PRIOR, log_p_max=LOG_P_MAX, mask=mask)
        assert {value.dtype for value in values.values()} == {jnp.dtype(jnp.float64)}
        assert_same(values, expected(z, NOISY), rtol=1e-12)


def test_always_positive_is_the_f1_of_a_large_constant():
    _, labels, mask = padded(NORMAL, ONE_OF_FIVE)
    assert float(always_positive(labels, mask=mask)) == pytest.approx(2 * 0.2 / 1.2)
    assert measured(np.full(100, 5.0), ONE_OF_FIVE)["oracle_f1"] == pytest.approx(2 * 0.2 / 1.2)


always_positive = jax.jit(metrics.f1_always_positive)


@pytest.mark.parametrize("prior", [0.0, 0.03, 0.05, 0.1, 0.3, 0.39, 0.5, 0.7, 0.95, 1.0])
@pytest.mark.parametrize("n", [1, 2, 10, 37, 50])
def test_quantile_threshold_is_that_of_the_original_code(n, prior):
    logits, _, mask = padded(NORMAL[:n], NOISY[:n])
    threshold = float(quantile_threshold(logits, prior=prior, mask=mask))
    k = round(prior * n)
    assert int(jnp.sum((logits >= threshold) & mask)) == k  # no ties in this sample
    wanted = legacy_quantile(NORMAL[:n], prior)
    outside = math.inf if k == 0 else -math.inf
    assert threshold == (outside if wanted is None else pytest.approx(wanted))


quantile_threshold = jax.jit(metrics.quantile_threshold)


@pytest.mark.parametrize(
    ("scores", "prior", "wanted"),
    [
        ([1.0, 2.0, 3.0, 4.0, 5.0], 0.5, 3.5),  # k = 2 of 2.5
        ([1.0, 2.0, 3.0, 4.0, 5.0], 0.7, 1.5),  # k = 4 of 3.5
        ([1.0, 2.0, 2.0, 3.0], 0.5, 2.0),
        ([1.0, np.nextafter(np.float32(1), np.float32(2)), 3.0, 0.0], 0.5, 1.0000001),
    ],
)
def test_quantile_threshold_rounds_halves_to_even_and_keeps_ties_together(scores, prior, wanted):
    logits, _, mask = padded(np.array(scores), np.zeros(len(scores)))
    assert float(quantile_threshold(logits, prior=prior, mask=mask)) == np.float32(wanted)


def test_the_rescue_explains_the_figure_of_the_seed():
    """921 test rows, 363 positives, well ranked, four of them above 0.5: F1 0.0218; without those four, 1."""
    y = np.where(np.arange(921) < 363, 1, 0)
    z = (np.where(y, -1.0, -2.0) + np.linspace(0.1, 0, 921)).astype(np.float32)
    above = np.where(np.arange(921) < 4, np.float32(0.1), z)
    options = {"prior": 363 / 921, "log_p_max": 0.0}
    values = [bundle(jnp.asarray(scores), jnp.asarray(y), **options) for scores in (z, above)]
    assert [round(float(value["oracle_f1_rescue"]), 4) for value in values] == [1, 0.0218]
    assert [float(value["oracle_f1_quantile"]) for value in values] == [1, 1]


def test_the_rescue_needs_a_quantile_inside_the_split():
    z, y = np.array([-1.0, -2.0, -3.0]), np.array([1, 0, 0])
    assert measured(z, y, prior=0.1)["oracle_f1_rescue"] == 0  # k = 0: nothing changes
    assert measured(z, y, prior=0.3)["oracle_f1_rescue"] == 1
    assert measured(-z, y, prior=0.95)["oracle_f1_rescue"] == 0.5  # k = 3: nothing changes


def test_max_shift_undoes_a_scaled_probability():
    log_p = -np.logaddexp(0, -NORMAL) - 2  # the same scores, p divided by e²
    scaled = log_p - np.log1p(-np.exp(log_p))
    whole = measured(NORMAL, NOISY, log_p_max=-0.4)["oracle_f1_max_shift"]
    shifted = measured(scaled, NOISY, log_p_max=-2.4)
    assert shifted["oracle_f1_max_shift"] == whole > shifted["oracle_f1"] == 0
    unmoved = measured(NORMAL, NOISY, log_p_max=0.0)
    assert unmoved["oracle_f1_max_shift"] == unmoved["oracle_f1"]
    assert math.isnan(measured(NORMAL, NOISY, log_p_max=math.nan)["oracle_f1_max_shift"])


@pytest.mark.parametrize("bins", [1, 2, 7])
def test_calibration_error_bin_by_bin(bins):
    p = 1 / (1 + np.exp(-NORMAL.astype(np.float64)))
    logits, labels, mask = padded(NORMAL, NOISY)
    assert float(ece(logits, labels, bins=bins, mask=mask)) == pytest.approx(
        calibration_error(p, NOISY, bins), rel=1e-5
    )


def test_calibration_bins_are_closed_on_the_right():
    """Rows at p = 0.5 exactly, all positive, share the bin of the negatives below and not of those above."""
    y = np.array([1] * 4 + [0] * 4)
    for other, wanted in [(-1.0, lambda p: abs(0.5 - (0.5 + p) / 2)), (1.0, lambda p: (0.5 + p) / 2)]:
        logits, labels, mask = padded(np.array([0.0] * 4 + [other] * 4), y)
        value = float(ece(logits, labels, bins=2, mask=mask))
        assert value == pytest.approx(wanted(1 / (1 + math.exp(-other))), rel=1e-5)


def test_calibration_needs_a_bin():
    with pytest.raises(ValueError, match="at least one bin"):
        metrics.ece(jnp.zeros(2), jnp.zeros(2), bins=0)


ece = jax.jit(metrics.ece, static_argnames="bins")


def test_infinite_logits_are_scores_like_others():
    z, y = np.array([np.inf, 1.0, -np.inf, -np.inf]), np.array([1, 0, 1, 0])
    actual = measured(z, y)
    assert actual["oracle_auc"] == pytest.approx(0.625)
    assert actual["oracle_average_precision"] == pytest.approx(0.5 + 0.25)
    assert actual["oracle_log_loss"] == math.inf
    assert actual["oracle_f1_best"] == pytest.approx(2 / 3)


NEEDS_POSITIVES = {"oracle_recall", "oracle_average_precision", "oracle_auc"} | {
    f"oracle_f1{rule}" for rule in ("", "_quantile", "_rescue", "_max_shift", "_best")
}


@pytest.mark.parametrize(
    ("labels", "mask", "undefined", "reason"),
    [
        ([0, 0, 1], [1, 1, 0], NEEDS_POSITIVES, "no positives among 2 rows"),
        ([1, 1, 0], [1, 1, 0], {"oracle_auc"}, "no negatives among 2 rows"),
        ([1, 1, 0], [0, 0, 0], "all", "no rows"),
        ([1, 0, 1], [1, 1, 0], set(), None),
    ],
)
def test_undefined_is_nan_and_has_a_reason(labels, mask, undefined, reason):
    z, y, kept = np.array([1.0, -1.0, 2.0]), np.array(labels), np.array(mask, bool)
    arrays = padded(z[kept], y[kept])
    values = alone(*arrays)
    named = set(values) if undefined == "all" else undefined
    assert {name for name, value in values.items() if math.isnan(value)} == named
    assert math.isnan(always_positive(arrays[1], mask=arrays[2])) == ("oracle_f1" in named)
    assert math.isnan(quantile_threshold(arrays[0], prior=0.5, mask=arrays[2])) == (undefined == "all")
    said = metrics.undefined_reason(labels, logits=z, mask=mask)
    assert said is None if reason is None else said.startswith(reason)


def test_an_empty_array_is_a_split_without_rows():
    values = bundle(jnp.zeros(0), jnp.zeros(0, int), prior=PRIOR, log_p_max=LOG_P_MAX)
    assert all(math.isnan(value) for value in values.values())
    assert metrics.undefined_reason([]) == "no rows: every metric is undefined"


def test_a_nan_that_counts_makes_every_metric_nan():
    z, y = NORMAL.copy(), NOISY
    z[3] = np.nan
    assert all(math.isnan(value) for value in measured(z, y).values())
    assert math.isnan(quantile_threshold(padded(z, y)[0], prior=PRIOR, mask=padded(z, y)[2]))
    assert metrics.undefined_reason(y, logits=z) == "1 of 100 logits are NaN: every metric is undefined"
    assert metrics.undefined_reason(y, logits=z, mask=np.arange(100) != 3) is None


@pytest.mark.parametrize("name", sorted(set(metrics.__all__) - {"multiclass", "undefined_reason"}))
def test_a_column_against_a_row_is_rejected(name, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    function = getattr(metrics, name)
    parameters = inspect.signature(function).parameters
    options = {option: 0.5 for option in ("prior", "log_p_max") if option in parameters}
    arrays = [p for p in parameters if p in ("logits", "labels", "labeled")]
    for wrong in [*arrays, "mask"]:
        shapes = {array: (6, 1) if array == wrong else (6,) for array in [*arrays, "mask"]}
        given = {array: jnp.ones(shape) for array, shape in shapes.items()}
        with pytest.raises(ValueError, match=r"\(6, 1\).*pass logits"):
            function(*(given[array] for array in arrays), mask=given["mask"], **options)


def test_lengths_and_shapes_outside_jit_are_checked_too():
    with pytest.raises(ValueError, match=r"labels \(2,\), mask \(3,\)"):
        metrics.undefined_reason([0, 1], mask=[1, 1, 1])


def test_the_bundle_ranks_once():
    """Two sorts, of the scores and of those of the positives, however many metrics use them."""
    assert program().as_text().count(" sort(") == 2
