"""How often a claim that is true just at its bound is called supported, or refuted: results/claims_error_rates.md.

python scripts/claims_error_rates.py [--simulations 2000] [--check]

Every row simulates seeds from a known distribution and judges them by the tests of :mod:`jaxpu.analysis.claims`, at
2.5 % a side; 3.5 % is the most that is accepted. With ``--check`` nothing is written.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from jaxpu.analysis import effects, stats
from jaxpu.analysis.stats import Tested

ROOT = Path(__file__).parents[1]
MOST = 0.035
SIGNIFICANCE = 0.05


class Row(NamedTuple):
    """A row of the table: what is claimed, of what, by which test, and whether the level is promised."""

    claim: str
    setting: str
    n: int
    tested: Callable[[np.random.Generator, int], Tested]
    promised: bool = True


def clustered(rng: np.random.Generator, shape: tuple[int, int], cells: int, p: float, icc: float) -> np.ndarray:
    """Shares of a seed's cells: beta-binomial, with this correlation between the cells of a seed."""
    chance = np.full(shape, p) if icc == 0 else rng.beta(p * (1 / icc - 1), (1 - p) * (1 / icc - 1), shape)
    return rng.binomial(cells, chance) / cells


def share(cells: int, n: int, p: float, icc: float) -> Row:
    """A share of runs, over the cells of each seed."""

    def tested(rng: np.random.Generator, sims: int) -> Tested:
        return stats.share_test(clustered(rng, (sims, n), cells, p, icc), p, cells)

    where = f"{cells} cells, ICC {icc:g}" if cells > 1 else "1 cell"
    return Row("share of runs", f"{where}, bound {p:g}", n, tested)


def shares(cells: int, n: int, p: tuple[float, float], icc: float) -> Row:
    """The difference of two shares."""

    def tested(rng: np.random.Generator, sims: int) -> Tested:
        a, b = (clustered(rng, (sims, n), cells, q, icc if cells > 1 else 0.0) for q in p)
        return stats.paired_shares(a, b, p[0] - p[1], cells=cells)

    where = f"{cells} cells, ICC {icc:g}" if cells > 1 else "1 cell"
    return Row("paired shares", f"{where}, {p[0]:g} against {p[1]:g}", n, tested)


def rare(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """+.035 +- .01, and -.8 once in 24: a method that is a little better and sometimes collapses."""
    return np.where(rng.random(shape) < 1 / 24, -0.8, rng.normal(0.035, 0.01, shape))


def number(statistic: str, name: str, n: int, draw: Callable, bound: float, promised: bool = True) -> Row:
    """A mean or median of differences."""
    test = stats.mean_test if statistic == "mean" else stats.median_test

    def tested(rng: np.random.Generator, sims: int) -> Tested:
        return test(draw(rng, (sims, n)), bound)

    return Row(f"{statistic} difference", name, n, tested, promised)


def equivalence(n: int) -> Row:
    """Two sides that differ by just the 1 that is allowed."""

    def tested(rng: np.random.Generator, sims: int) -> Tested:
        values = rng.normal(1.0, 1.0, (sims, n))
        high = stats.mean_test(values, 1.0)
        supports, refutes = effects.equivalent(stats.mean_test(values, -1.0), high)
        return high._replace(above=supports, below=refutes)

    return Row("within", "normal, at one end", n, tested)


def best_cell(cells: int, n: int) -> Row:
    """The best of cells that all lie at the bound."""

    def tested(rng: np.random.Generator, sims: int) -> Tested:
        one = stats.median_test(rng.standard_normal((cells, sims, n)))
        supports, refutes = effects.somewhere(one.above, one.below)
        return one._replace(above=supports, below=refutes)

    return Row("somewhere", f"normal, median, {cells} cells", n, tested)


def rows() -> Iterator[Row]:
    """All rows of the table."""
    yield from (share(6, 30, 0.5, icc) for icc in (0.0, 0.2, 0.5))
    yield from (share(3, 84, p, 0.5) for p in (0.05, 0.1))
    yield from (share(6, 30, 0.05, icc) for icc in (0.2, 0.5))
    yield from (share(1, n, p, 0.0) for n in (12, 32) for p in (0.05, 0.5))
    yield from (shares(1, n, p, 0.0) for n in (12, 32) for p in ((0.5, 0.2), (0.1, 0.05)))
    yield from (shares(cells, n, p, 0.5) for cells, n, p in ((6, 30, (0.5, 0.5)), (3, 84, (0.1, 0.05))))
    yield from (equivalence(32), best_cell(8, 32))
    # the median of the mixture: 1/24 lies below, and of the other 23/24 the rest of one half
    middle = 0.035 + 0.01 * NormalDist().inv_cdf((0.5 - 1 / 24) / (23 / 24))
    for n in (12, 32):
        yield number("mean", "normal", n, lambda r, s: r.standard_normal(s), 0.0)
        yield number("mean", "Student's t with 3 degrees of freedom", n, lambda r, s: r.standard_t(3, s), 0.0)
        yield number("mean", "log-normal, σ = 1", n, lambda r, s: r.lognormal(0, 1, s), float(np.exp(0.5)))
        yield number("mean", "exponential", n, lambda r, s: r.standard_exponential(s), 1.0)
        yield number("median", "log-normal, σ = 1", n, lambda r, s: r.lognormal(0, 1, s), 1.0)
        yield number("median", "rare collapse", n, rare, middle)
        yield number("mean", "rare collapse, asked for", n, rare, 0.035 * 23 / 24 - 0.8 / 24, promised=False)


def rates(row: Row, simulations: int, seed: int = 0) -> tuple[float, float]:
    """How often a row's claim is supported and refuted, as shares of simulations."""
    tested = row.tested(np.random.default_rng(seed), simulations)
    return float((tested.above < SIGNIFICANCE).mean()), float((tested.below < SIGNIFICANCE).mean())


def table(found: list[tuple[Row, tuple[float, float]]], simulations: int) -> str:
    """The table in Markdown."""
    lines = [
        "# Error rates of claims",
        "",
        f"Written by `scripts/claims_error_rates.py`: {simulations:,} simulations a row, the true value exactly at the "
        f"bound, 2.5 % a side promised, at most {100 * MOST:g} % accepted. Supported: it is called above the bound; "
        "refuted: below. Rare collapse: +.035 ± .01, and −.8 once in 24.",
        "",
        "| claim | setting | seeds | supported | refuted |",
        "|---|---|--:|--:|--:|",
    ]
    for row, (above, below) in found:
        n = f"{row.n}" if row.promised else f"{row.n}, not promised"
        lines.append(f"| {row.claim} | {row.setting} | {n} | {100 * above:.1f} % | {100 * below:.1f} % |")
    note = (
        "Student's t of a mean is moved out by skewness with a constant that was chosen on log-normal values; the "
        "other rows had no part in it. "
        "Not promised: no test of a mean can hold its level when the rare event is not in the sample. Metrics that "
        "collapse are therefore declared heavy-tailed and judged by the median; a mean that is asked for stands beside "
        "the shares of failing runs."
    )
    return "\n".join([*lines, "", note, ""])


def main() -> None:
    """Write the table, or check it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args()
    found = [(row, rates(row, given.simulations)) for row in rows()]
    text = table(found, given.simulations)
    print(text)
    if not given.check:
        (ROOT / "results" / "claims_error_rates.md").write_text(text)
    wrong = [f"{row.claim}, {row.setting}, n = {row.n}" for row, both in found if row.promised and max(both) > MOST]
    if wrong:
        sys.exit("above 3.5 % a side: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
