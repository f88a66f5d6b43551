"""Everything recorded after an epoch: what each set says of the network, with and without true labels."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxpu import metrics, models
from jaxpu.objective import Hyper
from jaxpu.train.inputs import Config, Data, History, ProbeInput, features


def evaluate(params: models.Params, data: Data, config: Config, hyper: Hyper) -> History:
    """Everything recorded after an epoch, computed on the device in one forward pass over all sets."""
    n, v = data.train.shape[0], data.val.shape[0]
    apply = models.build(config.model, data.x.shape[1:]).apply
    rows = jnp.concatenate([data.train, data.val, data.test])
    logits = _in_blocks(lambda rows: apply(params, features(data, rows)), rows) - hyper.decision_offset
    z_train, z_val, z_test = jnp.split(logits, [n, n + v])
    y = data.y.astype(jnp.float32)
    judged = {"test": (z_test, y[data.test], jnp.ones(len(data.test)))}
    proxied = {"train": (z_train, data.labeled, data.counts)}
    val_places = jnp.arange(len(data.val_pu))
    for prefix, size in config.val_sizes:
        judged[prefix] = z_val, y[data.val], (jnp.arange(v) < size).astype(jnp.float32)
        inside = (val_places < data.n_val_pu) & (data.val_pu < size)
        val_labeled = (val_places < data.n_val_labeled).astype(jnp.float32)
        proxied[prefix] = z_val[data.val_pu], val_labeled, inside.astype(jnp.float32)
    history = _train_scores(z_train, data.labeled, y[data.train], data.counts)
    history |= _of_sets(functools.partial(_proxies, hyper=hyper), proxied)
    log_p_max = jnp.where(data.counts > 0, jax.nn.log_sigmoid(z_train), -jnp.inf).max()
    history |= _of_sets(functools.partial(_judged, log_p_max=log_p_max, hyper=hyper), judged)
    if config.probes:
        train_set = (features(data, data.train), data.labeled, data.counts, y[data.train])
        seen = ProbeInput(params, apply, *train_set, features(data, data.test), y[data.test], hyper)
        history |= {f"probe_{name}": function(seen) for name, function in config.probes}
    return history


def _in_blocks(function: Callable[[Array], Array], rows: Array, most: int = 512) -> Array:
    """``function(rows)`` in equal blocks: activations of a block stay in a CPU's cache and bound the memory."""
    blocks = -(-len(rows) // most)
    size = -(-len(rows) // blocks)
    padded = jnp.pad(rows, (0, blocks * size - len(rows)))
    return lax.map(function, padded.reshape(blocks, size)).reshape(-1)[: len(rows)]


def _of_sets(
    metrics_of: Callable[[Array, Array, Array], History], sets: dict[str, tuple[Array, Array, Array]]
) -> History:
    """Apply one function to several (logits, labels, mask) sets as one vmap over padded rows.

    One program for all sets instead of one a set: sorting and ranking are what takes long to compile.
    """
    longest = max(len(z) for z, *_ in sets.values())
    padded = [[jnp.pad(a, (0, longest - len(a))) for a in arrays] for arrays in sets.values()]
    columns = jax.vmap(metrics_of)(*map(jnp.stack, zip(*padded, strict=True)))
    return {f"{prefix}_{name}": values[i] for i, prefix in enumerate(sets) for name, values in columns.items()}


def _proxies(logits: Array, labeled: Array, mask: Array, *, hyper: Hyper) -> History:
    return metrics.proxy_metrics(logits, labeled, prior=hyper.prior, mask=mask)


def _train_scores(logits: Array, labeled: Array, labels: Array, counts: Array) -> History:
    p = counts * jax.nn.sigmoid(logits)
    unlabeled = counts * (1 - labeled)
    sets = {"labeled": labeled, "positive": unlabeled * labels, "negative": unlabeled * (1 - labels)}
    means = {f"train_p_{name}": (p * rows).sum() / rows.sum() for name, rows in sets.items()}
    return means | {"train_p_max": p.max()}


def _judged(logits: Array, labels: Array, mask: Array, *, log_p_max: Array, hyper: Hyper) -> History:
    """Metrics of one set, and F1 at the method's own decision rule as ``oracle_f1_decision``."""
    columns = metrics.oracle_metrics(logits, labels, prior=hyper.prior, log_p_max=log_p_max, mask=mask)
    choices = jnp.stack([columns[f"oracle_f1{end}"] for end in ("", "_quantile", "_max_shift")])
    return columns | {"oracle_f1_decision": choices[hyper.decision]}
