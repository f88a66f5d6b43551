"""Synthetic ratings: classifiers of mixed quality, harder and easier subgroups, miscalibration.

y ~ Bernoulli(rate). A third of the classifiers is good (q + 0.1), a quarter poor (q - 0.15), the rest in between, q
the quality asked for. An instance's latent score is its class mean, 1 if positive and 0 if not (so that negatives
are rated near 0.5, as by classifiers that were trained on balanced data), shifted by the difficulty U(-0.3, 0.3) of
its subgroup and scaled by the classifier's affinity U(0.8, 1.2) to that subgroup, plus noise N(0, ((1.05 - q_u) s)²).
s is 0.8 for rates up to 2 %, 1.2 up to 10 % and 1.0 above. A sigmoid makes it a rating. 30 % of the classifiers then
get a bias U(-0.08, 0.08), 40 % are pulled to 0.5 by a factor 0.6 on one subgroup, and all is clipped to [0.02, 0.98].
"""

import functools
from typing import NamedTuple

import jax
from jax import Array
from jax import numpy as jnp
from jaxtyping import Float, Int

from jaxpu.ensemble.types import Ratings
from jaxpu.types import ScalarLike

SUBGROUPS = 4
GOOD, POOR = 1 / 3, 1 / 4
BETTER, WORSE = 0.1, -0.15
BIASED, SHRUNK = 0.3, 0.4


class Drawn(NamedTuple):
    """Synthetic ratings (m, n), true labels (n,) of 0 and 1, and each classifier's quality (m,)."""

    ratings: Ratings
    labels: Int[Array, " n"]
    quality: Float[Array, " m"]


@functools.partial(jax.jit, static_argnames=("n", "m", "dtype"))
def synthetic_ratings(key: Array, *, n: int, m: int, rate: ScalarLike, quality: ScalarLike = 0.7, dtype=None) -> Drawn:
    """Draw ratings of n instances by m classifiers.

    Args:
        key: a jax random key. n, m: static sizes. rate: share of positives; may be traced.
        quality: what the mean classifier is like, from 0 (noise) to 1; may be traced.
        dtype: of the ratings; jax's default floating type if None.

    Returns:
        The draw; at least two instances of each class are there (the first or last two, where chance gave fewer), so
        that one can be known and one be tested on.

    Raises:
        ValueError: n < 4, where two of each class cannot be there.

    Example:
        >>> drawn = synthetic_ratings(jax.random.key(0), n=200, m=10, rate=0.1)
        >>> drawn.ratings.shape, 8 < int(drawn.labels.sum()) < 33
        ((10, 200), True)
    """
    if n < 4:
        raise ValueError(f"n is {n}, expected at least 4: two instances of each class")
    keys = iter(jax.random.split(key, 9))
    labels = _labels(next(keys), n, rate)
    group = jax.random.randint(next(keys), (n,), 0, SUBGROUPS)
    q = quality + _offsets(m, next(keys))
    difficulty = jax.random.uniform(next(keys), (SUBGROUPS,), dtype, -0.3, 0.3)
    affinity = jax.random.uniform(next(keys), (m, SUBGROUPS), dtype, 0.8, 1.2)
    noise = jax.random.normal(next(keys), (m, n), dtype)
    mean = labels + difficulty[group]
    spread = jnp.maximum(1.05 - q, 0.0) * _scale(rate)
    ratings = jax.nn.sigmoid(affinity[:, group] * mean[None, :] + spread[:, None] * noise)
    ratings = ratings + _bias(next(keys), m, ratings.dtype)[:, None]
    weak = _one_group(next(keys), m)[:, None] == group[None, :]
    ratings = jnp.where(weak, 0.5 + 0.6 * (ratings - 0.5), ratings)
    return Drawn(jnp.clip(ratings, 0.02, 0.98), labels, q.astype(ratings.dtype))


def _labels(key: Array, n: int, rate: ScalarLike) -> Int[Array, " n"]:
    labels = jax.random.bernoulli(key, rate, (n,)).astype(int)
    labels = labels.at[:2].set(jnp.where(labels.sum() < 2, 1, labels[:2]))
    return labels.at[-2:].set(jnp.where(labels.sum() > n - 2, 0, labels[-2:]))


def _offsets(m: int, key: Array) -> Float[Array, " m"]:
    good, poor = round(GOOD * m), round(POOR * m)
    level = jnp.where(jnp.arange(m) < good, BETTER, jnp.where(jnp.arange(m) >= m - poor, WORSE, 0.0))
    return jax.random.permutation(key, level)


def _scale(rate: ScalarLike) -> Array:
    return jnp.where(jnp.asarray(rate) <= 0.02, 0.8, jnp.where(jnp.asarray(rate) <= 0.1, 1.2, 1.0))


def _bias(key: Array, m: int, dtype) -> Float[Array, " m"]:
    who, size = jax.random.split(key)
    bias = jax.random.uniform(size, (m,), dtype, -0.08, 0.08)
    return jnp.where(jax.random.uniform(who, (m,)) < BIASED, bias, 0)


def _one_group(key: Array, m: int) -> Int[Array, " m"]:
    """The subgroup on which each classifier is weak; none for most."""
    who, which = jax.random.split(key)
    return jnp.where(jax.random.uniform(who, (m,)) < SHRUNK, jax.random.randint(which, (m,), 0, SUBGROUPS), -1)
