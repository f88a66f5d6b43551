"""What can be known to be wrong with an experiment before it trains for an hour."""

import functools
from collections.abc import Collection, Sequence

import jax

from jaxpu import train
from jaxpu.analysis.selection import kept_columns
from jaxpu.collapse import Verdict
from jaxpu.config import AnyExperiment, Cell, Experiment, check_claims, expand
from jaxpu.config.function import FunctionExperiment
from jaxpu.data import Dataset
from jaxpu.train import job

BY_RULE = ("f1", "regret", "epoch", "epochs_run")
"""Columns of ``selected`` that a selection rule makes."""


def check(experiment: AnyExperiment, dataset: Dataset | None = None) -> None:
    """Whether cells differ, and claims speak of cells, metrics and verdicts that there will be.

    Args:
        experiment: of any kind. dataset: what it is about, instead of what it names.

    Raises:
        ConfigError: naming the claim or the cells, and the choices.
    """
    check_claims(experiment, metrics=_metrics(experiment, dataset), verdicts=[str(verdict) for verdict in Verdict])


def _metrics(experiment: AnyExperiment, dataset: Dataset | None) -> Collection[str]:
    asked = {claim.metric for claim in experiment.claims if not claim.verdicts}
    if isinstance(experiment, FunctionExperiment):
        from jaxpu.theory import job as functions_of  # scipy's optimisers with it

        return functions_of.recorded(experiment)
    if not isinstance(experiment, Experiment):
        return (*experiment.METRICS, *(f"probe_{probe.rpartition(':')[2]}" for probe in experiment.probes))
    labels = experiment.data.truth and (dataset is None or dataset.y is not None)
    if labels and asked <= {*BY_RULE}:
        return BY_RULE  # without a look at what training records, which takes a second
    return recorded(expand(experiment), dataset)


def recorded(cells: Sequence[Cell], dataset: Dataset | None = None) -> tuple[str, ...]:
    """The columns that ``selected`` will have, from the training of one cell, traced and not run."""
    key, data, static, hyper = job.inputs(cells[0], cells[0].first_seed, dataset=dataset)
    history = jax.eval_shape(functools.partial(train.train, config=static), key, data, hyper=hyper).history
    scalars = kept_columns(name for name, values in history.items() if values.ndim == 1)
    by_rule = [name for name in BY_RULE if name not in ("f1", "regret") or "test_oracle_f1_decision" in history]
    return (*by_rule, *scalars)
