"""Golden values for the ensembles, computed apart from jaxpu: loops, float64 NumPy, gradients written out by hand.

python scripts/golden_ensemble.py            # writes tests/golden/ensemble.json
python scripts/golden_ensemble.py --check    # compares with it
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from golden import same

PATH = Path(__file__).parents[1] / "tests" / "golden" / "ensemble.json"
M, N = 5, 14
LABELS = np.array([1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0])
LABELED = np.array([1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
ALPHA, RIDGE, RHO = 0.7, 0.05, 0.3

VARIANTS = {
    "plain": {},
    "class_weights": {"class_weights": 1.0},
    "half_weights_focal": {"class_weights": 0.5, "focal": 2.0},
    "freeze_bias_first": {"freeze": 3, "bias_first": 4, "bias_lr": 3.0},
    "centred_start_at_rate": {"centre": 1.0, "initial_bias": 1.0},
}


def ratings():
    """Numbers in (0, 1) that need no random generator."""
    u, i = np.meshgrid(np.arange(M), np.arange(N), indexing="ij")
    return 0.5 + 0.2 * LABELS[i] + 0.25 * np.sin(1.7 * u + 0.9 * i * i + 0.3 * u * i)


def start(d):
    """Factors to start from."""
    x, y = (np.add.outer(1.3 * np.arange(d), 0.7 * np.arange(k)) for k in (M, N))
    return 0.1 * np.cos(1 + x * x), 0.1 * np.sin(2 + y * y)


def confidences():
    """Every strategy, entry by entry."""
    r, names = ratings(), ("uniform", "certainty", "label_aware", "calibration", "adaptive")
    c = {name: np.empty((M, N)) for name in names}
    known = [i for i in range(N) if LABELED[i]]
    rate = np.mean([LABELS[i] for i in known])
    for u in range(M):
        brier = np.mean([(r[u, i] - LABELS[i]) ** 2 for i in known])
        skill = max(1 - brier / (rate * (1 - rate)), 0)
        for i in range(N):
            sure = abs(r[u, i] - 0.5)
            consensus = np.mean(r[:, i])
            agree = r[u, i] if LABELS[i] else 1 - r[u, i]
            soft = consensus * r[u, i] + (1 - consensus) * (1 - r[u, i])
            c["uniform"][u, i] = 1
            c["certainty"][u, i] = sure
            c["label_aware"][u, i] = sure * (1 + ALPHA * agree) if LABELED[i] else sure
            c["calibration"][u, i] = sure * skill**ALPHA
            c["adaptive"][u, i] = sure * (1 + ALPHA * (agree if LABELED[i] else soft))
    return c


def ridge_regressions(fixed, r, c):
    """One system a column, with the whole diagonal matrix, as it is written in papers."""
    solved = []
    for i in range(r.shape[1]):
        weight = np.diag(c[:, i])
        left = fixed @ weight @ fixed.T + RIDGE * np.eye(len(fixed))
        solved.append(np.linalg.solve(left, fixed @ weight @ r[:, i]))
    return np.array(solved).T


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def residuals(w, b, r_hat, v0, focal):
    """V (p - y) / Σ v on the labeled instances, and the weighted mean cross-entropy."""
    z = np.array([w @ r_hat[:, i] + b for i in range(N)])
    p = sigmoid(z)
    wrong = np.where(LABELS == 1, 1 - p, p)
    v = v0 * wrong**focal
    return v * (p - LABELS) / v.sum(), float(np.sum(-v * np.log(1 - wrong)) / v.sum())


def weights_of_classes(strength):
    n, positives = LABELED.sum(), (LABELED * LABELS).sum()
    of_class = np.where(LABELS == 1, positives, n - positives)
    return LABELED * (n / (2 * of_class)) ** strength


def alternate(d, variant, iterations=30, lr=0.1):
    """The alternating trainer."""
    options = {"class_weights": 0.0, "focal": 0.0, "freeze": 0, "bias_first": 0, "bias_lr": 1.0} | variant
    r, c = ratings(), confidences()["label_aware"]
    v0 = weights_of_classes(options["class_weights"])
    x, y = start(d)
    w = np.full(M, 1 / M)
    share = (LABELED * LABELS).sum() / LABELED.sum()
    b = np.log(share / (1 - share)) if variant.get("initial_bias") else 0.0
    inputs = x.T @ y
    for iteration in range(iterations):
        x = ridge_regressions(y, r.T, c.T)
        y = ridge_regressions(x, r, c)
        inputs = x.T @ y
        if variant.get("centre"):
            inputs = inputs - inputs[:, LABELED == 1].mean(axis=1, keepdims=True)
        residual, _ = residuals(w, b, inputs, v0, options["focal"])
        if iteration >= options["freeze"] + options["bias_first"]:
            w = w - lr * inputs @ residual
        if iteration >= options["freeze"]:
            b = b - lr * options["bias_lr"] * residual.sum()
    _, entropy = residuals(w, b, inputs, weights_of_classes(0.0), 0.0)  # what is reported is the plain mean
    fit = np.sum(c * (r - x.T @ y) ** 2) + RIDGE * (np.sum(x**2) + np.sum(y**2))
    return {"w": w, "b": b, "r_hat": (x.T @ y)[:, ::3], "loss": RHO * fit + (1 - RHO) * entropy}


def joint(d, variant, iterations=40, lr=0.02, plateau=1.0, patience=10):
    """The joint trainer: Adam on gradients written out, with torch's ReduceLROnPlateau."""
    r, c = ratings(), confidences()["label_aware"]
    v0 = weights_of_classes(variant.get("class_weights", 0.0))
    x, y = start(d)
    p = [x, y, np.full(M, 1 / M), np.zeros(1)]
    first, second = [np.zeros_like(a) for a in p], [np.zeros_like(a) for a in p]
    least, waited = np.inf, 0
    for t in range(1, iterations + 1):
        x, y, w, b = p
        residual, entropy = residuals(w, b[0], x.T @ y, v0, variant.get("focal", 0.0))
        fit = np.sum(c * (r - x.T @ y) ** 2) + RIDGE * (np.sum(x**2) + np.sum(y**2))
        loss = RHO * fit + (1 - RHO) * entropy
        d_r_hat = -2 * RHO * c * (r - x.T @ y) + (1 - RHO) * np.outer(w, residual)
        g = [
            y @ d_r_hat.T + 2 * RHO * RIDGE * x,
            x @ d_r_hat + 2 * RHO * RIDGE * y,
            (1 - RHO) * (x.T @ y) @ residual,
            np.array([(1 - RHO) * residual.sum()]),
        ]
        for k in range(4):
            first[k] = 0.9 * first[k] + 0.1 * g[k]
            second[k] = 0.999 * second[k] + 0.001 * g[k] ** 2
            p[k] = p[k] - lr * (first[k] / (1 - 0.9**t)) / (np.sqrt(second[k] / (1 - 0.999**t)) + 1e-8)
        waited, least = (0, loss) if loss < least * (1 - 1e-4) else (waited + 1, least)
        if waited > patience:
            lr, waited = lr * plateau, 0
    return {"w": p[2], "b": p[3][0], "r_hat": (p[0].T @ p[1])[:, ::3]}


def rounded(value):
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return np.round(value, 12).tolist()


def records():
    als = {f"{name}, d={d}": alternate(d, variant) for name, variant in VARIANTS.items() for d in (3, 7)}
    together = {name: joint(3, VARIANTS[name]) for name in ("plain", "class_weights", "half_weights_focal")}
    return rounded({"confidence": confidences(), "als": als, "joint": together})


def main():
    parser = argparse.ArgumentParser(description="Write tests/golden/ensemble.json.")
    parser.add_argument("--check", action="store_true", help="compare with the file, write nothing")
    golden = records()
    if not parser.parse_args().check:
        PATH.write_text(json.dumps(golden) + "\n")
    elif not same(json.loads(PATH.read_text()), golden):
        sys.exit(f"{PATH} is not what this script computes: run it without --check and see what changed")


if __name__ == "__main__":
    main()
