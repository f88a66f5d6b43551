"""An optimiser of your own: a function of the traced numbers to an optax transformation; no file of jaxpu is touched.

AdamW with a cosine by name is ``training: {optimizer: adamw, schedule: cosine}``; this one clips gradients besides. In
YAML a function of your own is ``training: {optimizer: "own_optimizer:clipped_adamw", schedule: cosine}``.
"""

import optax

import jaxpu


def clipped_adamw(numbers):
    """``numbers.lr`` is the learning rate of every update, by the schedule."""
    adamw = optax.adamw(numbers.lr, weight_decay=numbers.weight_decay)
    return optax.chain(optax.clip_by_global_norm(1.0), adamw)


def main():
    """Both, at two learning rates, which share a program."""
    base = {
        "data": {"name": "gaussians", "options": {"n": 150, "d": 3, "separation": 3.0}, "c": 0.5},
        "model": {"name": "linear"},
        "training": {"schedule": "cosine", "epochs": 4, "batch_size": 48},
        "methods": ["vpudra_softlabel"],
        "seeds": 2,
        "grid": {"training.lr": [0.05, 0.1]},
    }
    return [
        jaxpu.sweep({**base, "training": {**base["training"], "optimizer": optimizer}})
        for optimizer in ("adamw", clipped_adamw)
    ]


if __name__ == "__main__":
    for outcome in main():
        print(outcome.runs.select("training.lr", "seed", "epoch", "test_oracle_f1"))
