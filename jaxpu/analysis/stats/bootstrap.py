"""Bootstrap intervals of many samples of one size, from one resampling: linear in the numbers, in bounded memory.

The arithmetic is that of :func:`scipy.stats.bootstrap` with the same resampled indices, number for number, but for
BCa's jackknife: that of a mean has a closed form, θ₍ᵢ₎ = (Σx − xᵢ)/(n − 1), where SciPy takes n means of n − 1 numbers.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

_HELD = 400_000
"""Resampled numbers held at once; they stay in a processor's cache."""


class Interval(NamedTuple):
    """The two ends of a confidence interval, numbers, or arrays of them; both NaN where the data cannot tell."""

    low: Any
    high: Any


def mean_intervals(
    samples: Float[np.ndarray, "k n"], level: float = 0.95, *, seed: int = 0, resamples: int = 4999
) -> Interval:
    """:func:`jaxpu.analysis.stats.mean_interval` of k samples of n numbers each: two arrays (k,), and the same numbers.

    >>> low, high = mean_intervals(np.array([[0.82, 0.85, 0.86, 0.87, 0.84, 0.85], [0.5] * 6]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.83, 0.5], [0.86, 0.5])
    """

    def levels(samples: np.ndarray, found: np.ndarray) -> np.ndarray:
        return _bca_levels(samples, found, level)

    return _intervals(samples, _mean, levels, seed, resamples)


def median_intervals(
    samples: Float[np.ndarray, "k n"], level: float = 0.95, *, seed: int = 0, resamples: int = 4999
) -> Interval:
    """:func:`jaxpu.analysis.stats.median_interval` of k samples of n numbers each: two arrays (k,).

    >>> median_intervals(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]))
    Interval(low=array([1.]), high=array([5.]))
    """

    def levels(samples: np.ndarray, found: np.ndarray) -> np.ndarray:
        return np.broadcast_to([(1 - level) / 2, (1 + level) / 2], (len(samples), 2))

    return _intervals(samples, _median, levels, seed, resamples)


def _mean(resampled: np.ndarray, out: np.ndarray) -> None:
    np.mean(resampled, axis=-1, out=out)


def _median(resampled: np.ndarray, out: np.ndarray) -> None:
    np.median(resampled, axis=-1, out=out, overwrite_input=True)


def _intervals(
    samples: np.ndarray,
    statistic: Callable[[np.ndarray, np.ndarray], None],
    levels: Callable[[np.ndarray, np.ndarray], np.ndarray],
    seed: int,
    resamples: int,
) -> Interval:
    """NaN for samples of fewer than two numbers or any that is not finite, (v, v) where all numbers equal v."""
    ends = np.full((len(samples), 2), np.nan)
    if samples.shape[-1] < 2:
        return Interval(*ends.T)
    known = np.flatnonzero(np.isfinite(samples).all(-1))
    # equal up to rounding counts as equal: BCa would divide one rounding error by another
    flat = np.ptp(samples[known], axis=-1) <= 1e-12 * np.abs(samples[known]).max(-1)
    ends[known[flat]] = samples[known[flat], :1]
    spread = known[~flat]
    at_once = max(10 * _HELD // resamples, 1)
    for start in range(0, len(spread), at_once):
        rows = spread[start : start + at_once]
        mine = samples[rows]
        found = np.empty((len(rows), resamples))
        for part, indices in _resampled(samples.shape[-1], resamples, seed):
            buffer = np.empty(indices.shape)
            for sample, out in zip(mine, found, strict=True):
                np.take(sample, indices, out=buffer, mode="clip")  # clip: checked indices would be copied
                statistic(buffer, out[part])
        found.sort(axis=-1)
        ends[rows] = _quantiles(found, levels(mine, found))
    return Interval(*ends.T)


def _resampled(n: int, resamples: int, seed: int) -> Iterator[tuple[slice, Int[np.ndarray, "m n"]]]:
    """The indices of all resamples, some at a time; a generator draws the same ones in whatever pieces."""
    generator, most = np.random.default_rng(seed), max(_HELD // n, 1)
    for start in range(0, resamples, most):
        part = slice(start, min(start + most, resamples))
        yield part, generator.integers(0, n, (part.stop - part.start, n))


def _bca_levels(samples: np.ndarray, found: np.ndarray, level: float) -> Float[np.ndarray, "k 2"]:
    """The shares of the resampled means that BCa cuts at: bias z₀ from their ranks, acceleration by the jackknife."""
    from scipy import special  # takes a while to import

    means = samples.mean(-1, keepdims=True)
    below = ((found < means).sum(-1, keepdims=True) + (found <= means).sum(-1, keepdims=True)) / (2 * found.shape[-1])
    bias = special.ndtri(below)
    lean = samples - means  # (n - 1) (mean of θ₍ᵢ₎ - θ₍ᵢ₎)
    square = lean * lean
    acceleration = (square * lean).sum(-1, keepdims=True) / (6 * square.sum(-1, keepdims=True) ** 1.5)
    quantile = special.ndtri((1 - level) / 2)
    off = bias + np.array([quantile, -quantile])
    with np.errstate(invalid="ignore"):  # a bias without bound knows no interval
        return special.ndtr(bias + off / (1 - acceleration * off))


def _quantiles(ordered: np.ndarray, shares: np.ndarray) -> Float[np.ndarray, "k 2"]:
    """Linearly interpolated quantiles of sorted rows; NaN for shares that are NaN."""
    n = ordered.shape[-1]
    at = np.nan_to_num(shares) * n + (1 - np.nan_to_num(shares))  # counted from 1, as SciPy has it
    place = np.floor(at).astype(np.int64)
    low, high = (np.take_along_axis(ordered, np.clip(place + step, 0, n - 1), axis=-1) for step in (-1, 0))
    return np.where(np.isnan(shares), np.nan, (1 - (at - place)) * low + (at - place) * high)
