"""The networks that have a name."""

import math
from typing import cast

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array
from jaxtyping import Float

from jaxpu.config import ModelConfig
from jaxpu.models.convolutional import NETWORKS, Convolutional
from jaxpu.models.layers import dropout_words, relu_dropout, with_channels
from jaxpu.models.model import Model, ModelState, Params
from jaxpu.models.own import of_module


def _uniform_fan_in(key: Array, shapes: Params) -> Params:
    """U(±1/sqrt(fan_in)) for every kernel and bias, from one draw: a draw a layer takes seconds to compile.

    Normalisations, which have no kernel, start as the identity, here as in torch.
    """
    params: Params = {layer: {} for layer in shapes}
    leaves = [(layer, name, leaf) for layer, named in shapes.items() for name, leaf in named.items()]
    for layer, name, leaf in leaves:
        params[layer][name] = jnp.full(leaf.shape, float(name == "scale"))
    leaves = [(layer, name, leaf) for layer, name, leaf in leaves if "kernel" in shapes[layer]]
    draws = jax.random.uniform(key, (sum(leaf.size for *_, leaf in leaves),), minval=-1.0, maxval=1.0)
    start = 0
    for layer, name, leaf in leaves:
        bound = 1.0 / math.sqrt(math.prod(shapes[layer]["kernel"].shape[:-1]))
        params[layer][name] = bound * draws[start : start + leaf.size].reshape(leaf.shape)
        start += leaf.size
    return params


class _Mlp(nn.Module):
    """Convolutions that halve the image, if any, dense layers with ReLU and dropout, and a head.

    No layer before the head makes it linear. One output is (n,).
    """

    channels: tuple[int, ...]
    hidden: tuple[int, ...]
    dropout: tuple[float, ...]
    outputs: int

    @nn.compact
    def __call__(self, x: Array, key: Array | None = None) -> Array:
        x = with_channels(x) if self.channels else x
        for i, width in enumerate(self.channels):
            x = nn.relu(nn.Dense(width, name=f"conv{i}")(_patches(x)))
        x = x.reshape(x.shape[0], -1)
        rates = [*self.dropout, *[0.0] * len(self.hidden)]
        dropped = [width if rate > 0 else 0 for width, rate in zip(self.hidden, rates, strict=False)]
        words = None if key is None else dropout_words(key, x.shape[0], sum(dropped))
        for i, width in enumerate(self.hidden):
            z = nn.Dense(width, name=f"layer{i}")(x)
            if words is not None and dropped[i]:
                start = sum(dropped[:i])
                x = relu_dropout(z, words[:, start : start + width], rates[i])
            else:
                x = nn.relu(z)
        out = nn.Dense(self.outputs, name="head")(x)
        return out[:, 0] if self.outputs == 1 else out


class _ResNet(nn.Module):
    """Residual network for small images (He et al., CVPR 2016, section 4.2), with group instead of batch normalisation.

    Groups of a row's own channels keep a run a pure function: there are no running means to carry along, and a row's
    logits do not depend on which others are in its batch.
    """

    channels: tuple[int, ...]
    blocks: int
    outputs: int

    @nn.compact
    def __call__(self, x: Array, key: Array | None = None) -> Array:
        def convolved(x: Array, width: int, name: str, stride: int = 1, size: int = 3) -> Array:
            x = nn.Conv(width, (size, size), strides=stride, use_bias=False, name=name)(x)
            return nn.GroupNorm(math.gcd(width, 8), name=f"{name}_norm")(x)

        x = nn.relu(convolved(with_channels(x), self.channels[0], "conv"))
        for stage, width in enumerate(self.channels):
            for block in range(self.blocks):
                name, stride = f"stage{stage}_block{block}", 1 + (stage > 0 and block == 0)
                y = nn.relu(convolved(x, width, f"{name}_first", stride))
                y = convolved(y, width, f"{name}_second")
                x = nn.relu(y + (x if x.shape == y.shape else convolved(x, width, f"{name}_shortcut", stride, 1)))
        out = nn.Dense(self.outputs, name="head")(x.mean(axis=(1, 2)))
        return out[:, 0] if self.outputs == 1 else out


def _patches(x: Float[Array, "n h w c"]) -> Float[Array, "n half_h half_w nine_c"]:
    """The 3 x 3 surroundings of every second pixel, 0 outside: a dense layer on them is a convolution of stride 2.

    Its gradient is a matrix product, too, where that of a strided convolution is a dilated one, which is slow on a CPU;
    and networks side by side become one batched product, not a grouped convolution.
    """
    height, width = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifted = [padded[:, i : i + height : 2, j : j + width : 2] for i in range(3) for j in range(3)]
    return jnp.concatenate(shifted, axis=-1)


def preset(config: ModelConfig, outputs: int) -> Model:
    """The model of a name.

    ``torch`` initialisation draws weights and biases from U(±1/sqrt(fan_in)), as torch.nn.Linear and Conv2d do;
    ``lecun`` draws weights from LeCun's normal and starts biases at 0.

    Raises:
        ValueError: when it is used, of convolutions over rows that are no images.

    >>> model = preset(ModelConfig(name="linear"), 1)
    >>> params, state = model.init(jax.random.key(0), (3,))
    >>> model.apply(params, state, jnp.zeros((5, 3)))[0].shape, state
    ((5,), {})
    """
    if config.name in NETWORKS:
        return _convolutional(config, outputs)
    if config.name == "resnet":
        module: nn.Module = _ResNet(config.channels, config.blocks, outputs)
    elif config.name == "linear":
        module = _Mlp((), (), (), outputs)
    else:
        module = _Mlp(config.channels if config.name == "cnn" else (), config.hidden, config.dropout, outputs)

    def init(key: Array, shape: tuple[int, ...]) -> tuple[Params, ModelState]:
        one_row = jnp.zeros((1, *shape))
        if config.init == "torch":
            return _uniform_fan_in(key, jax.eval_shape(module.init, key, one_row)["params"]), {}
        return cast(Params, module.init(key, one_row)["params"]), {}

    def apply(
        params: Params,
        state: ModelState,
        x: Array,
        *,
        key: Array | None = None,
        train: bool = False,
        mask: Array | None = None,
    ) -> tuple[Array, ModelState]:
        return cast(Array, module.apply({"params": params}, x, key if train else None)), state

    return Model(init, apply, ("head", "bias"))


def _convolutional(config: ModelConfig, outputs: int) -> Model:
    """A network of :data:`jaxpu.models.convolutional.NETWORKS`, with BatchNorm's running statistics as its state."""
    model = of_module(Convolutional(config.name, outputs))

    def init(key: Array, shape: tuple[int, ...]) -> tuple[Params, ModelState]:
        params, state = model.init(key, shape)
        return (_uniform_fan_in(key, params) if config.init == "torch" else params), state

    return model._replace(init=init, last_bias=("head", "bias"))
