"""Batch plans: nothing dropped, nothing twice, the same under jit, vmap and a plain loop."""

import functools

import jax
import numpy as np
import pytest

from jaxpu.data import plan
from jaxpu.data.plan import steps_per_epoch

mixed_plan = jax.jit(plan.mixed_plan, static_argnums=(1, 2))
separate_plan = jax.jit(plan.separate_plan, static_argnums=(1, 2))
# One row; a part-filled last batch; a full one; a batch larger than the set; the sizes of Spambase.
MIXED_SIZES = [(1, 1), (7, 3), (8, 4), (5, 16), (3786, 256)]
SEPARATE_SIZES = [(1, 9, 4), (3, 12, 4), (50, 6, 4), (5, 3, 16), (143, 3643, 256)]


@pytest.mark.parametrize(("n", "batch"), MIXED_SIZES)
def test_mixed_plan_visits_every_row_once(n: int, batch: int):
    indices, mask = map(np.asarray, mixed_plan(jax.random.key(3), n, batch))
    assert indices.shape == mask.shape == (steps_per_epoch(n, batch), batch)
    assert sorted(indices[mask]) == list(range(n))
    assert mask.ravel().tolist() == [True] * n + [False] * (mask.size - n)  # padding at the end only
    assert not indices[~mask].any()
    assert indices.dtype == np.int32


@pytest.mark.parametrize(("n_labeled", "n_unlabeled", "batch"), SEPARATE_SIZES)
def test_separate_plan_visits_u_once_and_p_evenly(n_labeled: int, n_unlabeled: int, batch: int):
    indices, mask = map(np.asarray, separate_plan(jax.random.key(4), n_labeled + n_unlabeled, batch, n_labeled))
    steps, used = steps_per_epoch(n_labeled + n_unlabeled, batch), steps_per_epoch(n_unlabeled, batch)
    assert indices.shape == mask.shape == (steps, 2 * batch)
    u, u_mask, p = indices[:, :batch], mask[:, :batch], indices[:, batch:]
    assert sorted(u[u_mask]) == list(range(n_labeled, n_labeled + n_unlabeled))
    assert u_mask.ravel().tolist() == [True] * n_unlabeled + [False] * (u_mask.size - n_unlabeled)
    assert not u[~u_mask].any()
    assert mask[:used, batch:].all()
    assert not mask[used:].any()
    p = p[:used]
    counts = np.bincount(p.ravel(), minlength=n_labeled)
    assert len(counts) == n_labeled
    assert counts.max() - counts.min() <= 1
    whole = p.size // n_labeled * n_labeled
    for one_round in p.ravel()[:whole].reshape(-1, n_labeled):
        assert sorted(one_round) == list(range(n_labeled))
    assert indices.dtype == np.int32


def test_jit_vmap_and_loop_agree():
    make = functools.partial(plan.separate_plan, n_rows=28, batch_size=8, n_labeled=5)
    keys = jax.random.split(jax.random.key(0), 6)
    together = jax.jit(jax.vmap(make))(keys)
    mapped = jax.jit(lambda keys: jax.lax.map(make, keys))(keys)
    for k in range(6):
        alone = make(keys[k])
        for part in range(2):
            np.testing.assert_array_equal(together[part][k], alone[part])
            np.testing.assert_array_equal(mapped[part][k], alone[part])
    # Fresh for every key, and the same mask for all.
    assert len({bytes(np.asarray(rows)) for rows in together[0]}) == 6
    assert len({bytes(np.asarray(rows)) for rows in together[1]}) == 1


def test_rounds_over_p_are_shuffled_anew_and_apart_from_u():
    indices, _ = separate_plan(jax.random.key(1), 160, 32, 32)
    rounds = np.asarray(indices[:4, 32:])
    assert len({bytes(one) for one in rounds}) == 4
    same_size, _ = separate_plan(jax.random.key(1), 256, 128, 128)
    assert not np.array_equal(same_size[0, :128] - 128, same_size[0, 128:])


def test_every_row_is_equally_likely_at_every_place():
    n, draws = 5, 4000
    make = jax.jit(jax.vmap(functools.partial(plan.mixed_plan, n_rows=n, batch_size=n)))
    indices, _ = make(jax.random.split(jax.random.key(9), draws))
    orders = np.asarray(indices).reshape(draws, n)
    counts = np.stack([np.bincount(orders[:, place], minlength=n) for place in range(n)])
    # Each count is binomial(4000, 1/5): deviation 25.3; 25 counts stay within 4 of them.
    assert np.abs(counts - draws / n).max() < 4 * np.sqrt(draws / n * (1 - 1 / n))


@pytest.mark.parametrize(
    ("n_labeled", "n_unlabeled", "batch", "padding"), [(5, 3, 16, 1), (3, 12, 4, 1), (143, 3643, 256, 300)]
)
def test_a_plan_does_not_depend_on_the_padding_behind_it(n_labeled, n_unlabeled, batch, padding):
    used, key = n_labeled + n_unlabeled, jax.random.key(2)
    for alone, padded in (
        (mixed_plan(key, used, batch), mixed_plan(key, used + padding, batch, used)),
        (separate_plan(key, used, batch, n_labeled), separate_plan(key, used + padding, batch, n_labeled, used)),
    ):
        for mine, theirs in zip(alone, padded, strict=True):
            np.testing.assert_array_equal(theirs[: len(mine)], mine)
            assert not theirs[len(mine) :].any()


def test_which_rows_the_partial_round_over_p_holds_is_chance():
    make = jax.jit(jax.vmap(functools.partial(plan.separate_plan, n_rows=9, batch_size=6, n_labeled=4)))
    indices, mask = make(jax.random.split(jax.random.key(0), 2000))
    second_round = np.asarray(indices)[:, 0, 6:][:, 4:]  # 6 places: a round of 4, and 2 of the next
    assert mask[:, 0, 6:].all()
    counts = np.bincount(second_round.ravel(), minlength=4)
    # each row is in half of the partial rounds: 1000 of 2000, deviation 22
    assert np.abs(counts - 1000).max() < 4 * 22.4


@pytest.mark.parametrize(("n", "batch"), [(0, 4), (4, 0), (-1, 4)])
def test_empty_plans_are_refused(n: int, batch: int):
    with pytest.raises(ValueError, match="at least one row"):
        mixed_plan(jax.random.key(0), n, batch)
    with pytest.raises(ValueError, match="at least one row"):
        separate_plan(jax.random.key(0), n, batch, jax.numpy.int32(1))


@pytest.mark.parametrize("n_labeled", [0, 3])
def test_empty_p_and_empty_u_are_refused(n_labeled):
    with pytest.raises(ValueError, match="at least one labeled row"):
        plan.separate_plan(jax.random.key(0), 3, 2, n_labeled)
