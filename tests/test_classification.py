"""Classification losses against float64 NumPy (scripts/golden_classification.py), closed forms, limits and optax.

Compiling is what these tests cost: every configuration is in one program, mapped over four batches, and a test that
needs values asks that program.
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
from sklearn.utils.class_weight import compute_class_weight

from jaxpu import ensemble, losses, valuation
from jaxpu.losses import CLASSIFICATION, GRADIENT_SIZES, SURROGATES, surrogates

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


def every_configuration(logits, labels, weights, mask):
    """For each configuration: what every row pays, its gradient, and the weighted mean."""
    results = []
    for name, options in CONFIGURATIONS:
        loss = functools.partial(CLASSIFICATION[name], **options)

        def total(z, loss=loss):
            rows = loss(z, labels, mask=mask, reduction="none")
            return rows.sum(), rows

        (_, rows), gradient = jax.value_and_grad(total, has_aux=True)(logits)
        results.append((rows, gradient, loss(logits, labels, weights=weights, mask=mask)))
    return results


compiled = jax.jit(jax.vmap(every_configuration))


def evaluate(cases, dtype="float64"):
    """One list of (rows, gradient, mean), by configuration, for each case (logits, labels, weights, mask); four fit."""
    cases = [*cases, *[cases[-1]] * (4 - len(cases))]
    logits, labels, weights, mask = (np.stack(column) for column in zip(*cases, strict=True))
    with jax.enable_x64(dtype == "float64"):
        labels = jnp.asarray(labels) if labels.dtype.kind == "i" else jnp.asarray(labels, dtype)
        arrays = jnp.asarray(logits, dtype), labels, jnp.asarray(weights, dtype), jnp.asarray(mask)
        results = jax.device_get(compiled(*arrays))
    return [[tuple(part[case] for part in parts) for parts in results] for case in range(4)]


def case_of(batch, *, weights=WEIGHTS, mask=EVERY_ROW):
    """A golden batch; binary labels as floats, so that hard and soft ones share a program."""
    logits, labels = map(np.array, golden.BATCHES[batch])
    return logits, labels.astype(float) if logits.ndim == 1 else labels, weights, mask


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
        rows, gradient, mean = results_of(record["batch"], record["loss"], **record["options"])
        assert rows.dtype == gradient.dtype == mean.dtype == np.float64
        label = str({k: record[k] for k in ("loss", "options", "batch")})
        np.testing.assert_allclose(rows, record["rows"], rtol=1e-11, atol=1e-11, err_msg=label)
        np.testing.assert_allclose(mean, record["mean"], rtol=1e-11, atol=1e-11, err_msg=label)
        np.testing.assert_allclose(gradient, record["gradient"], rtol=1e-8, atol=4e-9, err_msg=label)


@pytest.mark.parametrize("batch", ["binary_soft", "classes", "classes_soft", "classes_extreme_soft"])
def test_logit_gradients_in_closed_form_equal_autodiff(batch):
    logits, labels, *_ = case_of(batch)
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
            slopes = [
                jax.grad(lambda z, f=functools.partial(CLASSIFICATION[name], **o): f(z, jnp.ones(200), reduction="sum"))
                for name, o in CONFIGURATIONS
            ]
            closed = [losses.gradient_size(name, p, **o) for name, o in CONFIGURATIONS]
            return closed, [-slope(z) for slope in slopes]

        for configuration, closed, automatic in zip(CONFIGURATIONS, *sizes(jnp.asarray(p)), strict=True):
            np.testing.assert_allclose(automatic, closed, rtol=1e-10, atol=1e-13, err_msg=str(configuration))


def test_margin_forms_have_derivatives_of_both_orders_in_margin_and_options():
    def forms(margin, log_end, gamma, floor):
        encouraging = [surrogates.encouraging(margin, log_end=log_end, slope=slope) for slope in surrogates.SLOPES]
        return jnp.stack([*encouraging, surrogates.focal(margin, gamma=gamma), surrogates.bonus(margin, floor=floor)])

    with jax.enable_x64(True):
        margin = jnp.array([-6.0, -1.2, 0.1, 0.9, 2.1, 7.0])
        check_grads(jax.jit(forms), (margin, jnp.array(0.6), jnp.array(1.7), jnp.array(0.2)), order=2)


# --- masks, weights, order, number types


@each_kind
def test_padding_and_order_do_not_matter(batch):
    logits, labels, weights, _ = case_of(batch)
    mask = np.array([1, 0, 1, 1, 0, 1], bool)
    junk = [np.where(mask.reshape(-1, *[1] * (a.ndim - 1)), a, np.nan) for a in (logits, weights)]
    no_label = 7 if labels.dtype.kind == "i" else np.nan
    junk_labels = np.where(mask.reshape(-1, *[1] * (labels.ndim - 1)), labels, no_label)
    order = np.array([3, 5, 0, 1, 4, 2])
    padded = (junk[0], junk_labels, junk[1], mask)
    empty = (np.full_like(logits, np.nan), np.full_like(labels, no_label), weights, np.zeros(6, bool))
    reordered = tuple(a[order] for a in padded)
    plain, padded, empty, reordered = evaluate([case_of(batch), padded, empty, reordered])
    for configuration, (rows, gradient, _), some, none, moved in zip(
        CONFIGURATIONS, plain, padded, empty, reordered, strict=True
    ):
        label = str(configuration)
        np.testing.assert_array_equal(some[0], np.where(mask, rows, 0), err_msg=label)
        np.testing.assert_array_equal(some[1], np.where(mask.reshape(-1, *[1] * (logits.ndim - 1)), gradient, 0), label)
        mean = np.sum(weights[mask] * rows[mask]) / weights[mask].sum()
        np.testing.assert_allclose(some[2], mean, rtol=1e-12, atol=1e-15, err_msg=label)
        for part in none:
            np.testing.assert_array_equal(part, 0, err_msg=label)
        np.testing.assert_array_equal(moved[0], some[0][order], err_msg=label)
        np.testing.assert_array_equal(moved[1], some[1][order], err_msg=label)
        np.testing.assert_allclose(moved[2], some[2], rtol=1e-12, atol=1e-15, err_msg=label)


@each_kind
def test_a_weight_of_two_is_a_row_that_is_there_twice(batch):
    logits, labels, *_ = case_of(batch)
    times = np.array([2, 0, 1, 0, 3, 0])
    weighted = case_of(batch, weights=times.astype(float))
    repeated = (np.repeat(logits, times, axis=0), np.repeat(labels, times, axis=0), np.ones(6), EVERY_ROW)
    nothing = case_of(batch, weights=np.zeros(6))
    weighted, repeated, nothing, _ = evaluate([weighted, repeated, nothing])
    for configuration, (*_, mean), (*_, same), (*_, zero) in zip(
        CONFIGURATIONS, weighted, repeated, nothing, strict=True
    ):
        np.testing.assert_allclose(mean, same, rtol=1e-12, atol=1e-14, err_msg=str(configuration))
        assert zero == 0, configuration


def test_reductions_and_plain_calls():
    logits, labels, weights, mask = map(jnp.asarray, case_of("binary"))
    rows, _, mean = (np.asarray(part) for part in results_of("binary", "encouraging"))
    mask = mask.at[2].set(False)
    kept = np.arange(6) != 2
    call = functools.partial(losses.encouraging, logits, labels)
    np.testing.assert_allclose(call(weights=weights), mean, rtol=1e-6)
    np.testing.assert_allclose(call(), rows.mean(), rtol=1e-6)
    np.testing.assert_allclose(call(mask=mask), rows[kept].mean(), rtol=1e-6)
    np.testing.assert_allclose(call(weights=weights, mask=mask, reduction="none"), kept * WEIGHTS * rows, rtol=1e-6)
    np.testing.assert_allclose(
        call(weights=weights, mask=mask, reduction="sum"), (WEIGHTS * rows)[kept].sum(), rtol=1e-6
    )
    for kind in ("int8", bool):
        assert losses.encouraging(logits, labels.astype(kind), mask=mask.astype("int8")) == call(mask=mask)


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
        ("float32", "binary_extreme"),
        ("float32", "classes_extreme_soft"),
        ("bfloat16", "binary_extreme"),
        ("float16", "binary_extreme"),
    ],
)
def test_extreme_logits_keep_the_precision_of_their_type(dtype, batch):
    signs = np.array([1, -1, 1, -1, 1, -1])
    m = float(np.asarray(jnp.asarray(1e4, dtype), float))
    own = np.eye(3)[[0, 1, 2, 0, 1, 2]] if batch == "classes_extreme_soft" else np.ones(6)
    huge = (np.reshape(m * signs, (6, *[1] * (own.ndim - 1))) * own, own, WEIGHTS, EVERY_ROW)
    exact, far, *_ = evaluate([case_of(batch), huge], dtype)
    eps = float(jnp.finfo(dtype).eps)
    for (name, options), (rows, gradient, mean), (far_rows, far_gradient, _) in zip(
        CONFIGURATIONS, exact, far, strict=True
    ):
        label = f"{name} {options}"
        assert rows.dtype == mean.dtype == np.float32, "computed in float32"
        assert gradient.dtype == far_gradient.dtype == jnp.dtype(dtype)
        record = next(r for r in RECORDS if (r["loss"], r["options"], r["batch"]) == (name, options, batch))
        np.testing.assert_allclose(rows, record["rows"], rtol=1e-6, atol=1e-9, err_msg=label)
        np.testing.assert_allclose(gradient.astype(float), record["gradient"], rtol=2 * eps, atol=1e-7, err_msg=label)
        # at two further logits of 0 the margins are log 2 less
        (right, _), (size, _) = far_away(name, options, m - np.log(2) * (own.ndim - 1))
        (_, wrong), (_, size_) = far_away(name, options, m + np.log(2) * (own.ndim - 1))
        np.testing.assert_allclose(far_rows, np.where(signs > 0, right, wrong), rtol=1e-6, atol=1e-9, err_msg=label)
        pulls = (far_gradient.astype(float) * own).reshape(6, -1).sum(axis=1)
        np.testing.assert_allclose(pulls, np.where(signs > 0, -size, -size_), rtol=2 * eps, atol=1e-9, err_msg=label)


# --- limits and identities


def test_the_encouraging_loss_lies_between_the_bonus_and_the_cross_entropy_with_mae():
    for batch in golden_results():
        cross_entropy, mae = results_of(batch, "cross_entropy"), results_of(batch, "mae")
        for one, other in zip(results_of(batch, "encouraging", log_end=1.0), results_of(batch, "bonus"), strict=True):
            np.testing.assert_array_equal(one, other)
        rows, gradient, mean = results_of(batch, "encouraging", log_end=0.0)
        total = 1 if np.ndim(golden.BATCHES[batch][1][0]) == 0 else np.sum(golden.BATCHES[batch][1], axis=1)
        np.testing.assert_allclose(rows, cross_entropy[0] + mae[0] - total, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(gradient, cross_entropy[1] + mae[1], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(mean, cross_entropy[2] + mae[2] - 1, rtol=1e-12, atol=1e-12)


def test_sums_and_the_logit_as_two_logits():
    for batch in golden_results():
        for total, mae, mse in zip(*(results_of(batch, name) for name in ("mae_mse", "mae", "mse")), strict=True):
            np.testing.assert_allclose(total, mae + mse, rtol=1e-12, atol=1e-15)
    z, y = map(np.array, golden.BATCHES["binary_soft"])
    hard = np.array(golden.BATCHES["binary"][1])
    logits = np.stack([np.zeros(6), z, np.full(6, -800.0)], axis=1)  # the third class is not there
    two = evaluate([(logits, np.stack([1 - y, y, 0 * y], axis=1), WEIGHTS, EVERY_ROW)])[0]
    two_hard = evaluate([(logits, hard, WEIGHTS, EVERY_ROW)])[0]
    for results, batch in ((two, "binary_soft"), (two_hard, "binary")):
        for one, (rows, gradient, mean) in zip(golden_results()[batch], results, strict=True):
            np.testing.assert_allclose(rows, one[0], rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(gradient, np.stack([-one[1], one[1], 0 * z], axis=1), rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(mean, one[2], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", ["binary", "classes_soft"])
def test_mixing_labels_is_mixing_losses(kind):
    logits, _, weights, mask = case_of(kind)
    one, other = np.array([1, 0, 1, 1, 0, 0]), np.array([0, 1, 1, 0, 1, 0])
    if kind == "classes_soft":
        one, other = np.eye(3)[2 * one], np.eye(3)[other]
    cases = [(logits, y, weights, mask) for y in (one + 0.0, other + 0.0, 0.3 * one + 0.7 * other)]
    for a, b, mixed in zip(*evaluate(cases)[:3], strict=True):
        for part, first, second in zip(mixed, a, b, strict=True):
            np.testing.assert_allclose(part, 0.3 * first + 0.7 * second, rtol=1e-12, atol=1e-14)


def test_a_soft_label_adds_its_variance_to_the_squared_error():
    z, q = map(np.array, golden.BATCHES["binary_soft"])
    p = 1 / (1 + np.exp(-z))
    rows, gradient, _ = results_of("binary_soft", "mse")
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
    np.testing.assert_allclose(unit, (1 - p) + p * (1 - p), rtol=1e-5)
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
            return (
                losses.encouraging(logits, smooth, log_end=log_end),
                losses.encouraging(logits, smooth, log_end=log_end, slope="unit"),
                losses.focal(logits, smooth, gamma=gamma),
                losses.bonus(logits, smooth, floor=floor),
            )

        options = tuple(map(jnp.asarray, (log_end, gamma, floor, amount)))
        values = jax.jit(jax.vmap(mean))(*options)
        slopes = jax.jit(jax.vmap(jax.jacrev(mean, argnums=(0, 1, 2, 3))))(*options)
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
            (losses.pn(z, y), losses.cross_entropy(z, y)),
            (ensemble.supervised_loss(z, y, labeled, step), losses.cross_entropy(z, y, weights=v)),
            (
                valuation.mixed_cross_entropy(logits, labels, partner, lam),
                losses.cross_entropy(logits, mixed, reduction="none"),
            ),
        )

    labeled = jnp.array([1, 1, 1, 0, 1, 1])
    for one, other in others(jnp.asarray(z), jnp.asarray(y), labeled, *map(jnp.asarray, (logits, labels, partner))):
        np.testing.assert_allclose(one, other, rtol=2e-6)


@pytest.mark.parametrize("surrogate", ["encouraging", "focal", "bonus"])
def test_margin_forms_serve_positive_unlabeled_risks(surrogate):
    z, y = (np.array(part) for part in golden.BATCHES["binary"])
    options = {"encouraging": {"log_end": 0.5}, "focal": {"gamma": 1.0}, "bonus": {"floor": 0.1}}[surrogate]
    loss = functools.partial(getattr(surrogates, surrogate), **options)
    value = losses.upu(jnp.asarray(z), jnp.asarray(y), prior=0.4, surrogate=loss)
    as_positive, as_negative = (
        np.array([golden.of_row(surrogate, row, label, **options) for row in z]) for label in (1, 0)
    )
    expected = 0.4 * (as_positive - as_negative)[y == 1].mean() + as_negative[y == 0].mean()
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert surrogate not in SURROGATES


# --- labels and arguments


@each_kind
def test_what_is_no_label_makes_its_row_nan_and_no_other(batch):
    logits, labels, weights, mask = case_of(batch)
    rounded, *wrong = {"binary": [1.004, 2, -1], "classes": [0, 3, -1], "classes_soft": [1.004, 1.1, -0.1]}[batch]
    labels[0] = rounded
    labels[[2, 4]] = wrong if labels.ndim == 1 else np.array(wrong)[:, None]
    for configuration, (rows, gradient, mean) in zip(
        CONFIGURATIONS, evaluate([(logits, labels, weights, mask)])[0], strict=True
    ):
        bad = np.isin(np.arange(6), [2, 4])
        np.testing.assert_array_equal(np.isnan(rows), bad, err_msg=str(configuration))
        np.testing.assert_array_equal(np.isnan(gradient).reshape(6, -1).any(axis=1), bad, err_msg=str(configuration))
        assert np.isnan(mean), configuration


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
        (lambda z, y: losses.log_end_schedule("cosine", 3, 0.5), "kind is 'cosine', expected one of .*'linear'"),
        (lambda z, y: losses.log_end_schedule("linear", 0, 0.5), "epochs is 0"),
        (lambda z, y: losses.log_end_schedule("linear", 3, 0.5, 2.0), "end is 2.0"),
    ],
)
def test_what_cannot_be_is_answered_with_what_can(call, message):
    with pytest.raises(ValueError, match=message):
        call(jnp.zeros(2), jnp.array([1, 0]))


# --- weights and schedules


def test_inverse_frequency_is_that_of_scikit_learn_and_of_the_ensembles():
    labels = np.array([2, 0, 0, 3, 0, 2, 0, 0, 3, 3])
    mask = np.arange(10) < 8
    of_class = np.asarray(losses.inverse_frequency(jnp.asarray(labels), 5, mask=jnp.asarray(mask)))
    present = np.unique(labels[mask])
    expected = compute_class_weight("balanced", classes=present, y=labels[mask])
    np.testing.assert_allclose(of_class[present], expected, rtol=1e-6)
    np.testing.assert_array_equal(of_class[[1, 4]], 1)
    rows = losses.row_weights(jnp.asarray(of_class), jnp.asarray(labels), mask=jnp.asarray(mask))
    np.testing.assert_array_equal(rows, np.where(mask, of_class[labels], 0))
    for y in (labels == 2, np.zeros(10, bool)):
        ours = losses.row_weights(losses.inverse_frequency(jnp.asarray(y), 2), jnp.asarray(y))
        np.testing.assert_array_equal(ours, ensemble.class_weights(jnp.asarray(y), jnp.ones(10)))


def test_effective_number_runs_from_equal_weights_to_inverse_frequency():
    counts = np.array([5000, 0, 40, 3])
    betas = np.array([0.0, 0.9, 0.9999, 1.0])
    with jax.enable_x64(True):
        weights = jax.jit(jax.vmap(losses.effective_number, (None, 0)))(jnp.asarray(counts), jnp.asarray(betas))
        weights = np.asarray(weights)
    np.testing.assert_array_equal(weights[0], 1)
    np.testing.assert_array_equal(weights[:, 1], 1)
    np.testing.assert_allclose(weights.sum(axis=1), 4, rtol=1e-12)
    there = counts[counts > 0]
    for beta, of_class in zip(betas[1:3], weights[1:3], strict=True):
        expected = (1 - beta) / (1 - beta**there)
        np.testing.assert_allclose(of_class[counts > 0], 3 * expected / expected.sum(), rtol=1e-9)
    np.testing.assert_allclose(weights[3][counts > 0], 3 * (1 / there) / (1 / there).sum(), rtol=1e-12)


def test_row_weights_of_soft_labels_are_expectations():
    of_class = jnp.array([1.0, 3.0, 10.0])
    labels = jnp.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [np.nan, 0.0, 0.0]])
    weights = losses.row_weights(of_class, labels, mask=jnp.array([1, 1, 0]))
    np.testing.assert_allclose(weights, [2, 10, 0], rtol=1e-6)
    assert np.isnan(losses.row_weights(of_class, jnp.array([0, 3, -1]))).tolist() == [False, True, True]


def test_schedules_of_the_log_end():
    schedule = functools.partial(losses.log_end_schedule, start=0.5, end=0.9)
    np.testing.assert_array_equal(schedule("constant", 4), np.float32(0.5))
    np.testing.assert_allclose(schedule("linear", 5), [0.5, 0.6, 0.7, 0.8, 0.9], rtol=1e-6)
    np.testing.assert_allclose(schedule("step", 4), [0.5, 0.5, 0.9, 0.9], rtol=1e-6)
    for kind in losses.LOG_END_SCHEDULES:
        assert schedule(kind, 1).shape == (1,)
        traced = jax.jit(lambda start, kind=kind: losses.log_end_schedule(kind, 3, start, start))(0.3)
        np.testing.assert_array_equal(traced, np.float32(0.3))
