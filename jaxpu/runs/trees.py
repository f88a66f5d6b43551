"""Nested arrays as one archive of NumPy: parameters that runs keep, and the working state between two segments."""

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

_SHAPE = "__structure__"


def pack(tree: Any) -> bytes:
    """Nested dictionaries, lists and tuples of arrays as an .npz, its arrays named by their paths.

    Raises:
        TypeError: naming what of it is neither.

    >>> import numpy as np
    >>> unpack(pack({"head": {"bias": np.zeros(2)}, "state": {}, "scores": (np.float32(1), None)}))
    {'head': {'bias': array([0., 0.])}, 'state': {}, 'scores': (array(1., dtype=float32), None)}
    """
    arrays: dict[str, np.ndarray] = {}
    shape = _shape(tree, "", arrays)
    return archive(arrays | {_SHAPE: np.array(json.dumps(shape))})


def unpack(body: bytes) -> Any:
    """What :func:`pack` was given; a named tuple comes back as a dictionary."""
    with np.load(io.BytesIO(body), allow_pickle=False) as stored:
        return _built(json.loads(str(stored[_SHAPE])), stored)


def archive(arrays: dict[str, np.ndarray]) -> bytes:
    """Arrays by name as the bytes of an .npz."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # pyright: ignore[reportArgumentType]  # names of arrays, not options
    return buffer.getvalue()


def _shape(tree: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """The tree with names in the place of its arrays, which go to ``arrays``: lists and tuples behind a word."""
    if tree is None:
        return None
    if hasattr(tree, "_asdict"):
        tree = tree._asdict()
    if isinstance(tree, dict):
        return {str(name): _shape(part, f"{path}/{name}".strip("/"), arrays) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        parts = [_shape(part, f"{path}/{place}".strip("/"), arrays) for place, part in enumerate(tree)]
        return ["list" if isinstance(tree, list) else "tuple", *parts]
    array = np.asarray(tree)
    if array.dtype == object:
        raise TypeError(
            f"expected arrays in nested dictionaries, lists and tuples, got a {type(tree).__name__} at {path!r}"
        )
    arrays[path or "array"] = array
    return path or "array"


def _built(shape: Any, stored: Any) -> Any:
    if isinstance(shape, dict):
        return {name: _built(part, stored) for name, part in shape.items()}
    if isinstance(shape, list):
        parts = [_built(part, stored) for part in shape[1:]]
        return parts if shape[0] == "list" else tuple(parts)
    return None if shape is None else stored[shape]


def pack_slots(
    leaves: Sequence[Any], histories: Sequence[dict[str, np.ndarray]], run_ids: Sequence[str | None]
) -> bytes:
    """The working state of a pool of slots.

    Args:
        leaves: of the states, each with the slots in front. histories: what each slot has recorded so far.
        run_ids: which run sits in each slot; None for an empty one.
    """
    arrays = {f"state/{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    for slot, history in enumerate(histories):
        arrays |= {f"history/{slot}/{name}": values for name, values in history.items()}
    return archive({"run_ids": np.array(json.dumps(run_ids)), **arrays})


def unpack_slots(
    body: bytes, like: Sequence[Any]
) -> tuple[list[str | None], list[np.ndarray], list[dict[str, np.ndarray]]] | None:
    """What :func:`pack_slots` was given, or None if it is the state of another program.

    Args:
        body: the packed state. like: leaves whose shapes and types are expected; only their number of slots may differ.

    Returns:
        Run identities, leaves and histories.
    """
    with np.load(io.BytesIO(body), allow_pickle=False) as stored:
        run_ids = json.loads(str(stored["run_ids"]))
        names = [name for name in stored.files if name.startswith("state/")]
        found = [stored[f"state/{i}"] for i in range(len(names))]
        if len(found) != len(like):
            return None
        # NumPy stores types that it has no name for, bfloat16 say, as mere bytes
        found = [a.view(b.dtype) if a.dtype.kind == "V" else a for a, b in zip(found, like, strict=True)]
        if any(a.shape[1:] != b.shape[1:] or a.dtype != b.dtype for a, b in zip(found, like, strict=True)):
            return None
        histories: list[dict[str, np.ndarray]] = [{} for _ in run_ids]
        for name in stored.files:
            if name.startswith("history/"):
                _, slot, column = name.split("/", 2)
                histories[int(slot)][column] = stored[name]
    return run_ids, found, histories
