"""Why an aggregator's ranking is inverted, and when it comes back: its gradient flow, in closed form.

Let τ = η t, learning rate times updates, and Δ the updates' limit for small η: dw/dτ = -E[v (p - y) r̂],
db/dτ = -β E[v (p - y)], with E over the labeled instances and v class weights of mean 1.

**Fast.** Where all ratings are near one level μ, w moves along (1, ..., 1) only. With ω = Σ w that is
dω/dτ = -m μ (p - π), db/dτ = -β (p - π), so ω - ω₀ = (m μ / β) (b - b₀) is conserved, without linearising
anything, until p = π, the share of positives. There

    ω = (logit π - b₀ + β ω₀ / (m μ)) / (μ + β / (m μ)),

which is below 0, an inverted ranking, exactly if logit π < b₀ - β ω₀ / (m μ). From ω₀ = 1, b₀ = 0, β = 1 the
critical rate of positives is σ(-1 / (m μ)). The logit z = μ ω + b obeys dz/dτ = -(m μ² + β) (σ(z) - π), which
integrates to F(σ(z₀)) - F(σ(z)) = (m μ² + β) τ, F(q) = -ln q / π - ln(1 - q) / (1 - π) + ln(q - π) / (π (1 - π)).

**Slow.** Then p stays near π and what separates the classes moves. Linearised at the constant logit z₀, with
p₀ = σ(z₀), κ = p₀ (1 - p₀), φ = (r̂, 1), M = E[v φ φᵀ] and g = E[v φ (y - p₀ + κ z₀)],

    dθ/dτ = g - κ M θ,    θ(τ) = e^{-κ M τ} θ₀ + ∫₀^τ e^{-κ M s} ds g.

The largest eigenvalue of M, about 1 + m μ², is the fast phase; the others are variances of the ratings, hundreds of
times smaller: the second time scale. The fixed point of the flow separates the classes the right way round.
"""

from typing import NamedTuple

import jax
from jax import Array
from jax import numpy as jnp
from jaxtyping import Float

from jaxpu import linalg
from jaxpu.losses import inverse_frequency, row_weights
from jaxpu.types import Labeled, Mask, Scalar, ScalarLike

Ratings = Float[Array, "m n"]
"""A row a classifier, a column an instance."""


class LinearFlow(NamedTuple):
    """dθ/dτ = g - A θ with A symmetric, in the eigenvectors of A; θ = (w, b).

    Attributes:
        rates: eigenvalues of A, ascending (m + 1,). modes: eigenvectors, a column each. forcing: g in these modes.
        direction: mean rating of the positives minus that of the negatives, with a 0 for b; the classes are
            inverted where its product with θ is below 0.
    """

    rates: Float[Array, " k"]
    modes: Float[Array, "k k"]
    forcing: Float[Array, " k"]
    direction: Float[Array, " k"]


class FastEnd(NamedTuple):
    """Where the fast phase ends: Σ w, b, and whether the ranking is inverted there."""

    total: Scalar
    bias: Scalar
    inverted: Array


def critical_rate(m: ScalarLike, level: ScalarLike, *, total: ScalarLike = 1.0, bias_lr: ScalarLike = 1.0) -> Scalar:
    """Share of positives below which the fast phase ends inverted, σ(-β ω₀ / (m μ)), from b₀ = 0.

    Args:
        m: number of classifiers. level: μ, the mean rating. total: ω₀ = Σ w at the start. bias_lr: β.

    Example:
        >>> round(float(critical_rate(10, 0.53)), 3)
        0.453
    """
    return jax.nn.sigmoid(-jnp.asarray(bias_lr * total / (m * level)))


def fast_end(
    m: ScalarLike,
    level: ScalarLike,
    rate: ScalarLike,
    *,
    total: ScalarLike = 1.0,
    bias: ScalarLike = 0.0,
    bias_lr: ScalarLike = 1.0,
) -> FastEnd:
    """Where the fast phase leaves Σ w and b; see the head of this module.

    Args:
        m, level, total, bias_lr: as in :func:`critical_rate`. rate: π, after class weights ½. bias: b₀.

    Example:
        >>> end = fast_end(10, 0.53, 0.1)
        >>> round(float(end.total), 2), round(float(end.bias), 2), bool(end.inverted)
        (-2.79, -0.72, True)
    """
    ratio = bias_lr / (m * level)
    log_odds = jnp.log(rate) - jnp.log1p(-jnp.asarray(rate))
    end = (log_odds - bias + ratio * total) / (level + ratio)
    return FastEnd(end, bias + ratio * (end - total), end < 0)


def flip_time(
    m: ScalarLike,
    level: ScalarLike,
    rate: ScalarLike,
    *,
    total: ScalarLike = 1.0,
    bias: ScalarLike = 0.0,
    bias_lr: ScalarLike = 1.0,
) -> Scalar:
    """τ at which Σ w passes through 0 on its way down; divided by the learning rate, the number of updates.

    Args:
        As in :func:`fast_end`.

    Returns:
        τ; infinite where Σ w stays above 0.

    Example:
        >>> round(float(flip_time(10, 0.53, 0.1)) / 0.01)
        43
    """
    ratio = bias_lr / (m * level)
    begin, flip = jax.nn.sigmoid(level * total + bias), jax.nn.sigmoid(bias - ratio * total)
    reached = fast_end(m, level, rate, total=total, bias=bias, bias_lr=bias_lr).inverted
    safe = jnp.where(reached, flip, begin)  # above π wherever the answer is used

    def primitive(q: Array) -> Array:
        above = jnp.where(reached, q - rate, 1.0)
        return -jnp.log(q) / rate - jnp.log1p(-q) / (1 - rate) + jnp.log(above) / (rate * (1 - rate))

    duration = (primitive(begin) - primitive(safe)) / (m * level**2 + bias_lr)
    return jnp.where(reached, duration, jnp.inf)


@jax.jit
def linear_flow(
    ratings: Ratings, labels: Labeled, labeled: Mask, *, class_weights: ScalarLike = 0.0, at: ScalarLike = 0.0
) -> LinearFlow:
    """Linearise the aggregator's gradient flow at a constant logit.

    Args:
        ratings: reconstructed, (m, n). labels, labeled: (n,). class_weights: strength s of the class weights, as in
            :class:`jaxpu.ensemble.Step`. at: z₀; 0 for the first updates, logit(π) for the slow phase.

    Example:
        >>> import numpy as np
        >>> flow = linear_flow(jnp.array([[0.6, 0.4]]), jnp.array([1, 0]), jnp.ones(2))
        >>> print(np.array(flow.rates).round(4))  # ¼ of the eigenvalues of [[0.26, 0.5], [0.5, 1]]
        [0.002 0.313]
    """
    positive, known = jnp.asarray(labels) > 0, jnp.asarray(labeled) > 0
    v = row_weights(inverse_frequency(positive, 2, mask=known) ** class_weights, positive, mask=known)
    share = v / jnp.maximum(v.sum(), jnp.finfo(v.dtype).tiny)
    positive &= known
    p = jax.nn.sigmoid(jnp.asarray(at, ratings.dtype))
    curvature = p * (1 - p)
    phi = jnp.concatenate([ratings, jnp.ones_like(ratings[:1])])
    rates, modes = linalg.eigh(curvature * (phi * share[None, :]) @ phi.T)
    forcing = phi @ (share * (positive - p + curvature * at))
    ones, zeros = share * positive, share * ~positive
    direction = phi @ ones / ones.sum() - phi @ zeros / zeros.sum()
    return LinearFlow(rates, modes, modes.T @ forcing, direction)


@jax.jit
def flow_at(flow: LinearFlow, start: Float[Array, " k"], times: Float[Array, " t"]) -> Float[Array, "t k"]:
    """θ(τ) from θ(0) = start, exact for the linear flow; times below 0 are not checked.

    Args:
        flow: from :func:`linear_flow`. start: (w, b), shape (m + 1,). times: τ, shape (t,).

    Example:
        >>> flow = linear_flow(jnp.array([[0.6, 0.4]]), jnp.array([1, 0]), jnp.ones(2))
        >>> flow_at(flow, jnp.array([1.0, 0.0]), jnp.array([0.0, 1e6])).round(1).tolist()
        [[1.0, 0.0], [20.0, -10.0]]
    """
    lam = jnp.maximum(flow.rates, 0)[None, :]
    t = times[:, None]
    decay = jnp.exp(-lam * t)
    # ∫₀^τ e^{-λ s} ds = τ where λ τ is 0
    grown = jnp.where(lam * t > 1e-12, -jnp.expm1(-lam * t) / jnp.where(lam > 0, lam, 1), t)
    return (decay * (flow.modes.T @ start)[None, :] + grown * flow.forcing[None, :]) @ flow.modes.T


def time_scales(flow: LinearFlow, *, lr: ScalarLike = 1.0) -> Float[Array, " k"]:
    """1 / (η λ_k) for every mode, in updates, the fastest first.

    Example:
        >>> import numpy as np
        >>> flow = linear_flow(jnp.array([[0.6, 0.4]]), jnp.array([1, 0]), jnp.ones(2))
        >>> print(np.array(time_scales(flow, lr=0.01)).round(-1))
        [  320. 50080.]
    """
    return 1 / (lr * jnp.maximum(flow.rates[::-1], jnp.finfo(flow.rates.dtype).tiny))


@jax.jit
def healing_time(flow: LinearFlow, start: Float[Array, " k"], *, longest: ScalarLike = 1e6) -> Scalar:
    """Last τ at which the classes are inverted (``direction`` · θ < 0) in the linear flow.

    Args:
        flow: linearised where the run is, at logit(π) for the slow phase. start: (w, b), shape (m + 1,).
        longest: τ up to which is looked, on a logarithmic grid that bisection refines.

    Returns:
        τ; 0 if they are never inverted, infinity if they still are at ``longest``.

    Example:
        >>> flow = linear_flow(jnp.array([[0.6, 0.4]]), jnp.array([1, 0]), jnp.ones(2))
        >>> healed = healing_time(flow, jnp.array([-1.0, 0.0]))
        >>> path = flow_at(flow, jnp.array([-1.0, 0.0]), healed * jnp.array([0.99, 1.01]))
        >>> (path[:, 0] > 0).tolist()
        [False, True]
    """
    grid = jnp.concatenate([jnp.zeros(1), jnp.geomspace(1e-3, longest, 300)]).astype(start.dtype)
    down = flow_at(flow, start, grid) @ flow.direction < 0
    last = jnp.max(jnp.where(down, jnp.arange(grid.size), -1))
    low, high = grid[jnp.maximum(last, 0)], grid[jnp.minimum(last + 1, grid.size - 1)]

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        still = (flow_at(flow, start, middle[None]) @ flow.direction)[0] < 0
        return jnp.where(still, middle, low), jnp.where(still, high, middle)

    _, end = jax.lax.fori_loop(0, 50, halve, (low, high))
    return jnp.select([last < 0, last == grid.size - 1], [0.0, jnp.inf], end)
