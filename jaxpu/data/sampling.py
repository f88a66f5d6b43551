"""From true labels to a positive-unlabelled training set.

A pure function of (labels, key, scenario, c, mechanism). Rows are row numbers into the labels given. One
key can serve a seed's split and its labelling, which draw from independent streams; how many rows come out
does not depend on the key.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jaxpu.data.labelling import MECHANISMS, label_positives, propensity_score
from jaxpu.data.rows import Key, Labels, Rows, choose
from jaxpu.data.splitting import Split, long_tail, split, standardization

__all__ = [
    "MECHANISMS",
    "SCENARIOS",
    "Key",
    "PUSample",
    "Split",
    "label_positives",
    "long_tail",
    "propensity_score",
    "pu_sample",
    "split",
    "standardization",
]


class PUSample(NamedTuple):
    """A positive-unlabelled training set.

    Attributes:
        labeled: Rows of P, all positive, ascending.
        unlabeled: Rows of U, ascending; they may include labelled rows (see `SCENARIOS`).
        prior: Share π of positives in U: the class prior that the losses mean.
        prior_all: Share of positives in P and U taken together, which some public code passes for π.
    """

    labeled: Rows
    unlabeled: Rows
    prior: float
    prior_all: float


def pu_sample(
    labels: Labels,
    key: Key,
    *,
    scenario: str = "case_control",
    c: float,
    mechanism: str = "scar",
    score: Float[np.ndarray, " n"] | None = None,
) -> PUSample:
    """Turn labelled rows into a positive-unlabelled training set, and say which π of U that implies.

    Args:
        labels: True labels (n,) of the training part.
        key: Source of randomness; the labelled set is that of `label_positives`, whatever the scenario.
        scenario: A key of `SCENARIOS`.
        c: Label frequency, in (0, 1].
        mechanism: A key of `MECHANISMS`.
        score: q (n,) for the SAR mechanisms.

    Returns:
        Rows of P and U, the share of positives in U, and that in P and U together.

    Raises:
        ValueError: As `label_positives`; if the scenario is unknown; if U would be empty.

    Example:
        >>> labels = np.arange(500) < 100
        >>> for name in SCENARIOS:
        ...     sample = pu_sample(labels, 0, scenario=name, c=0.2)
        ...     print(name, len(sample.labeled), len(sample.unlabeled), round(sample.prior, 4))
        case_control 20 500 0.2
        single_set 20 480 0.1667
        single_set_overlap 20 500 0.2
    """
    unlabeled_rows = choose(SCENARIOS, scenario, "scenario")
    labeled = label_positives(labels, key, c=c, mechanism=mechanism, score=score)
    unlabeled = unlabeled_rows(len(labels), labeled)
    if len(unlabeled) == 0:
        raise ValueError("every row is labelled, so no unlabelled row is left; lower c or add negatives")
    n_positive = int(np.count_nonzero(labels[unlabeled]))
    return PUSample(
        labeled=labeled,
        unlabeled=unlabeled,
        prior=n_positive / len(unlabeled),
        prior_all=(n_positive + len(labeled)) / (len(unlabeled) + len(labeled)),
    )


def case_control(n: int, labeled: Rows) -> Rows:
    """P and U as two samples: U has all negatives and n_P positives, taking labelled ones again to reach n_P.

    There are n_P positives in all, so U is all rows, as in `single_set_overlap`: the two differ in what they
    stand for, not in their rows.
    """
    del labeled
    return np.arange(n)


def single_set(n: int, labeled: Rows) -> Rows:
    """One sample, and the labelled rows leave U: π falls from n_P / n to (n_P - n_L) / (n - n_L)."""
    return np.delete(np.arange(n), labeled)


def single_set_overlap(n: int, labeled: Rows) -> Rows:
    """One sample, and the labelled rows stay in U: U is all rows, π = n_P / n."""
    del labeled
    return np.arange(n)


SCENARIOS: dict[str, Callable[[int, Rows], Rows]] = {
    "case_control": case_control,
    "single_set": single_set,
    "single_set_overlap": single_set_overlap,
}
"""Scenarios: (number of rows, labelled rows) -> rows of U, ascending."""
