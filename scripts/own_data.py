"""How good are the class prior, its interval, probabilities, thresholds and models of jaxpu.fit? results/own_data/.

    pip install -e '.[evidence]'                                    # pulearn and pu-toolbox, to stand beside
    python scripts/own_data.py [--workers 2]                        # or: python scripts/reproduce.py own_data
    python scripts/own_data.py --estimate                           # three draws of each kind, and what the rest takes
    python scripts/own_data.py --seeds 1 --cells spambase --tables draws --out /tmp/own_data

A draw is a cell (a data set, the share c of positives with a label, the share π of positives among the unlabeled rows)
and a seed: n_U rows (at most 3,000), of which π n_U are positive, and n_P others, c of all positives, at least 5. Every
method meets the same rows in the same order. A table is a CSV with a row a draw and method, written after every draw:
what is there is kept, and what is missing is done, in processes of one thread each. A method of another package that
fails has no number and its error in its row; one of ours stops its draw, which the next call repeats.
"""

import argparse
import functools
import importlib.metadata
import os
import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from own_data_methods import ESTIMATORS, MODELS, OTHER_MODELS, Method, Task

from jaxpu import prior, runs
from jaxpu.data import load

OUT = Path(__file__).parents[1] / "results" / "own_data"
SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
MEANS = {"easy": 1.5, "overlap": 0.75, "reducible": 1.5}
ALIKE = 0.1
"""The share of the negatives of "reducible" that look like positives, so that π* = π + .1 (1 - π)."""
MOST = 3000
TIMES = 100
"""Resamples of scores; REFITS: of rows, each cross-fitted again."""
REFITS = 20
FRESH = 0.3
"""The share of rows that no model is fitted on and every model is judged by."""


class Cell(NamedTuple):
    """What is drawn.

    Attributes:
        dataset: a name. c: share of positives that are labeled. pi: share of positives among the unlabeled rows.
        n_labeled: in place of what c says; None = by c. most: unlabeled rows. gaps: share of cells that are NaN.
    """

    dataset: str
    c: float
    pi: float
    n_labeled: int | None = None
    most: int = MOST
    gaps: float = 0.0

    @property
    def name(self) -> str:
        """Its words in the tables.

        >>> Cell("digits", 0.1, 0.37).name
        'digits c=0.1 π=0.37'
        """
        labeled = f"c={self.c:g}" if self.n_labeled is None else f"n_P={self.n_labeled}"
        return f"{self.dataset}{' with gaps' if self.gaps else ''} {labeled} π={self.pi:g}"


DATASETS = ("easy", "overlap", "spambase", "mushrooms", "connect4", "breast_cancer", "digits")
SETTINGS = (
    Cell("easy", 0.3, 0.37),
    Cell("spambase", 0.1, 0.37),
    Cell("mushrooms", 0.1, 0.1),
    Cell("digits", 0.1, 0.37),
    Cell("breast_cancer", 0.05, 0.37, n_labeled=9),
    Cell("overlap", 0.1, 0.37),
    Cell("overlap", 0.3, 0.37),
    Cell("reducible", 0.1, 0.37),
)
"""Fifty seeds each, for errors, coverage and widths that are named."""
CELLS = tuple(Cell(name, c, pi) for c in (0.05, 0.1, 0.3) for pi in (0.1, 0.37, 0.6) for name in DATASETS)
MIXTURES = ((0.05, 0.1), (0.1, 0.37), (0.3, 0.6))
MODEL_CELLS = (
    *(Cell(name, c, pi) for c, pi in MIXTURES for name in DATASETS if name != "easy"),
    *(Cell("spambase", c, pi, gaps=0.2) for c, pi in MIXTURES),
)


class Draw(NamedTuple):
    """Rows.

    Attributes:
        x: features (n, d). labeled, y: which have a label, and which are positive (n,).
        fresh_x, fresh_y: rows of the same classes that are in no x.
        truth: share of positives among the unlabeled rows. largest: the largest share that the densities allow.
    """

    x: np.ndarray
    labeled: np.ndarray
    y: np.ndarray
    fresh_x: np.ndarray
    fresh_y: np.ndarray
    truth: float
    largest: float


@functools.lru_cache(maxsize=4)
def stored(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and true labels of a data set."""
    found = load(name)
    return found.features().reshape(len(found.x), -1), found.truth == 1


def population(name: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features and true labels: of a data set, or five Gaussian features, of which one tells the classes apart."""
    if name not in MEANS:
        return stored(name)
    y = rng.random(10_000) < 0.5
    x = rng.normal(size=(len(y), 5))
    like = y | (rng.random(len(y)) < ALIKE) if name == "reducible" else y
    x[:, 0] += np.where(like, MEANS[name], -MEANS[name])
    return x, y


def draw(cell: Cell, seed: int, fresh: float = 0.0) -> Draw:
    """The rows of a cell and seed, shuffled; the share ``fresh`` of all rows is kept apart first."""
    rng = np.random.default_rng([seed, zlib.crc32(cell.name.encode())])
    x, y = population(cell.dataset, rng)
    (positive, kept), (negative, other) = (split(rng.permutation(np.flatnonzero(of)), fresh) for of in (y, ~y))
    left = len(positive) - cell.n_labeled if cell.n_labeled else len(positive) * (1 - cell.c)
    n_u = int(min(cell.most, len(negative) / (1 - cell.pi), left / cell.pi))
    hidden = round(cell.pi * n_u)
    n_p = cell.n_labeled or max(5, round(cell.c * hidden / (1 - cell.c)))
    rows = np.concatenate([positive[: n_p + hidden], negative[: n_u - hidden]])
    order = rng.permutation(len(rows))
    labeled = (np.arange(len(rows)) < n_p)[order]
    later = np.concatenate([kept[:MOST], other[:MOST]])
    mine, theirs = (gappy(np.asarray(x[at], float), cell.gaps, rng) for at in (rows[order], later))
    truth = float(y[rows[order]][~labeled].mean())
    largest = truth + ALIKE * (1 - truth) if cell.dataset == "reducible" else truth
    return Draw(mine, labeled, y[rows[order]], theirs, y[later], truth, largest)


def split(rows: np.ndarray, fresh: float) -> tuple[np.ndarray, np.ndarray]:
    """The rows to draw from, and those kept apart."""
    cut = round(fresh * len(rows))
    return rows[cut:], rows[:cut]


def gappy(x: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Features with a share of their cells missing."""
    return np.where(rng.random(x.shape) < share, np.nan, x) if share else x


def about(cell: Cell, seed: int, drawn: Draw) -> dict[str, Any]:
    """The columns that every row has."""
    counts = {"n_labeled": int(drawn.labeled.sum()), "n_unlabeled": int((~drawn.labeled).sum())}
    head = {"cell": cell.name, "dataset": cell.dataset, "c": cell.c, "pi": cell.pi, "seed": seed}
    return head | counts | {"truth": drawn.truth, "largest": drawn.largest}


def estimated(x: np.ndarray, labeled: np.ndarray, seed: int, weight: Any = None) -> prior.Estimate:
    """The default of :func:`jaxpu.fit`: BBE of the best of four candidates, cross-fitted."""
    fold = prior.folds(labeled, 5, seed)
    return prior.estimate_prior("bbe", x, labeled, fold, prior.default_candidates(seed), weight)


def measure(cell: Cell, seed: int) -> list[dict[str, Any]]:
    """The default: prior, interval, errors of its probabilities, and what its thresholds lose."""
    drawn = draw(cell, seed)
    labeled, began = drawn.labeled, time.process_time()
    value, found = estimated(drawn.x, labeled, seed)
    share = prior.share_of(value, found, labeled)
    low = min(value, prior.lower_end(found.scores.values(), labeled))
    high = max(value, prior.upper_end(found.z, labeled, found.fold))
    seconds = time.process_time() - began
    again = prior.estimates(lambda rows, w: prior.bbe(found.z[rows], labeled[rows], w), labeled, times=TIMES)
    boot_low, boot_high = prior.percentiles(again)
    row = {"prior": value, "low": low, "high": high, "shown_low": share.low, "shown_high": share.high}
    row |= {"at_most": share.at_most, "boot_low": boot_low, "boot_high": boot_high}
    row |= {"candidate": found.chosen, "auc_pu": found.auc[found.chosen], "cpu_seconds": seconds}
    flat = prior.cross_calibrated(found.z, labeled, found.fold)
    told = {"true": drawn.truth, "estimated": value, "1.3": min(1.0, 1.3 * drawn.truth), "0.7": 0.7 * drawn.truth}
    for said in ("true", "estimated"):
        for name, z in (("raw", found.z), ("isotonic", flat)):
            p = prior.probability(z, told[said])[~labeled]
            row[f"ece_{name}_{said}"] = calibration_error(p, drawn.y[~labeled])
    return [about(cell, seed, drawn) | row | losses(found.z, flat, drawn, told)]


def losses(z: np.ndarray, flat: np.ndarray, drawn: Draw, told: dict[str, float]) -> dict[str, float]:
    """F1 on the unlabeled rows that rules lose against the best threshold, with each prior that they are told."""
    labeled, y = drawn.labeled, drawn.y[~drawn.labeled]
    best = max_f1(z[~labeled], y)
    row = {"best_f1": best, "lost_lee_liu": best - f1(z[~labeled] >= prior.lee_liu(z, labeled), y)}
    row["lost_g"] = best - f1(z[~labeled] + np.log(labeled.sum() / (~labeled).sum()) > 0, y)
    for said, share in told.items():
        chosen = {
            "quantile": z[~labeled] >= prior.quantile(z, labeled, share),
            "pu_f1": z[~labeled] >= prior.pu_f1(z, labeled, share),
            "half": prior.probability(flat, share)[~labeled] > 0.5,
        }
        row |= {f"lost_{rule}_{said}": best - f1(positive, y) for rule, positive in chosen.items()}
    return row


def calibration_error(p: np.ndarray, y: np.ndarray, bins: int = 10) -> float:
    """Mean distance of the mean probability from the share of positives, over bins of equally many rows.

    >>> calibration_error(np.repeat([0.2, 0.8], 50), np.tile([1, 0], 50))
    0.3
    """
    parts = np.array_split(np.argsort(p, kind="stable"), bins)
    return float(sum(len(part) / len(p) * abs(p[part].mean() - y[part].mean()) for part in parts))


def f1(positive: np.ndarray, y: np.ndarray) -> float:
    """F1 of a decision.

    >>> f1(np.array([True, True, False]), np.array([True, False, False]))
    0.6666666666666666
    """
    total = positive.sum() + y.sum()
    return float(2 * (positive & y).sum() / total) if total else 0.0


def max_f1(z: np.ndarray, y: np.ndarray) -> float:
    """F1 of the best threshold, found with the true labels.

    >>> max_f1(np.array([3.0, 2.0, 2.0, 1.0]), np.array([True, True, False, False]))
    0.8
    """
    order = np.argsort(-z, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(z[order])), len(z) - 1)  # rows with one score are taken together
    return float(np.max(2 * np.cumsum(y[order])[ends] / (ends + 1 + y.sum())))


def refitted(cell: Cell, seed: int) -> list[dict[str, Any]]:
    """Bootstraps that fit again: of rows with frequencies, and of copies, which folds tear apart."""
    drawn = draw(cell, seed)
    labeled, whole = drawn.labeled, estimated(drawn.x, drawn.labeled, seed).prior

    def grouped(rows: np.ndarray, w: np.ndarray) -> float:
        return estimated(drawn.x[rows], labeled[rows], seed, w).prior

    def copies(rows: np.ndarray, w: np.ndarray) -> float:
        rows = np.repeat(rows, w.astype(int))
        return estimated(drawn.x[rows], labeled[rows], seed).prior

    found = []
    for name, estimate in (("grouped", grouped), ("copies", copies)):
        again = prior.estimates(estimate, labeled, times=REFITS, random_state=seed)
        low, high = prior.percentiles(again)
        row = {"method": name, "prior": whole, "mean": float(again.mean()), "low": low, "high": high}
        found.append(about(cell, seed, drawn) | row)
    return found


def compared(cell: Cell, seed: int) -> list[dict[str, Any]]:
    """The prior by every estimator, of jaxpu and of others, on the same rows."""
    drawn = draw(cell, seed)
    task = Task(drawn.x, drawn.labeled, seed)
    head = about(cell, seed, drawn) | {"candidate": task.found.chosen}  # so that none pays for the scores of all
    return [
        head | {"method": name} | attempt("prior", method, functools.partial(method.run, task))
        for name, method in ESTIMATORS.items()
    ]


def modelled(methods: dict[str, Method], cell: Cell, seed: int) -> list[dict[str, Any]]:
    """AUC of models on fresh rows."""
    drawn = draw(cell, seed, FRESH)
    head, task = about(cell, seed, drawn), Task(drawn.x, drawn.labeled, seed, drawn.fresh_x, drawn.y)

    def auc(method: Method) -> float:
        scores = np.asarray(method.run(task), float)
        if scores.shape != drawn.fresh_y.shape or not np.isfinite(scores).all():
            raise ValueError("scores are NaN, infinite or of another shape")
        return prior.auc(scores, drawn.fresh_y)

    return [head | {"method": name} | attempt("auc", one, functools.partial(auc, one)) for name, one in methods.items()]


def attempt(column: str, method: Method, value: Callable[[], float]) -> dict[str, Any]:
    """What a method says, its seconds, and its error where it is another package's."""
    began, found, error = time.process_time(), None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if method.others else "default")
        try:
            found = float(value())
        except Exception as trouble:
            if not method.others:
                raise
            error = f"{type(trouble).__name__}: {trouble}".splitlines()[0][:160]
    return {column: found, "cpu_seconds": time.process_time() - began, "error": error}


class Table(NamedTuple):
    """Draws to make, and what of each."""

    draws: list[tuple[Cell, int]]
    work: Callable[[Cell, int], list[dict[str, Any]]]


def tables() -> dict[str, Table]:
    """All tables, those with the figures of acceptance first."""
    speed = Cell("spambase", 0.1, 0.37, n_labeled=72, most=1928)
    wanted = [(cell, seed) for cell in CELLS for seed in range(3)]
    wanted += [(cell, seed) for cell in SETTINGS for seed in range(50)] + [(speed, seed) for seed in range(5)]
    four = [(cell, seed) for seed in range(4) for cell in MODEL_CELLS]
    return {
        "draws": Table(list(dict.fromkeys(wanted)), measure),
        "refits": Table([(Cell("spambase", 0.1, 0.37), seed) for seed in range(10)], refitted),
        "models": Table(four, functools.partial(modelled, MODELS)),
        "estimators": Table([(cell, seed) for seed in range(3) for cell in CELLS], compared),
        "other_models": Table(four[: len(MODEL_CELLS)], functools.partial(modelled, OTHER_MODELS)),
    }


def work(name: str, cell: Cell, seed: int) -> tuple[list[dict[str, Any]], float]:
    """One draw of a table, in a process of its own, and its seconds."""
    began = time.monotonic()
    return tables()[name].work(cell, seed), time.monotonic() - began


def written(path: Path) -> list[dict[str, Any]]:
    """The rows of a table that are there."""
    return pl.read_csv(path, infer_schema_length=None, glob=False).to_dicts() if path.exists() else []


def run(name: str, draws: list[tuple[Cell, int]], out: Path, pool: ProcessPoolExecutor) -> tuple[float, int]:
    """Make the draws of a table that are missing; their mean seconds, and how many failed."""
    path = out / f"{name}.csv"
    rows = written(path)
    done = {(row["cell"], row["seed"]) for row in rows}
    futures = {pool.submit(work, name, *one): one for one in draws if (one[0].name, one[1]) not in done}
    spent, failed, began = 0.0, 0, time.monotonic()
    for count, future in enumerate(as_completed(futures), 1):
        cell, seed = futures[future]
        try:
            found, seconds = future.result()
        except Exception:
            traceback.print_exc()
            print(f"{name}: {cell.name}, seed {seed} failed; the rest goes on", file=sys.stderr)
            failed += 1
            continue
        rows += found
        spent += seconds
        rows.sort(key=lambda row: (row["cell"], row["seed"]))
        runs.write_frame(path, pl.DataFrame(rows, infer_schema_length=None))
        if count in (1, len(futures)) or not count % 20:
            print(f"{name}: {count} of {len(futures)} draws, {time.monotonic() - began:.0f} s", flush=True)
    return spent / max(1, len(futures)), failed


def provenance(out: Path, seconds: float) -> dict[str, Any]:
    """Where the numbers come from; commits of earlier calls are kept."""
    here, before, others = runs.commit(), runs.read_provenance(out) or {}, {}
    for name in ("pulearn", "pu-toolbox"):
        try:
            others[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            others[name] = "not installed"
    commits = sorted({*before.get("commits", []), str(here["commit"])})
    counts = {name: len(written(out / f"{name}.csv")) for name in tables()}
    told = {"command": "python scripts/own_data.py", "device": "cpu", **here, "commits": commits}
    told["versions"] = runs.versions() | others
    return told | {"rows": counts, "run_seconds": before.get("run_seconds", 0.0) + seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=list(tables()), default=list(tables()))
    parser.add_argument("--seeds", type=int, default=50, help="at most so many of each cell")
    parser.add_argument("--cells", nargs="+", default=[""], help="parts of the names of cells, any of which is wanted")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--estimate", action="store_true", help="three draws of each table; what all would take")
    options = parser.parse_args()
    os.environ.update(SINGLE)
    options.out.mkdir(parents=True, exist_ok=True)
    began, all_tables, broken = time.monotonic(), tables(), 0
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for name in options.tables:
            wanted = [
                (cell, seed)
                for cell, seed in all_tables[name].draws
                if seed < options.seeds and any(part in cell.name for part in options.cells)
            ]
            mean, failed = run(name, wanted[:: len(wanted) // 3 + 1] if options.estimate else wanted, options.out, pool)
            broken += failed
            if options.estimate and mean:
                minutes = mean * len(wanted) / options.workers / 60
                print(f"{name}: {mean:.1f} s a draw, {minutes:.1f} min for {len(wanted)} of them")
    told = provenance(options.out, time.monotonic() - began)
    runs.write_provenance(options.out, told)
    sys.exit(f"{broken} draws failed; call again to repeat them" if broken else 0)


if __name__ == "__main__":
    main()
