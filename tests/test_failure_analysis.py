"""The failure analysis from finished folders, and the tables of claims and rules in every report."""

import re
from pathlib import Path

import polars as pl
import pytest
from jaxpu.plots.phase import grid_axes
from jaxpu.report.claims import claims_markdown, rules_markdown
from jaxpu.report.headlines import headlines
from jaxpu.report.practice import practice
from jaxpu.results import ResultsError
from matplotlib.figure import Figure
from problems import tiny

from jaxpu import config, report
from jaxpu.analysis import summary
from jaxpu.plots import NothingToShow, phase_diagram
from jaxpu.report import failure, parts

ROOT = Path(__file__).parents[1]


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The committed results in a place of their own; the figures of the theory have tests of their own."""
    monkeypatch.setattr(failure, "FIGURES", {"penalty_slopes": lambda: Figure(figsize=(1, 1))})
    for part in failure.PARTS:
        if (ROOT / "results" / part.experiment / "claims.csv").exists():
            (tmp_path / part.experiment).symlink_to(ROOT / "results" / part.experiment)
    return tmp_path


def test_every_part_has_its_configuration_and_it_can_be_judged():
    for part in failure.PARTS:
        experiment = config.load(ROOT / "configs" / f"{part.experiment}.yaml")
        config.check_claims(experiment)
        assert experiment.claims, part.experiment
        assert experiment.seeds >= 30, "every verdict stands on at least 30 seeds"
        assert parts.head_of(ROOT / "configs" / f"{part.experiment}.yaml"), "claim and test stand in its head"


def test_the_analysis_says_what_the_folders_say(results):
    page = failure.write_failure_analysis(results, ROOT / "configs")
    text = (page.parent / "report.md").read_text()
    there = [part for part in failure.PARTS if (results / part.experiment).exists()]
    for part in there:
        claims = pl.read_csv(results / part.experiment / "claims.csv")
        assert f"## {part.heading}" in text
        for row in claims.iter_rows(named=True):
            assert text.count(f"**{row['verdict']}** | {row['estimate']:.3f} [{row['ci_low']:.3f}") >= 1
    for part in failure.PARTS:
        assert (part in there) or part.experiment in text.split("Not run yet:")[1]
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (page.parent / link).exists(), link
    html = page.read_text()
    assert not re.search(r'(src|href)="(?!data:|\.\./)[^"#]', html), "the page needs no other file and no network"
    before = page.read_bytes()
    assert failure.write_failure_analysis(results, ROOT / "configs").read_bytes() == before


def test_without_any_result_it_says_what_to_run(tmp_path):
    with pytest.raises(ResultsError, match=r"run scripts/reproduce\.py"):
        failure.write_failure_analysis(tmp_path, ROOT / "configs")


SELECTED = pl.DataFrame(
    {
        "dataset": "gaussians",
        "method": ["vpu"] * 8,
        "cell": ["c=0.1 lr=1", "c=0.1 lr=2", "c=0.5 lr=1", "c=0.5 lr=2"] * 2,
        "seed": [0] * 4 + [1] * 4,
        "selection": "last",
        "f1": [0.05, 0.8, 0.9, 0.9, 0.6, 0.7, 0.9, float("nan")],
        "regret": [0.5, 0.1, 0.0, 0.0, 0.3, 0.1, 0.0, 0.0],
        "verdict": ["selection_artefact"] + ["healthy"] * 7,
    }
)


LAST = tiny(selection={"rules": ["last"], "default": "last"}).selection


def test_rules_are_compared_over_seeds_not_over_runs():
    [row] = summary.compare_rules(SELECTED, LAST).iter_rows(named=True)
    assert (row["n_seeds"], row["n_runs"], row["below"], row["artefacts"]) == (2, 8, 2, 1)
    assert row["regret"] == pytest.approx(1.0 / 8)
    assert row["regret_low"] <= 0.1 <= 0.15 <= row["regret_high"], "of the two seeds' means, 0.15 and 0.1"
    three = pl.concat([summary.compare_rules(SELECTED, LAST)] * 3)
    text = rules_markdown(three)
    assert text.count("last epoch") == 3
    assert "| 0.125 [" in text
    assert rules_markdown(three.head(2)) == "", "two rules need no table of their own"


def test_advice_has_the_numbers_of_the_folders():
    text = practice(ROOT / "results")
    rules = pl.read_csv(ROOT / "results/selection_noise/rules.csv").sort("regret")
    for rule in ("val_f1@0.01", "val_f1@0.2", "pu_accuracy@0.01", "pu_accuracy@0.2"):
        row = rules.filter(selection=rule).row(0, named=True)
        share = 100 * float(rule.partition("@")[2])
        assert f"{row['regret']:.3f} [{row['regret_low']:.3f}, {row['regret_high']:.3f}] with {share:g} %" in text
    f1 = pl.read_csv(ROOT / "results/prior_misspecification/summary.csv").filter(selection="last", metric="f1")
    for method in ("vpu", "vpudra_softlabel"):
        cells = [f1.filter(method=method, cell=f"prior_scale={scale}")["mean"][0] for scale in ("1.0", "0.5", "1.5")]
        [line] = re.findall(rf"`{method}` (\d[^;\n]*)", text)
        assert re.findall(r"(\d\.\d{3}) \[", line) == [f"{value:.3f}" for value in cells]
    assert "does not use it" in text


def test_a_phase_diagram_needs_two_settings_and_counts_runs_without_an_f1():
    assert grid_axes(SELECTED) == ["c", "lr"]
    figure = phase_diagram(SELECTED, "last")
    texts = {text.get_text() for axis in figure.axes for text in axis.texts}
    assert {"50 %", "0 %", "0.75", "0.33"} - texts == {"0.33"}
    assert "1 of 2 runs" in figure.get_suptitle()
    with pytest.raises(NothingToShow, match="fewer than two settings"):
        phase_diagram(SELECTED.with_columns(pl.col("cell").str.split(" ").list.first()), "last")


def test_claims_and_rules_stand_on_the_page():
    experiment = tiny(claims=[{"claim": "a | b <i>", "of": {}, "at_least": 0.1}])
    claims = pl.DataFrame(
        {
            "claim": "a | b <i>",
            "source": "me",
            "question": "mean f1: all",
            "bound": ">= 0.1",
            "n": 2,
            "estimate": 0.5,
            "ci_low": 0.4,
            "ci_high": 0.6,
            "p": 0.001,
            "p_holm": 0.0005,
            "verdict": "supported",
        }
    )
    text = claims_markdown(claims)
    assert "a \\| b &lt;i> (me)" in text
    assert "| 0.500 [0.400, 0.600], n = 2 | ≥ 0.1 | &lt; 0.001 | **supported** |" in text
    rules = pl.concat([summary.compare_rules(SELECTED, LAST)] * 3)
    empty = pl.DataFrame()
    page = report.html(empty, empty, empty, empty, {}, config.to_dict(experiment), rules=rules, claims=claims)
    assert "a | b &lt;i&gt; (me)" in page
    assert 'class="verdict healthy">supported' in page
    assert "Selection rules compared" in page
    bare = report.html(empty, empty, empty, empty, {}, config.to_dict(experiment))
    assert "What was claimed" not in bare
    assert "Selection rules compared" not in bare


def test_three_failures_stand_side_by_side_as_their_folders_say(tmp_path):
    assert headlines(tmp_path) == ""
    (tmp_path / "high_filter").mkdir()
    row = {"accuracy": 0.5, "roc_auc": 0.6, "kept": 0.25, "verdict": "self_reinforcing"}
    student = {"method": "high", "cell": "teacher=mixup sees=all"} | row
    other = {"method": "none", "cell": "", "accuracy": 0.98, "roc_auc": 1.0, "kept": 1.0, "verdict": "healthy"}
    pl.DataFrame([student, student, other]).write_parquet(tmp_path / "high_filter" / "runs.parquet")
    text = headlines(tmp_path)
    assert (
        "| seed 001, high filter, teacher with mixup | accuracy 0.500 (without a filter 0.980), ROC-AUC 0.600" in text
    )
    assert "keeps 0.25 of the pairs | self reinforcing 2 of 2 |" in text
    assert "seed 003, ensemble" not in text
    (tmp_path / "cf_inverted").mkdir()
    ends = {"pr_auc": 0.07, "roc_auc": 0.0, "iterations": 100, "verdict": "stopped_early"}
    runs = [
        ends | {"healthy_at": 8000},
        ends | {"healthy_at": 9000},
        ends | {"healthy_at": None, "verdict": "inverted"},
    ]
    pl.DataFrame(runs).write_parquet(tmp_path / "cf_inverted" / "runs.parquet")
    text = headlines(tmp_path)
    assert "PR-AUC 0.070, ROC-AUC 0.000 after 100 updates | 2 of 3 are healthy after 8,500 updates (median) |" in text
    assert "| stopped early 2, inverted 1 of 3 |" in text
    whole = headlines(ROOT / "results")
    for seed, verdict in (("000", "selection artefact "), ("001", "self reinforcing")):
        [line] = [line for line in whole.splitlines() if line.startswith(f"| seed {seed}")]
        assert verdict in line
