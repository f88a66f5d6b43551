"""From the share of positives in U to that of the population and the label frequency, and back.

Every estimator of this room returns π_U, the share of positives among the unlabeled rows. What it means for the
population depends on where P came from: labeled rows that left one sample (single set), or a sample of their own
beside U (case-control), where U is the population.
"""

from typing import Literal, NamedTuple

from jaxpu.errors import unknown

Scenario = Literal["single_set", "case_control"]
SCENARIOS = ("single_set", "case_control")


class Population(NamedTuple):
    """What π_U means.

    Attributes:
        alpha: α, the share of positives in the population.
        label_frequency: c, the share of the positives that are labeled; NaN in case-control, where none was asked.
    """

    alpha: float
    label_frequency: float


def population(
    prior: float, n_labeled: float | int, n_unlabeled: float | int, scenario: Scenario = "single_set"
) -> Population:
    """α and c from π_U.

    Single set: α = (n_P + π_U n_U) / (n_P + n_U), c = n_P / (n_P + π_U n_U). Case-control: α = π_U.

    Raises:
        ValueError: π_U is not in [0, 1], or there is no such scenario.

    Example: 100 positives among 500 rows, 20 of them labeled.
        >>> population(80 / 480, 20, 480)
        Population(alpha=0.2, label_frequency=0.2)
        >>> population(0.2, 20, 500, "case_control").alpha
        0.2
    """
    _check(prior, scenario)
    if scenario == "case_control":
        return Population(prior, float("nan"))
    positives = n_labeled + prior * n_unlabeled
    return Population(positives / (n_labeled + n_unlabeled), n_labeled / positives)


def prior_of(
    alpha: float, n_labeled: float | int, n_unlabeled: float | int, scenario: Scenario = "single_set"
) -> float:
    """π_U from α: the inverse of :func:`population`.

    Single set: π_U = (α (n_P + n_U) − n_P) / n_U, which is α (1 − c) / (1 − α c).

    Raises:
        ValueError: α is not in [0, 1], or so small that there are fewer positives than labeled rows.

    Example:
        >>> round(prior_of(0.2, 20, 480), 6), round(0.2 * (1 - 0.2) / (1 - 0.2 * 0.2), 6)
        (0.166667, 0.166667)
    """
    _check(alpha, scenario, "alpha")
    if scenario == "case_control":
        return alpha
    hidden = alpha * (n_labeled + n_unlabeled) - n_labeled
    if hidden < 0:
        least = n_labeled / (n_labeled + n_unlabeled)
        raise ValueError(f"alpha is {alpha:g}, but a share of {least:g} of the rows is labeled positive; raise alpha")
    return hidden / n_unlabeled


def prior_of_frequency(c: float, n_labeled: float | int, n_unlabeled: float | int) -> float:
    """π_U from the label frequency: n_P (1 − c) / (c n_U), at most 1.

    Example:
        >>> round(prior_of_frequency(0.2, 20, 480), 6)
        0.166667
    """
    return min(1.0, n_labeled * (1 - c) / (c * n_unlabeled)) if c > 0 else 1.0


def _check(share: float | int, scenario: str, name: str = "prior") -> None:
    if scenario not in SCENARIOS:
        raise ValueError(unknown("scenario", scenario, SCENARIOS))
    if not 0 <= share <= 1:
        raise ValueError(f"{name} is {share}, expected a share in [0, 1]")
