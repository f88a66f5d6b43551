"""What r̂ of many mixed pairs says of classes, of λ, and of the rows that they were mixed from."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from jaxpu.types import Scalar


class Conflict(NamedTuple):
    """Pairs by class of the first and of the second row: share with r̂ > 0 (NaN without a pair), and how many."""

    share: Float[Array, "classes classes"]
    pairs: Float[Array, "classes classes"]


def conflict(
    risk: Float[Array, " n"], labels: Int[Array, " n"], partner_labels: Int[Array, " n"], classes: int
) -> Conflict:
    """Between which classes pairs conflict with the failure set, r̂ > 0; a pair and its mirror image are one.

    Args:
        risk: r̂. labels, partner_labels: classes of the two rows. classes: how many there are.

    >>> table = conflict(jnp.array([1.0, -1.0, 2.0]), jnp.array([0, 1, 1]), jnp.array([1, 0, 1]), 2)
    >>> table.share.tolist(), table.pairs.tolist()
    ([[nan, 0.5], [0.5, 1.0]], [[0.0, 2.0], [2.0, 1.0]])
    """
    low, high = jnp.minimum(labels, partner_labels), jnp.maximum(labels, partner_labels)
    none = jnp.zeros((classes, classes), risk.dtype)
    pairs, positive = none.at[low, high].add(1), none.at[low, high].add(risk > 0)
    pairs, positive = (jnp.triu(each) + jnp.triu(each, 1).T for each in (pairs, positive))
    return Conflict(positive / pairs, pairs)


def by_lambda(values: Float[Array, " n"], lam: Float[Array, " n"], bins: int = 10) -> Float[Array, " bins"]:
    """Mean of a value in equal bins of λ in [0, 1]; NaN in a bin without a pair.

    >>> by_lambda(jnp.array([1.0, 3.0, 5.0]), jnp.array([0.1, 0.4, 1.0]), 2).tolist()
    [2.0, 5.0]
    """
    place = jnp.minimum((lam * bins).astype(int), bins - 1)
    none = jnp.zeros(bins, values.dtype)
    return none.at[place].add(values) / none.at[place].add(1)


class Credit(NamedTuple):
    """What pairs say of rows: mean r̂ weighted by the row's share in each pair (NaN without one), and Σ shares."""

    value: Float[Array, " rows"]
    weight: Float[Array, " rows"]


def credit(
    risk: Float[Array, " n"], rows: Int[Array, " n"], partners: Int[Array, " n"], lam: Float[Array, " n"], count: int
) -> Credit:
    """Hand r̂ of pairs down to their parents, λ of it to the first row and 1 - λ to the second.

    Args:
        risk: r̂. rows, partners: row numbers of the two, below ``count``. lam: λ, one a pair.
        count: how many rows there are.

    >>> credit(jnp.array([4.0, 1.0]), jnp.array([0, 0]), jnp.array([1, 1]), jnp.array([0.75, 0.25]), 2)
    Credit(value=Array([3.25, 1.75], dtype=float32), weight=Array([1., 1.], dtype=float32))
    """
    none = jnp.zeros(count, risk.dtype)
    weight = none.at[rows].add(lam).at[partners].add(1 - lam)
    total = none.at[rows].add(lam * risk).at[partners].add((1 - lam) * risk)
    return Credit(total / weight, weight)


def rank_correlation(a: Float[Array, " n"], b: Float[Array, " n"]) -> Scalar:
    """Spearman's ρ, the correlation of the ranks; ties are broken by place, which few ties do not mind. NaN if n < 2.

    >>> round(float(rank_correlation(jnp.array([1.0, 2.0, 9.0]), jnp.array([0.0, 5.0, 6.0]))), 4)
    1.0
    """
    ranks = [jnp.argsort(jnp.argsort(each)).astype(float) - (each.size - 1) / 2 for each in (a, b)]
    return jnp.vdot(*ranks) / jnp.vdot(ranks[0], ranks[0])


def extremes(risk: Float[Array, " n"], count: int) -> Int[Array, "three count"]:
    """Places of the pairs with the least r̂, with the largest, and with that nearest to 0, ``count`` of each.

    >>> extremes(jnp.array([0.1, -3.0, 5.0, 1.0]), 1).tolist()
    [[1], [2], [0]]
    """
    order = jnp.argsort(risk)
    return jnp.stack([order[:count], order[::-1][:count], jnp.argsort(jnp.abs(risk))[:count]])
