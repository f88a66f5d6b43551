"""MixupE: the first-order term of mixup taken apart, and as a regulariser of its own (Zou et al., UAI 2023).

With s the probabilities of the classes, J the Jacobian of the logits in the row, x̄ the mean row, the first-order term
of the mixup loss is R₁ = m₁ mean_i q_i (:mod:`jaxpu.theory.mixup_loss`),

    q_i = (s(x_i) - y_i)ᵀ J_i (x̄ - x_i) = Σ_k α_ik |∇f_k(x_i)| |x̄ - x_i|,
    α_ik = (s_k - y_ik) cos(∇f_k(x_i), x̄ - x_i),    |α_ik| ≤ |s_k - y_ik| ≤ 1.

Where α_ik < 0 mixup makes |∇f_k(x_i)| larger and not smaller. As a regulariser stands η m₁ mean |q_i|, with the
residual s - y held constant; q is one derivative forward, in the direction x̄ - x_i.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from jaxpu.theory.mixup_loss import Network, row_loss
from jaxpu.types import Scalar

LEAST = 1e-12
"""Norms below this count as 0: a direction of no length has the cosine 0."""


class Parts(NamedTuple):
    """q_i of every row taken apart: q_i = Σ_k alpha_ik slope_ik distance_i.

    Attributes:
        alpha: (n, k), k = 1 for one logit. slope: |∇f_k(x_i)|, (n, k). distance: |x̄ - x_i|, (n,).
    """

    alpha: Float[Array, "n k"]
    slope: Float[Array, "n k"]
    distance: Float[Array, " n"]


def toward_mean(
    f: Network, x: Float[Array, "n ..."], y: Float[Array, "n *k"], centre: Float[Array, "..."] | None = None
) -> Float[Array, " n"]:
    """q_i, the change of a row's loss on the way to the mean row, one derivative forward a row.

    Args:
        f: from a row to its logit or logits. x: rows. y: labels, 0, 1 or a probability, or one-hot. centre: x̄; None =
            the mean of ``x``, to be given where these are a part of the training rows.

    Example:
        >>> x, y = jnp.array([[0.0], [2.0]]), jnp.array([0.0, 1.0])
        >>> q = toward_mean(lambda row: row.sum(), x, y)
        >>> [round(float(one), 4) for one in q]  # (σ(0) - 0)(1 - 0), (σ(2) - 1)(1 - 2)
        [0.5, 0.1192]
    """
    centre = x.mean(axis=0) if centre is None else centre

    def one(row: Array, label: Array) -> Scalar:
        z, moved = jax.jvp(f, (row,), (centre - row,))
        return jnp.vdot(jax.grad(row_loss)(z, label), moved)

    return jax.vmap(one)(x, y)


def parts(
    f: Network,
    x: Float[Array, "n ..."],
    y: Float[Array, "n *k"],
    centre: Float[Array, "..."] | None = None,
    *,
    at_once: int = 64,
) -> Parts:
    """The coefficients α and the norms that make up q, from the Jacobian of every row.

    Args:
        As of :func:`toward_mean`. at_once: rows whose Jacobians are held at a time.

    Example:
        >>> x, y = jnp.array([[0.0], [2.0]]), jnp.array([0.0, 1.0])
        >>> found = parts(lambda row: -3 * row.sum(), x, y)
        >>> [round(float(a), 4) for a in found.alpha[:, 0]], found.slope[:, 0].tolist()
        ([-0.5, -0.9975], [3.0, 3.0])
    """
    centre = x.mean(axis=0) if centre is None else centre

    def one(row: tuple[Array, Array]) -> Parts:
        z, jacobian = f(row[0]), jax.jacrev(f)(row[0])
        error = jnp.atleast_1d(jax.grad(row_loss)(z, row[1]))
        jacobian, way = jacobian.reshape(error.size, -1), (centre - row[0]).ravel()
        slope, distance = jnp.sqrt((jacobian**2).sum(axis=1)), jnp.sqrt(way @ way)
        length = slope * distance
        cosine = jnp.where(length > LEAST, jacobian @ way / jnp.maximum(length, LEAST), 0.0)
        return Parts(error * cosine, slope, distance)

    return lax.map(one, (x, y), batch_size=at_once)


def penalty(error: Float[Array, "n *k"], moved: Float[Array, "n *k"]) -> Scalar:
    """Σ_i |⟨error_i, moved_i⟩|, the regulariser, with ``error`` held constant.

    Args:
        error: derivative of the risk in the logits, (n,) or (n, k); of a mean over n rows it is (s - y)/n, and the sum
            the mean of |q_i|. moved: J_i (x̄ - x_i), of the same shape.

    Example:
        >>> float(penalty(jnp.array([0.5, -0.25]), jnp.array([1.0, 1.0])))
        0.75
    """
    products = lax.stop_gradient(error) * moved
    return jnp.abs(products.reshape(len(products), -1).sum(axis=1)).sum()
