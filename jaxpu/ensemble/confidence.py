"""How much each rating counts in the factorisation: strategies, all called alike, by name in ``CONFIDENCE``.

Each is ``strategy(ratings, labels, labeled, alpha=...)`` with R (m, n), y (n,), labeled mask (n,), and returns C
(m, n), non-negative. ``alpha`` is how strongly labels count, and is not used by the strategies without labels.
No strategy reads a label where ``labeled`` is 0.
"""

from collections.abc import Callable

from jax import numpy as jnp

from jaxpu.checks import check_range
from jaxpu.ensemble.types import Confidence, Labels, Mask, Ratings
from jaxpu.types import ScalarLike


def uniform(ratings: Ratings, labels: Labels, labeled: Mask, *, alpha: ScalarLike = 1.0) -> Confidence:
    """Every rating counts the same: c = 1.

    Example:
        >>> uniform(jnp.array([[0.2, 0.9]]), jnp.array([0, 1]), jnp.array([1, 0])).tolist()
        [[1.0, 1.0]]
    """
    return jnp.ones_like(ratings)


def certainty(ratings: Ratings, labels: Labels, labeled: Mask, *, alpha: ScalarLike = 1.0) -> Confidence:
    """Distance from undecided: c = |r - 0.5|. A rating of exactly 0.5 does not count at all.

    Example:
        >>> import numpy as np
        >>> print(np.array(certainty(jnp.array([[0.25, 0.9]]), jnp.array([0, 1]), jnp.array([1, 0]))).round(3))
        [[0.25 0.4 ]]
    """
    return jnp.abs(ratings - 0.5)


def label_aware(ratings: Ratings, labels: Labels, labeled: Mask, *, alpha: ScalarLike = 1.0) -> Confidence:
    """Certainty, raised where a known label agrees: c = |r - 0.5| (1 + α a), a = r if y = 1, 1 - r if y = 0.

    On columns without a label c = |r - 0.5|.

    Example:
        >>> import numpy as np
        >>> print(np.array(label_aware(jnp.array([[0.25, 0.9]]), jnp.array([0, 1]), jnp.array([1, 0]))).round(4))
        [[0.4375 0.4   ]]
    """
    agreement = _agreement(ratings, labels, labeled)
    return jnp.abs(ratings - 0.5) * (1 + alpha * agreement)


def calibration(ratings: Ratings, labels: Labels, labeled: Mask, *, alpha: ScalarLike = 1.0) -> Confidence:
    """Certainty times how well calibrated the classifier is: c = |r - 0.5| max(1 - B_u / B₀, 0)^α.

    B_u is the Brier score of classifier u on the labeled instances, B₀ = π (1 - π) that of always answering the
    labeled share π of positives. A classifier that does worse than that does not count; where π is 0 or 1, or
    nobody does better, all count as in :func:`certainty`.

    Example:
        >>> import numpy as np
        >>> ratings = jnp.array([[0.1, 0.9], [0.9, 0.1]])
        >>> print(np.array(calibration(ratings, jnp.array([0, 1]), jnp.array([1, 1]))).round(3))
        [[0.384 0.384]
         [0.    0.   ]]
    """
    known = jnp.asarray(labeled) > 0
    n = jnp.maximum(known.sum(), 1)
    truth = jnp.where(known, labels, 0).astype(ratings.dtype)
    brier = jnp.sum(jnp.where(known[None, :], (ratings - truth[None, :]) ** 2, 0), axis=1) / n
    rate = truth.sum() / n
    skill = jnp.maximum(1 - brier / jnp.maximum(rate * (1 - rate), jnp.finfo(ratings.dtype).tiny), 0)
    useful = jnp.where(skill.max() > 0, skill, 1)
    # 0 ** 0 is 1: with α = 0 nobody is left out
    return jnp.abs(ratings - 0.5) * (useful**alpha)[:, None]


def adaptive(ratings: Ratings, labels: Labels, labeled: Mask, *, alpha: ScalarLike = 1.0) -> Confidence:
    """Certainty, raised by agreement with the label or, where none is known, with the other classifiers.

    As :func:`label_aware`, but an unlabeled column takes the mean rating r̄ of all classifiers for its label,
    a = r̄ r + (1 - r̄)(1 - r). So every column has the same kind of weight, and a classifier that stands alone
    counts less.

    Example:
        >>> import numpy as np
        >>> ratings = jnp.array([[0.9, 0.9], [0.9, 0.1]])
        >>> print(np.array(adaptive(ratings, jnp.array([1, 0]), jnp.array([1, 0]))).round(3))
        [[0.76 0.6 ]
         [0.76 0.6 ]]
    """
    consensus = ratings.mean(axis=0)[None, :]
    soft = consensus * ratings + (1 - consensus) * (1 - ratings)
    known = (jnp.asarray(labeled) > 0)[None, :]
    agreement = jnp.where(known, _agreement(ratings, labels, labeled), soft)
    return jnp.abs(ratings - 0.5) * (1 + alpha * agreement)


CONFIDENCE: dict[str, Callable[..., Confidence]] = {
    "uniform": uniform,
    "certainty": certainty,
    "label_aware": label_aware,
    "calibration": calibration,
    "adaptive": adaptive,
}
"""The strategies by name."""


def confidence(name: str, ratings: Ratings, labels: Labels, labeled: Mask, *, alpha: ScalarLike = 1.0) -> Confidence:
    """Confidence by a strategy's name.

    Raises:
        ValueError: there is no such strategy; the message lists them.

    Example:
        >>> confidence("certainty", jnp.array([[0.25]]), jnp.array([0]), jnp.array([1])).tolist()
        [[0.25]]
    """
    if name not in CONFIDENCE:
        raise ValueError(f"confidence is {name!r}, expected one of {', '.join(CONFIDENCE)}")
    check_range("alpha", alpha, 0)
    return CONFIDENCE[name](ratings, labels, labeled, alpha=alpha)


def _agreement(ratings: Ratings, labels: Labels, labeled: Mask) -> Ratings:
    """Probability that a rating gives the known label; 0 where none is known."""
    positive, known = (jnp.asarray(labels) > 0)[None, :], (jnp.asarray(labeled) > 0)[None, :]
    return jnp.where(known, jnp.where(positive, ratings, 1 - ratings), 0)
