"""What is known of the share of positives among the unlabeled rows, and how it is said."""

import math
from typing import NamedTuple

from jaxpu.prior.candidates import CrossFit
from jaxpu.prior.interval import FEWEST, at_most, lower_end, upper_end
from jaxpu.prior.tails import Labeled, Weights, sizes


class Share(NamedTuple):
    """π_U with an interval.

    Attributes:
        value: π_U. low, high: its interval, (0, ``at_most``) where few rows are labeled, and NaN if it was not asked.
        at_most: an upper bound that assumes only that P is a random sample of the positives; NaN if not asked.
        n_labeled, n_unlabeled: rows. level: of the interval. given: whether the value was told and not estimated.
    """

    value: float
    low: float
    high: float
    at_most: float
    n_labeled: float
    n_unlabeled: float
    level: float = 0.95
    given: bool = False

    @property
    def few(self) -> bool:
        """Whether so few rows are labeled that only an upper bound is shown."""
        return self.n_labeled < FEWEST

    def statement(self) -> str:
        """What can be said of the share of positives, in sentences that say what they assume.

        >>> Share(0.2, 0.1, 0.3, 0.4, 50, 100).statement()[:57]
        'At most 40 % of the unlabeled rows are positive (95 %; as'
        >>> "estimate, 20 %" in Share(0.2, 0.1, 0.3, 0.4, 50, 100).statement()
        True
        >>> "20 %" in Share(0.2, 0.0, 0.4, 0.4, 19, 100).statement()
        False
        """
        bound = "" if math.isnan(self.at_most) else (
            f"At most {100 * self.at_most:.0f} % of the unlabeled rows are positive ({100 * self.level:g} %; "
            "assumes that the labeled positives are a random sample of all positives). "
        )  # fmt: skip
        if self.given:
            return f"{bound}The share {100 * self.value:.3g} % was given, not estimated."
        if self.few:
            return (
                f"{bound}Warning: fewer than {FEWEST} rows are labeled. An interval would miss the truth too often, so "
                "that neither it nor an estimate is shown, and whatever rests on the share of positives is rough."
            )
        between = f" ({100 * self.low:.0f} to {100 * self.high:.0f} %)" if math.isfinite(self.low) else ""
        return (
            f"{bound}The estimate, {100 * self.value:.0f} %{between}, is the largest share compatible with the data. "
            "It is the true share only if some kind of positive is never found among the negatives; otherwise the "
            f"truth is lower. The lower end assumes this, too."
        )


def share_of(
    value: float,
    found: CrossFit,
    labeled: Labeled,
    weight: Weights | None = None,
    *,
    level: float = 0.95,
    given: bool = False,
) -> Share:
    """A share with the interval that cross-fitted scores give; below 20 labeled rows with an upper bound only.

    Args:
        value: π_U, estimated or told. found: of P against U, on which the interval rests. labeled: where a row is of P.
        weight: how often each row counts. level: of the interval. given: whether the value was told.
    """
    n_labeled, n_unlabeled = sizes(labeled, weight)
    most = at_most(found.z, labeled, weight, level)
    low, high = 0.0, most
    if n_labeled >= FEWEST:
        low = min(value, lower_end(found.scores.values(), labeled, weight, level))
        high = max(value, upper_end(found.z, labeled, found.fold, weight, level))
    return Share(value, low, high, most, n_labeled, n_unlabeled, level, given)
