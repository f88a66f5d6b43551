"""What a mixed pair is worth to a student, judged by a teacher, and training on the pairs that a filter keeps."""

from jaxpu.valuation.guided import Guide, update
from jaxpu.valuation.risk import FILTERS, keep, mixed_cross_entropy, relative_risk

__all__ = ["FILTERS", "Guide", "keep", "mixed_cross_entropy", "relative_risk", "update"]
