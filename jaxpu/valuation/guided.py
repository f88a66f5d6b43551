"""Guided training: a student learns the mixed pairs that a filter on r̂ lets through; one pure function of a key."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jaxtyping import Float, Int

from jaxpu.data import plan
from jaxpu.models import Params
from jaxpu.types import Scalar, ScalarLike
from jaxpu.valuation.risk import keep, mixed_cross_entropy, relative_risk

MOMENTUM = 0.9
Logits = Callable[[Params, Array], Array]


class Student(NamedTuple):
    """A trained student.

    Attributes:
        params: its parameters. kept: share of the mixed pairs that entered its loss, an epoch each.
        logits: at the rows watched, after each epoch.
    """

    params: Params
    kept: Float[Array, " epochs"]
    logits: Float[Array, "epochs watched classes"]


class _Batch(NamedTuple):
    x: Array
    labels: Array
    partner_labels: Array
    lam: Array
    rows: Array


def guided(
    key: Array,
    start: Params,
    teacher: Params,
    apply: Logits,
    x: Float[Array, "n *row"],
    y: Int[Array, " n"],
    watched: Float[Array, "m *row"],
    *,
    which: Int[Array, ""] | int,
    mixing: ScalarLike = 1.0,
    lr: ScalarLike = 0.05,
    epochs: int = 60,
    batch_size: int = 64,
) -> Student:
    """Train a student on mixed pairs that a teacher values; SGD with momentum 0.9 and a cosine schedule.

    A batch of rows is mixed with a shuffle of itself by one λ ~ U(0, 1), and a pair's loss counts where the filter
    keeps it: Σ m H / max(Σ m, 1), m held fixed. A batch of which nothing is kept moves the parameters by momentum
    alone.

    Args:
        key: of batches, pairs and λ. start: the student's parameters. teacher: the teacher's.
        apply: (params, inputs) -> logits (n, classes). x, y: the training set. watched: rows whose logits are
            recorded after each epoch.
        which: place of the filter in :data:`~jaxpu.valuation.FILTERS`; traced.
        mixing: 1 = λ ~ U(0, 1), 0 = λ = 1, plain training. lr: the first learning rate. epochs, batch_size: static.

    Source: seed 001.

    >>> x, y = jnp.array([[-1.0], [1.0]] * 8), jnp.array([0, 1] * 8)
    >>> zero = {"w": jnp.zeros((1, 2))}
    >>> student = guided(jax.random.key(0), zero, zero, lambda p, x: x @ p["w"], x, y, x[:2],
    ...                  which=0, epochs=3, batch_size=4)
    >>> student.logits.shape, student.kept.tolist(), student.logits[-1].argmax(axis=1).tolist()
    ((3, 2, 2), [1.0, 1.0, 1.0], [0, 1])
    """
    steps = plan.steps_per_epoch(len(x), batch_size)
    optimizer = optax.sgd(_cosine(lr, epochs * steps), momentum=MOMENTUM)

    def step(carry: tuple[Params, optax.OptState], batch: _Batch) -> tuple[tuple[Params, optax.OptState], Scalar]:
        params, state = carry
        judged = relative_risk(
            apply(teacher, batch.x), apply(params, batch.x), batch.labels, batch.partner_labels, batch.lam
        )
        mask = batch.rows * keep(judged, which)

        def loss(params: Params) -> Scalar:
            each = mixed_cross_entropy(apply(params, batch.x), batch.labels, batch.partner_labels, batch.lam)
            return (mask * each).sum() / jnp.maximum(mask.sum(), 1.0)

        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return (optax.apply_updates(params, updates), state), mask.sum() / batch.rows.sum()  # pyright: ignore

    def epoch(carry: tuple[Params, optax.OptState], number: Array) -> tuple[tuple[Params, optax.OptState], tuple]:
        batches = _batches(jax.random.fold_in(key, number), x, y, batch_size, mixing)
        carry, kept = lax.scan(step, carry, batches)
        return carry, (kept.mean(), apply(carry[0], watched))

    (params, _), (kept, logits) = lax.scan(epoch, (start, optimizer.init(start)), jnp.arange(epochs))
    return Student(params, kept, logits)


def fit(
    key: Array, start: Params, apply: Logits, x: Array, y: Array, *, mixing: ScalarLike = 1.0, **settings: Any
) -> Params:
    """Train without a filter, with mixup or (``mixing`` = 0) without: a teacher, or a plain baseline."""
    return guided(key, start, start, apply, x, y, x[:1], which=0, mixing=mixing, **settings).params


def _cosine(lr: ScalarLike, steps: int) -> optax.Schedule:
    return lambda count: jnp.asarray(lr) * 0.5 * (1 + jnp.cos(jnp.pi * count / steps))


def _batches(key: Array, x: Array, y: Array, size: int, mixing: ScalarLike) -> _Batch:
    """All batches of an epoch, mixed: rows of a last, shorter batch are padded, masked, and mixed with each other."""
    order, pairing, mixed = jax.random.split(key, 3)
    places, mask = plan.mixed_plan(order, len(x), size)
    lam = 1 - mixing * jax.random.uniform(mixed, (len(places), 1))
    shuffle = functools.partial(jax.random.permutation, x=size)
    partners = jnp.take_along_axis(places, jax.vmap(shuffle)(jax.random.split(pairing, len(places))), axis=1)
    weight = lam.reshape(lam.shape + (1,) * (x.ndim - 1))
    return _Batch(
        weight * x[places] + (1 - weight) * x[partners], y[places], y[partners], lam[:, 0], mask.astype(x.dtype)
    )
