"""The course of gradient descent over very many updates, without making them one by one.

With factors held fixed, the aggregator's updates are θ ← θ - η G(θ), G smooth, and the long way back of an inverted
run takes a million of them. Around the present θ₀, G(θ) = g + H (θ - θ₀) + N(θ), with N of second order; after k
updates

    θ_k = θ₀ - η Σ_{j<k} (1 - η H)^{k-1-j} (g + N(θ_j)).

The linear part is summed in closed form in the eigenvectors of H. N is sampled half way and at the end, and
interpolated by a j² + c j³, whose sums are closed as well: an exponential Rosenbrock method, for the recursion itself
and not for its flow, so that the size of η costs no accuracy and one update at a time is exact. k grows and shrinks so
that leaving c out would change θ by less than a tolerance.

Source: Hochbruck and Ostermann, "Exponential integrators", Acta Numerica 19, 2010, for the method in continuous time.
"""

from typing import NamedTuple

import jax
import numpy as np
from jax import Array, lax
from jax import numpy as jnp
from jaxtyping import Float, Int

from jaxpu import checks, linalg
from jaxpu.ensemble.aggregate import PLAIN, Aggregator, Step
from jaxpu.ensemble.types import Instances, Labels, Mask, Ratings
from jaxpu.ensemble.weights import class_weights
from jaxpu.types import Scalar, ScalarLike

SHORTER, LONGER, SAFETY = 0.2, 4.0, 0.9
"""By how much the number of updates in a leap may change from one to the next, and how cautiously."""


class _Slope(NamedTuple):
    """G(θ) = Σ vᵢ (σ(θ · φᵢ) - yᵢ) φᵢ: inputs φ (k, n), shares v (n,), labels y (n,)."""

    phi: Float[Array, "k n"]
    share: Instances
    positive: Instances

    def at(self, theta: Float[Array, " k"]) -> Float[Array, " k"]:
        return self.phi @ (self.share * (jax.nn.sigmoid(theta @ self.phi) - self.positive))

    def slope_and_hessian(self, theta: Float[Array, " k"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
        p = jax.nn.sigmoid(theta @ self.phi)
        return self.phi @ (self.share * (p - self.positive)), (
            self.phi * (self.share * p * (1 - p))[None, :]
        ) @ self.phi.T


def descend(
    aggregator: Aggregator,
    ratings: Ratings,
    labels: Labels,
    labeled: Mask,
    *,
    updates: Int[Array, " t"],
    step: Step = PLAIN,
    tolerance: ScalarLike = 1e-9,
) -> Aggregator:
    """The aggregator after so many gradient updates, as from :func:`jaxpu.ensemble.continue_aggregator`.

    Args:
        aggregator: where to start. ratings: reconstructed, (m, n). labels, labeled: (n,).
        updates: after how many updates to look, ascending from 0 on, shape (t,); may be traced.
        step: learning rates, class weights and centring; a focal exponent and Newton steps do not exist here.
        tolerance: of the error that one leap may make, against 1 + max |θ|; not below 8 rounding errors.

    Returns:
        w (t, m), b (t,) and the centre (t, m).

    Raises:
        ValueError: ``step`` asks for a focal exponent or Newton steps.

    Example:
        >>> start = Aggregator(jnp.zeros(1), jnp.array(0.0), jnp.zeros(1))
        >>> data = jnp.array([[0.4, 0.6]]), jnp.array([0, 1]), jnp.ones(2)
        >>> course = descend(start, *data, updates=jnp.array([0, 1000, 1000_000]))
        >>> [round(float(w), 1) for w in course.w[:, 0]]
        [0.0, 0.4, 43.4]
    """
    for name in ("focal", "newton"):
        value = getattr(step, name)
        if checks.known(value) and value:
            raise ValueError(f"step.{name} is {value}, expected 0: only plain gradient updates can be leapt over")
    known = (jnp.asarray(labeled) > 0).astype(ratings.dtype)
    centre = step.centre * (ratings @ known) / jnp.maximum(known.sum(), 1)
    v = class_weights(labels, labeled, strength=step.class_weights)
    share = (v / jnp.maximum(v.sum(), jnp.finfo(v.dtype).tiny)).astype(ratings.dtype)
    # b at β times the learning rate is a weight of √β on an input of √β
    root = jnp.sqrt(jnp.asarray(step.bias_lr, ratings.dtype))
    phi = jnp.concatenate([ratings - centre[:, None], jnp.full_like(ratings[:1], root)])
    slope = _Slope(phi, share, (jnp.asarray(labels) > 0).astype(ratings.dtype))
    start = jnp.append(aggregator.w, aggregator.b / root)
    course = _course(slope, start, jnp.asarray(step.lr, ratings.dtype), updates, tolerance)
    return Aggregator(course[:, :-1], course[:, -1] * root, jnp.broadcast_to(centre, course[:, :-1].shape))


def _course(
    slope: _Slope, start: Float[Array, " k"], lr: Scalar, updates: Int[Array, " t"], tolerance: ScalarLike
) -> Float[Array, "t k"]:
    tolerance = jnp.maximum(tolerance, 8 * jnp.finfo(start.dtype).eps)

    def leap(carry: tuple[Array, Array, Array], until: Array) -> tuple[Array, Array, Array]:
        theta, made, length = carry
        count = jnp.minimum(length, until - made)
        after, error = _leap(slope, theta, lr, count)
        error = error / (1 + jnp.abs(theta).max())
        fine = (error <= tolerance) | (count == 1)
        factor = jnp.clip(SAFETY * (tolerance / jnp.maximum(error, 1e-30)) ** 0.25, SHORTER, LONGER)
        next_length = jnp.maximum((count * factor).astype(length.dtype), 1)
        # a leap that was cut short at a look says nothing against a longer one
        length = jnp.where(fine & (count < length), jnp.maximum(length, next_length), next_length)
        return jnp.where(fine, after, theta), made + jnp.where(fine, count, 0), length

    def look(carry: tuple[Array, Array, Array], until: Array) -> tuple[tuple[Array, Array, Array], Array]:
        carry = lax.while_loop(lambda c: c[1] < until, lambda c: leap(c, until), carry)
        return carry, carry[0]

    zero = jnp.zeros_like(updates[0])
    return lax.scan(look, (start, zero, zero + 1), updates)[1]


def _leap(
    slope: _Slope, theta: Float[Array, " k"], lr: Scalar, count: Int[Array, ""]
) -> tuple[Float[Array, " k"], Scalar]:
    """θ after ``count`` updates, and how much of it is due to c."""
    g, hessian = slope.slope_and_hessian(theta)
    rates, modes = linalg.eigh(hessian)
    half, whole = _sums(1 - lr * rates, count)
    forcing = modes.T @ g

    def moved(change: Float[Array, " k"]) -> Float[Array, " k"]:
        return theta - lr * (modes @ change)

    def rest(there: Float[Array, " k"]) -> Float[Array, " k"]:
        return modes.T @ (slope.at(there) - g - hessian @ (there - theta))

    middle = jnp.maximum(count // 2, 1) / count.astype(theta.dtype)
    at_middle = rest(moved(half[0] * forcing)) / middle**2
    straight = whole[0] * forcing + whole[2] * at_middle
    at_end = rest(moved(straight))
    c = jnp.where(count > 1, (at_middle - at_end) / jnp.minimum(middle - 1, -1e-6), 0)
    after = moved(straight + (whole[3] - whole[2]) * c + whole[2] * (at_end - at_middle))
    return after, jnp.abs(after - moved(straight)).max()


def _sums(ratio: Float[Array, " k"], count: Int[Array, ""]) -> tuple[Float[Array, "4 k"], Float[Array, "4 k"]]:
    """Σ_{j<n} ρ^{n-1-j} (j / n)^p for p = 0 … 3 and every ρ, at n = count // 2 and n = count; by doubling n.

    The closed forms cancel where ρ is near 1, as it is in every slow mode; here all terms have one sign.
    """
    powers = np.arange(4)
    binomial = jnp.asarray([[1, 0, 0, 0], [1, 1, 0, 0], [1, 2, 1, 0], [1, 3, 3, 1]], ratio.dtype)
    halves = jnp.asarray(0.5**powers, ratio.dtype)[:, None]

    def double(carry: tuple[Array, ...], bit: Array) -> tuple[Array, ...]:
        sums, _, power, n = carry
        twice = halves * (power[None, :] * sums + binomial @ sums)
        power, m = power**2, 2 * n
        shrunk = (m / (m + 1.0)).astype(ratio.dtype) ** powers
        one_more = shrunk[:, None] * (ratio[None, :] * twice + 1)
        odd = (count >> bit) & 1 == 1
        return (
            jnp.where(odd, one_more, twice),
            sums,
            jnp.where(odd, power * ratio, power),
            jnp.where(odd, m + 1, m),
        )

    bits = jnp.iinfo(count.dtype).bits - lax.clz(count)
    none = jnp.zeros((4, ratio.size), ratio.dtype)
    first = (none, none, jnp.ones_like(ratio), jnp.zeros_like(count))
    whole, half, *_ = lax.fori_loop(0, bits, lambda i, carry: double(carry, bits - 1 - i), first)
    return half, whole
