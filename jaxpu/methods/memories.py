"""What registered methods carry over steps, each a :class:`jaxpu.methods.Memory`; presets say where it is."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxpu.methods.method import Memory
from jaxpu.types import Logits, Mask, Rows


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
