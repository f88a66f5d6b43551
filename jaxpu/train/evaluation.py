"""Everything recorded after an epoch: what each set says of the network, with and without true labels."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxpu import metrics, models
from jaxpu.methods.objective import Hyper
from jaxpu.metrics import multiclass
from jaxpu.train.inputs import Config, Data, History, ProbeInput, features

AT_ONCE = 512
"""Rows that pass through a network at a time: their activations stay in a CPU's cache, and the memory is bounded."""

Sets = dict[str, tuple[Array, Array, Array]]
"""Column prefix -> (logits, labels, mask) of a set of rows."""


def evaluate(variables: models.Variables, data: Data, config: Config, hyper: Hyper) -> History:
    """Everything recorded after an epoch, computed on the device in one forward pass over all sets."""
    model = models.build(config.model, data.x.shape[1:], config.outputs)
    parts = (data.train, data.val, data.test, data.outside)
    logits = _in_blocks(lambda rows: model.logits(variables, features(data, rows)), jnp.concatenate(parts))
    ends = [sum(map(len, parts[:i])) for i in (1, 2, 3)]
    z_train, z_val, z_test, z_outside = jnp.split(logits - hyper.decision_offset, ends)
    judged: Sets = {}
    if len(data.test):  # there may be none where nobody knows the true labels
        judged["test"] = z_test, data.y[data.test], jnp.ones(len(data.test))
    for prefix, size in config.val_sizes:
        judged[prefix] = z_val, data.y[data.val], (jnp.arange(len(data.val)) < size).astype(jnp.float32)
    columns = _two_classes if config.outputs == 1 else _many_classes
    history = columns(z_train, z_val, judged, data, config, hyper)
    if len(data.outside) and len(data.test):
        history |= _outside(z_test, z_outside)
    if config.probes:
        seen = ProbeInput(variables, model, data, hyper, config.objective, config.truth)
        history |= {f"probe_{name}": function(seen) for name, function in config.probes}
    return history


def _in_blocks(function: Callable[[Array], Array], rows: Array, most: int = AT_ONCE) -> Array:
    """``function(rows)`` in equal blocks."""
    blocks = -(-len(rows) // most)
    size = -(-len(rows) // blocks)
    padded = jnp.pad(rows, (0, blocks * size - len(rows)))
    found = lax.map(function, padded.reshape(blocks, size))
    return found.reshape(-1, *found.shape[2:])[: len(rows)]


def _of_sets(metrics_of: Callable[[Array, Array, Array], History], sets: Sets) -> History:
    """Apply one function to several sets as one vmap over padded rows.

    One program for all sets instead of one a set: sorting and ranking are what takes long to compile.
    """
    longest = max(len(z) for z, *_ in sets.values())
    padded = [[_padded(array, longest) for array in arrays] for arrays in sets.values()]
    columns = jax.vmap(metrics_of)(*map(jnp.stack, zip(*padded, strict=True)))
    return {f"{prefix}_{name}": values[i] for i, prefix in enumerate(sets) for name, values in columns.items()}


def _padded(array: Array, length: int) -> Array:
    return jnp.pad(array, [(0, length - len(array)), *[(0, 0)] * (array.ndim - 1)])


def _two_classes(z_train: Array, z_val: Array, judged: Sets, data: Data, config: Config, hyper: Hyper) -> History:
    """What P and U tell, and metrics with true labels where they are known."""
    places = jnp.arange(len(data.val_pu))
    labeled = (places < data.n_val_labeled).astype(jnp.float32)
    proxied: Sets = {"train": (z_train, data.labeled, data.counts)}
    for prefix, size in config.val_sizes:
        inside = (places < data.n_val_pu) & (data.val_pu < size)
        proxied[prefix] = z_val[data.val_pu], labeled, inside.astype(jnp.float32)
    history = _train_scores(z_train, data, config) | _of_sets(functools.partial(_proxies, hyper=hyper), proxied)
    if not config.truth:
        return history | _of_sets(_unjudged, judged)
    log_p_max = jnp.where(data.counts > 0, jax.nn.log_sigmoid(z_train), -jnp.inf).max()
    return history | _of_sets(functools.partial(_judged, log_p_max=log_p_max, hyper=hyper), judged)


def _proxies(logits: Array, labeled: Array, mask: Array, *, hyper: Hyper) -> History:
    given = {"prior": hyper.prior, "mask": mask}
    return metrics.proxy_metrics(logits, labeled, **given) | metrics.score_summary(logits, labeled, **given)


def _train_scores(logits: Array, data: Data, config: Config) -> History:
    labeled = data.labeled
    p = data.counts * jax.nn.sigmoid(logits)
    sets = {"labeled": labeled}
    if config.truth:
        labels, unlabeled = data.y[data.train].astype(jnp.float32), data.counts * (1 - labeled)
        sets |= {"positive": unlabeled * labels, "negative": unlabeled * (1 - labels)}
    means = {f"train_p_{name}": (p * rows).sum() / rows.sum() for name, rows in sets.items()}
    return means | {"train_p_max": p.max()}


def _judged(logits: Array, labels: Array, mask: Array, *, log_p_max: Array, hyper: Hyper) -> History:
    """Metrics of one set, and F1 at the method's own decision rule as ``oracle_f1_decision``."""
    columns = metrics.oracle_metrics(logits, labels, prior=hyper.prior, log_p_max=log_p_max, mask=mask)
    choices = jnp.stack([columns[f"oracle_f1{end}"] for end in ("", "_quantile", "_max_shift")])
    return columns | {"oracle_f1_decision": choices[hyper.decision]}


def _unjudged(logits: Array, labels: Array, mask: Array) -> History:
    """What of the metrics of one set needs no labels."""
    del labels
    return {
        f.__name__: f(logits, mask=mask) for f in (metrics.predicted_positive, metrics.score_mean, metrics.score_sd)
    }


def _many_classes(z_train: Array, z_val: Array, judged: Sets, data: Data, config: Config, hyper: Hyper) -> History:
    """Metrics with true labels; the decision is the class of the largest logit."""
    y, mask = data.y[data.train], data.counts
    history = {f"train_{f.__name__}": f(z_train, y, mask=mask) for f in (multiclass.accuracy, multiclass.log_loss)}
    history |= _of_sets(lambda z, labels, mask: multiclass.oracle_metrics(z, labels, mask=mask), judged)
    return history | {f"{prefix}_oracle_f1_decision": history[f"{prefix}_oracle_f1"] for prefix in judged}


def _outside(z_test: Array, z_outside: Array) -> History:
    """How sure the network is of rows from elsewhere, and whether less so than of test rows."""
    sure = multiclass.confidence_logit(jnp.concatenate([z_test, z_outside]))
    own = jnp.arange(len(sure)) < len(z_test)
    outside = jax.nn.sigmoid(jnp.where(own, -jnp.inf, sure)).sum() / len(z_outside)
    return {"test_outside_auc": metrics.auc(sure, own), "test_outside_confidence": outside}
