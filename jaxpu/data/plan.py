"""Which rows each step of an epoch sees: pure functions of a key for ``jit``, ``vmap`` and ``scan``.

A plan has fixed shapes: the last batch is padded with row 0 and masked, so that no row is dropped and no
second shape is compiled. Row numbers count the concatenated training set, P first, then U, then padding: how
many of each there are may be traced, and the same rows get the same plan however much padding follows them.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from jaxpu.types import ScalarLike


def steps_per_epoch(n_rows: int, batch_size: int) -> int:
    """⌈n_rows / batch_size⌉: steps of an epoch over n_rows.

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
    key: PRNGKeyArray, n_rows: int, batch_size: int, used: ScalarLike | None = None
) -> tuple[Int[Array, "steps batch"], Bool[Array, "steps batch"]]:
    """One epoch over P and U together: every row exactly once, in a fresh random order.

    Args:
        key: A single random key.
        n_rows: Rows of the concatenated training set, padding included; static.
        batch_size: Rows a step; static; it may exceed n_rows.
        used: The first so many rows are there, the others are padding; may be traced. None uses all.

    Returns:
        (indices, mask) with steps = ⌈n_rows / batch_size⌉; where the mask is False the index is a mere 0. The
        last steps are all padding where ``used`` leaves them nothing.

    Raises:
        ValueError: If there is no row or no room in a batch.

    Example:
        >>> indices, mask = mixed_plan(jax.random.key(0), 5, 3)
        >>> sorted(indices[mask].tolist()), mask.sum(axis=1).tolist()
        ([0, 1, 2, 3, 4], [3, 2])
        >>> padded, mask = mixed_plan(jax.random.key(0), 8, 3, used=5)
        >>> mask.sum(axis=1).tolist(), (padded[:2] == indices).all().item()
        ([3, 2, 0], True)
    """
    steps = steps_per_epoch(n_rows, batch_size)
    rows = jnp.arange(n_rows)
    order = _shuffled(key, rows < (n_rows if used is None else used))
    mask = jnp.arange(steps * batch_size) < (n_rows if used is None else used)
    indices = jnp.where(mask, jnp.pad(order, (0, mask.size - n_rows)), 0)
    return indices.reshape(steps, batch_size), mask.reshape(steps, batch_size)


def separate_plan(
    key: PRNGKeyArray, n_rows: int, batch_size: int, n_labeled: ScalarLike, used: ScalarLike | None = None
) -> tuple[Int[Array, "steps two_batches"], Bool[Array, "steps two_batches"]]:
    """One epoch of separate batches of U and P, as in the published VPU (Chen et al. 2020).

    U is gone through once. P is gone through again and again, each time in a fresh order, so that over the
    epoch every labeled row appears equally often up to one.

    Args:
        key: A single random key.
        n_rows: Rows of P and U, padding included; static.
        batch_size: Rows of each kind a step; static.
        n_labeled: Rows 0 .. n_labeled - 1 are P; may be traced.
        used: Rows n_labeled .. used - 1 are U, the others padding; may be traced. None uses all.

    Returns:
        (indices, mask), both (steps, 2 batch_size) with steps = ⌈n_rows / batch_size⌉; the first half of each
        step are rows of U, the second half rows of P. A step without a row of U is all padding.

    Raises:
        ValueError: If there is no row or no room in a batch, or n_labeled is a Python number and leaves P or U empty.

    Example:
        >>> indices, mask = separate_plan(jax.random.key(0), 7, 4, n_labeled=2)
        >>> indices.shape, sorted(indices[:, :4][mask[:, :4]].tolist()), sorted(indices[0, 4:].tolist())
        ((2, 8), [2, 3, 4, 5, 6], [0, 0, 1, 1])
    """
    if isinstance(n_labeled, int) and not 0 < n_labeled < n_rows:
        raise ValueError(f"expected at least one labeled row and one other among {n_rows}, got {n_labeled} labeled")
    steps = steps_per_epoch(n_rows, batch_size)
    used = n_rows if used is None else used
    unlabeled_key, labeled_key = jax.random.split(key)
    rows, places = jnp.arange(n_rows), jnp.arange(steps * batch_size)
    mask = places < used - n_labeled
    order = _shuffled(unlabeled_key, (rows >= n_labeled) & (rows < used))
    unlabeled = jnp.where(mask, jnp.pad(order, (0, mask.size - n_rows)), 0).reshape(steps, batch_size)
    step_used = mask.reshape(steps, batch_size).any(axis=1, keepdims=True) & jnp.ones((1, batch_size), bool)
    labeled = _rounds(labeled_key, step_used.ravel(), rows < n_labeled, n_labeled).reshape(steps, batch_size)
    indices = jnp.concatenate([unlabeled, jnp.where(step_used, labeled, 0)], axis=1)
    return indices, jnp.concatenate([mask.reshape(steps, batch_size), step_used], axis=1)


def _shuffled(key: PRNGKeyArray, used: Bool[Array, " n"]) -> Int[Array, " n"]:
    """The numbers of the rows that are used in random order, then the others.

    Sorted bits compile twice as fast as jax.random.permutation, and the bits of a row do not depend on how many
    rows follow it, so neither does the order.
    """
    bits = jax.random.bits(key, used.shape)
    return jnp.lexsort((bits, ~used)).astype(jnp.int32)


def _rounds(
    key: PRNGKeyArray, used: Bool[Array, " places"], labeled: Bool[Array, " n"], n_labeled: ScalarLike
) -> Int[Array, " places"]:
    """Labeled rows for the places that are used: round after round of all of them, each in an order of its own.

    The rows are numbered at random first, so that it is chance which of them the last, partial round holds.
    """
    number_key, order_key = jax.random.split(key)
    turn = jnp.arange(used.size) // n_labeled
    within = jnp.arange(used.size) % n_labeled
    order = jnp.lexsort((jax.random.bits(order_key, used.shape), jnp.where(used, turn, used.size)))
    return _shuffled(number_key, labeled)[within[order]]
