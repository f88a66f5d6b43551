"""From recorded runs to statements: selection, summaries, verdicts, claims, and statistics over seeds.

- :func:`tables` makes all tables of an experiment of any kind;
- :func:`analyze` says what failed, training or selection;
- :func:`jaxpu.analysis.check.check` refuses, before training, claims that speak of what will not be there.
"""

from jaxpu.analysis.failures import analyze
from jaxpu.analysis.labels import point_label, with_labels
from jaxpu.analysis.paths import paths
from jaxpu.analysis.selection import replay, select
from jaxpu.analysis.summary import COLLAPSED_F1, Tables, tables

__all__ = [
    "COLLAPSED_F1",
    "Tables",
    "analyze",
    "paths",
    "point_label",
    "replay",
    "select",
    "tables",
    "with_labels",
]
