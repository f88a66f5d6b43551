"""Training samples that are not as the data are: another share of positives, and labels that are wrong."""

import numpy as np

from jaxpu.data.labels import Labels
from jaxpu.data.splitting import Key, Rows, floor_of, generator


def resampled(labels: Labels, rows: Rows, key: Key, prior: float) -> Rows:
    """Rows of which a share is positive: all of the class that is too rare, and of the other a random part.

    With n₁ positives and n₀ negatives among the rows and π above n₁ / (n₁ + n₀), all positives stay and
    ⌊n₁ (1 - π) / π⌋ negatives; else all negatives and ⌊n₀ π / (1 - π)⌋ positives. Of one key, fewer are always some of
    more.

    Args:
        labels: true labels (n,) of all rows. rows: row numbers to choose from. key: source of randomness.
        prior: the share π that is wanted, in (0, 1).

    Returns:
        The rows that stay, ascending.

    Raises:
        ValueError: π is out of range, or a class would have no row left.

    >>> labels = np.arange(100) < 40
    >>> for prior in (0.2, 0.4, 0.8):
    ...     kept = resampled(labels, np.arange(100), 0, prior)
    ...     print(len(kept), int(labels[kept].sum()))
    75 15
    100 40
    50 40
    """
    if not 0 < prior < 1:
        raise ValueError(f"expected a share of positives in (0, 1), got {prior}")
    positive = labels[rows].astype(bool)
    n_positive = int(positive.sum())
    n_negative = len(rows) - n_positive
    most = min(n_positive, floor_of(prior / (1 - prior), n_negative))
    kept = {True: most, False: min(n_negative, floor_of((1 - prior) / prior, n_positive))}
    if not all(kept.values()):
        raise ValueError(f"{n_positive} positive and {n_negative} negative rows cannot have a share of {prior}")
    order = generator(key, "resample").permutation(len(rows))
    places = [order[positive[order] == one][:n] for one, n in kept.items()]
    return np.sort(rows[np.concatenate(places)])


def mislabeled(labels: Labels, labeled: Rows, key: Key, noise: float) -> Rows:
    """Labeled rows of which some are negative: ⌊noise n_L⌋ positives lose their label to as many random negatives.

    Args:
        labels: true labels (n,). labeled: rows that are labeled, all positive. key: source of randomness.
        noise: the share of P that is negative, in [0, 1).

    Returns:
        As many rows, ascending. Of one key, those that lose their label to less noise lose it to more.

    Raises:
        ValueError: noise is out of range, or there are not so many negatives.

    >>> labels = np.arange(20) < 10
    >>> rows = mislabeled(labels, np.arange(10), 0, 0.3)
    >>> len(rows), int(labels[rows].sum())
    (10, 7)
    """
    if not 0 <= noise < 1:
        raise ValueError(f"expected a share of wrong labels in [0, 1), got {noise}")
    negatives, wrong = np.flatnonzero(~labels.astype(bool)), floor_of(noise, len(labeled))
    if wrong > len(negatives):
        raise ValueError(f"{wrong} labels are to be wrong, and there are {len(negatives)} negative rows")
    rng = generator(key, "noise")
    lose, win = rng.permutation(labeled)[:wrong], rng.permutation(negatives)[:wrong]
    return np.sort(np.concatenate([np.setdiff1d(labeled, lose), win]))
