"""What several networks are built of: dropout, and images with their channels."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, UInt32


def dropout_words(key: Array, rows: int, width: int) -> UInt32[Array, "half width"]:
    """Random words for the dropout of ``rows`` rows: one 32-bit word decides the same entry of two rows.

    Random bits are the largest removable cost of a small network on CPU; sixteen bits a decision halve it, and
    one draw for all layers is cheaper to compile and to start than one a layer.
    """
    return jax.random.bits(key, ((rows + 1) // 2, width), "uint32")


def dropout(words: UInt32[Array, "half width"], x: Float[Array, "n width"], rate: float) -> Float[Array, "n width"]:
    """Inverted dropout: each entry is kept with probability 1 - rate and divided by it.

    The keep probability is rounded to a multiple of 2⁻¹⁶ and the scale uses the rounded value, so the expectation
    of the output is exactly x.

    Args:
        words: from :func:`dropout_words`. x: activations. rate: share of entries set to zero, in [0, 1).

    >>> y = dropout(dropout_words(jax.random.key(0), 100, 10), jnp.ones((100, 10)), 0.25)
    >>> [round(float(v), 4) for v in jnp.unique(y)]
    [0.0, 1.3333]
    """
    kept = round((1.0 - rate) * 2**16)
    halves = jnp.concatenate([words & 0xFFFF, words >> 16])[: x.shape[0]]
    return jnp.where(halves < kept, x * (2**16 / kept), 0.0)


def with_channels(x: Array) -> Array:
    """Images as (n, h, w, c): grey ones get their one channel.

    Raises:
        ValueError: the rows are no images.
    """
    if x.ndim not in (3, 4):
        raise ValueError(
            f"convolutions want rows of shape (h, w) or (h, w, c), got {x.shape[1:]}; "
            "take model.name mlp, or image data (of digits with data.options {as_images: 1})"
        )
    return x[..., None] if x.ndim == 3 else x
