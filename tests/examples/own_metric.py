"""A metric of your own, in tables and pages: one file, none of jaxpu.

probes: ["own_metric:false_positive_rate"]
"""

import jax.numpy as jnp


def false_positive_rate(seen):
    """Share of the true negatives of the test set that are predicted positive, P(z > 0 | y = 0)."""
    negative = seen.y_test == 0
    called = seen.logits(seen.x_test) > 0
    return jnp.sum(called & negative) / jnp.sum(negative)
