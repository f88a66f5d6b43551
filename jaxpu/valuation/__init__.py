"""What training data are worth to a network, judged by one that knows its failures; training on what a filter keeps.

r̂ of rows and of mixed pairs (``risk``), what it says of classes, λ and parents (``pairs``), other scores of rows
(``scores``), filters (``filters``), and guided training (``guided``).
"""

from jaxpu.valuation.filters import FILTERS, chosen, keep
from jaxpu.valuation.guided import Choices, Guide, update
from jaxpu.valuation.pairs import Conflict, Credit, by_lambda, conflict, credit, extremes, rank_correlation
from jaxpu.valuation.risk import (
    example_risk,
    failures,
    log_likelihood,
    mixed_cross_entropy,
    positive_unlabeled_risk,
    relative_risk,
    removal_gain,
)
from jaxpu.valuation.scores import el2n, grand
from jaxpu.valuation.suspects import suspects

__all__ = [
    "FILTERS",
    "Choices",
    "Conflict",
    "Credit",
    "Guide",
    "by_lambda",
    "chosen",
    "conflict",
    "credit",
    "el2n",
    "example_risk",
    "extremes",
    "failures",
    "grand",
    "keep",
    "log_likelihood",
    "mixed_cross_entropy",
    "positive_unlabeled_risk",
    "rank_correlation",
    "relative_risk",
    "removal_gain",
    "suspects",
    "update",
]
