"""What is on disk: old or new, never half; what cannot be used is named; what is not ours is left alone."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import jaxpu
from jaxpu import results
from jaxpu.sweep import checkpoint


def rows(run_id: str, epochs: int = 3, *, recorded: int | None = None) -> pl.DataFrame:
    """A run of ``epochs`` epochs, of which ``recorded`` rows are there."""
    recorded = epochs if recorded is None else recorded
    return pl.DataFrame(
        {
            "run_id": run_id,
            "dataset": "gaussians",
            "method": "vpu",
            "seed": 0,
            "epochs_run": epochs,
            "epoch": np.arange(1, recorded + 1),
            "train_loss": np.linspace(1, 0.5, recorded),
        }
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_writer_that_raises_leaves_the_old_file_and_nothing_else(tmp_path):
    results.write_text(tmp_path / "a.txt", "old")

    def half(path: Path) -> None:
        path.write_text("ne")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        results.atomic_write(tmp_path / "a.txt", half)
    with pytest.raises(OSError, match="no space left"):
        results.atomic_write(tmp_path / "below" / "b.txt", half)
    assert (tmp_path / "a.txt").read_text() == "old"
    assert (names(tmp_path), names(tmp_path / "below")) == (["a.txt", "below"], [])
    results.write_text(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert names(tmp_path) == ["a.txt", "below"]


KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from jaxpu import results

def half(path):
    path.write_text("ne")
    os.kill(os.getpid(), signal.SIGKILL)

results.atomic_write(Path(sys.argv[1]), half)
"""


def test_a_writer_that_is_killed_leaves_the_old_file_and_a_rest_that_is_cleared(tmp_path):
    file = tmp_path / "parts" / "0123456789abcdef.parquet"
    results.write_frame(file, rows("a"))
    before = file.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(file)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() == before
    left = names(file.parent)
    assert len(left) == 2, "the rest of the killed writer, beside the file"
    inventory = results.take_inventory(tmp_path, ["a"])
    assert (inventory.done, inventory.notes) == ({"a"}, ()), "the rest is neither read nor foreign"
    results.clear_parts(tmp_path)
    assert names(tmp_path) == []


def test_a_killed_writer_of_another_name_leaves_the_old_file(tmp_path):
    results.write_text(tmp_path / "config.yaml", "old")
    subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(tmp_path / "config.yaml")], check=False)
    assert (tmp_path / "config.yaml").read_text() == "old"


def test_csv_numbers_have_six_digits_and_parquet_is_exact(tmp_path):
    frame = pl.DataFrame({"x": [1 / 3, float("nan"), None], "n": [1, 2, 3]})
    results.write_frame(tmp_path / "a.csv", frame)
    assert (tmp_path / "a.csv").read_text() == "x,n\n0.333333,1\nNaN,2\n,3\n"
    results.write_frame(tmp_path / "a.parquet", frame)
    assert_frame_equal(pl.read_parquet(tmp_path / "a.parquet"), frame)


def test_inventory_keeps_whole_runs_and_names_the_rest(tmp_path):
    parts = tmp_path / "parts"
    results.write_frame(tmp_path / "runs.parquet", pl.concat([rows("a"), rows("stranger")]))
    results.write_frame(parts / f"{1:016x}.parquet", pl.concat([rows("b"), rows("c", 3, recorded=2)]))
    gap = rows("d").with_columns(epoch=pl.Series([1, 2, 2]))
    results.write_frame(parts / f"{2:016x}.parquet", pl.concat([gap, rows("a")]))  # a is in two files
    (parts / f"{3:016x}.parquet").write_bytes(b"PAR1 not really")
    (parts / f"{4:016x}.failed.json").write_text("{")
    results.mark_failed(tmp_path, f"{5:016x}", ["e", "f"], "out of memory")
    pl.DataFrame({"run_id": ["a"]}).write_parquet(parts / "mine.parquet")
    (parts / "notes.txt").write_text("mine")
    held = results.take_inventory(tmp_path, list("abcdef"))
    assert held.done == {"a", "b"}
    assert held.foreign_runs == 1
    assert held.runs is not None
    wanted = pl.concat([rows("a"), rows("b")])
    assert_frame_equal(held.runs.sort("run_id", "epoch"), wanted)
    told = "\n".join(held.notes)
    for words in (
        "runs.parquet holds 1 runs that this experiment does not ask for",
        f"{1:016x}.parquet: 1 incomplete runs are redone",
        f"{2:016x}.parquet: 1 incomplete runs are redone",
        f"{3:016x}.parquet is damaged or truncated",
        f"{4:016x}.failed.json is damaged; ignored",
        f"{5:016x}.failed.json: 2 runs had failed (out of memory); they are redone",
        "mine.parquet is foreign (no column 'dataset'); left alone",
        "parts/notes.txt is not a file of jaxpu; left alone",
    ):
        assert words in told
    assert len(held.notes) == 8


def test_an_empty_folder_holds_nothing(tmp_path):
    held = results.take_inventory(tmp_path / "nowhere", ["a"])
    assert (held.runs, held.notes, held.foreign_runs, held.done) == (None, (), 0, set())
    assert results.count_runs(tmp_path) == 0
    assert results.read_provenance(tmp_path) is None


def test_a_table_of_something_else_is_never_replaced(tmp_path):
    pl.DataFrame({"mine": [1]}).write_parquet(tmp_path / "runs.parquet")
    with pytest.raises(results.ResultsError, match=r"runs.parquet is foreign .*--fresh to replace it"):
        results.take_inventory(tmp_path, ["a"])
    (tmp_path / "runs.parquet").write_bytes(b"damaged")  # ours or not, there is nothing in it to lose
    [note] = results.take_inventory(tmp_path, ["a"]).notes
    assert note.startswith("runs.parquet is damaged or truncated")


def test_only_files_named_by_a_digest_are_ever_removed(tmp_path):
    digest = "0123456789abcdef"
    ours = [
        f"{digest}.parquet",
        f"{digest}.failed.json",
        f"{digest}.state.npz",
        f".{digest}.parquet.123.tmp",
        f".{digest}.state.npz.7.tmp",
    ]
    theirs = [
        "notes.txt",
        "mine.parquet",
        f"{digest}.txt",
        f"{digest}0.parquet",
        f"{digest[:-1]}.parquet",
        f"{digest.upper()}.parquet",
        f"{digest}.parquet.bak",
        f"my{digest}.parquet",
    ]
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ours + theirs:
        (parts / name).write_text(name)
    (tmp_path / "runs.parquet").write_text("kept by clear_parts")
    results.clear_parts(tmp_path)
    assert names(parts) == sorted(theirs)
    assert (tmp_path / "runs.parquet").exists()
    results.remove_results(tmp_path)
    assert not (tmp_path / "runs.parquet").exists()
    assert names(parts) == sorted(theirs)
    shutil.rmtree(parts)
    results.clear_parts(tmp_path)  # nothing there is fine


def test_a_folder_has_one_writer_and_is_free_again_after_it(tmp_path):
    def enter(folder: Path) -> None:
        with results.locked(folder):
            pass

    with results.locked(tmp_path / "out"), pytest.raises(results.ResultsError, match="being written by another run"):
        enter(tmp_path / "out")
    enter(tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(results.ResultsError, match=r"cannot write to .*give another --out"):
        enter(tmp_path / "file")


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_commit_is_that_of_the_checkout_or_none(tmp_path, monkeypatch):
    package = tmp_path / "jaxpu"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(jaxpu, "__file__", str(package / "__init__.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    nothing = {"commit": None, "dirty": None}
    assert results.commit() == nothing, "outside any checkout"
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "another project")
    assert results.commit() == nothing, "installed within the checkout of another project"
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "ours")
    assert results.commit() == {"commit": git(tmp_path, "rev-parse", "HEAD"), "dirty": False}
    (tmp_path / "elsewhere.txt").write_text("of no concern")
    assert results.commit()["dirty"] is False
    (package / "__init__.py").write_text("changed = True")
    assert results.commit()["dirty"] is True
    monkeypatch.setenv("PATH", "")
    assert results.commit() == nothing, "without git"


@pytest.fixture
def state():
    generator = np.random.default_rng(0)
    return {
        "params": {"kernel": generator.normal(size=(2, 3, 4)).astype(np.float32)},
        "epoch": np.array([1, 5], np.int32),
        "best": generator.normal(size=(2, 1)),
    }


HISTORIES = [{"train_loss": np.array([0.5], np.float32), "probe_w": np.ones((1, 3))}, {}]


def test_a_checkpoint_comes_back_as_it_was(tmp_path, state):
    file = tmp_path / "parts" / f"{0:016x}.state.npz"
    checkpoint.save(file, state, HISTORIES, ["a", None])
    loaded = checkpoint.load(file, state)
    assert loaded is not None
    run_ids, states, histories = loaded
    assert run_ids == ["a", None]
    for mine, theirs in ((states["params"]["kernel"], state["params"]["kernel"]), (states["epoch"], state["epoch"])):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(states["best"], state["best"])
    assert [sorted(history) for history in histories] == [["probe_w", "train_loss"], []]
    np.testing.assert_array_equal(histories[0]["probe_w"], HISTORIES[0]["probe_w"])


def test_a_checkpoint_of_other_slots_fits_one_of_other_shapes_does_not(tmp_path, state):
    file = tmp_path / "state.npz"
    checkpoint.save(file, state, HISTORIES, ["a", None])
    other_slots = {key: np.zeros((5, *np.shape(value)[1:])) for key, value in state.items() if key != "params"}
    loaded = checkpoint.load(file, other_slots | {"params": {"kernel": np.zeros((5, 3, 4))}})
    assert loaded is not None
    assert loaded[1]["epoch"].tolist() == [1, 5]
    assert checkpoint.load(file, state | {"params": {"kernel": np.zeros((2, 3, 5))}}) is None
    assert checkpoint.load(file, state | {"more": np.zeros(2)}) is None


def test_a_damaged_checkpoint_is_none(tmp_path, state):
    file = tmp_path / "state.npz"
    assert checkpoint.load(file, state) is None, "not there"
    checkpoint.save(file, state, HISTORIES, ["a", None])
    whole = file.read_bytes()
    for length in (0, 10, 32, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert checkpoint.load(file, state) is None, f"cut to {length} bytes"
    for place in (0, 31, 32, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        file.write_bytes(flipped)
        assert checkpoint.load(file, state) is None, f"a bit of byte {place} flipped"
    file.write_bytes(whole)
    assert checkpoint.load(file, state) is not None
