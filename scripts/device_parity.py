"""A run on the accelerator is the run on the CPU: same batches and λ, trajectories equal within rounding.

    python scripts/device_parity.py

Both train the same seeds of two methods for two epochs with dropout off (dropout multiplies rounding by chance)
and matrix products in full float32. Exits with 1 and the worst column if they differ.
"""

import sys
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from jaxpu import config, data, train
from jaxpu.train import job

jax.config.update("jax_default_matmul_precision", "highest")
RECORDED = ("train_loss", "test_oracle_auc", "test_oracle_log_loss", "test_score_mean", "train_p_labeled")


def trajectories(device: Any, cell: config.Cell, seeds: int) -> np.ndarray:
    """(seeds, epochs, columns) of one method, all seeds at once on one device."""
    source = data.load(cell.data)
    prepared = [data.prepare(cell.data, source, seed) for seed in range(seeds)]
    static, hyper = job.static_part(cell, source, prepared[0]), job.traced_part(cell, prepared[0])
    rows = jax.tree.map(lambda *leaves: np.stack(leaves), *[one.rows for one in prepared])
    x, y = np.asarray(source.features()), source.truth.astype(np.int32)

    def run(seed: jax.Array, rows: data.Rows) -> train.History:
        arrays = train.Data(jnp.asarray(x), jnp.asarray(y), *map(jnp.asarray, rows))
        return train.train(train.key_of(seed), arrays, static, hyper).history

    with jax.default_device(device):
        history = jax.jit(jax.vmap(run))(np.arange(seeds), rows)
    return np.stack([np.asarray(history[name]) for name in RECORDED], axis=-1)


def main() -> None:
    raw = {
        "methods": ["vpu", "vpudra_softlabel"],
        "data": {"validation": [0.01]},
        "model": {"dropout": []},
        "training": {"epochs": 2},
        "selection": {"rules": ["last"], "default": "last"},
    }
    here, cpu = jax.devices()[0], jax.devices("cpu")[0]
    print(f"{here.device_kind} against {cpu.device_kind}")
    for cell in config.expand(config.parse(raw)):
        apart = np.abs(trajectories(here, cell, 4) - trajectories(cpu, cell, 4)).max(axis=(0, 1))
        print(cell.method_name, {name: float(f"{d:.2g}") for name, d in zip(RECORDED, apart, strict=True)})
        if not (apart < 2e-3).all():
            sys.exit(1)


if __name__ == "__main__":
    main()
