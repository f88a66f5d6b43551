"""What a mixed pair is worth to a student, judged by a teacher, and training on the pairs that a filter keeps."""

from jaxpu.valuation.guided import Student, fit, guided
from jaxpu.valuation.risk import FILTERS, keep, mixed_cross_entropy, relative_risk

__all__ = ["FILTERS", "Student", "fit", "guided", "keep", "mixed_cross_entropy", "relative_risk"]
