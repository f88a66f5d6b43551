"""TIcE: the purest corner of the feature space bounds the label frequency."""

import heapq
import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from jaxpu.prior.candidates import Folds
from jaxpu.prior.scenario import prior_of_frequency
from jaxpu.prior.tails import Labeled, Weights, sizes

BINS = 4
SPLITS = 500
BEPP = 5.0
FEWEST = 10.0


def tice(x: Float[np.ndarray, "n d"], labeled: Labeled, fold: Folds, weight: Weights | None = None) -> float:
    """Tree induction for label frequency estimation: c is at least the labeled share of any part of the space.

    Each fold grows a tree on its own rows, always at the most promising node, by the feature whose quarters of its
    range hold the highest share of labeled rows, n_l / (n + 5); the other folds' rows in every node met bound
    c ≥ n_l / n − √(c (1 − c) (1 − δ) / (δ n)) with δ = max(.025, 1 / (1 + .004 n)). The mean over folds of the largest
    bound is c, first with c = 1/2 in the root, then with that estimate. P and U together are one sample;
    π_U = n_P (1 − c) / (c n_U).

    Args:
        x: features (n, d). labeled: where a row is of P. fold: of each row: copies of a row belong into one.
        weight: how often each row counts.

    Source: Bekker and Davis, Estimating the Class Prior in Positive and Unlabeled Data Through Decision Tree Induction,
    AAAI 2018.

    Example:
        >>> x = np.repeat([1.0, 0.0], [400, 400])[:, None]
        >>> labeled = np.arange(800) < 200  # half of the rows at 1
        >>> 0.3 < tice(x, labeled, np.arange(800) % 5) < 0.4  # of 200 of 600; c is bounded from below, π from above
        True
    """
    weight = np.ones(len(labeled)) if weight is None else weight
    low, high = x.min(axis=0), x.max(axis=0)
    scaled = (x - low) / np.where(high > low, high - low, 1)
    code = np.minimum((scaled * BINS).astype(int), BINS - 1) + BINS * np.arange(x.shape[1])
    c = 0.5
    for _ in range(2):
        c = float(np.mean([_Tree(code, labeled, weight, fold == k, c).bound for k in np.unique(fold)]))
    return prior_of_frequency(c, *sizes(labeled, weight))


class _Tree:
    """One fold's tree: it grows on the fold's rows, and the others' rows give the bound."""

    def __init__(self, code: Int[np.ndarray, "n d"], labeled: Labeled, weight: Weights, grow: Labeled, c: float):
        self.code, self.c = code, c
        self.total, self.pure = weight, weight * labeled
        n = self.total[~grow].sum()
        self.delta = max(0.025, 1 / (1 + 0.004 * n))
        self.bound = float(self.pure[~grow].sum() / n)
        self.least = 1.0  # labeled rows that a node needs to raise the bound
        self._improve(np.flatnonzero(~grow))
        self._grow(np.flatnonzero(grow), np.flatnonzero(~grow))

    def _lower(self, rows: np.ndarray) -> float:
        n = self.total[rows].sum()
        if not n:
            return 0.0
        return float(self.pure[rows].sum() / n - math.sqrt(self.c * (1 - self.c) * (1 - self.delta) / (self.delta * n)))

    def _improve(self, rows: np.ndarray) -> None:
        if self.total[rows].sum() >= FEWEST:
            self.bound = max(self.bound, self._lower(rows))

    def _grow(self, grown: np.ndarray, judged: np.ndarray) -> None:
        number = 0
        queue: list[Any] = [(-self._lower(grown), number, grown, judged, np.ones(self.code.shape[1], bool))]
        for _ in range(SPLITS):
            if not queue:
                return
            _, _, grown, judged, free = heapq.heappop(queue)
            best = self._split(grown, judged, free)
            if best is None:
                continue
            parts = [
                tuple(rows[self.code[rows, best] == BINS * best + b] for rows in (grown, judged)) for b in range(BINS)
            ]
            for _, rows in parts:
                self._improve(rows)
            spread = self.c * (1 - self.c) * (1 - self.delta)
            self.least = spread / (self.delta * max(1 - self.bound, 1e-6) ** 2)
            for part, rows in parts:
                pure, n = self.pure[part].sum(), self.total[part].sum()
                if self.pure[rows].sum() > self.least and n > FEWEST and 0 < pure < n:
                    number += 1
                    queue_free = free.copy()
                    queue_free[best] = False
                    heapq.heappush(queue, (-self._lower(part), number, part, rows, queue_free))

    def _split(self, grown: np.ndarray, judged: np.ndarray, free: Labeled) -> int | None:
        """The feature with the purest quarter, among those that leave enough labeled rows to judge and split them."""
        n, pure = (self._counts(grown, of) for of in (self.total, self.pure))
        there, of_judged = (self._counts(judged, of) for of in (self.total, self.pure))
        useful = free & (of_judged.max(axis=1) >= self.least) & ((there > 0).sum(axis=1) > 1)
        score = np.where(useful, (pure / (n + BEPP)).max(axis=1), 0.0)
        return int(np.argmax(score)) if score.max() > 0 else None

    def _counts(self, rows: np.ndarray, of: np.ndarray) -> Float[np.ndarray, "d bins"]:
        d = self.code.shape[1]
        repeated = np.broadcast_to(of[rows, None], (len(rows), d)).ravel()
        return np.bincount(self.code[rows].ravel(), repeated, d * BINS).reshape(d, BINS)
