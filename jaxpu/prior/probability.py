"""From scores to probabilities: Bayes' rule with the class prior, and calibration by isotonic regression.

With z = log f_P / f_U, two probabilities can be asked for: that an unlabeled row is positive, p_U = min(1, π_U e^z),
and, in a single set, that any row is, whether labeled or not: min(1, g / c).
"""

from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from jaxpu.errors import unknown
from jaxpu.prior.candidates import Folds
from jaxpu.prior.scenario import population
from jaxpu.prior.tails import Labeled, Scores, Weights, checked

Of = Literal["unlabeled", "population"]
OF = ("unlabeled", "population")
MOST = 1 - 1e-4
"""The largest balanced probability, so that a ratio is at most 9,999."""


def probability(
    z: Scores, prior: float | int, *, of: Of = "unlabeled", n_labeled: float | int = 0, n_unlabeled: float | int = 0
) -> Float[np.ndarray, " n"]:
    """P(y = 1 | x) from log density ratios.

    of "unlabeled": min(1, π_U e^z), which is min(1, π_U (n_U / n_P) o) with o = g / (1 − g) and g = P(s = 1 | x).
    of "population": min(1, g / c) in a single set; it needs n_P and n_U.

    Args:
        z: log f_P / f_U (n,). prior: π_U. of: of which rows.

    Raises:
        ValueError: π_U is not in [0, 1]; an unknown name; or no n_P and n_U where they are needed.

    Source: Elkan and Noto, Learning Classifiers from Only Positive and Unlabeled Data, KDD 2008.

    Example: 100 positives that look alike, 20 of them labeled: of the 80 others each is positive, too.
        >>> z = np.log(np.array([480 / 80, 1e-9]))
        >>> probability(z, 80 / 480).round(6).tolist()
        [1.0, 0.0]
        >>> probability(z, 80 / 480, of="population", n_labeled=20, n_unlabeled=480).round(6).tolist()
        [1.0, 0.0]
    """
    if of not in OF:
        raise ValueError(unknown("kind of probability", of, OF))
    if not 0 <= prior <= 1:
        raise ValueError(f"prior is {prior}, expected a share in [0, 1]")
    if of == "unlabeled":
        return np.minimum(1, prior * np.exp(np.minimum(z, 700)))
    if n_labeled <= 0 or n_unlabeled <= 0:
        raise ValueError("the probability in the population needs n_labeled and n_unlabeled")
    c = population(prior, n_labeled, n_unlabeled).label_frequency
    return np.minimum(1, expit(z + np.log(n_labeled / n_unlabeled)) / c)


class Calibration:
    """Isotonic regression of the label on the score, P and U each of total weight 1.

    g' is the balanced probability of P, and log(g' / (1 − g')) the calibrated log density ratio. It must be fitted on
    scores of rows that the classifier was not fitted on, and used on rows that it was not fitted on itself; see
    :func:`cross_calibrated`.

    Example:
        >>> z = np.repeat([1.0, 0.0], [200, 100])
        >>> calibration = Calibration().fit(z, np.arange(300) < 100)
        >>> np.exp(calibration(np.array([1.0]))).round(6).tolist()  # all of P and half of U score 1
        [2.0]
    """

    def __init__(self, isotonic: Any = None):
        self.isotonic = isotonic

    def fit(self, z: Scores, labeled: Labeled, weight: Weights | None = None) -> "Calibration":
        """Fit on scores (n,) of P and U."""
        weight = checked(z, labeled, weight)
        balanced = np.where(labeled, weight / weight[labeled].sum(), weight / weight[~labeled].sum())
        self.isotonic = IsotonicRegression(y_min=0.0, y_max=MOST, out_of_bounds="clip")
        self.isotonic.fit(z, labeled.astype(float), sample_weight=balanced)
        return self

    def __call__(self, z: Scores) -> Scores:
        """Calibrated log f_P / f_U (n,) of scores; −∞ where no row of P scores as low."""
        g = self.isotonic.predict(z)
        with np.errstate(divide="ignore"):
            return np.log(g / (1 - g))


def cross_calibrated(z: Scores, labeled: Labeled, fold: Folds, weight: Weights | None = None) -> Scores:
    """Calibrated log density ratios of training rows, each by a calibration that was fitted on the other folds.

    Args:
        z: cross-fitted scores (n,). labeled, fold, weight: as in :func:`jaxpu.prior.cross_fit`.

    Example:
        >>> z = np.repeat([1.0, 0.0], [200, 100])
        >>> found = cross_calibrated(z, np.arange(300) < 100, np.arange(300) % 2)
        >>> np.exp(found[:1]).round(6).tolist()
        [2.0]
    """
    weight = np.ones(len(z)) if weight is None else weight
    found = np.empty(len(z))
    for k in np.unique(fold):
        rest = fold != k
        found[~rest] = Calibration().fit(z[rest], labeled[rest], weight[rest])(z[~rest])
    return found
