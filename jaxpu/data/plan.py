"""Which rows each step of an epoch sees: pure functions of a key for ``jit``, ``vmap`` and ``scan``.

A plan has fixed shapes: the last batch is padded with row 0 and masked, so that no row is dropped and no
second shape is compiled. Row numbers count the concatenated training set, P first, then U.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray


def steps_per_epoch(n_rows: int, batch_size: int) -> int:
    """⌈n_rows / batch_size⌉: steps of an epoch over n_rows (for `separate_plan`: those of U).

    Raises:
        ValueError: If there is no row or no room in a batch.

    Example:
        >>> steps_per_epoch(3786, 256)
        15
    """
    if n_rows < 1 or batch_size < 1:
        raise ValueError(f"expected at least one row and a batch of at least one, got {n_rows} and {batch_size}")
    return -(-n_rows // batch_size)


def mixed_plan(
    key: PRNGKeyArray, n_rows: int, batch_size: int
) -> tuple[Int[Array, "steps batch"], Bool[Array, "steps batch"]]:
    """One epoch over P and U together: every row exactly once, in a fresh random order.

    Args:
        key: A single random key.
        n_rows: Rows of the concatenated training set; static.
        batch_size: Rows a step; static; it may exceed n_rows.

    Returns:
        (indices, mask) with steps = ⌈n_rows / batch_size⌉; where the mask is False the index is a mere 0.

    Raises:
        ValueError: If there is no row or no room in a batch.

    Example:
        >>> indices, mask = mixed_plan(jax.random.key(0), 5, 3)
        >>> sorted(indices[mask].tolist()), mask.sum(axis=1).tolist()
        ([0, 1, 2, 3, 4], [3, 2])
    """
    steps = steps_per_epoch(n_rows, batch_size)
    padding = steps * batch_size - n_rows
    indices = jnp.pad(_permutations(key, 1, n_rows)[0], (0, padding))
    mask = jnp.arange(steps * batch_size) < n_rows
    return indices.reshape(steps, batch_size), mask.reshape(steps, batch_size)


def separate_plan(
    key: PRNGKeyArray, n_labeled: int, n_unlabeled: int, batch_size: int
) -> tuple[Int[Array, "steps two_batches"], Bool[Array, "steps two_batches"]]:
    """One epoch of separate batches of U and P, as in the published VPU (Chen et al. 2020).

    U is gone through once. P is gone through again and again, each time in a fresh order, so that over the
    epoch every labelled row appears equally often up to one.

    Args:
        key: A single random key.
        n_labeled: Rows of P, numbers 0 .. n_labeled - 1; static.
        n_unlabeled: Rows of U, the numbers after those; static.
        batch_size: Rows of each kind a step; static.

    Returns:
        (indices, mask), both (steps, 2 batch_size) with steps = ⌈n_unlabeled / batch_size⌉; the first half of
        each step are rows of U, padded in the last step, the second half rows of P.

    Raises:
        ValueError: If P or U is empty or there is no room in a batch.

    Example:
        >>> indices, mask = separate_plan(jax.random.key(0), 2, 5, 4)
        >>> indices.shape, sorted(indices[:, :4][mask[:, :4]].tolist()), sorted(indices[0, 4:].tolist())
        ((2, 8), [2, 3, 4, 5, 6], [0, 0, 1, 1])
    """
    if n_labeled < 1:
        raise ValueError(f"expected at least one labelled row, got {n_labeled}")
    unlabeled_key, labeled_key = jax.random.split(key)
    unlabeled, mask = mixed_plan(unlabeled_key, n_unlabeled, batch_size)
    rounds = steps_per_epoch(mask.size, n_labeled)
    labeled = _permutations(labeled_key, rounds, n_labeled).reshape(-1)[: mask.size].reshape(mask.shape)
    indices = jnp.concatenate([jnp.where(mask, unlabeled + n_labeled, 0), labeled], axis=1)
    return indices, jnp.concatenate([mask, jnp.ones_like(mask)], axis=1)


def _permutations(key: PRNGKeyArray, count: int, n: int) -> Int[Array, "count n"]:
    """Independent permutations of 0 .. n - 1: sorted bits compile twice as fast as jax.random.permutation."""
    return jnp.argsort(jax.random.bits(key, (count, n)), axis=1).astype(jnp.int32)
