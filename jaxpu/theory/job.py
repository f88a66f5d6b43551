"""The kind ``function`` for :mod:`jaxpu.runs`: a function of a random key and options, computed for every seed."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from jax import Array, lax

from jaxpu import config
from jaxpu.config import END, ConfigError
from jaxpu.config.function import FunctionCell, FunctionExperiment
from jaxpu.errors import unknown
from jaxpu.functions import identity as identity_of
from jaxpu.functions import load
from jaxpu.runs.job import Functions, Job, Run, identity
from jaxpu.theory.setups import SETUPS

PATH = "path_"
"""What the columns of arrays begin with."""


class Static(NamedTuple):
    """What a program is compiled for: a function, and all its options."""

    function: Callable[..., dict[str, Array]]
    options: tuple[tuple[str, Any], ...]


def runs(experiment: FunctionExperiment) -> list[Run]:
    """Every grid point for every seed.

    Raises:
        ConfigError: a function or an option that does not exist.

    >>> [run.seed for run in runs(FunctionExperiment(seeds=2))]
    [0, 1]
    """
    found = []
    for cell, seed in config.runs_of(config.expand(experiment)):
        static = static_of(cell)
        settings = (identity_of(static.function), cell.options, cell.precision)
        columns = {"dataset": cell.dataset, "method": cell.method_name, **cell.point, "seed": seed}
        found.append(Run(identity("function", settings, "", seed), columns, seed, cell))
    return found


def jobs(experiment: FunctionExperiment, runs: Sequence[Run]) -> list[Job]:
    """A program for every grid point."""
    groups: dict[Static, list[Run]] = {}
    for run in runs:
        groups.setdefault(static_of(run.cell), []).append(run)
    return [
        Job(static, {}, tuple(mine), lambda run, needed: {}, 1, FUNCTIONS, precision=experiment.precision)
        for static, mine in groups.items()
    ]


def static_of(cell: FunctionCell) -> Static:
    """The function of a cell and its options, checked.

    Raises:
        ConfigError: naming the function or the option, and the choices.
    """
    try:
        function = load(cell.function) if ":" in cell.function else SETUPS[cell.function]
    except (KeyError, ValueError) as error:
        said = str(error) if ":" in cell.function else unknown("function", cell.function, SETUPS)
        raise ConfigError(f"function: {said}") from None
    known = {name: one.default for name, one in list(inspect.signature(function).parameters.items())[1:]}
    for name in cell.options:
        if name not in known:
            raise ConfigError(f"options: {unknown(f'option of {cell.function!r}', name, list(known))}")
    return Static(
        function, tuple((name, _like(known[name], cell.options[name], name)) for name in sorted(cell.options))
    )


def _like(default: Any, value: Any, name: str) -> Any:
    """An option of the type of its default, where that is a number, a word or a truth value."""
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, bool | int | float | str) and type(value) is not type(default):
        raise ConfigError(f"options.{name}: expected {type(default).__name__}, got {value!r}")
    value = tuple(value) if isinstance(value, list) else value
    try:
        hash(value)
    except TypeError:
        raise ConfigError(f"options.{name}: expected a number, a word or a list of them, got {value!r}") from None
    return value


def recorded(experiment: FunctionExperiment) -> list[str]:
    """The columns of numbers that runs will have, traced and not computed.

    Raises:
        ConfigError: options that the function refuses.
    """
    names: dict[str, None] = {}
    for cell in _told_apart(config.expand(experiment)):
        static = static_of(cell)
        try:
            with jax.enable_x64(cell.precision == "float64"):
                shapes = jax.eval_shape(functools.partial(_columns, static), jax.random.key(0))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ConfigError(f"options {cell.options}: {error}") from None
        names |= dict.fromkeys(name for name, shape in shapes.items() if not shape.ndim)
    return list(names)


def _told_apart(cells: Sequence[FunctionCell]) -> list[FunctionCell]:
    """A cell for every combination of words: numbers do not make other columns."""
    words = [str({name: v for name, v in cell.options.items() if not isinstance(v, int | float)}) for cell in cells]
    return list(dict(zip(reversed(words), reversed(cells), strict=True)).values())


def record(run: Run, history: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """One row: the numbers, and the arrays as columns of lists."""
    row: dict[str, Any] = {"selection": END}
    for name, values in history.items():
        value = np.asarray(values[0], float)
        row |= {f"{PATH}{name}": value.tolist()} if value.ndim else {name: float(value)}
    del row[DONE]
    return pl.DataFrame([row])


DONE = "computed"
"""A column that is 1, so that a row of NaN is a row."""


def _columns(static: Static, key: Array) -> dict[str, Array]:
    return {name: jnp.asarray(value) for name, value in static.function(key, **dict(static.options)).items()}


def _init(static: Static, key: Array, shared: Any, inputs: Any) -> dict[str, Array]:
    return {"done": jnp.zeros((), bool)}


def _advance(
    static: Static, key: Array, state: dict[str, Array], shared: Any, inputs: Any, epochs: int
) -> tuple[dict[str, Array], dict[str, Array]]:
    def epoch(state: dict[str, Array], _: None) -> tuple[dict[str, Array], dict[str, Array]]:
        run = jax.jit(lambda: _columns(static, key) | {DONE: jnp.ones((), jnp.int32)})
        shapes = jax.eval_shape(run)
        nothing = {
            name: jnp.full(a.shape, jnp.nan if jnp.issubdtype(a.dtype, jnp.floating) else 0, a.dtype)
            for name, a in shapes.items()
        }
        return {"done": jnp.ones((), bool)}, lax.cond(state["done"], lambda: nothing, run)

    return lax.scan(epoch, state, length=epochs)


def _finished(static: Static, state: dict[str, Array]) -> Array:
    return state["done"]


FUNCTIONS = Functions(_init, _advance, _finished, record)
"""What the engine compiles and calls."""
