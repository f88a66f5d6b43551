"""What is measured of a student and its teacher after an epoch: r̂ of a fixed sample of pairs, and of wrong labels."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float

from jaxpu import losses, models
from jaxpu.metrics import multiclass
from jaxpu.train import ProbeInput, features
from jaxpu.types import Scalar
from jaxpu.valuation import pairs, scores
from jaxpu.valuation.risk import example_risk, failures, log_likelihood, mixed_cross_entropy, relative_risk

PROBE = "valuation"
"""Name of the probe."""
PAIRS, BINS, EXTREME = 1000, 10, 100
"""Pairs looked at, bins of λ, and pairs at each end that are recorded one by one."""
OF_AN_EXTREME = ("lambda", "risk", "el2n_higher", "el2n_lower", "row", "partner")
PAIRINGS = 8
"""How many partners each row gets when rows are ranked."""
AT_ONCE = 512


def measure(
    seen: ProbeInput, *, teacher: models.Variables, wrong: Bool[Array, " n"] | None = None
) -> Float[Array, " k"]:
    """All numbers, one after the other, as :func:`jaxpu.valuation.record.record` takes them apart.

    In order :data:`jaxpu.config.guided.OF_PAIRS`, ``TAILS`` and ``RANKINGS``, |r̂| and r̂ by λ, and of the pairs with the
    least r̂, the largest, and that nearest to 0, what :data:`OF_AN_EXTREME` names.

    Args:
        seen: the student. teacher: its teacher. wrong: where labels of training rows are known to be wrong.
    """
    knows = functools.partial(seen.model.logits, teacher)
    first, second = jax.random.randint(jax.random.key(0), (2, PAIRS), 0, seen.data.n_train)
    lam = jax.random.permutation(jax.random.key(1), (jnp.arange(PAIRS) + 0.5) / PAIRS)
    x1, x2 = (features(seen.data, seen.data.train[at]) for at in (first, second))
    y1, y2 = (seen.data.y[seen.data.train[at]] for at in (first, second))
    mixed = _mixed(x1, x2, lam)
    risk = relative_risk(knows(mixed), seen.logits(mixed), y1, y2, lam)
    hard = jnp.stack([scores.el2n(seen.logits(x1), y1), scores.el2n(seen.logits(x2), y2)])
    folded, size = jnp.minimum(lam, 1 - lam), jnp.abs(risk)
    harm = -_slope_on_failures(seen, mixed, y1, y2, lam)
    rho = pairs.rank_correlation
    of_pairs = [(risk < 0).mean(), risk.mean(), size.mean(), rho(size, folded), rho(risk, hard.mean(0))]
    of_pairs += [rho(size, hard.mean(0)), rho(risk, harm), *_on_test(seen, knows)]
    order = jnp.argsort(-size)
    tail, centre = order[:EXTREME], order[-EXTREME:]
    tails = [folded[tail].mean(), folded[centre].mean(), hard.mean(0)[tail].mean(), hard.mean(0)[centre].mean()]
    ranked = [jnp.full((), jnp.nan)] * 4 if wrong is None else _rankings(seen, teacher, wrong)
    places = pairs.extremes(risk, EXTREME)
    each = jnp.stack(
        [lam, risk, hard.max(0), hard.min(0), *(seen.data.train[at].astype(lam.dtype) for at in (first, second))]
    )
    by_lambda = [pairs.by_lambda(values, lam, BINS) for values in (size, risk)]
    return jnp.concatenate([jnp.stack([*of_pairs, *tails, *ranked]), *by_lambda, each[:, places].reshape(-1)])


def _mixed(x: Array, partner: Array, lam: Array) -> Array:
    weight = lam.reshape(-1, *[1] * (x.ndim - 1))
    return weight * x + (1 - weight) * partner


def _on_test(seen: ProbeInput, knows: Callable[[Array], Array]) -> list[Scalar]:
    """Accuracy and log-loss of the teacher."""
    y = seen.data.y[seen.data.test]
    z = lax.map(lambda row: knows(row[None])[0], seen.x_test, batch_size=AT_ONCE)
    return [multiclass.accuracy(z, y), multiclass.log_loss(z, y)]


def _slope_on_failures(seen: ProbeInput, mixed: Array, y1: Array, y2: Array, lam: Array) -> Float[Array, " n"]:
    """⟨∇H of a pair, ∇ of the loss of the failure set⟩, the test rows that the student gets wrong; one forward pass."""
    params, labels = seen.variables.params, seen.data.y[seen.data.test]

    def of_failures(params: models.Params) -> Scalar:
        z = seen.logits(seen.x_test, params)
        return losses.cross_entropy(z, labels, mask=lax.stop_gradient(failures(z, labels)))

    def of_pairs(params: models.Params) -> Array:
        return mixed_cross_entropy(seen.logits(mixed, params), y1, y2, lam)

    return jax.jvp(of_pairs, (params,), (jax.grad(of_failures)(params),))[1]


def _rankings(seen: ProbeInput, teacher: models.Variables, wrong: Array) -> list[Scalar]:
    """How many of the wrong labels each ranking finds; rows that are padding come last."""
    x, y, counts = seen.x_train, seen.data.y[seen.data.train], seen.data.counts

    def both(rows: Array) -> tuple[Array, Array]:
        return seen.model.logits(teacher, rows), seen.logits(rows)

    knows, learns = both(x)

    def paired(key: Array) -> tuple[Array, Array, Array]:
        partner = jax.random.randint(key, y.shape, 0, seen.data.n_train)
        lam = jax.random.uniform(jax.random.fold_in(key, 1), y.shape)
        taught, learned = both(_mixed(x, x[partner], lam))
        return relative_risk(taught, learned, y, y[partner], lam), partner, lam

    risk, partner, lam = (each.reshape(-1) for each in lax.map(paired, jax.random.split(jax.random.key(2), PAIRINGS)))
    rows = jnp.tile(jnp.arange(len(y)), PAIRINGS)
    credit = pairs.credit(risk, rows, partner, lam, len(y)).value
    said = log_likelihood(learns, y)
    ranked = (example_risk(said, log_likelihood(knows, y)), credit, scores.el2n(learns, y), -said)
    return [_found(jnp.where(counts > 0, each, -jnp.inf), wrong * counts) for each in ranked]


def _found(score: Array, wrong: Array) -> Scalar:
    """Share of wrong ones among as many rows as are wrong, those with the largest score."""
    first = jnp.arange(len(score)) < wrong.sum()
    return (wrong[jnp.argsort(-score)] * first).sum() / wrong.sum()
