"""What is on disk: old or new, never half; what cannot be used is named; what is not ours is left alone."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import jaxpu
from jaxpu import runs
from jaxpu.runs import trees


def rows(run_id: str, epochs: int = 3) -> pl.DataFrame:
    """A run of ``epochs`` epochs."""
    return pl.DataFrame(
        {
            "run_id": run_id,
            "dataset": "gaussians",
            "seed": 0,
            "epochs_run": epochs,
            "epoch": np.arange(1, epochs + 1),
            "train_loss": np.linspace(1, 0.5, epochs),
        }
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_writer_that_raises_leaves_the_old_file_and_nothing_else(tmp_path):
    runs.write_text(tmp_path / "a.txt", "old")

    def half(path: Path) -> None:
        path.write_text("ne")
        raise OSError(28, "no space left on device")

    with pytest.raises(runs.ResultsError, match="no space left"):
        runs.atomic_write(tmp_path / "a.txt", half)
    with pytest.raises(runs.ResultsError, match="no space left"):
        runs.atomic_write(tmp_path / "below" / "b.txt", half)
    assert (tmp_path / "a.txt").read_text() == "old"
    assert (names(tmp_path), names(tmp_path / "below")) == (["a.txt", "below"], [])
    runs.write_text(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert names(tmp_path) == ["a.txt", "below"]


KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from jaxpu import runs

def half(path):
    path.write_text("ne")
    os.kill(os.getpid(), signal.SIGKILL)

runs.atomic_write(Path(sys.argv[1]), half)
"""


def test_a_writer_that_is_killed_leaves_the_old_file_and_a_rest_that_is_cleared(tmp_path):
    file = tmp_path / "parts" / "0123456789abcdef.parquet"
    runs.write_frame(file, rows("a"))
    before = file.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(file)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() == before
    left = names(file.parent)
    assert len(left) == 2, "the rest of the killed writer, beside the file"
    inventory = runs.Folder(tmp_path).take(["a"])
    assert (inventory.done, inventory.notes) == ({"a"}, ()), "the rest is neither read nor foreign"
    runs.Folder(tmp_path).remove()
    assert names(tmp_path) == []


def test_a_killed_writer_of_another_name_leaves_the_old_file(tmp_path):
    runs.write_text(tmp_path / "config.yaml", "old")
    subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(tmp_path / "config.yaml")], check=False)
    assert (tmp_path / "config.yaml").read_text() == "old"


def test_csv_numbers_have_six_digits_and_parquet_is_exact(tmp_path):
    frame = pl.DataFrame({"x": [1 / 3, float("nan"), None], "n": [1, 2, 3]})
    runs.write_frame(tmp_path / "a.csv", frame)
    assert (tmp_path / "a.csv").read_text() == "x,n\n0.333333,1\nNaN,2\n,3\n"
    runs.write_frame(tmp_path / "a.parquet", frame)
    assert_frame_equal(runs.read_frame(tmp_path / "a.parquet"), frame)


def test_an_inventory_keeps_whole_tables_and_names_the_rest(tmp_path):
    parts = tmp_path / "parts"
    runs.write_frame(tmp_path / "runs.parquet", pl.concat([rows("a"), rows("stranger")]))
    runs.write_frame(parts / f"{1:016x}.parquet", pl.concat([rows("b"), rows("a")]))  # a is in two files
    rows("c").write_parquet(parts / f"{2:016x}.parquet")  # without a checksum
    (parts / f"{3:016x}.parquet").write_bytes(b"PAR1 not really")
    (parts / f"{4:016x}.failed.json").write_text("{")
    runs.Folder(tmp_path).fail(f"{5:016x}", ["e", "f"], "out of memory")
    pl.DataFrame({"mine": ["a"]}).write_parquet(parts / "mine.parquet")
    (parts / "notes.txt").write_text("mine")
    held = runs.Folder(tmp_path).take(list("abcdef"))
    assert held.done == {"a", "b"}
    assert held.foreign_runs == 1
    assert held.runs is not None
    assert_frame_equal(held.runs, pl.concat([rows("a"), rows("b")]).drop("dataset", "seed"))
    told = "\n".join(held.notes)
    for words in (
        "holds 1 runs that this experiment does not ask for",
        f"{2:016x}.parquet is damaged or truncated (it has no checksum)",
        f"{3:016x}.parquet is damaged or truncated",
        f"{4:016x}.failed.json is damaged; ignored",
        f"{5:016x}.failed.json: 2 runs had failed (out of memory); they are redone",
        "mine.parquet is foreign (no column 'run_id'); left alone",
        "parts/notes.txt is not a file of jaxpu; left alone",
    ):
        assert words in told
    assert len(held.notes) == 7


def test_an_empty_folder_holds_nothing(tmp_path):
    held = runs.Folder(tmp_path / "nowhere").take(["a"])
    assert (held.runs, held.notes, held.foreign_runs, held.done) == (None, (), 0, set())
    assert runs.read_provenance(tmp_path) is None


def test_only_files_named_by_a_digest_are_ever_removed(tmp_path):
    digest = "0123456789abcdef"
    ours = [
        f"{digest}.parquet",
        f"{digest}.failed.json",
        f"{digest}.state",
        f".{digest}.parquet.123.tmp",
        f".{digest}.state.7.tmp",
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
    (tmp_path / "runs.parquet").write_text("old")
    (tmp_path / "report.html").write_text("kept")
    runs.Folder(tmp_path).remove()
    assert names(tmp_path) == ["parts", "report.html"]
    assert names(parts) == sorted(theirs)
    shutil.rmtree(parts)
    runs.Folder(tmp_path).remove()  # nothing there is fine


def test_a_folder_has_one_writer_and_is_free_again_after_it(tmp_path):
    def enter(folder: Path) -> None:
        with runs.locked(folder):
            pass

    with runs.locked(tmp_path / "out"), pytest.raises(runs.ResultsError, match="being written by another run"):
        enter(tmp_path / "out")
    enter(tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(runs.ResultsError, match=r"cannot write to .*give another --out"):
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
    assert runs.commit() == nothing, "outside any checkout"
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "another project")
    assert runs.commit() == nothing, "installed within the checkout of another project"
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "ours")
    assert runs.commit() == {"commit": git(tmp_path, "rev-parse", "HEAD"), "dirty": False}
    (tmp_path / "elsewhere.txt").write_text("of no concern")
    assert runs.commit()["dirty"] is False
    (package / "__init__.py").write_text("changed = True")
    assert runs.commit()["dirty"] is True
    monkeypatch.setenv("PATH", "")
    assert runs.commit() == nothing, "without git"


@pytest.fixture
def state():
    generator = np.random.default_rng(0)
    return [
        generator.normal(size=(2, 3, 4)).astype(np.float32),
        np.array([1, 5], np.int32),
        generator.normal(size=(2, 1)).astype(jnp.bfloat16),
    ]


HISTORIES = [{"train_loss": np.array([0.5], np.float32), "probe_w": np.ones((1, 3))}, {}]


def test_a_working_state_comes_back_as_it_was(state):
    loaded = trees.unpack_slots(trees.pack_slots(state, HISTORIES, ["a", None]), state)
    assert loaded is not None
    run_ids, leaves, histories = loaded
    assert run_ids == ["a", None]
    for mine, theirs in zip(leaves, state, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    assert [sorted(history) for history in histories] == [["probe_w", "train_loss"], []]
    np.testing.assert_array_equal(histories[0]["probe_w"], HISTORIES[0]["probe_w"])


def test_a_working_state_of_other_slots_fits_one_of_other_shapes_or_types_does_not(state):
    packed = trees.pack_slots(state, HISTORIES, ["a", None])
    loaded = trees.unpack_slots(packed, [np.zeros((5, *leaf.shape[1:]), leaf.dtype) for leaf in state])
    assert loaded is not None
    assert loaded[1][1].tolist() == [1, 5]
    assert trees.unpack_slots(packed, [np.zeros((2, 3, 5), np.float32), *state[1:]]) is None
    assert trees.unpack_slots(packed, [state[0].astype(np.float64), *state[1:]]) is None
    assert trees.unpack_slots(packed, [*state, np.zeros(2)]) is None


def test_what_is_kept_must_be_arrays():
    with pytest.raises(TypeError, match=r"expected arrays in nested .*, got a set at 'a/b'"):
        trees.pack({"a": {"b": {1}}})
