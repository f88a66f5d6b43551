"""The kinds of experiments: what knows the runs and jobs of each. A module is imported when its kind is asked for."""

import dataclasses
import importlib
from typing import Any

from jaxpu.config import KINDS as CONFIGURED
from jaxpu.data import Dataset
from jaxpu.runs.job import Kind

KINDS: dict[str, str] = {
    "pu": "jaxpu.train.job",
    "multiclass": "jaxpu.train.job",
    "ensemble": "jaxpu.ensemble.job",
    "guided": "jaxpu.valuation.job",
    "function": "jaxpu.theory.job",
}
"""Kind of experiment -> the module with its ``runs`` and ``jobs``; its configuration stands in jaxpu.config.KINDS."""

assert KINDS.keys() == CONFIGURED.keys()


def kind_of(experiment: Any) -> Kind:
    """What knows the runs and jobs of an experiment.

    >>> from jaxpu.config import Experiment
    >>> kind_of(Experiment()).__name__
    'jaxpu.train.job'
    """
    module: Any = importlib.import_module(KINDS[experiment.kind])
    return module


@dataclasses.dataclass(frozen=True)
class WithData:
    """A kind of experiment on a dataset that stands in no registry, or with functions that have no name."""

    kind: Any
    options: dict[str, Any]
    dataset: Dataset | None

    def runs(self, experiment: Any) -> Any:
        """Its runs, on that dataset."""
        return self.kind.runs(experiment, self.dataset, **self.options)

    def jobs(self, experiment: Any, found: Any) -> Any:
        """Its jobs, on that dataset."""
        return self.kind.jobs(experiment, found, self.dataset)
