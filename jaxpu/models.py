"""Networks as a pair of pure functions; the only file that knows Flax."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, cast

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array
from jaxtyping import Float, UInt32

from jaxpu.config import ModelConfig
from jaxpu.types import ScalarLike

Params = dict[str, Any]


class Apply(Protocol):
    """``apply(params, x, key=None)``: logits of rows x; a key switches dropout on."""

    def __call__(self, params: Params, x: Float[Array, "n ..."], key: Array | None = None) -> Float[Array, "n ..."]:
        """Logits of the rows x."""
        ...


class Model(NamedTuple):
    """A network: ``init(key, initial_p) -> params``, ``apply(params, x, key=None) -> logits`` (n,) or (n, outputs)."""

    init: Callable[[Array, ScalarLike], Params]
    apply: Apply


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


def _uniform_fan_in(key: Array, shapes: Params) -> Params:
    """U(±1/sqrt(fan_in)) for every kernel and bias, from one draw: a draw a layer takes seconds to compile."""
    leaves = [(layer, name, leaf) for layer, named in shapes.items() for name, leaf in named.items()]
    draws = jax.random.uniform(key, (sum(leaf.size for *_, leaf in leaves),), minval=-1.0, maxval=1.0)
    params: Params = {layer: {} for layer in shapes}
    start = 0
    for layer, name, leaf in leaves:
        bound = 1.0 / math.sqrt(shapes[layer]["kernel"].shape[0])
        params[layer][name] = bound * draws[start : start + leaf.size].reshape(leaf.shape)
        start += leaf.size
    return params


class _Mlp(nn.Module):
    """Dense layers with ReLU and dropout, and a head; no hidden layer makes it linear. One output is (n,)."""

    hidden: tuple[int, ...]
    dropout: tuple[float, ...]
    outputs: int

    @nn.compact
    def __call__(self, x: Array, key: Array | None = None) -> Array:
        x = x.reshape(x.shape[0], -1)
        rates = [*self.dropout, *[0.0] * len(self.hidden)]
        dropped = [width if rate > 0 else 0 for width, rate in zip(self.hidden, rates, strict=False)]
        words = None if key is None else dropout_words(key, x.shape[0], sum(dropped))
        for i, width in enumerate(self.hidden):
            x = nn.relu(nn.Dense(width, name=f"layer{i}")(x))
            if words is not None and dropped[i]:
                start = sum(dropped[:i])
                x = dropout(words[:, start : start + width], x, rates[i])
        out = nn.Dense(self.outputs, name="head")(x)
        return out[:, 0] if self.outputs == 1 else out


def _logit(p: ScalarLike) -> Array:
    clipped = jnp.clip(jnp.asarray(p, jnp.float32), 1e-6, 1 - 1e-6)
    return jnp.log(clipped) - jnp.log1p(-clipped)


@functools.lru_cache(maxsize=64)
def build(config: ModelConfig, shape: tuple[int, ...], outputs: int = 1) -> Model:
    """The model that a configuration describes, for inputs of one row's ``shape``: a logit, or ``outputs`` of them.

    ``torch`` initialisation draws weights and biases from U(±1/sqrt(fan_in)), as torch.nn.Linear does;
    ``lecun`` draws weights from LeCun's normal and starts biases at 0. The last bias then starts at
    logit(``initial_p``), so that an untrained network predicts about that; NaN leaves it as drawn.

    >>> model = build(ModelConfig(hidden=(4,), dropout=()), (3,))
    >>> params = model.init(jax.random.key(0), 0.25)
    >>> model.apply(params, jnp.zeros((5, 3))).shape
    (5,)
    """
    hidden = config.hidden if config.name == "mlp" else ()
    rates = config.dropout if config.name == "mlp" else ()
    module = _Mlp(hidden, rates, outputs)

    def init(key: Array, initial_p: ScalarLike) -> Params:
        one_row = jnp.zeros((1, *shape))
        if config.init == "torch":
            params = _uniform_fan_in(key, jax.eval_shape(module.init, key, one_row)["params"])
        else:
            params = cast(Params, module.init(key, one_row)["params"])
        bias = params["head"]["bias"]
        params["head"]["bias"] = jnp.where(jnp.isnan(initial_p), bias, jnp.full_like(bias, _logit(initial_p)))
        return params

    def apply(params: Params, x: Array, key: Array | None = None) -> Array:
        return module.apply({"params": params}, x, key)  # pyright: ignore[reportReturnType]

    return Model(init, apply)
