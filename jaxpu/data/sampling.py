"""From true labels to a positive-unlabeled training set: which positives are labeled, and which rows are U.

Positives are labeled completely at random (SCAR) or depending on the features (SAR). The labeled set is a pure
function of the labels, the key, c, the mechanism and its score, and of nothing else: every method and every
scenario of a seed shares it, so differences between them are paired. With one key, a larger c adds labeled rows to
those of a smaller c. Rows are row numbers into the labels given; how many come out does not depend on the key, which
can serve a seed's split and its labeling: they draw from independent streams.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num

from jaxpu.data.labels import Labels, Unchecked, is_positive
from jaxpu.data.shifts import mislabeled
from jaxpu.data.splitting import Key, Rows, Split, floor_of, generator, long_tail, split, standardization
from jaxpu.errors import unknown

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


SCENARIOS = ("case_control", "single_set", "single_set_overlap")
"""What U is. ``case_control``: P and U are two samples, U of all negatives and n_P positives, labeled ones taken again
to reach n_P. ``single_set``: one sample that the labeled rows leave: π falls from n_P / n to (n_P - n_L) / (n - n_L).
``single_set_overlap``: one sample in which they stay. In the first and the last U is all rows: they differ in what
they stand for, not in their rows."""


class PUSample(NamedTuple):
    """A positive-unlabeled training set.

    Attributes:
        labeled: Rows of P, all positive where there is no noise, ascending.
        unlabeled: Rows of U, ascending; they may include labeled rows (see `SCENARIOS`).
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
    noise: float = 0.0,
) -> PUSample:
    """Turn labeled rows into a positive-unlabeled training set, and say which π of U that implies.

    Args:
        labels: True labels (n,) of the training part.
        key: Source of randomness; the labeled set is that of `label_positives`, whatever the scenario.
        scenario: One of `SCENARIOS`.
        c: Label frequency, in (0, 1].
        mechanism: A key of `MECHANISMS`.
        score: q (n,) for the SAR mechanisms.
        noise: share of P that is negative, see :func:`jaxpu.data.shifts.mislabeled`.

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
    if scenario not in SCENARIOS:
        raise ValueError(unknown("scenario", scenario, SCENARIOS))
    labeled = label_positives(labels, key, c=c, mechanism=mechanism, score=score)
    if noise:
        labeled = mislabeled(labels, labeled, key, noise)
    every = np.arange(len(labels))
    unlabeled = np.delete(every, labeled) if scenario == "single_set" else every
    if len(unlabeled) == 0:
        raise ValueError("every row is labeled, so no unlabeled row is left; lower c or add negatives")
    n_positive = int(np.count_nonzero(labels[unlabeled]))
    return PUSample(
        labeled=labeled,
        unlabeled=unlabeled,
        prior=n_positive / len(unlabeled),
        prior_all=(n_positive + int(np.count_nonzero(labels[labeled]))) / (len(unlabeled) + len(labeled)),
    )


def propensity_score(
    x: Num[np.ndarray, "n *features"], y: Unchecked, fitted_on: Rows | None = None
) -> Float[np.ndarray, " n"]:
    """Score rows by how clearly positive they are: the q of the SAR mechanisms.

    q = P(y = 1 | x) of a logistic regression (L2, C = 1) on true labels and standardised, flattened features.

    Args:
        x: Features.
        y: Their true labels.
        fitted_on: Rows that the regression and the standardisation see, those of the training part: labels of test
            rows are nobody's to use. None = all.

    Returns:
        q (n,) in [0, 1] of all rows, float64; it depends on nothing random.

    Raises:
        ValueError: If the labels are not 0/1 of shape (n,) with n rows of x, or the rows seen hold one class only.

    Example:
        >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
        >>> propensity_score(x, np.array([0, 0, 1, 1])).round(2)
        array([0.22, 0.35, 0.65, 0.78])
    """
    from sklearn.linear_model import LogisticRegression  # takes a second to import

    positive = is_positive(y)
    if len(x) != len(positive):
        raise ValueError(f"expected one label a row, got {len(x)} rows of x and {len(positive)} labels")
    rows = np.arange(len(x)) if fitted_on is None else fitted_on
    if positive[rows].all() or not positive[rows].any():
        raise ValueError("a propensity score needs rows of both classes, got one class only")
    mean, sd = standardization(x, rows)
    features = ((x - mean) / sd).reshape(len(x), -1).astype(np.float64)
    return LogisticRegression(max_iter=1000).fit(features[rows], positive[rows]).predict_proba(features)[:, 1]


def label_positives(
    labels: Unchecked,
    key: Key,
    *,
    c: float,
    mechanism: str = "scar",
    score: Unchecked | None = None,
) -> Rows:
    """Choose which positives are labeled: n_L = max(1, ⌊c n_P⌋) of the n_P, without replacement.

    Weighted draws are the n_L largest of log w + Gumbel noise, which is sampling without replacement with
    probabilities proportional to w (Efraimidis and Spirakis 2006), stable however small the weights.

    Args:
        labels: True labels (n,).
        key: Source of randomness.
        c: Label frequency, in (0, 1].
        mechanism: A key of `MECHANISMS`: "scar" or one of the SAR mechanisms.
        score: q (n,) in [0, 1] from `propensity_score`; needed by the SAR mechanisms, ignored by "scar".

    Returns:
        Rows of the labeled positives, ascending.

    Raises:
        ValueError: If there is no positive, c is out of range, or the mechanism is unknown or has no score.

    Example:
        >>> q = np.array([0.1, 0.9, 0.8, 0.3, 0.7])
        >>> label_positives(np.array([1, 0, 1, 1, 1]), 0, c=0.5, mechanism="sar_pusb", score=q)
        array([2, 4])
    """
    positives = np.flatnonzero(is_positive(labels))
    if len(positives) == 0:
        raise ValueError("there is no positive row to label")
    if not 0 < c <= 1:
        raise ValueError(f"expected a label frequency c in (0, 1], got {c}")
    if mechanism not in MECHANISMS:
        raise ValueError(unknown("mechanism", mechanism, MECHANISMS))
    q = np.ones(len(labels)) if mechanism == "scar" else _checked_score(score, len(labels), mechanism)
    noise = generator(key, "label").gumbel(size=len(positives))
    n_labeled = max(1, floor_of(c, len(positives)))
    first = np.argsort(-MECHANISMS[mechanism](q[positives], noise), kind="stable")[:n_labeled]
    return np.sort(positives[first])


def scar(q: Float[np.ndarray, " p"], noise: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """Selected completely at random: every positive alike."""
    del q
    return noise


def sar_lbe_a(q: Float[np.ndarray, " p"], noise: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """LBE-A, clear positives first: w = 0.9 q¹⁰ / Σ q¹⁰ + 0.1 / n_P."""
    log_power = 10 * np.log(np.maximum(q, np.finfo(float).tiny))
    log_share = log_power - np.logaddexp.reduce(log_power)
    return np.logaddexp(np.log(0.9) + log_share, np.log(0.1 / len(q))) + noise


def sar_lbe_b(q: Float[np.ndarray, " p"], noise: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """LBE-B, doubtful positives first: w = (2.5 - q)¹⁰."""
    return 10 * np.log(2.5 - q) + noise


def sar_pusb(q: Float[np.ndarray, " p"], noise: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """PUSB, the clearest positives only: the top of q²⁰, which is the top of q; ties by row number."""
    del noise
    return q


MECHANISMS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "scar": scar,
    "sar_lbe_a": sar_lbe_a,
    "sar_lbe_b": sar_lbe_b,
    "sar_pusb": sar_pusb,
}
"""Labeling mechanisms: (score q, Gumbel noise) of the n_P positives -> a rank; the largest are labeled."""


def _checked_score(score: np.ndarray | None, n: int, mechanism: str) -> Float[np.ndarray, " n"]:
    if score is None:
        raise ValueError(f"mechanism {mechanism!r} needs score=propensity_score(x, y)")
    if score.shape != (n,):
        raise ValueError(f"expected one score a label, shape ({n},), got {score.shape}")
    if not ((score >= 0) & (score <= 1)).all():
        raise ValueError(f"expected scores in [0, 1], got {score.min()} to {score.max()}")
    return score
