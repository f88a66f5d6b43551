"""From runs to methods: how often does a method fail, over its seeds, and in what way?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxpu.analysis.stats import Interval, wilson
from jaxpu.collapse.explanations import percent
from jaxpu.collapse.verdicts import Diagnosis, Verdict


class Rate(NamedTuple):
    """How many of n runs, and the Wilson interval of their share."""

    occurred: int
    n: int
    interval: Interval

    @property
    def share(self) -> float:
        """How many / n; NaN for n = 0."""
        return self.occurred / self.n if self.n else float("nan")

    def __str__(self) -> str:
        ends = f"{100 * self.interval.low:.1f} to {percent(self.interval.high)}"
        return f"{self.occurred} of {self.n} runs ({percent(self.share)}, 95 % CI {ends})"


class MethodVerdict(NamedTuple):
    """The verdict on a method.

    Attributes:
        verdict: Healthy, or the most frequent failing verdict.
        failing: How many runs fail, in whatever way.
        rates: How many runs got each verdict, the most frequent first.
        explanation: The same in plain words.
    """

    verdict: Verdict
    failing: Rate
    rates: dict[Verdict, Rate]
    explanation: str


def collapse_rate(f1: ArrayLike, threshold: float = 0.1) -> Rate:
    """Count the runs with F1 below a threshold.

    Args:
        f1: (runs,) F1 of the selected epochs. NaN counts as collapsed: a run without an F1 is no success.
        threshold: F1 from which a run is not collapsed.

    Returns:
        Count, n and the 95 % Wilson interval of the share, (0, 1) without runs.

    Raises:
        ValueError: f1 is not one-dimensional.

    >>> print(collapse_rate([0.02] * 2 + [0.85] * 22))
    2 of 24 runs (8.3 %, 95 % CI 2.3 to 25.8 %)
    """
    values = np.asarray(f1, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"expected one F1 a run, shape (runs,); got shape {values.shape}")
    return rate(int((~(values >= threshold)).sum()), values.size)


def judge_method(diagnoses: Sequence[Diagnosis]) -> MethodVerdict:
    """Judge a method by the diagnoses of its runs.

    It is healthy if no run fails; otherwise its verdict is the most frequent failing one (of equally frequent
    ones the first in the order of `Verdict`). A healthy verdict is worth what its interval says: with n runs
    and no failure, up to z² / (n + z²) of them may fail, 13.8 % for n = 24.

    Args:
        diagnoses: One a run.

    Returns:
        The verdict, with rates.

    Raises:
        ValueError: there are no diagnoses.

    >>> healthy = Diagnosis(Verdict.HEALTHY, (Verdict.HEALTHY,), {}, "")
    >>> artefact = Diagnosis(Verdict.SELECTION_ARTEFACT, (Verdict.SELECTION_ARTEFACT,), {}, "")
    >>> print(judge_method([healthy] * 22 + [artefact] * 2).explanation)
    selection_artefact in 2 of 24 runs (8.3 %, 95 % CI 2.3 to 25.8 %); healthy in 22.
    """
    if not diagnoses:
        raise ValueError("expected at least one diagnosis, one a run; got none")
    verdicts = [diagnosis.verdict for diagnosis in diagnoses]
    counts = {verdict: verdicts.count(verdict) for verdict in Verdict if verdict in verdicts}
    rates = {
        verdict: rate(counts[verdict], len(verdicts))
        for verdict in sorted(counts, key=counts.__getitem__, reverse=True)
    }
    fails = {diagnosis.verdict for diagnosis in diagnoses if diagnosis.failing}
    failing = rate(sum(counts[verdict] for verdict in fails), len(verdicts))
    headline = next((verdict for verdict in rates if verdict in fails), Verdict.HEALTHY)
    return MethodVerdict(headline, failing, rates, _sentence(headline, failing, rates))


def rate(count: int, n: int) -> Rate:
    """How many of n runs, with the Wilson interval of their share.

    >>> print(rate(2, 24))
    2 of 24 runs (8.3 %, 95 % CI 2.3 to 25.8 %)
    """
    return Rate(count, n, wilson(count, n))


def _sentence(headline: Verdict, failing: Rate, rates: dict[Verdict, Rate]) -> str:
    if not failing.occurred:
        return f"healthy: {failing} fail."
    others = [f"{verdict} in {share.occurred}" for verdict, share in rates.items() if verdict != headline]
    return "; ".join([f"{headline} in {rates[headline]}", *others]) + "."
