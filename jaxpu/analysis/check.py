"""What can be known to be wrong with an experiment before it trains for an hour."""

import functools
from collections.abc import Collection, Sequence

import jax

from jaxpu import sweep, train
from jaxpu.collapse import Verdict
from jaxpu.config import AnyExperiment, Cell, Experiment, check_claims, expand

BY_RULE = ("f1", "regret", "epoch", "epochs_run")
"""Columns of ``selected`` that a selection rule makes."""


def check(experiment: AnyExperiment) -> None:
    """Whether cells differ, and claims speak of cells, metrics and verdicts that there will be.

    Raises:
        ConfigError: naming the claim or the cells, and the choices.
    """
    check_claims(experiment, metrics=_metrics(experiment), verdicts=[str(verdict) for verdict in Verdict])


def _metrics(experiment: AnyExperiment) -> Collection[str]:
    asked = {claim.metric for claim in experiment.claims if not claim.verdicts}
    if not isinstance(experiment, Experiment):
        return experiment.METRICS
    if asked <= {*BY_RULE}:
        return BY_RULE  # without a look at what training records, which takes a second
    return recorded(expand(experiment))


def recorded(cells: Sequence[Cell]) -> tuple[str, ...]:
    """The columns that ``selected`` will have, from the training of one cell, traced and not run."""
    key, data, static, hyper = sweep.inputs(cells[0], cells[0].first_seed)
    history = jax.eval_shape(functools.partial(train.train, config=static), key, data, hyper=hyper).history
    scalars = [name for name, values in history.items() if values.ndim == 1 and not name.startswith("val")]
    return (*BY_RULE, *scalars)
