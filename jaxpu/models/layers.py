"""What several networks are built of: dropout, and images with their channels."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, UInt32

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def dropout_words(key: Array, rows: int, width: int) -> UInt32[Array, "half width"]:
    """Random words for the dropout of ``rows`` rows: one 32-bit word decides the same entry of two rows.

    Random bits are the largest removable cost of a small network on CPU; sixteen bits a decision halve it, and
    one draw for all layers is cheaper to start than one a layer.

    The words are those of ``jax.random.bits(key, (half, width), "uint32")``: Threefry-2x32 with 20 rounds (Salmon et
    al., SC 2011) of a counter, its two words combined. There a CPU goes through all words five times in a loop, with
    rotations that it does not know; here they are written out. The loop over two halves is there so that words are
    computed once and kept: all in one expression, XLA would compute them again wherever they are used.

    Args:
        key: a random key; one of another generator draws with ``jax.random.bits``. rows, width: of the activations.

    >>> key = jax.random.key(0)
    >>> bool((dropout_words(key, 5, 7) == jax.random.bits(key, (3, 7), "uint32")).all())
    True
    """
    half = (rows + 1) // 2
    if jax.random.key_impl(key) != "threefry2x32":
        return jax.random.bits(key, (half, width), "uint32")
    each = -(-half // 2)
    blocks = lax.map(lambda block: _threefry(key, block * (each * width), each * width), jnp.arange(2, dtype="uint32"))
    return blocks.reshape(2 * each, width)[:half]


def _threefry(key: Array, start: UInt32[Array, ""], size: int) -> UInt32[Array, " size"]:
    """The words of the counters from ``start`` on."""
    first, second = jax.random.key_data(key)
    keys = (first, second, first ^ second ^ jnp.uint32(_PARITY))
    a = jnp.broadcast_to(first, (size,))
    b = lax.iota("uint32", size) + start + second
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            a = a + b
            b = ((b << turn) | (b >> (32 - turn))) ^ a
        a, b = a + keys[(group + 1) % 3], b + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return a ^ b


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
    kept, scale = _kept(rate)
    return jnp.where(_sixteen_bits(words, len(x)) < kept, x * scale, 0.0)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def relu_dropout(
    z: Float[Array, "n width"], words: UInt32[Array, "half width"], rate: float
) -> Float[Array, "n width"]:
    """``dropout(words, relu(z), rate)``, whose gradient reads what came out alone: 0 where that is 0.

    So the passes back need neither z nor the words again.

    >>> words, z = dropout_words(jax.random.key(0), 4, 3), jnp.linspace(-1.0, 1.0, 12).reshape(4, 3)
    >>> bool((relu_dropout(z, words, 0.5) == dropout(words, jax.nn.relu(z), 0.5)).all())
    True
    """
    kept, scale = _kept(rate)
    return jnp.where(_sixteen_bits(words, len(z)) < kept, jax.nn.relu(z) * scale, 0.0)


@relu_dropout.defjvp
def _relu_dropout_jvp(rate: float, at: tuple[Array, Array], moved: tuple[Array, Any]) -> tuple[Array, Array]:
    out = relu_dropout(*at, rate)  # words have no tangent
    return out, jnp.where(out > 0, moved[0] * _kept(rate)[1], 0.0)


def _kept(rate: float) -> tuple[int, float]:
    """Of 2¹⁶ values those that keep an entry, and what a kept entry is multiplied by."""
    kept = round((1.0 - rate) * 2**16)
    return kept, 2**16 / kept


def _sixteen_bits(words: UInt32[Array, "half width"], rows: int) -> UInt32[Array, "rows width"]:
    """The lower halves of the words, one a row, then the upper ones."""
    shifts = jnp.array([0, 16], "uint32")[:, None, None]
    return ((words[None] >> shifts) & 0xFFFF).reshape(-1, words.shape[1])[:rows]


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
