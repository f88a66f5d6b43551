"""Where runs go: one after the other or side by side, over a mesh with the axes ``run`` and ``batch``.

Every placement is the same program text, ``lax.map`` in chunks inside ``shard_map`` over ``run``: a chunk of one
run is the loop, a chunk of all is ``vmap``. Runs share nothing, so the axis ``run`` needs no collective. The axis
``batch`` is left to the compiler: the rows of one step are constrained to it, for a model too large for one device.
"""

import dataclasses
import functools
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxpu import models, train
from jaxpu.config import ConfigError, PlacementConfig
from jaxpu.objective import Hyper
from jaxpu.sweep.rows import Rows
from jaxpu.train.evaluation import AT_ONCE

Segment = tuple[train.State, train.History, Array]


class Slots(NamedTuple):
    """The inputs of the runs of one program, stacked: seeds (r,), row numbers (r, ...), numbers (r,)."""

    seed: Any
    rows: Rows
    hyper: Hyper


class Placement(NamedTuple):
    """A resolved placement: the mesh, the runs at once on a device, and how many runs the program holds."""

    mesh: Mesh
    kind: str
    chunk: int
    slots: int

    def describe(self) -> dict[str, Any]:
        """What provenance records of it."""
        device = self.mesh.devices.flat[0]
        return {
            "kind": self.kind,
            "runs_at_once": self.chunk,
            "slots": self.slots,
            "mesh": dict(zip(self.mesh.axis_names, self.mesh.devices.shape, strict=True)),
            "backend": device.platform,
            "device": device.device_kind,
        }


def resolve(config: PlacementConfig, static: train.Config, shape: tuple[int, ...], rows: int, runs: int) -> Placement:
    """Choose a placement for ``runs`` runs of one program.

    On CPU runs are mapped: one run already fills the vector units, and batching would only turn matrix products
    into slower batched ones. On an accelerator as many run at once as fit into half of the free memory.

    Args:
        config: what the user asked for. static: the program. shape: of one input row. rows: rows evaluated an
            epoch. runs: how many runs there are.

    Raises:
        ConfigError: if more devices are asked for than there are.
    """
    have = len(jax.devices())
    wanted = (config.devices or max(have // config.row_devices, 1)) * config.row_devices
    if wanted > have:
        raise ConfigError(f"placement asks for {wanted} devices, there are {have} ({jax.default_backend()})")
    across = min(wanted // config.row_devices, runs)
    devices = np.array(jax.devices()[: across * config.row_devices]).reshape(across, config.row_devices)
    mesh = Mesh(devices, ("run", "batch"), axis_types=(AxisType.Auto, AxisType.Auto))
    each = -(-runs // across)
    on_cpu = jax.default_backend() == "cpu"
    kind = config.kind if config.kind != "auto" else "map" if on_cpu else "chunk"
    if kind == "chunk":
        chunk = min(config.chunk or _fitting(static, shape, rows, mesh), each)
    else:
        chunk = 1 if kind == "map" else each
    part = config.part or across * (8 if on_cpu else chunk)
    per_device = min(each, max(-(-part // across), chunk))
    per_device = -(-per_device // chunk) * chunk
    return Placement(mesh, kind, chunk, per_device * across)


def _fitting(static: train.Config, shape: tuple[int, ...], rows: int, mesh: Mesh) -> int:
    """How many runs fit at once into half of a device's free memory (4 GiB where the device does not say)."""
    stats = mesh.devices.flat[0].memory_stats() or {}
    free = stats.get("bytes_limit", 8 << 30) - stats.get("bytes_in_use", 0)
    model = models.build(static.model, shape, static.outputs)
    key = jax.eval_shape(lambda: jax.random.key(0))
    variables = models.Variables(*jax.eval_shape(functools.partial(model.init, shape=shape), key))
    numbers = sum(leaf.size for leaf in jax.tree.leaves(variables))
    row = _activations(model, variables, shape)
    # two forward passes and the backward one over a batch, one over a block of the evaluation, inputs and scores
    held = (3 * static.batch_size + AT_ONCE) * row + 2 * rows * int(np.prod(shape))
    return max(int(free / 2 / (4 * (8 * numbers + held))), 1)


def _activations(model: models.Model, variables: models.Variables, shape: tuple[int, ...]) -> int:
    """Numbers that a network computes on the way from one row to its logits."""
    one = jax.ShapeDtypeStruct((1, *shape), jnp.float32)
    steps = jax.make_jaxpr(model.logits)(variables, one).eqns
    return sum(math.prod(variable.aval.shape) for step in steps for variable in step.outvars)  # pyright: ignore[reportAttributeAccessIssue]


class Program:
    """One compiled segment for one group of runs: (x, y, slots, states) -> (states, history, finished)."""

    def __init__(self, placement: Placement, static: train.Config, epochs: int):
        self.placement = placement
        mesh = placement.mesh
        if mesh.shape["batch"] > 1:
            static = dataclasses.replace(static, row_sharding=PartitionSpec("batch"))
        self._static, self._epochs = static, epochs
        self.by_run = NamedSharding(mesh, PartitionSpec("run"))
        self.everywhere = NamedSharding(mesh, PartitionSpec())
        self._run: Callable[..., Segment] | None = None
        self.compile_seconds = 0.0

    def compile(self, x: Array, y: Array, slots: Slots, states: train.State) -> None:
        """Compile for these shapes, once."""
        if self._run is not None:
            return
        began = time.perf_counter()
        leaves, structure = jax.tree.flatten((x, y, slots, states))
        shapes = tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding) for leaf in leaves)
        self._run = compiled(self.placement, self._static, self._epochs, structure, shapes)
        self.compile_seconds = time.perf_counter() - began

    def __call__(self, x: Array, y: Array, slots: Slots, states: train.State) -> Segment:
        """Run one segment; ``states`` is given up."""
        self.compile(x, y, slots, states)
        assert self._run is not None
        return self._run(x, y, slots, states)

    def empty_states(self, x: Array, rows: Rows, hyper: Hyper) -> train.State:
        """States at the end of training: what a slot without a run holds. Setting epoch to 0 starts a run."""

        def shape_of() -> train.State:
            data = train.Data(x, jnp.zeros(x.shape[0], jnp.int32), *map(jnp.asarray, rows))
            return train.init(jax.random.key(0), data, self._static, hyper)

        def stack(leaf: jax.ShapeDtypeStruct) -> np.ndarray:
            return np.zeros((self.placement.slots, *leaf.shape), leaf.dtype)

        states = jax.tree.map(stack, jax.eval_shape(shape_of))
        return states._replace(epoch=np.full_like(states.epoch, self._static.epochs))


@functools.lru_cache(maxsize=32)
def compiled(
    placement: Placement,
    static: train.Config,
    epochs: int,
    structure: Any,
    shapes: tuple[jax.ShapeDtypeStruct, ...],
) -> Callable[..., Segment]:
    """The program of a segment for arguments of these shapes; a process compiles it once, whoever asks for it."""
    spec = PartitionSpec("run")
    sharded = jax.shard_map(
        functools.partial(_segment, placement.chunk, static, epochs),
        mesh=placement.mesh,
        in_specs=(PartitionSpec(), PartitionSpec(), spec, spec),
        out_specs=(spec, spec, spec),
        axis_names={"run"},
        check_vma=False,
    )
    return jax.jit(sharded, donate_argnums=3).lower(*structure.unflatten(shapes)).compile()


def _segment(
    at_once: int, static: train.Config, epochs: int, x: Array, y: Array, slots: Slots, states: train.State
) -> Segment:
    """Advance every slot: a slot at epoch 0 is initialised first, a finished one costs nothing."""

    def one(slot: tuple[Slots, train.State]) -> Segment:
        (seed, rows, hyper), state = slot
        key = train.key_of(seed)
        data = train.Data(x, y, *map(jnp.asarray, rows))
        start = functools.partial(train.init, key, data, static, hyper)
        state = lax.cond(state.epoch == 0, lambda s: start(), lambda s: s, state)
        state, history = train.advance(key, state, data, static, hyper, epochs)
        return state, history, train.finished(state, static)

    # a chunk of one is a plain loop: vmap, even over one run, would turn "skip" into "compute and discard"
    return lax.map(one, (slots, states), batch_size=at_once if at_once > 1 else None)
