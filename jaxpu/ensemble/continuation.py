"""Runs that ended badly go on with their factors held fixed until they heal: is it a collapse or a long way?"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxpu import collapse
from jaxpu.ensemble.aggregate import Aggregator, Step
from jaxpu.ensemble.descent import descend
from jaxpu.ensemble.ratings import Problem

PER_DECADE = 12
"""Points in time at which the continued runs are looked at, a factor 10 apart; so a time is exact to 21 %."""


def looks(begin: int, end: int) -> tuple[int, ...]:
    """Updates at which to look, from ``begin`` to ``end``, evenly spaced in their logarithm.

    >>> looks(100, 1000)[:3], looks(100, 1000)[-1]
    ((100, 121, 147), 1000)
    """
    count = max(2, round(PER_DECADE * np.log10(end / begin)) + 1)
    return tuple(np.unique(np.geomspace(begin, end, count).round().astype(int)).tolist())


def healthy(found: dict[str, Array]) -> Array:
    """Whether metrics are those of a healthy classifier, by the rules of :mod:`jaxpu.collapse`; traced ones too."""
    numbers = found | collapse.always_positive(found["prevalence"])
    return collapse.epoch_flags(numbers)[collapse.Verdict.HEALTHY]


def going_on(end: Aggregator, reconstructed: Problem, going: Array, step: Step, times: Sequence[int]) -> Aggregator:
    """The aggregator at every look, by the same gradient updates.

    Args:
        end: where training left it. reconstructed: the ratings, held fixed. going: whether it goes on; it stays where
            it is otherwise. step: learning rates, class weights and centring. times: the looks, the first at the end
            of training.
    """
    updates = jnp.where(going, jnp.asarray(times) - times[0], 0)
    # a focal exponent and Newton steps do not exist here, and runs that have them are not continued
    plain = Step(lr=step.lr, bias_lr=step.bias_lr, class_weights=step.class_weights, centre=step.centre)
    return descend(end, *reconstructed, updates=updates, step=plain)


def healing(verdicts: Sequence[str], auc: np.ndarray, times: Sequence[int]) -> dict[str, str | int | None]:
    """When a run was ranked and when it was healthy.

    Args:
        verdicts: at every look, the first that of the training. auc: at every look. times: updates made by then.

    Returns:
        ranked_at and healthy_at, the updates after which AUC first reached good_auc and the verdict was first healthy
        (None where it never came), ``end_verdict`` of the training, ``final_verdict`` at healthy_at or else the last
        look, and ``verdict``: that of the training, or stopped_early where a longer run is healthy.

    >>> healed = healing(["inverted", "weak_ranking", "healthy"], np.array([0.1, 0.6, 0.9]), (100, 200, 400))
    >>> healed["verdict"], healed["healthy_at"]
    ('stopped_early', 400)
    """
    first = {
        "ranked_at": np.flatnonzero(auc >= collapse.Thresholds().good_auc),
        "healthy_at": np.flatnonzero(np.asarray(verdicts) == "healthy"),
    }
    reached = {name: int(times[places[0]]) if places.size else None for name, places in first.items()}
    final = verdicts[first["healthy_at"][0] if first["healthy_at"].size else -1]
    early = verdicts[0] != "healthy" and reached["healthy_at"] is not None
    verdict = "stopped_early" if early else verdicts[0]
    return {**reached, "end_verdict": verdicts[0], "final_verdict": final, "verdict": verdict}
