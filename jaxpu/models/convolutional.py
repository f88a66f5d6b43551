"""Convolutional networks of the benchmark of PU methods, each a list of layers, and the convolution that they share."""

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array, lax
from jaxtyping import Float

from jaxpu.models.layers import dropout, dropout_words, with_channels

How = Literal["patches", "shifts", "lax"]


class Layer(NamedTuple):
    """One layer: ``conv`` (width, size, stride, padding), ``dense`` (width), ``drop`` (rate), or a word alone.

    ``pooled`` is a convolution, the largest of each 2 x 2 of its outputs, and ReLU.
    """

    kind: Literal["conv", "pooled", "dense", "drop", "norm", "relu", "pool", "mean", "flat"]
    width: int = 0
    size: int = 3
    stride: int = 1
    padding: int = 1
    rate: float = 0.0


NORM, RELU, POOL, MEAN, FLAT = (Layer(kind) for kind in ("norm", "relu", "pool", "mean", "flat"))


def _conv(width: int, stride: int = 1) -> list[Layer]:
    return [Layer("conv", width, stride=stride), NORM, RELU]


def _dense(width: int) -> list[Layer]:
    return [Layer("dense", width), RELU]


def _drop(rate: float) -> list[Layer]:
    return [Layer("drop", rate=rate)]


def _pair(width: int, rate: float) -> list[Layer]:
    return [*_conv(width), *_conv(width), POOL, *_drop(rate)]


def _small(width: int) -> list[Layer]:
    return [Layer("pooled", width, size=5, padding=0)]


NETWORKS: dict[str, tuple[Layer, ...]] = {
    "lenet": (*_small(10), *_small(20), FLAT, *_dense(50)),
    "cifar_net": (
        *(*_conv(96), *_conv(96)),
        *(*_conv(96, 2), *_drop(0.2), *_conv(192)),
        *(*_conv(192), *_conv(192, 2), *_drop(0.5)),
        *(FLAT, *_dense(1000), *_drop(0.5), *_dense(1000)),
    ),
    "mri_net": (
        *(*_pair(32, 0.1), *_pair(64, 0.1), *_pair(128, 0.2), *_pair(256, 0.3)),
        *(MEAN, *_dense(64), *_drop(0.3)),
    ),
}
"""Layers by network, before its head: LeNet for 28 x 28, for 32 x 32 in colour, and for slices of 128 x 128.

Source: the public code of PU-Bench (arXiv 2025), whose layers these are. There the last axes are flattened channels
first, here last: the same networks with their inputs in another order.
"""


SMALLEST = {"lenet": 16, "cifar_net": 4, "mri_net": 16}
"""Height and width that leave a pixel to the last layer."""


class Convolutional(nn.Module):
    """A network of :data:`NETWORKS` with a head; its last layer is the head's bias.

    BatchNorm as PyTorch has it: momentum 0.1 of the new, epsilon 1e-5; running variances are those of the batch, not
    times n / (n - 1) as there.
    """

    name_of: str
    outputs: int = 1
    how: How | None = None

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        """Logits (n,), or (n, outputs) of several."""
        x, key = with_channels(x), self.make_rng("dropout") if train else None
        if min(x.shape[1:3]) < SMALLEST[self.name_of]:
            smallest = SMALLEST[self.name_of]
            raise ValueError(f"{self.name_of} wants images of at least {smallest} x {smallest}, got {x.shape[1:3]}")
        for place, layer in enumerate(NETWORKS[self.name_of]):
            if layer.kind in ("conv", "pooled"):
                x = _Conv(layer, self.how, name=f"conv{place}")(x)
            elif layer.kind == "dense":
                x = nn.Dense(layer.width, name=f"dense{place}")(x)
            elif layer.kind == "norm":
                x = nn.BatchNorm(momentum=0.9, epsilon=1e-5, name=f"norm{place}")(x)
            elif layer.kind == "drop" and key is not None:
                flat = x.reshape(len(x), -1)
                words = dropout_words(jax.random.fold_in(key, place), *flat.shape)
                x = dropout(words, flat, layer.rate).reshape(x.shape)
            else:
                x = _PLAIN[layer.kind](x) if layer.kind in _PLAIN else x
        out = nn.Dense(self.outputs, name="head")(x)
        return out[:, 0] if self.outputs == 1 else out


class _Conv(nn.Module):
    """Parameters of a convolution, and the convolution."""

    layer: Layer
    how: How | None

    @nn.compact
    def __call__(self, x: Array) -> Array:
        width, size = self.layer.width, self.layer.size
        kernel = self.param("kernel", nn.initializers.lecun_normal(), (size, size, x.shape[-1], width))
        bias = self.param("bias", nn.initializers.zeros_init(), (width,))
        if self.layer.kind == "pooled":
            return convolve_and_pool(x, kernel, bias, self.layer.padding, self.how)
        return convolve(x, kernel, self.layer.stride, self.layer.padding, self.how) + bias[None, None, None]


def max_pool(x: Float[Array, "n h w c"]) -> Float[Array, "n half_h half_w c"]:
    """The largest of each 2 x 2 pixels; a last odd row or column is left out.

    A maximum over a reshape: the gradient of ``reduce_window`` is slow on a CPU.
    """
    n, h, w, c = x.shape
    return x[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))


def convolve(
    x: Float[Array, "n h w c"],
    kernel: Float[Array, "size size c d"],
    stride: int = 1,
    padding: int = 0,
    how: How | None = None,
) -> Float[Array, "n out_h out_w d"]:
    """A convolution (a correlation, as everywhere in networks), 0 outside of the image.

    XLA's convolution for CPUs is much slower inside a loop than outside, so there it is matrix products:
    one with the surroundings of all pixels side by side (``patches``), or, where these would not fit into a cache, a
    sum over the places of the kernel (``shifts``). Elsewhere it is XLA's own (``lax``).

    Args:
        x: images. kernel: weights. stride: of both axes. padding: zeros on each side.
        how: which of the three; None = by backend and size.

    Example:
        >>> x, kernel = jnp.arange(9.0).reshape(1, 3, 3, 1), jnp.ones((2, 2, 1, 1))
        >>> [convolve(x, kernel, how=how)[0, :, :, 0].tolist() for how in ("patches", "shifts", "lax")]
        [[[8.0, 12.0], [20.0, 24.0]], [[8.0, 12.0], [20.0, 24.0]], [[8.0, 12.0], [20.0, 24.0]]]
    """
    size, _, channels, width = kernel.shape
    how = how or _best(kernel)
    if how == "lax":
        sides = ((padding, padding), (padding, padding))
        return lax.conv_general_dilated(x, kernel, (stride,) * 2, sides, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    padded = jnp.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    out_h, out_w = ((length + 2 * padding - size) // stride + 1 for length in x.shape[1:3])
    ends = (out_h - 1) * stride + 1, (out_w - 1) * stride + 1
    moved = [padded[:, i : i + ends[0] : stride, j : j + ends[1] : stride] for i in range(size) for j in range(size)]
    if how == "patches":
        return jnp.concatenate(moved, axis=-1) @ kernel.reshape(-1, width)
    weights = kernel.reshape(size * size, channels, width)
    return sum((part @ weight for part, weight in zip(moved[1:], weights[1:], strict=True)), moved[0] @ weights[0])


def convolve_and_pool(
    x: Float[Array, "n h w c"],
    kernel: Float[Array, "size size c d"],
    bias: Float[Array, " d"],
    padding: int = 0,
    how: How | None = None,
) -> Float[Array, "n half_h half_w d"]:
    """``relu(max_pool(convolve(x, kernel, 1, padding) + bias))``; with ``patches`` in one product.

    There the four outputs that are pooled are one row of the matrix product, side by side: of a window that is one
    pixel larger, by the kernel at its four places. So a quarter of the windows is laid out (of 36 pixels, not 25, for a
    kernel of 5 x 5), and the largest is taken over an axis, not over neighbors in space. Pixels are brought into
    blocks of 2 x 2 first, so that a window is made of few long pieces.

    Args:
        x: images. kernel: weights. bias: of the outputs. padding: zeros on each side. how: as in :func:`convolve`.

    Example:
        >>> x, kernel = jnp.arange(9.0).reshape(1, 3, 3, 1), jnp.ones((2, 2, 1, 1))
        >>> [float(convolve_and_pool(x, kernel, jnp.ones(1), how=how)[0, 0, 0, 0]) for how in ("patches", "lax")]
        [25.0, 25.0]
    """
    if (how or _best(kernel)) != "patches":
        return nn.relu(max_pool(convolve(x, kernel, 1, padding, how) + bias[None, None, None]))
    size, _, channels, width = kernel.shape
    half = size // 2 + 1  # blocks of 2 x 2 pixels along a window that two outputs share
    out_h, out_w = ((length + 2 * padding - size + 1) // 2 for length in x.shape[1:3])
    h, w = out_h + half - 1, out_w + half - 1
    sides = [(padding, 2 * blocks - padding - length, 0) for blocks, length in zip((h, w), x.shape[1:3], strict=True)]
    padded = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *sides, (0, 0, 0)])
    blocks = padded.reshape(-1, h, 2, w, 2, channels).transpose(0, 1, 3, 2, 4, 5).reshape(-1, h, w, 4 * channels)
    windows = [blocks[:, i : i + out_h, j : j + out_w] for i in range(half) for j in range(half)]
    free = 2 * half - size
    places = [(i, j) for i in range(2) for j in range(2)]
    kernels = [jnp.pad(kernel, ((i, free - i), (j, free - j), (0, 0), (0, 0))) for i, j in places]
    weights = jnp.stack(kernels, axis=3).reshape(half, 2, half, 2, channels, 4 * width).transpose(0, 2, 1, 3, 4, 5)
    four = jnp.concatenate(windows, axis=-1) @ weights.reshape(-1, 4 * width)
    return nn.relu(_largest(four.reshape(-1, out_h, out_w, 4, width)) + bias[None, None, None])


@jax.custom_jvp
def _largest(four: Float[Array, "n h w 4 d"]) -> Float[Array, "n h w d"]:
    """The largest of four. As that of ``max``, its gradient is shared by all that are as large; in fewer passes."""
    return four.max(axis=3)


@_largest.defjvp
def _largest_jvp(at: tuple[Array], moved: tuple[Array]) -> tuple[Array, Array]:
    largest = _largest(at[0])
    reached = [at[0][:, :, :, i] == largest for i in range(4)]
    many = functools.reduce(jnp.add, [one.astype(largest.dtype) for one in reached])
    slopes = [jnp.where(one, moved[0][:, :, :, i], 0.0) for i, one in enumerate(reached)]
    return largest, functools.reduce(jnp.add, slopes) / many


def _best(kernel: Float[Array, "size size c d"]) -> How:
    """The way that is fastest on this backend, and that fits."""
    if jax.default_backend() != "cpu":
        return "lax"
    return "patches" if kernel[..., 0].size <= MOST_IN_PATCH else "shifts"


MOST_IN_PATCH = 300
"""Numbers in the surroundings of a pixel up to which they are laid side by side: of 96 channels they would be 864, and
for a batch of 256 images of 32 x 32 a gigabyte."""

_PLAIN = {
    "relu": nn.relu,
    "pool": max_pool,
    "mean": lambda x: x.mean(axis=(1, 2)),
    "flat": lambda x: x.reshape(len(x), -1),
}
"""Layers without parameters and random numbers."""
