"""A kind of experiment that costs nothing: numbers that fall towards zero, with runs that teach and runs that learn."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from pydantic.dataclasses import dataclass

from jaxpu import runs
from jaxpu.config import PlacementConfig


@dataclass(frozen=True)
class Toy:
    """Rates times seeds; a student of each run starts where its teacher ended."""

    name: str = "toy"
    rates: tuple[float, ...] = (0.5, 0.9)
    seeds: int = 4
    first_seed: int = 0
    epochs: int = 7
    stop_below: float = 0.0
    students: bool = False
    keep: bool = False
    precision: str = "float32"
    content: str = "data"
    placement: PlacementConfig = dataclasses.field(default_factory=lambda: PlacementConfig(devices=1))


class State(NamedTuple):
    """Two numbers that fall, and the epochs so far."""

    x: jax.Array
    epoch: jax.Array


@dataclasses.dataclass(frozen=True)
class Static:
    """What the program is compiled for."""

    epochs: int
    rows: object = None


def init(static, key, shared, inputs):
    return State(jax.random.uniform(key, (2,), inputs["start"].dtype) + inputs["start"], jnp.zeros((), jnp.int32))


def advance(static, key, state, shared, inputs, epochs):
    def epoch(state, _):
        def run(state):
            noise = jax.random.uniform(jax.random.fold_in(key, state.epoch), (2,), state.x.dtype)
            x = inputs["rate"] * state.x + 0.01 * noise + shared["offset"].sum()
            if static.rows is not None:
                x = lax.with_sharding_constraint(x, static.rows)
            step = {"x": x.max(), "path": x, "steps": jnp.ones((), jnp.int32)}
            return State(x, jnp.where(x.max() < inputs["stop"], static.epochs, state.epoch + 1)), step

        nan = jnp.full((), jnp.nan, state.x.dtype)
        gap = {"x": nan, "path": jnp.stack([nan, nan]), "steps": jnp.zeros((), jnp.int32)}
        return lax.cond(finished(static, state), lambda state: (state, gap), run, state)

    return lax.scan(epoch, state, length=epochs)


def finished(static, state):
    return state.epoch >= static.epochs


def kept(static, state):
    return {"x": state.x, "none": {}}


def memory(static, shared):
    return 1 << 20


def split(static, spec):
    return dataclasses.replace(static, rows=spec)


def record(run, history):
    return runs.epoch_rows(run, history)


FUNCTIONS = runs.Functions(init, advance, finished, record, kept, memory, split)


def runs_of(toy):
    """Teachers first, each followed by its student if there are any."""
    found = []
    for seed in range(toy.first_seed, toy.first_seed + toy.seeds):
        for rate in toy.rates:
            settings = (rate, toy.epochs, toy.stop_below, toy.precision)
            columns = {"dataset": "none", "method": "teacher", "training.rate": rate, "seed": seed}
            one = runs.Run(runs.identity("toy", settings, toy.content, seed), columns, seed, rate)
            found.append(one)
            if toy.students:
                name = runs.identity("toy student", settings, toy.content, seed)
                found.append(runs.Run(name, columns | {"method": "student"}, seed, rate, (one.run_id,)))
    return found


def jobs_of(toy, found):
    static = Static(toy.epochs)
    shared = {"offset": np.zeros(3, toy.precision)}

    def inputs(run, needed):
        start = needed[run.needs[0]]["x"] if run.needs else np.zeros(2, toy.precision)
        return {"rate": np.asarray(run.cell, toy.precision), "start": start, "stop": np.float32(toy.stop_below)}

    jobs = []
    for students in (True, False):
        mine = tuple(run for run in found if bool(run.needs) == students)
        if mine:
            keep = toy.keep or (toy.students and not students)
            jobs.append(runs.Job(static, shared, mine, inputs, toy.epochs, FUNCTIONS, keep, toy.precision))
    return jobs


class Kind:
    """What the engine asks of a kind."""

    runs = staticmethod(runs_of)
    jobs = staticmethod(jobs_of)


def run(toy, folder=None, **options):
    """Run a toy experiment."""
    return runs.run(toy, Kind, folder, **options)
