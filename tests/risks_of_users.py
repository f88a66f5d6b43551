"""Functions that a user may have written, in a module of their own: to be named in YAML, and told apart."""

import jax
import jax.numpy as jnp

from jaxpu import losses, mixup
from jaxpu.methods import Memory


def ranking(logits, labeled, *, mask=None, margin=1.0, hard=True):
    """Hinge on pairs of a labeled and an unlabeled row."""
    positive, unlabeled = losses.batch.sets(labeled, mask)
    pairs = (positive[:, None] & unlabeled[None, :]).ravel()
    z = losses.batch.clean(logits, positive | unlabeled)
    short = margin - (z[:, None] - z[None, :]).ravel()
    return losses.batch.mean(jnp.maximum(short, 0) if hard else jax.nn.softplus(short), pairs)


def ranking_again(logits, labeled, *, mask=None, margin=1.0, hard=True):
    """The same under another name."""
    return ranking(logits, labeled, mask=mask, margin=margin, hard=hard)


def mean_teacher(logits, labeled, *, prior, mask=None, memory, forward, pull=1.0):
    """nnPU, and the distance to an averaged network."""
    risk = losses.nnpu(logits, labeled, prior=prior, mask=mask)
    _, unlabeled = losses.batch.sets(labeled, mask)
    apart = jax.nn.sigmoid(logits) - jax.nn.sigmoid(forward(memory))
    return risk + pull * losses.batch.mean(jnp.square(apart), unlabeled)


def start(params, n_rows):
    return params


def average(memory, *, params, decay=0.9):
    return jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, memory, params)


teacher = Memory(start, average)


def pseudo_labels(logits, labeled, *, prior, mask=None, rows, memory, trust=0.5):
    """pudra, and the cross-entropy to what the network said of a row when it last saw it."""
    p = memory[rows]
    _, unlabeled = losses.batch.sets(labeled, mask)
    entropy = -p * jax.nn.log_sigmoid(logits) - (1 - p) * jax.nn.log_sigmoid(-logits)
    return losses.pudra(logits, labeled, prior=prior, mask=mask) + trust * losses.batch.mean(entropy, unlabeled)


def remember(memory, *, rows, logits, mask):
    return memory.at[rows].set(jnp.where(mask > 0, jax.nn.sigmoid(logits), memory[rows]))


def undecided(params, n_rows):
    return jnp.full(n_rows, 0.5)


said_before = Memory(undecided, remember)


def anchored(logits, labeled, *, prior, mask=None, mixed):
    """``vpudra_fixed`` once more: pudra, and the log-MSE to the anchored target, of mixed rows that it asks for."""
    log_p = jax.nn.log_sigmoid(logits)
    log_mu = mixup.log_target(log_p, log_p[mixed.partner], mixed.lam, anchor=1.0)
    apart = mixup.log_mse(log_mu, jax.nn.log_sigmoid(mixed.logits))
    counted = jnp.ones(labeled.shape, bool) if mask is None else mask > 0
    return losses.pudra(logits, labeled, prior=prior, mask=mask) + mixed.lam * losses.batch.mean(apart, counted)


def how_mixed(logits, labeled, *, mask=None, mixed, lower=0.15, upper=0.85, of_lam=0.0):
    """The share of doubted rows whose partner is labeled, or λ."""
    _, unlabeled = losses.batch.sets(labeled, mask)
    p = jax.nn.sigmoid(logits)
    share = losses.batch.mean(labeled[mixed.partner], unlabeled & (p > lower) & (p < upper))
    return jnp.where(of_lam > 0, mixed.lam, share)


# Careless ones: each has one of the mistakes that the contract is there to stop.


def ignores_padding(logits, labeled, *, prior, mask=None):
    return jnp.where(labeled == 1, prior * jax.nn.softplus(-logits), jax.nn.sigmoid(logits)).mean()


def zeroes_too_late(logits, labeled, *, prior, mask=None):
    each = jnp.where(labeled == 1, prior * jax.nn.softplus(-logits), jax.nn.sigmoid(logits))
    return (each * mask).sum() / jnp.maximum(mask.sum(), 1)


def mean_of_nothing(logits, labeled, *, prior, mask=None):
    positive, unlabeled = losses.batch.sets(labeled, mask)
    z = losses.batch.clean(logits, positive | unlabeled)
    return jnp.where(positive, jax.nn.softplus(-z), 0).sum() / positive.sum()


def log_of_a_probability(logits, labeled, *, prior, mask=None):
    positive, unlabeled = losses.batch.sets(labeled, mask)
    z = losses.batch.clean(logits, positive | unlabeled)
    return -prior * losses.batch.mean(jnp.log(jax.nn.sigmoid(z)), positive)


def picks_rows(logits, labeled, *, prior, mask=None):
    return -jax.nn.log_sigmoid(logits[labeled == 1]).mean()


def branches_on_a_number(logits, labeled, *, prior, mask=None, gamma=1.0):
    risk = losses.nnpu(logits, labeled, prior=prior, mask=mask)
    return gamma * risk if gamma > 0 else risk


def one_a_row(logits, labeled, *, prior, mask=None):
    return jax.nn.softplus(-logits)


CARELESS = (
    ignores_padding,
    zeroes_too_late,
    mean_of_nothing,
    log_of_a_probability,
    picks_rows,
    branches_on_a_number,
)
