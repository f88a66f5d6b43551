"""How hard a training row is: its error, the size of its gradient.

Source of both: Paul, Ganguli, Dziugaite, "Deep learning on a data diet", NeurIPS 2021, where they are averaged over
networks early in training.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Int

from jaxpu.margins import one_hot
from jaxpu.types import Scalar

AT_ONCE = 128
"""Rows whose gradients are held at a time: each is as large as the network."""


def el2n(logits: Float[Array, "*members n classes"], labels: Int[Array, " n"]) -> Float[Array, " n"]:
    """Norm of the error, |p - e_y|, a mean over the members.

    >>> round(float(el2n(jnp.zeros((1, 2)), jnp.array([1]))[0]), 4)  # √½
    0.7071
    """
    p = jax.nn.softmax(logits)
    error = p - jnp.broadcast_to(one_hot(labels, p.shape[-1]), p.shape)
    sizes = jnp.sqrt(jnp.square(error).sum(axis=-1))
    return sizes.mean(axis=tuple(range(sizes.ndim - 1)))


def grand(loss: Callable[[Any, Array, Array], Scalar], params: Any, x: Array, labels: Array) -> Float[Array, " n"]:
    """Norm of the gradient of every row's own loss in all parameters.

    Args:
        loss: ``(params, row, label) -> scalar``. params: where. x, labels: the rows and their labels.

    >>> square = lambda w, x, y: (w @ x - y) ** 2 / 2
    >>> grand(square, jnp.zeros(2), jnp.array([[3.0, 4.0]]), jnp.array([2.0])).tolist()  # |w·x - y| |x|
    [10.0]
    """

    def size(row: tuple[Array, Array]) -> Scalar:
        slopes = jax.tree.leaves(jax.grad(loss)(params, *row))
        return jnp.sqrt(sum((jnp.vdot(slope, slope) for slope in slopes), jnp.zeros(())))

    return lax.map(size, (jnp.asarray(x), jnp.asarray(labels)), batch_size=AT_ONCE)
