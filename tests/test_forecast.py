"""What an experiment will cost: counts are exact, times are those of the segments that were tried."""

import itertools
import math
import time

import pytest
import toy

from jaxpu import cli, runs
from jaxpu.config import PlacementConfig
from jaxpu.runs.forecast import forecast


class ToyKind:
    runs = staticmethod(toy.runs_of)
    jobs = staticmethod(toy.jobs_of)


def test_counts_are_those_of_the_runs_and_time_is_that_of_the_segment_tried():
    ticks = itertools.count(0, 10)
    placement = PlacementConfig(devices=2, segment=5)
    toy_ = toy.Toy(rates=(0.5, 0.9), seeds=4, epochs=7, placement=placement)
    found = forecast(toy_, ToyKind(), least=5, clock=lambda: float(next(ticks)))
    (program,) = found.programs
    assert (found.runs, program.runs, program.epochs, program.at_once) == (8, 8, 7, 2)
    assert program.methods == ("teacher",)
    assert program.bytes == 2 << 20
    assert (program.compile_seconds, program.epoch_seconds) == (10, 2), "ten seconds for five epochs"
    assert found.range == (4 * 5 * 2, 4 * 7 * 2), "four times two runs"
    assert found.seconds == pytest.approx(math.sqrt(40 * 56))
    assert found.peak_bytes > 100 << 20


def test_runs_that_need_others_are_counted_and_not_tried():
    found = forecast(toy.Toy(students=True), ToyKind())
    assert found.runs == 16
    tried = [program for program in found.programs if not math.isnan(program.epoch_seconds)]
    assert [program.methods for program in tried] == [("teacher",)]
    assert found.range == (found.seconds, found.seconds) == (tried[0].seconds(),) * 2


def test_the_estimate_is_of_the_size_of_the_truth():
    slow = toy.Toy(rates=(0.5,), seeds=6, epochs=200, placement=PlacementConfig(devices=1, segment=50))
    estimate = forecast(slow, ToyKind()).seconds
    began = time.perf_counter()
    runs.run(slow, ToyKind(), None)
    assert 0 < estimate < 20 * (time.perf_counter() - began), "a guard against units, whatever else the machine does"


def test_a_dry_run_says_what_there_is_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(
        "data: {name: gaussians, options: {n: 60}}\nmodel: {name: linear}\nmethods: [pn_naive]\nseeds: 3\n"
        "training: {epochs: 30}\nselection: {rules: [val_f1], default: val_f1}\n"
    )
    with pytest.raises(SystemExit) as end:
        cli.main(["run", "a.yaml", "--dry-run"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith("1 cells, 3 runs, 1 programs\n  gaussians: 3 runs of pn_naive, 30 epochs, ")
    assert "(every run ends early) and " in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]
