"""The engine, with a kind that costs nothing: every placement gives the same runs, and nothing finished is lost."""

import dataclasses
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import numpy as np
import polars as pl
import pytest
import toy
from polars.testing import assert_frame_equal
from toy import Toy

from jaxpu import runs
from jaxpu.config import ConfigError, PlacementConfig
from jaxpu.runs import ResultsError
from jaxpu.runs import placement as placements
from jaxpu.runs.engine import Engine
from jaxpu.runs.pool import Pool


def plainly(experiment):
    """What the engine should find, as a loop over runs with one call each."""
    found = toy.runs_of(experiment)
    frames, kept = [], {}
    for job in sorted(toy.jobs_of(experiment, found), key=lambda job: any(run.needs for run in job.runs)):
        for run in job.runs:
            key = jax.random.fold_in(jax.random.key(0), run.seed)
            inputs = job.inputs(run, {name: kept[name] for name in run.needs})
            state = toy.init(job.static, key, job.shared, inputs)
            state, history = toy.advance(job.static, key, state, job.shared, inputs, job.epochs)
            kept[run.run_id] = toy.kept(job.static, state)
            ran = ~np.isnan(np.asarray(history["x"]))
            recorded = toy.record(run, {name: np.asarray(values)[ran] for name, values in history.items()})
            frames.append(recorded.with_columns(run_id=pl.lit(run.run_id)))
    order = [run.run_id for run in found]
    return pl.concat(sorted(frames, key=lambda frame: order.index(frame["run_id"][0])))


def check(experiment, outcome, tolerance=1e-6):
    expected = plainly(experiment)
    assert outcome.runs["run_id"].to_list() == expected["run_id"].to_list()
    assert outcome.runs["epoch"].to_list() == expected["epoch"].to_list()
    for name in ("x", "path"):
        mine, theirs = (np.array(frame[name].to_list()) for frame in (outcome.runs, expected))
        np.testing.assert_allclose(mine, theirs, rtol=tolerance)


@pytest.mark.parametrize(
    "asked",
    [
        {"kind": "map", "devices": 1},
        {"kind": "map", "devices": 3, "segment": 2, "part": 3},
        {"kind": "vmap", "devices": 1},
        pytest.param({"kind": "vmap", "devices": 2, "row_devices": 2}, marks=pytest.mark.slow),
        {"kind": "chunk", "chunk": 3, "devices": 1, "segment": 3, "part": 5},
        pytest.param({"kind": "chunk", "chunk": 2, "devices": 4}, marks=pytest.mark.slow),
    ],
    ids=lambda p: " ".join(f"{k}={v}" for k, v in p.items()),
)
def test_a_run_does_not_depend_on_where_it_runs_or_beside_what(asked):
    experiment = Toy(seeds=5, placement=PlacementConfig(**asked))
    outcome = toy.run(experiment)
    assert outcome.provenance["placement"][0]["mesh"]["run"] == asked["devices"]
    check(experiment, outcome)


def test_runs_that_stop_early_make_room_and_each_has_its_own_length():
    experiment = Toy(
        rates=(0.3, 0.6, 0.99),
        seeds=6,
        epochs=25,
        stop_below=0.02,
        placement=PlacementConfig(devices=1, part=2, segment=4),
    )
    outcome = toy.run(experiment)
    lengths = outcome.runs.group_by("run_id").agg(pl.len(), pl.col("epochs_run").first())
    assert lengths["len"].to_list() == lengths["epochs_run"].to_list()
    assert lengths["len"].n_unique() > 4
    check(experiment, outcome)
    assert outcome.provenance["epochs"] == outcome.runs.height


def test_runs_of_the_first_program_train_while_others_compile(monkeypatch):
    class Apart:
        """A program a rate."""

        runs = staticmethod(toy.runs_of)

        @staticmethod
        def jobs(experiment, found):
            [job] = toy.jobs_of(experiment, found)
            of_rate = [tuple(run for run in found if run.cell == rate) for rate in experiment.rates]
            return [dataclasses.replace(job, runs=mine) for mine in of_rate]

    trained, calls, compile_one = threading.Event(), itertools.count(), Pool.compile

    def slowly(pool):
        assert next(calls) == 0 or trained.wait(60), "the first program's runs wait for the others"
        compile_one(pool)

    monkeypatch.setattr(Pool, "compile", slowly)
    experiment = Toy(rates=(0.5, 0.7, 0.9), seeds=2)
    outcome = runs.run(experiment, Apart, None, watch=lambda progress: progress.epochs_done and trained.set())
    check(experiment, outcome)
    assert len(outcome.provenance["compile_seconds_each"]) == outcome.provenance["programs"] == 3


ENDS = Toy(rates=tuple(np.linspace(0.5, 0.95, 16)), seeds=6, epochs=30, stop_below=0.1)


@pytest.mark.parametrize("devices", [1, 2])
def test_finished_runs_cost_little_beside_others_in_vmap(devices, monkeypatch):
    asked = PlacementConfig(kind="chunk", chunk=4, part=32, devices=devices, segment=2)
    experiment = dataclasses.replace(ENDS, placement=asked)
    close = toy.run(experiment)
    lengths = close.runs.group_by("run_id").len()["len"]
    assert lengths.min() < 6
    assert lengths.max() == 30
    assert close.provenance["epochs"] == close.runs.height
    assert 1 <= close.provenance["slot_epochs"] / close.provenance["epochs"] <= 1.2
    alone = toy.run(dataclasses.replace(ENDS, placement=PlacementConfig(kind="map", devices=1)))
    assert_frame_equal(close.runs, alone.runs, rel_tol=1e-6)
    assert alone.provenance["slot_epochs"] == alone.provenance["epochs"]
    monkeypatch.setattr(placements.Program, "closed_up", lambda self, occupied: None)
    apart = toy.run(experiment)
    assert apart.provenance["slot_epochs"] > 1.2 * apart.provenance["epochs"], "without closing up it is more"
    assert_frame_equal(apart.runs, close.runs)


def test_slots_close_up_on_each_device_and_keep_their_order():
    class Six(placements.Program):
        def __init__(self):
            devices = np.array(jax.devices()[:2]).reshape(2, 1)
            self.placement = placements.Placement(placements.Mesh(devices, ("run", "batch")), "chunk", 2, 12)

    occupied = np.array([0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1], bool)
    assert Six().closed_up(occupied).tolist() == [1, 4, 0, 2, 3, 5, 10, 11, 6, 7, 8, 9]
    assert Six().closed_up(np.array([1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], bool)) is None


def test_students_begin_where_their_teachers_ended_and_only_then():
    experiment = Toy(students=True, seeds=3)
    outcome = toy.run(experiment)
    check(experiment, outcome)
    assert outcome.runs["method"].unique(maintain_order=True).to_list() == ["teacher", "student"]


def test_a_folder_and_memory_hold_the_same(tmp_path):
    experiment = Toy(students=True, seeds=3)
    in_memory, on_disk = toy.run(experiment), toy.run(experiment, tmp_path)
    assert_frame_equal(in_memory.runs, on_disk.runs)
    _, provenance, read = runs.read_folder(tmp_path)
    assert_frame_equal(read, on_disk.runs)
    assert provenance == on_disk.provenance
    teacher = on_disk.runs["run_id"][0]
    for kept in (in_memory.kept(teacher), on_disk.kept(teacher), runs.read_parameters(tmp_path, teacher)):
        np.testing.assert_array_equal(kept["x"], in_memory.kept(teacher)["x"])
        assert kept["none"] == {}
    with pytest.raises(ResultsError, match="keep_best=true"):
        runs.read_parameters(tmp_path, "0" * 16)


def test_double_precision_is_a_jobs_own():
    single, double = (toy.run(Toy(precision=precision, keep=True)) for precision in ("float32", "float64"))
    assert double.kept(double.runs["run_id"][0])["x"].dtype == np.float64
    assert single.kept(single.runs["run_id"][0])["x"].dtype == np.float32
    assert not jax.config.jax_enable_x64


def test_columns_are_typed_and_stand_in_front(tmp_path):
    found = toy.run(Toy(), tmp_path).runs
    assert found.columns[:7] == ["run_id", "dataset", "method", "training.rate", "seed", "epochs_run", "epoch"]
    assert found.schema["training.rate"] == pl.Float64
    assert found.schema["path"] == pl.List(pl.Float32)


def test_inputs_of_other_shapes_are_refused_and_each_is_made_once(monkeypatch):
    made = []

    def jobs(experiment, found):
        job = toy.jobs_of(experiment, found)[0]

        def inputs(run, needed):
            made.append(run.seed)
            rate = {"rate": np.full(2, run.cell, np.float32)} if run.seed == 103 else {}
            return job.inputs(run, needed) | rate

        return [dataclasses.replace(job, inputs=inputs)]

    monkeypatch.setattr(toy.Kind, "jobs", staticmethod(jobs))
    toy.run(Toy(rates=(0.5,), seeds=20))
    assert sorted(made[1:]) == list(range(20)), "the first is the example that the program is compiled for"
    made.clear()
    with pytest.raises(ValueError, match=r"differ in shape or type: .*; pad them"):
        toy.run(Toy(rates=(0.5,), seeds=4, first_seed=100))


def test_equal_programs_are_compiled_once(monkeypatch):
    traced = []
    monkeypatch.setattr(
        toy, "FUNCTIONS", toy.FUNCTIONS._replace(advance=lambda *a: traced.append(1) or toy.advance(*a))
    )
    toy.run(Toy(rates=(0.1, 0.2), seeds=2))
    toy.run(Toy(rates=(0.3, 0.4), seeds=2))
    assert len(traced) == 1


def test_finished_runs_are_kept_and_more_seeds_only_add(tmp_path):
    first = toy.run(Toy(seeds=2), tmp_path)
    notes = []
    more = toy.run(Toy(seeds=3), tmp_path, watch=lambda p: notes.append(p.note))
    assert more.provenance["epochs"] == more.runs.filter(pl.col("seed") == 2).height
    assert any("4 of 6 runs are finished already" in note for note in notes)
    assert_frame_equal(more.runs.filter(pl.col("seed") < 2), first.runs)
    again = toy.run(Toy(seeds=3), tmp_path)
    assert again.provenance == more.provenance
    assert_frame_equal(again.runs, more.runs)
    fresh = toy.run(Toy(seeds=3), tmp_path, fresh=True)
    assert_frame_equal(fresh.runs, more.runs)
    assert fresh.provenance["epochs"] == fresh.runs.height


def test_a_name_that_changes_is_no_other_run(tmp_path, monkeypatch):
    first = toy.run(Toy(seeds=2), tmp_path)

    def renamed(experiment):
        return [
            dataclasses.replace(run, columns={"dataset": "new", "model.width": 7, "seed": run.seed})
            for run in toy.runs_of(experiment)
        ]

    monkeypatch.setattr(toy.Kind, "runs", staticmethod(renamed))
    second = toy.run(Toy(seeds=2), tmp_path)
    assert second.runs.columns[:6] == ["run_id", "dataset", "model.width", "seed", "epochs_run", "epoch"]
    assert_frame_equal(second.runs.select(first.runs.columns[5:]), first.runs.select(first.runs.columns[5:]))
    assert second.provenance == first.provenance
    assert_frame_equal(runs.read_folder(tmp_path)[2], second.runs)


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_folder_of_other_settings_or_other_data_is_refused_untouched(tmp_path):
    toy.run(Toy(seeds=2), tmp_path)
    before = content(tmp_path)
    for changes in ({"epochs": 8}, {"content": "replaced"}):
        with pytest.raises(ResultsError, match=r"4 runs of another configuration.*--fresh"):
            toy.run(Toy(seeds=2, **changes), tmp_path)
    assert content(tmp_path) == before


ANOTHER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import toy
from jaxpu.runs import ResultsError
try:
    toy.run(toy.Toy(seeds=2), Path(sys.argv[2]))
except ResultsError as error:
    print(error)
"""


@pytest.mark.slow
def test_two_processes_on_a_folder_are_one_too_many(tmp_path):
    words = [sys.executable, "-c", ANOTHER, str(Path(__file__).parent), str(tmp_path)]
    with runs.locked(tmp_path):
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "is being written by another run" in done.stdout
    assert content(tmp_path).keys() == {Path(".lock")}


def old(folder, how):
    """Results as format 2 wrote them."""
    folder.mkdir()
    frame = pl.DataFrame({"run_id": ["a"], "dataset": "d", "method": "m", "cell": "lr=0.1", "seed": [0]})
    if how == "interrupted":
        (folder / "parts").mkdir()
        frame.write_parquet(folder / "parts" / f"{1:016x}.parquet")
    else:
        frame.write_parquet(folder / "runs.parquet")
    (folder / "config.yaml").write_text("name: toy\n")
    if how == "finished":
        (folder / "provenance.json").write_text(json.dumps({"experiment": "toy", "commit": None}))


@pytest.mark.parametrize("how", ["finished", "without provenance", "interrupted"])
def test_results_of_an_older_version_are_named_and_left_alone(tmp_path, how):
    folder = tmp_path / "old"
    old(folder, how)
    before = content(folder)
    with pytest.raises(ResultsError, match=r"older version of jaxpu \(format 2\).*nothing was changed.*--fresh"):
        toy.run(Toy(), folder)
    if how == "finished":
        with pytest.raises(ResultsError, match="format 2"):
            runs.read_folder(folder)
    after = content(folder)
    assert {path: after[path] for path in before} == before
    assert set(after) - set(before) <= {Path(".lock")}
    assert toy.run(Toy(), folder, fresh=True).runs.height == 56


def test_truncated_failed_and_foreign_files_are_named_and_only_the_lost_is_redone(tmp_path):
    experiment = Toy(rates=(0.5,), seeds=4)
    whole = toy.run(experiment, tmp_path / "a").runs
    folder, parts = tmp_path / "b", tmp_path / "b" / "parts"
    by_seed = {seed: whole.filter(pl.col("seed") == seed) for seed in range(4)}
    good, cut = (f"{i:016x}.parquet" for i in range(2))
    runs.write_frame(parts / good, by_seed[0])
    runs.write_frame(parts / cut, by_seed[1])
    (parts / cut).write_bytes((parts / cut).read_bytes()[:-50])
    runs.Folder(folder).fail(f"{3:016x}", [by_seed[3]["run_id"][0]], "RESOURCE_EXHAUSTED: out of memory")
    (parts / "notes.txt").write_text("mine")
    pl.DataFrame({"a": [1]}).write_parquet(parts / "other.parquet")
    notes = []
    redone = toy.run(experiment, folder, watch=lambda p: notes.append(p.note))
    text = "\n".join(notes)
    for words in (
        f"{cut} is damaged or truncated",
        "1 runs had failed (RESOURCE_EXHAUSTED: out of memory); they are redone",
        "parts/notes.txt is not a file of jaxpu; left alone",
        "other.parquet is foreign (no column 'run_id'); left alone",
        "1 of 4 runs are finished already and kept",
    ):
        assert words in text
    assert_frame_equal(redone.runs, whole)
    assert redone.provenance["epochs"] == whole.filter(pl.col("seed") > 0).height
    assert sorted(path.name for path in parts.iterdir()) == ["notes.txt", "other.parquet"]


def flipped(path, bit):
    raw = bytearray(path.read_bytes())
    raw[bit // 8] ^= 1 << bit % 8
    path.write_bytes(raw)


@pytest.mark.parametrize("name", ["runs.parquet", "parts", "parameters", "config.yaml", "provenance.json"])
def test_one_flipped_bit_is_named_and_only_what_it_hit_is_redone(tmp_path, name):
    experiment = Toy(rates=(0.5,), seeds=3, keep=True)
    whole = toy.run(experiment, tmp_path / "whole").runs
    random_bits = random.Random(0)
    for number in range(6):
        folder = tmp_path / str(number)
        toy.run(experiment, folder)
        if name == "parts":
            for seed in range(3):
                runs.write_frame(folder / "parts" / f"{seed:016x}.parquet", whole.filter(pl.col("seed") == seed))
            (folder / "runs.parquet").unlink()
            path = folder / "parts" / f"{1:016x}.parquet"
        else:
            path = next((folder / name).glob("*")) if name == "parameters" else folder / name
        flipped(path, random_bits.randrange(8 * path.stat().st_size))
        if name not in ("parts", "parameters"):
            with pytest.raises(ResultsError, match=r"damaged|unfinished"):
                runs.read_folder(folder)
        notes = []
        outcome = toy.run(experiment, folder, watch=notes.append)
        assert_frame_equal(outcome.runs, whole)
        assert_frame_equal(runs.read_folder(folder)[2], whole)
        lost = {"runs.parquet": 3, "parts": 1, "parameters": 1}.get(name, 0)
        assert notes[-1].epochs_done == 7 * lost, "what is redone"
        assert any("damaged" in progress.note for progress in notes)
        for run_id in whole["run_id"].unique():
            runs.read_parameters(folder, run_id)


def test_a_damaged_working_state_is_named_and_its_runs_begin_again(tmp_path, monkeypatch):
    experiment = Toy(epochs=20, placement=PlacementConfig(segment=1, devices=1, checkpoint_seconds=0))
    whole = toy.run(experiment).runs

    def stopped(progress):
        if progress.epochs_done > 40:
            raise KeyboardInterrupt

    for damage in (False, True):
        folder = tmp_path / str(damage)
        with pytest.raises(KeyboardInterrupt):
            toy.run(experiment, folder, watch=stopped)
        [state] = (folder / "parts").glob("*.state")
        if damage:
            flipped(state, 8 * state.stat().st_size // 2)
        notes = []
        assert_frame_equal(toy.run(experiment, folder, watch=notes.append).runs, whole)
        told = "\n".join(progress.note for progress in notes)
        assert ("unfinished runs go on where they stopped" in told) != damage
        assert ("is damaged (its checksum does not fit); unfinished runs begin again" in told) == damage
        assert notes[-1].epochs_done == (160 if damage else 160 - 48)


def test_no_flipped_bit_is_ever_accepted():
    frame = pl.DataFrame({"x": np.arange(3.0)})
    for suffix, body in (
        (".parquet", None),
        (".npz", runs.trees.pack({"x": np.arange(3)})),
        (".state", runs.trees.pack_slots([np.ones((2, 3))], [{"x": np.ones(2)}, {}], ["a", None])),
        (".json", b'{\n  "a": 1\n}\n'),
        (".yaml", b"seeds: 8\n"),
    ):
        if body is None:
            buffer = runs.files.io.BytesIO()
            frame.write_parquet(buffer)
            body = buffer.getvalue()
        whole = runs.files.seal(suffix, body)
        assert runs.files.unseal(suffix, whole) == body
        for place, bit in itertools.product(range(len(whole)), range(8)):
            raw = bytearray(whole)
            raw[place] ^= 1 << bit
            with pytest.raises(runs.Damaged):
                runs.files.unseal(suffix, bytes(raw))
        for length in range(len(whole)):
            with pytest.raises(runs.Damaged):
                runs.files.unseal(suffix, whole[:length])


def test_files_with_a_checksum_stay_what_their_names_say(tmp_path):
    toy.run(Toy(keep=True), tmp_path)
    assert pl.scan_parquet(tmp_path / "runs.parquet").select("x").collect().height == 56
    with np.load(next((tmp_path / "parameters").glob("*"))) as stored:
        assert stored["x"].shape == (2,)
    assert json.loads((tmp_path / "provenance.json").read_text())["experiment"] == "toy"


@pytest.fixture
def broken(monkeypatch):
    """Programs that fail for runs that are handed something by others, or for those that are not."""
    original = placements.Program.compile

    def break_for(students):
        def compiled(self, shared, slots, states):
            program = original(self, shared, slots, states)

            def run(shared, slots, states):
                if bool((np.asarray(slots.inputs["start"]) != 0).any()) == students:
                    raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: planted\nlong story")
                return program(shared, slots, states)

            return run

        monkeypatch.setattr(placements.Program, "compile", compiled)
        return monkeypatch

    return break_for


def test_a_program_that_fails_is_marked_and_the_others_go_on(tmp_path, broken):
    experiment = Toy(students=True, seeds=2)
    undo = broken(students=True)
    outcome = toy.run(experiment, tmp_path)
    assert outcome.failures == ("4 runs failed: RESOURCE_EXHAUSTED: planted",)
    assert outcome.runs["method"].unique().to_list() == ["teacher"]
    [mark] = (tmp_path / "parts").glob("*.failed.json")
    assert json.loads(mark.read_text())["error"] == "RESOURCE_EXHAUSTED: planted"
    undo.undo()
    healed = toy.run(experiment, tmp_path)
    assert healed.failures == ()
    assert healed.runs["run_id"].n_unique() == 8
    assert not (tmp_path / "parts").exists()


def test_runs_that_need_a_failed_run_fail_with_it(tmp_path, broken):
    broken(students=False)
    with pytest.raises(runs.NothingFinished, match="planted; 4 runs failed: runs that they need have failed"):
        toy.run(Toy(students=True, seeds=2), tmp_path)


def test_what_cannot_be_run_is_said_before_anything_is_touched(tmp_path):
    folder = tmp_path / "new"
    with pytest.raises(ConfigError, match=r"two runs are the same: .*'training.rate': 0.5"):
        toy.run(Toy(rates=(0.5, 0.5)), folder)
    with pytest.raises(ConfigError, match=r"below 2\^32"):
        toy.run(Toy(first_seed=2**32), folder)
    with pytest.raises(ConfigError, match="asks for 9 devices, there are 8"):
        toy.run(Toy(placement=PlacementConfig(devices=9)), folder)
    assert not folder.exists()
    (tmp_path / "dir" / "runs.parquet").mkdir(parents=True)
    with pytest.raises(ResultsError, match=r"runs.parquet is a folder; left alone"):
        toy.run(Toy(), tmp_path / "dir")
    (tmp_path / "theirs").mkdir()
    pl.DataFrame({"mine": [1]}).write_parquet(tmp_path / "theirs" / "runs.parquet")
    with pytest.raises(ResultsError, match=r"runs.parquet is foreign .*--fresh to replace it"):
        toy.run(Toy(), tmp_path / "theirs")


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path, monkeypatch):
    toy.run(Toy(seeds=2), tmp_path)
    before = (tmp_path / "runs.parquet").read_bytes()

    def full(file):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ResultsError, match=r"cannot write .*No space left on device; make room"):
            toy.run(Toy(seeds=3), tmp_path)
    assert (tmp_path / "runs.parquet").read_bytes() == before
    assert toy.run(Toy(seeds=3), tmp_path).runs["run_id"].n_unique() == 6


def test_placement_is_chosen_by_backend_and_memory():
    def placed(memory=toy.memory, **asked):
        job = dataclasses.replace(
            Engine(Toy(seeds=32), toy.Kind, print).jobs[0], functions=toy.FUNCTIONS._replace(memory=memory)
        )
        return placements.resolve(PlacementConfig(**asked), job)

    assert (placed().kind, placed().chunk, placed().mesh.shape["run"]) == ("map", 1, 8)
    assert placed(kind="vmap", devices=2).chunk == 32
    assert placed(kind="chunk", chunk=5, devices=1).slots % 5 == 0
    assert placed(kind="chunk", devices=1).chunk == 64, "small runs all fit"
    assert placed(lambda static, shared: 1 << 30, kind="chunk", devices=1).chunk == 4, "half of what is free"
    assert placed(devices=2, row_devices=4).mesh.devices.shape == (2, 4)


# One process has imported everything and forks a child for each experiment: to import again what takes two seconds,
# so many times over, would test nothing. It forks before jax starts any thread.
FORKS = """
import os, sys, warnings
from pathlib import Path
sys.path.insert(0, {tests!r})
import jax, polars
import toy
from jaxpu.config import PlacementConfig
jax.config.update("jax_compilation_cache_dir", os.environ["JAXPU_TEST_CACHE"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
warnings.filterwarnings("ignore", "os.fork")
slow = PlacementConfig(segment=1, part=2, devices=1, checkpoint_seconds=0)
told = []
def tell(progress=None):
    if (progress is None or progress.epochs_done) and not told:
        told.append(print("training", flush=True))
for out in sys.stdin:
    child = os.fork()
    if child == 0:
        toy.run(toy.Toy(seeds=3, epochs=12, students=True, placement=slow), Path(out.strip()), watch=tell)
        tell()  # nothing was left to train
        os._exit(0)
    print(child, flush=True)
    sys.stdin.readline()  # not before it is asked for: until then the child's number is its own
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Experiments:
    """Experiments in processes of their own, one after the other."""

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
        assert line, "the process that starts experiments has died"
        return line


@pytest.mark.slow
def test_an_experiment_killed_twelve_times_ends_with_the_same_files(tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    with Experiments() as experiments:
        experiments.start(undisturbed)  # and fills the compilation cache
        assert experiments.wait() == 0
        began = time.perf_counter()
        experiments.start(tmp_path / "timed")
        experiments.until_training()
        start = time.perf_counter() - began
        assert experiments.wait() == 0
        training = time.perf_counter() - began - start
        moments = random.Random(0)
        kills = again = 0
        while kills < 12:
            experiments.start(killed)
            if kills % 4:  # most while it trains and writes, the others at any time
                experiments.until_training()
                time.sleep(moments.uniform(0, training))
            else:
                time.sleep(moments.uniform(0, start + training))
            kills += experiments.kill()
            if (killed / "runs.parquet").exists():  # done before so many kills: begin again, beside
                assert_frame_equal(
                    pl.read_parquet(killed / "runs.parquet"), pl.read_parquet(undisturbed / "runs.parquet")
                )
                again += 1
                killed = tmp_path / f"killed{again}"
        experiments.start(killed)
        assert experiments.wait() == 0
    assert (killed / "runs.parquet").read_bytes() == (undisturbed / "runs.parquet").read_bytes()
    for path in (undisturbed / "parameters").iterdir():
        assert (killed / "parameters" / path.name).read_bytes() == path.read_bytes()
    assert not (killed / "parts").exists()


def test_what_an_interrupted_experiment_has_finished_is_recorded_as_it_stands(tmp_path):
    small = Toy(rates=(0.5,), seeds=3, epochs=4)
    whole = toy.run(small).runs
    runs.Folder(tmp_path).add("0" * 16, whole.filter(pl.col("seed") < 2))
    runs.stand(small, toy.Kind, tmp_path)
    assert_frame_equal(runs.read_frame(tmp_path / "runs.parquet"), whole.filter(pl.col("seed") < 2))
    provenance = runs.read_provenance(tmp_path)
    assert provenance["unfinished"] == 1
    assert runs.took(provenance) == "1 more not finished,"
    assert_frame_equal(toy.run(small, tmp_path).runs, whole)
    assert "unfinished" not in runs.read_provenance(tmp_path)
    assert not (tmp_path / "parts").exists()
