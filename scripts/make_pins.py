"""Write tests/golden/pins.npz: what commit 941b0af trains and computes, in double precision.

    git worktree add ../old 941b0af
    cp tests/test_pins.py tests/golden/pins.yaml ...   (as they were in the commit that added this script)
    cd ../old && PYTHONPATH=$PWD python <this file> <folder of test_pins.py>

This documents how the values were made. It calls the adapter of tests/test_pins.py as it was when this script was
added, which knows the interfaces of 941b0af; it cannot run with a later one, and must never be run to make a failing
test pass. What the old code does in single precision even where double precision is switched on was widened:

- features, their means and deviations are those in single precision, turned into double precision before training;
- so are a method's traced numbers, which the old code rounds (np.float32); but the threshold of the softplus ratio,
  log(exp(1/2) - 1), which is no setting, is exact;
- where the old code says jnp.float32 (start of the last bias, masks, slopes of the mean field) it got jnp.float64.

LeCun's normal draws stay as Flax makes them, in single precision: those runs are compared to 1e-5.
"""

import json
import sys
from pathlib import Path
from unittest import mock

import numpy as np


def batches() -> dict[str, dict[str, np.ndarray]]:
    """Random batches: of two classes, of two where nnPU's bracket is clipped, of three."""
    rng = np.random.default_rng(12)
    found: dict[str, dict[str, np.ndarray]] = {}
    for kind in ("typical", "clipped", "classes"):
        n = 24
        labeled = (np.arange(n) % 4 == 0).astype(float)
        logits = rng.normal(size=(n, 3) if kind == "classes" else n)
        if kind == "clipped":
            logits = logits + np.where(labeled > 0, 2.0, -3.0)
        labels = np.arange(n) % 3 if kind == "classes" else ((labeled > 0) | (np.arange(n) % 5 == 1)).astype(int)
        found[kind] = {
            "logits": logits,
            "mixed": rng.normal(size=n),
            "labeled": labeled,
            "labels": labels,
            "mask": (np.arange(n) < 21).astype(float),
            "partner": rng.choice(np.flatnonzero(labeled * (np.arange(n) < 21)), n),
            "lam": np.asarray(0.37),
        }
    return found


def problem() -> dict[str, np.ndarray]:
    """Ratings of four classifiers for thirty instances, half of them labeled, and factors to start from."""
    rng = np.random.default_rng(12)
    labels = (np.arange(30) % 4 == 0).astype(int)
    z = rng.normal(size=(4, 30)) + np.where(labels > 0, 0.8, -0.4)
    known = np.arange(30) % 2 + (np.arange(30) % 8 == 0) > 0
    factors = {"x": 0.1 * rng.normal(size=(3, 4)), "y": 0.1 * rng.normal(size=(3, 30))}
    return {"ratings": 1 / (1 + np.exp(-z)), "labels": labels, "labeled": known, **factors}


def save(out: Path, found: dict[str, dict[str, np.ndarray]]) -> None:
    """One vector of numbers, and an index that says where each column of what lies; texts stand in the index."""
    index, numbers = {}, []
    for name, columns in found.items():
        index[name] = {}
        for column, values in columns.items():
            if values.dtype.kind == "U":
                index[name][column] = ["text", *values.tolist()]
            else:
                index[name][column] = [values.dtype.name, *values.shape]
                numbers.append(values.astype(float).ravel())
    np.savez_compressed(out, values=np.concatenate(numbers), index=np.array(json.dumps(index)))


def main(tests: Path) -> None:
    out = tests / "golden" / "pins.npz"
    found = {f"batch {kind}": batch for kind, batch in batches().items()} | {"problem": problem()}
    save(out, found)
    sys.path.insert(0, str(tests))
    import test_pins as pins

    def record(name: str, columns: dict[str, np.ndarray], tolerance: float = 1e-10) -> None:
        assert name not in found, f"{name} is recorded twice"
        found[name] = {column: np.asarray(values) for column, values in columns.items()}

    # every test computes, and hands what it found to check
    with mock.patch.object(pins, "check", record):
        for name in pins.PINS["groups"]:
            pins.test_training(name)
        for kind in ("typical", "clipped"):
            pins.test_objectives(kind)
        pins.test_objectives_of_many_classes()
        pins.test_ensemble_functions()
        pins.test_meanfield()
        pins.test_geometry()
    for name, raw in pins.PINS["ensembles"].items():
        settings = {k: v for k, v in raw.items() if k != "slow"}
        with pins.double():
            rows = pins.ensemble_rows(settings | {"seeds": len(pins.SEEDS), "first_seed": pins.SEEDS[0]})
        for run, columns in rows.items():
            record(f"ensemble {name}|{run}", columns)
    save(out, found)
    print(f"{sum(map(len, found.values()))} columns of {len(found)} things, {out.stat().st_size} bytes in {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
