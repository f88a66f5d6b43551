"""Networks as pairs of pure functions: those that have a name, or the user's own; the only room that knows Flax.

    init(key, shape) -> (params, state)
    apply(params, state, x, key=None, train=False, mask=None) -> (logits, state)

``params`` are trained; ``state`` is what forward passes in training change: BatchNorm's running statistics. What may
stand for a network of one's own, in Python (``ModelConfig(module=...)``) or in YAML (``module: "package.module:Class"``
with ``arguments``), says :func:`of_module`.
"""

import functools

from jaxpu.config import ModelConfig
from jaxpu.models.layers import dropout, dropout_words, relu_dropout
from jaxpu.models.model import (
    Apply,
    Model,
    ModelState,
    Params,
    Variables,
    activations,
    check_start,
    last_bias,
    shapes,
    start,
)
from jaxpu.models.own import of_functions, of_module, own
from jaxpu.models.presets import preset

__all__ = [
    "Apply",
    "Model",
    "ModelState",
    "Params",
    "Variables",
    "activations",
    "build",
    "check_start",
    "dropout",
    "dropout_words",
    "last_bias",
    "of_functions",
    "of_module",
    "relu_dropout",
    "shapes",
    "start",
]


@functools.lru_cache(maxsize=64)
def build(config: ModelConfig, shape: tuple[int, ...], outputs: int = 1) -> Model:
    """The model that a configuration describes, for rows of a ``shape``: a logit, or ``outputs`` of them.

    Equal arguments give the same object.

    Raises:
        ValueError: of a module of the user: it is nothing that can be a network, or its logits have another shape.

    >>> import jax, jax.numpy as jnp
    >>> model = build(ModelConfig(hidden=(4,), dropout=()), (3,))
    >>> params, state = model.init(jax.random.key(0), (3,))
    >>> model.apply(params, state, jnp.zeros((5, 3)))[0].shape
    (5,)
    """
    return preset(config, outputs) if config.module is None else own(config, shape, outputs)
