"""What mixup does, in equations: every identity against independent NumPy in double precision or a limiting case."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats

from jaxpu import theory
from jaxpu.theory import glm, gradient_noise, mixup_loss, mixupe, rademacher, random_features, rare_features


@pytest.fixture(autouse=True, scope="module")
def x64():
    with jax.enable_x64(True):
        yield


def softplus(z):
    return np.logaddexp(0, z)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def arrays(*parts):
    return tuple(map(jnp.asarray, parts))


def mlp(seed, p=5, k=None, width=7):
    """A tanh network as a function of one row, with its value, gradient and Hessian in NumPy for one output."""
    draw = np.random.default_rng(seed)
    v, c = draw.normal(size=(width, p)) / np.sqrt(p), draw.normal(size=width)
    w = draw.normal(size=(width,) if k is None else (k, width))

    def f(x):
        return jnp.asarray(w) @ jnp.tanh(jnp.asarray(v) @ x + jnp.asarray(c))

    def by_hand(x):
        t = np.tanh(v @ x + c)
        rows = np.atleast_2d(w)
        jacobian = (rows * (1 - t**2)) @ v
        hessian = np.einsum("kr,ra,rb->kab", rows * (-2 * t * (1 - t**2)), v, v)
        return rows @ t, jacobian, hessian

    return f, by_hand


def rows_of(seed, n=12, p=5, k=None):
    draw = np.random.default_rng(100 + seed)
    x, y = draw.normal(size=(n, p)), draw.integers(0, 2 if k is None else k, n)
    return x, y.astype(float) if k is None else np.eye(k)[y]


# --- the loss by relabeling, and the moments of 1 - λ


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.3, 0.3), (2.0, 5.0), (0.5, 3.0)])
def test_the_mixup_loss_is_that_of_the_longer_share_with_the_label_of_the_first(alpha, beta):
    (f, _), (x, y) = mlp(0), rows_of(0)
    plain, relabeled = (
        float(mixup_loss.mixup_loss(f, *arrays(x, y), alpha, beta, relabeled=how)) for how in (False, True)
    )
    assert plain == pytest.approx(relabeled, abs=1e-14)
    nodes, weights = mixup_loss.beta_quadrature(alpha, beta)
    z = jax.vmap(lambda lam: jax.vmap(lambda a: jax.vmap(lambda b: f(lam * a + (1 - lam) * b))(x))(x))(*arrays(nodes))
    of_first = weights @ (softplus(z) - y[None, :, None] * z).mean(axis=(1, 2))
    assert abs(float(of_first) - plain) > 1e-3, "D̃ is another distribution than Beta(α, β)"


def test_the_mixup_loss_is_the_mean_over_all_pairs_and_draws():
    (f, by_hand), (x, y) = mlp(1), rows_of(1, n=4)
    total = 0.0
    for i, j in itertools.product(range(4), repeat=2):

        def value(lam, i=i, j=j):
            z = by_hand(lam * x[i] + (1 - lam) * x[j])[0][0]
            return (softplus(z) - (lam * y[i] + (1 - lam) * y[j]) * z) * stats.beta.pdf(lam, 2, 5)

        total += integrate.quad(value, 0, 1)[0] / 16
    assert float(mixup_loss.mixup_loss(f, *arrays(x, y), 2.0, 5.0)) == pytest.approx(total, rel=1e-9)


@given(st.floats(0.05, 30), st.floats(0.05, 30))
def test_moments_are_those_of_the_relabeled_distribution(alpha, beta):
    first, second = mixup_loss.moments(alpha, beta)
    nodes, weights = mixup_loss.relabeled_quadrature(alpha, beta, 8)
    assert first == pytest.approx(weights @ (1 - nodes), rel=1e-12)
    assert second == pytest.approx(weights @ (1 - nodes) ** 2, rel=1e-12)
    assert weights @ (1 - nodes) ** 3 >= 0.5 * second * (1 - 1e-9), "no α makes the remainder negligible"


def test_what_is_no_beta_distribution_is_refused():
    with pytest.raises(ValueError, match="expected both positive"):
        mixup_loss.moments(0.0)


# --- the decomposition


@pytest.mark.parametrize("k", [None, 3], ids=["one logit", "three classes"])
def test_the_three_terms_are_what_their_formulas_say_with_a_full_hessian(k):
    (f, by_hand), (x, y) = mlp(2, k=k), rows_of(2, k=k)
    found = mixup_loss.decomposition(f, *arrays(x, y), 2.0, 5.0)
    m1 = 2 * 2 * 5 / (7 * 8)
    first = second = third = 0.0
    for i in range(12):
        z, jacobian, hessian = by_hand(x[i])
        if k is None:
            s = sigmoid(z)
            error, bend = s - y[i], np.diag(s * (1 - s))
        else:
            s = np.exp(z) / np.exp(z).sum()
            error, bend = s - y[i], np.diag(s) - np.outer(s, s)
        first += m1 * error @ jacobian @ (x.mean(0) - x[i]) / 12
        for j in range(12):
            d = x[j] - x[i]
            second += m1 / 4 * (jacobian @ d) @ bend @ (jacobian @ d) / 144
            third += m1 / 4 * error @ np.array([d @ h @ d for h in hessian]) / 144
    np.testing.assert_allclose([found.first, found.second, found.third], [first, second, third], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("k", "alpha", "beta"), [(None, 1.0, 1.0), (3, 2.0, 5.0)])
def test_the_remainder_is_of_third_order_in_the_size_of_the_data(k, alpha, beta):
    """Medians over networks, since that of one may pass through zero; without R₂ and R₃ the order is two."""
    scales = 2.0 ** -np.arange(7, 11)

    @jax.jit
    def remainders(x, y, v, c, w):
        def at(scale):
            found = mixup_loss.decomposition(
                lambda row: w @ jnp.tanh(v @ row + c),
                x.mean(0)[None] + scale * (x - x.mean(0)[None]),
                y,
                alpha,
                beta,
                k=8,
            )
            return jnp.stack([found.remainder, found.remainder + found.second + found.third])

        return jax.lax.map(at, jnp.asarray(scales))

    found = []
    for seed in range(20):
        draw, (x, y) = np.random.default_rng(seed), rows_of(seed, k=k)
        w = draw.normal(size=(7,) if k is None else (k, 7))
        found.append(np.abs(remainders(*arrays(x, y, draw.normal(size=(7, 5)) / 2, draw.normal(size=7), w))))
    order = np.diff(np.log2(np.median(found, axis=0)), axis=0)
    np.testing.assert_allclose(-order[:, 0], 3, atol=0.15)
    np.testing.assert_allclose(-order[:, 1], 2, atol=0.15)


def test_what_is_along_a_direction_is_that_of_finite_differences():
    (f, _), (x, _) = mlp(3, k=3), rows_of(3)
    found = mixup_loss.along(f, jnp.asarray(x[0]), jnp.asarray(x[1]))
    at = lambda t: np.asarray(f(jnp.asarray(x[0] + t * x[1])))
    np.testing.assert_allclose(found.first, (at(1e-5) - at(-1e-5)) / 2e-5, rtol=1e-7)
    np.testing.assert_allclose(found.second, (at(1e-4) - 2 * at(0) + at(-1e-4)) / 1e-8, rtol=1e-5, atol=1e-6)


# --- the lemma on generalised linear models


@pytest.mark.parametrize(("alpha", "beta"), [(6.0, 6.0), (20.0, 20.0), (4.0, 9.0)])
def test_the_coefficient_is_the_moment(alpha, beta):
    nodes, weights = mixup_loss.relabeled_quadrature(alpha, beta, 200)
    assert glm.coefficient(alpha, beta) == pytest.approx(weights @ ((1 - nodes) / nodes) ** 2, rel=1e-3)
    assert glm.coefficient(6.0) == pytest.approx(7 / 5)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 3.0), (3.0, 0.5)])
def test_the_coefficient_is_infinite_where_the_moment_is(alpha, beta):
    found = [
        w @ ((1 - x) / x) ** 2 for x, w in (mixup_loss.relabeled_quadrature(alpha, beta, k) for k in (16, 64, 256))
    ]
    assert found[0] < found[1] < found[2], "quadrature does not converge"
    assert found[2] - found[1] > 0.2 * (found[1] - found[0])
    assert glm.coefficient(alpha, beta) == math.inf
    with pytest.raises(ValueError, match="expected both above 1"):
        glm.rescaled_loss(jnp.ones(5), jnp.ones((3, 5)), jnp.ones(3), alpha, beta)


def centred():
    x, y = rows_of(4, n=30)
    return x - x.mean(0), y


def test_the_rescaled_loss_exceeds_the_standard_one_by_the_regulariser_to_fourth_order():
    (x, y), [theta] = arrays(*centred()), arrays(np.random.default_rng(0).normal(size=5))
    rest = []
    for scale in 2.0 ** -np.arange(1, 6):
        exact = glm.rescaled_loss(scale * theta, x, y, 6.0) - glm.glm_loss(scale * theta, x, y)
        rest.append(float(exact - glm.regulariser(scale * theta, x, 6.0)))
    order = -np.diff(np.log2(np.abs(rest)))
    assert order[-1] == pytest.approx(4, abs=0.35)
    assert (np.diff(order) > 0).all()


def test_the_first_term_of_a_glm_vanishes_at_its_optimum_and_not_elsewhere():
    x, y = centred()

    def first(theta):
        return float(mixup_loss.decomposition(lambda row: jnp.asarray(theta) @ row, *arrays(x, y), 1.0, k=2).first)

    fitted = optimize.minimize(
        lambda theta: float(glm.glm_loss(*arrays(theta, x, y))),
        np.zeros(5),
        jac=lambda theta: x.T @ (sigmoid(x @ theta) - y) / 30,
        tol=1e-14,
    ).x
    assert abs(first(fitted)) < 1e-11
    assert abs(first(fitted + 0.5)) > 1e-3


# --- MixupE


@pytest.mark.parametrize("k", [None, pytest.param(3, marks=pytest.mark.slow)], ids=["one logit", "three classes"])
def test_q_is_the_sum_of_its_coefficients_and_the_first_term(k):
    (f, by_hand), (x, y) = mlp(5, k=k), rows_of(5, k=k)
    q, parts = mixupe.toward_mean(f, *arrays(x, y)), mixupe.parts(f, *arrays(x, y), at_once=5)
    np.testing.assert_allclose((parts.alpha * parts.slope).sum(axis=1) * parts.distance, q, rtol=1e-10, atol=1e-13)
    assert float(mixup_loss.moments(2.0)[0] * q.mean()) == pytest.approx(
        float(mixup_loss.decomposition(f, *arrays(x, y), 2.0, k=2).first)
    )
    for i in range(len(x)):
        z, jacobian, _ = by_hand(x[i])
        s = sigmoid(z) if k is None else np.exp(z) / np.exp(z).sum()
        way = x.mean(0) - x[i]
        cosine = jacobian @ way / np.linalg.norm(jacobian, axis=1) / np.linalg.norm(way)
        np.testing.assert_allclose(parts.alpha[i], (s - y[i]) * cosine, rtol=1e-9)
        assert (np.abs(parts.alpha[i]) <= np.abs(s - y[i])).all()


def test_q_moves_with_the_data_and_is_nothing_where_all_rows_are_equal():
    (f, _), (x, y) = mlp(6), rows_of(6)
    shift = jnp.arange(5.0)
    moved = mixupe.toward_mean(lambda row: f(row - shift), *arrays(x + np.arange(5.0), y))
    np.testing.assert_allclose(moved, mixupe.toward_mean(f, *arrays(x, y)), rtol=1e-9)
    same, found = arrays(np.repeat(x[:1], 4, axis=0), y[:4]), None
    found = mixupe.parts(f, *same)
    assert not np.any(found.alpha)
    assert np.isfinite(found.slope).all()


def test_the_penalty_is_the_mean_size_of_q_and_holds_the_residual_constant():
    (f, _), (x, y) = mlp(7, k=3), rows_of(7, k=3)
    x, y = arrays(x, y)

    def value(scale, of=lambda z: z):
        z, moved = jax.jvp(jax.vmap(lambda row: scale * f(row)), (x,), (x.mean(0)[None] - x,))
        return mixupe.penalty((jax.nn.softmax(of(z)) - y) / len(x), moved)

    q = mixupe.toward_mean(f, x, y)
    assert float(value(1.0)) == pytest.approx(float(jnp.abs(q).mean()))
    held = float(jax.grad(value)(1.0))
    assert held == pytest.approx(float(jnp.abs(q).mean())), "linear in the Jacobian, residual held"


# --- Rademacher complexity


@pytest.mark.parametrize("sd", [0.0, 1e-3, 0.4, 3.0, 200.0])
def test_the_mean_curvature_is_the_integral(sd):
    bend = lambda z: sigmoid(z) * sigmoid(-z)
    if sd > 10:
        expected = integrate.quad(lambda z: bend(z) * stats.norm.pdf(z, 0, sd), -60, 60, points=[0], limit=400)[0]
    else:
        expected = integrate.quad(lambda z: bend(sd * z) * stats.norm.pdf(z), -12, 12, limit=400)[0]
    assert float(rademacher.mean_curvature(sd)) == pytest.approx(expected, rel=1e-7)


def test_the_supremum_over_the_ellipsoid_is_what_an_optimiser_finds():
    """And a population that is not Gaussian has another; that of the n rows themselves is refused."""
    draw = np.random.default_rng(0)
    x, population = draw.normal(size=(50, 3)), draw.normal(size=(20_000, 3))
    found = rademacher.population_complexity(x, 0.3, population, draws=12)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (12, 50))
    exact = float(rademacher.radius(0.3)) * np.linalg.norm(signs @ x / 50, axis=1).mean()
    assert float(found.mean) == pytest.approx(exact, rel=0.02)
    with pytest.raises(ValueError, match="is not bounded"):
        rademacher.population_complexity(x, 0.3, x)


def test_both_classes_on_rows_of_low_rank_are_below_their_bounds():
    """n = 200 rows of rank 20 in 100 dimensions, γ = 0.05; the bound in print for the ball's class is far above."""
    n, p, k, gamma = 200, 100, 20, 0.05
    root = np.linalg.qr(np.random.default_rng(0).normal(size=(p, p)))[0][:, :k]
    [x, covariance] = arrays(np.random.default_rng(1).normal(size=(n, k)) @ root.T, root @ root.T)
    mixed = rademacher.mixup_complexity(jax.random.key(0), x, gamma, covariance)
    sharp = rademacher.mixup_bound(gamma, k, n)
    rho = rademacher.retention(rademacher.radius(gamma))
    with_square, printed = (rademacher.retentive_bound(gamma, rho, k, n, squared=how) for how in (True, False))
    assert mixed.mean == pytest.approx(0.1438, abs=2e-3)
    assert mixed.mean + 2 * mixed.error < sharp < printed
    np.testing.assert_allclose([sharp, with_square, printed], [0.1449, 0.1449, 0.2075], rtol=5e-3)
    ball = rademacher.ball_complexity(jax.random.key(0), x, gamma)
    assert ball.mean + 2 * ball.error < rademacher.ball_bound(x, gamma)
    assert ball.mean == pytest.approx(0.0702, abs=3e-3)


def test_the_class_of_few_rows_is_not_bounded():
    """φ over the n rows themselves vanishes far out."""
    (x, _), theta = rows_of(8, n=50), np.ones(5)
    covariance = x.T @ x / 50
    phi = [
        special.expit(x @ (s * theta) * [[1], [-1]]).prod(axis=0).mean() * s**2 * theta @ covariance @ theta
        for s in (30, 1e4)
    ]
    assert phi[1] < 1e-6 < 1 < phi[0]


# --- gradient norm and noise


@pytest.mark.slow
def test_norm_and_noise_are_those_of_the_gradients_of_all_examples():
    draw = np.random.default_rng(0)
    x, y, w = draw.normal(size=(40, 3)), draw.normal(size=40), draw.normal(size=3)
    loss = lambda params, row: 0.5 * (params["w"] @ row[0] - row[1]) ** 2
    each = (x @ w - y)[:, None] * x
    found = gradient_noise.gradients(loss, {"w": jnp.asarray(w)}, arrays(x, y), at_once=16)
    noise = np.sqrt(((each - each.mean(0)) ** 2).sum(axis=1).mean())
    np.testing.assert_allclose(found[:2], [np.linalg.norm(each.mean(0)), noise], rtol=1e-10)
    assert float(found.norm**2 + found.noise**2) == pytest.approx(float(found.mean_square), rel=1e-12)
    whole = jax.grad(lambda w: jax.vmap(lambda *row: loss({"w": w}, row))(*arrays(x, y)).mean())(jnp.asarray(w))
    assert float(found.norm) == pytest.approx(float(jnp.linalg.norm(whole)), rel=1e-10)
    padded = arrays(np.vstack([x, 9 + x[:7]]), np.append(y, y[:7]))
    counted = gradient_noise.gradients(loss, {"w": jnp.asarray(w)}, padded, counts=(jnp.arange(47) < 40) * 1.0)
    np.testing.assert_allclose(counted, found, rtol=1e-10)
    same = gradient_noise.gradients(loss, {"w": jnp.asarray(w)}, arrays(np.repeat(x[:1], 5, 0), np.repeat(y[:1], 5)))
    assert float(same.noise) < 1e-12 < float(same.norm)


def test_the_product_of_two_halves_has_no_bias_where_one_draw_has():
    draw = np.random.default_rng(1)
    truth, one, two = np.full(50, 0.1), *(0.1 + draw.normal(size=(2, 400, 50)))
    halves = [float(gradient_noise.without_bias(*arrays(a, b))) for a, b in zip(one, two, strict=True)]
    squares = np.sign(halves) * np.square(halves)
    assert squares.mean() == pytest.approx(truth @ truth, abs=3 * squares.std() / 20)
    assert (one**2).sum(axis=1).mean() > 20 * truth @ truth


# --- random features


def regression(seed, n=20, m=150, d=40, width=10, exact=False):
    """Mixed rows of a tanh teacher, or of one within the features (``exact``): features, labels, their clean part."""
    draw = np.random.default_rng(seed)
    a, b, v = (
        draw.normal(size=(5, width)) / np.sqrt(width),
        draw.normal(size=5),
        draw.normal(size=(d, width)) / np.sqrt(width),
    )
    phi = lambda x: np.tanh(x @ v.T) / np.sqrt(d)
    theta = 3 * draw.normal(size=d)
    target = (lambda x: phi(x) @ theta) if exact else (lambda x: np.tanh(2 * x @ a.T) @ b)
    x = draw.normal(size=(n, width))
    mixed = random_features.mixed_pairs(jax.random.key(seed), *arrays(x, target(x)), m, 1.0)
    test = draw.normal(size=(1000, width))
    clean = target(np.asarray(mixed.x))
    return arrays(phi(np.asarray(mixed.x)), np.asarray(mixed.y), clean, phi(test), target(test), phi(x), target(x))


def test_mixed_pairs_are_on_the_line_between_two_rows():
    x = np.random.default_rng(0).normal(size=(6, 2))
    found = random_features.mixed_pairs(jax.random.key(0), *arrays(x, np.arange(6.0)), 40, 1.0)
    for row, label in zip(np.asarray(found.x), np.asarray(found.y), strict=True):
        near = min(
            np.linalg.norm(row - (lam * x[i] + (1 - lam) * x[j]))
            for i, j in itertools.product(range(6), repeat=2)
            for lam in ([(label - j) / (i - j)] if i != j else [1.0])
        )
        assert near < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("m", [150, 25], ids=["full rank", "fewer rows than features"])
def test_flow_lemma_and_simulation_agree_and_the_copied_lemma_does_not(m):
    features, mixed, clean, *_ = regression(0, m=m)
    start, time = jnp.asarray(np.random.default_rng(3).normal(size=40)), 300.0
    simulated = random_features.simulate(features, mixed, start, step=0.25, steps=1200)
    of_flow = theory.flow_at(random_features.flow(features, mixed), start, jnp.array([0.0, time]))
    lemma = random_features.lemma(features, clean, mixed - clean, start, jnp.array([0.0, time]))
    np.testing.assert_allclose(of_flow[0], start, atol=1e-12)
    np.testing.assert_allclose(of_flow[1], simulated, atol=1e-10)
    np.testing.assert_allclose(lemma[1], simulated, atol=1e-10)
    copied = random_features.lemma(features, mixed, mixed - clean, start, jnp.array([time]))[0]
    assert np.linalg.norm(copied - simulated) > 0.1 * np.linalg.norm(simulated - start)


@pytest.mark.slow
def test_the_flow_ends_at_the_limit_which_keeps_what_no_feature_sees():
    features, mixed, clean, *_ = regression(1, m=25)
    start = jnp.asarray(np.random.default_rng(3).normal(size=40))
    end = theory.flow_at(random_features.flow(features, mixed), start, jnp.array([1e12]))[0]
    np.testing.assert_allclose(features @ end, mixed, atol=1e-6)
    np.testing.assert_allclose(end, random_features.limit(features, mixed, start), rtol=1e-4, atol=1e-4)
    seen = random_features.limit(features, clean) + random_features.limit(features, mixed - clean)
    assert np.linalg.norm(end - seen) > 0.5, "θ* + θ_noise alone is not the limit"


def test_a_linear_target_has_no_noise_and_no_bias():
    draw = np.random.default_rng(2)
    x, theta = draw.normal(size=(12, 6)), draw.normal(size=6)
    mixed = random_features.mixed_pairs(jax.random.key(0), *arrays(x, x @ theta), 60, 1.0)
    assert random_features.noise_share(mixed.y - mixed.x @ theta, mixed.y) < 1e-12
    np.testing.assert_allclose(random_features.limit(mixed.x, mixed.y), theta, atol=1e-9)


@pytest.mark.slow
def test_mixed_labels_bend_the_error_upwards_and_clean_ones_of_the_same_rows_do_not():
    """A target within the features, so that nothing but θ_noise can; and a switch at time 0 is plain training."""
    times, ratios = jnp.concatenate([jnp.zeros(1), jnp.geomspace(1.0, 1e9, 60)]), []
    for seed in range(5):
        features, mixed, clean, phi, target, own, y = regression(seed, m=150, d=40, exact=True)
        paths = [theory.flow_at(random_features.flow(features, of), jnp.zeros(40), times) for of in (mixed, clean)]
        errors = [np.asarray(random_features.normalised_error(path @ phi.T, target)) for path in paths]
        ratios.append([error[-1] / error.min() for error in errors])
        assert errors[1][-1] < 1e-8
    assert np.median(ratios, axis=0)[0] > 1.3
    flows = random_features.flow(features, mixed), random_features.flow(own, y)
    at = lambda time: random_features.switched(*flows, jnp.zeros(40), time, 1e4)
    np.testing.assert_allclose(at(0.0), theory.flow_at(flows[1], jnp.zeros(40), jnp.array([1e4]))[0], atol=1e-12)
    np.testing.assert_allclose(at(1e4), theory.flow_at(flows[0], jnp.zeros(40), jnp.array([1e4]))[0], atol=1e-12)


# --- common and rare features


def weights(seed, m=10, d=400, dtype=None):
    return 0.01 * jax.random.normal(jax.random.key(seed), (2, m, d), dtype or jnp.float64)


@pytest.mark.slow
def test_pairs_by_gram_matrices_are_those_of_mixed_patches():
    x, y, _ = rare_features.patches(jax.random.key(0), 6, d=12)
    w, lam = 30 * weights(1, m=3, d=12), 0.6
    x, y = np.asarray(x), np.asarray(y)
    for i, j in itertools.product(range(6), repeat=2):
        row = lam * x[i] + (1 - lam) * x[j]
        z = (np.einsum("pd,kmd->kpm", row, np.asarray(w)) ** 2).sum(axis=(1, 2))
        np.testing.assert_allclose(rare_features.pair_logits(w, *arrays(x), lam)[i, j], z, rtol=1e-9)
        loss = np.log(np.exp(z).sum()) - lam * z[y[i]] - (1 - lam) * z[y[j]]
        assert float(rare_features.pair_losses(w, *arrays(x, y), lam)[i, j]) == pytest.approx(loss, rel=1e-9)
    plain = (
        special.logsumexp(z := rare_features.logits(w, *arrays(x)), axis=1) - np.asarray(z)[np.arange(6), y]
    ).mean()
    assert float(rare_features.filtered_loss(w, *arrays(x, y), 1.0)) == pytest.approx(plain, rel=1e-9)


def test_a_row_has_one_feature_its_clutter_and_noise_that_is_orthogonal_to_both():
    x, y, rare = map(np.asarray, rare_features.patches(jax.random.key(0), 200, d=30, rho=0.1, strength=0.1, sigma=0.15))
    assert rare.sum() == 20
    assert rare[y == 0].sum() == 10
    top = x[:, :, :4].max(axis=1)
    np.testing.assert_allclose(top[np.arange(200), y + 2 * rare], 1)
    clutter = np.isclose(x[:, :, :2], 0.1).any(axis=2)
    assert (clutter.sum(axis=1) == 1).all()
    noise = np.abs(x[:, :, 4:]).max(axis=2) > 0
    assert (noise.sum(axis=1) == 2).all()
    assert not x[noise][:, :4].any()
    assert x[noise][:, 4:].std() == pytest.approx(0.15, rel=0.03)
    assert len({tuple(row) for row in noise.tolist()}) == 6, "patches are shuffled"


@pytest.mark.slow
def test_a_teacher_leaves_the_pairs_that_it_predicts_worse_out():
    x, y, _ = rare_features.patches(jax.random.key(0), 8, d=12)
    w, teacher = 30 * weights(1, m=3, d=12), 40 * weights(2, m=3, d=12)
    mine, theirs = (np.asarray(rare_features.pair_losses(one, x, y, 0.6)) for one in (w, teacher))
    kept = theirs <= mine
    assert 0 < kept.sum() < 64
    assert float(rare_features.filtered_loss(w, x, y, 0.6, teacher)) == pytest.approx(mine[kept].mean(), rel=1e-9)


@pytest.mark.slow
def test_mixup_learns_the_rare_feature_and_stopping_early_keeps_it():
    """The start of the full setting, 1,000 of 6,000 steps: plain training hardly knows the rare feature."""
    key, steps = jax.random.key(0), 1000
    x, y, _ = rare_features.patches(jax.random.fold_in(key, 0), 100)
    test = rare_features.patches(jax.random.fold_in(key, 1), 500, rho=1.0)
    x, test_x, start = (jnp.asarray(part, jnp.float32) for part in (x, test.x, weights(2)))
    ends, paths = {}, {}
    for name in ("plain", "mixup", "early_stop"):
        lams = rare_features.shares(name, steps).astype(jnp.float32)
        ends[name], paths[name] = rare_features.descend(start, x, y, lams, every=100)
    rare = {name: float(path.rare[-1].mean()) for name, path in paths.items()}
    right = {name: float(rare_features.accuracy(end, test_x, test.y)) for name, end in ends.items()}
    assert rare["plain"] < 0.05 < 0.1 < min(rare["mixup"], rare["early_stop"])
    assert min(right["mixup"], right["early_stop"]) > right["plain"] + 0.2
    for mixup_, stopped in zip(paths["mixup"], paths["early_stop"], strict=True):
        np.testing.assert_array_equal(mixup_[:6], stopped[:6])
    np.testing.assert_array_equal(rare_features.known(ends["plain"]).common, paths["plain"].common[-1])
    assert (paths["mixup"].wrong[-1] < 0.2 * paths["mixup"].common[-1]).all()


def test_schedules_of_the_share():
    easy, hard = (np.asarray(rare_features.shares(name, 5)) for name in ("easy", "hard"))
    np.testing.assert_allclose(easy, [0.5, 0.625, 0.75, 0.875, 1.0])
    np.testing.assert_array_equal(easy[::-1], hard)
    with pytest.raises(ValueError, match="expected one of"):
        rare_features.shares("cosine", 5)
