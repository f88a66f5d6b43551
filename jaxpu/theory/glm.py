"""Mixup of a generalised linear model, ℓ = A(θᵀx) - y θᵀx on centred rows: a data-dependent ridge penalty.

The lemma (Zhang et al., ICLR 2021, Lemma 3.3) is about the *rescaled* loss, whose rows are divided by λ,

    L̃(θ) = E_D̃ (1/n²) Σ_ij ℓ(θᵀ(x_i + (1 - λ)/λ x_j), y_i),        D̃ as in :mod:`jaxpu.theory.mixup_loss`,

and says that to second order in θ

    L̃(θ) - L(θ) ≈ ½ [mean_i A''(θᵀx_i)] c(α, β) θᵀ Σ̂ θ,     Σ̂ = XᵀX/n,
    c(α, β) = E_D̃[(1 - λ)²/λ²] = [β(β+1)/(α-1) + α(α+1)/(β-1)] / (α+β).

c is finite only where α > 1 and β > 1. With α = β it is (α+1)/(α-1): infinite at α = 1, the usual choice. The remainder
is O(|θ|⁴). Of L_mix itself the first-order term R₁ vanishes exactly at the optimum of the standard loss, and not in
general elsewhere.
"""

import math

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxpu.theory.mixup_loss import beta_pair, relabeled_quadrature
from jaxpu.types import Scalar, ScalarLike


def coefficient(alpha: float, beta: float | None = None) -> float:
    """c(α, β) = E_D̃[(1 - λ)²/λ²]; infinite where α ≤ 1 or β ≤ 1.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> coefficient(2.0), round(coefficient(6.0), 4), coefficient(1.0)
        (3.0, 1.4, inf)
    """
    alpha, beta = beta_pair(alpha, beta)
    if min(alpha, beta) <= 1:
        return math.inf
    return (beta * (beta + 1) / (alpha - 1) + alpha * (alpha + 1) / (beta - 1)) / (alpha + beta)


def glm_loss(theta: Float[Array, " p"], x: Float[Array, "n p"], y: Float[Array, " n"]) -> Scalar:
    """L(θ), the logistic loss: A is softplus.

    Example:
        >>> round(float(glm_loss(jnp.zeros(1), jnp.ones((2, 1)), jnp.array([0.0, 1.0]))), 4)
        0.6931
    """
    z = x @ theta
    return (jax.nn.softplus(z) - y * z).mean()


def rescaled_loss(
    theta: Float[Array, " p"],
    x: Float[Array, "n p"],
    y: Float[Array, " n"],
    alpha: float,
    beta: float | None = None,
    *,
    k: int = 64,
) -> Scalar:
    """L̃(θ) by quadrature, over all n² pairs.

    Args:
        theta: θ. x: rows, centred for the lemma. y: labels in [0, 1]. alpha, beta: of λ. k: nodes; where α is near 1
            the tail of (1 - λ)/λ is heavy, and the quadrature converges slowly.

    Raises:
        ValueError: α ≤ 1 or β ≤ 1, where the second moment of (1 - λ)/λ is infinite.

    Example:
        >>> x, y = jnp.array([[-1.0], [1.0]]), jnp.array([0.0, 1.0])
        >>> bool(rescaled_loss(jnp.array([0.5]), x, y, 6.0) > glm_loss(jnp.array([0.5]), x, y))
        True
    """
    if math.isinf(coefficient(alpha, beta)):
        raise ValueError(
            f"alpha is {alpha} and beta {beta or alpha}, expected both above 1: E[(1 - λ)²/λ²] is infinite"
        )
    nodes, weights = (jnp.asarray(part, x.dtype) for part in relabeled_quadrature(alpha, beta, k))
    z = x @ theta
    mixed = z[None, :, None] + ((1 - nodes) / nodes)[:, None, None] * z[None, None, :]
    losses = jax.nn.softplus(mixed) - y[None, :, None] * mixed
    return weights @ losses.mean(axis=(1, 2))


def regulariser(theta: Float[Array, " p"], x: Float[Array, "n p"], alpha: float, beta: float | None = None) -> Scalar:
    """½ [mean_i A''(θᵀx_i)] c(α, β) θᵀ Σ̂ θ, infinite where c is (and θᵀ Σ̂ θ is not 0).

    Args:
        theta: θ. x: centred rows. alpha, beta: of λ.

    Example:
        >>> x = jnp.array([[-1.0], [1.0]])
        >>> round(float(regulariser(jnp.array([0.1]), x, 2.0)), 6), float(regulariser(jnp.array([0.1]), x, 1.0))
        (0.003741, inf)
    """
    z = x @ theta
    return coefficient(alpha, beta) * (0.5 * curvature(z).mean() * (z**2).mean())


def curvature(z: Float[Array, "*n"] | ScalarLike) -> Float[Array, "*n"]:
    """A''(z) = σ(z) σ(-z) of the logistic loss.

    Example:
        >>> float(curvature(0.0))
        0.25
    """
    p = jax.nn.sigmoid(jnp.asarray(z, float) if isinstance(z, int | float) else z)
    return p * (1 - p)
