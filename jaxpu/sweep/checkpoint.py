"""The working state of a sweep between two segments: parameters, moments and history of unfinished runs."""

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxpu import results


def save(path: Path, states: Any, histories: Sequence[dict[str, np.ndarray]], run_ids: Sequence[str | None]) -> None:
    """Write stacked states and each slot's history so far, atomically, with a checksum.

    Args:
        path: file to write. states: pytree of arrays with the slots in front. histories: a dict a slot.
        run_ids: which run sits in each slot; None for an empty one.
    """
    arrays = {f"state/{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(states))}
    for slot, history in enumerate(histories):
        arrays |= {f"history/{slot}/{name}": values for name, values in history.items()}
    buffer = io.BytesIO()
    np.savez(buffer, run_ids=np.array(json.dumps(run_ids)), **arrays)  # pyright: ignore[reportArgumentType]
    body = buffer.getvalue()
    results.atomic_write(path, lambda p: p.write_bytes(hashlib.sha256(body).digest() + body))


def load(path: Path, like: Any) -> tuple[list[str | None], Any, list[dict[str, np.ndarray]]] | None:
    """Read what :func:`save` wrote, or None if it is not there, damaged, or of another program.

    Args:
        path: file to read. like: a pytree of the same structure, whose leaves tell shapes (slots may differ).

    Returns:
        Run identities, states (numpy, slots in front) and histories.
    """
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    if len(raw) < 32 or hashlib.sha256(raw[32:]).digest() != raw[:32]:
        return None
    with np.load(io.BytesIO(raw[32:]), allow_pickle=False) as stored:
        run_ids = json.loads(str(stored["run_ids"]))
        leaves, structure = jax.tree.flatten(like)
        names = [f"state/{i}" for i in range(len(leaves))]
        if not all(
            n in stored and stored[n].shape[1:] == leaf.shape[1:] for n, leaf in zip(names, leaves, strict=True)
        ):
            return None
        states = structure.unflatten([stored[n] for n in names])
        histories: list[dict[str, np.ndarray]] = [{} for _ in run_ids]
        for name in stored.files:
            if name.startswith("history/"):
                _, slot, column = name.split("/", 2)
                histories[int(slot)][column] = stored[name]
    return run_ids, states, histories
