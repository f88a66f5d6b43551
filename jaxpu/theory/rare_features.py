"""Common and rare features: what plain training, mixup, and mixup stopped early learn of them (Zou et al., ICML 2023).

A row is P patches in d dimensions. One of them is the feature of its class: v for the positives (class 0) and u for
the negatives, or in a share ρ of the rows the *rare* v' and u'; b patches are clutter, α u or α v by a fair coin; the
rest is noise N(0, σ² H), where H takes the four features out. The features are the first four axes, v, u, v', u'. The
network has a squared activation,

    F_k(W; x) = Σ_p Σ_r ⟨w_kr, x⁽ᵖ⁾⟩²,    the cross-entropy of softmax(F),

and how well it knows a feature is Σ_r ⟨w_kr, v⟩². Mixup here has one fixed λ and all n² ordered pairs, patch by patch.
With A_k (n, P m) the inner products of rows and weights and G_k = A_k A_kᵀ,

    F_k(λ x_i + (1-λ) x_j) = λ² G_k,ii + 2λ(1-λ) G_k,ij + (1-λ)² G_k,jj,

so that no pair is ever made.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Int, Key

from jaxpu.types import Scalar, ScalarLike

COMMON, RARE = (0, 1), (2, 3)
"""Axes of the features of both classes."""

SCHEDULES = ("plain", "mixup", "early_stop", "easy", "hard")
"""Ways of λ over the steps."""


class Patches(NamedTuple):
    """Rows of patches (n, P, d), their classes (n,), and 1 where the feature is the rare one (n,)."""

    x: Float[Array, "n p d"]
    y: Int[Array, " n"]
    rare: Int[Array, " n"]


class Known(NamedTuple):
    """Σ_r ⟨w_kr, ·⟩² of both classes, (2,): of its common feature, its rare one, and the other's common one."""

    common: Float[Array, "*steps 2"]
    rare: Float[Array, "*steps 2"]
    wrong: Float[Array, "*steps 2"]


def patches(
    key: Key[Array, ""],
    n: int,
    *,
    size: int = 4,
    d: int = 400,
    rho: ScalarLike = 0.1,
    clutter: int = 1,
    strength: ScalarLike = 0.1,
    sigma: ScalarLike = 0.15,
) -> Patches:
    """Draw n rows, half of each class, of which the share ρ, rounded up, has the rare feature.

    Args:
        key: of patches' order, clutter and noise. n: rows. size: P. d: dimensions, at least 4. rho: ρ. clutter: b.
            strength: α of the clutter. sigma: σ of the noise.

    Raises:
        ValueError: no room for the feature, the clutter, or the four axes.

    Example:
        >>> drawn = patches(jax.random.key(0), 40, d=8, rho=0.1)
        >>> drawn.x.shape, int(drawn.rare.sum()), sorted(set(drawn.y.tolist()))
        ((40, 4, 8), 4, [0, 1])
    """
    if size < 1 + clutter or d < 4:
        raise ValueError(f"rows have {size} patches of {d} dimensions, expected at least {1 + clutter} and 4")
    order_key, coin_key, noise_key = jax.random.split(key, 3)
    y = jnp.arange(n) % 2
    rare = (jnp.arange(n) // 2 < rho * n / 2).astype(jnp.int32)
    feature = jax.nn.one_hot(y + 2 * rare, d)[:, None]
    coins = strength * jax.nn.one_hot(jax.random.randint(coin_key, (n, clutter), 0, 2), d)
    noise = sigma * jax.random.normal(noise_key, (n, size - 1 - clutter, d)) * (jnp.arange(d) >= 4)[None, None]
    inside = jnp.concatenate([feature, coins, noise], axis=1)
    shuffled = jax.vmap(jax.random.permutation)(jax.random.split(order_key, n), inside)
    return Patches(shuffled, y, rare)


def logits(w: Float[Array, "2 m d"], x: Float[Array, "n p d"]) -> Float[Array, "n 2"]:
    """F_k of every row.

    Example:
        >>> logits(jnp.ones((2, 1, 4)), jnp.ones((1, 2, 4))).tolist()
        [[32.0, 32.0]]
    """
    return (jnp.einsum("npd,kmd->nkpm", x, w) ** 2).sum(axis=(2, 3))


def pair_logits(w: Float[Array, "2 m d"], x: Float[Array, "n p d"], lam: ScalarLike) -> Float[Array, "n n 2"]:
    """F_k of λ x_i + (1-λ) x_j for all pairs, by Gram matrices.

    Example:
        >>> x = jnp.stack([jnp.ones((1, 4)), jnp.zeros((1, 4))])
        >>> pair_logits(jnp.ones((2, 1, 4)), x, 0.5)[..., 0].tolist()
        [[16.0, 4.0], [4.0, 0.0]]
    """
    inner = jnp.einsum("npd,kmd->knpm", x, w)
    inner = inner.reshape(*inner.shape[:2], -1)
    gram = inner @ inner.transpose(0, 2, 1)
    own = jnp.diagonal(gram, axis1=1, axis2=2)
    mixed = lam**2 * own[:, :, None] + 2 * lam * (1 - lam) * gram + (1 - lam) ** 2 * own[:, None, :]
    return mixed.transpose(1, 2, 0)


def pair_losses(
    w: Float[Array, "2 m d"], x: Float[Array, "n p d"], y: Int[Array, " n"], lam: ScalarLike
) -> Float[Array, "n n"]:
    """λ ℓ(F_ij, y_i) + (1-λ) ℓ(F_ij, y_j) of all pairs; with λ = 1 the loss of row i in row i.

    Example:
        >>> round(float(pair_losses(jnp.zeros((2, 1, 4)), jnp.ones((3, 1, 4)), jnp.array([0, 1, 1]), 0.7).mean()), 4)
        0.6931
    """
    negative = -jax.nn.log_softmax(pair_logits(w, x, lam))
    of_class = (y[:, None] == jnp.arange(2)[None, :]).astype(w.dtype)
    first, second = (negative * of_class[:, None]).sum(-1), (negative * of_class[None, :]).sum(-1)
    return lam * first + (1 - lam) * second


def known(w: Float[Array, "2 m d"]) -> Known:
    """How well the weights know the features.

    Example:
        >>> known(jnp.arange(8.0).reshape(2, 1, 4)).rare.tolist()
        [4.0, 49.0]
    """
    found, classes = (w[:, :, :4] ** 2).sum(axis=1), jnp.arange(2)
    own = [found[classes, jnp.array(axes)] for axes in (COMMON, RARE, COMMON[::-1])]
    return Known(*own)


def shares(schedule: str, steps: int, *, lam: ScalarLike = 0.6, stop: ScalarLike = 0.5) -> Float[Array, " steps"]:
    """λ of every step: 1 for plain training, λ for mixup, λ up to the share ``stop`` of the steps and then 1.

    ``easy`` goes evenly from ½, the strongest mixing, to 1, and ``hard`` the other way.

    Raises:
        ValueError: no schedule of that name.

    Example:
        >>> [shares(name, 3, lam=0.75).tolist() for name in ("early_stop", "easy")]
        [[0.75, 0.75, 1.0], [0.5, 0.75, 1.0]]
    """
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule is {schedule!r}, expected one of {list(SCHEDULES)}")
    time = jnp.arange(steps) / steps
    if schedule in ("easy", "hard"):
        along = jnp.linspace(0.5, 1.0, steps)
        return along if schedule == "easy" else along[::-1]
    mixing = {"plain": jnp.zeros(steps, bool), "mixup": jnp.ones(steps, bool), "early_stop": time < stop}[schedule]
    return jnp.where(mixing, lam, 1.0)


def filtered_loss(
    w: Float[Array, "2 m d"],
    x: Float[Array, "n p d"],
    y: Int[Array, " n"],
    lam: ScalarLike,
    teacher: Float[Array, "2 m d"] | None = None,
) -> Scalar:
    """Mean loss over all pairs, or with a teacher over those that it predicts no worse; 0 where there is none.

    That is Σ m ℓ / Σ m, with m = 1 where the teacher's loss is at most that of w, a constant.

    Example:
        >>> x, y, nothing = jnp.eye(2, 4)[:, None], jnp.array([0, 1]), jnp.zeros((2, 1, 4))
        >>> [round(float(filtered_loss(nothing, x, y, 1.0, teacher)), 4) for teacher in (x, x[::-1])]
        [0.6931, 0.0]
    """
    losses = pair_losses(w, x, y, lam)
    if teacher is None:
        return losses.mean()
    kept = lax.stop_gradient(pair_losses(teacher, x, y, lam) <= losses)
    return (kept * losses).sum() / jnp.maximum(kept.sum(), 1)


@functools.partial(jax.jit, static_argnames="every")
def descend(
    start: Float[Array, "2 m d"],
    x: Float[Array, "n p d"],
    y: Int[Array, " n"],
    lams: Float[Array, " steps"],
    teacher: Float[Array, "2 m d"] | None = None,
    *,
    lr: ScalarLike = 0.2,
    every: int = 1,
) -> tuple[Float[Array, "2 m d"], Known]:
    """Full-batch gradient descent, a λ a step.

    Args:
        start: the weights, small. x, y: rows and classes. lams: of :func:`shares`, a multiple of ``every``. teacher:
            who filters pairs; None = all are learned. lr: step size. every: steps from one look to the next.

    Returns:
        The weights, and what they knew of the features after 0, ``every``, 2 ``every`` ... steps.

    Example:
        >>> x, y, _ = patches(jax.random.key(0), 8, d=6)
        >>> w, path = descend(0.01 * jax.random.normal(jax.random.key(1), (2, 3, 6)), x, y, jnp.ones(4), every=2)
        >>> path.common.shape
        (3, 2)
    """

    def step(w: Array, lam: Array) -> tuple[Array, None]:
        return w - lr * jax.grad(filtered_loss)(w, x, y, lam, teacher), None

    def look(w: Array, some: Array) -> tuple[Array, Known]:
        w, _ = lax.scan(step, w, some)
        return w, known(w)

    end, path = lax.scan(look, start, lams.reshape(-1, every))
    first = known(start)
    return end, Known(*(jnp.concatenate([one[None], more]) for one, more in zip(first, path, strict=True)))


def accuracy(w: Float[Array, "2 m d"], x: Float[Array, "n p d"], y: Int[Array, " n"]) -> Scalar:
    """Share of the rows whose own logit is the larger one.

    Example:
        >>> float(accuracy(jnp.eye(2, 4)[:, None], jnp.eye(2, 4)[:, None], jnp.array([0, 1])))
        1.0
    """
    return (logits(w, x).argmax(axis=1) == y).mean()
