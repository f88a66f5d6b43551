"""Where runs go: one after the other or side by side, over a mesh with the axes ``run`` and ``batch``.

Every placement is the same program text, ``lax.map`` in chunks inside ``shard_map`` over ``run``: a chunk of one
run is the loop, a chunk of all is ``vmap``. Runs share nothing, so the axis ``run`` needs no collective. The axis
``batch`` is left to the compiler: the rows of one step are constrained to it, for a model too large for one device.
"""

import functools
import itertools
import threading
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxpu.config import ConfigError, PlacementConfig
from jaxpu.runs import processes
from jaxpu.runs.job import Functions, Job, Tree

Segment = tuple[Tree, dict[str, Array], Array]
"""States, history, and which runs are over."""

START, GOING, EMPTY = range(3)
"""Phases of a slot: a run that has not begun, one that has, no run."""


class Slots(NamedTuple):
    """The runs of one program, stacked: phases (r,), seeds (r,), inputs (r, ...)."""

    phase: Any
    seed: Any
    inputs: Tree


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


def resolve(asked: PlacementConfig, job: Job) -> Placement:
    """Choose a placement for the runs of a job.

    On CPU runs are mapped: one run already fills the vector units, and batching would only turn matrix products
    into slower batched ones. On an accelerator as many run at once as fit into half of the free memory.

    Args:
        asked: what the user asked for. job: the runs, and the memory that one of them takes.

    Raises:
        ConfigError: if more devices are asked for than there are, or rows over several where the job cannot; if there
            are too few runs to give each of several processes a device.
    """
    have = len(_equally(None))
    wanted = (asked.devices or max(have // asked.row_devices, 1)) * asked.row_devices
    if wanted > have:
        raise ConfigError(f"placement asks for {wanted} devices, there are {have} ({jax.default_backend()})")
    if asked.row_devices > 1 and job.functions.split is None:
        raise ConfigError("placement.row_devices: runs of this kind keep their rows on one device; leave it at 1")
    runs = len(job.runs)
    across = min(wanted // asked.row_devices, runs)
    while across * asked.row_devices % jax.process_count():
        across -= 1
    if not across:
        raise ConfigError(
            f"{runs} runs on devices {asked.devices}, row_devices {asked.row_devices} of placement leave some of "
            f"{jax.process_count()} processes without a device; give fewer processes, more row_devices, or shards"
        )
    devices = np.array(_equally(across * asked.row_devices)).reshape(across, asked.row_devices)
    mesh = Mesh(devices, ("run", "batch"), axis_types=(AxisType.Auto, AxisType.Auto))
    each = -(-runs // across)
    on_cpu = jax.default_backend() == "cpu"
    kind = asked.kind if asked.kind != "auto" else "map" if on_cpu else "chunk"
    chunk = {"map": 1, "vmap": each}.get(kind) or min(asked.chunk or _fitting(job, mesh) or each, each)
    part = asked.part or across * (8 if on_cpu else chunk)
    per_device = min(each, max(-(-part // across), chunk))
    per_device = -(-per_device // chunk) * chunk
    return Placement(mesh, kind, chunk, per_device * across)


def _equally(count: int | None) -> list[Any]:
    """So many devices, or as many as there are, equally from each process."""
    by_process = [list(own) for _, own in itertools.groupby(jax.devices(), lambda device: device.process_index)]
    each = min(map(len, by_process)) if count is None else count // len(by_process)
    return [device for own in by_process for device in own[:each]]


def _fitting(job: Job, mesh: Mesh) -> int | None:
    """How many runs fit at once into half of a device's free memory (4 GiB where the device does not say)."""
    if job.functions.memory is None:
        return None
    stats = processes.agreed(lambda: mesh.local_devices[0].memory_stats()) or {}
    free = stats.get("bytes_limit", 8 << 30) - stats.get("bytes_in_use", 0)
    return max(int(free / 2 / max(job.functions.memory(job.static, job.shared), 1)), 1)


class Program:
    """The compiled segment of one job: (shared, slots, states) -> (states, history, which runs are over)."""

    def __init__(self, placement: Placement, job: Job, segment: int):
        self.placement, self.functions = placement, job.functions
        mesh = placement.mesh
        self.static = job.static
        if mesh.shape["batch"] > 1:
            assert job.functions.split is not None  # resolve has refused it
            self.static = job.functions.split(job.static, PartitionSpec("batch"))
        self.epochs = -(-min(segment, job.epochs) // job.every) * job.every
        self.by_run = NamedSharding(mesh, PartitionSpec("run"))
        self.everywhere = NamedSharding(mesh, PartitionSpec())

    def compile(self, shared: Tree, slots: Slots, states: Tree) -> Callable[[Tree, Slots, Tree], Segment]:
        """The program for arguments of these shapes; ``states`` are given up when it is called."""
        leaves, structure = jax.tree.flatten((shared, slots, states))
        shapes = tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding) for leaf in leaves)
        wide = bool(cast(Any, jax.config).jax_enable_x64)
        return compiled(self.placement, self.functions, self.static, self.epochs, structure, shapes, wide)

    def computed(self, occupied: np.ndarray) -> int:
        """Epochs that a segment computes: all of a chunk that holds a run, that of others beside it in vmap as well."""
        return int(occupied.reshape(-1, self.placement.chunk).any(-1).sum()) * self.placement.chunk * self.epochs

    def closed_up(self, occupied: np.ndarray) -> np.ndarray | None:
        """An order of the slots that leaves fewer chunks with a run, on every device by itself; None if none does."""
        chunk, across = self.placement.chunk, self.placement.mesh.shape["run"]
        blocks = occupied.reshape(across, -1)
        needed = -(-blocks.sum(-1) // chunk)
        if (blocks.reshape(across, -1, chunk).any(-1).sum(-1) <= needed).all():
            return None
        starts = np.arange(across)[:, None] * blocks.shape[1]
        return (np.argsort(~blocks, axis=-1, kind="stable") + starts).ravel()

    def ordered(self, states: Tree, order: np.ndarray) -> Tree:
        """The states in another order of the slots."""
        return _reordered(self.by_run)(states, order)

    def one(self, states: Tree, place: int) -> Tree:
        """The state of one slot, on the host."""
        if not processes.several():
            return jax.tree.map(lambda leaf: np.asarray(leaf[place]), states)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[0], _reordered(self.everywhere)(states, np.array([place])))

    def empty_states(self, shared: Tree, inputs: Tree) -> Tree:
        """States of slots without a run: zeros of the right shapes, on the host."""
        key = jax.eval_shape(lambda: jax.random.key(0))
        shapes = jax.eval_shape(functools.partial(self.functions.init, self.static), key, shared, inputs)
        if any(jnp.issubdtype(leaf.dtype, jax.dtypes.extended) for leaf in jax.tree.leaves(shapes)):
            raise TypeError("a state holds a random key; expected its data, jax.random.key_data(key)")
        return jax.tree.map(lambda leaf: np.zeros((self.placement.slots, *leaf.shape), leaf.dtype), shapes)


@functools.lru_cache(maxsize=32)
def _reordered(sharding: NamedSharding) -> Callable[[Tree, Any], Tree]:
    return jax.jit(lambda states, order: jax.tree.map(lambda leaf: leaf[order], states), out_shardings=sharding)


@functools.lru_cache(maxsize=32)
def compiled(
    placement: Placement,
    functions: Functions,
    static: Hashable,
    epochs: int,
    structure: Any,
    shapes: tuple[jax.ShapeDtypeStruct, ...],
    wide: bool,
) -> Callable[..., Segment]:
    """The program of a segment for arguments of these shapes; a process compiles it once, whoever asks for it.

    ``wide`` says whether double precision is on, which the shapes alone do not.
    """
    spec = PartitionSpec("run")
    sharded = jax.shard_map(
        functools.partial(_segment, placement.chunk, functions, static, epochs),
        mesh=placement.mesh,
        in_specs=(PartitionSpec(), spec, spec),
        out_specs=(spec, spec, spec),
        axis_names={"run"},
        check_vma=False,
    )
    # said, since along the axis batch the compiler would choose for itself, and a segment takes what another gives
    by_run = NamedSharding(placement.mesh, spec)
    traced = jax.jit(sharded, donate_argnums=2, out_shardings=by_run)
    with _ONE_AT_A_TIME:
        lowered = traced.lower(*structure.unflatten(shapes))
    return lowered.compile()


_ONE_AT_A_TIME = threading.Lock()
"""Lowering is work of Python, which threads only share: one after the other, the first program is there sooner."""


def _segment(
    at_once: int, functions: Functions, static: Hashable, epochs: int, shared: Tree, slots: Slots, states: Tree
) -> Segment:
    """Advance every slot, a run that has not begun from its start; chunks without an unfinished run are skipped."""

    def one(each: tuple[Slots, Tree]) -> Segment:
        slot, state = each
        key = jax.random.fold_in(jax.random.key(0), slot.seed)
        start = functools.partial(functions.init, static, key, shared, slot.inputs)
        state = lax.cond(slot.phase == START, lambda state: start(), lambda state: state, state)
        # jit, so that it is traced once for its shape and for its use
        go = jax.jit(lambda state: functions.advance(static, key, state, shared, slot.inputs, epochs))
        nothing = jax.tree.map(lambda a: jnp.full(a.shape, _gap(a.dtype), a.dtype), jax.eval_shape(go, state)[1])
        state, history = lax.cond(slot.phase == EMPTY, lambda state: (state, nothing), go, state)
        return state, history, functions.finished(static, state)

    if at_once == 1:  # a plain loop: vmap, even over one run, would turn "skip" into "compute and discard"
        return lax.map(one, (slots, states))
    go = jax.jit(jax.vmap(one))

    def chunk(each: tuple[Slots, Tree]) -> Segment:
        slot, state = each
        over = jax.vmap(functools.partial(functions.finished, static))(state)
        nothing = jax.tree.map(lambda a: jnp.full(a.shape, _gap(a.dtype), a.dtype), jax.eval_shape(go, each)[1])
        idle = (slot.phase == EMPTY) | ((slot.phase == GOING) & over)
        return lax.cond(idle.all(), lambda each: (each[1], nothing, over), go, each)

    slots_here = slots.phase.shape[0]  # said, since an array may be empty
    chunks = jax.tree.map(lambda a: a.reshape(slots_here // at_once, at_once, *a.shape[1:]), (slots, states))
    return jax.tree.map(lambda a: a.reshape(slots_here, *a.shape[2:]), lax.map(chunk, chunks))


def _gap(dtype: Any) -> float | int:
    return jnp.nan if jnp.issubdtype(dtype, jnp.inexact) else 0
