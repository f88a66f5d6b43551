"""Penalties of the prediction p on a mixed example for its distance from the target μ, from log μ and log p.

Both are least at p = μ. They differ in the size of their gradient with respect to the logit z of p = σ(z):

- log-MSE: -2 (log μ - log p)(1 - p), which keeps growing with the ratio μ/p;
- point process: (p - μ)(1 - p), within ±1.

They have no mask: clean padded rows before the call, since a NaN survives being zeroed after it.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


def log_mse(log_mu: Float[Array, " n"], log_p: Float[Array, " n"]) -> Float[Array, " n"]:
    """Squared difference of logarithms, (log μ - log p)², of VPU (Chen et al., NeurIPS 2020).

    Raises:
        ValueError: the shapes differ or are not (n,).

    Example:
        >>> log_mse(jnp.array([-1.0]), jnp.array([-3.0])).tolist()
        [4.0]
    """
    log_mu, log_p = _wide(log_mu, log_p)
    return jnp.square(log_mu - log_p)


def point_process(log_mu: Float[Array, " n"], log_p: Float[Array, " n"]) -> Float[Array, " n"]:
    """Negative log-likelihood of a Poisson process with intensity p and count μ, -μ log p + p.

    Raises:
        ValueError: the shapes differ or are not (n,).

    Example:
        >>> point_process(jnp.array([0.0]), jnp.array([0.0])).tolist()
        [1.0]
    """
    log_mu, log_p = _wide(log_mu, log_p)
    return jnp.exp(log_p) - jnp.exp(log_mu) * log_p


PENALTIES: dict[str, Callable[[Array, Array], Array]] = {"log_mse": log_mse, "point_process": point_process}
"""The penalties by name."""


def _wide(log_mu: Float[Array, " n"], log_p: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Both in float32 or wider, with their shapes checked."""
    log_mu, log_p = jnp.asarray(log_mu), jnp.asarray(log_p)
    if log_p.ndim != 1 or log_mu.shape != log_p.shape:
        raise ValueError(f"log_mu and log_p have shapes {log_mu.shape} and {log_p.shape}, expected (n,) each")
    wide = jnp.promote_types(log_p.dtype, jnp.float32)
    return log_mu.astype(wide), log_p.astype(wide)
