"""Probes: what else is recorded of a network after every epoch, by name or a function of the user.

A probe is a function of a :class:`~jaxpu.train.ProbeInput` that returns a scalar (or an array of a fixed shape); it is
recorded as ``probe_<name>``. A configuration says ``probes: [weight_norm, "package.module:function"]``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxpu import losses, mixup
from jaxpu.errors import unknown
from jaxpu.functions import load
from jaxpu.margins import one_hot, own_margin
from jaxpu.theory import gradient_noise as per_example
from jaxpu.theory import mixupe
from jaxpu.train import directional
from jaxpu.train.inputs import ProbeInput
from jaxpu.types import Scalar

Probe = Callable[[ProbeInput], Array]
AT_ONCE = 256
"""Rows that are differentiated at a time."""
DRAWS = 16
"""Passes over the training rows that the gradient of mixup's loss is taken from."""


def weight_norm(seen: ProbeInput) -> Scalar:
    """Norm of all weights together, sqrt(Σ w²), over every leaf with two axes or more: biases and scales are none."""
    return jnp.sqrt(sum((jnp.vdot(w, w) for w in jax.tree.leaves(seen.variables.params) if w.ndim > 1), jnp.zeros(())))


def input_gradient_norm(seen: ProbeInput) -> Scalar:
    """Mean over the training rows of |∂z/∂x|; with many logits a row, z is the largest of them."""

    def norm(x: Array) -> Scalar:
        slope = jax.grad(lambda x: seen.logits(x[None]).reshape(-1).max())(x)
        return jnp.sqrt(jnp.vdot(slope, slope))

    return _mean(lax.map(norm, seen.x_train, batch_size=AT_ONCE), seen)


def input_loss_gradient_norm(seen: ProbeInput) -> Scalar:
    """Mean over the training rows of |∂ℓ/∂x|, ℓ the cross-entropy of the true label, by the network as it predicts."""
    y = seen.data.y[seen.data.train]

    def norm(row: tuple[Array, Array]) -> Scalar:
        slope = jax.grad(lambda x: losses.cross_entropy(seen.logits(x[None]), row[1][None]))(row[0])
        return jnp.sqrt(jnp.vdot(slope, slope))

    return _mean(lax.map(norm, (seen.x_train, y), batch_size=AT_ONCE), seen)


def mean_margin(seen: ProbeInput) -> Scalar:
    """Mean over the training rows of m = ±z by the true label, of many classes the log odds of the true one."""
    y = seen.data.y[seen.data.train]
    z = lax.map(lambda x: seen.logits(x[None])[0], seen.x_train, batch_size=AT_ONCE)
    margins = jnp.where(y > 0, z, -z) if z.ndim == 1 else own_margin(z, one_hot(y, z.shape[1]))[:, 0]
    return _mean(margins, seen)


def gradient_norm(seen: ProbeInput) -> Scalar:
    """Norm of the gradient of the mean cross-entropy of the training rows, by the network as it predicts: GradNorm."""
    loss, rows = _row_loss(seen), (seen.x_train, seen.data.y[seen.data.train])
    mean = per_example.mean_gradient(loss, seen.variables.params, rows, _shares(seen))
    return jnp.sqrt(per_example.squared_norm(mean))


def gradient_noise(seen: ProbeInput) -> Scalar:
    """Root mean square distance of the rows' gradients from their mean: :mod:`jaxpu.theory.gradient_noise`."""
    loss, rows = _row_loss(seen), (seen.x_train, seen.data.y[seen.data.train])
    return per_example.gradients(loss, seen.variables.params, rows, counts=seen.data.counts).noise


def mixup_gradient_norm(seen: ProbeInput) -> Scalar:
    """As :func:`gradient_norm`, of mixup's loss at the α of the epoch, from two halves of draws, so without bias.

    The sign is that of the product of the halves: where the norm is small it is noise about 0.
    """
    loss, params, share = _row_loss(seen), seen.variables.params, _shares(seen)

    def half(keys: Array) -> Any:
        each = lax.map(lambda key: per_example.mean_gradient(loss, params, _mixed(seen, key), share), keys)
        return jax.tree.map(lambda leaf: leaf.mean(axis=0), each)

    keys = jax.random.split(jax.random.key(0), (2, DRAWS // 2))
    return per_example.without_bias(half(keys[0]), half(keys[1]))


def mixup_gradient_noise(seen: ProbeInput) -> Scalar:
    """As :func:`gradient_noise`, of mixup's loss at the α of the epoch, from one draw of partners and λ."""
    mixed = _mixed(seen, jax.random.key(1))
    return per_example.gradients(_row_loss(seen), seen.variables.params, mixed, counts=seen.data.counts).noise


def least_alpha(seen: ProbeInput) -> Scalar:
    """The least coefficient α_ik of mixup's first-order term over rows and logits: :mod:`jaxpu.theory.mixupe`."""
    found = mixupe.parts(lambda x: seen.logits(x[None])[0], *_labeled_rows(seen))
    return jnp.where(seen.data.counts[:, None] > 0, found.alpha, jnp.inf).min()


def negative_q(seen: ProbeInput) -> Scalar:
    """Share of the training rows whose loss falls on the way to the mean row, q < 0: :mod:`jaxpu.theory.mixupe`."""
    q = mixupe.toward_mean(lambda x: seen.logits(x[None])[0], *_labeled_rows(seen))
    return _mean((q < 0).astype(q.dtype), seen)


def _row_loss(seen: ProbeInput) -> Callable[[Any, tuple[Array, Array]], Scalar]:
    return lambda params, row: losses.cross_entropy(seen.logits(row[0][None], params), row[1][None])


def _labels(seen: ProbeInput) -> Array:
    y = seen.data.y[seen.data.train]
    outputs = jax.eval_shape(seen.logits, seen.x_train[:1]).shape[1:]
    return (one_hot(y, *outputs) if outputs else y).astype(seen.x_train.dtype)


def _labeled_rows(seen: ProbeInput) -> tuple[Array, Array, Array]:
    """Rows, labels of the logits' shape, and the mean row."""
    return seen.x_train, _labels(seen), directional.mean_row(seen.data)


def _mixed(seen: ProbeInput, key: Array) -> tuple[Array, Array]:
    """Every training row with a partner, any of them, and a λ of its own."""
    partners, coefficients = jax.random.split(key)
    n = len(seen.data.train)
    partner = jax.random.randint(partners, (n,), 0, seen.data.n_train)
    lam = mixup.sample(coefficients, seen.hyper.alpha, (n,))
    return mixup.mix(seen.x_train, partner, lam), mixup.mix(_labels(seen), partner, lam)


def _shares(seen: ProbeInput) -> Array:
    return seen.data.counts / seen.data.counts.sum()


def _mean(values: Array, seen: ProbeInput) -> Scalar:
    """Mean over the training rows that are no padding."""
    return jnp.vdot(values, seen.data.counts) / seen.data.counts.sum()


_OF_LABELS = (input_loss_gradient_norm, mean_margin, gradient_norm, gradient_noise, mixup_gradient_norm)
_OF_LABELS += (mixup_gradient_noise, least_alpha, negative_q)
"""Those that need true labels."""

PROBES: dict[str, Probe] = {f.__name__: f for f in (weight_norm, input_gradient_norm, *_OF_LABELS)}
"""The probes that have a name."""


def resolve(names: Sequence[str | Probe], truth: bool = True) -> tuple[tuple[str, Probe], ...]:
    """Probes as :class:`~jaxpu.train.Config` takes them: (name of the column without ``probe_``, function).

    Args:
        names: of :data:`PROBES`, ``"package.module:function"``, or functions. truth: whether true labels are known.

    Raises:
        ValueError: a name that there is none of, two probes of one name, or one that needs true labels.

    >>> [name for name, _ in resolve(["weight_norm", "jaxpu.train.probes:mean_margin"])]
    ['weight_norm', 'mean_margin']
    """
    found = [_resolved(name) for name in names]
    columns = [name for name, _ in found]
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ValueError(f"probes: {', '.join(twice)} appears twice; a probe is recorded by the name of its function")
    for name in (name for name, probe in found if probe in _OF_LABELS and not truth):
        raise ValueError(f"probes: {name} needs true labels, and only observed ones are known; leave it out")
    return tuple(found)


def _resolved(name: str | Probe) -> tuple[str, Probe]:
    if isinstance(name, str) and ":" not in name:
        if name not in PROBES:
            raise ValueError(f"probes: {unknown('probe', name, [*PROBES, 'package.module:function'])}")
        return name, PROBES[name]
    probe = load(name) if isinstance(name, str) else name
    return getattr(probe, "__name__", type(probe).__name__), probe
