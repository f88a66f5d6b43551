"""Weights of classes, from how often they are there, and of rows, from the weights of their classes.

>>> from jaxpu import losses
>>> labels = jnp.array([1, 0, 0, 0])
>>> weights = losses.row_weights(losses.inverse_frequency(labels, 2), labels)
>>> [round(w, 3) for w in weights.tolist()]
[2.0, 0.667, 0.667, 0.667]
>>> round(float(losses.cross_entropy(jnp.array([0.0, 3.0, 3.0, 3.0]), labels, weights=weights)), 3)
1.871
"""

from typing import TypeAlias

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int, Num

from jaxpu.losses.batch import check_range, without_padding
from jaxpu.losses.labels import check_labels, distribution
from jaxpu.margins import one_hot
from jaxpu.positive import counted_rows
from jaxpu.types import ClassLabels, Mask, ScalarLike, Weights

ClassWeights: TypeAlias = Float[Array, " k"]
"""One weight a class."""


def class_counts(labels: ClassLabels, classes: int, *, mask: Mask | None = None) -> Int[Array, " k"]:
    """Number of rows of every class, shape (classes,).

    Args:
        labels: integers 0 … classes - 1, shape (n,); others belong to no class. classes: k.
        mask: 1 = the row counts, shape (n,); None counts every row.

    Raises:
        ValueError: other shapes, labels that are fractions.

    Example:
        >>> class_counts(jnp.array([0, 2, 2]), 3).tolist()
        [1, 0, 2]
    """
    labels = jnp.asarray(labels)
    if labels.ndim != 1 or jnp.issubdtype(labels.dtype, jnp.floating):
        raise ValueError(f"labels are {labels.dtype} of shape {labels.shape}, expected integers of shape (n,)")
    counted = counted_rows(labels.size, mask)
    return (one_hot(labels, classes) & counted[:, None]).sum(axis=0)


def inverse_frequency(labels: ClassLabels, classes: int, *, mask: Mask | None = None) -> ClassWeights:
    """Inverse class frequency, w_c = n / (k n_c), k the number of classes that have rows: all weigh the same, n / k.

    A class without rows has weight 1. Where there is one class only, so has that. Soft versions are powers,
    ``inverse_frequency(...) ** strength``.

    Args:
        labels, classes, mask: as for :func:`class_counts`.

    Source: King and Zeng, "Logistic regression in rare events data", Political Analysis 9, 2001.

    Example:
        >>> [round(w, 3) for w in inverse_frequency(jnp.array([1, 0, 0, 0]), 2).tolist()]
        [0.667, 2.0]
    """
    return of_counts(class_counts(labels, classes, mask=mask))


def of_counts(counts: Num[Array, " k"]) -> ClassWeights:
    """:func:`inverse_frequency` of rows already counted, n_c of shape (k,).

    Example:
        >>> [round(w, 3) for w in of_counts(jnp.array([3, 1])).tolist()]
        [0.667, 2.0]
    """
    counts = jnp.asarray(counts, float)  # products of counts are more than 32 bits hold
    present = counts > 0
    return jnp.where(present, counts.sum() / (present.sum() * jnp.maximum(counts, 1)), 1)


def effective_number(counts: Num[Array, " k"], beta: ScalarLike) -> ClassWeights:
    """Inverse effective number of rows, w_c ∝ (1 - β) / (1 - β^n_c), with mean 1 over the classes that have rows.

    β = 0 weighs all classes alike, β = 1 (the limit) by inverse frequency. A class without rows has weight 1.

    Args:
        counts: n_c, shape (k,). beta: β in [0, 1], usually 0.9 to 0.9999; may be traced.

    Raises:
        ValueError: counts of another shape, a Python number as β outside [0, 1].

    Source: Cui et al., "Class-balanced loss based on effective number of samples", CVPR 2019.

    Example:
        >>> [round(x, 3) for x in effective_number(jnp.array([1000, 10]), 0.99).tolist()]
        [0.175, 1.825]
    """
    check_range("beta", beta, 0, 1)
    counts = jnp.asarray(counts, float)
    if counts.ndim != 1:
        raise ValueError(f"counts have shape {counts.shape}, expected (k,): one a class")
    left = jnp.asarray(1 - beta, counts.dtype)  # before the cast: near 1 a Python number still has all its digits
    present, limit = counts > 0, left <= 0
    many = jnp.where(present, counts, 1)
    effective = -jnp.expm1(many * jnp.log1p(-jnp.where(limit, 0.5, left))) / jnp.where(limit, 1, left)
    weight = jnp.where(present, 1 / jnp.where(limit, many, effective), 0)
    total = weight.sum()
    return jnp.where(present, weight * present.sum() / jnp.where(total > 0, total, 1), 1)


def row_weights(class_weights: ClassWeights, labels: ClassLabels, *, mask: Mask | None = None) -> Weights:
    """The weight of every row's class, shape (n,); of a soft label the expectation Σ q_c w_c; 0 in padding.

    Args:
        class_weights: w, shape (k,).
        labels: as for the losses: (n,) integers, or (n, k), or for two classes (n,) probabilities of class 1.
        mask: 1 = the row counts, shape (n,); None counts every row.

    Raises:
        ValueError: other shapes.

    Example:
        >>> row_weights(jnp.array([1.0, 3.0]), jnp.array([0, 1, 1]), mask=jnp.array([1, 1, 0])).tolist()
        [1.0, 3.0, 0.0]
        >>> row_weights(jnp.array([1.0, 3.0]), jnp.array([0.5])).tolist()
        [2.0]
    """
    class_weights, labels = jnp.asarray(class_weights), jnp.asarray(labels)
    if class_weights.ndim != 1:
        raise ValueError(f"class_weights have shape {class_weights.shape}, expected (k,): one a class")
    check_labels(labels, class_weights.size)
    counted = counted_rows(labels.shape[0], mask)
    shares = distribution(without_padding(labels, counted), class_weights.size)
    return without_padding((shares * class_weights[None, :]).sum(axis=-1), counted)
