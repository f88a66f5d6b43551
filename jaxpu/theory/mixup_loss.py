"""The mixup loss as the standard loss and three regularisers, for any network that can be differentiated twice.

A row has the loss ℓ(z, y) = h(z) - ⟨y, z⟩ of its logits z = f(x): h is softplus for one logit a row and y ∈ [0, 1], or
log-sum-exp for k logits and y one-hot. All that is used of it is that ℓ is affine in y. Pairs (i, j) are uniform over
all n², i = j among them, which a random permutation of a batch is on average, and λ ~ Beta(α, β):

    L_mix = E_λ (1/n²) Σ_ij ℓ(f(λ x_i + (1 - λ) x_j), λ y_i + (1 - λ) y_j)
          = E_D̃ (1/n²) Σ_ij ℓ(f(λ x_i + (1 - λ) x_j), y_i),
      D̃   = α/(α+β) Beta(α+1, β) + β/(α+β) Beta(β+1, α),

exactly, since i and j can be exchanged. Then a Taylor series in 1 - λ along d_ij = x_j - x_i gives, with
m₁ = E_D̃[1 - λ] = 2αβ/((α+β)(α+β+1)), m₂ = E_D̃[(1 - λ)²] = m₁/2, e_i = h'(z_i) - y_i, J the Jacobian of f and x̄ the
mean row,

    R₁ = m₁ mean_i e_iᵀ J_i (x̄ - x_i)
    R₂ = m₂/2 mean_ij (J_i d_ij)ᵀ h''(z_i) (J_i d_ij)
    R₃ = m₂/2 mean_ij e_iᵀ (d_ijᵀ ∇²f(x_i) d_ij)

and L_mix = L + R₁ + R₂ + R₃ + a remainder of the third order in the size of the data (Zhang et al., ICLR 2021, Lemma
3.1). No α makes the remainder small beside R₂: m₃/m₂ ≥ ½ for every Beta distribution, so that as α → 0 both vanish
together.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from jaxpu.types import Scalar

Network = Callable[[Array], Array]
"""From one row to its logit, a scalar, or to its k logits."""


class Decomposition(NamedTuple):
    """The mixup loss and what it is made of.

    Attributes:
        mixup: L_mix. standard: L. first, second, third: R₁, R₂, R₃.
    """

    mixup: Scalar
    standard: Scalar
    first: Scalar
    second: Scalar
    third: Scalar

    @property
    def remainder(self) -> Float[Array, "..."]:
        """What the expansion leaves over, L_mix - L - R₁ - R₂ - R₃."""
        return self.mixup - self.standard - self.first - self.second - self.third


class Along(NamedTuple):
    """A function at a point, and its first and second derivative along a direction."""

    value: Array
    first: Array
    second: Array


def along(f: Callable[[Array], Array], x: Float[Array, "..."], direction: Float[Array, "..."]) -> Along:
    """f(x), J d and dᵀ∇²f d by a derivative forward of a derivative forward: no Jacobian and no Hessian is made.

    Args:
        f: from an array to an array. x, direction: of one shape.

    Example:
        >>> found = along(lambda x: jnp.array([x[0] * x[1], x[0] ** 2]), jnp.array([2.0, 3.0]), jnp.array([1.0, 1.0]))
        >>> found.first.tolist(), found.second.tolist()
        ([5.0, 4.0], [2.0, 2.0])
    """

    def moved(t: Array) -> Array:
        return f(x + t * direction)

    def slope(t: Array) -> tuple[Array, Array]:
        return jax.jvp(moved, (t,), (jnp.ones_like(t),))

    zero = jnp.zeros((), x.dtype)
    (value, first), (_, second) = jax.jvp(slope, (zero,), (jnp.ones_like(zero),))
    return Along(value, first, second)


def log_partition(z: Float[Array, "*k"]) -> Scalar:
    """h(z): softplus of one logit, log-sum-exp of k.

    Example:
        >>> round(float(log_partition(jnp.array(1.0))), 4), round(float(log_partition(jnp.array([1.0, 0.0]))), 4)
        (1.3133, 1.3133)
    """
    return jax.nn.softplus(z) if z.ndim == 0 else jax.nn.logsumexp(z)


def row_loss(z: Float[Array, "*k"], y: Float[Array, "*k"]) -> Scalar:
    """ℓ(z, y) = h(z) - ⟨y, z⟩ of one row: the cross-entropy.

    Example:
        >>> round(float(row_loss(jnp.array([2.0, 0.0]), jnp.array([1.0, 0.0]))), 4)
        0.1269
    """
    return log_partition(z) - jnp.vdot(y, z)


def moments(alpha: float, beta: float | None = None) -> tuple[float, float]:
    """m₁ = E[1 - λ] and m₂ = E[(1 - λ)²] = m₁/2 under D̃; without β it is α.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> moments(1.0)
        (0.3333333333333333, 0.16666666666666666)
    """
    alpha, beta = beta_pair(alpha, beta)
    first = 2 * alpha * beta / ((alpha + beta) * (alpha + beta + 1))
    return first, first / 2


def beta_quadrature(alpha: float, beta: float | None = None, k: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Nodes λ and weights of a Gauss-Jacobi rule for Beta(α, β): exact for polynomials of degree below 2 k.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> nodes, weights = beta_quadrature(2.0, 5.0, k=4)
        >>> round(float(weights @ nodes), 6), round(float(weights @ nodes**2), 6)  # 2/7 and 2·3/(7·8)
        (0.285714, 0.107143)
    """
    alpha, beta = beta_pair(alpha, beta)
    from scipy import special  # a tenth of a second, and training imports this package for its penalties

    nodes, weights = special.roots_jacobi(k, beta - 1, alpha - 1)
    return (1 + nodes) / 2, weights / weights.sum()


def relabeled_quadrature(alpha: float, beta: float | None = None, k: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Nodes λ and weights of a rule for D̃, the mixture with weights α/(α+β) and β/(α+β): the longer share.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> nodes, weights = relabeled_quadrature(0.3, 2.0)
        >>> abs(float(weights @ (1 - nodes)) - moments(0.3, 2.0)[0]) < 1e-12
        True
    """
    alpha, beta = beta_pair(alpha, beta)
    rules = [beta_quadrature(alpha + 1, beta, k), beta_quadrature(beta + 1, alpha, k)]
    shares = [alpha / (alpha + beta), beta / (alpha + beta)]
    weights = [share * weights for share, (_, weights) in zip(shares, rules, strict=True)]
    return np.concatenate([nodes for nodes, _ in rules]), np.concatenate(weights)


def mixup_loss(
    f: Network,
    x: Float[Array, "n ..."],
    y: Float[Array, "n *k"],
    alpha: float,
    beta: float | None = None,
    *,
    k: int = 32,
    relabeled: bool = False,
) -> Scalar:
    """L_mix over all n² pairs, λ by quadrature and not by draws; a cost of k n² rows.

    Args:
        f: the network. x: rows. y: their labels, 0, 1 or a probability, or one-hot. alpha, beta: of λ ~ Beta(α, β),
            β = α if it is left out. k: nodes. relabeled: by D̃ with the labels of the first of each pair, which is the
            same number.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> x, y = jnp.array([[0.0], [2.0]]), jnp.array([0.0, 1.0])
        >>> both = [mixup_loss(lambda row: row.sum(), x, y, 0.5, relabeled=how) for how in (False, True)]
        >>> round(float(both[0]), 4), bool(abs(both[0] - both[1]) < 1e-6)
        (0.5109, True)
    """
    rule = relabeled_quadrature if relabeled else beta_quadrature
    nodes, weights = (jnp.asarray(part, x.dtype) for part in rule(alpha, beta, k))

    def pair(first: tuple[Array, Array], second: tuple[Array, Array], lam: Array) -> Scalar:
        label = first[1] if relabeled else lam * first[1] + (1 - lam) * second[1]
        return row_loss(f(lam * first[0] + (1 - lam) * second[0]), label)

    def node(lam: Array) -> Scalar:
        return jax.vmap(lambda one: jax.vmap(lambda other: pair(one, other, lam))((x, y)))((x, y)).mean()

    return weights @ lax.map(node, nodes)


def decomposition(
    f: Network,
    x: Float[Array, "n ..."],
    y: Float[Array, "n *k"],
    alpha: float,
    beta: float | None = None,
    *,
    k: int = 32,
) -> Decomposition:
    """L_mix, L, R₁, R₂ and R₃ of a network; see the head of this module.

    Args:
        As of :func:`mixup_loss`.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> x, y = jnp.array([[0.0], [0.02]]), jnp.array([0.0, 1.0])
        >>> found = decomposition(lambda row: jnp.tanh(row).sum(), x, y, 1.0)
        >>> bool(abs(found.remainder) < 1e-6), [round(float(part), 6) for part in found[2:4]]
        (True, [0.001658, 4e-06])
    """
    first, second = moments(alpha, beta)

    def one(row: tuple[Array, Array]) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        found = jax.vmap(lambda other: along(f, row[0], other - row[0]))(x)
        z = found.value[0]
        error = jax.grad(row_loss)(z, row[1])
        curvature = jax.vmap(lambda slope: along(log_partition, z, slope).second)(found.first)
        bent = jax.vmap(lambda second: jnp.vdot(error, second))(found.second)
        return row_loss(z, row[1]), jnp.vdot(error, found.first.mean(axis=0)), curvature.mean(), bent.mean()

    standard, r1, r2, r3 = (part.mean() for part in lax.map(one, (x, y)))
    mixed = mixup_loss(f, x, y, alpha, beta, k=k)
    return Decomposition(mixed, standard, first * r1, second / 2 * r2, second / 2 * r3)


def beta_pair(alpha: float, beta: float | None = None) -> tuple[float, float]:
    """α and β, which is α where it is left out.

    Raises:
        ValueError: one that is not positive.

    Example:
        >>> beta_pair(2.0), beta_pair(2.0, 5.0)
        ((2.0, 2.0), (2.0, 5.0))
    """
    beta = alpha if beta is None else beta
    if not (alpha > 0 and beta > 0):
        raise ValueError(f"alpha is {alpha} and beta {beta}, expected both positive: without mixup there is no λ")
    return float(alpha), float(beta)
