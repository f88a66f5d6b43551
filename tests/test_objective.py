"""Every method's loss on a batch against the formula of its table row, in NumPy and float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpu import losses
from jaxpu.config import TrainingConfig
from jaxpu.methods import METHODS, PENALTIES, Schedule, objective, options_of

FAMILY = objective.Objective(objective.branches_of(METHODS.values()), PENALTIES[1:], stages=2)
RNG = np.random.default_rng(7)
N, PRIOR, LAM = 12, 0.35, 0.3
EPOCH, EPOCHS = 28, 40  # in the last stage of those that have several
Z, Z_MIXED = RNG.normal(size=N), RNG.normal(size=N)
LABELED = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0.0])
TRUE = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0.0])
MASK = np.array([1.0] * 10 + [0.0] * 2)
SAID, TEACHER = RNG.uniform(size=N), RNG.normal(size=N)
PARTNER = np.array([0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 10, 11])


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def expected(name: str) -> tuple[float, float]:
    """(base, penalty) of a preset, written out by hand."""
    p, q = sigmoid(Z), sigmoid(Z_MIXED)
    positive, unlabeled, rows = (LABELED * MASK) > 0, ((1 - LABELED) * MASK) > 0, MASK > 0

    def risk(loss):
        return PRIOR * loss(Z[positive]).mean(), loss(-Z[unlabeled]).mean() - PRIOR * loss(-Z[positive]).mean()

    def bce(labels):
        return -(labels * np.log(p) + (1 - labels) * np.log(1 - p))[rows].mean()

    def pudra(prior):
        return prior * -np.log(p[positive]).mean() + p[unlabeled].mean()

    def of_label(loss):
        return loss(np.where(TRUE > 0, p, 1 - p)[rows]).mean()

    def bonus(p):
        return -np.log(p) + np.log(1 - p)

    sig, log = risk(lambda z: sigmoid(-z)), risk(lambda z: np.log1p(np.exp(-z)))
    softplus = np.log1p(np.exp(Z))
    variational = np.log(p[rows].mean()) - np.log(p[positive]).mean()
    bases = {
        "pn": bce(TRUE),
        "pn_mse": of_label(lambda p: (1 - p) ** 2),
        "pn_mae": of_label(lambda p: 1 - p),
        "pn_mae_mse": of_label(lambda p: 1 - p + (1 - p) ** 2),
        "pn_bonus": of_label(bonus),
        "pn_encouraging": of_label(
            lambda p: np.where(p <= 0.75, bonus(p), -np.log(p) + np.log(0.25) - (p - 0.75) / 0.25)
        ),
        "pn_focal": of_label(lambda p: (1 - p) ** 2 * -np.log(p)),
        "pn_naive": bce(LABELED),
        "upu": sum(sig),
        "nnpu": sig[0] + max(sig[1], 0),
        "nnpu_clip": sig[0] + max(sig[1], 0),
        "nnpusb": log[0] + max(log[1], 0),
        "pudra_softplus": PRIOR * -np.log(softplus[positive]).mean() + softplus[unlabeled].mean(),
        "pudra_naive": (-np.log(p) + p)[positive].mean() + p[unlabeled].mean(),
        "vpu_nomixup": variational,
        "vpu": variational,
        "vpu_published": np.log(p[unlabeled].mean()) - np.log(p[positive]).mean(),
        "vpudra": pudra(positive.sum() / rows.sum()),
    }
    # λ y + (1 - λ) y[partner] of what was said of the rows, 1 on P
    said = np.where(positive, 1, SAID)
    said_mixed = LAM * said + (1 - LAM) * said[PARTNER]
    aligned = abs(p[positive].mean() - 1) + abs(p[unlabeled].mean() - PRIOR) / (2 * PRIOR)
    entropy = -(q * np.log(q) + (1 - q) * np.log(1 - q))
    apart = -(said_mixed * np.log(q) + (1 - said_mixed) * np.log(1 - q))
    rising = 0.004 * (1 - np.cos((EPOCH / EPOCHS - 0.5) / 0.5 * np.pi / 2))
    of_unlabeled = -(p * np.log(p) + (1 - p) * np.log(1 - p))[unlabeled].mean()
    corrected, doubted = np.where(p > 0.85, 1, LABELED), unlabeled & (p > 0.15) & (p < 0.85)
    for key, y, weight, beta in (("p3mix_c", corrected, 0.5, 0.05), ("p3mix_e", LABELED, 1.0, 0.01)):
        y_mixed = LAM * y + (1 - LAM) * y[PARTNER]
        off = -(y_mixed * np.log(q) + (1 - y_mixed) * np.log(1 - q))
        bases[key] = off[positive].mean() + weight * off[unlabeled].mean() + beta * entropy[rows].mean()
    t = sigmoid(TEACHER)
    t = LAM * t + (1 - LAM) * np.where(doubted, 1, t[PARTNER])
    bases["p3mix_e"] += 0.5 * np.log(1 - t * q - (1 - t) * (1 - q))[rows].mean()
    fit = np.where(positive, -np.log(p), -SAID * np.log(p) - (1 - SAID) * np.log(1 - p))[rows]
    bases["lbe"] = np.sort(fit)[: int(0.8 * rows.sum())].mean()
    as_negative = np.sort(-np.log(1 - p[unlabeled]))[: unlabeled.sum() - int(PRIOR * unlabeled.sum())]
    bases["cvir"] = PRIOR * -np.log(p[positive]).mean() + (1 - PRIOR) * as_negative.mean()
    bases["dist_pu"] = aligned + rising * of_unlabeled + 5 * apart[rows].mean() + 0.04 * entropy[rows].mean()
    m = METHODS[name]
    base = bases["pn"] if m.mixes != "none" else bases.get(name, pudra(PRIOR))
    if not m.mixup:
        return base, 0.0
    a = m.anchor
    if isinstance(a, Schedule):
        a = a.start + (a.end - a.start) * EPOCH / (EPOCHS - 1)
    second = a + (1 - a) * np.maximum(p[PARTNER], m.partner_floor)
    mu = np.maximum(LAM * p + (1 - LAM) * second, m.floor)
    value = (np.log(mu) - np.log(q)) ** 2 if m.penalty == "log_mse" else -mu * np.log(q) + q
    counted = unlabeled if name == "vpu_published" else rows
    return base, (0.3 if name == "vpu_published" else LAM) * value[counted].mean()


@jax.jit
def both(h, z, z_mixed):
    """(base, weighted penalty) of any method: one program for all of them."""
    labeled, mask = (jnp.asarray(a, z.dtype) for a in (LABELED, MASK))
    now = objective.at(h, EPOCH, EPOCHS)
    mixed = losses.Mixed(z_mixed, jnp.asarray(PARTNER), LAM)
    context = {"rows": jnp.arange(N), "progress": objective.progress(EPOCH, EPOCHS)}
    context["memory"] = {"said": jnp.asarray(SAID, z.dtype), "params": jnp.asarray(TEACHER, z.dtype)}
    context["memory"]["posterior"] = context["memory"]["said"]
    context["forward"] = lambda parameters: parameters
    base, _ = objective.base_risk(FAMILY, now, z, labeled, mask, mixed, y=jnp.asarray(TRUE, jnp.int32), **context)
    weighted, _ = objective.penalty(FAMILY, now, z, jnp.asarray(PARTNER), z_mixed, LAM, labeled, mask)
    return base, weighted


@jax.jit
def gradients(h, z, z_mixed):
    """d base / dz, d penalty / dz, d penalty / dz_mixed and d base / dz_mixed."""
    (base_by_z, base_by_mixed), (by_z, by_mixed) = jax.jacrev(both, argnums=(1, 2))(h, z, z_mixed)
    return base_by_z, by_z, by_mixed, base_by_mixed


def of_risks(h: objective.Hyper) -> objective.Hyper:
    """Without the numbers of memories and pairings, so that one program serves methods that would not share one."""
    known = {number for branch in FAMILY.branches for number in options_of(branch.risk).numbers}
    return h._replace(options={number: value for number, value in h.options.items() if number in known})


def numbers(name: str, dtype: type) -> objective.Hyper:
    h = of_risks(objective.hyper_of(METHODS[name], TrainingConfig(), PRIOR, objective=FAMILY))
    return jax.tree.map(lambda v: jnp.asarray(v, dtype if v.dtype.kind == "f" else jnp.int32), h)


@pytest.mark.parametrize("name", METHODS)
def test_every_preset_is_its_row_of_the_table(name):
    base, weighted = both(numbers(name, jnp.float32), jnp.asarray(Z, jnp.float32), jnp.asarray(Z_MIXED, jnp.float32))
    expected_base, expected_penalty = expected(name)
    np.testing.assert_allclose(base, expected_base, rtol=2e-6)
    if METHODS[name].mixup:
        np.testing.assert_allclose(weighted, expected_penalty, rtol=2e-6)


def central_differences(function, at, step=1e-6):
    moves = step * np.eye(len(at))
    return np.array([(function(at + m) - function(at - m)) / (2 * step) for m in moves])


@pytest.mark.parametrize("name", [n for n in METHODS if n not in ("nnpu", "nnpusb")])
def test_the_gradient_is_that_of_the_loss_with_the_target_held(name):
    """nnPU by reversal is left out: where clipped, its gradient is not that of its value, on purpose."""
    with jax.enable_x64(True):
        h, z, z_mixed = numbers(name, jnp.float64), jnp.asarray(Z), jnp.asarray(Z_MIXED)
        base_by_z, penalty_by_z, penalty_by_mixed, base_by_mixed = gradients(h, z, z_mixed)
        slope = central_differences(lambda b: float(both(h, z, jnp.asarray(b))[0]), Z_MIXED)
        np.testing.assert_allclose(base_by_mixed, slope, atol=1e-8)
        slope = central_differences(lambda a: float(both(h, jnp.asarray(a), z_mixed)[0]), Z)
        np.testing.assert_allclose(base_by_z, slope, atol=1e-8)
        slope = central_differences(lambda b: float(both(h, z, jnp.asarray(b))[1]), Z_MIXED)
        np.testing.assert_allclose(penalty_by_mixed, slope, atol=1e-8)
        if METHODS[name].detach:
            np.testing.assert_array_equal(penalty_by_z, 0)
        else:
            slope = central_differences(lambda a: float(both(h, jnp.asarray(a), z_mixed)[1]), Z)
            np.testing.assert_allclose(penalty_by_z, slope, atol=1e-8)
            assert np.abs(slope).max() > 0.01


def test_nnpu_reports_one_value_and_steps_in_two_ways():
    # P at +4 and U at -4: the bracket is negative, so it is clipped (a public report against four repositories)
    z, labeled = jnp.array([4.0, -4.0]), jnp.array([1.0, 0.0])
    results = {}
    for name in ("upu", "nnpu", "nnpu_clip"):
        alone = objective.objective_of([METHODS[name]])
        h = objective.at(objective.hyper_of(METHODS[name], TrainingConfig(), 0.5), 0, 1)
        (value, clipped), grad = jax.value_and_grad(
            lambda z, h=h, alone=alone: objective.base_risk(alone, h, z, labeled, jnp.ones(2)), has_aux=True
        )(z)
        results[name] = float(value), float(clipped), [round(float(g), 4) for g in grad]
    s = sigmoid(4.0)
    for name in ("nnpu", "nnpu_clip"):
        assert results[name][:2] == (pytest.approx(0.5 * (1 - s), rel=1e-5), 1.0)
    assert results["upu"][:2] == (pytest.approx(0.5 * (1 - s) + (1 - s) - 0.5 * s, abs=1e-6), 0.0)
    slope = s * (1 - s)
    assert results["nnpu_clip"][2] == [round(-0.5 * slope, 4), 0.0]
    assert results["nnpu"][2] == [round(0.5 * slope, 4), round(-slope, 4)]


def test_one_program_serves_all_methods():
    traces = []

    @jax.jit
    def loss(h, z):
        traces.append(1)
        now = objective.at(h, 3, 40)
        y = jnp.asarray(TRUE, jnp.int32)
        return objective.base_risk(FAMILY, now, z, jnp.asarray(LABELED), jnp.asarray(MASK), y=y)[0]

    for name in METHODS:
        h = objective.hyper_of(METHODS[name], TrainingConfig(lr=1e-3, alpha=0.7), 0.2, objective=FAMILY)
        loss(of_risks(h), jnp.asarray(Z, jnp.float32))
    assert len(traces) == 1


@pytest.mark.parametrize("name", ["nnpu", "vpu", "soft_logmse"])
def test_a_program_of_one_method_computes_what_a_program_of_all_does(name):
    """Without a switch the risk is differentiated as it is; with one, inside its branch."""
    alone = objective.objective_of([METHODS[name]])
    assert len(alone.branches) == 1
    z, z_mixed, labeled, mask = (jnp.asarray(a, jnp.float32) for a in (Z, Z_MIXED, LABELED, MASK))
    h = objective.at(objective.hyper_of(METHODS[name], TrainingConfig(), PRIOR), 0, 40)

    def loss(z, z_mixed):
        base, _ = objective.base_risk(alone, h, z, labeled, mask)
        if not alone.mixup:
            return base
        return base + objective.penalty(alone, h, z, jnp.asarray(PARTNER), z_mixed, LAM, labeled, mask)[0]

    by_z, by_mixed = jax.jit(jax.grad(loss, argnums=(0, 1)))(z, z_mixed)
    among = gradients(numbers(name, jnp.float32), z, z_mixed)
    np.testing.assert_allclose(by_z, among[0], rtol=1e-5, atol=1e-7)
    if alone.mixup:
        np.testing.assert_allclose(by_mixed, among[2], rtol=1e-5, atol=1e-7)
