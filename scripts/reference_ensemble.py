"""Train on the data set behind seed 003's figures, and write down how near they are met.

    JAXPU_DATA_DIR=... python scripts/reference_ensemble.py     # writes results/cf_ensemble/reference.json

Reads ``reference/cf_ensemble_seed42.npz`` beside the folder of full datasets: 10 x 500 ratings, labels, which are
labeled, and the w and b with which the original alternating trainer ends. Without it nothing is written.
"""

import json
import os
import sys
from pathlib import Path

import jax
import numpy as np
from jax import numpy as jnp

from jaxpu import ensemble, metrics, runs

OUT = Path(__file__).parents[1] / "results" / "cf_ensemble" / "reference.json"


def one(
    trainer: str, weighted: bool, iterations: int, plateau: float, stored: dict[str, np.ndarray]
) -> dict[str, float | str | None]:
    """One fit from the original's random start: figures on the unlabeled columns, distance from the original w, b."""
    r, y, known = (jnp.asarray(stored[k]) for k in ("ratings", "labels", "labeled"))
    state = np.random.RandomState(42)
    start = ensemble.Factors(*(jnp.asarray(state.randn(15, k) * 0.01) for k in r.shape))
    c = ensemble.confidence("label_aware", r, y, known)
    step = ensemble.Step(class_weights=float(weighted))
    if trainer == "als":
        fit = ensemble.fit_als(start, r, c, y, known, iterations=iterations, step=step)
    else:
        fit = ensemble.fit_joint(start, r, c, y, known, iterations=iterations, step=step, plateau=plateau)
    w, b = np.asarray(fit.aggregator.w), float(fit.aggregator.b)
    p = np.asarray(jax.nn.sigmoid(fit.logits))[~stored["labeled"]]
    name = f"als_{'weighted' if weighted else 'unweighted'}"
    off = None
    if trainer == "als":
        off = max(float(np.abs(w - stored[f"{name}_w"]).max()), abs(b - float(stored[f"{name}_b"])))
    return {
        "trainer": trainer,
        "class_weights": "yes" if weighted else "no",
        "iterations": iterations,
        "plateau": plateau,
        "pr_auc": float(metrics.average_precision(fit.logits, y, mask=~known)),
        "roc_auc": float(metrics.auc(fit.logits, y, mask=~known)),
        "w_min": float(w.min()),
        "w_max": float(w.max()),
        "b": b,
        "p_min": float(p.min()),
        "p_max": float(p.max()),
        "largest_difference_from_original_w_b": off,
    }


def main() -> None:
    folder = os.environ.get("JAXPU_DATA_DIR")
    path = Path(folder or ".").parent / "reference" / "cf_ensemble_seed42.npz"
    if not folder or not path.exists():
        print("the reference ensemble is not there (JAXPU_DATA_DIR): reference.json stays as it is", file=sys.stderr)
        return
    with np.load(path) as file, jax.enable_x64(True):
        stored = dict(file)
        cases = [("als", 100, 1.0), *(("joint", steps, plateau) for steps in (200, 500) for plateau in (1.0, 0.5))]
        rows = [one(trainer, w, steps, plateau, stored) for trainer, steps, plateau in cases for w in (False, True)]
    told = {"command": "python scripts/reference_ensemble.py", **runs.commit(), "versions": runs.versions()}
    rounded = [{k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    runs.write_text(OUT, json.dumps(told | {"fits": rounded}, indent=1) + "\n")


if __name__ == "__main__":
    main()
