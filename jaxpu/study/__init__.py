"""Experiments on ensembles: seeds times settings in one program, continued until they heal, judged like any run."""

from jaxpu.study.run import Outcome, finished, read, run
from jaxpu.study.tables import Tables, tables

__all__ = ["Outcome", "Tables", "finished", "read", "run", "tables"]
