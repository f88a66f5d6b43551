"""From a method's numbers to a loss: base risk + weight · penalty(μ, p(x_mix)), all choices traced.

Which risk, surrogate and penalty is used are integers in :class:`Hyper`, resolved by ``lax.switch``: inside a
loop only the chosen branch runs, and methods that share shapes share one compiled program.
"""

from jaxpu.objective.hyper import RISKS, Hyper, hyper_of, log_ends
from jaxpu.objective.terms import Terms, base_risk, margin_loss, penalty

__all__ = ["RISKS", "Hyper", "Terms", "base_risk", "hyper_of", "log_ends", "margin_loss", "penalty"]
