"""An experiment in shards: gathered, it is what one process leaves, and whatever is wrong with a shard is named."""

import dataclasses
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import toy
import yaml
from polars.testing import assert_frame_equal
from problems import TINY
from toy import Toy

import jaxpu
from jaxpu import cli, runs
from jaxpu.config import ConfigError
from jaxpu.runs import ResultsError, Shard, Unfinished, gathering
from jaxpu.runs.shards import Part

SIX = Toy(seeds=6, students=True, keep=True)


def in_shards(experiment, folder, of, *, but=()):
    for index in range(of):
        if index not in but:
            toy.run(experiment, folder, shard=Shard(index, of))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    toy.run(SIX, folder)
    return folder


@pytest.fixture
def gathered_toy(monkeypatch):
    """What stands in configurations of toys is a toy."""
    monkeypatch.setattr(gathering, "parse", lambda raw, where: Toy(**raw))

    def collect(folder):
        return runs.gather(folder, runs.experiment_of(folder), toy.Kind)

    return collect


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    folder = tmp_path_factory.mktemp("three")
    in_shards(SIX, folder, 3)
    return folder


@pytest.fixture
def copy(three, tmp_path):
    return shutil.copytree(three, tmp_path / "copy")


def test_gathered_shards_are_one_process_bit_for_bit(whole, copy, gathered_toy):
    found, provenance = gathered_toy(copy)
    for name in ("runs.parquet", "config.yaml"):
        assert (copy / name).read_bytes() == (whole / name).read_bytes()
    kept = {path.name: path.read_bytes() for path in (whole / "parameters").iterdir()}
    assert {path.name: path.read_bytes() for path in (copy / "parameters").iterdir()} == kept
    one = runs.read_provenance(whole)
    assert one is not None
    assert set(provenance) - set(one) == {"shards"}
    for name in ("runs", "epochs", "seeds", "experiment", "format", "versions", "device", "commit"):
        assert provenance[name] == one[name]
    assert gathered_toy(copy)[1] == provenance, "once more changes nothing"
    epochs = []
    again = toy.run(SIX, copy, watch=lambda p: epochs.append(p.epochs_done))
    assert_frame_equal(again.runs, found)
    assert max(epochs) == 0, "one process has nothing left to do there"


def test_shards_deal_out_whole_seeds_with_what_they_need():
    everything = toy.runs_of(SIX)
    shares = [Shard(i, 4).share(everything) for i in range(4)]
    assert [sorted({run.seed for run in share}) for share in shares] == [[0, 4], [1, 5], [2], [3]]
    assert sorted(run.run_id for share in shares for run in share) == sorted(run.run_id for run in everything)
    for share in shares:
        ids = {run.run_id for run in share}
        assert all(ids.issuperset(run.needs) for run in share)
    grown = Shard(2, 4).share(toy.runs_of(Toy(seeds=9, students=True, keep=True)))
    assert {run.run_id for run in grown} > {run.run_id for run in shares[2]}, "more seeds only add"


def test_a_run_that_all_need_is_in_every_shard_and_decides_no_share():
    base = [runs.Run(f"base{seed}", {"seed": seed}, seed) for seed in range(9)]
    needs = tuple(run.run_id for run in base)
    ensembles = [runs.Run(f"all{seed}", {"seed": seed}, seed, needs=needs) for seed in range(2)]
    for index in range(2):
        assert Shard(index, 2).share([*base, *ensembles]) == [*base, ensembles[index]]


def test_programs_of_a_shard_are_those_of_the_whole():
    class Uneven(toy.Kind):
        @staticmethod
        def jobs(experiment, found):
            made = toy.jobs_of(experiment, found)
            return [dataclasses.replace(job, static=toy.Static(job.epochs + len(job.runs))) for job in made]

    part = Part(Uneven, Shard(0, 3))
    mine = part.runs(Toy(seeds=6))
    [job] = part.jobs(Toy(seeds=6), mine)
    assert (len(job.runs), job.static.epochs) == (4, 7 + 12)


@pytest.mark.parametrize("text", ["3", "3/3", "-1/3", "a/b", "1/0", "", "1/3/4", "²/3", " 0/2"])
def test_a_shard_that_there_is_not_is_refused(text):
    with pytest.raises(ConfigError, match=r"shard .*expected|expected a shard as i/n"):
        Shard.parse(text)


def test_more_shards_than_seeds_are_refused_untouched(tmp_path):
    with pytest.raises(ConfigError, match=r"shard 0/7: there are 6 seeds"):
        toy.run(SIX, tmp_path / "new", shard=Shard(0, 7))
    assert not (tmp_path / "new").exists()


def test_what_is_wrong_with_a_shard_is_named_and_nothing_is_written(copy, gathered_toy, tmp_path):
    shards = copy / "shards"

    def refused(words, kind=ResultsError):
        with pytest.raises(ResultsError, match=words) as said:
            gathered_toy(copy)
        assert type(said.value) is kind
        assert not (copy / "runs.parquet").exists()

    def put(source, name):
        shutil.rmtree(shards / name, ignore_errors=True)
        if source:
            shutil.copytree(source, shards / name)

    second = shutil.copytree(shards / "1-of-3", tmp_path / "second")
    put(None, "1-of-3")
    refused(r"shard 1/3 is missing; repeat jaxpu run --shard", Unfinished)
    put(shards / "0-of-3", "1-of-3")
    refused(r"shard 1/3 holds 8 runs of other shards; shard 1/3 lacks 8 of its 8 runs")
    put(second, "1-of-3")
    put(second, "1-of-4")
    refused(r"shards of 3 and 4 parts \(0/3, 1/3, 1/4 and 2/3\)")
    put(None, "1-of-4")
    put(None, "1-of-3")
    other = Toy(seeds=6, students=True, keep=True, content="replaced")
    toy.run(other, copy, shard=Shard(1, 3))
    shutil.copy(second / "config.yaml", shards / "1-of-3")
    refused(r"shard 1/3 holds 8 runs of another configuration or of other data; shard 1/3 lacks 8")
    put(None, "1-of-3")
    toy.run(Toy(seeds=9, students=True, keep=True), copy, shard=Shard(1, 3))
    refused(r"of different experiments; shard 1/3 has seeds 9 for 6\.")
    put(second, "1-of-3")
    raw = bytearray((shards / "1-of-3" / "runs.parquet").read_bytes())
    raw[100] ^= 1
    (shards / "1-of-3" / "runs.parquet").write_bytes(bytes(raw))
    refused(r"shard 1/3 lacks 8 of its 8 runs", Unfinished)
    put(second, "1-of-3")
    (shards / "2-of-3" / "config.yaml").unlink()
    refused(r"shard 2/3: its config.yaml is damaged or missing")
    shutil.rmtree(shards)
    refused(r"has no shards; make them with: jaxpu run CONFIG")


def test_results_of_something_else_in_the_folder_are_left_alone(copy, gathered_toy):
    toy.run(Toy(content="replaced"), copy)
    before = (copy / "runs.parquet").read_bytes()
    with pytest.raises(ResultsError, match="than its shards; nothing was gathered"):
        gathered_toy(copy)
    assert (copy / "runs.parquet").read_bytes() == before


def test_what_lies_beside_shards_is_left_alone_and_one_process_says_that_they_are_there(copy, gathered_toy):
    for name in ("0-of-3 (copy)", "00-of-3", "notes"):
        shutil.copytree(copy / "shards" / "0-of-3", copy / "shards" / name)
    (copy / "shards" / "5-of-9").write_text("a file")
    notes = []
    with pytest.raises(KeyboardInterrupt):
        toy.run(SIX, copy, watch=lambda p: notes.append(p.note) or stop(p))
    assert any("holds shards that are not gathered; jaxpu gather" in note for note in notes)
    assert gathered_toy(copy)[0]["run_id"].n_unique() == 24


def stop(progress):
    if progress.note.startswith("compiling"):
        raise KeyboardInterrupt


GUIDE = Path(jaxpu.__file__).parent / "guide" / "scale.md"
SMALL = TINY | {"methods": ["vpudra_fixed", "vpudra_softlabel"], "seeds": 4}


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture(scope="module")
def experiment_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("guide") / "sweep.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    return path


def called(*words):
    with pytest.raises(SystemExit) as end:
        cli.main(list(map(str, words)))
    return end.value.code


@pytest.mark.slow
def test_the_commands_of_the_guide_leave_what_one_process_leaves(experiment_file, tmp_path, monkeypatch, capsys):
    """The job script of the guide says which commands its tasks run; they are run here, one after the other."""
    [script] = [block for block in blocks("sh") if "#SBATCH" in block]
    assert script.strip().count("\n") + 1 == 10
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.yaml").write_bytes(experiment_file.read_bytes())
    stub = "activate() { :; }\njaxpu() { printf '%s\\n' \"$@\"; }\n"
    body = stub + re.sub(r"^\. .*$", "activate", script, flags=re.MULTILINE)
    for task in range(2):
        environment = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "2"}
        done = subprocess.run(["sh", "-c", body], env=environment, capture_output=True, text=True, check=True)
        words = done.stdout.splitlines()
        assert words[0] == "run"
        assert called(*words, "--quiet") == 0
        if task == 0:
            assert called("gather", "results/sweep") == 1
            assert "shard 1/2 is missing" in capsys.readouterr().err
    assert called("gather", "results/sweep") == 0
    assert "page: results/sweep/report.html" in capsys.readouterr().out
    assert called("run", "sweep.yaml", "--out", "one", "--quiet") == 0
    names = {path.name for path in Path("one").iterdir()}
    assert {path.name for path in Path("results/sweep").iterdir()} == names | {"shards"}
    for name in names - {"provenance.json", "report.html", "figures", ".lock"}:
        assert Path("results/sweep", name).read_bytes() == Path("one", name).read_bytes(), name
    assert called("run", "sweep.yaml", "--out", "results/sweep", "--shard", "2/2") == 2
    assert called("gather", "one") == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_the_submitit_script_of_the_guide_runs(experiment_file, tmp_path, monkeypatch):
    submitit = pytest.importorskip("submitit")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.yaml").write_bytes(experiment_file.read_bytes())
    [script] = [block for block in blocks("python") if "submitit" in block]
    inline = submitit.AutoExecutor
    monkeypatch.setattr(submitit, "AutoExecutor", lambda folder: inline(folder, cluster="debug"))
    names: dict = {}
    exec(script.replace("SHARDS = 10", "SHARDS = 2"), names)
    assert names["frame"]["run_id"].n_unique() == 8


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import toy
from jaxpu.config import PlacementConfig
from jaxpu.runs import Shard

def killed(progress):
    if progress.epochs_done > 20:
        os.kill(os.getpid(), signal.SIGKILL)

slow = PlacementConfig(segment=1, devices=1, checkpoint_seconds=0)
toy.run(toy.Toy(seeds=6, students=True, keep=True, placement=slow), Path(sys.argv[1]), shard=Shard(1, 3), watch=killed)
"""


@pytest.mark.slow
def test_a_shard_that_is_killed_goes_on_where_it_stopped(copy, whole, gathered_toy):
    shutil.rmtree(copy / "shards" / "1-of-3")
    code = KILLED.format(tests=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", code, str(copy)], check=False)
    assert done.returncode < 0
    with pytest.raises(Unfinished, match=r"shard 1/3 lacks 8 of its 8 runs; repeat jaxpu run --shard"):
        gathered_toy(copy)
    epochs = []
    toy.run(SIX, copy, shard=Shard(1, 3), watch=lambda p: epochs.append(p.epochs_done))
    assert 0 < max(epochs) < 8 * 7
    gathered_toy(copy)
    assert (copy / "runs.parquet").read_bytes() == (whole / "runs.parquet").read_bytes()
