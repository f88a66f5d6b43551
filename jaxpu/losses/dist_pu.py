"""Dist-PU: predictions that are distributed as labels are, surely, and linearly between rows.

Called as the risks of :mod:`jaxpu.losses.pu`, which says what the arguments mean. The first stage of training descends
:func:`label_distribution`, the second one :func:`dist_pu`.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from jaxpu.checks import check_prior, check_range
from jaxpu.losses.batch import Mixed, clean, mean, sets
from jaxpu.losses.surrogates import binary_entropy, soft_cross_entropy
from jaxpu.types import Labeled, Logits, Mask, Scalar, ScalarLike


def label_distribution(
    logits: Logits, labeled: Labeled, *, prior: ScalarLike, mask: Mask | None = None, entropy: ScalarLike = 0.002
) -> Scalar:
    """Distance of the predictions' mean from that of the labels, |E_P[p] - 1| + |E_U[p] - π| / 2π, and μ E_U[H(p)].

    The two distances are 0 where p = 1 on P and p is π on the average of U, which p = π everywhere on U is too; the
    entropy, ``entropy`` = μ, makes the predictions choose. The paper's R_lab = 2π R_L + R_U is 2π times the distances;
    written here as in its authors' code, which the coefficients belong to. A distance over no row is 0.

    Source: Zhao et al., "Dist-PU: Positive-Unlabeled Learning from a Label Distribution Perspective", CVPR 2022.

    Example:
        >>> round(float(label_distribution(jnp.array([0.0, 0.0]), jnp.array([1, 0]), prior=0.4, entropy=0.0)), 4)
        0.625
    """
    check_prior(prior)
    check_range("entropy", entropy, 0)
    positive, unlabeled = sets(labeled, mask)
    z = clean(logits, positive | unlabeled)
    of_unlabeled = jnp.where(unlabeled.any(), jnp.abs(mean(jax.nn.sigmoid(z), unlabeled) - prior), 0)
    distances = mean(jax.nn.sigmoid(-z), positive) + of_unlabeled / (2 * prior)  # p never exceeds 1
    return distances + entropy * mean(binary_entropy(z), unlabeled)


def dist_pu(
    logits: Logits,
    labeled: Labeled,
    *,
    prior: ScalarLike,
    mask: Mask | None = None,
    mixed: Mixed | None = None,
    memory: dict[str, Float[Array, " rows"]] | None = None,
    rows: Int[Array, " n"] | None = None,
    progress: ScalarLike | None = None,
    warm_up: ScalarLike = 0.5,
    entropy: ScalarLike = 0.004,
    mixing: ScalarLike = 5.0,
    mixed_entropy: ScalarLike = 0.04,
) -> Scalar:
    """The distances of :func:`label_distribution` + μ(t) E_U[H(p)] + ν E[H(q_mix, p_mix)] + γ E[H(p_mix)].

    q is 1 on P and elsewhere what the network said of a row when it last saw it, a constant; q_mix and p_mix are those
    of rows that are mixed with any other row of the batch. t is the share of this stage that is done, and μ(t) is
    μ (1 - cos(π t / 2)).

    Args:
        mixed: the pass over mixed rows; without it its two terms are left out. memory, rows: q of all training rows,
            ``memory["said"]``, and which of them these are; None = what the network says now. progress: the share of
            all epochs that is done; None = all of them.
        warm_up: the share of the epochs before this stage. entropy: μ. mixing: ν. mixed_entropy: γ.
        logits, labeled, prior, mask: as for all, see :mod:`jaxpu.losses.pu`.

    Source: Zhao et al., CVPR 2022, as :func:`label_distribution`. Its authors start this stage with a fresh optimiser
    and a tenth of the learning rate; here both go on.

    Example:
        >>> z, s = jnp.array([0.0, 0.0]), jnp.array([1, 0])
        >>> mixed = Mixed(jnp.array([0.0, 0.0]), jnp.array([1, 0]), 0.5)
        >>> round(float(dist_pu(z, s, prior=0.4, mixed=mixed)), 4)  # 0.625 + (0.004 + 5 + 0.04) log 2
        4.1212
    """
    numbers = {"warm_up": warm_up, "entropy": entropy, "mixing": mixing, "mixed_entropy": mixed_entropy}
    for name, value in numbers.items():
        check_range(name, value, 0)
    positive, unlabeled = sets(labeled, mask)
    counted = positive | unlabeled
    z = clean(logits, counted)
    done = 1 if progress is None else (progress - warm_up) / jnp.maximum(1 - warm_up, 1e-6)
    rising = 1 - jnp.cos(jnp.pi / 2 * jnp.clip(done, 0, 1))
    plain = label_distribution(logits, labeled, prior=prior, mask=mask, entropy=0.0)
    plain += entropy * rising * mean(binary_entropy(z), unlabeled)
    if mixed is None:
        return plain
    said = jax.nn.sigmoid(z) if memory is None or rows is None else memory["said"][rows].astype(z.dtype)
    q = mixed.of(jax.lax.stop_gradient(jnp.where(positive, 1, said)))
    z_mixed = clean(mixed.logits, counted)
    apart, doubt = soft_cross_entropy(z_mixed, q), binary_entropy(z_mixed)
    return plain + mixing * mean(apart, counted) + mixed_entropy * mean(doubt, counted)
