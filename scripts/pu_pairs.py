"""Which mixtures of a labeled positive and an unlabeled row conflict? Writes results/valuation/pu_pairs.json.

    python scripts/pu_pairs.py [--repeats N]     # ten minutes on two cores, offline

Claim (seed 001, carried over to positive and unlabeled data): mixtures with r̂ > 0 conflict with the failure set; r̂ says
  which unlabeled rows a labeled positive should not be mixed with.
Test: a repeat draws halves of a dataset for training and for testing, a fifth of the training positives gets its label.
  Students are eight networks of those rows; teachers eight of the training and test rows, where the positives among the
  latter have labels (method 1: an ideal that nobody can have). r̂ is a difference of means over both ensembles, of
  20,000 pairs of a labeled and an unlabeled training row with λ ~ U(0, 1); the unlabeled row's label is π. The unit is
  the repeat.
Expectation: written before the first run of these repeats. The label π is too high for an unlabeled negative and too
  low for an unlabeled positive, for teachers as for students: which is in conflict more often differs by a few points.
  Ranked by credit, unlabeled rows are told apart better than by chance and worse than by the students' own scores, so
  that r̂ is worth nothing here. |r̂| is largest for small λ, where the mixture is nearly the unlabeled row, and not at ½.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import polars as pl
from jax import numpy as jnp
from sklearn.metrics import roc_auc_score

from jaxpu import data, fit, runs, valuation
from jaxpu.fitted import Fit

OUT = Path(__file__).parents[1] / "results" / "valuation" / "pu_pairs.json"
PAIRS = 20_000
THIRDS = ("λ below ⅓", "λ near ½", "λ above ⅔")


def one(name: str, method: str, repeat: int) -> dict[str, float]:
    """One repeat: conflicts by the hidden class of the unlabeled row, by λ, and what credit is worth as a ranking."""
    rng = np.random.default_rng([repeat, 1])
    source = data.load(name)
    order = rng.permutation(len(source.x))[:2000]
    x, y = source.features(order), source.truth[order] == 1
    train = np.arange(len(x)) < len(x) // 2
    labeled = train & y & (rng.random(len(x)) < 0.2)
    told = labeled | (~train & y)  # what teachers know more: the positives of the test rows
    student = members(x[train], labeled[train], y[train], method)
    teacher = members(x, told, y, method)

    p, u = (rng.choice(np.flatnonzero(which), PAIRS) for which in (labeled, train & ~labeled))
    lam = rng.random(PAIRS).astype(np.float32)
    mixed = lam[:, None] * x[p] + (1 - lam[:, None]) * x[u]
    prior = float(y[train & ~labeled].mean())
    knows, learns = (jnp.asarray(networks.decision_function(mixed)) for networks in (teacher, student))
    risk = valuation.positive_unlabeled_risk(knows, learns, jnp.asarray(lam), prior)
    credit = np.asarray(valuation.credit(risk, jnp.asarray(p), jnp.asarray(u), jnp.asarray(lam), len(x)).value)
    rows = np.flatnonzero(train & ~labeled & np.isfinite(credit))
    risk, third = np.asarray(risk), np.minimum((lam * 3).astype(int), 2)
    own = student.decision_function(x[rows]).mean(axis=0)
    return {
        "conflict, hidden positive": float((risk[y[u]] > 0).mean()),
        "conflict, hidden negative": float((risk[~y[u]] > 0).mean()),
        **{f"|r̂|, {part}": float(np.abs(risk[third == k]).mean()) for k, part in enumerate(THIRDS)},
        "AUC on U, credit": float(roc_auc_score(y[rows], -credit[rows])),
        "AUC on U, students": float(roc_auc_score(y[rows], own)),
    }


def members(x: np.ndarray, s: np.ndarray, y: np.ndarray, method: str) -> Fit:
    """Eight networks that know the share of positives among the unlabeled rows."""
    return fit(x, s, method=method, prior=float(y[~s].mean()), seeds=8, epochs=20, lr=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    rows = []
    for name in ("spambase", "breast_cancer"):
        for method in ("nnpu", "vpudra_softlabel"):
            found = pl.DataFrame([one(name, method, repeat) for repeat in range(repeats)])
            rows += [{"dataset": name, "method": method, "what": c.name, "repeats": c.to_list()} for c in found]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    told = {"command": "python scripts/pu_pairs.py", "repeats": repeats, **runs.commit(), "versions": runs.versions()}
    runs.write_text(OUT, json.dumps(told | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
