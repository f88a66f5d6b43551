"""Synthetic data sets whose true posterior P(y = 1 | x) is known exactly.

Each class is an equally weighted mixture of Gaussians with unit covariance. With the centres m of a class y,

    p(x | y) ∝ mean_m exp(-|x - m|² / 2),      P(y = 1 | x) = π p(x | 1) / (π p(x | 1) + (1 - π) p(x | 0)).

The number of positives is round(π n) whatever the seed, so that array shapes do not depend on it either; the
posterior uses that exact share.
"""

import numpy as np
from jaxtyping import Float

from jaxpu.data.dataset import Dataset, first_line

Centres = Float[np.ndarray, "k d"]


def gaussians(*, n: int = 2000, d: int = 2, pi: float = 0.4, separation: float = 2.0, seed: int = 0) -> Dataset:
    """Two Gaussians with unit covariance, so that a linear classifier is optimal; true posterior known.

    With u = (1, .., 1)/√d and s the separation, positives are N(s u/2, I), negatives N(-s u/2, I), and

        logit P(y = 1 | x) = s u·x + log(π / (1 - π)).

    Args:
        n: Number of rows.
        d: Number of features.
        pi: Share of positives.
        separation: Distance s between the two means. The best AUC is Φ(s/√2): 0.921 for 2.
        seed: Seed of the draw.

    Returns:
        x (n, d), with ``posterior`` (n,).

    Raises:
        ValueError: If an option is out of range or a class would be empty.

    Example:
        >>> data = gaussians(n=10, d=3, pi=0.3)
        >>> data.x.shape, int(data.y.sum())
        ((10, 3), 3)
    """
    _require(d >= 1, f"d must be at least 1, got {d}")
    mean = np.full((1, d), separation / 2 / np.sqrt(d))
    x, y, posterior = _draw(mean, -mean, n=n, pi=pi, seed=seed)
    return _synthetic("gaussians", first_line(gaussians.__doc__), x, y, posterior)


def mixture(
    *,
    n: int = 2000,
    d: int = 2,
    pi: float = 0.4,
    components: int = 3,
    separation: float = 4.0,
    seed: int = 0,
) -> Dataset:
    """Gaussians on a circle, the classes alternating: no linear classifier works; true posterior known.

    The 2k centres stand at equal angles on a circle in the first two features, positive and negative in turn;
    the other features are standard normal noise.

    Args:
        n: Number of rows.
        d: Number of features, at least 2.
        pi: Share of positives.
        components: Number k of Gaussians a class, at least 2.
        separation: Distance between neighbouring centres.
        seed: Seed of the draw.

    Returns:
        x (n, d), with ``posterior`` (n,).

    Raises:
        ValueError: If an option is out of range or a class would be empty.

    Example:
        >>> data = mixture(n=100, components=2, separation=20.0)
        >>> bool((np.round(data.posterior) == data.y).all())
        True
    """
    _require(d >= 2, f"d must be at least 2, got {d}")
    _require(components >= 2, f"components must be at least 2, got {components}")
    radius = separation / (2 * np.sin(np.pi / (2 * components)))
    angle = np.arange(2 * components) * np.pi / components
    centres = np.zeros((2 * components, d))
    centres[:, 0], centres[:, 1] = radius * np.cos(angle), radius * np.sin(angle)
    x, y, posterior = _draw(centres[::2], centres[1::2], n=n, pi=pi, seed=seed)
    return _synthetic("mixture", first_line(mixture.__doc__), x, y, posterior)


def _draw(positive: Centres, negative: Centres, *, n: int, pi: float, seed: int):
    """Draw x (n, d) float32, y (n,) in random order, and the posterior (n,) of the x that are returned."""
    n_positive = round(pi * n)
    _require(0 < n_positive < n, f"both classes need a row: n={n} and pi={pi} give {n_positive} positives")
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) < n_positive)
    own = np.where(
        y[:, None],
        positive[rng.integers(len(positive), size=n)],
        negative[rng.integers(len(negative), size=n)],
    )
    with np.errstate(over="ignore"):
        x = (own + rng.standard_normal(own.shape)).astype(np.float32)
    _require(bool(np.isfinite(x).all()), "the classes are so far apart that rows are no numbers; take less")
    log_odds = np.log(n_positive / (n - n_positive))
    logit = _log_density(x, positive) - _log_density(x, negative) + log_odds
    return x, y.astype(np.int8), np.exp(-np.logaddexp(0.0, -logit))


def _log_density(x: Float[np.ndarray, "n d"], centres: Centres) -> Float[np.ndarray, " n"]:
    """The log density of an equally weighted mixture of unit Gaussians, without the common constant."""
    square = ((x[:, None, :].astype(np.float64) - centres) ** 2).sum(axis=-1)
    return np.logaddexp.reduce(-square / 2, axis=1) - np.log(len(centres))


def _synthetic(name: str, description: str, x, y, posterior) -> Dataset:
    return Dataset(
        name=name,
        x=x,
        y=y,
        description=description,
        source="drawn by jaxpu.data.synthetic",
        licence="generated, none needed",
        standardize=False,
        posterior=posterior,
    )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
