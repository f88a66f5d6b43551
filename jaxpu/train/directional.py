"""The directional penalty: how much the risk of each row changes on the way to the mean row, as a part of the loss.

loss + w Σ_i |∂R/∂z_i · J_i (x̄ - x_i)|, of the rows as they are, whatever the loss does with them: mixup's own
first-order term without its sign (:mod:`jaxpu.theory.mixupe`). R is the method's risk; of a mean of cross-entropies the
sum is the mean of |q_i|. ∂R/∂z and x̄ are constants, J that of the network as it predicts, without dropout.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxpu.models import Params
from jaxpu.theory import mixupe
from jaxpu.train.inputs import Data, features
from jaxpu.types import Scalar, ScalarLike

Loss = Callable[[Params], tuple[Scalar, Any]]


def penalised(
    loss: Loss,
    network: Callable[[Params, Array], Array],
    risk: Callable[[Array], tuple[Scalar, Any]],
    weight: ScalarLike,
    x: Array,
    centre: Array,
) -> Loss:
    """The loss with the penalty, which is recorded as ``directional``.

    Args:
        loss: of a batch, with its terms, a dictionary of what else is recorded, and more. network: from parameters and
            rows to logits. risk: from logits to R, and something beside it. weight: w. x: the rows. centre: x̄.
    """

    def total(params: Params) -> tuple[Scalar, Any]:
        value, (terms, more, *rest) = loss(params)
        z, moved = jax.jvp(lambda x: network(params, x), (x,), (centre[None] - x,))
        penalty = weight * mixupe.penalty(jax.grad(risk, has_aux=True)(z)[0], moved)
        return value + penalty, (terms._replace(loss=terms.loss + penalty), more | {"directional": penalty}, *rest)

    return total


def mean_row(data: Data) -> Array:
    """x̄ of the training rows that are no padding, as the network sees them."""
    return jnp.tensordot(data.counts / data.counts.sum(), features(data, data.train), 1)
