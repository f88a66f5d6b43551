"""Experiments of other kinds than sweeps of PU methods, judged like them: ensembles, and guided training."""

from jaxpu.study.guided import run_guided
from jaxpu.study.run import Outcome, finished, read, run
from jaxpu.study.tables import Tables, tables

__all__ = ["Outcome", "Tables", "finished", "read", "run", "run_guided", "tables"]
