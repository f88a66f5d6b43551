"""The benchmark's tables from made-up runs whose answers are known, and its page."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.stats
import yaml

from jaxpu.report import write_study

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import reproduce

STUDY = ROOT / "configs" / "benchmark"
figures = reproduce.own_figures(STUDY)
F1 = {"pn": 0.95, "vpudra_fixed": 0.85, "vpudra_softlabel": 0.8, "nnpu": 0.7}


def runs(datasets=("spambase", "mushrooms", "imdb"), seeds=4, **changed):
    """Every method on every set: its F1 of ``F1`` plus a hundredth a seed, and 0.02 in one run of the soft label."""
    rows = [
        {"dataset": d, "method": m, "seed": s, "selection": rule, "f1": changed.get(m, f1) + s / 100}
        for d in datasets
        for m, f1 in F1.items()
        for s in range(seeds)
        for rule in ("val_f1_rescue", "val_f1")
    ]
    low = (pl.col("dataset") == "spambase") & (pl.col("method") == "vpudra_softlabel") & (pl.col("seed") == 0)
    low &= pl.col("selection") == "val_f1_rescue"
    return pl.DataFrame(rows).with_columns(f1=pl.when(low).then(0.02).otherwise("f1"))


def test_published_figures_are_those_of_the_table():
    known = figures.published()
    one = known.filter((pl.col("source") == "one run") & (pl.col("method") == "vpudra_softlabel"))
    assert one["f1"].mean() == pytest.approx(0.7776, abs=1e-4), "the average that the note gives"
    assert known.filter(pl.col("method") == "vpudra_fixed")["f1"].mean() == pytest.approx(0.8695, abs=1e-4)
    assert known.filter(pl.col("source") == "30 runs")["sd"].is_not_null().all()


def test_ours_stand_beside_the_published_run():
    table = figures.beside(runs(), figures.published())
    row = table.row(
        by_predicate=(pl.col("dataset") == "spambase") & (pl.col("method") == "vpudra_softlabel"), named=True
    )
    assert row["published"] == 0.0218
    assert row["lowest"] == 0.02
    assert row["median"] == pytest.approx(0.815)
    assert row["inside"]
    assert figures.by_set(table).filter(pl.col("method") == "vpudra_softlabel")["mushrooms"].item() == ".815 / .984"
    assert not table.filter(pl.col("method") == "nnpu")["inside"].any()


def test_ranks_are_averages_and_the_critical_difference_is_demsars():
    selected = runs(datasets=tuple("abcdefghijklmn"))  # 14 sets
    table = figures.ranks(selected)
    assert table["method"].to_list() == ["vpudra_fixed", "vpudra_softlabel", "nnpu"], "the oracle takes no part"
    assert table["average rank"].to_list() == [1, 2, 3]
    # q of three methods is 2.343 in Demšar's table 5a
    assert table["critical difference"][0] == pytest.approx(2.343 * math.sqrt(3 * 4 / (6 * 14)), abs=1e-3)
    assert table["like_the_best"].to_list() == [True, False, False] == (table["average rank"] <= 1.886).to_list()


def test_failures_and_the_regression_are_counted_under_both_rules():
    table = figures.failures(runs())
    soft = table.row(by_predicate=pl.col("method") == "vpudra_softlabel", named=True)
    assert soft["val_f1_rescue"].startswith("1 of 12 [0.01")
    assert soft["val_f1"].startswith("0 of 12 [0.000")
    table = figures.regression(pl.concat([runs(), runs(datasets=("cifar10",), seeds=2)]), figures.published())
    assert table["sets"].to_list() == ["all (4)"] * 2 + ["without the two small ones (3)"] * 2
    of_spambase = np.array([100 * (0.02 - 0.85), -5, -5, -5])
    assert table["difference"][2] == pytest.approx((of_spambase.mean() - 10) / 3)
    # only Spambase varies, so the interval is that of its four values, a third as wide
    half = scipy.stats.t.ppf(0.975, 3) * of_spambase.std(ddof=1) / 2 / 3
    assert table["high"][2] - table["low"][2] == pytest.approx(2 * half)
    assert table.row(3)[2:5] == pytest.approx((-5, -5, -5))
    everything = figures.regression(
        runs(datasets=figures.published()["dataset"].unique().to_list()), figures.published()
    )
    assert everything["published"][0] == pytest.approx(-9.19, abs=0.01), "the average that the note gives"


def test_friedman_is_demsars_and_ranks_are_of_whole_sets():
    # ranks of four methods on 14 sets as in Demšar's table 2 would need his values; the formula on known ranks instead
    f1 = {"a": [0.9, 0.8, 0.7], "b": [0.8, 0.7, 0.8], "c": [0.1, 0.2, 0.3]}
    rows = [
        {"dataset": f"d{i}", "method": m, "seed": s, "selection": rule, "f1": values[i]}
        for m, values in f1.items() for i in range(3) for s in range(2) for rule in ("val_f1", "val_f1_rescue")
    ]  # fmt: skip
    table = figures.friedman(pl.DataFrame(rows))
    chi = scipy.stats.friedmanchisquare(*f1.values()).statistic
    assert table["χ²"].to_list() == pytest.approx([chi, chi])
    assert table["F"][0] == pytest.approx(2 * chi / (3 * 2 - chi))
    assert table["p"][0] == pytest.approx(scipy.stats.f.sf(2 * chi / (6 - chi), 2, 4))
    some = pl.DataFrame([row for row in rows if row["dataset"] != "d2" or row["method"] == "c"])
    assert figures.friedman(some)["sets"].to_list() == [2, 2], "a set that lacks methods takes no part"


def test_many_runs_are_pooled_over_the_label_frequencies_that_were_published():
    frames = [
        runs(nnpu=v).with_columns(pl.lit(c).alias("data.c"))
        for c, v in ((0.01, 0.1), (0.1, 0.8), (0.3, 0.9), (0.5, 0.97))
    ]
    frequent = pl.concat(frames).filter(pl.col("data.c") >= 0.1)
    table = figures.pooled(frequent, figures.published())
    row = table.row(by_predicate=(pl.col("dataset") == "mushrooms") & (pl.col("method") == "nnpu"), named=True)
    assert row["runs"] == 12
    assert row["mean"] == pytest.approx(0.89 + 0.015)
    assert (row["published"], row["sd"], row["within"]) == (0.962, 0.011, False)
    assert table.filter((pl.col("dataset") == "spambase") & (pl.col("method") == "nnpu"))["within"].all()


def test_a_part_of_the_rows_is_ranked_beside_all_of_them():
    whole, part = runs(datasets=("connect4",)), runs(datasets=("connect4",), nnpu=0.9)
    table = figures.share(whole, part)
    nnpu = table.row(by_predicate=pl.col("method") == "nnpu", named=True)
    assert (nnpu["rank, all rows"], nnpu["rank, a fifth"]) == (4, 2)


def test_the_page_is_written_from_what_is_there(tmp_path):
    folder = tmp_path / "scar"
    folder.mkdir()
    runs().with_columns(test_oracle_auc=pl.lit(0.9), verdict=pl.lit("healthy")).write_csv(folder / "selected.csv")
    claim = {"claim": "It holds.", "source": "a note", "item": "", "bound": ">= 0.5", "n": 4, "estimate": 0.5,
             "ci_low": 0.4, "ci_high": 0.6, "p": 0.01, "p_holm": 0.01, "verdict": "refuted"}  # fmt: skip
    pl.DataFrame([claim]).write_csv(folder / "claims.csv")
    settings = {"name": "scar", "selection": {"rules": ["val_f1", "val_f1_rescue"], "default": "val_f1"}}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    provenance = {"command": "jaxpu run scar", "commit": "01", "dirty": False, "runs": 96, "seeds": 4, "device": "cpu"}
    (folder / "provenance.json").write_text(json.dumps(provenance | {"compile_seconds": 1.0, "run_seconds": 2.0}))
    page = write_study(STUDY, tmp_path, figures).read_text(encoding="utf-8")
    for text in (
        "Unfinished:<",
        "published runs (crosses) lie within the range of ours",
        "critical difference",
        "1 of 12",
        "without the two small ones (3)",
        "Not run yet: connect4_share",
        "0.022",
    ):
        assert text in page
    assert "Is it difficulty" not in page
