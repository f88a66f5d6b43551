"""Metrics on logits: masked, pure functions of arrays that run under ``jit`` and ``vmap``.

Two kinds that must not be confused. *Oracle* metrics read true labels. *Proxy* metrics read only which rows
are labeled positives, so they exist where PU learning is used in earnest.

Conventions, the same everywhere:

- Inputs are ``logits (n,)``, ``labels (n,)`` of 0 and 1 (or bool) and ``mask (n,)`` with 1 for a row that
  counts; ``mask=None`` counts every row. What stands in the other rows, NaN included, changes nothing.
- A row is predicted positive iff ``z > threshold``. The threshold is a logit, 0 unless said otherwise:
  p > 0.5. So a p of exactly 0.5 is predicted negative.
- Tied scores stay together: no threshold separates them, and a tied pair counts ½ in the AUC.
- Undefined is NaN, never a plausible number: everything without rows, or with a NaN among the logits that
  count; recall, F1 and average precision without positives; AUC without positives or without negatives; a
  proxy without labeled or without unlabeled rows. ``undefined_reason`` says which, in words. As in
  scikit-learn with ``zero_division=0``, precision and F1 are 0 if nothing is predicted positive.
- float16 and bfloat16 are computed in float32, float64 in float64.
"""

from jaxpu.metrics import multiclass
from jaxpu.metrics.calibration import brier, ece, log_loss, score_mean, score_sd
from jaxpu.metrics.checks import undefined_reason
from jaxpu.metrics.oracle import oracle_metrics, plain_metrics
from jaxpu.metrics.proxy import nn_risk, proxy_metrics, pu_accuracy, pu_auc, variational
from jaxpu.metrics.ranking import (
    auc,
    average_precision,
    f1_best,
    f1_quantile,
    f1_rescue,
    quantile_threshold,
)
from jaxpu.metrics.threshold import (
    accuracy,
    f1,
    f1_always_positive,
    f1_max_shift,
    precision,
    predicted_positive,
    recall,
)
from jaxpu.metrics.unlabeled import score_summary

__all__ = [
    "accuracy",
    "auc",
    "average_precision",
    "brier",
    "ece",
    "f1",
    "f1_always_positive",
    "f1_best",
    "f1_max_shift",
    "f1_quantile",
    "f1_rescue",
    "log_loss",
    "multiclass",
    "nn_risk",
    "oracle_metrics",
    "plain_metrics",
    "precision",
    "predicted_positive",
    "proxy_metrics",
    "pu_accuracy",
    "pu_auc",
    "quantile_threshold",
    "recall",
    "score_mean",
    "score_sd",
    "score_summary",
    "undefined_reason",
    "variational",
]
