"""Loss geometry and the mean field: autodiff of the training code against closed forms and float64 NumPy."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from jaxpu import mixup, theory
from jaxpu.methods import METHODS, RISKS, resolve
from jaxpu.theory import geometry, meanfield

P = np.linspace(0.02, 0.98, 25)
MU = np.array([1e-3, 0.1, 0.5, 0.9, 1.0])


def closed_penalty(name, p, mu):
    """Value, slope and curvature by hand, in float64."""
    r = np.log(mu) - np.log(p)
    if name == "log_mse":
        return r**2, -2 * r * (1 - p), 2 * (1 - p) ** 2 + 2 * r * p * (1 - p)
    return p - mu * np.log(p), (p - mu) * (1 - p), (1 + mu - 2 * p) * p * (1 - p)


@pytest.mark.parametrize("name", mixup.PENALTIES)
def test_penalties_have_their_closed_forms(name):
    p, mu = np.meshgrid(P, MU)
    got = geometry.penalty_shape(name, jnp.asarray(p), jnp.asarray(mu))
    for mine, hand in zip(got, closed_penalty(name, p, mu), strict=True):
        np.testing.assert_allclose(mine, hand, rtol=2e-4, atol=2e-5)


CLOSED_RISKS = {
    "pn": lambda p, pi: p - pi,
    "upu": lambda p, pi: (1 - 2 * pi) * p * (1 - p),
    "nnpu": lambda p, pi: (1 - 2 * pi) * p * (1 - p),  # its bracket is (1 - π) p, never below 0
    "nnpu_clip": lambda p, pi: (1 - 2 * pi) * p * (1 - p),
    "nnpusb": lambda p, pi: p - pi,
    "pn_naive": lambda p, pi: p - 0.5,  # one of two rows is labeled
    "pudra": lambda p, pi: (p - pi) * (1 - p),
    "pudra_softplus": lambda p, pi: p * (1 + pi / np.log1p(-p)),
    "pudra_batch": lambda p, pi: (p - 0.5) * (1 - p),
    "pudra_naive": lambda p, pi: (2 * p - 1) * (1 - p),
    "variational": lambda p, pi: 0 * p,
    "p3mix_c": lambda p, pi: (p - 1) + 0.5 * (p - (p > 0.85)) - 0.05 * p * (1 - p) * np.log(p / (1 - p)),
    "p3mix_e": lambda p, pi: 0.75 * (2 * p - 1) - 0.01 * p * (1 - p) * np.log(p / (1 - p)),  # t is p, and held
    "cvir": lambda p, pi: p - pi,
    "label_distribution": lambda p, pi: aligned(p, pi, 0.002),
    "dist_pu": lambda p, pi: aligned(p, pi, 0.004),  # its two terms on mixed rows are none of a point
}


def aligned(p, pi, entropy):
    return p * (1 - p) * (-1 + np.sign(p - pi) / (2 * pi) - entropy * np.log(p / (1 - p)))


def test_all_risks_but_one_have_a_slope_at_a_point():
    assert RISKS.keys() - CLOSED_RISKS.keys() == {"lbe"}, "which goes by the row that fits better"


@pytest.mark.parametrize("name", CLOSED_RISKS)
def test_risks_have_their_closed_slopes(name):
    p, pi = np.meshgrid(P, [0.11, 0.41, 0.71])
    shape = geometry.risk_shape(name, jnp.asarray(p), jnp.asarray(pi))
    np.testing.assert_allclose(shape.slope, CLOSED_RISKS[name](p, pi), rtol=1e-4, atol=1e-6)
    if name == "p3mix_e":
        return  # what is held in the slope is held in the curvature, too
    h = 1e-4  # curvature: central difference of the closed slope along the logit
    z = np.log(p / (1 - p))
    ends = [CLOSED_RISKS[name](1 / (1 + np.exp(-(z + step))), pi) for step in (h, -h)]
    np.testing.assert_allclose(shape.curvature, (ends[0] - ends[1]) / (2 * h), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", mixup.PENALTIES)
@pytest.mark.parametrize("mu", [0.01, 0.3, 0.9])
def test_both_penalties_are_stable_at_the_target_and_never_push_below_it(name, mu):
    def slope(p):
        return np.asarray(geometry.penalty_shape(name, jnp.asarray(p, jnp.float32), jnp.float32(mu)).slope)

    [point] = geometry.sign_changes(slope)
    assert point.stable
    assert point.p == pytest.approx(mu, rel=1e-3)
    assert (slope(np.array([mu / 2, mu / 10])) < 0).all(), "below its target p is pushed up"


def test_with_a_tiny_target_log_mse_pushes_down_harder_than_the_point_process():
    p = jnp.asarray(P)
    log_mse, point = (geometry.penalty_shape(name, p, jnp.full_like(p, 1e-4)).slope for name in mixup.PENALTIES)
    assert (log_mse > 5 * point).all()
    assert float(point.max()) <= 0.25


@pytest.mark.parametrize(("name", "function"), [("penalty", geometry.penalty_shape), ("risk", geometry.risk_shape)])
def test_unknown_names_are_refused_with_the_choices(name, function):
    with pytest.raises(ValueError, match=f"unknown {name} 'x'; choose from"):
        function("x", jnp.array([0.5]), 0.5)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 1.0, 8.0])
def test_nodes_of_lambda_have_the_moments_of_beta(alpha):
    nodes = theory.beta_nodes(alpha, 512).astype(float)
    assert nodes.mean() == pytest.approx(0.5, abs=1e-4)
    assert (nodes * (1 - nodes)).mean() == pytest.approx(alpha / (2 * (2 * alpha + 1)), rel=5e-3)
    assert (np.diff(nodes) >= 0).all()
    with pytest.raises(ValueError, match="positive"):
        theory.beta_nodes(0.0)


STEPS = 500
SIZE = 20


def repeated(points):
    """The points of a grid of one size, the last one repeated."""
    return list(points) + list(points[-1:]) * (SIZE - len(points))


def nodes(*alphas):
    return jnp.stack(repeated([jnp.asarray(theory.beta_nodes(alpha)) for alpha in alphas]))


@pytest.mark.slow
def test_the_point_process_moves_the_fixed_point_to_its_closed_form():
    draw = np.random.default_rng(0)
    cases, methods, alphas = [], [], []
    for _ in range(SIZE):
        anchor, weight = draw.choice([0.0, draw.uniform()]), draw.uniform(0, 3)
        by_lambda, prior = bool(draw.integers(2)), draw.uniform(0.05, 0.9)
        cases.append((prior, anchor, weight, by_lambda))
        methods.append(point_process(anchor, weight, by_lambda))
        alphas.append(draw.choice([0.2, 0.3, 1.0, 8.0]))
    lams = np.asarray(nodes(*alphas))
    found = meanfield.fixed_points(theory.grid(methods, [case[0] for case in cases]), jnp.asarray(lams))
    for row, (prior, anchor, weight, by_lambda) in enumerate(cases):
        lam = lams[row].astype(float)
        kappa = anchor * weight * ((lam if by_lambda else 1.0) * (1 - lam)).mean()
        assert float(found.p[row, 0]) == pytest.approx((prior + kappa) / (1 + kappa), rel=1e-3)
    assert found.stable[:, 0].all()
    assert np.isnan(found.p[:, 1:]).all(), "one fixed point: nowhere else can p come to rest"


def test_a_fixed_point_on_the_grid_itself_is_found():
    soft = point_process(0.0, 1.0, True)  # its fixed point is p = 1/2, the logit 0
    found = meanfield.fixed_points(theory.grid([soft] * SIZE, 0.5), nodes(0.3))
    np.testing.assert_allclose(found.p[0, 0], 0.5, atol=1e-5)
    assert np.isnan(found.p[0, 1:]).all()
    for points in (2000, 2001):
        [point] = geometry.sign_changes(lambda p: p - 0.5, points)
        assert (point.p, point.stable) == (pytest.approx(0.5), True)


def point_process(anchor, weight, by_lambda):
    changes = {"anchor": float(anchor), "weight": weight, "weight_by_lambda": by_lambda}
    return dataclasses.replace(METHODS["vpudra_pp"], **changes)


def log_mse_slope(z, prior, anchor, lam, floor):
    p = 1 / (1 + np.exp(-z))
    mu = np.maximum(lam * p + (1 - lam) * (anchor + (1 - anchor) * p), floor)
    return (p - prior) * (1 - p) - 2 * (lam * (np.log(mu) - np.log(p))).mean() * (1 - p)


@pytest.mark.slow
def test_log_mse_has_the_fixed_points_of_an_independent_root_search():
    cases = [(1.0, 0.0), (0.5, 0.0), (0.0, 0.0), (0.0, 0.5), (0.2, 0.7)]
    methods = [dataclasses.replace(METHODS["vpudra_fixed"], anchor=a, floor=f) for a, f in cases]
    found = meanfield.fixed_points(theory.grid(repeated(methods), 0.3), nodes(0.3))
    lam = theory.beta_nodes(0.3).astype(float)
    for row, (anchor, floor) in enumerate(cases):
        slope = functools.partial(log_mse_slope, prior=0.3, anchor=anchor, lam=lam, floor=floor)
        root = optimize.brentq(slope, -10, 6)
        assert float(found.p[row, 0]) == pytest.approx(1 / (1 + np.exp(-root)), rel=1e-3)
        curvature = (slope(root + 0.05) - slope(root - 0.05)) / 0.1
        assert float(found.step_limit[row, 0]) == pytest.approx(2 / curvature, rel=0.02)


@pytest.mark.slow
def test_without_an_anchor_the_variational_risk_leaves_p_where_it_is():
    soft = dataclasses.replace(METHODS["vpu"], anchor=0.0)
    settings = theory.grid(repeated([soft, METHODS["vpu"]]), 0.3, lr=1.0)
    found = meanfield.fixed_points(settings, nodes(0.3))
    assert np.isnan(found.p[0]).all(), "every p is at rest: none is special"
    path = meanfield.iterate(jnp.full(SIZE, 0.01), settings, nodes(0.3), STEPS)
    np.testing.assert_allclose(path[0], 0.01, rtol=1e-3)
    assert float(path[1, -1]) > 0.9, "the anchor alone decides where VPU's level ends"


def test_the_dynamics_are_the_plain_loop():
    starts = [0.001, 0.3, 0.95]
    settings = theory.grid([METHODS["vpudra_fixed"]] * SIZE, 0.3, lr=0.5)
    path = meanfield.iterate(jnp.array(repeated(starts)), settings, nodes(0.3), STEPS)
    lam = theory.beta_nodes(0.3).astype(float)
    for row, start in enumerate(starts):
        z = np.log(start / (1 - start))
        for step in range(50):
            z -= 0.5 * log_mse_slope(z, 0.3, 1.0, lam, 0.0)
            assert float(path[row, step]) == pytest.approx(1 / (1 + np.exp(-z)), rel=1e-3)


@pytest.mark.slow
def test_a_long_run_ends_at_a_stable_fixed_point_or_at_one_end_whatever_the_method():
    names = [name for name, method in METHODS.items() if method.mixup]
    settings = theory.grid(repeated([METHODS[name] for name in names]), 0.4, lr=2.0)
    lams = nodes(0.3)
    found = meanfield.fixed_points(settings, lams)
    ends = [meanfield.iterate(jnp.full(SIZE, p), settings, lams, STEPS)[:, -1] for p in (0.02, 0.9)]
    for row, name in enumerate(names):
        stable = np.asarray(found.p[row])[np.asarray(found.stable[row])]
        if METHODS[name].risk == "variational":
            assert not stable.size, "VPU's risk does not know p's level, and its anchor pulls up without end"
            assert all(float(end[row]) > 0.9 for end in ends), name
        for end in ends if stable.size else []:
            assert np.abs(stable - float(end[row])).min() < 0.01, name


@pytest.mark.slow
def test_the_labeled_share_is_the_prior_of_the_batch_and_what_supervised_risks_see():
    """It was ignored once: batches were three rows, whatever the share."""
    draw = np.random.default_rng(1)
    shares, priors = draw.uniform(0.005, 0.6, SIZE), draw.uniform(0.05, 0.9, SIZE)
    lams = nodes(0.3)
    lam = np.asarray(lams[0], float)
    kappa = (lam * (1 - lam)).mean()
    batch_prior = dataclasses.replace(METHODS["vpudra_pp"], risk=METHODS["vpudra"].risk)
    wanted = {
        batch_prior: (shares + kappa) / (1 + kappa),
        METHODS["vpudra_pp"]: (priors + kappa) / (1 + kappa),
        METHODS["pn_naive"]: shares,
        METHODS["pn"]: shares + (1 - shares) * priors,
    }
    for method, p in wanted.items():
        settings = theory.grid(method, priors.tolist(), labeled_share=shares.tolist())
        found = meanfield.fixed_points(settings, lams if method.mixup else lams[:, :0])
        np.testing.assert_allclose(found.p[:, 0], p, rtol=2e-3, err_msg=str(method.risk))
    separate = dataclasses.replace(batch_prior, batching="separate")
    assert float(theory.setting(separate, 0.3, labeled_share=0.01).labeled_share) == 0.5


@pytest.mark.slow
def test_the_slope_is_that_of_a_batch_whose_rows_agree():
    """40 rows, 6 labeled, 14 more positives, by the risks as they are called for any batch."""
    labeled, y = ((jnp.arange(40) < count).astype(int) for count in (6, 20))
    prior, z = 14 / 34, 0.4
    names = ("pn", "pn_naive", "upu", "nnpu", "pudra", "pudra_batch", "pudra_naive", "variational")
    methods = [dataclasses.replace(METHODS["pudra"], risk=name) for name in names]
    settings = theory.grid(methods, prior, labeled_share=6 / 40)
    slopes = jax.vmap(meanfield.slope, (None, 0, None))(z, settings, jnp.zeros(0))
    for name, got in zip(names, slopes, strict=True):
        context = {"y": y} if name == "pn" else {"prior": prior} if name in ("upu", "nnpu", "pudra") else {}
        loss = functools.partial(resolve(name), labeled=labeled, **context)
        wanted = jax.grad(lambda z, loss=loss: loss(jnp.full(40, z)))(z)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6, err_msg=name)


def test_grids_take_lists_of_one_length():
    with pytest.raises(ValueError, match=r"lists of lengths \[2, 3\], expected one length"):
        theory.grid([METHODS["pn"]] * 2, [0.1, 0.2, 0.3])
