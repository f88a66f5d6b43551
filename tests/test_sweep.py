"""Sweeps: every placement gives the same runs, one compilation a group, and nothing finished is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from problems import first_cell, jitted_train, run_inputs, tiny

from jaxpu import config, metrics, models, results, sweep, train
from jaxpu.analysis import replay
from jaxpu.config import ConfigError, ModelConfig, PlacementConfig
from jaxpu.sweep import groups_of, placement, prepare, resolve, runs_of

RECORDED = (
    "train_loss",
    "test_oracle_auc",
    "test_oracle_log_loss",
    "val_oracle_f1_rescue",
    "train_p_labeled",
)
FEW = ("train_loss", "test_oracle_log_loss", "test_score_mean", "val_oracle_f1")


def few_columns(variables, data, static, hyper) -> train.History:
    """What an epoch is looked at for where the training is the subject, not the sixty columns of its evaluation."""
    model = models.build(static.model, data.x.shape[1:])
    z_test, z_val = (model.logits(variables, train.features(data, rows)) for rows in (data.test, data.val))
    return {
        "test_oracle_log_loss": metrics.log_loss(z_test, data.y[data.test]),
        "test_score_mean": metrics.score_mean(z_test),
        "val_oracle_f1": metrics.f1(z_val, data.y[data.val]),
    }


@pytest.fixture
def little_evaluation(monkeypatch):
    """Programs of their own, for ``few_columns`` compile in a fraction of the time."""
    monkeypatch.setattr(train.loop, "evaluate", few_columns)
    placement.compiled.cache_clear()
    yield
    placement.compiled.cache_clear()


def numbers(runs: pl.DataFrame, seed: int, columns=RECORDED) -> np.ndarray:
    return runs.filter(pl.col("seed") == seed).select(columns).to_numpy()


@pytest.fixture(scope="module")
def among_64(tmp_path_factory):
    """64 seeds, one after the other on one device: what every other placement is compared with."""
    experiment = tiny(seeds=64, placement__devices=1, placement__kind="map", selection__stop=False)
    return sweep.run(experiment, tmp_path_factory.mktemp("map")).runs


def check_placement(asked, among_64, folder, seeds, **changes) -> None:
    outcome = sweep.run(tiny(seeds=seeds, selection__stop=False, placement=asked, **changes), folder)
    mesh = outcome.provenance["placement"][0]["mesh"]
    assert mesh == {"run": asked["devices"], "batch": asked.get("row_devices", 1)}
    columns = [name for name in {*RECORDED, *FEW} if name in outcome.runs.columns]
    assert {*columns} >= {*FEW}
    for seed in range(seeds):
        here, there = (numbers(runs, seed, columns) for runs in (outcome.runs, among_64))
        np.testing.assert_allclose(here, there, rtol=2e-4, atol=2e-5)


def test_a_run_does_not_depend_on_the_chunks_and_devices_it_runs_on(among_64, tmp_path):
    check_placement({"kind": "chunk", "chunk": 4, "devices": 8, "part": 64}, among_64, tmp_path, 64)


@pytest.mark.usefixtures("little_evaluation")
@pytest.mark.parametrize(
    "asked",
    [
        {"kind": "vmap", "devices": 1, "part": 64},
        {"kind": "map", "devices": 2, "segment": 2},
        {"kind": "vmap", "devices": 2, "row_devices": 2},
    ],
    ids=lambda p: " ".join(f"{k}={v}" for k, v in p.items()),
)
def test_a_run_does_not_depend_on_where_it_runs_or_beside_what(asked, among_64, tmp_path):
    last = {"selection__rules": ["last"], "selection__default": "last"}
    check_placement(asked, among_64, tmp_path, 64 if asked.get("part") else 6, **last)


def test_a_seed_alone_is_the_same_seed_among_64(among_64):
    cell = first_cell(tiny(selection__stop=False))
    for seed in (0, 17, 63):
        key, data, static, hyper = run_inputs(cell, seed)
        # padded, as it is in a sweep with other label frequencies; the 64 are not
        assert len(data.train) > int(data.n_train) == len(prepare(cell.data, seed).rows.train)
        run = jitted_train(key, data, static, hyper)
        alone = np.stack([run.history[name] for name in RECORDED], axis=1)
        np.testing.assert_allclose(alone, numbers(among_64, seed), rtol=2e-4, atol=2e-5)


@pytest.mark.usefixtures("little_evaluation")
def test_one_compilation_a_group_whatever_the_numbers(tmp_path, monkeypatch):
    traced = []
    original = train.advance
    monkeypatch.setattr(train, "advance", lambda *a: traced.append(1) or original(*a))
    experiment = tiny(
        methods=["vpudra_fixed", "vpudra_softlabel", "pudra", "nnpu"],
        selection={"rules": ["last"], "default": "last"},
        grid={"training.lr": [1e-2, 1e-3], "data.prior_scale": [1.0, 0.5], "data.c": [0.3, 0.5]},
        seeds=1,
    )
    outcome = sweep.run(experiment, tmp_path)
    assert len(runs_of(experiment)) == 32
    assert outcome.runs["run_id"].n_unique() == 32
    assert outcome.provenance["programs"] == len(groups_of(runs_of(experiment))) == 2  # with and without mixup
    assert len(traced) == 2
    sweep.run(experiment, tmp_path / "again")
    assert len(traced) == 2, "the same process has these programs already"
    losses = outcome.runs.filter(pl.col("epoch") == 2)
    assert losses["train_loss"].n_unique() > 16, "traced numbers must matter"


def test_finished_runs_are_kept_and_more_seeds_only_add(tmp_path):
    first = sweep.run(tiny(seeds=2), tmp_path)
    notes = []
    more = sweep.run(tiny(seeds=3), tmp_path, watch=lambda p: notes.append(p.note))
    assert more.provenance["epochs"] == more.runs.filter(pl.col("seed") == 2).height
    assert any("2 of 3 runs are finished already" in note for note in notes)
    assert_frame_equal(more.runs.filter(pl.col("seed") < 2), first.runs)
    again = sweep.run(tiny(seeds=3), tmp_path)
    assert again.provenance == more.provenance
    assert_frame_equal(again.runs, more.runs)
    fresh = sweep.run(tiny(seeds=3), tmp_path, fresh=True)
    assert_frame_equal(fresh.runs, more.runs)
    assert fresh.provenance["epochs"] == fresh.runs.height


def test_a_folder_of_another_configuration_is_refused_untouched(tmp_path):
    sweep.run(tiny(seeds=2), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(results.ResultsError, match=r"2 runs of another configuration.*--fresh"):
        sweep.run(tiny(seeds=2, training__lr=0.5), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    with results.locked(tmp_path), pytest.raises(results.ResultsError, match="being written by another run"):
        sweep.run(tiny(seeds=2), tmp_path)


def test_truncated_failed_and_foreign_files_are_named_and_only_the_lost_is_redone(tmp_path):
    whole = sweep.run(tiny(seeds=4), tmp_path / "a").runs
    folder, parts = tmp_path / "b", tmp_path / "b" / "parts"
    parts.mkdir(parents=True)
    by_seed = {seed: whole.filter(pl.col("seed") == seed) for seed in range(4)}
    good, cut, short = (f"{i:016x}.parquet" for i in range(3))
    by_seed[0].write_parquet(parts / good)
    by_seed[1].write_parquet(parts / cut)
    (parts / cut).write_bytes((parts / cut).read_bytes()[:-50])
    by_seed[2].head(1).write_parquet(parts / short)
    results.mark_failed(folder, f"{3:016x}", [by_seed[3]["run_id"][0]], "RESOURCE_EXHAUSTED: out of memory")
    (parts / "notes.txt").write_text("mine")
    pl.DataFrame({"a": [1]}).write_parquet(parts / "other.parquet")
    notes = []
    redone = sweep.run(tiny(seeds=4), folder, watch=lambda p: notes.append(p.note))
    text = "\n".join(notes)
    for words in (
        f"{cut} is damaged or truncated",
        f"{short}: 1 incomplete runs are redone",
        "1 runs had failed (RESOURCE_EXHAUSTED: out of memory); they are redone",
        "parts/notes.txt is not a file of jaxpu; left alone",
        "other.parquet is foreign (no column 'run_id'); left alone",
        "1 of 4 runs are finished already and kept",
    ):
        assert words in text
    assert_frame_equal(redone.runs, whole)
    assert redone.provenance["epochs"] == whole.filter(pl.col("seed") > 0).height
    assert (parts / "notes.txt").read_text() == "mine"
    assert sorted(path.name for path in parts.iterdir()) == ["notes.txt", "other.parquet"]


def test_a_program_that_fails_is_marked_and_the_other_groups_go_on(tmp_path, monkeypatch):
    experiment = tiny(methods=["vpudra_fixed", "pudra"], seeds=2)
    original = sweep.Program.__call__

    def broken(self, *arguments):
        if self._static.mixup:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: planted\nlong story")
        return original(self, *arguments)

    monkeypatch.setattr(sweep.Program, "__call__", broken)
    outcome = sweep.run(experiment, tmp_path)
    assert outcome.failures == ("2 runs failed: RESOURCE_EXHAUSTED: planted",)
    assert outcome.runs["method"].unique().to_list() == ["pudra"]
    [mark] = (tmp_path / "parts").glob("*.failed.json")
    assert json.loads(mark.read_text())["error"] == "RESOURCE_EXHAUSTED: planted"
    monkeypatch.undo()
    healed = sweep.run(experiment, tmp_path)
    assert healed.failures == ()
    assert set(healed.runs["method"]) == {"pudra", "vpudra_fixed"}
    assert not (tmp_path / "parts").exists()


# One process has imported everything and forks a child for each sweep: to import again what takes two seconds,
# twenty times over, would test nothing. It forks before jax starts any thread.
FORKS = """
import os, sys, warnings
from pathlib import Path
sys.path.insert(0, {tests!r})
import jax
from jaxpu import losses, objective, sweep, train
from problems import tiny
# sixty columns of evaluation and a switch over all risks are what takes long to trace, and nothing to resuming
train.loop.evaluate = lambda params, data, config, hyper: {{"test_bias": params["head"]["bias"][0]}}
objective.base_risk = lambda hyper, z, labeled, labels, mask: (losses.pudra(z, labeled, prior=0.5, mask=mask), 0.0)
jax.config.update("jax_compilation_cache_dir", os.environ["JAXPU_TEST_CACHE"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
warnings.filterwarnings("ignore", "os.fork")
slow = {{"segment": 1, "part": 2, "devices": 1, "checkpoint_seconds": 0}}
small = {{"methods": ["pudra"], "model": {{"name": "linear"}}}}
small["selection"] = {{"rules": ["last"], "default": "last"}}
told = []
def tell(progress=None):
    if (progress is None or progress.epochs_done) and not told:
        told.append(print("training", flush=True))
for out in sys.stdin:
    child = os.fork()
    if child == 0:
        sweep.run(tiny(seeds=6, training__epochs=6, placement=slow, **small), Path(out.strip()), watch=tell)
        tell()  # nothing was left to train
        os._exit(0)
    print(child, flush=True)
    sys.stdin.readline()  # not before it is asked for: until then the child's number is its own
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Sweeps:
    """Sweeps in processes of their own, one after the other."""

    def __init__(self):
        code = FORKS.format(tests=str(Path(__file__).parent))
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.number = 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._process.communicate()

    def start(self, out: Path) -> None:
        print(out, file=self._process.stdin, flush=True)
        self.number = int(self._line())

    def until_training(self) -> None:
        assert self._line() == "training\n"

    def kill(self) -> bool:
        """Kill it; false if it had ended by itself."""
        os.kill(self.number, signal.SIGKILL)
        return self.wait() == -signal.SIGKILL

    def wait(self) -> int:
        print(file=self._process.stdin, flush=True)
        line = self._line()
        while not line.startswith("ended"):
            line = self._line()
        return int(line.split()[1])

    def _line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the process that starts sweeps has died"
        return line


def test_a_sweep_killed_twenty_times_ends_with_the_same_file(tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    with Sweeps() as sweeps:
        sweeps.start(undisturbed)  # and fills the compilation cache
        assert sweeps.wait() == 0
        began = time.perf_counter()
        sweeps.start(tmp_path / "timed")
        sweeps.until_training()
        start = time.perf_counter() - began
        assert sweeps.wait() == 0
        training = time.perf_counter() - began - start
        moments = random.Random(0)
        kills = again = 0
        while kills < 20:
            sweeps.start(killed)
            if kills % 4:  # most while it trains and writes, the others at any time
                sweeps.until_training()
                time.sleep(moments.uniform(0, training))
            else:
                time.sleep(moments.uniform(0, start + training))
            kills += sweeps.kill()
            if (killed / "runs.parquet").exists():  # done before twenty kills: begin again, beside
                whole = pl.read_parquet(undisturbed / "runs.parquet")
                assert_frame_equal(pl.read_parquet(killed / "runs.parquet"), whole)
                again += 1
                killed = tmp_path / f"killed{again}"
        sweeps.start(killed)
        assert sweeps.wait() == 0
    assert (killed / "runs.parquet").read_bytes() == (undisturbed / "runs.parquet").read_bytes()
    assert not (killed / "parts").exists()


def test_placement_is_chosen_by_backend_and_can_be_overridden():
    experiment = tiny(seeds=64)
    static = groups_of(runs_of(experiment))[0].config

    def placed(**asked):
        return resolve(PlacementConfig(**asked), static, (3,), 200, 64)

    assert (placed().kind, placed().chunk, placed().mesh.shape["run"]) == ("map", 1, 8)
    assert placed(kind="vmap", devices=2).chunk == 32
    assert placed(kind="chunk", chunk=5, devices=1).slots % 5 == 0
    assert placed(kind="chunk", devices=1).chunk == 64  # small runs all fit
    assert placed(devices=2, row_devices=4).mesh.devices.shape == (2, 4)
    with pytest.raises(ConfigError, match="asks for 9 devices, there are 8"):
        placed(devices=9)


def test_fewer_networks_of_larger_activations_fit_at_once():
    def fitting(shape, **model):
        static = groups_of(runs_of(tiny(model=model)))[0].config
        return placement._fitting(static, shape, 1000, resolve(PlacementConfig(devices=1), static, shape, 1000, 1).mesh)

    small, large = (fitting((28, 28), hidden=[width], dropout=[]) for width in (8, 512))
    assert fitting((28, 28), name="linear") >= small > large > 1
    assert placement._activations(*network("cnn", (8, 8), channels=(4, 6), hidden=(5,))) > 16 * 4 + 4 * 6 + 5
    wide, narrow = (
        placement._activations(*network("resnet", (size, size), channels=(4,), blocks=1)) for size in (16, 8)
    )
    assert wide == pytest.approx(4 * narrow, rel=0.05), "maps grow with the image"


def network(name, shape, **widths):
    model = models.build(ModelConfig(name=name, dropout=(), **widths), shape, 10)
    return model, jax.eval_shape(lambda: models.start(model, jax.random.key(0), shape)), shape


def test_preparation_is_the_protocol_of_the_seed():
    experiment = config.parse({"data": {"validation": [0.01], "prior": "all"}})
    prepared = prepare(experiment.data, 3)
    assert (len(prepared.rows.val), len(prepared.rows.test)) == (37, 921)
    assert prepared.rows.n_labeled == 143
    assert len(prepared.rows.train) == 3643 + 143
    assert prepared.prior == pytest.approx(0.4168, abs=5e-5)
    unlabeled = prepare(config.parse({"data": {"validation": [0.01]}}).data, 3)
    assert unlabeled.prior == pytest.approx(0.3939, abs=5e-5)
    np.testing.assert_array_equal(unlabeled.rows.train, prepared.rows.train)
    with pytest.raises(ConfigError, match="unknown dataset 'spambas'"):
        prepare(config.parse({"data": {"name": "spambas"}}).data, 0)
    with pytest.raises(ConfigError, match="prior_scale"):
        prepare(config.parse({"data": {"prior_scale": 9}}).data, 0)


@pytest.fixture(scope="module")
def nested_and_kept(tmp_path_factory):
    """Two runs with nested validation sets whose best parameters are kept: one program for two tests."""
    rules = ["val_f1", {"rule": "val_f1", "validation": 0.1}, {"rule": "val_f1", "validation": 0.3}]
    experiment = tiny(seeds=2, data__validation=[0.1, 0.3], selection__rules=rules, selection__keep_best=True)
    folder = tmp_path_factory.mktemp("kept")
    return experiment, folder, sweep.run(experiment, folder).runs


def test_nested_validation_sets_are_recorded_and_rules_can_read_them(nested_and_kept):
    _, _, runs = nested_and_kept
    np.testing.assert_array_equal(runs["val_oracle_f1"], runs["val@0.1_oracle_f1"])
    assert runs["val@0.3_oracle_auc"].is_finite().all()
    assert (runs["val@0.3_oracle_log_loss"] != runs["val@0.1_oracle_log_loss"]).all()


def test_the_parameters_of_the_best_epoch_are_kept_if_asked(nested_and_kept, tmp_path):
    experiment, folder, runs = nested_and_kept
    for run in runs.partition_by("run_id"):
        seed = run["seed"][0]
        best = replay(run["val_oracle_f1"].to_numpy(), patience=2, min_delta=1e-4).epoch
        _, data, static, _ = run_inputs(first_cell(experiment), seed)
        kept = models.Variables(results.read_parameters(folder, run["run_id"][0])["params"], {})
        logits = models.build(static.model, (3,)).logits(kept, train.features(data, data.test))
        assert float(jax.nn.sigmoid(logits).mean()) == pytest.approx(run["test_score_mean"][best], rel=1e-5)
    with pytest.raises(results.ResultsError, match="keep_best=true"):
        results.read_parameters(tmp_path, "none")
