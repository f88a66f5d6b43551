"""DEDPUL: densities of the scores, their ratio, and the share of U that it explains."""

import numpy as np
from jaxtyping import Float
from scipy.ndimage import median_filter
from scipy.stats import gaussian_kde
from sklearn.isotonic import IsotonicRegression

from jaxpu.prior.tails import Labeled, Scores, Weights, checked

GRID, STEPS = 512, 1000
SMOOTH = 20
LAG, MOST_GAP = 50, 0.05
COLLAPSED = 1e-3


def dedpul(z: Scores, labeled: Labeled, weight: Weights | None = None) -> float:
    """Difference of estimated densities: the fixed point of α = mean over U of min(1, α f_P / f_U).

    Densities of z are Gaussian kernel estimates; their ratio is smoothed by a running median and made isotonic.
    Starting at α = 1, EM converges to the largest α that the ratio explains. With a noisy ratio it collapses to 0:
    then α is where the gap D(α) = α − mean min(1, α f_P / f_U) bends most.

    Args:
        z: scores (n,), whose values matter: log odds. labeled: where a row is of P. weight: how often each row counts.

    Source: Ivanov, DEDPUL: Difference-of-Estimated-Densities-based Positive-Unlabeled Learning, ICMLA 2020; smoothed
    and made monotone more simply than there.

    Example:
        >>> z = np.random.default_rng(0).normal(np.repeat([3.0, 3.0, -3.0], 400))
        >>> abs(dedpul(z, np.arange(1200) < 400) - 0.5) < 0.05
        True
    """
    weight = checked(z, labeled, weight)
    at, ratio = density_ratio(z, labeled, weight)
    of_u = np.interp(z[~labeled], at, ratio)
    w = weight[~labeled] / weight[~labeled].sum()
    alpha = 1.0
    for _ in range(STEPS):
        after = float(w @ np.minimum(1, alpha * of_u))
        if abs(after - alpha) < 1e-6:
            break
        alpha = after
    return alpha if alpha > COLLAPSED else bend(of_u, w)


def density_ratio(
    z: Scores, labeled: Labeled, weight: Weights
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """f_P / f_U at points between the least and the largest score of U."""
    if np.ptp(z[labeled]) == 0 or np.ptp(z[~labeled]) == 0:
        raise ValueError("the scores of P or of U are all equal, and have no density; take bbe, which needs none")
    at = np.linspace(z[~labeled].min(), z[~labeled].max(), GRID)
    f_p, f_u = (gaussian_kde(z[of], weights=weight[of])(at) for of in (labeled, ~labeled))
    ratio = median_filter(f_p / np.maximum(f_u, 1e-12), GRID // SMOOTH, mode="nearest")
    return at, IsotonicRegression().fit(at, ratio, sample_weight=np.maximum(f_u, 1e-12)).predict(at)


def bend(ratio: Float[np.ndarray, " m"], weight: Float[np.ndarray, " m"]) -> float:
    """Where D(α) = α − Σ w min(1, α r) bends most, among the α with D < .05.

    Example: a ratio that is 2 in half of U bends at 1/2.
        >>> round(bend(np.repeat([2.0, 0.0], 50), np.full(100, 0.01)), 2)
        0.5
    """
    alpha = np.linspace(0, 1, STEPS + 1)
    gap = alpha - np.minimum(1, alpha[:, None] * ratio) @ weight
    second = gap[2 * LAG :] - 2 * gap[LAG:-LAG] + gap[: -2 * LAG]
    second = np.where(gap[LAG:-LAG] < MOST_GAP, second, -np.inf)
    return float(alpha[LAG + int(np.argmax(second))])
