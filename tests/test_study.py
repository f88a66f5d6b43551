"""Experiments on ensembles: configurations, runs, tables, claims and the page, by the same commands as any other."""

import json
import typing
from pathlib import Path

import jax
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from jaxpu import config, data, ensemble, models, results, study, sweep
from jaxpu.analysis.check import check
from jaxpu.cli import main
from jaxpu.config import ConfigError
from jaxpu.config import ensemble as ensemble_config
from jaxpu.config.ensemble import (
    EnsembleExperiment,
    EnsembleMethod,
    FactorsConfig,
    RatingsConfig,
)
from jaxpu.report import cf_ensemble, parts
from jaxpu.results import ResultsError
from jaxpu.study import ensembles, sources, transient

ROOT = Path(__file__).parents[1]
AT_TEN = {"method": "als", "where": {"ratings.rate": 0.1}}
TINY = {
    "kind": "ensemble",
    "name": "tiny",
    "ratings": {"n": 120, "classifiers": 6},
    "factors": {"dim": 4},
    "methods": [
        {"trainer": "als", "lr": 0.05},
        {"trainer": "als", "name": "weighted", "lr": 0.05, "class_weights": 1.0},
        "mean",
    ],
    "grid": {"ratings.rate": [0.5, 0.1]},
    "seeds": 4,
    "continue_to": 40000,
    "claims": [
        {"claim": "Upside down.", "of": AT_TEN, "metric": "roc_auc", "below": 0.2, "at_least": 0.4},
        {"claim": "Healed.", "of": AT_TEN, "verdicts": ["stopped_early"], "at_least": 0.4},
    ],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "tiny.yaml").write_text(json.dumps(TINY))
    with pytest.raises(SystemExit) as left:
        main(["run", str(folder / "tiny.yaml"), "--out", str(folder / "out"), "--quiet"])
    assert left.value.code == 0
    return folder / "out"


def experiment(**changes):
    return config.validate(EnsembleExperiment, {**TINY, **changes})


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("cf_*.yaml")), ids=lambda p: p.stem)
def test_committed_configurations_are_valid_and_say_what_they_claim(path):
    experiment = config.load(path)
    check(experiment)
    assert experiment.name == path.stem
    assert parts.head_of(path)
    assert f"# Command: jaxpu run configs/{path.name}" in path.read_text()


def test_every_part_of_the_report_has_its_configuration():
    for part in cf_ensemble.PARTS:
        assert (ROOT / "configs" / f"{part.experiment}.yaml").exists()


def test_configurations_may_name_all_there_is():
    """They know no jax, so they have lists of their own."""

    def choices(settings, field):
        return set(typing.get_args(typing.get_type_hints(settings)[field]))

    assert choices(EnsembleMethod, "trainer") == {*ensemble.TRAINERS, *ensemble.BASELINES}
    assert set(ensemble_config.BASELINE_TRAINERS) == {*ensemble.BASELINES}
    assert choices(FactorsConfig, "confidence") == {*ensemble.CONFIDENCE}
    assert choices(RatingsConfig, "source") == {*study.SOURCES}


def test_configurations_that_cannot_be_run_are_refused():
    with pytest.raises(ConfigError, match=r"methods: lrr: unknown key 'lrr' \(did you mean 'lr'"):
        experiment(methods=[{"trainer": "als", "lrr": 1}])
    with pytest.raises(ConfigError, match="als appears twice"):
        experiment(methods=["als", "als"])
    with pytest.raises(ConfigError, match=r"unknown setting of a grid 'training"):
        config.expand(experiment(grid={"training.lr": [1]}))
    with pytest.raises(ConfigError, match="unknown method 'vpu'"):
        config.check_claims(experiment(claims=[{"claim": "c", "of": {"method": "vpu"}, "at_least": 0}]))


def test_a_run_is_judged_and_continued_until_it_heals(finished):
    runs = pl.read_parquet(finished / "runs.parquet")
    assert runs.height == 3 * 2 * 4
    numbers = {name for name, kind in runs.schema.items() if kind.is_numeric()} - {"ratings.rate", "seed"}
    assert numbers <= {*EnsembleExperiment.METRICS}, "so that claims can be checked before training"
    als = runs.filter(method="als", **{"ratings.rate": 0.1})
    assert (als["end_verdict"] == "inverted").sum() >= 3
    healed = als.filter(pl.col("healthy_at").is_not_null())
    assert set(healed["verdict"]) <= {"stopped_early"}
    assert (healed["ranked_at"] <= healed["healthy_at"]).all()
    assert (healed["ranked_at"] > 100).any()
    balanced = runs.filter(**{"ratings.rate": 0.5}, method="als")
    assert (balanced["roc_auc"] > 0.9).all()
    weighted = runs.filter(**{"ratings.rate": 0.1}, method="weighted")
    assert (weighted["w_mean"] > 0).all()
    assert (weighted["roc_auc"] > 0.9).all()
    flipped = als.filter(pl.col("flipped_at").is_not_null())
    np.testing.assert_allclose(flipped["flipped_at"], flipped["flip_theory"], rtol=0.35)


def test_a_seed_is_the_same_whatever_runs_beside_it(finished, tmp_path):
    others = experiment(first_seed=2, methods=TINY["methods"][1::-1], grid={"ratings.rate": [0.1]})
    beside = study.run(others, tmp_path, watch=lambda line: None).runs.filter(pl.col("seed") < 4)
    runs = pl.read_parquet(finished / "runs.parquet").filter(pl.col("seed") >= 2, **{"ratings.rate": 0.1}, method="als")
    assert_frame_equal(beside.filter(method="als"), runs, rel_tol=1e-5)


def test_an_interrupted_experiment_goes_on_and_ends_as_if_undisturbed(finished, tmp_path, monkeypatch):
    compute, calls = ensembles._compute, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return compute(*arguments)

    monkeypatch.setattr(ensembles, "_compute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.run(experiment(), tmp_path, watch=lambda line: None)
    assert not (tmp_path / "runs.parquet").exists()
    parts = sorted((tmp_path / "parts").iterdir(), key=lambda p: p.stat().st_mtime_ns)
    assert len(parts) == 2
    with pytest.raises(ResultsError, match=r"12 runs of another configuration, unfinished; nothing was changed"):
        study.run(experiment(precision="float32"), tmp_path)
    parts[0].write_bytes(parts[0].read_bytes()[:-50])
    (tmp_path / "parts" / "notes.txt").write_text("mine")
    lines = []
    outcome = study.run(experiment(), tmp_path, watch=lines.append)
    text = "\n".join(lines)
    assert f"{parts[0].name} is damaged or truncated" in text
    assert "parts/notes.txt is not a file of jaxpu; left alone" in text
    assert "1 of 4 parts are finished already and kept" in text
    assert len(calls) == 3 + 3
    assert_frame_equal(outcome.runs, pl.read_parquet(finished / "runs.parquet"))
    assert (tmp_path / "paths.csv").read_bytes() == (finished / "paths.csv").read_bytes()
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["notes.txt"]
    provenance = json.loads((tmp_path / "provenance.json").read_text())
    assert provenance["compile_seconds"] == 0, "all its programs are compiled in this process"
    assert provenance["run_seconds"] > 0


def test_claims_tables_and_page(finished):
    claims = pl.read_csv(finished / "claims.csv")
    assert claims["estimate"][0] >= 0.75
    summary = pl.read_csv(finished / "summary.csv")
    first = ["dataset", "method", "ratings.rate", "selection", "metric", "threshold", "n", "mean", "median", "sd"]
    assert summary.columns[: len(first)] == first
    page = (finished / "report.html").read_text()
    assert "Upside down." in page
    assert "stopped early" in page
    assert page.count("data:image/svg") >= 2
    provenance = json.loads((finished / "provenance.json").read_text())
    assert provenance["seeds"] == 4
    assert provenance["precision"] == "float64"
    assert provenance["compile_seconds"] > 0


def test_a_finished_experiment_is_not_run_again_but_written_down(finished, capsys):
    stamp, before = (finished / "runs.parquet").stat().st_mtime_ns, (finished / "table.md").read_text()
    (finished / "table.md").unlink()
    with pytest.raises(SystemExit) as left:
        main(["run", str(finished.parent / "tiny.yaml"), "--out", str(finished), "--quiet"])
    assert left.value.code == 0
    assert (finished / "runs.parquet").stat().st_mtime_ns == stamp
    assert (finished / "table.md").read_text() == before
    assert "--fresh runs it again" in capsys.readouterr().err


def test_unfinished_folders_are_refused(tmp_path):
    with pytest.raises(ResultsError, match="repeat its jaxpu run"):
        study.read(tmp_path)


def test_times_are_looked_at_evenly_on_a_logarithmic_scale():
    times = transient.checkpoints(100, 1_000_000)
    assert times[0] == 100
    assert times[-1] == 1_000_000
    assert np.diff(np.log(times)).max() < np.log(1.25)


def test_real_classifiers_see_no_label_that_is_not_known(monkeypatch):
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    kinds = [GaussianNB(), DecisionTreeClassifier(random_state=0)]
    monkeypatch.setattr(sources, "_KINDS", ("a", "b"))
    monkeypatch.setattr(sources, "_models", lambda seed: kinds)
    c = RatingsConfig(source="classifiers", dataset="breast_cancer", rate=0.1)
    ratings, y, labeled = sources.classifiers.__wrapped__(c, 0)
    assert ratings.shape == (2, y.size)
    assert y.mean() == pytest.approx(0.1, abs=0.005)
    assert labeled.mean() == pytest.approx(0.5, abs=0.01)
    # a tree fitted on the labelled rows would be sure and right about them all, had they not been out of fold
    assert ((ratings[1, labeled] > 0.5) != y[labeled]).any()
    with pytest.raises(ConfigError, match="ask for less"):
        sources.classifiers.__wrapped__(RatingsConfig(source="classifiers", dataset="breast_cancer", rate=0.9), 0)


def test_the_seeds_of_a_sweep_are_base_classifiers(tmp_path):
    """A results folder as a sweep leaves it, with untrained networks: their scores are the ratings."""
    raw = {"name": "base", "methods": ["vpudra_softlabel"], "model": {"hidden": [4], "dropout": []}, "seeds": 3}
    raw |= {"data": {"name": "gaussians", "options": {"n": 300, "d": 2}}}
    base = config.parse(raw)
    rows = []
    for run in sweep.runs_of(base):
        model = models.build(run.cell.model, (2,))
        start = models.start(model, jax.random.key(run.seed), (2,), 0.5)
        results.write_parameters(tmp_path, run.run_id, start._asdict())
        identity = (run.run_id, "gaussians", run.cell.method_name, run.seed, 1, 1)
        rows.append(dict(zip(results.IDENTITY, identity, strict=True)))
    results.write_frame(tmp_path / "runs.parquet", pl.DataFrame(rows))
    results.write_provenance(tmp_path, {})
    results.write_text(tmp_path / "config.yaml", config.dump(base))
    c = RatingsConfig(source="sweep", folder=str(tmp_path), method="vpudra_softlabel", rate=None)
    ratings, y, labeled = sources.sweep_runs(c, 0)
    source = data.load("gaussians", n=300, d=2)
    np.testing.assert_array_equal(y, source.y)
    assert labeled.mean() == pytest.approx(0.5, abs=0.01)
    rows = sweep.prepare(base.data, 1).rows
    parameters = results.read_parameters(tmp_path, sweep.runs_of(base)[1].run_id)["params"]
    hidden = np.maximum(
        (source.x - rows.mean) / rows.sd @ parameters["layer0"]["kernel"] + parameters["layer0"]["bias"], 0
    )
    logits = (hidden @ parameters["head"]["kernel"] + parameters["head"]["bias"])[:, 0]
    np.testing.assert_allclose(ratings[1], 1 / (1 + np.exp(-logits)), rtol=1e-4)
    with pytest.raises(ResultsError, match="0 runs of method 'pn'"):
        sources.sweep_runs(RatingsConfig(source="sweep", folder=c.folder, method="pn"), 0)
