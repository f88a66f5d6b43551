"""Guided training: a student learns the mixed pairs that a filter on r̂ lets through.

The loop and the update are those of :mod:`jaxpu.train`, for a method that mixes labels; a guide weighs the mixed rows.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxpu import models, train
from jaxpu.methods.objective import Hyper
from jaxpu.train import Config, Data
from jaxpu.train.inputs import Seen
from jaxpu.train.step import Carry, StepKeys, StepTerms
from jaxpu.types import Scalar
from jaxpu.valuation.filters import FILTERS, chosen, keep
from jaxpu.valuation.risk import relative_risk

WHOLE = FILTERS.index("whole")


class Guide(NamedTuple):
    """Who says which pairs a student learns; traced.

    Attributes:
        teacher: the network that judges pairs; where the filter keeps all of them it is not asked for anything.
        which: place of the filter in :data:`~jaxpu.valuation.FILTERS`.
        over_rows: 1 divides the loss by the rows of the batch, 0 by the pairs that enter.
        warmup, until: the shares of the epochs between which the filter is in.
    """

    teacher: models.Variables
    which: Any
    over_rows: Any
    warmup: Any
    until: Any


class Choices(NamedTuple):
    """What of guiding shapes the program; static.

    Attributes:
        draws: how many partners each row of a batch gets; as many pairs as the batch has rows enter at most.
        refresh: epochs after which the student becomes the teacher; 0 = never.
    """

    draws: int = 1
    refresh: int = 0


class Taught(NamedTuple):
    """What a run carries where its teacher is replaced: the teacher, and how often it was."""

    teacher: models.Variables
    times: Any


def weigh(seen: Seen, *, guide: Guide, draws: int = 1) -> tuple[Array, dict[str, Scalar]]:
    """1 for the pairs that enter a student's loss, by teacher and student as they predict outside of training.

    Beside it the share of the pairs that the filter keeps, and the mean of r̂ over all, 0 where it was not asked for.

    Args:
        seen: the mixed batch, with every row ``draws`` times. guide: who filters.
    """
    mask = seen.mask.astype(seen.x.dtype)
    filtered = (guide.which != WHOLE) & (seen.progress >= guide.warmup) & (seen.progress < guide.until)
    here = seen.logits(seen.x)
    model = functools.partial(seen.model.logits, guide.teacher)
    judged = lax.cond(
        filtered,
        lambda: relative_risk(model(seen.x), here, seen.y, seen.y[seen.partner], seen.lam),
        lambda: jnp.zeros(len(seen.y), here.dtype),
    )
    kept = keep(judged, jnp.where(filtered, guide.which, WHOLE), key=seen.key, mask=mask)
    rows = jnp.maximum(mask.sum(), 1)
    enters = chosen(kept, len(kept) // draws) if draws > 1 else kept
    told = {"passed": kept.sum() / rows, "entered": draws * enters.sum() / rows}
    return enters, told | {"relative_risk": (mask * judged).sum() / rows}


def update(
    carry: Carry,
    step: tuple[Array, Array, Array, StepKeys],
    *,
    data: Data,
    config: Config,
    hyper: Hyper,
    progress: Scalar,
    centre: Array | None,
    guide: Guide,
    choices: Choices,
) -> tuple[Carry, StepTerms]:
    """One update on the pairs that the guide lets through, Σ m ℓ / Σ m; where there is none the gradient is 0.

    Args:
        carry, step, data, config, hyper, progress, centre: as of :func:`jaxpu.train.step.update`. guide: who filters.
        choices: the static part.
    """
    places, mask, lam, keys = step
    if choices.draws > 1:
        places, mask = jnp.tile(places, choices.draws), jnp.tile(mask, choices.draws)
        lam = jnp.tile(lam, choices.draws) if lam.ndim else lam
    taught = carry.memory
    if choices.refresh:
        taught = _refreshed(carry, progress, config, choices.refresh)
        guide = guide._replace(teacher=taught.teacher)
    moved, terms = train.update(
        carry._replace(memory=None),
        (places, mask, lam, keys),
        data=data,
        config=config,
        hyper=hyper,
        progress=progress,
        centre=centre,
        weigh=functools.partial(weigh, guide=guide, draws=choices.draws),
        over_rows=guide.over_rows,
    )
    return moved._replace(memory=taught), terms


def _refreshed(carry: Carry, progress: Scalar, config: Config, every: int) -> Taught:
    """The student in the teacher's place, at the first step after so many epochs."""
    times = jnp.round(progress * config.epochs).astype(jnp.int32) // every
    due = times > carry.memory.times
    student = models.Variables(carry.params, carry.model_state)
    return Taught(jax.tree.map(functools.partial(jnp.where, due), student, carry.memory.teacher), times)
