"""What is fitted to somebody's own rows: their scores, what became of the runs, and what scores further rows.

fit ─► Fit (AutoFit or NetworkFit, one interface) ─► save: model.skops or model.safetensors ─► load: a Scorer
"""

from jaxpu.fitted.fit import AutoFit, Fit, of_table
from jaxpu.fitted.networks import NetworkFit
from jaxpu.fitted.scorer import Scored, Scorer
from jaxpu.fitted.store import load, save

__all__ = ["AutoFit", "Fit", "NetworkFit", "Scored", "Scorer", "load", "of_table", "save"]
