"""Mixup coefficients λ ~ Beta(α, α), and how α changes over the epochs.

Draw all coefficients of a run at once, before its loop: it is cheaper than a draw in every step.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from jaxpu.losses.batch import check_range
from jaxpu.types import ScalarLike


def sample(
    key: Key[Array, ""], alpha: ScalarLike | Float[Array, "..."], shape: tuple[int, ...] = ()
) -> Float[Array, "..."]:
    """Draw λ ~ Beta(α, α); α = 0 means no mixup, λ = 1 exactly.

    With E ~ Exp(1) and V ~ U(0, 1), r = √(e^(E/α) - 1) cos(2πV) is, up to a factor √(2α), Student's t with 2α
    degrees of freedom (Bailey, Mathematics of Computation 62, 1994); then λ = (1 + r/√(1 + r²)) / 2, which is
    σ(2 asinh r), is Beta(α, α). No rejection loop, as in a gamma sampler: quick to compile.

    Args:
        key: a random key.
        alpha: α ≥ 0, may be traced; an array must broadcast to ``shape``.
        shape: shape of the draw.

    Returns:
        Coefficients in (0, 1], never NaN. For small α many of those near 1 round to exactly 1.

    Raises:
        ValueError: a known α that is negative or not finite, or an α that does not broadcast to the shape.

    Example:
        >>> lam = sample(jax.random.key(0), 0.3, (1000,))
        >>> bool(abs(lam.mean() - 0.5) < 0.05), bool(abs(lam.var() - 1 / 6.4) < 0.02)
        (True, True)
        >>> sample(jax.random.key(0), 0.0, (2,)).tolist()
        [1.0, 1.0]
    """
    check_range("alpha", alpha, 0)
    alpha = jnp.broadcast_to(alpha, shape)
    radius_key, angle_key = jax.random.split(key)
    exponential = jax.random.exponential(radius_key, shape)
    angle = jax.random.uniform(angle_key, shape, maxval=2 * jnp.pi)
    # Beyond 80 a coefficient is as good as 0 or 1 (about 1e-35 away), and e^(E/α) would soon overflow.
    exponent = jnp.minimum(exponential / jnp.where(alpha > 0, alpha, 1), 80)
    r = jnp.sqrt(jnp.expm1(exponent)) * jnp.cos(angle)
    return jnp.where(alpha > 0, jax.nn.sigmoid(2 * jnp.arcsinh(r)), 1)


def constant(epochs: int, alpha: ScalarLike = 1.0) -> Float[Array, " epochs"]:
    """The same α in every epoch.

    Example:
        >>> constant(3, 0.5).tolist()
        [0.5, 0.5, 0.5]
    """
    return jnp.full(epochs, alpha, dtype=float)


def easy(epochs: int, alpha: ScalarLike = 1.0) -> Float[Array, " epochs"]:
    """Exponential descent α 10^(1 - 2t): from 10 α, strong mixing, to α/10, nearly plain examples.

    Example:
        >>> [round(alpha, 4) for alpha in easy(3).tolist()]
        [10.0, 1.0, 0.1]
    """
    return alpha * 10 ** (1 - 2 * _time(epochs))


def hard(epochs: int, alpha: ScalarLike = 1.0) -> Float[Array, " epochs"]:
    """Exponential ascent α 10^(2t - 1), the mirror of :func:`easy`.

    Example:
        >>> [round(alpha, 4) for alpha in hard(3).tolist()]
        [0.1, 1.0, 10.0]
    """
    return alpha * 10 ** (2 * _time(epochs) - 1)


def easy_hard_easy(epochs: int, alpha: ScalarLike = 1.0) -> Float[Array, " epochs"]:
    """Down and up again, α 10^(2 |2t - 1| - 1): 10 α at both ends, α/10 at half time.

    Example:
        >>> [round(alpha, 4) for alpha in easy_hard_easy(5).tolist()]
        [10.0, 1.0, 0.1, 1.0, 10.0]
    """
    return alpha * 10 ** (2 * jnp.abs(2 * _time(epochs) - 1) - 1)


def early_stop(epochs: int, alpha: ScalarLike = 1.0) -> Float[Array, " epochs"]:
    """α in the first two thirds of the epochs, 400 of 600, then 0: plain examples.

    Example:
        >>> early_stop(6, 0.5).tolist()
        [0.5, 0.5, 0.5, 0.5, 0.0, 0.0]
    """
    return jnp.where(3 * jnp.arange(epochs) < 2 * epochs, constant(epochs, alpha), 0)


SCHEDULES: dict[str, Callable[[int, ScalarLike], Array]] = {
    "constant": constant,
    "easy": easy,
    "hard": hard,
    "easy_hard_easy": easy_hard_easy,
    "early_stop": early_stop,
}
"""The schedules by name, as functions of the number of epochs and α."""


def schedule(name: str, epochs: int, alpha: ScalarLike = 1.0) -> Float[Array, " epochs"]:
    """α of every epoch under the schedule of that name.

    Time runs as t = e / (E - 1) over the epochs e = 0 ... E - 1, from exactly 0 to exactly 1; a single epoch
    has t = 0. ``alpha``, which may be traced, multiplies the schedule: with the default 1 the exponential
    ones run between 10 and 0.1.

    Raises:
        ValueError: no schedule of that name, or less than one epoch.

    Example:
        >>> [round(alpha, 4) for alpha in schedule("easy", 3).tolist()]
        [10.0, 1.0, 0.1]
    """
    if name not in SCHEDULES:
        raise ValueError(f"schedule is {name!r}, expected one of {list(SCHEDULES)}")
    if epochs < 1:
        raise ValueError(f"epochs is {epochs}, expected at least 1")
    return SCHEDULES[name](epochs, alpha)


def _time(epochs: int) -> Float[Array, " epochs"]:
    return jnp.linspace(0, 1, epochs)
