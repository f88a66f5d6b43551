"""Shards on Ray: killed workers are started again, and what is gathered is what one process leaves."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from problems import tiny

from jaxpu import api, cli, executors
from jaxpu.runs import ResultsError, Shard

DRIVER = """
import json, os, re, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from problems import tiny
from jaxpu import executors

slow = dict(devices=1, part=2, segment=1, checkpoint_seconds=0)
# as many epochs as keep a shard at work until the driver, which looks once a second, has killed it
experiment = tiny(seeds=4, training__epochs=300, selection__stop=False, placement=slow)
notes, killed, listening = [], [], []

def watch(progress):
    notes.append(progress.note)
    process = re.search(r"shard 1/2: compiled .*\\(process (\\d+)\\)", progress.note)
    if process and not killed:
        killed.append(int(process[1]))
        listening.extend(addresses())
        os.kill(killed[0], signal.SIGKILL)

def addresses():
    "Where processes listen whose parent, or its parent, is this one."
    parents = {{}}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            pass
    mine = [pid for pid, parent in parents.items() if os.getpid() in (pid, parent, parents.get(parent))]
    sockets = set()
    for pid in mine:
        for link in Path(f"/proc/{{pid}}/fd").glob("*"):
            try:
                sockets.add(os.readlink(link))
            except OSError:
                pass
    rows = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{{name}}").readlines()[1:]]
    return [row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{{row[9]}}]" in sockets]

_, frame, provenance = executors.on_ray(experiment, Path(sys.argv[1]), workers=2, watch=watch)
Path(sys.argv[1], "told.json").write_text(json.dumps([notes, killed, listening]))
"""
LOCAL = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_a_killed_worker_is_started_again_and_all_is_as_one_process_leaves_it(tmp_path):
    code = DRIVER.format(tests=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    notes, killed, listening = json.loads((tmp_path / "told.json").read_text())
    assert killed
    again = {process[1] for note in notes if (process := re.search(r"shard 1/2: .*\(process (\d+)\)", note))}
    assert len(again) == 2, "the shard was begun by one process and ended by another"
    assert len(listening) > 3
    assert set(listening) <= LOCAL, "nothing outside this machine can reach it"
    slow = {"devices": 1, "part": 2, "segment": 1}
    alone = api.sweep(tiny(seeds=4, training__epochs=300, selection__stop=False, placement=slow)).runs
    assert_frame_equal(pl.read_parquet(tmp_path / "runs.parquet"), alone)


def test_what_ray_cannot_do_is_said_before_anything_is_touched(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ["run", "quick", "--out", str(tmp_path / "new"), "--executor", "ray"]
    for more, said in (([], "pip install 'jaxpu[ray]'"), (["--shard", "0/2"], "leave --shard out")):
        with pytest.raises(SystemExit) as end:
            cli.main([*words, *more])
        assert end.value.code == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_shards_of_ray_go_on_as_they_began_and_share_what_there_is(tmp_path):
    experiment = tiny(seeds=5)
    assert executors._shards(experiment, tmp_path, 3, False) == [Shard(i, 3) for i in range(3)]
    assert len(executors._shards(experiment, tmp_path, 9, False)) == 5, "a seed each at most"
    Shard(0, 2).below(tmp_path).mkdir(parents=True)
    assert executors._shards(experiment, tmp_path, 3, False) == [Shard(0, 2), Shard(1, 2)]
    assert len(executors._shards(experiment, tmp_path, 3, True)) == 3
    assert executors._fitting({"CPU": 16.0}) == 4
    assert executors._fitting({"CPU": 16.0, "GPU": 3.0}) == 3
    assert executors._share({"CPU": 16.0}, 4) == {"num_cpus": 4}
    half = executors._share({"CPU": 16.0, "GPU": 2.0}, 4)
    assert half["num_gpus"] == 0.5
    assert half["runtime_env"]["env_vars"] == {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.450"}


def test_shards_that_could_not_be_gathered_with_others_are_forgotten_or_named_before_any_work(tmp_path):
    for shard in (Shard(0, 3), Shard(1, 3)):
        shard.below(tmp_path).mkdir(parents=True)
        (shard.below(tmp_path) / "config.yaml").touch()
    with pytest.raises(ResultsError, match="holds shards of 3 parts, and there are 2 seeds"):
        executors._shards(tiny(seeds=2), tmp_path, 2, False)
    assert executors._shards(tiny(seeds=4), tmp_path, 2, True) == [Shard(0, 2), Shard(1, 2)]
    assert not [*(tmp_path / "shards").iterdir()]
