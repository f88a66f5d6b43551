"""Methods by name: a risk of :mod:`jaxpu.losses` or of your own, a mixup penalty, and a decision. Reading needs no jax.

>>> from jaxpu.methods import METHODS, Method
>>> METHODS["vpudra_softlabel"].penalty
'point_process'

A function of your own is a risk like any other: ``Method(my_risk)``, in YAML ``{risk: my_package.my_module:my_risk}``.
Its keyword options with a number as default are traced and can be swept (:mod:`jaxpu.methods.risks` says more). What of
a method stands in the compiled program, and what goes in as numbers, is in :mod:`jaxpu.methods.objective`.
"""

from jaxpu.methods.check import (
    asks_for,
    checked,
    decision_offset,
    in_one_form,
    known_options,
    memory_of,
    risk_identity,
    skips_without_positives,
)
from jaxpu.methods.method import DECISIONS, PENALTIES, Memory, Method, Schedule, Stage
from jaxpu.methods.presets import METHODS, as_entry, describe, named_method
from jaxpu.methods.risks import CONTEXT, RISKS, Options, Risk, label, options_of, resolve

__all__ = [
    "CONTEXT",
    "DECISIONS",
    "METHODS",
    "PENALTIES",
    "RISKS",
    "Memory",
    "Method",
    "Options",
    "Risk",
    "Schedule",
    "Stage",
    "as_entry",
    "asks_for",
    "checked",
    "decision_offset",
    "describe",
    "in_one_form",
    "known_options",
    "label",
    "memory_of",
    "named_method",
    "options_of",
    "resolve",
    "risk_identity",
    "skips_without_positives",
]
