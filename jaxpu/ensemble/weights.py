"""Weights of the labeled instances in the supervised part: inverse class frequency, and focal."""

import jax
from jax import numpy as jnp

from jaxpu.checks import check_range
from jaxpu.ensemble.types import Instances, Labels, Mask
from jaxpu.losses import inverse_frequency, row_weights
from jaxpu.types import ScalarLike


def class_weights(labels: Labels, labeled: Mask, *, strength: ScalarLike = 1.0) -> Instances:
    """Inverse class frequency, vᵢ = (n / (2 n_class(i)))^s on labeled instances and 0 elsewhere.

    With s = 1 both classes have the same total weight n / 2; s = 0 weighs all alike, s between them less, s above
    1 overdoes it. Where only one class is labeled every weight is 1.

    Args:
        labels: y, shape (n,), 1 = positive; not read where ``labeled`` is 0.
        labeled: 1 = the label is known, shape (n,).
        strength: s; may be traced.

    Returns:
        The weights, shape (n,).

    Source: :func:`jaxpu.losses.inverse_frequency`, of which this is a power.

    Example:
        >>> import numpy as np
        >>> print(np.array(class_weights(jnp.array([1.0, 0.0, 0.0, 0.0, 0.0]), jnp.array([1, 1, 1, 1, 0]))).round(3))
        [2.    0.667 0.667 0.667 0.   ]
    """
    check_range("strength", strength, 0)
    known, positive = jnp.asarray(labeled) > 0, jnp.asarray(labels) > 0
    of_class = inverse_frequency(positive, 2, mask=known) ** strength
    return row_weights(of_class, positive, mask=known)


def focal_weights(logits: Instances, labels: Labels, *, exponent: ScalarLike) -> Instances:
    """Focal factor (1 - p_t)^γ, with p_t = p where y = 1 and 1 - p where y = 0: hard instances count more.

    It multiplies weights and is not differentiated, so that the gradient stays (p - y) times a weight;
    :func:`jaxpu.losses.focal` is differentiated through it.

    Args:
        logits: z, shape (n,). labels: y, shape (n,). exponent: γ ≥ 0; 0 gives ones.

    Source: Lin et al., "Focal loss for dense object detection", ICCV 2017.

    Example:
        >>> import numpy as np
        >>> print(np.array(focal_weights(jnp.array([0.0, 2.0]), jnp.array([1.0, 1.0]), exponent=2.0)).round(4))
        [0.25   0.0142]
    """
    check_range("exponent", exponent, 0)
    return jnp.exp(exponent * jax.nn.log_sigmoid(jnp.where(labels > 0, -logits, logits)))
