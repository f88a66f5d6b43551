"""Small problems that several tests share: the same shapes everywhere, so that programs compile once."""

import functools

import jax
import jax.numpy as jnp

from jaxpu import config, data, train
from jaxpu.config import Cell, DataConfig, Experiment
from jaxpu.data import Prepared
from jaxpu.methods.objective import Hyper, Objective
from jaxpu.train.job import inputs

TINY = {
    "name": "tiny",
    "data": {
        "name": "gaussians",
        "options": {"n": 150, "d": 3, "separation": 3.0},
        "c": 0.3,
        "validation": [0.2],
    },
    "model": {"hidden": [8], "dropout": [0.2]},
    "training": {"epochs": 4, "batch_size": 48, "lr": 1e-2},
    "selection": {"rules": ["val_f1", "val_f1_rescue"], "default": "val_f1", "patience": 2},
    "methods": ["vpudra_fixed"],
    "seeds": 3,
    # two slots whatever the number of runs, so that sweeps of any number share one compiled program
    "placement": {"devices": 1, "part": 2},
}

TRAIN, VAL_PU = 128, 32

# a linear classifier on them: what test_train and test_contract train, so that one program serves both
LINEAR = {
    "model": {"name": "linear"},
    "training__lr": 0.05,
    "training__epochs": 12,
    "training__batch_size": 16,
    "selection__stop": False,
}


def tiny(**changes) -> Experiment:
    """The tiny experiment with dotted settings changed (dots written as double underscores).

    What a ``grid`` sets is not set elsewhere.
    """
    raw = {key: dict(value) if isinstance(value, dict) else value for key, value in TINY.items()}
    grid = changes.get("grid", {})
    for dotted in grid if isinstance(grid, dict) else {path for row in grid for path in row}:
        group, _, name = dotted.partition(".")
        (raw.get(group, {}) if name else raw).pop(name or group, None)
    for path, value in changes.items():
        config.put(raw, path.replace("__", "."), value)
    return config.parse(raw)


def prepared(settings: DataConfig, seed: int) -> Prepared:
    """The rows of one seed of a data configuration."""
    return data.prepare(settings, data.load(settings), seed)


def first_cell(experiment: Experiment) -> Cell:
    return config.expand(experiment)[0]


def run_inputs(
    cell: Cell, seed: int = 0, together: Objective | None = None
) -> tuple[jax.Array, train.Data, train.Config, Hyper]:
    """The arguments of ``train.train`` for one seed of a cell, as the sweep would give them.

    Small sets are padded to one length, so that label frequencies share a program, as they do in a sweep. ``together``
    is the objective of all methods that one program is to serve.
    """
    key, arrays, static, hyper = inputs(cell, seed, together)
    longer = {"train": _padded(arrays.train, TRAIN), "val_pu": _padded(arrays.val_pu, VAL_PU)}
    return key, arrays._replace(**longer), static, hyper


def _padded(rows: jax.Array, length: int) -> jax.Array:
    return jnp.pad(rows, (0, max(length - len(rows), 0)))


@functools.partial(jax.jit, static_argnums=2)
def jitted_train(key, data, static, hyper):
    return train.train(key, data, static, hyper)
