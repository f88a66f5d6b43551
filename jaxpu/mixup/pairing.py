"""Whom a row is mixed with: one partner index a row, drawn within the batch.

All are called as ``pairing(key, labeled, mask=None)`` and return n indices into the batch. ``labeled`` (1 =
labeled positive, 0 = unlabeled) and ``mask`` (1 = the row counts, 0 = padding) are of shape (n,), or
``ValueError`` is raised. A padded row is nobody's partner but its own.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Int, Key

from jaxpu.checks import counted_rows, positives
from jaxpu.types import Labeled, Logits, Mask, Rows, ScalarLike


def labeled_positives(key: Key[Array, ""], labeled: Labeled, *, mask: Mask | None = None) -> Rows:
    """For every row a labeled positive, uniform with replacement; without any, the row itself.

    Example:
        >>> labeled_positives(jax.random.key(0), jnp.array([0, 1, 0])).tolist()
        [1, 1, 1]
        >>> labeled_positives(jax.random.key(0), jnp.array([0, 0, 0])).tolist()
        [0, 1, 2]
    """
    labeled, counted = _rows(labeled, mask)
    positive = positives(labeled, counted)
    count = positive.sum()
    positives_first = jnp.argsort(~positive)
    draw = jax.random.randint(key, labeled.shape, 0, jnp.maximum(count, 1))
    return jnp.where(counted & (count > 0), positives_first[draw], jnp.arange(labeled.size))


def permuted_positives(key: Key[Array, ""], labeled: Labeled, *, mask: Mask | None = None) -> Rows:
    """The labeled positives in a random order, one after the other and over again; without any, the row itself.

    Unlabeled rows go through them once, labeled ones another time. With as many of the one as of the other, as in
    the batches of published VPU (Chen et al., NeurIPS 2020), each is the partner of exactly one row of either kind.

    Example:
        >>> partner = permuted_positives(jax.random.key(0), jnp.array([0, 0, 0, 1, 1, 1]))
        >>> sorted(partner[:3].tolist()), sorted(partner[3:].tolist())
        ([3, 4, 5], [3, 4, 5])
    """
    labeled, counted = _rows(labeled, mask)
    positive = counted & (labeled == 1)
    count = positive.sum()
    in_order = jnp.lexsort((jax.random.uniform(key, labeled.shape), ~positive))
    turn = jnp.where(positive, jnp.cumsum(positive), jnp.cumsum(counted & ~positive)) - 1
    return jnp.where(counted & (count > 0), in_order[turn % jnp.maximum(count, 1)], jnp.arange(labeled.size))


def shuffle(key: Key[Array, ""], labeled: Labeled, *, mask: Mask | None = None) -> Rows:
    """A uniform permutation of the rows, fixed points included, whatever their labels.

    Example:
        >>> sorted(shuffle(jax.random.key(0), jnp.array([0, 1, 0, 1])).tolist())
        [0, 1, 2, 3]
    """
    labeled, counted = _rows(labeled, mask)
    return _permute_within(key, jnp.zeros(labeled.shape, int), counted)


def within_set(key: Key[Array, ""], labeled: Labeled, *, mask: Mask | None = None) -> Rows:
    """A uniform permutation within the labeled positives, and another within the unlabeled rows.

    Example:
        >>> partner = within_set(jax.random.key(0), jnp.array([0, 1, 0, 1]))
        >>> sorted(partner[::2].tolist()), sorted(partner[1::2].tolist())
        ([0, 2], [1, 3])
    """
    labeled, counted = _rows(labeled, mask)
    return _permute_within(key, positives(labeled, counted).astype(int), counted)


def boundary_positives(
    key: Key[Array, ""],
    labeled: Labeled,
    *,
    mask: Mask | None = None,
    logits: Logits | None = None,
    lower: ScalarLike = 0.15,
    upper: ScalarLike = 0.85,
    pool: ScalarLike = 0.1,
) -> Rows:
    """An unlabeled row that the network doubts gets a labeled positive that it doubts most; other rows get any row.

    Doubted are rows of U with p between ``lower`` and ``upper``; the pool is the share ``pool`` of the labeled
    positives, at least one, whose p is nearest 1/2, where the entropy is largest. Draws are uniform, with replacement.
    Without ``logits``, or without a labeled positive, nobody is doubted; ``lower`` = ``upper`` doubts nobody either.

    Source: Li et al., "Who Is Your Right Mixup Partner in Positive and Unlabeled Learning", ICLR 2022. There it is
    of all labeled positives and renewed once an epoch, here it is of those in the batch, which is best drawn with as
    many labeled rows as others.

    Example:
        >>> z = jnp.array([0.1, 5.0, 0.2, 4.0])
        >>> boundary_positives(jax.random.key(0), jnp.array([0, 1, 1, 0]), logits=z).tolist()[0]
        2
    """
    labeled, counted = _rows(labeled, mask)
    of_any, of_pool = jax.random.split(key)
    shape, numbers = labeled.shape, jnp.arange(labeled.size)
    among = jnp.argsort(~counted)[jax.random.randint(of_any, shape, 0, jnp.maximum(counted.sum(), 1))]
    partner = jnp.where(counted, among, numbers)
    if logits is None:
        return partner
    positive, p = positives(labeled, counted), jax.nn.sigmoid(logits)
    count = positive.sum()
    doubted = counted & ~positive & (p > lower) & (p < upper) & (count > 0)
    most_doubted = jnp.lexsort((jnp.abs(logits), ~positive))
    kept = jnp.clip(jnp.ceil(pool * count - 1e-4).astype(int), 1, jnp.maximum(count, 1))
    return jnp.where(doubted, most_doubted[jax.random.randint(of_pool, shape, 0, kept)], partner)


PAIRINGS: dict[str, Callable[..., Array]] = {
    "labeled_positives": labeled_positives,
    "permuted_positives": permuted_positives,
    "shuffle": shuffle,
    "within_set": within_set,
    "boundary_positives": boundary_positives,
}
"""The pairings by name."""


def _permute_within(key: Key[Array, ""], group: Int[Array, " n"], counted: Bool[Array, " n"]) -> Rows:
    """Send the k-th row of a group to the k-th row of the same group in a random order."""
    rows = jnp.arange(group.size)
    group = jnp.where(counted, group, -1)
    in_order = jnp.lexsort((rows, group))
    at_random = jnp.lexsort((jax.random.uniform(key, group.shape), group))
    return jnp.where(counted, rows.at[in_order].set(at_random), rows)


def _rows(labeled: Labeled, mask: Mask | None) -> tuple[Labeled, Bool[Array, " n"]]:
    """Checked labels, and which rows count."""
    labeled = jnp.asarray(labeled)
    if labeled.ndim != 1:
        raise ValueError(f"labeled has shape {labeled.shape}, expected (n,): try labeled.ravel()")
    counted = counted_rows(labeled.size, mask)
    return labeled, counted
