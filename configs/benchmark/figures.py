"""The table of nine data sets beside the published figures, ranks with a critical difference, and rates of failure.

``scripts/reproduce.py`` calls ``tables``. ``published.csv`` has the figures of the public code behind the table: one
run of each method (the table itself), and the means and deviations of 30 runs (ten seeds at c = .1, .3 and .5).
"""

import math
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import rankdata, studentized_range

from jaxpu.analysis.stats.estimates import mean_interval, wilson
from jaxpu.report.study import Results

SEED, FIXED, SOFT = "one run", "vpudra_fixed", "vpudra_softlabel"
RESCUE, PLAIN = "val_f1_rescue", "val_f1"
LOW = 0.1
SMALL = ("cifar10", "alzheimer_mri")
"""The two sets that are trained at sizes for two cores, three seeds each."""


def tables(results: Results) -> dict[str, pl.DataFrame]:
    """The tables that the text places, of the experiments that are there."""
    found = {name: results.frame(name, "selected").collect() for name in results.done}
    made: dict[str, pl.DataFrame] = {}
    scar = _scored(found["scar"]) if "scar" in found else None
    if scar is not None:
        both = pl.concat([scar, *(_scored(found[name]) for name in ("scar_large",) if name in found)])
        made |= {
            "beside": beside(both, published()),
            "scores": scores(both),
            "ranks": ranks(scar),
            "failures": failures(scar),
            "regression": regression(both),
        }
    if "vary_c" in found:
        made["originals"] = pooled(found["vary_c"], published())
    if scar is not None and "connect4_share" in found:
        made["share"] = share(scar, _scored(found["connect4_share"]))
    if "validation" in found:
        made["validation"] = by_size(found["validation"])
    return made


def published() -> pl.DataFrame:
    """The figures of the public code: source, dataset, method, f1, sd."""
    return pl.read_csv(Path(__file__).parent / "published.csv", infer_schema_length=None)


def _scored(selected: pl.DataFrame) -> pl.DataFrame:
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
        rows.setdefault(str(method), {})[str(dataset)] = f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"
    columns = there["dataset"].unique(maintain_order=True).to_list()
    return pl.DataFrame([{"method": m, **{c: cells.get(c, "") for c in columns}} for m, cells in rows.items()])


def ranks(selected: pl.DataFrame, selection: str = PLAIN, oracle: str = "pn") -> pl.DataFrame:
    """Average ranks of methods over sets by their mean F1, 1 = best, and what differs from the best one.

    Two average ranks over N sets of k methods differ by chance by less than q √(k (k + 1) / (6 N)) in 95 of 100 cases
    (Demšar 2006; q is the quantile of the studentized range over √2). The oracle, which sees true labels, is left out.
    """
    there = selected.filter((pl.col("selection") == selection) & (pl.col("method") != oracle))
    means = there.group_by("method", "dataset", maintain_order=True).agg(pl.col("f1").mean())
    wide = means.pivot("dataset", index="method", values="f1").drop_nulls()
    values = wide.drop("method").to_numpy()
    average = rankdata(-values, axis=0).mean(axis=1)
    k, n = values.shape
    critical = studentized_range.ppf(0.95, k, math.inf) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n))
    frame = pl.DataFrame({"method": wide["method"], "average rank": average})
    within = pl.col("average rank") <= average.min() + critical
    return frame.with_columns(pl.lit(critical).alias("critical difference"), like_the_best=within).sort("average rank")


def failures(selected: pl.DataFrame) -> pl.DataFrame:
    """A row a method: how many runs have an F1 below 0.1, by rule, with Wilson's interval of the share."""
    rows = []
    for (method,), group in selected.group_by("method", maintain_order=True):
        row: dict[str, object] = {"method": method}
        for rule in (RESCUE, PLAIN):
            f1 = group.filter(pl.col("selection") == rule)["f1"]
            low = int((f1 < LOW).sum())
            least, most = wilson(low, len(f1))
            row[rule] = f"{low} of {len(f1)} [{least:.3f}, {most:.3f}]"
        rows.append(row)
    return pl.DataFrame(rows)


def regression(selected: pl.DataFrame) -> pl.DataFrame:
    """The average over sets of F1 of the soft label minus that of Fixed, in points, under both rules.

    A seed's difference is averaged over the sets that have it; the interval is that of the mean over such seeds.
    """
    rows = []
    for name, part in (
        ("all", selected),
        ("without the two small ones", selected.filter(~pl.col("dataset").is_in(SMALL))),
    ):
        for rule in (RESCUE, PLAIN):
            there = part.filter((pl.col("selection") == rule) & pl.col("method").is_in([FIXED, SOFT]))
            wide = there.pivot("method", index=["dataset", "seed"], values="f1").drop_nulls()
            sets = wide["dataset"].n_unique()
            by_seed = wide.with_columns(d=100 * (pl.col(SOFT) - pl.col(FIXED))).group_by("seed").agg(
                pl.col("d").mean(), pl.len()
            )  # fmt: skip
            values = by_seed.filter(pl.col("len") == sets)["d"].to_numpy()
            low, high = mean_interval(values)
            row = {
                "sets": f"{name} ({sets})",
                "rule": rule,
                "difference": float(np.mean(values)) if len(values) else None,
            }
            rows.append(row | {"low": low, "high": high, "seeds": len(values)})
    return pl.DataFrame(rows)


def pooled(selected: pl.DataFrame, known: pl.DataFrame, selection: str = RESCUE) -> pl.DataFrame:
    """Mean F1 over c = .1, .3 and .5 beside 30 runs of the public code, and whether within two of its deviations."""
    there = selected.filter((pl.col("selection") == selection) & pl.col("data.c").is_in([0.1, 0.3, 0.5]))
    ours = there.group_by("dataset", "method", maintain_order=True).agg(
        pl.col("f1").cast(pl.Float64).mean().alias("mean"), pl.len().alias("runs")
    )
    many = known.filter(pl.col("source") == "30 runs").select(
        "dataset", "method", pl.col("f1").alias("published"), "sd"
    )
    joined = ours.join(many, on=["dataset", "method"], how="inner", maintain_order="left")
    return joined.with_columns(within=(pl.col("mean") - pl.col("published")).abs() <= 2 * pl.col("sd"))


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
