"""The collapse laboratory: does a method fail, in what way, and how often?

- ``diagnose(scores, labels)`` judges the scores of any program;
- ``diagnose_epoch(metrics)`` and ``diagnose_run(trajectory, selected)`` judge what was recorded, by the same
  rules;
- ``judge_method(diagnoses)`` and ``collapse_rate(f1)`` go from runs to methods, with intervals.

The rules are tables at the head of :mod:`jaxpu.collapse.rules` and :mod:`jaxpu.collapse.runs`; every number
in them is a field of `Thresholds`.
"""

from jaxpu.collapse.epochs import diagnose, diagnose_epoch
from jaxpu.collapse.flags import always_positive, epoch_flags
from jaxpu.collapse.rates import MethodVerdict, Rate, collapse_rate, judge_method
from jaxpu.collapse.rules import Assessment, assess, collapsed_epochs, epoch_verdicts
from jaxpu.collapse.runs import diagnose_run, onset_epoch
from jaxpu.collapse.scores import score_metrics, score_trajectory
from jaxpu.collapse.verdicts import Diagnosis, Thresholds, Verdict

__all__ = [
    "Assessment",
    "Diagnosis",
    "MethodVerdict",
    "Rate",
    "Thresholds",
    "Verdict",
    "always_positive",
    "assess",
    "collapse_rate",
    "collapsed_epochs",
    "diagnose",
    "diagnose_epoch",
    "diagnose_run",
    "epoch_flags",
    "epoch_verdicts",
    "judge_method",
    "onset_epoch",
    "score_metrics",
    "score_trajectory",
]
