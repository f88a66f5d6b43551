"""Errors and coverage of the default class-prior estimate on data of known truth: results/own_data/priors.csv.

python scripts/own_data_priors.py [--seeds 20] [--settings spambase:0.1:0.37 ...] [--out FILE]

Each setting is dataset:c:π, a single set: n_U rows (at most 3,000) of which the share π is positive, and n_P others,
the share c of all positives, at least 5.
Prints a line a setting, writes one a seed.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import polars as pl

from jaxpu import prior
from jaxpu.data import load

SETTINGS = (
    "easy:0.3:0.37",
    "spambase:0.1:0.37",
    "mushrooms:0.1:0.1",
    "overlap:0.1:0.37",
    "overlap:0.3:0.37",
    "digits:0.1:0.37",
)
MEANS = {"easy": 1.5, "overlap": 0.75}
MOST = 3000


def dataset(name: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features and true labels."""
    if name in MEANS:
        y = rng.random(10_000) < 0.5
        x = rng.normal(size=(len(y), 5))
        x[:, 0] += np.where(y, MEANS[name], -MEANS[name])
        return x, y
    found = load(name)
    return np.asarray(found.features(), float).reshape(len(found.x), -1), found.truth == 1


def draw(name: str, c: float, pi: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, which are labeled, and which are positive."""
    rng = np.random.default_rng(seed)
    x, y = dataset(name, rng)
    positive, negative = (rng.permutation(np.flatnonzero(of)) for of in (y, ~y))
    n_u = int(min(MOST, len(negative) / (1 - pi), len(positive) * (1 - c) / pi))
    hidden = round(pi * n_u)
    n_p = max(5, round(c * hidden / (1 - c)))
    rows = np.concatenate([positive[: n_p + hidden], negative[: n_u - hidden]])
    return x[rows], np.arange(len(rows)) < n_p, y[rows]


def measured(setting: str, seed: int) -> dict[str, float | int | str]:
    """One seed of one setting."""
    name, c, pi = setting.split(":")
    x, labeled, y = draw(name, float(c), float(pi), seed)
    start = time.process_time()
    found = prior.estimate_prior("bbe", x, labeled, prior.folds(labeled, 5, seed), prior.default_candidates(seed))
    fit = found.found
    low = min(found.prior, prior.lower_end(fit.scores.values(), labeled))
    high = max(found.prior, prior.upper_end(fit.z, labeled, fit.fold))
    seconds = time.process_time() - start
    return {
        "setting": setting,
        "seed": seed,
        "n_labeled": int(labeled.sum()),
        "n_unlabeled": int((~labeled).sum()),
        "truth": float(y[~labeled].mean()),
        "prior": found.prior,
        "low": low,
        "high": high,
        "at_most": prior.at_most(fit.z, labeled),
        "candidate": fit.chosen,
        "cpu_seconds": seconds,
    }


def summary(frame: pl.DataFrame) -> pl.DataFrame:
    """RMSE, bias, coverage and width, a row a setting."""
    error, covered = pl.col("prior") - pl.col("truth"), pl.col("truth").is_between("low", "high")
    return frame.group_by("setting", maintain_order=True).agg(
        pl.len().alias("seeds"),
        (error**2).mean().sqrt().alias("rmse"),
        error.mean().alias("bias"),
        covered.mean().alias("coverage"),
        (pl.col("high") - pl.col("low")).mean().alias("width"),
        (pl.col("truth") <= pl.col("at_most")).mean().alias("at_most_holds"),
        pl.col("cpu_seconds").mean(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--settings", nargs="+", default=SETTINGS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results/own_data/priors.csv")
    options = parser.parse_args()
    frame = pl.DataFrame([measured(setting, 1000 + k) for setting in options.settings for k in range(options.seeds)])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    frame.write_csv(options.out)
    with pl.Config(tbl_cols=-1, tbl_rows=-1, float_precision=3):
        print(summary(frame))


if __name__ == "__main__":
    main()
