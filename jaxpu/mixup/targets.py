"""Targets μ of mixed examples."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxpu.checks import check_range
from jaxpu.types import ScalarLike


def log_target(
    log_p: Float[Array, " n"],
    log_p_partner: Float[Array, " n"],
    lam: ScalarLike | Float[Array, " n"],
    *,
    anchor: ScalarLike = 1.0,
    floor: ScalarLike = 0.0,
    partner_floor: ScalarLike = 0.0,
    detach: ScalarLike = 1.0,
) -> Float[Array, " n"]:
    """Logarithm of the target μ = max(λ p + (1 - λ) [a + (1 - a) max(p', f')], f) of a mixed example.

    The partner counts as a positive to the degree of the anchor a: 1 is VPU's target, which trusts its label,
    and 0 the soft label, which trusts the model's p'. All numbers may be traced; λ, a, f and f' may be
    exactly 0 or 1. The target is a constant, not differentiated, unless ``detach`` is 0.

    Args:
        log_p: log p(x), shape (n,).
        log_p_partner: log p(x') of each row's partner, shape (n,).
        lam: λ, one for the batch or one a row.
        anchor: a in [0, 1].
        floor: f in [0, 1], a lower bound of μ.
        partner_floor: f' in [0, 1], a lower bound of p'.
        detach: 1 holds the target; 0 lets gradients through, as the code of VPU's authors does.

    Returns:
        log μ, shape (n,), in float32 or wider; -inf only where μ is 0, which takes a log p of -inf.

    Raises:
        ValueError: shapes other than these, or a known number outside [0, 1].

    Example:
        >>> log_p, log_p_partner = jnp.log(jnp.array([0.2])), jnp.log(jnp.array([0.4]))
        >>> round(float(jnp.exp(log_target(log_p, log_p_partner, 0.5))[0]), 4)
        0.6
        >>> round(float(jnp.exp(log_target(log_p, log_p_partner, 0.5, anchor=0.0))[0]), 4)
        0.3
    """
    log_p, log_p_partner, lam = jnp.asarray(log_p), jnp.asarray(log_p_partner), jnp.asarray(lam)
    if log_p.ndim != 1 or log_p_partner.shape != log_p.shape or lam.shape not in ((), log_p.shape):
        raise ValueError(
            f"log_p, log_p_partner and lam have shapes {log_p.shape}, {log_p_partner.shape} and {lam.shape}, "
            "expected (n,), (n,) and () or (n,)"
        )
    for name, value in {"lam": lam, "anchor": anchor, "floor": floor, "partner_floor": partner_floor}.items():
        check_range(name, value, 0, 1)
    wide = jnp.promote_types(log_p.dtype, jnp.float32)
    log_p, log_p_partner, lam = log_p.astype(wide), log_p_partner.astype(wide), lam.astype(wide)
    floored_partner = jnp.maximum(log_p_partner, jnp.log(partner_floor))
    log_partner = jnp.logaddexp(jnp.log(anchor), jnp.log1p(-anchor) + floored_partner)
    log_mu = jnp.logaddexp(jnp.log(lam) + log_p, jnp.log1p(-lam) + log_partner)
    log_mu = jnp.maximum(log_mu, jnp.log(floor))
    held = jax.lax.stop_gradient(log_mu)
    if isinstance(detach, int | float):
        return held if detach else log_mu
    return jnp.where(jnp.asarray(detach) > 0, held, log_mu)
