"""One program over two processes leaves what one process leaves; whoever is left alone ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest
import toy
import yaml
from polars.testing import assert_frame_equal
from problems import TINY
from toy import Toy
from two_processes import ACROSS, LONG, SIX

from jaxpu import cli, runs
from jaxpu.config import ConfigError
from jaxpu.runs import processes

MESHES = [
    [[0], [0], [1], [1]],
    [[0], [1]],
    [[0, 1]],
    [[0, 0, 1, 1]],
    "1 runs on devices None, row_devices 1 of placement leave some of 2 processes without a device; give fewer",
    "placement asks for 6 devices, there are 4",
]


@pytest.fixture
def started():
    """Starts two processes with so many devices each; none of them outlives its test."""
    going = []

    def start(*words, devices, cache):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        flags = re.sub(r"device_count=\d+", f"device_count={devices}", os.environ["XLA_FLAGS"])
        environment = os.environ | {"XLA_FLAGS": flags, "JAXPU_CACHE_DIR": str(cache)}
        for i in range(2):
            own = [str(word).replace("HOST:PORT", address).replace("i/n", f"{i}/2") for word in words]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            going.append(subprocess.Popen([sys.executable, *own], env=environment, **pipes))
        return going[-2:]

    yield start
    for process in going:
        process.kill()
        process.communicate()


def same_files(one, other, *names):
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.slow
def test_two_processes_leave_what_one_leaves_and_end_together(tmp_path, started):
    """With a cold and a warm cache; in the end one of them is killed, and who is left ends within a minute."""
    toy.run(SIX, tmp_path / "six")
    toy.run(ACROSS, tmp_path / "across")
    names = [
        "runs.parquet",
        "config.yaml",
        *(f"parameters/{path.name}" for path in (tmp_path / "six/parameters").iterdir()),
    ]
    cache = tmp_path / "cache"
    programs = []
    # one that is late by more than the half minute for which collectives wait; SIGTERM ends what jax would let go on
    for home, victim, how, late in (("cold", 1, signal.SIGKILL, 0), ("warm", 0, signal.SIGTERM, 31)):
        words = "HOST:PORT", "i/n", f"{victim}/2", int(how), late, tmp_path / home
        (tmp_path / home).mkdir()
        pair = started(
            Path(__file__).parent / "two_processes.py",
            *words,
            devices=2,
            cache=cache,
        )
        assert pair[victim].wait(600) == -how
        left, killed = pair[1 - victim], time.monotonic()
        _, said = left.communicate(timeout=60)
        assert left.returncode != 0
        assert time.monotonic() - killed < 60
        assert said
        for process in range(2):
            told = json.loads((tmp_path / home / f"told{process}.json").read_text())
            *head, meshes, count, across = told
            assert head == [process == 0, True, "full"]
            assert meshes[:-2] == MESHES[:-2]
            assert all(mesh.startswith(words) for mesh, words in zip(meshes[-2:], MESHES[-2:], strict=True))
            assert (count, across) == (24, {"run": 1, "batch": 4})
        same_files(tmp_path / home / "six", tmp_path / "six", *names)
        same_files(tmp_path / home / "across", tmp_path / "across", "runs.parquet")
        programs.append({path.name for path in cache.glob("*-cache")})
    assert programs[0]
    assert programs[0] == programs[1]
    notes = []
    found = toy.run(LONG, tmp_path / "long", watch=lambda progress: notes.append(progress.note)).runs
    assert any("go on where they stopped" in note for note in notes)
    assert_frame_equal(found, toy.run(LONG).runs)


@pytest.mark.slow
def test_the_command_splits_the_rows_of_a_step_between_processes(tmp_path, started):
    rows = {
        "model": {"name": "linear"},
        "selection": {"rules": ["last"], "default": "last", "stop": False},
        "placement": {"devices": 1, "row_devices": 2},
    }
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(TINY | rows))
    words = "-m", "jaxpu", "run", tmp_path / "tiny.yaml", "--out", tmp_path / "two"
    pair = started(*words, "--distributed", "HOST:PORT", "--process", "i/n", devices=1, cache=tmp_path / "cache")
    said = [process.communicate(timeout=600) for process in pair]
    assert [process.returncode for process in pair] == [0, 0], said
    assert "page: " in said[0][0]
    assert "page: " not in said[1][0]
    with pytest.raises(SystemExit) as end:
        cli.main(["run", str(tmp_path / "tiny.yaml"), "--out", str(tmp_path / "one"), "--quiet"])
    assert not end.value.code
    same_files(tmp_path / "one", tmp_path / "two", "runs.parquet", "summary.csv")
    provenance = runs.read_provenance(tmp_path / "two")
    assert provenance
    assert provenance["placement"][0]["mesh"] == {"run": 1, "batch": 2}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--process", "0/2"], "expected --distributed HOST:PORT of process 0 with --process i/n"),
        (["--distributed", "here"], "got 'here' and none"),
        (["--distributed", "here:80", "--process", "2/2"], "expected 0 <= i < n"),
        (["--distributed", "here:80", "--process", "2"], "expected a process as i/n"),
        (["--distributed", "auto", "--process", "0/2"], "leave --process out"),
        (["--distributed", "auto"], "no cluster is known here"),
        (["--distributed", "auto", "--executor", "ray"], "leave --executor and --dry-run out"),
    ],
)
def test_what_is_no_process_of_several_is_refused(words, said, tmp_path, capsys, monkeypatch):
    def unknown(**known):
        raise ValueError("coordinator_address should be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", unknown)
    with pytest.raises(SystemExit) as end:
        cli.main(["run", "quick", "--out", str(tmp_path / "new"), *words])
    assert end.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_processes_of_other_settings_or_data_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "agreed", lambda find: "what process 0 has")
    with pytest.raises(ConfigError, match="other settings or data than process 0"):
        toy.run(Toy())
