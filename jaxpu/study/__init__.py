"""Experiments of other kinds than sweeps of PU methods, judged like them: ensembles, and guided training."""

from jaxpu.study.ensembles import run
from jaxpu.study.guided import run_guided
from jaxpu.study.parts import Outcome, finished, read
from jaxpu.study.sources import SOURCES

__all__ = ["SOURCES", "Outcome", "finished", "read", "run", "run_guided"]
