"""An optimiser of your own: a function of the traced numbers to an optax transformation; here AdamW with a cosine.

By name it is ``training: {optimizer: adamw, schedule: cosine}``. In YAML a function of your own is
``training: {optimizer: "own_optimizer:clipped_adamw"}``.
"""

import optax

from jaxpu import config


def clipped_adamw(numbers):
    """AdamW whose gradients are clipped; ``numbers.lr`` is the learning rate of every update."""
    return optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(numbers.lr, weight_decay=numbers.weight_decay, b1=numbers.b1)
    )


EXPERIMENT = config.parse(
    {
        "data": {"name": "gaussians", "options": {"n": 150, "d": 3, "separation": 3.0}, "c": 0.5},
        "model": {"name": "linear"},
        "training": {"optimizer": clipped_adamw, "schedule": "cosine", "epochs": 4, "batch_size": 48, "lr": 0.1},
        "methods": ["vpudra_softlabel"],
        "seeds": 2,
    }
)
