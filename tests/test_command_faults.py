"""What the machine, a file or a parser refuses, at any command: a line, exit status 2, nothing lost, no traceback."""

import errno
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from fake_sweep import fake_sweep
from problems import TINY
from rich.console import Console

from jaxpu import api, cli, report
from jaxpu.cli import arguments, faults
from jaxpu.cli.screen import Screen
from jaxpu.report import tables, terminal


def called(capsys, *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main([str(word) for word in words])
    return end.value.code, *capsys.readouterr()


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


def panic():
    """What polars raises where it is itself at fault: no Exception."""
    error = pl.exceptions.PanicException("the table\nis broken")
    assert not isinstance(error, Exception)
    return error


RAISED = {
    "full": (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/out/part"), "/out/part: No space left on device; make"),
    "read-only": (OSError(errno.EROFS, os.strerror(errno.EROFS), "/out"), "/out: Read-only file system; give another"),
    "denied": (PermissionError(errno.EACCES, "Permission denied", "/out"), "/out: Permission denied; get permission"),
    "memory": (MemoryError(), "tiny.yaml: memory is full; give less at once"),
    "device": (RuntimeError("RESOURCE_EXHAUSTED: Out of memory"), "tiny.yaml: memory is full"),
    "deep": (RecursionError("maximum recursion depth exceeded"), "tiny.yaml: nested too deep"),
    "large": (OverflowError("int too big to convert"), "tiny.yaml: a number is too large (int too big to convert)"),
    "polars": (pl.exceptions.ComputeError("bad\n" + "x" * 5000), "tiny.yaml: cannot be read or written (bad)"),
    "panic": (panic(), "tiny.yaml: cannot be read or written (the table)"),
    "zip": (zipfile.BadZipFile("Bad CRC-32"), "tiny.yaml: cannot be read or written (Bad CRC-32)"),
    "text": (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "tiny.yaml: not text in UTF-8"),
}


@pytest.mark.parametrize("kind", RAISED)
def test_whatever_is_refused_is_one_line_and_exit_status_2(kind, written, capsys, monkeypatch):
    error, said = RAISED[kind]

    def refuse(*arguments, **options):
        raise error

    monkeypatch.setattr(api, "sweep", refuse)
    code, out, err = called(capsys, "run", written, "--quiet")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err
    assert len(err) < 2000
    assert "Traceback" not in err


def test_a_mistake_of_the_program_keeps_its_traceback(written, monkeypatch):
    monkeypatch.setattr(api, "sweep", lambda *a, **k: {}["missing"])
    with pytest.raises(KeyError):
        cli.main(["run", str(written), "--quiet"])


DEEP = "{a: " * 900 + "1" + "}" * 900
FILES = {
    "deep": (DEEP, "nested too deep"),
    "digits": ("seeds: " + "9" * 5000, "no integer that can be read"),
    "bomb": ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "aliases are not supported"),
    "seed": (yaml.safe_dump(TINY | {"first_seed": 2**32}), "first_seed"),
    "seeds": (yaml.safe_dump(TINY | {"seeds": 10**9}), "seeds"),
    "options": (
        yaml.safe_dump(TINY | {"data": TINY["data"] | {"options": {"n": "many"}}}),
        "data: options: dataset 'gaussians' takes a whole number as n",
    ),
    "long": ("x" * 100_000 + ": 1", "tiny.yaml"),
}


@pytest.mark.parametrize("kind", FILES)
def test_configurations_that_cannot_be_are_said(kind, written, capsys, tmp_path):
    text, said = FILES[kind]
    written.write_text(text)
    code, _, err = called(capsys, "run", written, "--out", tmp_path / "out")
    assert code == 2, err
    assert said in err
    assert len(err) < 2000
    assert not (tmp_path / "out").exists()


def test_damaged_members_and_foreign_files_are_said(tmp_path, capsys):
    good = tmp_path / "good.npz"
    np.savez_compressed(good, score=np.random.default_rng(0).random(500), label=np.arange(500) % 2)
    raw = bytearray(good.read_bytes())
    raw[120:160] = b"\xff" * 40
    (tmp_path / "bad.npz").write_bytes(raw)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1" + bytes(50) + b"PAR1")
    (tmp_path / "bad.csv").write_bytes(b"score,label\n0.5,1\n\xff\xfe,0\n")
    (tmp_path / "folder.csv").mkdir()
    for name in ("bad.npz", "bad.parquet", "bad.csv", "folder.csv", "none.csv"):
        code, _, err = called(capsys, "diagnose", tmp_path / name)
        assert code == 2, name
        assert name in err
        assert len(err) < 2000


def test_options_may_stand_between_overrides(written, capsys, monkeypatch):
    seen = {}
    monkeypatch.setattr(api, "sweep", lambda experiment, **k: seen.update(e=experiment, **k) or 1 / 0)
    for words in (
        ["run", written, "training.epochs=3", "--seeds", "2", "training.lr=0.5", "--out", "a=b", "--quiet"],
        ["run", "--seeds", "2", written, "training.epochs=3", "--quiet", "training.lr=0.5", "--out", "a=b"],
    ):
        with pytest.raises(ZeroDivisionError):
            cli.main([str(word) for word in words])
        experiment = seen["e"]
        assert (experiment.seeds, experiment.training.epochs, experiment.training.lr) == (2, 3, 0.5)
        assert seen["folder"] == Path("a=b")
    assert arguments.in_order(["report", "--x", "y"]) == ["report", "--x", "y"]


def test_errors_have_one_style(written, tmp_path, capsys):
    for words in (["run", written, "--sedes", "3"], ["fly"], ["run"], ["diagnose", "a.csv", "--threshold", "x"]):
        code, out, err = called(capsys, *words)
        assert (code, out) == (2, "")
        assert err.startswith("jaxpu: ")
        assert err.count("\n") == 1
        assert "│" not in err
    code, _, err = called(capsys, "run", tmp_path)
    assert (code, f"{tmp_path} is a folder, no configuration" in err) == (2, True)


def test_every_help_says_its_exit_statuses(capsys):
    for words in ([], ["run"], ["report"], ["analyze"], ["diagnose"], ["list"], ["version"]):
        code, out, _ = called(capsys, *words, "--help")
        assert code == 0
        assert "Exit status" in out, words


def test_a_line_of_the_machine_is_cut():
    assert len(faults.in_words(OSError(2, "No such file", "x" * 10_000), "")) < 400


# Words from outside are words


def test_notes_with_brackets_are_text(capsys):
    screen = Screen(quiet=False)
    note = "[/bold] run [red]x[/] of [a/b"

    class Progress:
        runs_done, runs_total, epochs_done = 1, 2, 3

    Progress.note = note
    screen.show(Progress)
    assert note in capsys.readouterr().err


@pytest.mark.parametrize("width", [80, 100])
def test_tables_fit_the_terminal_and_names_with_brackets_are_text(width):
    _, _, summary, verdicts = fake_sweep()
    bad = "[/bold]x"
    rename = pl.col("method").replace("vpu", bad)
    summary, verdicts = summary.with_columns(rename), verdicts.with_columns(rename)
    rules = summary["selection"].unique(maintain_order=True).to_list()
    found = tables.sections(summary, verdicts, rules[:2], "pu", rules[0])
    console = Console(width=width, record=True, file=io.StringIO())
    for heading, rows in found:
        console.print(terminal._Section(heading, rows, "pu"))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert bad in text
    assert "…" not in text


def test_the_table_counts_each_verdict_and_all_failures():
    verdicts = pl.DataFrame(
        {
            "dataset": "d", "method": ["a", "b", "c"], "seed": 0, "selection": "last",
            "verdict": ["selection_artefact", "inverted", "healthy"],
            "count": [19, 2, 32], "n": 32, "failing": [29, 2, 0], "rate": [29 / 32, 2 / 32, 0.0],
        }
    )  # fmt: skip
    assert tables._verdicts(verdicts, "last") == {
        "a": "selection artefact 19/32 (29 fail)",
        "b": "inverted 2/32",
        "c": "healthy",
    }
    assert tables.bold("selection artefact 19/32 (29 fail)") == "**selection artefact** 19/32 (29 fail)"


@pytest.mark.parametrize(
    "text", ["![x](/etc/passwd)", "<script>alert(1)</script>", "[x](file:///etc/passwd)", "{{ 7*7 }}"]
)
def test_descriptions_are_text_on_the_page(text):
    from jaxpu.report.text import paragraphs

    page = report.page(f"# Title\n\n{paragraphs(text)}")
    assert "<img" not in page
    assert "<script>" not in page
    assert "href" not in page.partition("<header>")[2].partition("</header>")[0]
    assert "49" not in page.partition("<header>")[2].partition("</header>")[0]


# The surroundings


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"JAXPU_CACHE_DIR": "/x/y"}, "/x/y"),
        ({"XDG_CACHE_HOME": ""}, "/home/me/.cache/jaxpu/xla"),
        ({"XDG_CACHE_HOME": "/cache"}, "/cache/jaxpu/xla"),
        ({"JAXPU_CACHE_DIR": ""}, ""),
    ],
)
def test_the_cache_is_where_the_environment_says(environment, folder, monkeypatch):
    for name in ("JAXPU_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", "/home/me")
    assert api._cache_folder() == folder


def test_no_home_at_all_is_no_error(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("JAXPU_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert api._cache_folder() == ""
    monkeypatch.setenv("JAXPU_CACHE_DIR", "/x")
    assert api._cache_folder() == "/x"


@pytest.mark.slow
def test_a_users_matplotlibrc_changes_no_figure(tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nfont.size: 33\naxes.facecolor: red\n")
    code = (
        "import polars as pl, hashlib; from jaxpu import plots; from jaxpu.plots.style import render;"
        "runs = pl.DataFrame({'dataset': 'd', 'method': 'vpu_[x]', 'seed': [0, 1], 'epoch': 1, 'f1': [0.1, 0.2]});"
        "print(hashlib.sha256(render(plots.trajectories(runs, 'f1'))).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"MATPLOTLIBRC": rc},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for rc in (str(tmp_path / "matplotlibrc"), "")
    }
    assert len(found) == 1


def test_a_leading_tilde_is_the_home_folder_for_every_path(written, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JAXPU_CACHE_DIR", "~/cache")
    assert api._cache_folder() == f"{tmp_path}/cache"
    seen = {}
    monkeypatch.setattr(api, "sweep", lambda experiment, **k: seen.update(k) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main(["run", "~/tiny.yaml", "--out", "~/out", "--quiet"])
    assert seen["folder"] == tmp_path / "out"
    for command in ("report", "analyze"):
        code, _, err = called(capsys, command, "~/nowhere")
        assert (code, f"no results folder at {tmp_path}/nowhere" in err) == (2, True)
    (tmp_path / "s.csv").write_text("score,label\n0.9,1\n0.1,0\n")
    assert called(capsys, "diagnose", "~/s.csv")[0] in (0, 1)


def test_epochs_are_ordered_by_value_and_named_as_the_file_names_them(tmp_path, capsys):
    good, bad = "0.9,1,{0}\n0.1,0,{0}\n0.8,1,{0}\n0.2,0,{0}\n", "0.1,1,{0}\n0.9,0,{0}\n0.2,1,{0}\n0.8,0,{0}\n"
    text = "score,label,epoch\n" + good.format(10) + bad.format(0) + bad.format(9)
    (tmp_path / "s.csv").write_text(text)
    code, out, _ = called(capsys, "diagnose", tmp_path / "s.csv", "--epoch", "epoch")
    assert (code, "Epoch 10 was selected" in out) == (0, True)
    code, out, _ = called(capsys, "diagnose", tmp_path / "s.csv", "--epoch", "epoch", "--selected", "0")
    assert (code, "Epoch 0 was selected" in out, "epoch 10 with F1 1.000" in " ".join(out.split())) == (1, True, True)
