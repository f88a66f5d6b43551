"""Regression on random features under mixup: gradient flow in closed form, with the noise that mixed labels are.

θ is learned for fixed features φ. With a column φ(x̃_i) of Φ (d, m) for each of m mixed rows, mixed labels Ỹ, the labels
Ỹ* = f(x̃) that the target gives the mixed rows, Z = Ỹ - Ỹ*, and Φ† = pinv(Φᵀ),

    R(θ) = |Φᵀθ - Ỹ|²/(2m),    dθ/dt = -η ∇R = -(η/m) (Φ Φᵀ θ - Φ Ỹ)

(a flow, and no stochastic descent). With E_t = exp(-η Φ Φᵀ t/m), θ* = Φ† Ỹ* of the *clean* labels, θ_noise = Φ† Z,

    θ_t = θ* + E_t (θ_0 - θ*) + (I - E_t) θ_noise,    θ_∞ = θ* + θ_noise + (I - P) θ_0,

P the projector on the range of Φ (Liu et al., ICLR 2023, Lemma 5.1; with θ* = Φ† Ỹ, as it has been copied, noise would
count twice, and without the last term θ_0 is forgotten where it is not seen). Everything here wants float64: the times
that matter reach 1e9, and the least eigenvalues 1e-12.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Key

from jaxpu import mixup
from jaxpu.theory.aggregator import LinearFlow, flow_at
from jaxpu.types import Scalar, ScalarLike

RCOND = 1e-10


class Mixed(NamedTuple):
    """Mixed rows, (m, ...), and what mixing makes of their labels, (m,)."""

    x: Float[Array, "m ..."]
    y: Float[Array, " m"]


def mixed_pairs(
    key: Key[Array, ""], x: Float[Array, "n ..."], y: Float[Array, " n"], m: int, alpha: ScalarLike
) -> Mixed:
    """Draw m mixtures of random pairs of rows, each with its own λ ~ Beta(α, α).

    Example:
        >>> found = mixed_pairs(jax.random.key(0), jnp.arange(4.0)[:, None], 2 * jnp.arange(4.0), 3, 1.0)
        >>> bool(jnp.allclose(found.y, 2 * found.x[:, 0]))
        True
    """
    rows, shares = jax.random.split(key)
    first, second = jax.random.randint(rows, (2, m), 0, len(x))
    lam = mixup.sample(shares, alpha, (m,)).astype(x.dtype)

    def between(part: Array) -> Array:
        share = lam.reshape((m,) + (1,) * (part.ndim - 1))
        return share * part[first] + (1 - share) * part[second]

    return Mixed(between(x), between(y))


def flow(features: Float[Array, "m d"], targets: Float[Array, " m"]) -> LinearFlow:
    """The gradient flow of R in the eigenvectors of Φ Φᵀ/m; its learning rate is a factor of the times.

    Args:
        features: Φᵀ, a row a training row. targets: their labels.

    Example:
        >>> f = flow(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))
        >>> flow_at(f, jnp.zeros(1), jnp.array([0.0, 50.0])).round(3).tolist()
        [[0.0], [2.0]]
    """
    m = len(features)
    rates, modes = jnp.linalg.eigh(features.T @ features / m)
    forcing = modes.T @ (features.T @ targets) / m
    # what is zero up to rounding stays where it is
    return LinearFlow(jnp.where(rates > rates.max() * 1e-14, rates, 0.0), modes, forcing, jnp.zeros_like(rates))


def lemma(
    features: Float[Array, "m d"],
    clean: Float[Array, " m"],
    noise: Float[Array, " m"],
    start: Float[Array, " d"],
    times: Float[Array, " t"],
) -> Float[Array, "t d"]:
    """θ_t by the lemma: the way to θ*, and the way to the noise.

    Args:
        features: Φᵀ. clean: Ỹ*. noise: Z. start: θ_0. times: η t.

    Example:
        >>> clean, noise = jnp.array([1.0, 2.0]), jnp.array([0.5, 0.0])
        >>> lemma(jnp.eye(2), clean, noise, jnp.zeros(2), jnp.array([0.0, 100.0])).round(4).tolist()
        [[0.0, 0.0], [1.5, 2.0]]
    """
    best, noisy = limit(features, clean), limit(features, noise)
    rates, modes = jnp.linalg.eigh(features.T @ features / len(features))

    def at(time: Array) -> Array:
        left = (modes * jnp.exp(-time * jnp.maximum(rates, 0))[None, :]) @ modes.T
        return best + left @ (start - best) + noisy - left @ noisy

    return jax.vmap(at)(times)


def limit(
    features: Float[Array, "m d"], targets: Float[Array, " m"], start: Float[Array, " d"] | None = None
) -> Float[Array, " d"]:
    """Where the flow ends: Φ† Y, and of the start what no feature sees, (I - P) θ_0.

    Args:
        features: Φᵀ. targets: Y. start: θ_0; None = 0.

    Example:
        >>> limit(jnp.array([[1.0, 0.0]]), jnp.array([2.0]), jnp.array([5.0, 7.0])).tolist()
        [2.0, 7.0]
    """
    inverse = jnp.linalg.pinv(features, rtol=RCOND)
    end = inverse @ targets
    return end if start is None else end + start - inverse @ (features @ start)


def simulate(
    features: Float[Array, "m d"],
    targets: Float[Array, " m"],
    start: Float[Array, " d"],
    *,
    step: ScalarLike,
    steps: int,
) -> Float[Array, " d"]:
    """θ after ``steps`` Runge-Kutta steps of the fourth order: the flow without its closed form.

    Example:
        >>> round(float(simulate(jnp.ones((1, 1)), jnp.ones(1), jnp.zeros(1), step=0.1, steps=10)[0]), 4)  # 1 - 1/e
        0.6321
    """
    kernel, forcing = features.T @ features / len(features), features.T @ targets / len(features)

    def slope(theta: Array) -> Array:
        return forcing - kernel @ theta

    def one(_: Array, theta: Array) -> Array:
        k1 = slope(theta)
        k2 = slope(theta + step / 2 * k1)
        k3 = slope(theta + step / 2 * k2)
        return theta + step / 6 * (k1 + 2 * k2 + 2 * k3 + slope(theta + step * k3))

    return jax.lax.fori_loop(0, steps, one, start)


def switched(mixed: LinearFlow, plain: LinearFlow, start: Array, at: ScalarLike, until: ScalarLike) -> Array:
    """θ after the mixed flow up to the time ``at`` and the plain one from there to the time ``until``.

    Args:
        mixed, plain: from :func:`flow`. start: θ_0. at, until: η t, ``at`` ≤ ``until``.

    Example:
        >>> one, two = flow(jnp.eye(1), jnp.array([1.0])), flow(jnp.eye(1), jnp.array([-1.0]))
        >>> switched(one, two, jnp.zeros(1), 60.0, 60.0).round(3).tolist()
        [1.0]
    """
    times = jnp.asarray([at, until], start.dtype)
    there = flow_at(mixed, start, times[:1])[0]
    return flow_at(plain, there, times[1:] - times[:1])[0]


def normalised_error(prediction: Float[Array, "*t n"], target: Float[Array, " n"]) -> Float[Array, "*t"]:
    """Mean squared error over the mean square of the target: 1 is the error of predicting 0.

    Example:
        >>> float(normalised_error(jnp.zeros(2), jnp.ones(2)))
        1.0
    """
    apart = prediction - target.reshape((1,) * (prediction.ndim - 1) + target.shape)
    return (apart**2).mean(axis=-1) / (target**2).mean()


def noise_share(noise: Float[Array, " m"], clean: Float[Array, " m"]) -> Scalar:
    """|Z| / |Ỹ*|: how much of the mixed labels the target does not explain.

    Example:
        >>> round(float(noise_share(jnp.array([0.3]), jnp.array([3.0]))), 3)
        0.1
    """
    return jnp.linalg.norm(noise) / jnp.linalg.norm(clean)
