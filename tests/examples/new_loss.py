"""A loss of your own, with a method of it, on Spambase: one file, and no file of jaxpu is touched.

Run it: ``python new_loss.py``. In YAML it is ``methods: [{risk: "new_loss:ranked", penalty: log_mse, margin: 2}]``.
"""

import jax.numpy as jnp

from jaxpu import api
from jaxpu.methods import Method


def ranked(logits, labeled, *, mask=None, margin=1.0):
    """Mean hinge over pairs, E_P E_U max(margin - z_P + z_U, 0): a labeled row is to score higher."""
    positive, unlabeled = (labeled == 1) & (mask != 0), (labeled != 1) & (mask != 0)
    z = jnp.where(positive | unlabeled, logits, 0)  # what stands in padding must not reach the gradient
    pairs = positive[:, None] & unlabeled[None, :]
    short = jnp.maximum(margin - z[:, None] + z[None, :], 0)
    return jnp.where(pairs, short, 0).sum() / jnp.maximum(pairs.sum(), 1)


METHOD = Method(ranked, options={"margin": 2.0}, decision="quantile", source="pairwise hinge")
SMALL = {"data": {"name": "spambase"}, "model": {"hidden": [16]}, "training": {"epochs": 3, "lr": 3e-3}}

if __name__ == "__main__":
    print(api.sweep(SMALL | {"methods": [METHOD], "seeds": 4}).runs.select("seed", "epoch", "test_oracle_auc"))
