"""Acceptance by extension: a metric that appears in table and page is one file, and so is a figure."""

from pathlib import Path

import polars as pl
import pytest

from jaxpu import api, config
from jaxpu.report import experiment as pages

pytestmark = pytest.mark.slow  # one sweep with its page

MINE = {
    "name": "mine",
    "data": {"name": "gaussians", "options": {"n": 120}},
    "model": {"name": "linear"},
    "training": {"epochs": 2, "lr": 0.1},
    "selection": {"rules": ["last"], "default": "last"},
    "seeds": 2,
    "probes": ["own_metric:false_positive_rate"],
    "figures": [{"kind": "own_figure:f1_by_seed", "caption": "F1 of every seed."}],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        experiment, made = config.parse(MINE), tmp_path_factory.mktemp("mine")
        outcome = api.sweep(experiment, folder=made)
        pages.publish(made, experiment, outcome.runs, outcome.provenance)
    return made


def test_a_metric_of_ones_own_is_recorded_summarised_and_shown(folder):
    runs, summary = pl.read_parquet(folder / "runs.parquet"), pl.read_csv(folder / "summary.csv")
    [column] = [name for name in runs.columns if name.startswith("probe_")]
    last = runs.filter(pl.col("epoch") == 2)
    # of the recorded metrics alone: negatives called positive = predicted - recall * positives, in shares of the rows
    positive = 1 - last["test_oracle_accuracy"] - last["test_predicted_positive"]
    hits = last["test_predicted_positive"] * last["test_oracle_precision"]
    positive += 2 * hits
    expected = (last["test_predicted_positive"] - hits) / (1 - positive)
    assert last[column].to_list() == pytest.approx(expected.to_list(), abs=1e-5)
    [row] = summary.filter(pl.col("metric") == column).iter_rows(named=True)
    assert row["mean"] == pytest.approx(last[column].mean(), abs=1e-5)
    shown = f"{row['mean']:.3f}"
    page, table = ((folder / name).read_text() for name in ("report.html", "table.md"))
    assert "false positive rate" in page
    assert shown in page
    assert "false positive rate" in table
    assert shown in table


def test_a_figure_of_ones_own_is_on_the_page_with_its_alternative_text(folder):
    page = (folder / "report.html").read_text()
    assert "F1 of every seed." in page
    assert "F1 of 2 seeds is at least" in page
    assert (folder / "figures" / "f1_by_seed.svg").exists()
