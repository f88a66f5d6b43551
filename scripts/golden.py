"""Write the golden values of the risks, computed a second time: float64 NumPy, no jax, nothing of jaxpu.

    python scripts/golden.py           writes tests/golden/losses.json
    python scripts/golden.py --check   fails if that file is not what it would write

Run it again after adding a loss, an option or a batch below; never to make a failing test pass. The formulas
are written down as a paper has them. float64 needs no care about overflow at the logits used here, and the
gradient is a finite difference, so that no derivation is shared with the code under test.
"""

import argparse
import functools
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PATH = Path(__file__).resolve().parent.parent / "tests" / "golden" / "losses.json"

# Logits and labeled flags, at most 8 rows each.
BATCHES: dict[str, tuple[list[float], list[int]]] = {
    "typical": ([1.5, -0.7, 0.2, 2.4, -1.9, 0.6, -0.1, -3.2], [1, 1, 1, 0, 0, 0, 0, 0]),
    "clipped": ([4.0, 4.0, -4.0, -4.0], [1, 1, 0, 0]),
    "no_positive": ([0.3, -1.2, 2.0], [0, 0, 0]),
    "no_unlabeled": ([0.8, -0.4], [1, 1]),
    "one_positive": ([0.5], [1]),
    "one_unlabeled": ([-0.5], [0]),
    "dead": ([-100.0, -100.0, -100.0, -100.0], [1, 1, 0, 0]),
    "extreme": ([100.0, -100.0, 100.0, -100.0], [1, 1, 0, 0]),
    "extreme_half": ([20.0, -20.0, 20.0, -20.0], [1, 1, 0, 0]),
}

# Every risk of the registry at least once, with the options that it is tried with.
CONFIGURATIONS: list[tuple[str, dict[str, Any]]] = [
    ("pn", {}),
    ("pn", {"surrogate": "encouraging"}),
    ("pn_naive", {}),
    ("pn_naive", {"surrogate": "focal", "focus": 1.0}),
    ("upu", {"prior": 0.4}),
    *[
        ("upu", {"prior": 0.4, "surrogate": name})
        for name in ("logistic", "squared", "savage", "mae_mse", "bonus", "encouraging", "encouraging_unit", "focal")
    ],
    ("upu", {"prior": 0.4, "surrogate": "encouraging", "log_end": 0.5}),
    ("nnpu_clip", {"prior": 0.4}),
    ("nnpu_clip", {"prior": 0.4, "beta": 0.05, "surrogate": "savage"}),
    ("nnpu", {"prior": 0.4}),
    ("nnpu", {"prior": 0.4, "gamma": 0.5}),
    ("nnpusb", {"prior": 0.4}),
    ("pudra", {"prior": 0.4}),
    ("pudra_softplus", {"prior": 0.4}),
    ("pudra_batch", {}),
    ("pudra_naive", {}),
    ("variational", {}),
    ("variational", {"over": "unlabeled"}),
    ("label_distribution", {"prior": 0.4}),
    ("label_distribution", {"prior": 0.4, "entropy": 0.5}),
    ("dist_pu", {"prior": 0.4}),
    ("dist_pu", {"prior": 0.3, "progress": 0.7, "warm_up": 0.25, "entropy": 0.5, "mixing": 2.0, "mixed_entropy": 0.7}),
    ("p3mix_c", {}),
    ("p3mix_c", {"upper": 0.6, "unlabeled_weight": 0.7, "entropy": 0.3}),
    ("p3mix_e", {}),
    ("p3mix_e", {"lower": 0.3, "upper": 0.6, "unlabeled_weight": 0.7, "entropy": 0.3, "early": 0.9}),
    ("lbe", {}),
    ("lbe", {"keep": 0.5}),
    ("cvir", {"prior": 0.4}),
    ("cvir", {"prior": 0.7}),
]

# What risks see that ask for more than a batch: mixed rows, whose logits are half those of the rows, whose partners are
# the rows themselves, and λ; what the network said of every row before; the logit that a teacher gives to every row.
MIXED, LAM, SAID, TEACHER = 0.5, 0.3, 0.8, 1.0


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def softplus(z):
    return np.log1p(np.exp(z))


SURROGATES: dict[str, Callable] = {
    "sigmoid": lambda margin, **_: sigmoid(-margin),
    "logistic": lambda margin, **_: softplus(-margin),
    "squared": lambda margin, **_: (margin - 1) ** 2 / 4,
    "savage": lambda margin, **_: sigmoid(-margin) ** 2,
    "mae_mse": lambda margin, **_: sigmoid(-margin) + sigmoid(-margin) ** 2,
    "bonus": lambda margin, **_: -margin,
    "encouraging": lambda margin, log_end=0.75, **_: encouraging(margin, 1 / (1 - log_end), log_end),
    "encouraging_unit": lambda margin, log_end=0.75, **_: encouraging(margin, 1, log_end),
    "focal": lambda margin, focus=2.0, **_: sigmoid(-margin) ** focus * softplus(-margin),
}


def encouraging(margin, steepness, end):
    p = sigmoid(margin)
    bonus = np.where(p <= end, np.log1p(-np.minimum(p, end)), np.log(1 - end) - steepness * (p - end))
    return softplus(-margin) + bonus


def mean(values):
    return values.mean() if values.size else 0.0


# Every formula takes the logits of the positives and of the unlabeled rows, and returns the reported value
# and the objective whose gradient is taken; the two differ for a clipped nnPU only.


def pn(positive, unlabeled, surrogate="logistic", **option):
    """The labels are those of the batch: its "unlabeled" rows are the negatives."""
    loss = functools.partial(SURROGATES[surrogate], **option)
    value = mean(np.concatenate([loss(positive), loss(-unlabeled)]))
    return value, value


def risks(positive, unlabeled, prior, surrogate, **option):
    loss = functools.partial(SURROGATES[surrogate], **option)
    return prior * mean(loss(positive)), mean(loss(-unlabeled)) - prior * mean(loss(-positive))


def upu(positive, unlabeled, prior, surrogate="sigmoid", **option):
    value = sum(risks(positive, unlabeled, prior, surrogate, **option))
    return value, value


def nnpu_clip(positive, unlabeled, prior, surrogate="sigmoid", beta=0.0):
    positive_risk, negative_risk = risks(positive, unlabeled, prior, surrogate)
    value = positive_risk + max(negative_risk, -beta)
    return value, value


def nnpu(positive, unlabeled, prior, surrogate="sigmoid", beta=0.0, gamma=1.0):
    positive_risk, negative_risk = risks(positive, unlabeled, prior, surrogate)
    value = positive_risk + max(negative_risk, -beta)
    return value, -gamma * negative_risk if negative_risk < -beta else positive_risk + negative_risk


def nnpusb(positive, unlabeled, prior):
    return nnpu(positive, unlabeled, prior, surrogate="logistic")


def pudra(positive, unlabeled, prior, ratio=sigmoid):
    value = prior * mean(-np.log(ratio(positive))) + mean(ratio(unlabeled))
    return value, value


def pudra_softplus(positive, unlabeled, prior):
    return pudra(positive, unlabeled, prior, softplus)


def pudra_batch(positive, unlabeled):
    return pudra(positive, unlabeled, positive.size / max(positive.size + unlabeled.size, 1))


def pudra_naive(positive, unlabeled):
    value = mean(sigmoid(positive) - np.log(sigmoid(positive))) + mean(sigmoid(unlabeled))
    return value, value


def variational(positive, unlabeled, over="all"):
    rows = np.concatenate([positive, unlabeled]) if over == "all" else unlabeled
    log_mean = np.log(mean(sigmoid(rows))) if rows.size else 0.0
    value = log_mean - mean(np.log(sigmoid(positive)))
    return value, value


def cross_entropy(z, y):
    return y * softplus(-z) + (1 - y) * softplus(z)


def entropy_of(z):
    return cross_entropy(z, sigmoid(z))


def label_distribution(positive, unlabeled, prior, entropy=0.002):
    of_positive = abs(sigmoid(positive).mean() - 1) if positive.size else 0.0
    of_unlabeled = abs(sigmoid(unlabeled).mean() - prior) if unlabeled.size else 0.0
    value = of_positive + of_unlabeled / (2 * prior) + entropy * mean(entropy_of(unlabeled))
    return value, value


def dist_pu(positive, unlabeled, prior, progress=1.0, warm_up=0.5, entropy=0.004, mixing=5.0, mixed_entropy=0.04):
    rising = 1 - math.cos((progress - warm_up) / (1 - warm_up) * math.pi / 2)
    plain, _ = label_distribution(positive, unlabeled, prior, entropy * rising)
    mixed = MIXED * np.concatenate([positive, unlabeled])
    said = np.concatenate([np.ones(positive.size), np.full(unlabeled.size, SAID)])
    value = plain + mixing * mean(cross_entropy(mixed, said)) + mixed_entropy * mean(entropy_of(mixed))
    return value, value


def p3mix(positive, unlabeled, y, unlabeled_weight, entropy):
    """Cross-entropies and entropy of the mixed rows; y is the label of the unlabeled ones."""
    value = mean(softplus(-MIXED * positive)) + unlabeled_weight * mean(cross_entropy(MIXED * unlabeled, y))
    return value + entropy * mean(entropy_of(MIXED * np.concatenate([positive, unlabeled])))


def p3mix_c(positive, unlabeled, upper=0.85, unlabeled_weight=0.5, entropy=0.05):
    value = p3mix(positive, unlabeled, np.where(sigmoid(unlabeled) > upper, 1, 0), unlabeled_weight, entropy)
    return value, value


def p3mix_e(positive, unlabeled, lower=0.15, upper=0.85, unlabeled_weight=1.0, entropy=0.01, early=0.5):
    said, p = sigmoid(TEACHER), sigmoid(unlabeled)
    doubted = (p > lower) & (p < upper)
    t = np.concatenate([np.full(positive.size, said), np.where(doubted, LAM * said + (1 - LAM), said)])
    mixed = np.clip(sigmoid(MIXED * np.concatenate([positive, unlabeled])), 1e-4, 1 - 1e-4)
    value = p3mix(positive, unlabeled, np.zeros(unlabeled.size), unlabeled_weight, entropy)
    value += early * mean(np.log(1 - t * mixed - (1 - t) * (1 - mixed)))
    return value, value


def trimmed(values, held, count):
    """Mean of the ``count`` values whose held ones are lowest; equal ones at the end share what is left."""
    if not values.size:
        return 0.0
    edge = np.sort(held)[count - 1]
    below, at = held < edge, held == edge
    weights = below + at * (count - below.sum()) / at.sum()
    return (weights * values).sum() / count


def lbe(positive, unlabeled, held, keep=0.8):
    def each(positive, unlabeled):
        return np.concatenate([softplus(-positive), cross_entropy(unlabeled, SAID)])

    values = each(positive, unlabeled)
    value = trimmed(values, each(*held), max(int(keep * values.size + 1e-9), 1))
    return value, value


def cvir(positive, unlabeled, held, prior):
    kept = unlabeled.size - int(prior * unlabeled.size + 1e-9)
    value = prior * mean(softplus(-positive)) + (1 - prior) * trimmed(softplus(unlabeled), softplus(held[1]), kept)
    return value, value


FORMULAS = {
    f.__name__: f for f in (upu, nnpu, nnpu_clip, nnpusb, pudra, pudra_softplus, pudra_batch, pudra_naive, variational)
}
FORMULAS |= {"pn": pn, "pn_naive": pn, "label_distribution": label_distribution, "dist_pu": dist_pu}
FORMULAS |= {"p3mix_c": p3mix_c, "p3mix_e": p3mix_e, "lbe": lbe, "cvir": cvir}
HELD = ("lbe", "cvir")
"""Those that rank rows, which a gradient does not see: they get the logits that it is taken at, too."""


def value_and_gradient(name, logits, labeled, **options):
    """Value and gradient of a loss; the gradient by differences of fourth order, to about 1e-10."""
    logits, positive = np.asarray(logits, float), np.asarray(labeled) == 1

    held = {"held": (logits[positive], logits[~positive])} if name in HELD else {}

    def evaluate(z):
        return FORMULAS[name](z[positive], z[~positive], **held, **options)

    def slope(direction, step=4e-3):
        near, far = (
            evaluate(logits + k * step * direction)[1] - evaluate(logits - k * step * direction)[1] for k in (1, 2)
        )
        return (8 * near - far) / (12 * step)

    return evaluate(logits)[0], np.array([slope(direction) for direction in np.eye(logits.size)])


def records():
    for name, options in CONFIGURATIONS:
        for batch, (logits, labeled) in BATCHES.items():
            value, gradient = value_and_gradient(name, logits, labeled, **options)
            yield {
                "loss": name,
                "options": options,
                "batch": batch,
                "value": round(float(value), 12),
                "gradient": [round(float(slope), 9) + 0.0 for slope in gradient],
            }


def same(a, b):
    """Equality, but for the last digits of numbers, in which builds of the C library's exp differ."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=2e-9)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


def main():
    parser = argparse.ArgumentParser(description="Write tests/golden/losses.json.")
    parser.add_argument("--check", action="store_true", help="compare with the file, write nothing")
    golden = list(records())
    if not parser.parse_args().check:
        PATH.write_text("[\n" + ",\n".join(map(json.dumps, golden)) + "\n]\n")
    elif not same(json.loads(PATH.read_text()), golden):
        sys.exit(f"{PATH} is not what this script computes: run it without --check and see what changed")


if __name__ == "__main__":
    main()
