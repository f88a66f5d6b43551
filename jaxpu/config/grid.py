"""Grids: which points an experiment has, what stands in their columns, and that no two cells are equal."""

import dataclasses
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxpu.config.identity import digest
from jaxpu.errors import shown
from jaxpu.settings import ConfigError

Grid = dict[str, list[Any]] | list[dict[str, Any]]
"""Dotted paths to lists of values, of which all combinations are meant; or rows, each a mapping of paths to values."""

COUNTS = ("seeds", "first_seed")
"""What a row may say besides settings; it is no column."""


def checked_grid(value: Any) -> Any:
    """A grid that has points, before its values are looked at.

    Raises:
        ValueError: saying what was expected.
    """
    if isinstance(value, Mapping):
        for path, values in value.items():
            if not isinstance(values, list | tuple) or not values:
                raise ValueError(f"expected a list of values for {shown(path)}, at least one, got {shown(values)}")
        return {str(path): list(values) for path, values in value.items()}
    if not isinstance(value, list | tuple) or not value or not all(isinstance(row, Mapping) for row in value):
        raise ValueError(f"expected a mapping of paths to lists, or rows of paths and values, got {shown(value)}")
    return [{str(path): entry for path, entry in row.items()} for row in value]


def swept(grid: Grid) -> tuple[str, ...]:
    """The dotted paths that a grid sets, in the order written.

    >>> swept({"training.lr": [1e-3]}), swept([{"data.c": 0.1, "seeds": 3}, {"training.lr": 1e-3}])
    (('training.lr',), ('data.c', 'training.lr'))
    """
    paths = grid if isinstance(grid, Mapping) else dict.fromkeys(path for row in grid for path in row)
    return tuple(path for path in paths if path not in COUNTS)


def always_set(grid: Grid) -> set[str]:
    """What every point of a grid sets: the experiment's own value has no effect there."""
    return set(grid) if isinstance(grid, Mapping) else set.intersection(*map(set, grid))


def count(grid: Grid) -> int:
    """How many points a grid has."""
    return math.prod(map(len, grid.values())) if isinstance(grid, Mapping) else len(grid)


def points(grid: Grid, leave_out: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """The points of a grid, in the order written, without some of the paths.

    >>> list(points({"training.lr": [1, 2], "data.c": [0.1]}))
    [{'training.lr': 1, 'data.c': 0.1}, {'training.lr': 2, 'data.c': 0.1}]
    """
    if isinstance(grid, Mapping):
        axes = [[(path, value) for value in values] for path, values in grid.items() if path not in leave_out]
        yield from map(dict, itertools.product(*axes))
    else:
        kept = [{path: value for path, value in row.items() if path not in leave_out} for row in grid]
        yield from (row for place, row in enumerate(kept) if not leave_out or row not in kept[:place])


def finish(cells: Sequence[Any], columns: Sequence[str]) -> list[Any]:
    """Give the points of all cells the same columns, each of one type; refuse cells that are equal.

    Args:
        cells: dataclasses with ``method_name``, ``point`` and ``settings``. columns: the grid columns.

    Raises:
        ConfigError: two cells have equal settings, naming them.
    """
    seen: dict[str, int] = {}
    for place, cell in enumerate(cells):
        first = seen.setdefault(digest(*cell.settings), place)
        if first != place:
            one, other = (f"{_name(cells[i])!r} (cell {i + 1})" for i in (first, place))
            raise ConfigError(f"{one} and {other} have equal settings, however they are written; keep one")
    typed = {column: _one_type([cell.point.get(column) for cell in cells]) for column in columns}
    return [
        dataclasses.replace(cell, point={column: typed[column][place] for column in columns})
        for place, cell in enumerate(cells)
    ]


def _name(cell: Any) -> str:
    return f"{cell.method_name} {point_label(cell.point)}".strip()


def _one_type(values: Sequence[Any]) -> list[Any]:
    """Values as one column holds them: numbers, booleans or text; what is mixed, or no scalar, is text."""
    known = [value for value in values if value is not None]
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in known]
    if all(isinstance(value, bool) for value in known) or all(isinstance(value, str) for value in known):
        return list(values)
    if all(numbers):
        kind = float if any(isinstance(value, float) for value in known) else int
        return [None if value is None else kind(value) for value in values]
    return [None if value is None else as_text(value) for value in values]


def grid_types(cells: Sequence[Any]) -> dict[str, type]:
    """The type of each grid column, of the cells of :func:`jaxpu.config.expand`: float, int, bool or str.

    A column whose value a run does not have holds null there, and its type is that of the others.
    """
    types = {}
    for column in cells[0].point:
        known = {type(cell.point[column]) for cell in cells if cell.point[column] is not None}
        types[column] = known.pop() if known else str
    return types


def as_text(value: Any) -> str:
    """A value in a column of text: words as they are, the rest as JSON.

    >>> as_text("prior"), as_text(0.5), as_text((64, 32)), as_text(True)
    ('prior', '0.5', '[64, 32]', 'true')
    """
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def same(value: Any, wanted: Any) -> bool:
    """Whether the value in a column is the one that was asked for, however that was written.

    >>> same(0.001, "1e-3"), same("[64]", [64]), same("0.5", 0.5), same(1, True), same(None, None)
    (True, True, True, False, True)
    """
    if value is None or wanted is None:
        return value is wanted
    if isinstance(value, str):
        return value == as_text(wanted)
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    try:
        return value == float(wanted)
    except (TypeError, ValueError):
        return False


def point_label(point: Mapping[str, Any]) -> str:
    """A point in words, for people: it is shown and never taken apart.

    >>> point_label({"training.lr": 1e-3, "method.anchor": 0.0, "data.c": None})
    'lr=0.001 anchor=0'
    >>> point_label({"data.name": "digits", "model.name": "mlp"})
    'data.name=digits model.name=mlp'
    """
    last = [path.rpartition(".")[2] for path in point]
    names = {path: path if last.count(short) > 1 else short for path, short in zip(point, last, strict=True)}
    return " ".join(f"{names[path]}={_short(value)}" for path, value in point.items() if value is not None)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else as_text(value)
