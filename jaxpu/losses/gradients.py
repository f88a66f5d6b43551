"""Gradients of the classification losses in closed form, to plot and to hold against what autodiff gives.

The loss of a hard label has the gradient s(p_y) (r - e_y) with respect to the logits, r the softmax over the other
classes; for one logit -s(p) if y = 1 and s(1 - p) if y = 0. The size of an example's gradient is s, a function of the
probability p = p_y that the model gives its label: the derivative with respect to the logit z_y, without the minus.

>>> import jax.numpy as jnp
>>> p = jnp.array([0.1, 0.5, 0.9])
>>> for name in ("mse", "cross_entropy", "encouraging"):
...     print(name, [round(s, 3) for s in gradient_size(name, p).tolist()])
mse [0.162, 0.25, 0.018]
cross_entropy [0.9, 0.5, 0.1]
encouraging [1.0, 1.0, 0.46]
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxpu.checks import check_range
from jaxpu.losses.batch import wide
from jaxpu.losses.labels import check_shapes, distribution
from jaxpu.losses.surrogates import SLOPES
from jaxpu.types import ClassLabels, ClassLogits, ScalarLike

Probabilities: TypeAlias = Float[Array, "*shape"]
"""p of the label, of any shape."""


def mse(p: Probabilities) -> Probabilities:
    """Size s = 2 p (1 - p)², largest at p = 1/3.

    Example:
        >>> mse(jnp.array([0.0, 0.5, 1.0])).tolist()
        [0.0, 0.25, 0.0]
    """
    return 2 * p * jnp.square(1 - p)


def cross_entropy(p: Probabilities) -> Probabilities:
    """Size s = 1 - p.

    Example:
        >>> cross_entropy(jnp.array([0.0, 0.5, 1.0])).tolist()
        [1.0, 0.5, 0.0]
    """
    return 1 - p


def mae(p: Probabilities) -> Probabilities:
    """Size s = p (1 - p), largest at p = 1/2.

    Example:
        >>> mae(jnp.array([0.0, 0.5, 1.0])).tolist()
        [0.0, 0.25, 0.0]
    """
    return p * (1 - p)


def mae_mse(p: Probabilities) -> Probabilities:
    """Size s = p (1 - p) (3 - 2 p).

    Example:
        >>> mae_mse(jnp.array([0.0, 0.5, 1.0])).tolist()
        [0.0, 0.5, 0.0]
    """
    return p * (1 - p) * (3 - 2 * p)


def bonus(p: Probabilities, *, floor: ScalarLike = 0.0) -> Probabilities:
    """Size s = 1, and 1 - p beyond p = 1 - f.

    Raises:
        ValueError: a Python number as ``floor`` outside [0, 1].

    Example:
        >>> bonus(jnp.array([0.0, 0.5, 1.0])).tolist()
        [1.0, 1.0, 1.0]
    """
    check_range("floor", floor, 0, 1)
    return jnp.where(1 - p >= floor, 1, 1 - p)


def encouraging(p: Probabilities, *, log_end: ScalarLike = 0.75, slope: str = "tangent") -> Probabilities:
    """Size s = 1 up to p = LE, beyond it (1 - p) (1 + a p) with a = 1 / (1 - LE), or a = 1 for the "unit" slope.

    Raises:
        ValueError: a Python number as ``log_end`` outside [0, 1]; a slope that does not exist.

    Example:
        >>> encouraging(jnp.array([0.0, 0.5, 1.0]), log_end=0.0).tolist()
        [1.0, 0.75, 0.0]
    """
    if slope not in SLOPES:
        raise ValueError(f"slope is {slope!r}, expected one of {list(SLOPES)}")
    check_range("log_end", log_end, 0, 1)
    left = jnp.asarray(1 - log_end, p.dtype)
    steepness = 1 / jnp.where(left > 0, left, 1) if slope == "tangent" else 1
    return jnp.where(p <= log_end, 1, (1 - p) * (1 + steepness * p))


def focal(p: Probabilities, *, gamma: ScalarLike = 2.0) -> Probabilities:
    """Size s = (1 - p)^γ (1 - p - γ p log p).

    Raises:
        ValueError: a negative or infinite Python number as ``gamma``.

    Example:
        >>> [round(x, 4) for x in focal(jnp.array([0.0, 0.5, 1.0])).tolist()]
        [1.0, 0.2983, 0.0]
    """
    check_range("gamma", gamma, 0)
    gamma = jnp.asarray(gamma, p.dtype)
    return (1 - p) ** gamma * (1 - p - gamma * jax.scipy.special.xlogy(p, p))


GRADIENT_SIZES: dict[str, Callable[..., Array]] = {
    "mse": mse,
    "cross_entropy": cross_entropy,
    "mae": mae,
    "mae_mse": mae_mse,
    "bonus": bonus,
    "encouraging": encouraging,
    "focal": focal,
}
"""s as a function of p, by the name of the loss in ``CLASSIFICATION``, with the same options."""


def gradient_size(loss: str, p: Probabilities, **options: Any) -> Probabilities:
    """The size s(p) of the gradient of a loss, at the probability p of the label; any shape.

    Raises:
        ValueError: no loss of that name.

    Example:
        >>> float(gradient_size("focal", jnp.array(0.5), gamma=0.0))
        0.5
    """
    if loss not in GRADIENT_SIZES:
        raise ValueError(f"loss is {loss!r}, expected one of {list(GRADIENT_SIZES)}")
    return GRADIENT_SIZES[loss](wide(jnp.asarray(p)), **options)


def logit_gradient(loss: str, logits: ClassLogits, labels: ClassLabels, **options: Any) -> ClassLogits:
    """The gradient of every row's loss with respect to its logits, Σ q_k s(p_k) (r_k - e_k), in the logits' shape.

    r_k is the softmax over the classes other than k. It takes n k² numbers, and is there to be looked at: train with
    autodiff. It has no mask.

    Raises:
        ValueError: no loss of that name, shapes that do not fit.

    Example:
        >>> logit_gradient("bonus", jnp.array([[9.0, 0.0, 0.0]]), jnp.array([0])).tolist()
        [[-1.0, 0.5, 0.5]]
    """
    z, labels = wide(jnp.asarray(logits)), jnp.asarray(labels)
    check_shapes(z, labels)
    if z.ndim == 1:
        share, p = distribution(labels, 2), jax.nn.sigmoid(z)
        return share[:, 0] * gradient_size(loss, 1 - p, **options) - share[:, 1] * gradient_size(loss, p, **options)
    classes = z.shape[1]
    size = distribution(labels, classes) * gradient_size(loss, jax.nn.softmax(z), **options)
    itself = jnp.eye(classes, dtype=bool)[None]
    others = jax.nn.softmax(jnp.where(itself, -jnp.inf, z[:, None, :]))
    return jnp.einsum("nk,nkj->nj", size, others - itself)
