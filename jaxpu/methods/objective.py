"""From methods to a loss: risk + weight · penalty(μ, p(x_mix)), with all numbers traced.

A program serves a group of methods of one structure (:func:`structure_of`). Static is its :class:`Objective`: the
risks, each with its choices, and the penalties that the group uses, no more. Traced is :class:`Hyper`: which of them a
run takes, and its numbers, by way of ``lax.switch``; where there is one risk, there is no switch.
"""

from jaxpu.methods.branches import Branch, Objective, branches_of, objective_of, structure_of, try_out
from jaxpu.methods.hyper import Hyper, Moving, at, hyper_of, progress
from jaxpu.methods.terms import Terms, base_risk, penalty, updated_memory

__all__ = [
    "Branch",
    "Hyper",
    "Moving",
    "Objective",
    "Terms",
    "at",
    "base_risk",
    "branches_of",
    "hyper_of",
    "objective_of",
    "penalty",
    "progress",
    "structure_of",
    "try_out",
    "updated_memory",
]
