"""The risks against float64 NumPy (scripts/golden.py), and what every registered one must withstand."""

import functools
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxpu import losses
from jaxpu.losses import SURROGATES, surrogates
from jaxpu.methods import RISKS, options_of, resolve

SCRIPT = Path(__file__).parent.parent / "scripts" / "golden.py"
SPEC = importlib.util.spec_from_file_location("golden", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
golden = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(golden)

RECORDS = json.loads(golden.PATH.read_text())
ROWS = 8
MEMORY = {"said": np.full(ROWS, golden.SAID), "params": np.full(ROWS, golden.TEACHER)}
MEMORY["posterior"] = MEMORY["said"]


def called(name, logits, labeled, **given):
    """A registered risk as training calls it; for those that see true labels, the flag is one."""
    context = {"y": labeled, "rows": jnp.arange(len(labeled))}
    context["mixed"] = losses.Mixed(golden.MIXED * logits, context["rows"], golden.LAM)
    context["forward"] = lambda parameters: parameters
    wide = jnp.promote_types(logits.dtype, jnp.float32)
    context["memory"] = {key: jnp.asarray(value, wide) for key, value in MEMORY.items()}
    given |= {key: value for key, value in context.items() if key in options_of(name).context}
    return resolve(name)(logits, labeled, **given)


def every_configuration(logits, labeled, mask):
    """Value and gradient of every configured risk; one program for all, since each costs a compilation."""
    return [
        jax.value_and_grad(functools.partial(called, name, **options))(logits, labeled, mask=mask)
        for name, options in golden.CONFIGURATIONS
    ]


compiled = jax.jit(every_configuration)


def padded(batch, dtype):
    """A batch at the fixed length, with junk in its padding: one program serves all lengths."""
    logits, labeled = golden.BATCHES[batch]
    junk = ROWS - len(logits)
    logits = np.concatenate([logits, np.resize([np.nan, np.inf, -np.inf], junk)])
    labeled = np.concatenate([labeled, np.resize([1, 0], junk)]).astype(int)
    return jnp.asarray(logits, dtype), jnp.asarray(labeled), jnp.arange(ROWS) < ROWS - junk


def assert_close(actual, expected, **tolerance):
    """Equality of two lists of (value, gradient), naming the loss where it fails."""
    for configuration, (value, gradient), (value_, gradient_) in zip(
        golden.CONFIGURATIONS, actual, expected, strict=True
    ):
        np.testing.assert_allclose(value, value_, **tolerance, err_msg=str(configuration))
        np.testing.assert_allclose(gradient, gradient_, **tolerance, err_msg=str(configuration))


def test_golden_file_is_current():
    assert golden.same(RECORDS, list(golden.records()))


def test_golden_file_covers_every_risk_surrogate_and_number():
    assert {name for name, _ in golden.CONFIGURATIONS} == set(RISKS)
    tried = {option for _, options in golden.CONFIGURATIONS for option in options}
    assert tried >= {number for name in RISKS for number in options_of(name).numbers}
    used = {options.get("surrogate", "sigmoid") for name, options in golden.CONFIGURATIONS if name == "upu"}
    assert used == set(SURROGATES)


@pytest.fixture(scope="module")
def mapped():
    """Every configuration on all golden batches at once, in float64: a pair (values, gradients) for each."""
    with jax.enable_x64(True):
        batches = [padded(batch, jnp.float64) for batch in golden.BATCHES]
        stacked = [jnp.stack(column) for column in zip(*batches, strict=True)]
        return jax.device_get(jax.jit(jax.vmap(every_configuration))(*stacked))


def test_values_and_gradients_equal_the_golden_ones(mapped):
    for (name, options), (values, gradients) in zip(golden.CONFIGURATIONS, mapped, strict=True):
        assert values.dtype == gradients.dtype == np.float64
        records = [record for record in RECORDS if (record["loss"], record["options"]) == (name, options)]
        for record, value, gradient in zip(records, values, gradients, strict=True):
            rows, label = len(record["gradient"]), str(record)
            np.testing.assert_allclose(value, record["value"], rtol=1e-11, atol=1e-11, err_msg=label)
            np.testing.assert_allclose(gradient[:rows], record["gradient"], rtol=1e-8, atol=3e-9, err_msg=label)
            np.testing.assert_array_equal(gradient[rows:], 0, err_msg=label)


def test_vmap_equals_the_loop(mapped):
    for row, batch in enumerate(golden.BATCHES):
        with jax.enable_x64(True):
            alone = compiled(*padded(batch, jnp.float64))
        assert_close([(v[row], g[row]) for v, g in mapped], alone, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("dtype", "batch"),
    [
        ("float32", "dead"),
        ("float32", "extreme"),
        ("bfloat16", "dead"),
        ("bfloat16", "extreme"),
        ("float16", "extreme_half"),
    ],
)
def test_extreme_logits_keep_the_precision_of_their_type(dtype, batch):
    results = compiled(*padded(batch, dtype))
    for (name, options), (value, gradient) in zip(golden.CONFIGURATIONS, results, strict=True):
        exact, exact_gradient = golden.value_and_gradient(name, *golden.BATCHES[batch], **options)
        assert value.dtype == jnp.float32, "computed in float32"
        assert gradient.dtype == dtype
        np.testing.assert_allclose(value, exact, rtol=4e-7, atol=1e-9, err_msg=f"{name} {options}")
        # Of the largest entry: in the squared surrogate, terms of opposite sign cancel.
        tolerance = 2 * float(jnp.finfo(dtype).eps) * max(np.abs(exact_gradient).max(), 1e-4)
        gradient = gradient[: exact_gradient.size].astype(float)
        np.testing.assert_allclose(gradient, exact_gradient, 0, tolerance + 1e-9, err_msg=f"{name} {options}")


@pytest.mark.parametrize("name", RISKS)
def test_plain_calls_without_a_mask_equal_compiled_ones(name):
    batch = padded("typical", jnp.float32)
    index = [name for name, _ in golden.CONFIGURATIONS].index(name)
    value, _ = compiled(*batch)[index]
    np.testing.assert_allclose(called(name, *batch[:2], prior=0.4), value, rtol=1e-6)


rows = functools.partial(st.lists, min_size=ROWS, max_size=ROWS)


@given(rows(st.floats(-30, 30)), rows(st.booleans()), rows(st.booleans()), st.permutations(range(ROWS)))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_any_mask_drops_rows_and_any_order_is_the_same(logits, labeled, mask, order):
    logits, labeled, mask, order = map(np.array, (logits, labeled, mask, order))
    with jax.enable_x64(True):
        junked = np.where(mask, logits, np.nan)
        results = compiled(*map(jnp.asarray, (junked, labeled.astype(int), mask)))
        reordered = compiled(*map(jnp.asarray, (junked[order], labeled[order].astype(int), mask[order])))
    for (name, options), (value, gradient) in zip(golden.CONFIGURATIONS, results, strict=True):
        expected, _ = golden.value_and_gradient(name, logits[mask], labeled[mask], **options)
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9, err_msg=f"{name} {options}")
        np.testing.assert_array_equal(gradient[~mask], 0, err_msg=f"{name} {options}")
        assert np.isfinite(gradient).all()
    assert_close(reordered, [(value, gradient[order]) for value, gradient in results], rtol=1e-9, atol=1e-12)


def test_a_batch_of_padding_only_is_worth_zero():
    logits, labeled, _ = padded("one_positive", jnp.float32)
    zero = [(0, np.zeros(ROWS))] * len(golden.CONFIGURATIONS)
    assert_close(compiled(logits, labeled, jnp.zeros(ROWS, bool)), zero, rtol=0)


@pytest.mark.parametrize("name", RISKS)
def test_shapes_that_would_broadcast_are_rejected(name, monkeypatch):
    # Without the annotations checked, as users run it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    z, s = jnp.zeros(4), jnp.array([1, 0, 0, 1])
    for arguments, mask in [
        ((z[:, None], s), None),
        ((z, s[:, None]), None),
        ((z[:, None], s[:, None]), None),
        ((z[:3], s), None),
        ((z[:1], s), None),
        ((z, s), jnp.ones((4, 1))),
        ((z, s), jnp.ones(1)),
    ]:
        with pytest.raises(ValueError, match="expected"):
            called(name, *arguments, prior=0.4, mask=mask)


WITH_PRIOR = [name for name, options in golden.CONFIGURATIONS if options == {"prior": 0.4}]


@pytest.mark.parametrize("name", WITH_PRIOR)
@pytest.mark.parametrize("prior", [0, 1, 40, -0.1, float("nan")])
def test_an_impossible_prior_is_rejected(name, prior):
    with pytest.raises(ValueError, match="pass the share of positives"):
        called(name, jnp.zeros(2), jnp.array([1, 0]), prior=prior)


@pytest.mark.parametrize("name", WITH_PRIOR)
def test_the_prior_may_be_traced(name):
    logits, labeled = map(jnp.asarray, golden.BATCHES["typical"])
    traced = jax.jit(lambda prior: called(name, logits, labeled, prior=prior))
    for prior in (0.2, 0.7):
        expected, _ = golden.value_and_gradient(name, *golden.BATCHES["typical"], prior=prior)
        np.testing.assert_allclose(traced(prior), expected, rtol=1e-6)


def test_the_number_type_of_labels_and_mask_does_not_matter():
    logits, labeled = map(jnp.asarray, golden.BATCHES["typical"])
    mask = jnp.arange(ROWS) < 6
    values = [
        losses.nnpu(logits, labeled.astype(kind), prior=0.4, mask=mask.astype(kind))
        for kind in (bool, "int8", "float32")
    ]
    assert values[0] == values[1] == values[2]


@pytest.mark.parametrize(
    ("call", "choices"),
    [
        (functools.partial(losses.upu, prior=0.4, surrogate="zero_one"), "logistic"),
        (functools.partial(losses.pn_naive, surrogate="hinge"), "logistic"),
        (functools.partial(losses.variational, over="u"), "unlabeled"),
    ],
)
def test_an_unknown_choice_is_answered_with_the_choices(call, choices):
    with pytest.raises(ValueError, match=choices):
        call(jnp.zeros(2), jnp.array([1, 0]))


def test_clipped_nnpu_keeps_value_objective_and_flag_apart():
    logits, labeled = jnp.array([4.0, 4.0, -4.0]), jnp.array([1, 1, 0])
    wrong, right = 1 / (1 + np.exp(4)), 1 / (1 + np.exp(-4))
    negative_risk = wrong - 0.5 * right
    terms = losses.nnpu_terms(logits, labeled, prior=0.5, gamma=0.3)
    assert terms.clipped
    np.testing.assert_allclose(terms.value, 0.5 * wrong, rtol=1e-5)
    np.testing.assert_allclose(terms.reversed, -0.3 * negative_risk, rtol=1e-5)
    np.testing.assert_allclose(terms.positive_risk, 0.5 * wrong, rtol=1e-5)
    np.testing.assert_allclose(terms.negative_risk, negative_risk, rtol=1e-5)
    slope = right * wrong
    ways = (
        (losses.nnpu_clip, {}, [-slope / 4, -slope / 4, 0]),
        (losses.nnpu, {"gamma": 0.3}, [0.3 * slope / 4] * 2 + [-0.3 * slope]),
    )
    for risk, options, expected in ways:
        value, aux = risk(logits, labeled, prior=0.5, aux=True, **options)
        assert value == risk(logits, labeled, prior=0.5, **options) == terms.value
        assert float(aux["clipped"]) == 1
        gradient = jax.grad(risk)(logits, labeled, prior=0.5, **options)
        np.testing.assert_allclose(gradient, expected, rtol=1e-4)


@pytest.mark.parametrize("risk", [losses.nnpu_clip, losses.nnpu])
def test_nnpu_is_not_clipped_exactly_at_its_bound(risk):
    logits, labeled = jnp.array([1.0, 0.0]), jnp.array([1, 0])
    options = {"prior": 0.25, "surrogate": "squared"}
    terms = losses.nnpu_terms(logits, labeled, **options)
    assert terms.negative_risk == 0
    assert not terms.clipped
    gradient = jax.grad(risk)(logits, labeled, **options)
    np.testing.assert_array_equal(gradient, jax.grad(losses.upu)(logits, labeled, **options))


def test_the_oracle_sees_true_labels_alone_and_classes_as_it_sees_two():
    z, y = jnp.array([1.0, -0.5, 0.3]), jnp.array([1, 0, 1])
    of_flag = [losses.pn(z, labeled, y=y, surrogate="focal", focus=1.5) for labeled in (jnp.zeros(3), y)]
    assert of_flag[0] == of_flag[1] == losses.pn_naive(z, y, surrogate="focal", focus=1.5)
    assert of_flag[0] == losses.focal(z, y, gamma=1.5)
    two, weights = jnp.stack([jnp.zeros(3), z], axis=1), jnp.array([1.0, 3.0])
    weighted = [losses.pn(logits, y, y=y, class_weights=weights) for logits in (z, two)]
    expected = losses.cross_entropy(z, y, weights=weights[y])
    np.testing.assert_allclose(weighted, [expected, expected], rtol=1e-6)
    with pytest.raises(ValueError, match=r"labels are float32 of shape \(n,\), expected integers from 0 to 2"):
        losses.pn(jnp.zeros((3, 3)), y, y=y / 2)


@pytest.mark.parametrize(
    ("name", "weight"),
    [("pn", 0.5), ("pn_naive", 0.5), ("pudra", 0.4), ("pudra_batch", 0.5), ("pudra_naive", 1.0), ("variational", 1.0)],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_dead_positive_still_gets_its_full_gradient(name, weight, dtype):
    labeled = jnp.array([1, 0])
    gradient = jax.grad(lambda z: called(name, z, labeled, prior=0.4))(jnp.array([-100.0, 0.0], dtype))
    np.testing.assert_allclose(float(gradient[0]), -weight, rtol=float(jnp.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_softplus_is_exact_on_both_sides(dtype):
    z = np.array([-700, -100, -20.001, -20, -19.999, -5, -1, 0, 1, 20, 100, 700])
    softplus = np.log1p(np.exp(z))
    rtol = 8 * float(jnp.finfo(dtype).eps)
    with jax.enable_x64(True):
        z = jnp.asarray(z, dtype)
        value, gradient = jax.vmap(jax.value_and_grad(losses.log_softplus))(z)
    np.testing.assert_allclose(value, np.log(softplus), rtol=rtol)
    np.testing.assert_allclose(gradient, -np.expm1(-softplus) / softplus, rtol=rtol)


def test_density_ratio_losses_rest_at_the_prior():
    labeled = jnp.array([1, 0, 0])
    along = jax.grad(lambda z: losses.pudra(jnp.full(3, z), labeled, prior=0.3))
    np.testing.assert_allclose(along(jnp.log(0.3 / 0.7)), 0, atol=1e-7)
    along = jax.grad(lambda z: losses.pudra_softplus(jnp.full(3, z), labeled, prior=0.3))
    np.testing.assert_allclose(along(jnp.log(jnp.expm1(0.3))), 0, atol=1e-7)
    along = jax.grad(lambda z: losses.pudra_naive(jnp.full(3, z), labeled))
    np.testing.assert_allclose(along(0.0), 0, atol=1e-7)


@pytest.mark.parametrize("over", ["all", "unlabeled"])
def test_variational_loss_ignores_the_scale_of_p(over):
    p, labeled = jnp.array([0.8, 0.6, 0.1, 0.4]), jnp.array([1, 0, 0, 1])
    values = [losses.variational(jnp.log(q / (1 - q)), labeled, over=over) for q in (p, 0.5 * p, 1e-20 * p)]
    np.testing.assert_allclose(values, values[0], rtol=1e-5)


def test_an_empty_mean_under_the_logarithm_is_no_nan_even_on_the_way():
    with jax.debug_nans(True):
        gradient = jax.grad(losses.variational)(jnp.array([0.8, -0.4]), jnp.ones(2), over="unlabeled")
    np.testing.assert_allclose(gradient, [-0.5 / (1 + np.exp(0.8)), -0.5 / (1 + np.exp(-0.4))], rtol=1e-6)


def test_batch_prior_counts_unmasked_rows():
    labeled = jnp.array([1, 1, 0, 0, 1])
    assert losses.batch_prior(labeled, mask=jnp.array([1, 0, 1, 1, 0])) == pytest.approx(1 / 3)
    assert losses.batch_prior(labeled, mask=jnp.zeros(5)) == 0


def test_empirical_pudra_weighs_rows_equally():
    logits, labeled = golden.BATCHES["typical"]
    z, s = np.array(logits), np.array(labeled)
    p = 1 / (1 + np.exp(-z))
    expected = -np.log(p[s == 1]).sum() / ROWS + p[s == 0].mean()
    value = losses.pudra_batch(jnp.asarray(z), jnp.asarray(s))
    np.testing.assert_allclose(value, expected, rtol=1e-6)


MARGINS = np.linspace(-6, 6, 25)


@pytest.mark.parametrize("name", SURROGATES)
def test_surrogates_equal_their_formulas(name):
    formula = golden.SURROGATES[name]
    slope = (formula(MARGINS + 1e-5) - formula(MARGINS - 1e-5)) / 2e-5
    with jax.enable_x64(True):
        value, gradient = jax.vmap(jax.value_and_grad(SURROGATES[name]))(jnp.asarray(MARGINS))
        np.testing.assert_allclose(value, formula(MARGINS), rtol=1e-12)
        np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-9)


def test_a_chosen_surrogate_has_its_option_and_a_function_is_taken_as_it_is():
    margin = jnp.asarray(MARGINS, jnp.float32)
    for name in SURROGATES:
        given = {"log_end": 0.3, "focus": 0.5}
        value = surrogates.chosen(name, **given)(margin)
        np.testing.assert_allclose(value, golden.SURROGATES[name](MARGINS, **given), rtol=2e-5, atol=1e-6)
    assert surrogates.chosen(surrogates.zero_one) is surrogates.zero_one


def test_surrogates_add_up_as_their_theory_needs():
    margin = jnp.asarray(MARGINS, jnp.float32)
    for symmetric in (surrogates.sigmoid, surrogates.zero_one):
        np.testing.assert_allclose(symmetric(margin) + symmetric(-margin), 1, rtol=1e-6)
    np.testing.assert_allclose(surrogates.logistic(margin) - surrogates.logistic(-margin), -margin, atol=1e-6)


def test_zero_one_risk_is_the_error_rate():
    logits, labeled = jnp.array([1.0, -1.0, -2.0, 3.0, 0.0]), jnp.array([1, 1, 0, 0, 0])
    value = losses.upu(logits, labeled, prior=0.4, surrogate=surrogates.zero_one)
    np.testing.assert_allclose(value, 0.4 * 0.5 + 1.5 / 3 - 0.4 * 0.5, rtol=1e-6)


def test_importing_the_losses_costs_jax_only():
    heavy = ["flax", "optax", "sklearn", "polars", "pydantic", "tyro", "matplotlib"]
    program = f"import sys; from jaxpu import losses; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
