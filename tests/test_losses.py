"""The losses against float64 NumPy (scripts/golden.py), and what every one of them must withstand."""

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
from jaxpu.losses import LOSSES, SURROGATES, surrogates

SCRIPT = Path(__file__).parent.parent / "scripts" / "golden.py"
SPEC = importlib.util.spec_from_file_location("golden", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
golden = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(golden)

RECORDS = json.loads(golden.PATH.read_text())
CONFIGURATIONS = [(name, tuple(options.items())) for name, options in golden.CONFIGURATIONS]
ROWS = 8
per_configuration = pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
deterministic = settings(max_examples=20, deadline=None, derandomize=True)


@functools.cache
def compiled(configuration):
    """Value and gradient of a configured loss as one program, shared by the tests."""
    name, options = configuration
    return jax.jit(jax.value_and_grad(functools.partial(LOSSES[name], **dict(options))))


def padded(logits, labeled, dtype):
    """A batch of fixed length, with junk in its padding: one program serves all lengths."""
    junk = ROWS - len(logits)
    logits = np.concatenate([logits, np.resize([np.nan, np.inf, -np.inf], junk)])
    labeled = np.concatenate([labeled, np.resize([1, 0], junk)]).astype(int)
    return jnp.asarray(logits, dtype), jnp.asarray(labeled), {"mask": jnp.arange(ROWS) < ROWS - junk}


def assert_padding_is_ignored(gradient, rows):
    np.testing.assert_array_equal(gradient[rows:], 0)


def test_golden_file_is_current():
    assert golden.same(RECORDS, list(golden.records()))


def test_golden_file_covers_every_loss_and_surrogate():
    assert {name for name, _ in CONFIGURATIONS} == set(LOSSES)
    used = {options.get("surrogate", "sigmoid") for name, options in golden.CONFIGURATIONS if name == "upu"}
    assert used == set(SURROGATES)


@per_configuration
def test_value_and_gradient_equal_the_golden_ones(configuration):
    with jax.enable_x64(True):
        for record in RECORDS:
            if (record["loss"], tuple(record["options"].items())) != configuration:
                continue
            logits, labeled = golden.BATCHES[record["batch"]]
            z, s, mask = padded(logits, labeled, jnp.float64)
            value, gradient = compiled(configuration)(z, s, **mask)
            assert value.dtype == jnp.float64
            np.testing.assert_allclose(value, record["value"], rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(gradient[: len(logits)], record["gradient"], rtol=1e-8, atol=3e-9)
            assert_padding_is_ignored(gradient, len(logits))


@per_configuration
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
def test_extreme_logits_keep_the_precision_of_their_type(configuration, dtype, batch):
    name, options = configuration
    logits, labeled = golden.BATCHES[batch]
    exact, exact_gradient = golden.value_and_gradient(name, logits, labeled, **dict(options))
    z, s, mask = padded(logits, labeled, dtype)
    value, gradient = compiled(configuration)(z, s, **mask)
    assert value.dtype == jnp.float32, "computed in float32"
    assert gradient.dtype == z.dtype
    np.testing.assert_allclose(value, exact, rtol=4e-7, atol=1e-9)
    tolerance = {"rtol": 2 * float(jnp.finfo(dtype).eps), "atol": 3e-9 if dtype != "float16" else 6e-8}
    np.testing.assert_allclose(gradient[: len(logits)].astype(float), exact_gradient, **tolerance)


@per_configuration
def test_jit_vmap_and_loop_agree(configuration):
    name, options = configuration
    loss = functools.partial(LOSSES[name], **dict(options))
    batches = [padded(*golden.BATCHES[batch], jnp.float32) for batch in ("typical", "clipped", "no_positive")]
    z, s, mask = (
        jnp.stack(column) for column in zip(*((z, s, m["mask"]) for z, s, m in batches), strict=True)
    )
    mapped = jax.vmap(lambda z, s, m: compiled(configuration)(z, s, mask=m))(z, s, mask)
    for row, (logits, labeled, keyword) in enumerate(batches):
        value, gradient = compiled(configuration)(logits, labeled, **keyword)
        np.testing.assert_allclose(value, loss(logits, labeled, **keyword), rtol=1e-6)
        np.testing.assert_allclose(value, mapped[0][row], rtol=1e-6)
        np.testing.assert_allclose(gradient, mapped[1][row], rtol=1e-6, atol=1e-9)
    logits, labeled, keyword = batches[0]
    np.testing.assert_allclose(loss(logits, labeled), loss(logits, labeled, **keyword), rtol=1e-6)


@given(data=st.data())
@deterministic
def test_any_mask_drops_rows_and_any_order_is_the_same(data):
    configuration = data.draw(st.sampled_from(CONFIGURATIONS))
    name, options = configuration
    logits = np.array(data.draw(st.lists(st.floats(-30, 30), min_size=ROWS, max_size=ROWS)))
    labeled = np.array(data.draw(st.lists(st.booleans(), min_size=ROWS, max_size=ROWS)), dtype=int)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=ROWS, max_size=ROWS)))
    order = np.array(data.draw(st.permutations(range(ROWS))))
    expected, _ = golden.value_and_gradient(name, logits[mask], labeled[mask], **dict(options))
    with jax.enable_x64(True):
        z = jnp.asarray(np.where(mask, logits, np.nan))
        value, gradient = compiled(configuration)(z, jnp.asarray(labeled), mask=jnp.asarray(mask))
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(gradient[~mask], 0)
        reordered = compiled(configuration)(
            z[order], jnp.asarray(labeled[order]), mask=jnp.asarray(mask[order])
        )
        np.testing.assert_allclose(reordered[0], value, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(reordered[1], gradient[order], rtol=1e-9, atol=1e-12)


@per_configuration
def test_a_batch_of_padding_only_is_worth_zero(configuration):
    value, gradient = compiled(configuration)(*padded([], [], jnp.float32)[:2], mask=jnp.zeros(ROWS, bool))
    assert value == 0
    np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize("name", LOSSES)
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
            LOSSES[name](*arguments, prior=0.4, mask=mask)


@pytest.mark.parametrize("name", ["upu", "nnpu", "nnpusb", "pudra"])
@pytest.mark.parametrize("prior", [0, 1, 40, -0.1, float("nan")])
def test_an_impossible_prior_is_rejected(name, prior):
    with pytest.raises(ValueError, match="pass the share of positives"):
        LOSSES[name](jnp.zeros(2), jnp.array([1, 0]), prior=prior)


@pytest.mark.parametrize("name", ["upu", "nnpu", "nnpusb", "pudra"])
def test_the_prior_may_be_traced(name):
    logits, labeled = map(jnp.asarray, golden.BATCHES["typical"])
    traced = jax.jit(lambda prior: LOSSES[name](logits, labeled, prior=prior))
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
        (functools.partial(losses.nnpu, prior=0.4, variant="reverse"), "reversal"),
        (functools.partial(losses.pudra, prior=0.4, activation="relu"), "softplus"),
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
    for variant, objective in (("clip", 0.5 * wrong), ("reversal", -0.3 * negative_risk)):
        options = {"prior": 0.5, "variant": variant, "gamma": 0.3}
        terms = losses.nnpu_terms(logits, labeled, **options)
        assert terms.clipped
        np.testing.assert_allclose(terms.value, 0.5 * wrong, rtol=1e-5)
        np.testing.assert_allclose(terms.objective, objective, rtol=1e-5)
        np.testing.assert_allclose(terms.positive_risk, 0.5 * wrong, rtol=1e-5)
        np.testing.assert_allclose(terms.negative_risk, negative_risk, rtol=1e-5)
        assert losses.nnpu(logits, labeled, **options) == terms.value
        slope = right * wrong
        expected = {"clip": [-slope / 4, -slope / 4, 0], "reversal": [0.3 * slope / 4] * 2 + [-0.3 * slope]}
        gradient = jax.grad(losses.nnpu)(logits, labeled, **options)
        np.testing.assert_allclose(gradient, expected[variant], rtol=1e-4)


@pytest.mark.parametrize("variant", ["clip", "reversal"])
def test_nnpu_is_not_clipped_exactly_at_its_bound(variant):
    logits, labeled = jnp.zeros(2), jnp.array([1, 0])
    options = {"prior": 0.5, "beta": -0.25, "variant": variant}
    terms = losses.nnpu_terms(logits, labeled, **options)
    assert terms.negative_risk == 0.25
    assert not terms.clipped
    gradient = jax.grad(losses.nnpu)(logits, labeled, **options)
    np.testing.assert_array_equal(gradient, jax.grad(losses.upu)(logits, labeled, prior=0.5))


@pytest.mark.parametrize(
    ("name", "weight"), [("pn", 0.5), ("pudra", 0.4), ("pudra_naive", 1.0), ("variational", 1.0)]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_dead_positive_still_gets_its_full_gradient(name, weight, dtype):
    gradient = jax.grad(LOSSES[name])(jnp.array([-100.0, 0.0], dtype), jnp.array([1, 0]), prior=0.4)
    np.testing.assert_allclose(float(gradient[0]), -weight, rtol=float(jnp.finfo(dtype).eps))


def test_log_softplus_is_exact_on_both_sides():
    z = np.array([-1e4, -100, -20.001, -20, -19.999, -5, -1, 0, 1, 20, 100, 1e4])
    with np.errstate(over="ignore", divide="ignore"):
        exact = np.where(z < -700, z, np.log(np.where(z > 700, z, np.log1p(np.exp(z)))))
        slope = np.where(z < -700, 1, 1 / (1 + np.exp(-z)) / np.where(z > 700, z, np.log1p(np.exp(z))))
    slope[0] = 1
    for dtype, rtol in ((jnp.float32, 5e-7), (jnp.float64, 1e-14)):
        with jax.enable_x64(True):
            value, gradient = jax.vmap(jax.value_and_grad(losses.log_softplus))(jnp.asarray(z, dtype))
        np.testing.assert_allclose(value, exact, rtol=rtol)
        np.testing.assert_allclose(gradient, slope, rtol=rtol)


def test_density_ratio_losses_rest_at_the_prior():
    labeled = jnp.array([1, 0, 0])
    along = jax.grad(lambda z: losses.pudra(jnp.full(3, z), labeled, prior=0.3))
    np.testing.assert_allclose(along(jnp.log(0.3 / 0.7)), 0, atol=1e-7)
    along = jax.grad(lambda z: losses.pudra(jnp.full(3, z), labeled, prior=0.3, activation="softplus"))
    np.testing.assert_allclose(along(jnp.log(jnp.expm1(0.3))), 0, atol=1e-7)
    along = jax.grad(lambda z: losses.pudra_naive(jnp.full(3, z), labeled))
    np.testing.assert_allclose(along(0.0), 0, atol=1e-7)


@pytest.mark.parametrize("over", ["all", "unlabeled"])
def test_variational_loss_ignores_the_scale_of_p(over):
    p, labeled = jnp.array([0.8, 0.6, 0.1, 0.4]), jnp.array([1, 0, 0, 1])
    values = [losses.variational(jnp.log(q / (1 - q)), labeled, over=over) for q in (p, 0.5 * p, 1e-20 * p)]
    np.testing.assert_allclose(values, values[0], rtol=1e-5)


def test_batch_prior_counts_unmasked_rows():
    labeled = jnp.array([1, 1, 0, 0, 1])
    assert losses.batch_prior(labeled, jnp.array([1, 0, 1, 1, 0])) == pytest.approx(1 / 3)
    assert losses.batch_prior(labeled, jnp.zeros(5)) == 0


def test_empirical_pudra_weighs_rows_equally():
    logits, labeled = golden.BATCHES["typical"]
    z, s = np.array(logits), np.array(labeled)
    p = 1 / (1 + np.exp(-z))
    expected = -np.log(p[s == 1]).sum() / ROWS + p[s == 0].mean()
    value = losses.pudra(jnp.asarray(z), jnp.asarray(s), prior=losses.batch_prior(jnp.asarray(s)))
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


def test_surrogates_are_in_the_order_that_an_index_relies_on():
    assert list(SURROGATES) == ["sigmoid", "logistic", "squared", "savage"]


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
