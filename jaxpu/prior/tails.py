"""How much of P and of U lies at or above each threshold: what every estimate on scores begins with."""

from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float

Scores: TypeAlias = Float[np.ndarray, " n"]
"""A score z a row, the larger the more like P. Only its order matters, unless a function says otherwise."""

Labeled: TypeAlias = Bool[np.ndarray, " n"]
"""Where a row belongs to P; the others are U."""

Weights: TypeAlias = Float[np.ndarray, " n"]
"""How often each row counts."""


class Tails(NamedTuple):
    """Counts of rows at or above each distinct score, the highest score first.

    Attributes:
        threshold: the distinct scores t (k,), descending.
        labeled: b, rows of P with z ≥ t. unlabeled: a, rows of U with z ≥ t.
    """

    threshold: Float[np.ndarray, " k"]
    labeled: Float[np.ndarray, " k"]
    unlabeled: Float[np.ndarray, " k"]

    @property
    def n_labeled(self) -> float:
        """n_P."""
        return float(self.labeled[-1])

    @property
    def n_unlabeled(self) -> float:
        """n_U."""
        return float(self.unlabeled[-1])

    @property
    def recall(self) -> Float[np.ndarray, " k"]:
        """q_P(t) = b / n_P, under SCAR the recall."""
        return self.labeled / self.n_labeled

    @property
    def share(self) -> Float[np.ndarray, " k"]:
        """q_U(t) = a / n_U, the share of U at or above t."""
        return self.unlabeled / self.n_unlabeled


def tails(z: Scores, labeled: Labeled, weight: Weights | None = None) -> Tails:
    """Count rows of P and U at or above each score.

    Args:
        z: scores (n,). labeled: where a row is of P. weight: how often each row counts; None = once.

    Raises:
        ValueError: a score is NaN, or P or U is empty.

    Example:
        >>> found = tails(np.array([2.0, 1.0, 1.0, 0.0]), np.array([True, False, True, False]))
        >>> found.threshold.tolist(), found.labeled.tolist(), found.unlabeled.tolist()
        ([2.0, 1.0, 0.0], [1.0, 2.0, 2.0], [0.0, 1.0, 2.0])
    """
    weight = checked(z, labeled, weight)
    order = np.argsort(-z, kind="stable")
    sorted_z = z[order]
    last = np.append(sorted_z[1:] != sorted_z[:-1], True)
    b, a = (np.cumsum(np.where(of, weight, 0.0)[order])[last] for of in (labeled, ~labeled))
    return Tails(sorted_z[last], b, a)


def checked(z: Scores, labeled: Labeled, weight: Weights | None) -> Weights:
    """The weights, of scores and labels that can be used.

    Raises:
        ValueError: a score is NaN or infinite, a weight is negative, or P or U is empty.
    """
    weight = np.ones(len(z)) if weight is None else np.asarray(weight, float)
    if z.shape != labeled.shape or z.shape != weight.shape:
        raise ValueError(
            f"expected a score, a label and a weight a row, got {z.shape}, {labeled.shape}, {weight.shape}"
        )
    if not np.isfinite(z).all():
        raise ValueError(f"{np.count_nonzero(~np.isfinite(z))} scores are NaN or infinite; remove those rows")
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise ValueError("a weight is negative, NaN or infinite, expected how often each row counts")
    for name, total in (("labeled", weight[labeled].sum()), ("unlabeled", weight[~labeled].sum())):
        if total <= 0:
            raise ValueError(f"no {name} row among {len(z)}: a class prior needs both labeled and unlabeled ones")
    return weight


def sizes(labeled: Labeled, weight: Weights | None = None) -> tuple[float, float]:
    """n_P and n_U.

    Example:
        >>> sizes(np.array([True, False, False]))
        (1.0, 2.0)
    """
    weight = np.ones(len(labeled)) if weight is None else weight
    return float(weight[labeled].sum()), float(weight[~labeled].sum())
