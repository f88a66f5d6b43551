"""The bootstrap of an estimate that fits anew: frequencies instead of copies, so that no copy is scored by its twin."""

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float

from jaxpu.prior.tails import Labeled, Weights

Resampled = tuple[np.ndarray, np.ndarray]
"""Row numbers that were drawn at least once, and how often each was."""


def resampled(labeled: Labeled, weight: Weights | None, random_state: np.random.Generator) -> Resampled:
    """Draw as many rows of P, and of U, as there are, with replacement.

    A row that is drawn twice is one row of frequency 2. Copies would be dealt to different folds, a classifier would be
    fitted on the row that it scores, and the estimate would be far too low.

    Args:
        labeled: where a row is of P. weight: how often each row counts; None = once.

    Example:
        >>> rows, weight = resampled(np.arange(100) < 20, None, np.random.default_rng(0))
        >>> float(weight[rows < 20].sum()), float(weight.sum()), len(rows) < 80
        (20.0, 100.0, True)
    """
    weight = np.ones(len(labeled)) if weight is None else weight
    drawn = np.zeros(len(labeled))
    for of in (labeled, ~labeled):
        w = weight[of]
        drawn[of] = random_state.multinomial(round(w.sum()), w / w.sum())
    rows = np.flatnonzero(drawn)
    return rows, drawn[rows]


def estimates(
    estimate: Callable[[np.ndarray, Weights], float],
    labeled: Labeled,
    weight: Weights | None = None,
    *,
    times: int = 50,
    random_state: int | np.random.Generator = 0,
) -> Float[np.ndarray, " times"]:
    """The estimate on resampled rows.

    Args:
        estimate: of row numbers and their frequencies. labeled, weight: as in :func:`resampled`. times: how often.

    Example:
        >>> labeled = np.arange(100) < 50
        >>> found = estimates(lambda rows, w: float(w[rows < 10].sum() / 50), labeled, times=200)
        >>> round(float(found.mean()), 1)
        0.2
    """
    return np.array([estimate(rows, w) for rows, w in _draws(labeled, weight, times, random_state)])


def _draws(
    labeled: Labeled, weight: Weights | None, times: int, random_state: int | np.random.Generator
) -> Iterator[Resampled]:
    rng = np.random.default_rng(random_state)
    made = 0
    while made < times:
        rows, w = resampled(labeled, weight, rng)
        if min(labeled[rows].sum(), (~labeled[rows]).sum()) >= 2:  # else there is nothing to hold out
            made += 1
            yield rows, w


def percentiles(found: Float[np.ndarray, " times"], level: float = 0.95) -> tuple[float, float]:
    """The interval of an estimate from its bootstrap.

    Example:
        >>> [round(end) for end in percentiles(np.arange(101.0), 0.9)]
        [5, 95]
    """
    low, high = np.quantile(found, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)
