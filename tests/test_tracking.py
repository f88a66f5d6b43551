"""Trackers: what each service is given of finished runs, and that nothing is sent twice."""

import math
import struct
import sys
import types

import polars as pl
import pytest
from tensorboardX.proto.event_pb2 import Event

from jaxpu import config, tracking
from jaxpu.config import ConfigError

RUNS = pl.DataFrame({
    "run_id": ["a", "a", "b", "b"], "dataset": "blobs", "method": ["vpu", "vpu", "pn", "pn"],
    "training.lr": [0.1, 0.1, None, None], "seed": [0, 0, 1, 1], "epoch": [1, 2, 1, 2],
    "loss": [3.0, 2.0, math.nan, 1.0], "kept": [True, False, True, None], "why": "text",
    "curve": [[1.0], [2.0], [3.0], [4.0]],
})  # fmt: skip
SENT = [
    ("a", {"dataset": "blobs", "method": "vpu", "training.lr": 0.1, "seed": 0},
     [{"epoch": 1, "loss": 3.0, "kept": True}, {"epoch": 2, "loss": 2.0, "kept": False}]),
    ("b", {"dataset": "blobs", "method": "pn", "seed": 1}, [{"epoch": 1, "kept": True}, {"epoch": 2, "loss": 1.0}]),
]  # fmt: skip


def test_a_function_is_called_once_a_run_with_settings_and_finite_numbers():
    seen = []
    assert tracking.send(RUNS, lambda *run: seen.append(run)) == 2
    assert seen == SENT
    seen.clear()
    experiment = config.parse({"data": {"name": "gaussians", "options": {"n": 90}}, "training": {"lr": 0.2}})
    tracking.send(RUNS, lambda *run: seen.append(run), experiment)
    (_, first, _), (_, second, _) = seen
    assert (first["training.lr"], second["training.lr"]) == (0.1, 0.2)  # what differs between runs goes first
    assert first["data.options.n"] == 90
    assert all(isinstance(value, str | int | float) for value in first.values())
    assert not {"claims", "methods", "seeds"} & set(first)


def test_tensorboard_reads_back_what_was_sent(tmp_path):
    tracker = tracking.named("tensorboard", tmp_path)
    tracking.send(RUNS, tracker)
    files = sorted((tmp_path / "tensorboard").glob("*/events*"))
    assert [path.parent.name for path in files] == ["a", "b"]
    found = [(value.tag, event.step, value.simple_value) for event in events(files[0].read_bytes())
             for value in event.summary.value if value.HasField("simple_value")]  # fmt: skip
    assert found == [("loss", 1, 3.0), ("kept", 1, 1.0), ("loss", 2, 2.0), ("kept", 2, 0.0)]
    assert b"training.lr: 0.1" in files[0].read_bytes()
    tracking.send(RUNS, tracker)
    assert sorted((tmp_path / "tensorboard").glob("*/events*")) == files


def events(raw: bytes):
    """The records of an event file: length, checksum, event, checksum."""
    while raw:
        [length] = struct.unpack("<Q", raw[:8])
        yield Event.FromString(raw[12 : 12 + length])
        raw = raw[16 + length :]


def test_wandb_is_given_identity_settings_and_steps(monkeypatch):
    calls = []

    class Run:
        def log(self, values, step):
            calls.append((step, values))

        def finish(self):
            calls.append("finish")

    def init(**options):
        calls.append(options)
        return Run()

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    tracking.send(RUNS.filter(run_id="a"), tracking.wandb("mine", mode="offline"))
    options, *rest = calls
    assert options == {"project": "mine", "id": "a", "name": "blobs vpu 0", "config": SENT[0][1], "reinit": True,
                       "mode": "offline"}  # fmt: skip
    assert rest == [(1, {"loss": 3.0, "kept": 1.0}), (2, {"loss": 2.0, "kept": 0.0}), "finish"]


class Client:
    """What is used of MLflow's, in memory."""

    def __init__(self, uri=None):
        self.runs, self.done = {}, []

    def get_experiment_by_name(self, name):
        return None

    def create_experiment(self, name):
        return f"id of {name}"

    def search_runs(self, where, query):
        return [one for one in self.done if f"tags.jaxpu_run = '{one}'" in query]

    def create_run(self, where, run_name, tags):
        self.runs[tags["jaxpu_run"]] = (where, run_name, [], [])
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=tags["jaxpu_run"]))

    def log_batch(self, run, params=(), metrics=()):
        assert len(params) <= 100
        assert len(metrics) <= 1000
        self.runs[run][2].extend(params)
        self.runs[run][3].extend(metrics)

    def set_terminated(self, run):
        self.done.append(run)


def test_mlflow_is_given_settings_and_numbers_once(monkeypatch):
    client = Client()
    entities = types.SimpleNamespace(Metric=lambda *values: values, Param=lambda *values: values)
    monkeypatch.setitem(sys.modules, "mlflow", types.ModuleType("mlflow"))
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    monkeypatch.setitem(sys.modules, "mlflow.tracking", types.SimpleNamespace(MlflowClient=lambda uri: client))
    long = pl.concat([RUNS.filter(run_id="a").with_columns(epoch=pl.lit(k)) for k in range(600)])
    for _ in range(2):
        tracking.send(long, tracking.named("mlflow", types.SimpleNamespace(name="quick")))
    where, title, params, metrics = client.runs["a"]
    assert (where, title, client.done) == ("id of quick", "blobs vpu 0", ["a"])
    assert ("training.lr", "0.1") in params
    assert len(metrics) == 2400
    assert metrics[:2] == [("loss", 3.0, 0, 0), ("kept", 1.0, 0, 0)]


@pytest.mark.parametrize("name", tracking.TRACKERS)
def test_an_extra_that_is_not_installed_is_named(name, monkeypatch, tmp_path):
    for module in ("tensorboardX", "mlflow", "mlflow.entities", "mlflow.tracking", "wandb"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"not installed; pip install 'jaxpu\[{name}\]'"):
        tracking.named(name, tmp_path)
