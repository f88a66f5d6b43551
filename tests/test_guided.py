"""Experiments on guided training: what a run leaves, that seeds stand alone, and the command."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from polars.testing import assert_frame_equal

from jaxpu import cli, collapse, config, study
from jaxpu.config.guided import GuidedExperiment
from jaxpu.study import guided

SMALL = {
    "kind": "guided",
    "name": "small",
    "teachers": ["mixup"],
    "sees": ["all"],
    "hidden": [8],
    "epochs": 4,
    "seeds": 2,
    "claims": [{"claim": "It starves.", "of": {"method": "high"}, "metric": "kept", "at_most": 0.5}],
}


@pytest.fixture(autouse=True, scope="module")
def one_seed_a_part():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guided, "TOGETHER", 1)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guided")
    experiment = config.validate(GuidedExperiment, SMALL)
    return folder, experiment, study.run_guided(experiment, folder, watch=lambda line: None)


def test_a_run_records_every_student_of_every_seed(finished):
    _, experiment, outcome = finished
    identity = outcome.runs.select("method", "teacher", "sees", "seed").rows()
    students = [("none", None, None)] + [(name, "mixup", "all") for name in experiment.filters]
    numbers = {name for name, kind in outcome.runs.schema.items() if kind.is_numeric()} - {"seed"}
    assert numbers <= {*GuidedExperiment.METRICS}, "so that claims can be checked before training"
    assert identity == [(*student, seed) for seed in (0, 1) for student in students]
    assert outcome.paths.height == len(students) * experiment.epochs
    last = outcome.paths.filter(pl.col("epoch") == experiment.epochs)
    ends = outcome.runs.group_by("method", "teacher", "sees", maintain_order=True).agg(pl.col("accuracy").median())
    np.testing.assert_allclose(last["accuracy"], ends["accuracy"], rtol=1e-5)
    kept = {
        method: outcome.runs.filter(method=method)["kept"].to_numpy() for method in ("none", "whole", "low", "high")
    }
    assert (kept["none"] == 1).all()
    assert (kept["whole"] == 1).all()
    assert (kept["low"] > 0.5).all(), "a teacher that has seen everything is better than a student of four epochs"
    assert (kept["high"] < 0.5).all()
    none = outcome.runs.filter(method="none")
    assert (none["accuracy"] > 0.8).all()
    assert set(none["verdict"]) == {"healthy"}


def test_a_seed_alone_is_the_same_seed_among_others(finished, tmp_path):
    _, experiment, outcome = finished
    alone = study.run_guided(dataclasses.replace(experiment, seeds=1, first_seed=1), tmp_path, watch=lambda line: None)
    assert_frame_equal(alone.runs, outcome.runs.filter(seed=1), rel_tol=1e-4)


def test_a_student_that_its_filter_starves_is_self_reinforcing():
    epochs = 6
    course = {
        "oracle_f1": np.zeros(epochs),
        "oracle_f1_best": np.full(epochs, 0.67),
        "oracle_auc": np.full(epochs, 0.5),
        "predicted_positive": np.zeros(epochs),
        "score_sd": np.full(epochs, 1e-5),
        "prevalence": np.full(epochs, 0.5),
        "score_mean": np.linspace(0.5, 0.1, epochs),
        "kept": np.full(epochs, 0.01),
    }
    assert guided._end(course)["verdict"] == "self_reinforcing"
    assert guided._end(course | {"kept": np.full(epochs, 0.9)})["verdict"] == str(collapse.Verdict.ALL_NEGATIVE)


def test_the_command_goes_on_after_an_interruption_and_rewrites_it(finished, tmp_path, capsys, monkeypatch):
    path, folder = tmp_path / "small.yaml", Path("results/small")
    path.write_text(yaml.safe_dump(SMALL))
    monkeypatch.chdir(tmp_path)
    frame = guided._frame

    def called(*words):
        with pytest.raises(SystemExit) as end:
            cli.main(list(words))
        return end.value.code, *capsys.readouterr()

    def interrupted(experiment, seeds, *arrays):
        if seeds == [1]:
            raise KeyboardInterrupt
        return frame(experiment, seeds, *arrays)

    monkeypatch.setattr(guided, "_frame", interrupted)
    code, _, err = called("run", str(path))
    assert code == 130
    assert "results/small keeps what is done. Go on with: jaxpu" in err
    monkeypatch.setattr(guided, "_frame", frame)
    code, out, err = called("run", str(path))
    assert code == 0
    assert "1 of 2 parts are finished already and kept" in err
    assert "seeds 1 to 1" in err
    assert "seeds 0 to 0" not in err
    assert_frame_equal(pl.read_parquet(folder / "runs.parquet"), finished[2].runs)
    again = called("report", str(folder))
    assert again == (0, out, "")
    assert "supported: It starves." in out
    assert out.rstrip().endswith("page: results/small/report.html")
    assert json.loads((folder / "provenance.json").read_text())["compile_seconds"] >= 0
    left = {"config.yaml", "provenance.json", "runs.parquet", "paths.csv", "summary.csv", "verdicts.csv", "claims.csv"}
    assert {p.name for p in folder.iterdir()} >= left | {"table.md", "report.html", "figures"}


def test_claims_about_runs_that_are_not_there_are_refused():
    raw = SMALL | {"claims": [{"claim": "c", "of": {"method": "hihg"}, "metric": "kept", "at_most": 0.5}]}
    with pytest.raises(config.ConfigError, match=r"unknown method 'hihg' \(did you mean 'high'\?\)"):
        config.check_claims(config.validate(GuidedExperiment, raw))
    with pytest.raises(config.ConfigError, match=r"filters.0: Input should be 'whole', 'low' or 'high', got 'lwo'"):
        config.validate(GuidedExperiment, SMALL | {"filters": ["lwo"]})
