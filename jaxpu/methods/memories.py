"""What registered methods carry over steps, each a :class:`jaxpu.methods.Memory`; presets say where it is."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float

from jaxpu import losses
from jaxpu.methods.method import Memory
from jaxpu.types import Labeled, Logits, Mask, Rows, Scalar, ScalarLike


def undecided(params: Any, n_rows: int) -> dict[str, Array]:
    """1/2 said of every row of the training set."""
    return {"said": jnp.full(n_rows, 0.5)}


def remembered(memory: dict[str, Array], *, rows: Rows, logits: Logits, mask: Mask) -> dict[str, Array]:
    """What the network just said of the batch's rows.

    >>> before, batch = {"said": jnp.zeros(3)}, {"rows": jnp.array([2, 0]), "logits": jnp.zeros(2)}
    >>> remembered(before, **batch, mask=jnp.array([1, 0]))["said"].tolist()
    [0.0, 0.0, 0.5]
    """
    return {"said": written(memory["said"], rows, jax.nn.sigmoid(logits), mask)}


def written(values: Float[Array, " rows"], rows: Rows, new: Float[Array, " n"], mask: Mask) -> Float[Array, " rows"]:
    """The values with those of the batch's rows replaced; of a row that is there twice, by one of the two."""
    places = jnp.where(mask > 0, rows, values.shape[0])  # padding has the number of a row, and must not write there
    return values.at[places].set(new.astype(values.dtype), mode="drop")


PSEUDO_LABELS = Memory(undecided, remembered)
"""p of every training row as the network had it when it last saw the row in training, with dropout (Dist-PU)."""


def start(params: Any, n_rows: int) -> dict[str, Any]:
    """The network itself, and the number of steps."""
    return {"params": params, "steps": jnp.zeros((), jnp.int32)}


def averaged(memory: dict[str, Any], *, params: Any, decay: ScalarLike = 0.997) -> dict[str, Any]:
    """The average of the parameters over steps: plain at first, exponential with ``decay`` once that is shorter.

    >>> one = averaged({"params": jnp.array(9.0), "steps": jnp.array(0)}, params=jnp.array(1.0))
    >>> float(averaged(one, params=jnp.array(2.0))["params"])
    1.5
    """
    kept = jnp.minimum(1 - 1 / (memory["steps"] + 1), decay)
    mean = jax.tree.map(lambda old, new: kept * old + (1 - kept) * new, memory["params"], params)
    return {"params": mean, "steps": memory["steps"] + 1}


TEACHER = Memory(start, averaged)
"""A mean teacher (Tarvainen and Valpola, NeurIPS 2017), with the running statistics of the network itself."""


_ADAM = optax.scale_by_adam()


def unbiased(params: Any, n_rows: int) -> dict[str, Any]:
    """A network for η that starts where h does, its optimiser, and 1/2 as the posterior of every row."""
    return {"eta": params, "moments": _ADAM.init(params), "posterior": jnp.full(n_rows, 0.5)}


def labeling(
    memory: dict[str, Any],
    *,
    params: Any,
    rows: Rows,
    labeled: Labeled,
    mask: Mask,
    progress: ScalarLike,
    forward: Callable[[Any], Logits],
    warm_up: ScalarLike = 0.25,
    labeling_lr: ScalarLike = 3e-4,
) -> dict[str, Any]:
    """One step of η with Adam, then the posterior of the batch's rows from both networks.

    It descends :func:`jaxpu.losses.lbe_labeling`, for the share ``warm_up`` of the epochs with a posterior of 1, so
    that it starts as P(s = 1 | x); PU-Bench starts it as it starts h, with P weighing as much as U. It has no dropout
    and no weight decay, and the running statistics of h. ``labeling_lr`` is its learning rate, in PU-Bench that of h.
    """

    def objective(eta: Any) -> Scalar:
        z = forward(eta)
        observed = losses.lbe_labeling(z, labeled, jnp.ones_like(z), mask=mask)
        expected = losses.lbe_labeling(z, labeled, memory["posterior"][rows], mask=mask)
        return jnp.where(progress < warm_up, observed, expected)

    change, moments = _ADAM.update(jax.grad(objective)(memory["eta"]), memory["moments"])
    eta = jax.tree.map(lambda old, move: old - labeling_lr * move, memory["eta"], change)
    now = losses.lbe_posterior(forward(params), forward(eta))
    return {"eta": eta, "moments": moments, "posterior": written(memory["posterior"], rows, now, mask)}


LABELING = Memory(unbiased, labeling)
"""The network η that says how likely a positive is to be labeled, and P(y = 1 | x, s = 0) of every row (LBE)."""
