"""What a network is: a pair of pure functions, and where its last bias starts."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Float

from jaxpu.types import ScalarLike

Params = dict[str, Any]
"""What is trained: a tree of arrays, most often nested dictionaries."""

ModelState = dict[str, Any]
"""What a forward pass in training changes and no gradient does: running statistics. Empty for most networks."""


class Apply(Protocol):
    """``apply(params, state, x, key=None, train=False, mask=None) -> (logits, state)``."""

    def __call__(
        self,
        params: Params,
        state: ModelState,
        x: Float[Array, "n ..."],
        *,
        key: Array | None = None,
        train: bool = False,
        mask: Float[Array, " n"] | None = None,
    ) -> tuple[Float[Array, "n ..."], ModelState]:
        """Logits of the rows x, and the state after them.

        With ``train`` the key draws dropout, statistics are those of the rows with mask 1, and the state moves;
        without it the state is given back as it came, and a row's logits depend on this row alone.
        """
        ...


class Variables(NamedTuple):
    """Parameters with the state that belongs to them: all that ``apply`` needs besides rows."""

    params: Params
    state: ModelState


class Model(NamedTuple):
    """A network.

    Attributes:
        init: ``init(key, shape) -> (params, state)`` for rows of a shape.
        apply: see :class:`Apply`; logits are (n,), or (n, outputs) where there are several outputs.
        last_bias: path to the leaf of the parameters that is added to the logits and nothing else. None = it is
            looked for (:func:`last_bias`).
    """

    init: Callable[[Array, tuple[int, ...]], tuple[Params, ModelState]]
    apply: Apply
    last_bias: tuple[Any, ...] | None = None

    def logits(self, variables: Variables, x: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
        """Logits of the rows x, outside of training."""
        return self.apply(*variables, x)[0]


def start(model: Model, key: Array, shape: tuple[int, ...], initial_p: ScalarLike = float("nan")) -> Variables:
    """Parameters and state before the first step; the last bias starts at logit(``initial_p``).

    So an untrained network predicts about ``initial_p``. NaN leaves the bias as drawn; ``initial_p`` may be traced.

    Args:
        model: the network. key: of its draw. shape: of one row. initial_p: in (0, 1), or NaN.

    Raises:
        ValueError: the model has no last bias, and initial_p is a number. Where it is traced, parameters are NaN then.

    >>> from jaxpu import models
    >>> from jaxpu.config import ModelConfig
    >>> model = models.build(ModelConfig(hidden=(4,), dropout=()), (3,))
    >>> round(float(start(model, jax.random.key(0), (3,), 0.5).params["head"]["bias"][0]), 4)
    0.0
    """
    params, state = model.init(key, shape)
    as_drawn = jnp.isnan(initial_p)
    known = not isinstance(as_drawn, Tracer)
    if known and bool(as_drawn):
        return Variables(params, state)
    path = model.last_bias or last_bias(model, shape)
    if path is None:
        if known:
            raise ValueError(_NO_LAST_BIAS)
        return Variables(jax.tree.map(lambda leaf: jnp.where(as_drawn, leaf, jnp.nan), params), state)

    def started(where: tuple[Any, ...], leaf: Array) -> Array:
        same = tuple(_name(part) for part in where) == path
        return jnp.where(as_drawn, leaf, jnp.full_like(leaf, _logit(initial_p))) if same else leaf

    return Variables(jax.tree_util.tree_map_with_path(started, params), state)


def shapes(model: Model, shape: tuple[int, ...]) -> Variables:
    """Shapes and types of a model's parameters and state for rows of a shape; nothing is computed.

    >>> from jaxpu import models
    >>> from jaxpu.config import ModelConfig
    >>> shapes(models.build(ModelConfig(name="linear"), (3,)), (3,)).params["head"]["kernel"].shape
    (3, 1)
    """
    return Variables(*jax.eval_shape(lambda: model.init(jax.random.key(0), shape)))


def activations(model: Model, shape: tuple[int, ...]) -> int:
    """Numbers that a network computes on the way from one row to its logits.

    >>> from jaxpu import models
    >>> from jaxpu.config import ModelConfig
    >>> linear, wide = ModelConfig(name="linear"), ModelConfig(hidden=(100,), dropout=())
    >>> activations(models.build(linear, (3,)), (3,)) < 100 < activations(models.build(wide, (3,)), (3,))
    True
    """
    one = jax.ShapeDtypeStruct((1, *shape), jnp.float32)
    steps = jax.make_jaxpr(model.logits)(shapes(model, shape), one).eqns
    return sum(math.prod(variable.aval.shape) for step in steps for variable in step.outvars)  # pyright: ignore[reportAttributeAccessIssue]


def check_start(model: Model, shape: tuple[int, ...]) -> None:
    """Refuse a model without a last bias, whose untrained prediction cannot be set.

    Raises:
        ValueError: it has none; says what to do.
    """
    if model.last_bias is None and last_bias(model, shape) is None:
        raise ValueError(_NO_LAST_BIAS)


_NO_LAST_BIAS = (
    "training.initial_p sets the last bias of the network, and this one has none: no parameter is added to the logits "
    "as it is. Take training.initial_p: init, or let the network end in a layer with a bias"
)

DRAWS, ROWS = 3, 4


@functools.lru_cache(maxsize=64)
def last_bias(model: Model, shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Path to the leaf of the parameters whose Jacobian onto the logits is the identity, or None.

    ∂z_ij/∂b_k = 1 where j = k and 0 else, at random parameters, state and rows, and exactly: a bias behind which there
    is a non-linearity, a scale or a normalisation is none. Of several the first one is taken. Tangents are small
    integers, which no precision rounds.

    >>> from jaxpu import models
    >>> from jaxpu.config import ModelConfig
    >>> last_bias(models.build(ModelConfig(hidden=(4,), dropout=()), (3,)), (3,))
    ('head', 'bias')
    """
    params, state = shapes(model, shape)
    rows = jax.ShapeDtypeStruct((ROWS, *shape), jnp.float32)
    logits, _ = jax.eval_shape(model.apply, params, state, rows)
    leaves, structure = jax.tree_util.tree_flatten_with_path(params)
    outputs = logits.size // ROWS
    places = [i for i, (_, leaf) in enumerate(leaves) if leaf.size == outputs]

    def moved(leaves: list[Array], state: ModelState, x: Array, tangents: dict[int, Array]) -> dict[int, Array]:
        """What each of the leaves in question, moved by its tangent, adds to the logits: 0 if that is the tangent."""

        def of_leaf(place: int, leaf: Array) -> Array:
            return model.apply(structure.unflatten([*leaves[:place], leaf, *leaves[place + 1 :]]), state, x)[0]

        def error(place: int) -> Array:
            tangent = tangents[place]
            _, change = jax.jvp(functools.partial(of_leaf, place), (leaves[place],), (tangent,))
            return jnp.abs(change.reshape(ROWS, -1) - tangent.reshape(1, -1)).max()

        return {place: error(place) for place in places}

    rng = np.random.default_rng(0)
    with jax.ensure_compile_time_eval():
        run, exact = jax.jit(moved), set(places)
        for _ in range(DRAWS):
            drawn = [_drawn(rng, leaf) for _, leaf in leaves]
            positive = jax.tree.map(lambda leaf: np.abs(_drawn(rng, leaf)), state)
            x = rng.normal(size=rows.shape).astype(np.float32)
            tangents = {p: rng.integers(-4, 5, leaves[p][1].shape).astype(leaves[p][1].dtype) for p in places}
            tangents = {p: np.where(t == 0, 5, t).astype(t.dtype) for p, t in tangents.items()}
            exact &= {place for place, error in run(drawn, positive, x, tangents).items() if float(error) == 0.0}
    return tuple(_name(part) for part in leaves[min(exact)][0]) if exact else None


def _drawn(rng: np.random.Generator, leaf: jax.ShapeDtypeStruct) -> np.ndarray:
    """Random numbers of the size that keeps activations near 1."""
    fan_in = np.prod(leaf.shape[:-1]) if len(leaf.shape) > 1 else 1.0
    return np.asarray(rng.normal(size=leaf.shape) / np.sqrt(fan_in)).astype(leaf.dtype)


def _name(part: Any) -> Any:
    """The key, index or attribute that one step of a path takes."""
    for kind in ("key", "idx", "name"):
        if hasattr(part, kind):
            return getattr(part, kind)
    return part


def _logit(p: ScalarLike) -> Array:
    clipped = jnp.clip(jnp.asarray(p, jnp.float32), 1e-6, 1 - 1e-6)
    return jnp.log(clipped) - jnp.log1p(-clipped)
