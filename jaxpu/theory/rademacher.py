"""Rademacher complexity of linear functions under mixup's regulariser and under a norm, by Monte Carlo, with bounds.

Rad(W, S) = E_σ sup_{θ ∈ W} (1/n) Σ σ_i θᵀx_i over signs σ. The class of mixup (Zhang et al., ICLR 2021, Theorem 3.4) is

    W_γ = {θ: φ(θ) ≤ γ},   φ(θ) = E_x[A''(θᵀx)] θᵀ Σ θ,   A'' = σ(1 - σ),

with the *population's* distribution of x and Σ = E[x xᵀ]. Over a finite sample φ(θ) → 0 as |θ| → ∞, and the class is
not bounded: never put the n training rows in its place. Where x is Gaussian, φ depends on s = √(θᵀ Σ θ) alone and rises
with it, so that W_γ is the ellipsoid s ≤ s_γ with s_γ² E[A''(s_γ Z)] = γ, Z standard normal. The supremum is then
s_γ |Σ^{+1/2} Xᵀσ| / n, and by Jensen's inequality, in expectation over the sample,

    Rad(W_γ) ≤ s_γ √(rank Σ / n).

x is ρ-*retentive* where (E[A''(vᵀx)])² ≥ ρ min(1, E[(vᵀx)²]). Then s_γ ≤ max{(γ²/ρ)^(1/6), (γ²/ρ)^(1/4)}; the exponents
(γ/ρ)^(1/4), (γ/ρ)^(1/2) in print belong to the condition without the square. No ρ > 0 serves all v, since A'' vanishes
far out: it depends on how large |v| may be. Of the ball {|θ|² ≤ γ} it is √γ E|Xᵀσ|/n ≤ √(γ tr(XᵀX/n)/n), without ρ.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Key

from jaxpu.theory.glm import curvature
from jaxpu.types import Scalar, ScalarLike

STEPS, NODES, WIDEST = 60, 4001, 45.0


class Complexity(NamedTuple):
    """A Monte Carlo mean over draws of the signs, and its standard error."""

    mean: Scalar
    error: Scalar


def mean_curvature(sd: ScalarLike) -> Scalar:
    """E[A''(s Z)], Z standard normal, to rounding: A'' of a logistic model whose predictions have standard deviation s.

    Example:
        >>> round(float(mean_curvature(0.0)), 4), round(float(100 * mean_curvature(100.0)), 4)  # ¼; s → ∞: 1/√(2π)/s
        (0.25, 0.3989)
    """
    sd = jnp.asarray(sd, float)
    # the narrower of the two factors, the normal density or A'', tells how far to look
    widest = jnp.minimum(jnp.maximum(12 * sd, 1e-6), WIDEST)
    u = widest * jnp.linspace(-1, 1, NODES)
    density = jnp.exp(-0.5 * (u / jnp.maximum(sd, 1e-7)) ** 2)
    scale = jnp.maximum(sd, 1e-7) * jnp.sqrt(2 * jnp.pi)
    return jnp.where(sd < 1e-6, 0.25, (curvature(u) * density).sum() * (u[1] - u[0]) / scale)


def radius(gamma: ScalarLike) -> Scalar:
    """s_γ with s² E[A''(s Z)] = γ, by bisection.

    Example:
        >>> s = radius(0.3)
        >>> round(float(s), 4), round(float(s**2 * mean_curvature(s)), 4)
        (1.2531, 0.3)
    """
    gamma = jnp.asarray(gamma, float)

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        below = middle**2 * mean_curvature(middle) < gamma
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    low, high = lax.fori_loop(0, STEPS, halve, (jnp.zeros_like(gamma), 4 * jnp.sqrt(gamma) + 3 * gamma))
    return (low + high) / 2


def mixup_complexity(
    key: Key[Array, ""],
    x: Float[Array, "n p"],
    gamma: ScalarLike,
    covariance: Float[Array, "p p"],
    *,
    draws: int = 4000,
) -> Complexity:
    """Rad(W_γ, S) where x is Gaussian, or else elliptical with the same φ.

    Args:
        key: of the signs. x: the sample. gamma: γ. covariance: Σ of the population, of any rank. draws: of the signs.

    Example:
        >>> x = jax.random.normal(jax.random.key(0), (50, 3))
        >>> found = mixup_complexity(jax.random.key(1), x, 0.3, jnp.eye(3))
        >>> bool(found.mean < radius(0.3) * (3 / 50) ** 0.5 * 1.2)
        True
    """
    values, vectors = jnp.linalg.eigh(covariance)
    known = values > values.max() * 1e-10
    root = vectors * jnp.where(known, 1 / jnp.sqrt(jnp.where(known, values, 1.0)), 0.0)[None, :]
    return _mean_norm(key, x @ root, radius(gamma), draws)


def ball_complexity(key: Key[Array, ""], x: Float[Array, "n p"], gamma: ScalarLike, *, draws: int = 4000) -> Complexity:
    """Rad of the ball {|θ|² ≤ γ} on a sample.

    Example:
        >>> found = ball_complexity(jax.random.key(0), jnp.ones((4, 1)), 1.0)
        >>> bool(abs(found.mean - 3 / 8) < 4 * found.error)  # E|Σ σ|/4
        True
    """
    return _mean_norm(key, x, jnp.sqrt(jnp.asarray(gamma, float)), draws)


def _mean_norm(key: Key[Array, ""], x: Float[Array, "n p"], size: Scalar, draws: int) -> Complexity:
    signs = jax.random.rademacher(key, (draws, len(x)), x.dtype)
    norms = size * jnp.sqrt(((signs @ x) ** 2).sum(axis=1)) / len(x)
    return Complexity(norms.mean(), norms.std() / jnp.sqrt(draws))


def population_complexity(
    x: Float[np.ndarray, "n p"], gamma: float, population: Float[np.ndarray, "m p"], *, draws: int = 60, seed: int = 0
) -> Complexity:
    """Rad(W_γ, S) for any distribution of x, given by a large sample of it, one optimisation (SLSQP) for each draw.

    Args:
        x: the sample S. gamma: γ. population: another, much larger sample, which stands for the distribution.
        draws: of the signs. seed: theirs.

    Raises:
        ValueError: a population no larger than 20 times the sample: φ of few rows vanishes far out, and W_γ is then
            not bounded.
        RuntimeError: an optimisation that did not converge.
    """
    from scipy import optimize  # half a second, and training imports this package for its penalties

    if len(population) < 20 * len(x):
        raise ValueError(
            f"population has {len(population)} rows, expected at least {20 * len(x)}: W_γ of few rows is not bounded"
        )
    covariance = population.T @ population / len(population)

    def level(theta: np.ndarray) -> tuple[float, np.ndarray]:
        p = 1 / (1 + np.exp(-population @ theta))
        bend, size = (p * (1 - p)).mean(), theta @ covariance @ theta
        third = (p * (1 - p) * (1 - 2 * p)) @ population / len(population)
        return bend * size, third * size + bend * 2 * covariance @ theta

    inside = {"type": "ineq", "fun": lambda t: gamma - level(t)[0], "jac": lambda t: -level(t)[1]}
    found = []
    for signs in np.random.default_rng(seed).choice([-1.0, 1.0], (draws, len(x))):
        g = signs @ x / len(x)
        way = np.linalg.pinv(covariance) @ g
        start = way * float(radius(gamma)) / np.sqrt(way @ covariance @ way) / 2
        best = optimize.minimize(
            lambda t, g=g: -g @ t, start, jac=lambda t, g=g: -g, constraints=[inside], method="SLSQP",
            options={"ftol": 1e-10, "maxiter": 200},
        )  # fmt: skip
        if not best.success:
            raise RuntimeError(f"the supremum over W_γ was not found: {best.message}")
        found.append(-best.fun)
    return Complexity(jnp.asarray(np.mean(found)), jnp.asarray(np.std(found) / np.sqrt(draws)))


def retention(largest: ScalarLike) -> Scalar:
    """The ρ of Gaussian x, with all predictions' standard deviations up to s: min (E[A''(s Z)])² / min(1, s²).

    Example:
        >>> [round(float(retention(s)), 4) for s in (1.0, 3.0, 10.0)]
        [0.0427, 0.0132, 0.0015]
    """
    sds = jnp.asarray(largest, float) * jnp.linspace(0.01, 1, 200)
    return (lax.map(mean_curvature, sds) ** 2 / jnp.minimum(1, sds**2)).min()


def mixup_bound(gamma: ScalarLike, rank: ScalarLike, n: int) -> Scalar:
    """s_γ √(rank/n), of Gaussian x in expectation over samples.

    Example:
        >>> round(float(mixup_bound(0.05, 20, 200)), 3)
        0.145
    """
    return radius(gamma) * jnp.sqrt(rank / n)


def retentive_bound(gamma: ScalarLike, rho: ScalarLike, rank: ScalarLike, n: int, *, squared: bool = True) -> Scalar:
    """The bound by ρ: with the condition as it is squared, or with the exponents in print, of that without the square.

    Example:
        >>> rho = retention(radius(0.05))
        >>> [round(float(b), 3) for b in (mixup_bound(0.05, 20, 200), retentive_bound(0.05, rho, 20, 200))]
        [0.145, 0.145]
    """
    ratio = gamma**2 / rho if squared else gamma / rho
    exponents = (1 / 6, 1 / 4) if squared else (1 / 4, 1 / 2)
    return jnp.maximum(*(jnp.asarray(ratio, float) ** power for power in exponents)) * jnp.sqrt(rank / n)


def ball_bound(x: Float[Array, "n p"], gamma: ScalarLike) -> Scalar:
    """√(γ tr(XᵀX/n)/n): it falls with the trace, so that the ball, too, adapts to rows of low rank.

    Example:
        >>> float(ball_bound(jnp.ones((4, 1)), 1.0))
        0.5
    """
    return jnp.sqrt(gamma * (x**2).sum() / len(x) ** 2)
