"""Shards as tasks of Ray, which places them, on GPUs too, and starts those again whose process or machine it has lost.

An extra: ``pip install 'jaxpu[ray]'``. Without a cluster a local one is started, bound to 127.0.0.1 and closed to
whoever lacks the token of this process; Ray must not have been imported before, for it reads such settings then.
"""

import contextlib
import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from jaxpu import api, runs, tracking
from jaxpu.config import ConfigError
from jaxpu.runs.engine import Progress
from jaxpu.runs.gathering import shards_in
from jaxpu.runs.shards import Shard

RETRIES = 3
"""How often a shard is started again whose process died; it goes on where it stopped."""


def on_ray(
    experiment: Any,
    folder: Path,
    *,
    address: str | None = None,
    workers: int | None = None,
    fresh: bool = False,
    watch: Callable[[Progress], None] = lambda progress: None,
    track: tracking.Tracker | None = None,
) -> tuple[Any, pl.DataFrame, dict[str, Any]]:
    """Run an experiment in shards on Ray, and gather them; equal to one process, as :func:`jaxpu.gather` is.

    The first shard begins alone, until it trains: the others find its programs in the compilation cache.

    Args:
        experiment: to run. folder: for all shards, on a file system that all machines share.
        address: of a cluster, as ``ray.init`` takes it; None = a local one.
        workers: how many shards at once; None = one a GPU, or one for every four cores, two at least. A folder that has
            shards keeps their number.
        fresh: forget what the folder holds. watch: called with the progress of all together.
        track: called with every finished run in the end.

    Returns:
        The experiment, its runs and their provenance.

    Raises:
        ConfigError: Ray is not installed. ResultsError: shards are missing in the end, naming them, or the folder
            has more shards than there are seeds.
    """
    ray = _started(address)
    try:
        shards = _shards(experiment, folder, workers or _fitting(ray.cluster_resources()), fresh)
        board = ray.remote(num_cpus=0)(_Board).remote()
        work = ray.remote(max_retries=RETRIES, **_share(ray.cluster_resources(), len(shards)))(_work)
        waiting, going = list(shards), {}
        while waiting or going:
            seen = ray.get(board.seen.remote())
            at_once = len(waiting) if going and sum(epochs for _, _, epochs in seen[0].values()) else 1 - len(going)
            for shard in waiting[: max(at_once, 0)]:
                going[work.remote(experiment, str(folder.absolute()), shard, board)] = shard
            waiting = waiting[max(at_once, 0) :]
            _tell(watch, *seen)
            for handle in ray.wait([*going], timeout=1.0)[0]:
                _over(ray, handle, going.pop(handle), watch)
        _tell(watch, *ray.get(board.seen.remote()))
    finally:
        ray.shutdown()
    found = api.gather(folder)
    if track is not None:
        tracking.send(found[1], track, found[0])
    return found


def _started(address: str | None) -> Any:
    if address is None:  # before ray is imported, which reads them then
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        # without this Ray takes the machine's own address for 127.0.0.1, and listens to all that reach it
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ConfigError("--executor ray: Ray is not installed; pip install 'jaxpu[ray]'") from None
    local = {"num_cpus": len(os.sched_getaffinity(0)), "include_dashboard": False} if address is None else {}
    ray.init(address=address or "local", log_to_driver=False, logging_level=logging.WARNING, **local)
    return ray


def _fitting(resources: dict[str, float]) -> int:
    return max(int(resources.get("GPU", 0)) or int(resources.get("CPU", 1)) // 4, 2)


def _shards(experiment: Any, folder: Path, workers: int, fresh: bool) -> list[Shard]:
    """The shards to run: as many as the folder has, where an earlier command has begun: others are not gathered."""
    for path in (folder / "shards").glob("*-of-*") if fresh else ():
        with runs.locked(path):
            runs.Folder(path).remove()
            for name in ("config.yaml", ".lock"):
                (path / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # what is not jaxpu's stays
            path.rmdir()
    has = shards_in(folder)[0].of if any((folder / "shards").glob("*-of-*")) else None
    of = min(has or workers, experiment.seeds)
    if has not in (None, of):
        raise runs.ResultsError(
            f"{folder} holds shards of {has} parts, and there are {of} seeds to deal out; move {folder}/shards away"
        )
    return [Shard(index, of) for index in range(of)]


def _share(resources: dict[str, float], workers: int) -> dict[str, Any]:
    """What of the cluster a shard has."""
    share: dict[str, Any] = {"num_cpus": max(int(resources.get("CPU", 1)) // workers, 1)}
    if gpus := resources.get("GPU", 0):
        share["num_gpus"] = gpus / workers if gpus < workers else int(gpus // workers)
        fraction = min(0.9 * share["num_gpus"], 0.9)
        share["runtime_env"] = {"env_vars": {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{fraction:.3f}"}}
    return share


class _Board:
    """Where the shards say what they are doing."""

    def __init__(self) -> None:
        self._numbers: dict[str, tuple[int, int, int]] = {}
        self._notes: list[str] = []

    def tell(self, shard: str, numbers: tuple[int, int, int], note: str) -> None:
        self._numbers[shard] = numbers
        self._notes += [f"shard {shard}: {note}"] if note else []

    def seen(self) -> tuple[dict[str, tuple[int, int, int]], list[str]]:
        notes, self._notes = self._notes, []
        return self._numbers, notes


def _work(experiment: Any, folder: str, shard: Shard, board: Any) -> list[str]:
    """One shard, in a process of Ray."""
    import ray

    cpus = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
    api.set_up(max(int(cpus), 1))

    def tell(progress: Progress) -> None:
        numbers = progress.runs_done, progress.runs_total, progress.epochs_done
        board.tell.remote(str(shard), numbers, progress.note and f"{progress.note} (process {os.getpid()})")

    return list(api.sweep(experiment, folder=folder, watch=tell, shard=shard).failures)


def _tell(watch: Callable[[Progress], None], numbers: dict[str, tuple[int, int, int]], notes: list[str]) -> None:
    done, total, epochs = (sum(column) for column in zip(*numbers.values(), strict=True)) if numbers else (0, 1, 0)
    for note in [*notes, ""]:
        watch(Progress(done, max(total, 1), epochs, note))


def _over(ray: Any, handle: Any, shard: Shard, watch: Callable[[Progress], None]) -> None:
    """Say what went wrong with a shard that is over; what it lacks is named when all are gathered."""
    try:
        failures = ray.get(handle)
    except ray.exceptions.RayError as error:
        failures = [str(error).strip().splitlines()[-1][:300]]
    for failure in failures:
        watch(Progress(0, 1, 0, f"shard {shard}: {failure}"))
