"""The collapse laboratory: does a method fail, in what way, and how often?

- ``diagnose(scores, labels)`` judges the scores of any program;
- ``diagnose_epoch(metrics)`` and ``diagnose_run(trajectory, selected)`` judge what was recorded, by the same
  rules. :mod:`jaxpu.analysis.rates` goes from runs to methods.

The rules are tables at the head of :mod:`jaxpu.collapse.rules` and :mod:`jaxpu.collapse.runs`; every number
in them is a field of `Thresholds`.
"""

from jaxpu.collapse.epochs import diagnose, diagnose_epoch
from jaxpu.collapse.flags import always_positive, epoch_flags
from jaxpu.collapse.rules import Assessment, assess, collapsed_epochs, epoch_verdicts, fallen_epochs
from jaxpu.collapse.runs import diagnose_run, onset_epoch
from jaxpu.collapse.scores import score_metrics, score_trajectory
from jaxpu.collapse.verdicts import Diagnosis, Thresholds, Verdict

__all__ = [
    "Assessment",
    "Diagnosis",
    "Thresholds",
    "Verdict",
    "always_positive",
    "assess",
    "collapsed_epochs",
    "diagnose",
    "diagnose_epoch",
    "diagnose_run",
    "epoch_flags",
    "epoch_verdicts",
    "fallen_epochs",
    "onset_epoch",
    "score_metrics",
    "score_trajectory",
]
