"""Classification losses against float64 NumPy (scripts/golden_classification.py), closed forms, limits and optax.

Tracing and compiling is what these tests cost: every configuration is in one program of 24 rows, four batches of six,
and a test that needs values asks that program.
"""

import functools
import importlib.util
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import optax
import pytest
from jax.test_util import check_grads

from jaxpu import ensemble, losses, valuation
from jaxpu.losses import CLASSIFICATION, GRADIENT_SIZES, surrogates

SCRIPT = Path(__file__).parent.parent / "scripts" / "golden_classification.py"
SPEC = importlib.util.spec_from_file_location("golden_classification", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
golden = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(golden)

RECORDS = json.loads(golden.PATH.read_text())
CONFIGURATIONS = golden.CONFIGURATIONS
WEIGHTS = np.array(golden.WEIGHTS)
EVERY_ROW = np.ones(6, bool)
KINDS = {
    "binary": ["binary", "binary_soft", "binary_extreme"],
    "classes": ["classes", "classes_extreme"],
    "classes_soft": ["classes_soft", "classes_extreme_soft"],
}


@jax.jit
def every_configuration(logits, labels, mask):
    """For each configuration: what every row pays, and its gradient."""
    results = []
    for name, options in CONFIGURATIONS:
        loss = functools.partial(CLASSIFICATION[name], **options)

        def total(z, loss=loss):
            rows = loss(z, labels, mask=mask, reduction="none")
            return rows.sum(), rows

        (_, rows), gradient = jax.value_and_grad(total, has_aux=True)(logits)
        results.append((rows, gradient))
    return results


@jax.jit
@jax.vmap
def every_mean(logits, labels, weights, mask):
    """The weighted mean of each loss, with its defaults."""
    return [loss(logits, labels, weights=weights, mask=mask) for loss in CLASSIFICATION.values()]


def evaluate(cases, dtype="float64"):
    """Rows and gradients for each case (logits, labels, mask), by configuration; four cases of six rows fit."""
    cases = [*cases, *[cases[-1]] * (4 - len(cases))]
    results = run(every_configuration, map(np.concatenate, zip(*cases, strict=True)), dtype)
    return [[(rows[k : k + 6], gradient[k : k + 6]) for rows, gradient in results] for k in range(0, 24, 6)]


def run(program, arrays, dtype="float64"):
    """The program on NumPy arrays, with floats in the type."""
    with jax.enable_x64(dtype == "float64"):
        return jax.device_get(program(*[jnp.asarray(a, dtype if a.dtype.kind == "f" else None) for a in arrays]))


def case_of(batch, mask=EVERY_ROW):
    """A golden batch; binary labels as floats, so that hard and soft ones share a program."""
    logits, labels = map(np.array, golden.BATCHES[batch])
    return logits, labels.astype(float) if logits.ndim == 1 else labels, mask


@functools.cache
def golden_results():
    """The results on every golden batch, in float64."""
    return {
        batch: result
        for batches in KINDS.values()
        for batch, result in zip(batches, evaluate(list(map(case_of, batches))), strict=False)
    }


def results_of(batch, loss, **options):
    return golden_results()[batch][CONFIGURATIONS.index((loss, options))]


def each_kind(test):
    return pytest.mark.parametrize("batch", KINDS)(test)


# --- values and gradients


def test_golden_file_is_current():
    assert golden.same(RECORDS, list(golden.records()))


def test_every_registry_has_every_loss():
    assert {name for name, _ in CONFIGURATIONS} == set(CLASSIFICATION) == set(GRADIENT_SIZES)
    assert {record["batch"] for record in RECORDS} == {batch for batches in KINDS.values() for batch in batches}


def test_values_and_gradients_equal_the_golden_ones():
    for record in RECORDS:
        rows, gradient = results_of(record["batch"], record["loss"], **record["options"])
        assert rows.dtype == gradient.dtype == np.float64
        label = str({k: record[k] for k in ("loss", "options", "batch")})
        np.testing.assert_allclose(rows, record["rows"], rtol=1e-11, atol=1e-11, err_msg=label)
        np.testing.assert_allclose(gradient, record["gradient"], rtol=1e-8, atol=4e-9, err_msg=label)


@pytest.mark.parametrize("batch", ["binary_soft", "classes", "classes_soft", "classes_extreme_soft"])
def test_logit_gradients_in_closed_form_equal_autodiff(batch):
    logits, labels, _ = case_of(batch)
    with jax.enable_x64(True):
        closed = jax.jit(lambda z, y: [losses.logit_gradient(name, z, y, **o) for name, o in CONFIGURATIONS])
        expected = closed(jnp.asarray(logits), jnp.asarray(labels))
    for (name, options), gradient in zip(CONFIGURATIONS, expected, strict=True):
        automatic = results_of(batch, name, **options)[1]
        np.testing.assert_allclose(automatic, gradient, rtol=1e-11, atol=1e-13, err_msg=f"{name} {options}")


def test_gradient_sizes_are_the_slopes_of_the_losses():
    p = np.linspace(0.003, 0.997, 200)  # no kink among them
    with jax.enable_x64(True):

        @jax.jit
        def sizes(p):
            z = jnp.log(p) - jnp.log1p(-p)
            slope = jax.grad(lambda z, name, o: -CLASSIFICATION[name](z, jnp.ones(200), reduction="sum", **o))
            closed = [losses.gradient_size(name, p, **o) for name, o in CONFIGURATIONS]
            return closed, [slope(z, name, o) for name, o in CONFIGURATIONS]

        for configuration, closed, automatic in zip(CONFIGURATIONS, *sizes(jnp.asarray(p)), strict=True):
            np.testing.assert_allclose(automatic, closed, rtol=1e-10, atol=1e-13, err_msg=str(configuration))


def test_margin_forms_have_derivatives_in_margin_and_options():
    def forms(margin, log_end, gamma, floor):
        encouraging = [surrogates.encouraging(margin, log_end=log_end, slope=slope) for slope in surrogates.SLOPES]
        return jnp.stack([*encouraging, surrogates.focal(margin, gamma=gamma), surrogates.bonus(margin, floor=floor)])

    with jax.enable_x64(True):
        margin = jnp.array([-6.0, -1.2, 0.1, 0.9, 2.1, 7.0])
        check_grads(jax.jit(forms), (margin, jnp.array(0.6), jnp.array(1.7), jnp.array(0.2)), order=1)


# --- masks, weights, order, number types


def where_kept(mask, values, other):
    """The values of the rows that count, and something else in the others."""
    return np.where(np.reshape(mask, (-1, *[1] * (np.ndim(values) - 1))), values, other)


@each_kind
def test_padding_and_order_do_not_matter(batch):
    logits, labels, _ = case_of(batch)
    mask = np.array([1, 0, 1, 1, 0, 1], bool)
    order = np.array([3, 5, 0, 1, 4, 2])
    no_label = 7 if labels.dtype.kind == "i" else np.nan
    padded = where_kept(mask, logits, np.nan), where_kept(mask, labels, no_label), mask
    nothing = np.full_like(logits, np.nan), np.full_like(labels, no_label), np.zeros(6, bool)
    results = evaluate([case_of(batch), padded, nothing, tuple(a[order] for a in padded)])
    for configuration, plain, some, none, moved in zip(CONFIGURATIONS, *results, strict=True):
        for k in range(2):
            np.testing.assert_array_equal(some[k], where_kept(mask, plain[k], 0), err_msg=str(configuration))
            np.testing.assert_array_equal(none[k], 0, err_msg=str(configuration))
            np.testing.assert_array_equal(moved[k], some[k][order], err_msg=str(configuration))


@pytest.mark.parametrize("batch", ["binary_soft", "classes"])
def test_means_divide_by_the_weights(batch):
    logits, labels, _ = case_of(batch)
    mask = np.array([1, 1, 0, 1, 1, 1], bool)
    times = np.array([2, 0, 1, 0, 3, 0])
    padded = where_kept(mask, logits, np.nan), labels, where_kept(mask, WEIGHTS, np.nan), mask
    repeated = np.repeat(logits, times, axis=0), np.repeat(labels, times, axis=0), np.ones(6), EVERY_ROW
    cases = [
        (logits, labels, WEIGHTS, EVERY_ROW),
        padded,
        repeated,
        (logits, labels, times.astype(float), EVERY_ROW),
        (logits, labels, np.zeros(6), EVERY_ROW),
        (logits, labels, WEIGHTS, ~EVERY_ROW),
    ]
    means = run(every_mean, map(np.stack, zip(*cases, strict=True)))
    for name, (weighted, some, twice, integer, *nothing) in zip(CLASSIFICATION, means, strict=True):
        record = next(r for r in RECORDS if (r["loss"], r["options"], r["batch"]) == (name, {}, batch))
        np.testing.assert_allclose(weighted, record["mean"], rtol=1e-11, err_msg=name)
        w = WEIGHTS * mask
        np.testing.assert_allclose(some, w @ record["rows"] / w.sum(), rtol=1e-11, err_msg=name)
        np.testing.assert_allclose(integer, twice, rtol=1e-13, err_msg=name)
        assert nothing == [0, 0], name


def test_reductions_and_what_may_be_left_out():
    @jax.jit
    def calls(logits, labels, weights, mask):
        call = functools.partial(losses.focal, logits, labels)
        return (
            call(),
            call(mask=mask),
            call(weights=weights, mask=mask),
            call(weights=weights, mask=mask, reduction="sum"),
            call(weights=weights, mask=mask, reduction="none"),
            losses.focal(logits, labels > 0, mask=mask.astype("int8")),
        )

    logits, labels, mask = case_of("binary", np.arange(6) != 2)
    rows, _ = results_of("binary", "focal")
    kept = WEIGHTS * mask
    expected = rows.mean(), rows @ mask / 5, rows @ kept / kept.sum(), rows @ kept, rows * kept, rows @ mask / 5
    for actual, value in zip(run(calls, (logits, labels, WEIGHTS, mask)), expected, strict=True):
        np.testing.assert_allclose(actual, value, rtol=1e-12)
    # Not compiled, where no simplification turns 0 * NaN into 0.
    z, y, w = (jnp.asarray(where_kept(mask, values, np.nan)) for values in (logits, labels, WEIGHTS))
    np.testing.assert_allclose(
        losses.focal(z, y, weights=w, mask=jnp.asarray(mask)), rows @ kept / kept.sum(), rtol=1e-6
    )


def far_away(name, options, m):
    """Value and gradient size of a loss at a margin m so large that p is 1, and at -m."""
    if name in ("mse", "mae", "mae_mse"):
        return (0, 2 if name == "mae_mse" else 1), (0, 0)
    left = options.get("floor", 0) if name == "bonus" else 1 - options.get("log_end", 0.75)
    if name in ("cross_entropy", "focal"):
        return (0, m), (0, 1)
    if left == 0:
        return (-m, m), (1, 1)
    line = {"bonus": 0, "encouraging": left if "slope" in options else 1}[name]
    return (np.log(left) - line, m), (0, 1)


@pytest.mark.parametrize(
    ("dtype", "batch"),
    [
        ("float32", "classes_extreme_soft"),
        ("bfloat16", "binary_extreme"),
        ("float16", "binary_extreme"),
    ],
)
def test_extreme_logits_keep_the_precision_of_their_type(dtype, batch):
    signs = np.array([1, -1, 1, -1, 1, -1])
    m = float(np.asarray(jnp.asarray(1e4, dtype), float))
    own = np.eye(3)[[0, 1, 2, 0, 1, 2]] if batch == "classes_extreme_soft" else np.ones(6)
    huge = np.reshape(m * signs, (6, *[1] * (own.ndim - 1))) * own, own, EVERY_ROW
    exact, far, *_ = evaluate([case_of(batch), huge], dtype)
    eps = float(jnp.finfo(dtype).eps)
    for (name, options), (rows, gradient), (far_rows, far_gradient) in zip(CONFIGURATIONS, exact, far, strict=True):
        label = f"{name} {options}"
        assert rows.dtype == np.float32, "computed in float32"
        assert gradient.dtype == far_gradient.dtype == jnp.dtype(dtype)
        record = next(r for r in RECORDS if (r["loss"], r["options"], r["batch"]) == (name, options, batch))
        cancelling = 1e-5 if own.ndim == 2 else 1e-9  # of margins around 40, with both signs
        np.testing.assert_allclose(rows, record["rows"], rtol=1e-6, atol=cancelling, err_msg=label)
        np.testing.assert_allclose(gradient.astype(float), record["gradient"], rtol=2 * eps, atol=1e-7, err_msg=label)
        # at two further logits of 0 the margins are log 2 less
        (right, _), (size, _) = far_away(name, options, m - np.log(2) * (own.ndim - 1))
        (_, wrong), (_, size_) = far_away(name, options, m + np.log(2) * (own.ndim - 1))
        np.testing.assert_allclose(far_rows, np.where(signs > 0, right, wrong), rtol=1e-6, atol=1e-9, err_msg=label)
        pulls = (far_gradient.astype(float) * own).reshape(6, -1).sum(axis=1)
        np.testing.assert_allclose(pulls, np.where(signs > 0, -size, -size_), rtol=2 * eps, atol=1e-9, err_msg=label)


def test_a_shift_of_all_logits_costs_no_digits():
    logits, labels, _ = case_of("classes")
    logits, soft = np.round(logits * 256) / 256, case_of("classes_soft")[1]  # 12 bits, also when shifted by 2**12

    @jax.jit
    def rows(z, labels, soft):
        return [losses.cross_entropy(z, y, reduction="none") for y in (labels, soft)]

    here, there = (run(rows, (z, labels, soft), "float32") for z in (logits, logits + 4096))
    np.testing.assert_array_equal(here, there)
    expected = [golden.of_row("cross_entropy", *row) for row in zip(logits, labels, strict=True)]
    np.testing.assert_allclose(here[0], expected, rtol=1e-6)


# --- limits and identities


def test_the_encouraging_loss_lies_between_the_bonus_and_the_cross_entropy_with_mae():
    for batch in golden_results():
        cross_entropy, mae = results_of(batch, "cross_entropy"), results_of(batch, "mae")
        for one, other in zip(results_of(batch, "encouraging", log_end=1.0), results_of(batch, "bonus"), strict=True):
            np.testing.assert_array_equal(one, other)
        rows, gradient = results_of(batch, "encouraging", log_end=0.0)
        total = 1 if np.ndim(golden.BATCHES[batch][1][0]) == 0 else np.sum(golden.BATCHES[batch][1], axis=1)
        np.testing.assert_allclose(rows, cross_entropy[0] + mae[0] - total, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(gradient, cross_entropy[1] + mae[1], rtol=1e-12, atol=1e-14)


def test_sums_and_the_logit_as_two_logits():
    for batch in golden_results():
        for total, mae, mse in zip(*(results_of(batch, name) for name in ("mae_mse", "mae", "mse")), strict=True):
            np.testing.assert_allclose(total, mae + mse, rtol=1e-12, atol=1e-15)
    z, y = map(np.array, golden.BATCHES["binary_soft"])
    hard = np.array(golden.BATCHES["binary"][1])
    logits = np.stack([np.zeros(6), z, np.full(6, -800.0)], axis=1)  # the third class is not there
    two = evaluate([(logits, np.stack([1 - y, y, 0 * y], axis=1), EVERY_ROW)])[0]
    two_hard = evaluate([(logits, hard, EVERY_ROW)])[0]
    for results, batch in ((two, "binary_soft"), (two_hard, "binary")):
        for one, (rows, gradient) in zip(golden_results()[batch], results, strict=True):
            np.testing.assert_allclose(rows, one[0], rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(gradient, np.stack([-one[1], one[1], 0 * z], axis=1), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", ["binary", "classes_soft"])
def test_mixing_labels_is_mixing_losses(kind):
    logits, _, mask = case_of(kind)
    one, other = np.array([1, 0, 1, 1, 0, 0]), np.array([0, 1, 1, 0, 1, 0])
    if kind == "classes_soft":
        one, other = np.eye(3)[2 * one], np.eye(3)[other]
    cases = [(logits, y, mask) for y in (one + 0.0, other + 0.0, 0.3 * one + 0.7 * other)]
    for a, b, mixed in zip(*evaluate(cases)[:3], strict=True):
        for part, first, second in zip(mixed, a, b, strict=True):
            np.testing.assert_allclose(part, 0.3 * first + 0.7 * second, rtol=1e-12, atol=1e-14)


def test_a_soft_label_adds_its_variance_to_the_squared_error():
    z, q = map(np.array, golden.BATCHES["binary_soft"])
    p = 1 / (1 + np.exp(-z))
    rows, gradient = results_of("binary_soft", "mse")
    np.testing.assert_allclose(rows, (p - q) ** 2 + q * (1 - q), rtol=1e-12)
    np.testing.assert_allclose(gradient, 2 * (p - q) * p * (1 - p), rtol=1e-12)


def test_the_formulas_of_the_seed_with_their_signs():
    z = np.array(golden.BATCHES["binary"][0])
    y = np.array(golden.BATCHES["binary"][1])
    p = 1 / (1 + np.exp(-z))
    for name, gradient in [
        ("mse", 2 * (p - y) * p * (1 - p)),
        ("cross_entropy", p - y),
        ("mae", np.sign(p - y) * p * (1 - p)),
        ("bonus", 1 - 2 * y),
    ]:
        np.testing.assert_allclose(results_of("binary", name)[1], gradient, rtol=1e-12)
    # Beyond its end, the seed's loss is the cross-entropy and the mean absolute error, not the latter alone.
    p = np.array([0.6, 0.9, 0.999])
    unit = losses.gradient_size("encouraging", jnp.asarray(p), log_end=0.5, slope="unit")
    np.testing.assert_allclose(unit, (1 - p) + p * (1 - p), rtol=1e-4)
    # As p -> 1, the loss pulls a fixed number of times as hard as the cross-entropy, and no more.
    for log_end, slope, times in [(0.75, "tangent", 5), (0.75, "unit", 2), (0.0, "tangent", 2), (0.0, "unit", 2)]:
        size = losses.gradient_size("encouraging", jnp.array(1 - 2.0**-20), log_end=log_end, slope=slope)
        np.testing.assert_allclose(size * 2**20, times, rtol=1e-5)


def test_the_tangent_is_smooth_at_the_log_end_and_the_unit_slope_has_a_kink():
    with jax.enable_x64(True):
        end = jnp.array([0.2, 0.5, 0.75, 0.99])

        @functools.partial(jax.jit, static_argnames="slope")
        def around(slope):
            def loss(z, log_end):
                return surrogates.encouraging(z, log_end=log_end, slope=slope)

            z = jnp.log(end) - jnp.log1p(-end)
            return [jax.vmap(jax.value_and_grad(loss))(z + shift, end) for shift in (-1e-9, 1e-9)]

        for slope, jump in (("tangent", 0), ("unit", end**2)):
            (value, gradient), (value_, gradient_) = around(slope)
            np.testing.assert_allclose(value, value_, atol=1e-8)
            np.testing.assert_allclose(gradient, -1, rtol=1e-12)
            np.testing.assert_allclose(gradient_ - gradient, jump, atol=1e-7)


def test_options_may_be_traced_and_mapped():
    z, y = map(np.array, golden.BATCHES["binary_soft"])
    log_end, gamma = np.array([0.0, 0.4, 0.75, 1.0]), np.array([0.0, 0.5, 2.0, 7.0])
    floor, amount = np.array([0.0, 0.1, 0.5, 1.0]), np.array([0.0, 0.1, 0.5, 1.0])
    with jax.enable_x64(True):
        logits, labels = jnp.asarray(z), jnp.asarray(y)

        def mean(log_end, gamma, floor, amount):
            smooth = losses.smooth_labels(labels, 2, amount)[:, 1]
            values = (
                losses.encouraging(logits, smooth, log_end=log_end),
                losses.encouraging(logits, smooth, log_end=log_end, slope="unit"),
                losses.focal(logits, smooth, gamma=gamma),
                losses.bonus(logits, smooth, floor=floor),
            )
            return sum(values), values

        mapped = jax.jit(jax.vmap(jax.value_and_grad(mean, argnums=(0, 1, 2, 3), has_aux=True)))
        (_, values), slopes = mapped(*map(jnp.asarray, (log_end, gamma, floor, amount)))
    assert np.isfinite(np.array(jax.tree.leaves(slopes))).all()
    for k in range(4):
        smooth = (1 - amount[k]) * y + amount[k] / 2
        for value, (name, option) in zip(
            values,
            [
                ("encouraging", {"log_end": log_end[k]}),
                ("encouraging", {"log_end": log_end[k], "slope": "unit"}),
                ("focal", {"gamma": gamma[k]}),
                ("bonus", {"floor": floor[k]}),
            ],
            strict=True,
        ):
            expected = [golden.of_row(name, *row, **option) for row in zip(z, smooth, strict=True)]
            np.testing.assert_allclose(value[k], np.mean(expected), rtol=1e-11, err_msg=f"{name} {option}")


# --- the same elsewhere


def test_parity_with_optax():
    arrays = [np.array(golden.BATCHES[batch][part]) for batch in ("binary", "classes") for part in (0, 1)]
    soft = [np.array(golden.BATCHES[batch][1]) for batch in ("binary_soft", "classes_soft")]

    @jax.jit
    def theirs(z, y, logits, labels, soft, soft_labels):
        return (
            optax.sigmoid_binary_cross_entropy(z, y),
            optax.sigmoid_binary_cross_entropy(z, soft),
            optax.softmax_cross_entropy_with_integer_labels(logits, labels),
            optax.softmax_cross_entropy(logits, soft_labels),
            optax.sigmoid_focal_loss(z, y),
            optax.sigmoid_focal_loss(z, y, gamma=0.5),
            optax.smooth_labels(soft_labels, 0.3),
        )

    with jax.enable_x64(True):
        *rows, smooth = theirs(*map(jnp.asarray, (*arrays, *soft)))
        ours = losses.smooth_labels(jnp.asarray(soft[1]), 3, 0.3)
    np.testing.assert_allclose(ours, smooth, rtol=1e-14)
    names = [(batch, "cross_entropy", {}) for batch in ("binary", "binary_soft", "classes", "classes_soft")]
    names += [("binary", "focal", {}), ("binary", "focal", {"gamma": 0.5})]
    for (batch, name, options), row in zip(names, rows, strict=True):
        np.testing.assert_allclose(results_of(batch, name, **options)[0], row, rtol=1e-12, err_msg=f"{batch} {name}")


def test_the_cross_entropies_of_the_package_are_one():
    z, y = map(np.array, golden.BATCHES["binary"])
    logits, labels = map(np.array, golden.BATCHES["classes"])
    partner, lam = labels[::-1].copy(), 0.3

    @jax.jit
    def others(z, y, labeled, logits, labels, partner):
        step = ensemble.Step(class_weights=1.0, focal=2.0)
        v = ensemble.instance_weights(z, y, labeled, step)
        mixed = losses.distribution(labels, 3) * lam + losses.distribution(partner, 3) * (1 - lam)
        return (
            (losses.pn(z, labeled, y=y), losses.cross_entropy(z, y)),
            (ensemble.supervised_loss(z, y, labeled, step), losses.cross_entropy(z, y, weights=v)),
            (
                valuation.mixed_cross_entropy(logits, labels, partner, lam),
                losses.cross_entropy(logits, mixed, reduction="none"),
            ),
        )

    labeled = jnp.array([1, 1, 1, 0, 1, 1])
    for one, other in others(jnp.asarray(z), jnp.asarray(y), labeled, *map(jnp.asarray, (logits, labels, partner))):
        np.testing.assert_allclose(one, other, rtol=2e-6)


def test_margin_forms_serve_positive_unlabeled_risks():
    z, y = (np.array(part) for part in golden.BATCHES["binary"])
    forms = {"encouraging": {"log_end": 0.5}, "focal": {"gamma": 1.0}, "bonus": {"floor": 0.1}}

    @jax.jit
    def risks(z, y):
        options = [functools.partial(getattr(surrogates, name), **options) for name, options in forms.items()]
        return [losses.upu(z, y, prior=0.4, surrogate=surrogate) for surrogate in options]

    for (name, options), value in zip(forms.items(), run(risks, (z, y)), strict=True):
        positive, negative = (np.array([golden.of_row(name, row, label, **options) for row in z]) for label in (1, 0))
        expected = 0.4 * (positive - negative)[y == 1].mean() + negative[y == 0].mean()
        np.testing.assert_allclose(value, expected, rtol=1e-12)


# --- labels and arguments


@each_kind
def test_what_is_no_label_makes_its_row_nan_and_no_other(batch):
    logits, labels, mask = case_of(batch)
    rounded, *wrong = {"binary": [1.004, 2, -1], "classes": [0, 3, -1], "classes_soft": [1.004, 1.1, -0.1]}[batch]
    labels[0] = rounded
    labels[[2, 4]] = wrong if labels.ndim == 1 else np.array(wrong)[:, None]
    bad = np.isin(np.arange(6), [2, 4])
    for configuration, (rows, gradient) in zip(CONFIGURATIONS, evaluate([(logits, labels, mask)])[0], strict=True):
        np.testing.assert_array_equal(np.isnan(rows), bad, err_msg=str(configuration))
        np.testing.assert_array_equal(np.isnan(gradient).reshape(6, -1).any(axis=1), bad, err_msg=str(configuration))


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_shapes_that_do_not_fit_are_rejected(name, monkeypatch):
    # Without the annotations checked, as users run it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    z, y, logits, labels, ones = jnp.zeros(4), jnp.zeros(4, int), jnp.zeros((4, 3)), jnp.zeros(4, int), jnp.ones(4)
    for arguments, options, message in [
        ((z[:, None], y), {}, r"logits have shape \(4, 1\), expected \(n,\) .* try logits.ravel"),
        ((logits[None], y), {}, r"logits have shape \(1, 4, 3\), expected"),
        ((z, y[:, None]), {}, r"labels have shape \(4, 1\), expected \(4,\)"),
        ((z[:3], y), {}, "labels have 4 rows, expected 3"),
        ((z[:1], y), {}, "labels have 4 rows, expected 1"),
        ((logits, labels[:, None]), {}, r"labels have shape \(4, 1\), expected \(n,\) integers or \(n, 3\)"),
        ((logits, jnp.zeros((4, 4))), {}, r"labels have shape \(4, 4\), expected"),
        ((logits[:1], jnp.zeros((4, 3))), {}, "labels have 4 rows, expected 1"),
        ((logits, jnp.zeros(4)), {}, "labels are float32 .* expected integers from 0 to 2"),
        ((z, y), {"weights": ones[:1]}, r"weights have shape \(1,\), expected \(4,\)"),
        ((logits, labels), {"weights": logits}, r"weights have shape \(4, 3\), expected \(4,\)"),
        ((z, y), {"mask": ones[:, None]}, r"mask has shape \(4, 1\), expected \(4,\)"),
        ((z, y), {"reduction": "avg"}, "reduction is 'avg', expected one of .*'mean'"),
    ]:
        with pytest.raises(ValueError, match=message):
            CLASSIFICATION[name](*arguments, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (functools.partial(losses.encouraging, log_end=1.01), "log_end is 1.01, expected a number between 0 and 1"),
        (functools.partial(losses.encouraging, log_end=float("nan")), "log_end is nan"),
        (functools.partial(losses.encouraging, slope="steep"), "slope is 'steep', expected one of .*'unit'"),
        (functools.partial(losses.focal, gamma=-0.1), "gamma is -0.1, expected a finite number of at least 0"),
        (functools.partial(losses.focal, gamma=float("inf")), "gamma is inf"),
        (functools.partial(losses.bonus, floor=-1), "floor is -1"),
        (lambda z, y: losses.smooth_labels(y, 2, 1.5), "amount is 1.5"),
        (lambda z, y: losses.smooth_labels(y, 1, 0.5), "classes is 1, expected at least 2"),
        (lambda z, y: losses.effective_number(y, 1.5), "beta is 1.5"),
        (lambda z, y: losses.gradient_size("bce", z), "loss is 'bce', expected one of .*'cross_entropy'"),
        (lambda z, y: losses.gradients.encouraging(z, slope="steep"), "slope is 'steep'"),
        (lambda z, y: losses.logit_gradient("mse", z[:, None], y), "logits have shape"),
        (lambda z, y: losses.inverse_frequency(y * 1.0, 2), "labels are float32 .* expected integers"),
    ],
)
def test_what_cannot_be_is_answered_with_what_can(call, message):
    with pytest.raises(ValueError, match=message):
        call(jnp.zeros(2), jnp.array([1, 0]))


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_a_share_or_weight_of_0_contributes_0_also_where_the_loss_is_infinite(name):
    loss, inf = CLASSIFICATION[name], jnp.inf
    z = jnp.array([[0.0, -inf, 1.0], [0.0, -inf, -inf], [inf, 0.0, 1.0], [2.0, 1.0, -inf]])
    hard = jnp.array([2, 0, 0, 1])
    valued = jax.jit(jax.value_and_grad(lambda z, y, w: loss(z, y, weights=w, reduction="sum")))
    for row in range(4):
        alone = [valued(z[row : row + 1], y, None) for y in (hard[row : row + 1], jax.nn.one_hot(hard, 3)[row : row + 1])]
        for value, gradient in alone:
            assert not np.isnan(value)
            assert np.isfinite(gradient).all()
            np.testing.assert_allclose(value, alone[0][0], rtol=1e-6)
            np.testing.assert_allclose(gradient, alone[0][1], atol=1e-6)
    reference = loss(jnp.array([[0.0, 1.0]]), jnp.array([1]))  # a class with p = 0 is as good as none
    np.testing.assert_allclose(loss(z[:1], jax.nn.one_hot(hard[:1], 3)), reference, rtol=1e-6)
    one = jnp.array([inf, -inf, 1e20, -1e20])
    value, gradient = valued(one, jnp.array([1.0, 0.0, 1.0, 0.0]), None)
    assert not np.isnan(value)
    assert np.isfinite(gradient).all()
    wrong, finite = jnp.array([inf, 0.5]), jnp.array([0.0, 0.5])
    weights = jnp.array([0.0, 2.0])
    for a, b in zip(valued(wrong, jnp.array([0, 1]), weights), valued(finite, jnp.array([0, 1]), weights), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_gradient_with_respect_to_a_share_of_0_is_the_loss_it_would_pay():
    slope = jax.grad(lambda share: losses.cross_entropy(jnp.array([[0.0, 2.0]]), share))(jnp.array([[0.0, 1.0]]))
    np.testing.assert_allclose(slope, [[np.log1p(np.exp(2.0)), np.log1p(np.exp(-2.0))]], rtol=1e-6)
