"""What trained networks say of rows."""

import functools
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from jaxpu import data, models
from jaxpu.config import Cell, ModelConfig
from jaxpu.data import Dataset

AT_ONCE = 4096
"""Rows that pass through a network at a time."""


def logits(cell: Cell, dataset: Dataset, seed: int, kept: dict[str, Any], x: np.ndarray) -> Float[np.ndarray, "n ..."]:
    """Logits of rows by the network of one run, standardised as its training rows were.

    Args:
        cell, dataset, seed: of the run. kept: what it has kept, see :func:`jaxpu.runs.read_parameters`.
        x: rows with the features of the dataset, not standardised.
    """
    rows = data.prepare(cell.data, dataset, seed).rows
    outputs = 1 if cell.data.task == "pu" else data.arrays(cell.data, dataset).classes
    return logits_of(cell.model, kept, rows.mean, rows.sd, x, outputs)


def logits_of(
    model: ModelConfig, kept: dict[str, Any], mean: np.ndarray, sd: np.ndarray, x: np.ndarray, outputs: int = 1
) -> Float[np.ndarray, "n ..."]:
    """Logits of rows by a network of which all is at hand.

    Args:
        model: its settings. kept: ``params`` and ``state``. mean, sd: of its training rows. x: not standardised.
        outputs: of the network; 1 = logits (n,).
    """
    program = _program(model, x.shape[1:], outputs)
    parts = [x[start : start + AT_ONCE] for start in range(0, len(x), AT_ONCE)]
    return np.concatenate([program(models.Variables(**kept), mean, sd, part) for part in parts])


@functools.lru_cache(maxsize=32)
def _program(config: ModelConfig, shape: tuple[int, ...], outputs: int) -> Any:
    model = models.build(config, shape, outputs)
    return jax.jit(lambda variables, mean, sd, x: model.logits(variables, (x - mean[None]) / sd[None]))
