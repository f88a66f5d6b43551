"""What the scores of P and U look like, where no true label is known: the columns that label-free verdicts read."""

import jax
import jax.numpy as jnp

from jaxpu.checks import check_range
from jaxpu.metrics.checks import rows_of, weighted_mean
from jaxpu.types import Labeled, Logits, Mask, Scalar, ScalarLike


def score_summary(
    logits: Logits, labeled: Labeled, *, prior: ScalarLike, mask: Mask | None = None
) -> dict[str, Scalar]:
    """Shares predicted positive, mean and spread of p in U, by their recorded names.

    A row is predicted positive iff p > 1/2, whatever the method's own decision.

    Args:
        logits: z, shape (n,).
        labeled: 1 = labeled positive, 0 = unlabeled, shape (n,).
        prior: π, the share of positives in U that the method is given; recorded beside what it is compared with.
        mask: 1 for a row that counts, shape (n,).

    Returns:
        Scalars ``unlabeled_positive`` and ``labeled_positive`` (share of U, of P with z > 0), ``unlabeled_mean`` and
        ``unlabeled_sd`` (of p in U, divisor n), ``given_prior``; NaN without such rows.

    Example:
        >>> z, s = jnp.array([2.0, 3.0, 1.0, -1.0]), jnp.array([1, 1, 0, 0])
        >>> values = score_summary(z, s, prior=0.5)
        >>> float(values["labeled_positive"]), float(values["unlabeled_positive"])
        (1.0, 0.5)
    """
    check_range("prior", prior, 0, 1)
    rows = rows_of(logits, labeled, mask)
    p = jax.nn.sigmoid(rows.z)
    mean = weighted_mean(p, rows.negative)
    return {
        "labeled_positive": weighted_mean(rows.z > 0, rows.positive),
        "unlabeled_positive": weighted_mean(rows.z > 0, rows.negative),
        "unlabeled_mean": mean,
        "unlabeled_sd": jnp.sqrt(weighted_mean((p - mean) ** 2, rows.negative)),
        "given_prior": jnp.asarray(prior, p.dtype),
    }
