"""Programs compiled side by side, and handed out in order: runs of the first train while the others compile."""

import contextlib
from collections import deque
from collections.abc import Generator
from concurrent import futures
from typing import Any

import jax

from jaxpu.runs import processes
from jaxpu.runs.job import Job
from jaxpu.runs.pool import Pool


def precision_of(job: Job) -> contextlib.AbstractContextManager[Any]:
    """Double precision while a job is at work that asks for it."""
    return jax.enable_x64(True) if job.precision == "float64" else contextlib.nullcontext()


def in_turn(pools: list[Pool]) -> Generator[Pool, None, None]:
    """Take pools off a list and give each, in its order, when its program is compiled.

    Several processes compile in one order, and all programs before the first is given: what they compile together must
    not meet what they train together.
    """
    threads = futures.ThreadPoolExecutor(1 if processes.several() else None)
    try:
        waiting = deque(threads.submit(_compiled, pool) for pool in pools)
        pools.clear()
        if processes.several():
            futures.wait(waiting)
        while waiting:
            yield waiting.popleft().result()  # nothing here holds it: a pool that is done gives up its memory
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _compiled(pool: Pool) -> Pool:
    with precision_of(pool.job):
        pool.compile()
    return pool
