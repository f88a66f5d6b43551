"""Networks of the user: Flax modules and pairs of functions, behind the same two pure functions as ours."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, cast

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxpu.config import ModelConfig
from jaxpu.functions import label, load
from jaxpu.models.model import Model, ModelState, Params, shapes

ACCEPTED = (
    "a flax.linen module (its class with model.arguments, or made), a pair of functions (init, apply), or a "
    "jaxpu.models.Model"
)


def own(config: ModelConfig, shape: tuple[int, ...], outputs: int) -> Model:
    """The model that ``config.module`` names or is: logits as they should be, everything checked once.

    Raises:
        ValueError: it is none of what :func:`of_module` and :func:`of_functions` accept, or its logits have another
            shape than (rows,), (rows, outputs).

    >>> model = own(ModelConfig(module="flax.linen:Dense", arguments={"features": 1}), (3,), 1)
    >>> params, state = model.init(jax.random.key(0), (3,))
    >>> model.apply(params, state, jnp.zeros((5, 3)))[0].shape
    (5,)
    """
    return _checked(_as_model(_made(config)), shape, outputs)


def of_module(module: nn.Module) -> Model:
    """A Flax Linen module as a model; variables other than ``params`` are its state.

    It is called as ``module(x)``, and with those of these keywords that its ``__call__`` has: ``train``,
    ``training`` or ``is_training``; ``deterministic`` or ``use_running_average``, both = not train; ``mask``, (n,), 1
    where a row is one and 0 on padding. ``nn.Dropout`` and ``nn.BatchNorm`` inside that are told nothing are told by
    us, so ``nn.Dropout(0.5)(x)`` is enough. Random numbers of training come from the stream ``dropout``.

    Padding never reaches BatchNorm's statistics: every ``nn.BatchNorm`` gets the mask of the rows. For this the rows
    must be the first axis of what it normalises.

    Raises:
        ValueError: when it is used, of a ``__call__`` with an argument that nobody gives, and of BatchNorm over
            something whose first axis is not that of the rows.

    >>> params, state = of_module(nn.BatchNorm()).init(jax.random.key(0), (2,))
    >>> sorted(params), {name: leaf.tolist() for name, leaf in state["batch_stats"].items()}
    (['bias', 'scale'], {'mean': [0.0, 0.0], 'var': [1.0, 1.0]})
    """
    known = inspect.signature(type(module).__call__).parameters
    foreign = [n for n, p in list(known.items())[2:] if n not in _KEYWORDS and p.default is p.empty and _named(p)]
    if foreign:
        raise ValueError(
            f"{type(module).__name__}.__call__ wants {', '.join(foreign)}, which nobody gives; a network is called "
            f"with x and those of {', '.join(_KEYWORDS)} that it has"
        )

    def keywords(train: bool, mask: Array | None) -> dict[str, Any]:
        return {name: value(train, mask) for name, value in _KEYWORDS.items() if name in known}

    def init(key: Array, shape: tuple[int, ...]) -> tuple[Params, ModelState]:
        drawn, dropped = jax.random.split(key)
        rngs = {"params": drawn, "dropout": dropped}
        with nn.intercept_methods(_teller(False, None)):
            variables = dict(module.init(rngs, jnp.zeros((1, *shape)), **keywords(False, None)))
        return cast(Params, variables.pop("params", {})), variables

    def apply(
        params: Params,
        state: ModelState,
        x: Array,
        *,
        key: Array | None = None,
        train: bool = False,
        mask: Array | None = None,
    ) -> tuple[Array, ModelState]:
        rngs = {"dropout": key} if train and key is not None else {}
        variables = {"params": params, **state}
        with nn.intercept_methods(_teller(train, mask)):
            if not train:
                return cast(Array, module.apply(variables, x, rngs=rngs, **keywords(train, mask))), state
            mutable = list(state)
            logits, moved = module.apply(variables, x, rngs=rngs, mutable=mutable, **keywords(train, mask))
        # a state keeps its precision, whatever was computed with
        return logits, jax.tree.map(lambda new, old: new.astype(old.dtype), {**state, **moved}, dict(state))

    return Model(init, apply)


_KEYWORDS: dict[str, Callable[[bool, Array | None], Any]] = {
    "train": lambda train, mask: train,
    "training": lambda train, mask: train,
    "is_training": lambda train, mask: train,
    "deterministic": lambda train, mask: not train,
    "use_running_average": lambda train, mask: not train,
    "mask": lambda train, mask: mask,
}


def _named(parameter: inspect.Parameter) -> bool:
    return parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def _teller(train: bool, mask: Array | None) -> Callable[..., Any]:
    """What tells every Dropout and BatchNorm of a module whether this is training, and which rows count."""

    def tell(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], context: Any) -> Any:
        module = context.module
        if context.method_name == "__call__" and isinstance(module, nn.Dropout | nn.BatchNorm):
            name = "deterministic" if isinstance(module, nn.Dropout) else "use_running_average"
            told = getattr(module, name) is not None or len(args) > 1 or kwargs.get(name) is not None
            kwargs = kwargs if told else {**kwargs, name: not train}
            if isinstance(module, nn.BatchNorm) and train and mask is not None:
                kwargs = {**kwargs, "mask": _rows_that_count(args[0] if args else kwargs["x"], mask, kwargs)}
        return call(*args, **kwargs)

    return tell


def _rows_that_count(x: Array, mask: Array, kwargs: dict[str, Any]) -> Array:
    """The mask of the rows in the shape that BatchNorm broadcasts, together with the module's own.

    A batch of nothing but padding counts whole: the update is thrown away, and the mean of no row would be NaN.
    """
    if x.ndim == 0 or x.shape[0] != mask.shape[0]:
        raise ValueError(
            f"BatchNorm gets an array of shape {x.shape} in a batch of {mask.shape[0]} rows, expected the rows on its "
            "first axis: padding rows could not be told from the others. Keep that axis as it is up to BatchNorm"
        )
    counts = jnp.where(mask.any(), mask, 1).astype(bool).reshape(-1, *[1] * (x.ndim - 1))
    given = kwargs.get("mask")
    return counts if given is None else counts & jnp.asarray(given).astype(bool)


def of_functions(init: Callable[..., Any], apply: Callable[..., Any]) -> Model:
    """A pair of functions without a state: ``init(key, shape) -> params``, ``apply(params, x) -> logits``.

    ``apply`` may have keywords, and gets those of ``key`` (None when not training), ``train`` and ``mask`` that it has.
    A network with a state is ``Model(init, apply)``.

    >>> model = of_functions(lambda key, shape: {"w": jnp.ones(shape)}, lambda params, x: x @ params["w"])
    >>> params, state = model.init(jax.random.key(0), (3,))
    >>> model.apply(params, state, jnp.ones((2, 3)), train=True)
    (Array([3., 3.], dtype=float32), {})
    """
    known = inspect.signature(apply).parameters

    def begin(key: Array, shape: tuple[int, ...]) -> tuple[Params, ModelState]:
        return init(key, shape), {}

    def call(
        params: Params,
        state: ModelState,
        x: Array,
        *,
        key: Array | None = None,
        train: bool = False,
        mask: Array | None = None,
    ) -> tuple[Array, ModelState]:
        given = {"key": key if train else None, "train": train, "mask": mask}
        return apply(params, x, **{name: value for name, value in given.items() if name in known}), state

    return Model(begin, call)


def _made(config: ModelConfig) -> Any:
    """The object that a configuration names, made with its arguments."""
    thing = load(config.module) if isinstance(config.module, str) else config.module
    is_factory = isinstance(thing, type) or inspect.isfunction(thing)
    if not is_factory:
        if config.arguments:
            raise ValueError(f"model.arguments are given, and model.module is no class or function but {label(thing)}")
        return thing
    if _of(thing.__mro__ if isinstance(thing, type) else (), "flax.nnx"):
        raise ValueError(_NO_NNX)
    try:
        return thing(**config.arguments)
    except TypeError as error:
        raise ValueError(f"model.arguments do not fit {label(thing)}: {error}") from None


def _as_model(thing: Any) -> Model:
    if isinstance(thing, Model):
        return thing
    if isinstance(thing, nn.Module):
        return of_module(thing)
    if isinstance(thing, tuple) and len(thing) == 2 and all(map(callable, thing)):
        return of_functions(*thing)
    if _of(type(thing).__mro__, "flax.nnx"):
        raise ValueError(_NO_NNX)
    raise ValueError(f"model.module is {thing!r}, expected {ACCEPTED}")


_NO_NNX = (
    "model.module is a module of flax.nnx, whose parameters live in the object; expected one of flax.linen, or a "
    "jaxpu.models.Model whose init and apply do nnx.split and nnx.merge"
)


def _of(classes: Iterable[type], package: str) -> bool:
    return any(one.__module__.startswith(package) for one in classes)


def _checked(model: Model, shape: tuple[int, ...], outputs: int) -> Model:
    """The same, with logits (n,) or (n, outputs) in at least float32; looked at once, without computing anything."""

    def apply(
        params: Params,
        state: ModelState,
        x: Array,
        *,
        key: Array | None = None,
        train: bool = False,
        mask: Array | None = None,
    ) -> tuple[Array, ModelState]:
        logits, state = model.apply(params, state, x, key=key, train=train, mask=mask)
        wanted = ((x.shape[0],), (x.shape[0], 1)) if outputs == 1 else ((x.shape[0], outputs),)
        if logits.shape not in wanted:
            raise ValueError(
                f"the model gives logits of shape {logits.shape} for {x.shape[0]} rows of shape {shape}, expected "
                f"{wanted[-1]}: let its last layer have {outputs} output{'s' if outputs > 1 else ''}"
            )
        logits = logits[:, 0] if outputs == 1 and logits.ndim == 2 else logits
        return logits.astype(jnp.promote_types(logits.dtype, jnp.float32)), state

    key = jax.eval_shape(lambda: jax.random.key(0))
    params, state = shapes(model, shape)
    rows, ones = (jax.ShapeDtypeStruct(s, jnp.float32) for s in ((2, *shape), (2,)))
    jax.eval_shape(apply, params, state, rows)
    _, moved = jax.eval_shape(functools.partial(apply, train=True), params, state, rows, key=key, mask=ones)
    form, before = (jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree) for tree in (moved, state))
    if form != before:
        raise ValueError(f"the model's state changes its form in training: from {state} to {moved}, expected the same")
    return model._replace(apply=apply)
