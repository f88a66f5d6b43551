"""Who pulls, over training: shares of the gradient by how well an example is classified, and the margins.

The loss of a row is a margin loss ℓ(m) of m = ±z, or of the log odds of its class among many; its pull is s = -dℓ/dm,
the size of its gradient with respect to the logit. A note (seed 002) holds that the cross-entropy leaves too little of
it to well-classified examples.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from jaxpu import losses, models, train
from jaxpu.config import Cell
from jaxpu.margins import one_hot, own_margin
from jaxpu.methods.objective import Hyper
from jaxpu.train import ProbeInput, job

BINS = 10
"""Equal parts of [0, 1] into which the probability of the label falls."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Course(NamedTuple):
    """What was seen of one method over training.

    Attributes:
        rows: share of the training rows in each bin of p_y. pull: their share of Σ s.
        margins: ``QUANTILES`` of the margins of the training rows.
        norms: mean over the rows of each bin of |∂ℓ/∂θ|, the gradient in all parameters; NaN where a bin is empty.
    """

    rows: Float[np.ndarray, "seeds epochs bins"]
    pull: Float[np.ndarray, "seeds epochs bins"]
    margins: Float[np.ndarray, "seeds epochs quantiles"]
    norms: Float[np.ndarray, "seeds epochs bins"]


def course(cell: Cell, seeds: int) -> Course:
    """Train the seeds 0 .. seeds - 1 of a cell whose base is a mean of a margin loss, and look after every epoch.

    >>> from jaxpu.config import expand, parse
    >>> raw = {"data": {"name": "gaussians", "options": {"n": 60}}, "training": {"epochs": 2}, "methods": ["pn"]}
    >>> seen = course(expand(parse(raw | {"model": {"name": "linear"}}))[0], 1)
    >>> seen.rows.shape, bool(abs(seen.pull.sum(axis=-1) - 1).max() < 1e-5)
    ((1, 2, 10), True)
    """
    histories = []
    for seed in range(seeds):
        key, data, static, hyper = job.inputs(cell, seed)
        run = _train(key, data, dataclasses.replace(static, probes=PROBES), hyper)
        histories.append([np.asarray(run.history[f"probe_{name}"]) for name in Course._fields])
    return Course(*(np.stack(columns) for columns in zip(*histories, strict=True)))


@functools.partial(jax.jit, static_argnums=2)
def _train(key: Array, data: train.Data, static: train.Config, hyper: Hyper) -> Any:
    return train.train(key, data, static, hyper)


def _margins_of(logits: Array, labels: Array) -> Array:
    if logits.ndim == 1:
        return jnp.where(labels > 0, logits, -logits)
    return own_margin(logits, one_hot(labels, logits.shape[1]))[:, 0]


def _margins(seen: ProbeInput) -> Array:
    assert seen.y_train is not None  # the kinds that use this probe know the labels of their rows
    return _margins_of(seen.logits(seen.x_train), seen.y_train)


def _margin_loss(seen: ProbeInput, margins: Array) -> Array:
    """The surrogate of the one risk of the program."""
    [branch] = seen.objective.branches
    options = {name: seen.hyper.options[name] for name in ("log_end", "focus")}
    return losses.surrogates.chosen(dict(branch.choices)["surrogate"], **options)(margins)


def _bins(margins: Array) -> Array:
    return jnp.minimum((jax.nn.sigmoid(margins) * BINS).astype(int), BINS - 1)


def _shares(seen: ProbeInput, *, pulled: bool) -> Array:
    """Share of each bin in the rows, or in their pull."""
    m = _margins(seen)
    pull = -jax.grad(lambda m: _margin_loss(seen, m).sum())(m)
    weight = seen.data.counts * (pull if pulled else 1.0)
    return jax.ops.segment_sum(weight, _bins(m), BINS) / weight.sum()


def _norms(seen: ProbeInput) -> Array:
    """Mean norm of a row's gradient in all parameters, for the rows of each bin."""

    def loss(params: models.Params, x: Array, label: Array) -> Array:
        margin = _margins_of(seen.logits(x[None], params), label[None])
        return _margin_loss(seen, margin).sum()

    def norm(row: tuple[Array, Array]) -> Array:
        return jnp.sqrt(
            sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(jax.grad(loss)(seen.variables.params, *row)))
        )

    # a few hundred rows at a time: the gradients of all would be that many copies of the network
    norms = lax.map(norm, (seen.x_train, seen.y_train), batch_size=256)
    bins = _bins(_margins(seen))
    return jax.ops.segment_sum(seen.data.counts * norms, bins, BINS) / jax.ops.segment_sum(seen.data.counts, bins, BINS)


def _margin_quantiles(seen: ProbeInput) -> Array:
    return jnp.nanquantile(jnp.where(seen.data.counts > 0, _margins(seen), jnp.nan), jnp.array(QUANTILES))


PROBES = (
    ("rows", functools.partial(_shares, pulled=False)),
    ("pull", functools.partial(_shares, pulled=True)),
    ("margins", _margin_quantiles),
    ("norms", _norms),
)
"""The probes that :func:`course` records, in the order of :class:`Course`."""
