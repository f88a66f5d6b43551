"""Golden values of the classification losses, computed apart from jaxpu: float64 NumPy, loops, finite differences.

python scripts/golden_classification.py            # writes tests/golden/classification.json
python scripts/golden_classification.py --check    # compares with it

The formulas are in the probability of the label and in that of the others, as papers have them; a soft label is an
expectation over classes, written out. Run it again after adding a loss, an option or a batch; never to make a failing
test pass.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from golden import same

PATH = Path(__file__).parents[1] / "tests" / "golden" / "classification.json"

WEIGHTS = [1.0, 2.0, 0.5, 0.0, 1.5, 3.0]

# Logits of six rows and their labels. A list of numbers is one logit a row.
BATCHES: dict[str, tuple[list[Any], list[Any]]] = {
    "binary": ([1.5, -0.7, 0.2, 2.4, -3.1, 0.6], [1, 1, 0, 1, 0, 0]),
    "binary_soft": ([1.5, -0.7, 0.2, 2.4, -3.1, 0.6], [0.9, 0.3, 0.5, 1.0, 0.25, 0.0]),
    "binary_extreme": ([100.0, -100.0, 100.0, -100.0, 30.0, -30.0], [1, 1, 0, 0, 1, 1]),
    "classes": (
        [[0.3, -1.2, 0.8], [2.5, 0.1, -0.4], [-2.0, 1.0, 1.1], [0.0, 0.0, 0.1], [3.0, -1.0, 0.5], [0.2, 2.8, 0.4]],
        [2, 0, 0, 1, 2, 1],
    ),
    "classes_soft": (
        [[0.3, -1.2, 0.8], [2.5, 0.1, -0.4], [-2.0, 1.0, 1.1], [0.0, 0.0, 0.1], [3.0, -1.0, 0.5], [0.2, 2.8, 0.4]],
        [[0.2, 0.1, 0.7], [1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5], [0, 0.1, 0.9], [0.05, 0.9, 0.05]],
    ),
    "classes_extreme": (
        [[100.0, 0, 0], [-100.0, 0, 1], [20, -100, 100], [-30, -30, 10], [10, 30, -10], [0, 100, 99]],
        [0, 0, 0, 2, 2, 1],
    ),
    "classes_extreme_soft": (
        [[100.0, 0, 0], [-100.0, 0, 1], [20, -100, 100], [-30, -30, 10], [10, 30, -10], [0, 100, 99]],
        [[0.8, 0.1, 0.1], [0.5, 0.5, 0], [0, 0, 1], [0.2, 0.3, 0.5], [0, 1, 0], [0.3, 0.3, 0.4]],
    ),
}

CONFIGURATIONS: list[tuple[str, dict[str, Any]]] = [
    ("mse", {}),
    ("cross_entropy", {}),
    ("mae", {}),
    ("mae_mse", {}),
    ("bonus", {}),
    ("bonus", {"floor": 0.15}),
    ("encouraging", {}),
    ("encouraging", {"log_end": 0.5, "slope": "unit"}),
    ("encouraging", {"log_end": 0.0}),
    ("encouraging", {"log_end": 1.0}),
    ("focal", {}),
    ("focal", {"gamma": 0.5}),
]


# Every formula takes p, the probability of a class, and rest = 1 - p, summed over the others.


def mse(p, rest):
    return rest**2


def cross_entropy(p, rest):
    return -np.log(p)


def mae(p, rest):
    return rest


def mae_mse(p, rest):
    return rest + rest**2


def bonus(p, rest, floor=0.0):
    return -np.log(p) + np.log(max(rest, floor))


def encouraging(p, rest, log_end=0.75, slope="tangent"):
    if p <= log_end or log_end == 1:
        return -np.log(p) + np.log(rest)
    if slope == "unit":
        c = np.log(1 - log_end) + log_end
        return -np.log(p) + c - p
    return -np.log(p) + np.log(1 - log_end) - (p - log_end) / (1 - log_end)


def focal(p, rest, gamma=2.0):
    return -(rest**gamma) * np.log(p)


FORMULAS = {f.__name__: f for f in (mse, cross_entropy, mae, mae_mse, bonus, encouraging, focal)}


def probabilities(logits):
    """Pairs p, 1 - p of every class of one row; a number stands for the logits 0 and itself."""
    powers = np.exp(np.atleast_1d(logits) if np.ndim(logits) else np.array([0.0, logits]))
    total = powers.sum()
    return [(powers[k] / total, np.delete(powers, k).sum() / total) for k in range(powers.size)]


def shares(label, classes):
    """The label as a distribution; a number between 0 and 1 is the probability of class 1 of two."""
    if np.ndim(label):
        return label
    if classes == 2:
        return [1 - label, label]
    return [float(k == label) for k in range(classes)]


def of_row(name, logits, label, **options):
    ps = probabilities(logits)
    return sum(q * FORMULAS[name](*p, **options) for q, p in zip(shares(label, len(ps)), ps, strict=True) if q)


def slopes(name, logits, label, step=4e-3, **options):
    """Gradient of one row in its logits, by differences of fourth order."""

    def along(direction):
        near, far = (
            of_row(name, logits + k * step * direction, label, **options)
            - of_row(name, logits - k * step * direction, label, **options)
            for k in (1, 2)
        )
        return (8 * near - far) / (12 * step)

    logits = np.asarray(logits, float)
    return [along(direction) for direction in np.eye(logits.size)] if logits.ndim else along(1.0)


def rounded(values, digits):
    return (np.round(np.asarray(values, float), digits) + 0.0).tolist()


def records():
    for name, options in CONFIGURATIONS:
        for batch, (logits, labels) in BATCHES.items():
            rows = [of_row(name, z, label, **options) for z, label in zip(logits, labels, strict=True)]
            gradient = [slopes(name, z, label, **options) for z, label in zip(logits, labels, strict=True)]
            yield {
                "loss": name,
                "options": options,
                "batch": batch,
                "rows": rounded(rows, 12),
                "gradient": rounded(gradient, 9),
                "mean": rounded(np.dot(WEIGHTS, rows) / np.sum(WEIGHTS), 12),
            }


def main():
    parser = argparse.ArgumentParser(description="Write tests/golden/classification.json.")
    parser.add_argument("--check", action="store_true", help="compare with the file, write nothing")
    golden = list(records())
    if not parser.parse_args().check:
        PATH.write_text("[\n" + ",\n".join(map(json.dumps, golden)) + "\n]\n")
    elif not same(json.loads(PATH.read_text()), golden):
        sys.exit(f"{PATH} is not what this script computes: run it without --check and see what changed")


if __name__ == "__main__":
    main()
