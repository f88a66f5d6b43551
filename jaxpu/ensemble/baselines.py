"""What an ensemble must beat: combinations of the ratings themselves, by name in ``BASELINES``.

Each is ``baseline(ratings, labels, labeled)`` with R (m, n) in [0, 1], y (n,), labeled mask (n,), and returns the
logits of all n instances. No label is read where ``labeled`` is 0.
"""

from collections.abc import Callable

import jax
import numpy as np
from jax import Array
from jax import numpy as jnp

from jaxpu import linalg, metrics
from jaxpu.ensemble.types import Instances, Labels, Mask, Ratings
from jaxpu.types import ScalarLike


def mean(ratings: Ratings, labels: Labels, labeled: Mask) -> Instances:
    """Logit of the mean rating; no label is read.

    Example:
        >>> mean(jnp.array([[0.4], [0.6]]), jnp.array([0]), jnp.array([0])).round(6).tolist()
        [0.0]
    """
    return logit(ratings.mean(axis=0))


def weighted_mean(ratings: Ratings, labels: Labels, labeled: Mask) -> Instances:
    """Logit of Σ ω_u r_u, with ω_u in proportion to max(AUC_u - ½, 0) on the labeled instances.

    Where only one class is labeled, or no classifier is better than chance, all weigh alike.

    Example:
        >>> ratings = jnp.array([[0.9, 0.2, 0.6], [0.2, 0.9, 0.1]])
        >>> z = weighted_mean(ratings, jnp.array([1, 0, 0]), jnp.array([1, 1, 0]))
        >>> print(np.array(jax.nn.sigmoid(z)).round(2))
        [0.9 0.2 0.6]
    """
    auc = jax.vmap(lambda r: metrics.auc(r, labels, mask=labeled))(ratings)
    skill = jnp.maximum(jnp.nan_to_num(auc - 0.5), 0)
    skill = jnp.where(skill.sum() > 0, skill, 1)
    return logit(skill / skill.sum() @ ratings)


def stacking(ratings: Ratings, labels: Labels, labeled: Mask, *, l2: ScalarLike = 1.0, steps: int = 30) -> Instances:
    """Logistic regression on the logits of the ratings: min Σ BCE + l2 |w|² / 2, the intercept free.

    By Newton's method from zero with a line search over halved steps: scikit-learn's ``LogisticRegression`` with
    C = 1 / l2.

    Args:
        ratings, labels, labeled: as at the head. l2: > 0, or separable classes have no solution. steps: of Newton.

    Source: Wolpert, "Stacked generalization", Neural Networks 5, 1992.

    Example:
        >>> z = stacking(jnp.array([[0.9, 0.2, 0.7]]), jnp.array([1, 0, 0]), jnp.array([1, 1, 0]))
        >>> print(np.array(z).round(2))
        [ 1.34 -1.34  0.33]
    """
    known = (jnp.asarray(labeled) > 0).astype(ratings.dtype)
    positive = jnp.asarray(labels) > 0
    phi = jnp.concatenate([logit(ratings), jnp.ones_like(ratings[:1])])
    penalty = jnp.full(phi.shape[0], l2, ratings.dtype).at[-1].set(1e-9)

    def objective(theta: Array) -> Array:
        z = theta @ phi
        return known @ jax.nn.softplus(jnp.where(positive, -z, z)) + jnp.sum(penalty * theta**2) / 2

    def newton(_: Array, theta: Array) -> Array:
        p = jax.nn.sigmoid(theta @ phi)
        slope = phi @ (known * (p - positive)) + penalty * theta
        hessian = (phi * (known * p * (1 - p))[None, :]) @ phi.T + jnp.diag(penalty)
        direction = linalg.solve(hessian, slope)
        sizes = 0.5 ** jnp.arange(12, dtype=theta.dtype)
        values = jax.vmap(lambda s: objective(theta - s * direction))(sizes)
        return theta - sizes[jnp.argmin(values)] * direction

    return jax.lax.fori_loop(0, steps, newton, jnp.zeros(phi.shape[0], ratings.dtype)) @ phi


def isotonic_mean(ratings: Ratings, labels: Labels, labeled: Mask) -> Instances:
    """Logit of the mean of the classifiers' isotonic calibrations on the labeled instances.

    By scikit-learn on the host, so not under ``jit``. Probabilities are kept 1 / (2 n) away from 0 and 1, with n
    labeled instances; without any the mean is returned as it is.

    Source: Zadrozny and Elkan, "Transforming classifier scores into accurate multiclass probability estimates",
    KDD 2002.

    Example:
        >>> z = isotonic_mean(jnp.array([[0.9, 0.2, 0.7]]), jnp.array([1, 0, 0]), jnp.array([1, 1, 0]))
        >>> print(np.array(jax.nn.sigmoid(z)).round(2))
        [0.75 0.25 0.71]
    """
    from sklearn.isotonic import IsotonicRegression  # takes a second to import

    known, truth, rated = np.asarray(labeled) > 0, np.asarray(labels), np.asarray(ratings)
    if not known.any():
        return mean(ratings, labels, labeled)
    edge = 1 / (2 * known.sum())
    fits = [
        IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(r[known], truth[known]).predict(r) for r in rated
    ]
    return jnp.asarray(logit(jnp.clip(jnp.asarray(np.mean(fits, axis=0), ratings.dtype), edge, 1 - edge)))


def logit(p: Array) -> Array:
    """ln(p / (1 - p)), finite: p is kept one rounding error away from 0 and 1.

    Example:
        >>> logit(jnp.array([0.5])).tolist()
        [0.0]
    """
    eps = jnp.finfo(p.dtype).eps
    p = jnp.clip(p, eps, 1 - eps)
    return jnp.log(p) - jnp.log1p(-p)


BASELINES: dict[str, Callable[..., Instances]] = {
    "mean": mean,
    "weighted_mean": weighted_mean,
    "stacking": stacking,
    "isotonic_mean": isotonic_mean,
}
"""The baselines by name."""
