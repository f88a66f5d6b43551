"""From true labels to a positive-unlabelled training set: which positives are labelled, and which rows are U.

Positives are labelled completely at random (SCAR) or depending on the features (SAR). The labelled set is a pure
function of the labels, the key, c, the mechanism and its score, and of nothing else: every method and every
scenario of a seed shares it, so differences between them are paired. With one key, a larger c adds labelled rows to
those of a smaller c. Rows are row numbers into the labels given; how many come out does not depend on the key, which
can serve a seed's split and its labelling: they draw from independent streams.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num

from jaxpu.data.keys import Key, Rows, choose, floor_of, generator
from jaxpu.data.labels import Labels, Unchecked, is_positive
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
    """Choose which positives are labelled: n_L = max(1, ⌊c n_P⌋) of the n_P, without replacement.

    Weighted draws are the n_L largest of log w + Gumbel noise, which is sampling without replacement with
    probabilities proportional to w (Efraimidis and Spirakis 2006), stable however small the weights.

    Args:
        labels: True labels (n,).
        key: Source of randomness.
        c: Label frequency, in (0, 1].
        mechanism: A key of `MECHANISMS`: "scar" or one of the SAR mechanisms.
        score: q (n,) in [0, 1] from `propensity_score`; needed by the SAR mechanisms, ignored by "scar".

    Returns:
        Rows of the labelled positives, ascending.

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
    rank = choose(MECHANISMS, mechanism, "mechanism")
    q = np.ones(len(labels)) if mechanism == "scar" else _checked_score(score, len(labels), mechanism)
    noise = generator(key, "label").gumbel(size=len(positives))
    n_labeled = max(1, floor_of(c, len(positives)))
    first = np.argsort(-rank(q[positives], noise), kind="stable")[:n_labeled]
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
"""Labelling mechanisms: (score q, Gumbel noise) of the n_P positives -> a rank; the largest are labelled."""


def _checked_score(score: np.ndarray | None, n: int, mechanism: str) -> Float[np.ndarray, " n"]:
    if score is None:
        raise ValueError(f"mechanism {mechanism!r} needs score=propensity_score(x, y)")
    if score.shape != (n,):
        raise ValueError(f"expected one score a label, shape ({n},), got {score.shape}")
    if not ((score >= 0) & (score <= 1)).all():
        raise ValueError(f"expected scores in [0, 1], got {score.min()} to {score.max()}")
    return score
