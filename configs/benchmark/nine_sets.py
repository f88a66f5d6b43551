"""What runs on nine data sets say: beside the published figures, ranks, rates of failure, the average difference.

``published.csv`` has the figures of the public code behind the table: one run of each method (the table itself), and
the means and deviations of 30 runs (ten seeds at c = .1, .3 and .5). Frames of runs are those of ``scored``.
"""

import math
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import f as f_distribution
from scipy.stats import rankdata, studentized_range
from scipy.stats import t as student

from jaxpu import config
from jaxpu.analysis.stats.estimates import mean_interval, wilson
from jaxpu.report.study import Results

SEED, FIXED, SOFT = "one run", "vpudra_fixed", "vpudra_softlabel"
RESCUE, PLAIN = "val_f1_rescue", "val_f1"
LOW = 0.1
SMALL = ("cifar10", "alzheimer_mri")
"""The two sets that are trained at sizes for two cores, three seeds each."""


def published() -> pl.DataFrame:
    """The figures of the public code: source, dataset, method, f1, sd."""
    return pl.read_csv(Path(__file__).parent / "published.csv", infer_schema_length=None)


def scored(selected: pl.DataFrame) -> pl.DataFrame:
    """A row a run and rule, with its F1."""
    return selected.select("dataset", "method", "seed", "selection", pl.col("f1").cast(pl.Float64))


def beside(selected: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """A row a set and method that was published: its one run, and ours under the same rule, mean and quartiles.

    ``inside`` says whether the published run lies within the range of ours.
    """
    ours = (
        selected.filter(pl.col("selection") == RESCUE)
        .group_by("dataset", "method", maintain_order=True)
        .agg(
            pl.col("f1").mean().alias("mean"),
            pl.col("f1").median().alias("median"),
            pl.col("f1").min().alias("lowest"),
            pl.col("f1").max().alias("highest"),
            pl.len().alias("seeds"),
        )
    )
    one = known.filter(pl.col("source") == SEED).select("dataset", "method", pl.col("f1").alias("published"))
    joined = ours.join(one, on=["dataset", "method"], how="inner", maintain_order="left")
    return joined.with_columns(inside=pl.col("published").is_between("lowest", "highest"))


def scores(selected: pl.DataFrame, selection: str = PLAIN) -> pl.DataFrame:
    """A row a method, a column a set: the mean of F1 and its 95 % interval, in words."""
    rows: dict[str, dict[str, str]] = {}
    there = selected.filter(pl.col("selection") == selection)
    for (method, dataset), group in there.group_by("method", "dataset", maintain_order=True):
        values = group["f1"].to_numpy()
        low, high = mean_interval(values)
        rows.setdefault(str(method), {})[str(dataset)] = f"{_short(values.mean())} [{_short(low)}–{_short(high)}]"
    columns = there["dataset"].unique(maintain_order=True).to_list()
    return pl.DataFrame([{"method": m, **{c: cells.get(c, "") for c in columns}} for m, cells in rows.items()])


def _short(value: float) -> str:
    """Three digits without the zero in front, since nine columns stand side by side.

    >>> _short(0.8684), _short(1.0)
    ('.868', '1.000')
    """
    return f"{value:.3f}".removeprefix("0")


def by_set(table: pl.DataFrame) -> pl.DataFrame:
    """The frame of :func:`beside` with a row a method and a column a set: our mean, the published run, ✓ if inside."""
    cells: dict[str, dict[str, str]] = {}
    for row in table.iter_rows(named=True):
        pair = f"{_short(row['mean'])} / {_short(row['published'])}{' ✓' * row['inside']}"
        cells.setdefault(row["method"], {})[row["dataset"]] = pair
    sets = table["dataset"].unique(maintain_order=True).to_list()
    return pl.DataFrame([{"method": m, **{d: of.get(d, "") for d in sets}} for m, of in cells.items()])


def whole(selected: pl.DataFrame) -> pl.DataFrame:
    """The sets that have every method with as many seeds as any: an average over others compares unlike things."""
    runs_of = selected.group_by("dataset").agg(pl.len().alias("n"))
    return selected.join(
        runs_of.filter(pl.col("n") == pl.col("n").max()), on="dataset", how="semi", maintain_order="left"
    )


def ranks(selected: pl.DataFrame, selection: str = PLAIN, oracle: str = "pn") -> pl.DataFrame:
    """Average ranks of methods over sets by their mean F1, 1 = best, and what differs from the best one.

    Two average ranks over N sets of k methods differ by chance by less than q √(k (k + 1) / (6 N)) in 95 of 100 cases
    (Demšar 2006; q is the quantile of the studentized range over √2). The oracle, which sees true labels, is left out.
    """
    wide = _means(selected, selection, oracle)
    values = wide.drop("method").to_numpy()
    average = rankdata(-values, axis=0).mean(axis=1)
    k, n = values.shape
    critical = studentized_range.ppf(0.95, k, math.inf) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n))
    frame = pl.DataFrame({"method": wide["method"], "average rank": average})
    within = pl.col("average rank") <= average.min() + critical
    return frame.with_columns(pl.lit(critical).alias("critical difference"), like_the_best=within).sort("average rank")


def _means(selected: pl.DataFrame, selection: str, oracle: str) -> pl.DataFrame:
    """A row a method but the oracle, a column a set: mean F1."""
    there = whole(selected.filter((pl.col("selection") == selection) & (pl.col("method") != oracle)))
    means = there.group_by("method", "dataset", maintain_order=True).agg(pl.col("f1").mean())
    return means.pivot("dataset", index="method", values="f1").drop_nulls()


def friedman(selected: pl.DataFrame, oracle: str = "pn") -> pl.DataFrame:
    """Whether methods differ at all, by rule: Friedman's test of ranks in the form of Iman and Davenport.

    χ² = 12 N / (k (k + 1)) (Σ R² - k (k + 1)² / 4) and F = (N - 1) χ² / (N (k - 1) - χ²), with k - 1 and
    (k - 1) (N - 1) degrees of freedom (Demšar 2006, eqs. 2 and 3).
    """
    rows = []
    for rule in (PLAIN, RESCUE):
        values = _means(selected, rule, oracle).drop("method").to_numpy()
        k, n = values.shape
        average = rankdata(-values, axis=0).mean(axis=1)
        chi = 12 * n / (k * (k + 1)) * ((average**2).sum() - k * (k + 1) ** 2 / 4)
        left = n * (k - 1) - chi
        f = (n - 1) * chi / left if left > 1e-9 else math.inf
        p = float(f_distribution.sf(f, k - 1, (k - 1) * (n - 1))) if n > 1 else math.nan
        rows.append({"rule": rule, "methods": k, "sets": n, "χ²": float(chi), "F": float(f), "p": p})
    return pl.DataFrame(rows)


def failures(selected: pl.DataFrame, by: str = "method") -> pl.DataFrame:
    """A row a method, or set: how many runs have an F1 below 0.1, by rule, with Wilson's interval of the share."""
    rows = []
    for (one,), group in selected.group_by(by, maintain_order=True):
        row: dict[str, object] = {by: one}
        for rule in (RESCUE, PLAIN):
            f1 = group.filter(pl.col("selection") == rule)["f1"]
            low = int((f1 < LOW).sum())
            least, most = wilson(low, len(f1))
            row[rule] = f"{low} of {len(f1)} [{least:.3f}, {most:.3f}]"
        rows.append(row)
    return pl.DataFrame(rows)


def regression(selected: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """The average over sets of F1 of the soft label minus that of Fixed, in points, under both rules.

    d = Σ_s d̄_s / S with d̄_s the mean of set s over its seeds. Sets are independent, so d has the variance
    Σ_s v_s / n_s / S² and, by Welch and Satterthwaite, an interval of Student's t. ``published`` is the same average of
    one run a set.
    """
    wide = selected.filter(pl.col("method").is_in([FIXED, SOFT])).pivot(
        "method", index=["dataset", "seed", "selection"], values="f1"
    )
    there = wide.drop_nulls().with_columns(d=100 * (pl.col(SOFT) - pl.col(FIXED)))
    one = known.filter((pl.col("source") == SEED) & pl.col("method").is_in([FIXED, SOFT]))
    of_one = one.pivot("method", index="dataset", values="f1").with_columns(d=100 * (pl.col(SOFT) - pl.col(FIXED)))
    rows = []
    for name, left_out in (("all", ()), ("without the two small ones", SMALL)):
        for rule in (RESCUE, PLAIN):
            part = there.filter((pl.col("selection") == rule) & ~pl.col("dataset").is_in(left_out))
            sets = part["dataset"].unique().to_list()
            mean, low, high = _average([group["d"].to_numpy() for _, group in part.group_by("dataset")])
            row = {"sets": f"{name} ({len(sets)})", "rule": rule, "difference": mean, "low": low, "high": high}
            rows.append(row | {"published": of_one.filter(pl.col("dataset").is_in(sets))["d"].mean()})
    return pl.DataFrame(rows)


def _average(sets: list[np.ndarray]) -> tuple[float, float, float]:
    """The average of the means of independent samples, and its 95 % interval; NaN where a sample has one value."""
    mean = float(np.mean([values.mean() for values in sets])) if sets else math.nan
    if not sets or min(map(len, sets)) < 2:
        return mean, math.nan, math.nan
    parts = np.array([values.var(ddof=1) / len(values) for values in sets]) / len(sets) ** 2
    spread = parts.sum()
    if spread == 0:
        return mean, mean, mean
    freedom = spread**2 / sum(v**2 / (len(values) - 1) for v, values in zip(parts, sets, strict=True))
    half = float(student.ppf(0.975, freedom) * math.sqrt(spread))
    return mean, mean - half, mean + half


def pooled(selected: pl.DataFrame, known: pl.DataFrame, selection: str = RESCUE) -> pl.DataFrame:
    """Mean F1 of all runs beside that of 30 runs of the public code, and whether within two of its deviations.

    Those 30 are ten seeds at each c of .1, .3 and .5.
    """
    ours = (
        selected.filter(pl.col("selection") == selection)
        .group_by("dataset", "method", maintain_order=True)
        .agg(pl.col("f1").cast(pl.Float64).mean().alias("mean"), pl.len().alias("runs"))
    )
    many = known.filter(pl.col("source") == "30 runs").select(
        "dataset", "method", pl.col("f1").alias("published"), "sd"
    )
    joined = ours.join(many, on=["dataset", "method"], how="inner", maintain_order="left")
    away = pl.col("mean") - pl.col("published")
    return joined.with_columns(difference=away, within=away.abs() <= 2 * pl.col("sd"))


def agreement(table: pl.DataFrame) -> pl.DataFrame:
    """A row a set of :func:`beside`: published runs within our range, and how far they lie from our means."""
    away = pl.col("published") - pl.col("mean")
    return table.group_by("dataset", maintain_order=True).agg(
        pl.len().alias("methods"),
        pl.col("inside").sum().alias("inside our range"),
        away.mean().alias("published minus ours"),
        away.abs().max().alias("largest distance"),
    )


def unfinished(results: Results, selected: pl.DataFrame, name: str = "scar") -> pl.DataFrame | None:
    """A row a set that lacks runs: how many are there, of how many; None if none is missing."""
    settings = config.load(results.configs / f"{name}.yaml")
    wanted = pl.DataFrame({"dataset": [cell.dataset for cell, _ in config.runs_of(config.expand(settings))]})
    there = selected.unique(["dataset", "method", "seed"]).group_by("dataset").len("finished")
    counts = wanted.group_by("dataset", maintain_order=True).len("of").join(there, on="dataset", how="left")
    left = counts.with_columns(pl.col("finished").fill_null(0)).filter(pl.col("finished") < pl.col("of"))
    return None if left.is_empty() else left.select("dataset", "finished", "of")


def share(whole: pl.DataFrame, part: pl.DataFrame, selection: str = PLAIN) -> pl.DataFrame:
    """Methods on Connect-4, all rows and a fifth: mean F1 and rank in each."""
    columns = []
    for name, frame in (("all rows", whole), ("a fifth", part)):
        there = frame.filter((pl.col("dataset") == "connect4") & (pl.col("selection") == selection))
        means = there.group_by("method", maintain_order=True).agg(pl.col("f1").mean().alias(name))
        columns.append(means.with_columns(pl.col(name).rank(descending=True).alias(f"rank, {name}")))
    return columns[0].join(columns[1], on="method", how="inner", maintain_order="left")


def by_size(selected: pl.DataFrame) -> pl.DataFrame:
    """A row a set and rule: the share of runs of all methods whose F1 is below 0.1."""
    low = pl.col("f1").cast(pl.Float64) < LOW
    found = selected.group_by("selection", "dataset", maintain_order=True).agg(low.mean().alias("share"))
    return found.pivot("dataset", index="selection", values="share")
