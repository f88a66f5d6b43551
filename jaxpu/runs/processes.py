"""One program over several processes (``jax.distributed``), where a model outgrows one machine.

All processes do the same in the same order, and every array lies over the devices of all. Process 0 alone reads the
clock and the folder, and writes; what it finds, or the error that it meets, is :func:`agreed` upon. With one process
nothing here does anything.
"""

import functools
import itertools
import pickle
import re
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from jaxpu.config import ConfigError
from jaxpu.errors import shown
from jaxpu.runs.files import Unfinished
from jaxpu.runs.shards import Shard
from jaxpu.runs.store import Folder

Found = TypeVar("Found")

SILENCE = 30
"""Seconds without a sign of life after which a process counts as dead, and all others end."""
_LEAVE = 10  # seconds in which all end once one has ended
_PATIENCE = 7 * 24 * 3600 * 1000  # milliseconds: whoever waits is ended by a death, not by a clock
_PIECE = 1 << 20
_turn = itertools.count()


def join(address: str | None, process: str | None = None) -> None:
    """Make this process one of several, before jax is first used.

    Args:
        address: HOST:PORT of process 0; "auto" = as SLURM, Open MPI or a TPU pod say, which know ``process`` as well.
        process: "i/n", this is process i, from 0, of n.

    Raises:
        ConfigError: for what is no address, or no such process. Unfinished: the others were not found.
    """
    known: dict[str, Any] = {}
    if address != "auto":
        if address is None or process is None or not re.fullmatch(r"\S+:\d+", address):
            got = " and ".join("none" if word is None else shown(word) for word in (address, process))
            raise ConfigError(
                f"expected --distributed HOST:PORT of process 0 with --process i/n, or --distributed auto, got {got}"
            )
        mine = Shard.parse(process, "process")
        known = {"coordinator_address": address, "num_processes": mine.of, "process_id": mine.index}
        if re.match(r"127\.|localhost:|\[::1\]", address):  # else it listens to the network as well
            known["coordinator_bind_address"] = address
    elif process is not None:
        raise ConfigError("--distributed auto knows which process this is; leave --process out")
    jax.config.update("jax_enable_preemption_service", False)  # it would take SIGTERM and go on
    try:
        jax.distributed.initialize(**known, heartbeat_timeout_seconds=SILENCE, shutdown_timeout_seconds=_LEAVE)
    except ValueError as error:
        raise ConfigError(f"--distributed auto: no cluster is known here ({error}); give HOST:PORT and i/n") from None
    except jax.errors.JaxRuntimeError as error:
        raise lost(error) from None


def several() -> bool:
    """Whether there are others."""
    return jax.distributed.is_initialized() and jax.process_count() > 1


def first() -> bool:
    """Whether this process is the one that reads and writes."""
    return not jax.distributed.is_initialized() or jax.process_index() == 0


def agreed(find: Callable[[], Found]) -> Found:
    """What process 0 finds, in every process, once all are here; an error that it meets is raised in all.

    Device collectives wait for half a minute only, and those of the CPU for no longer whatever is asked, so processes
    meet here before each of them.

    Raises:
        Unfinished: another process has ended.

    >>> agreed(lambda: 3)
    3
    """
    if not several():
        return find()
    mine = _found(find) if first() else b""
    try:
        found, error = pickle.loads(_told(mine))
    except RuntimeError as error:
        raise lost(error) from None
    if error is not None:
        raise error
    return found


def _found(find: Callable[[], Any]) -> bytes:
    try:
        return pickle.dumps((find(), None))
    except Exception as error:
        return pickle.dumps((None, error))


def _told(said: bytes) -> bytes:
    """What process 0 says, once all have heard it."""
    from jax._src.distributed import global_state  # jax has no other way to wait without a collective

    client, name = global_state.client, f"jaxpu/{next(_turn)}"
    assert client is not None  # there are several
    if first():
        pieces = [said[start : start + _PIECE] for start in range(0, len(said), _PIECE)]
        for place, piece in enumerate([str(len(pieces)).encode(), *pieces]):
            client.key_value_set_bytes(f"{name}/{place}", piece)
    else:
        count = int(client.blocking_key_value_get_bytes(f"{name}/0", _PATIENCE))
        said = b"".join(client.blocking_key_value_get_bytes(f"{name}/{i + 1}", _PATIENCE) for i in range(count))
    client.wait_at_barrier(name, _PATIENCE)
    if first():
        client.key_value_delete(f"{name}/")
    return said


def meet() -> None:
    """Wait for all."""
    agreed(lambda: None)


def lost(error: Exception) -> Unfinished:
    """What is said where a process has met an error that others may not know of."""
    return Unfinished(
        f"one of the processes has failed, ended, or was not found ({str(error).splitlines()[0][:300]}); what is "
        "recorded is kept: repeat the command in all"
    )


def put(tree: Any, sharding: Sharding) -> Any:
    """The arrays on their devices: ``jax.device_put``, which compares them between processes first, by collectives."""
    if not several():
        return jax.device_put(tree, sharding)

    def one(leaf: Any) -> Any:
        array = np.asarray(leaf)
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    return jax.tree.map(one, tree)


def on_host(tree: Any) -> Any:
    """Arrays of NumPy: in every process those of all."""
    if several():
        jax.block_until_ready(tree)
        meet()
        tree = _replicated(jax.tree.leaves(tree)[0].sharding.mesh)(tree)
    return jax.tree.map(np.asarray, tree)


@functools.lru_cache(maxsize=32)
def _replicated(mesh: Mesh) -> Callable[[Any], Any]:
    return jax.jit(lambda tree: tree, out_shardings=NamedSharding(mesh, PartitionSpec()))


class Led:
    """A folder of which process 0 alone reads and writes: every call is :func:`agreed` upon."""

    keeps_state = True

    def __init__(self, folder: Folder):
        self._folder = folder

    def __str__(self) -> str:
        return str(self._folder)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._folder, name)
        return lambda *given, **options: agreed(lambda: method(*given, **options))
