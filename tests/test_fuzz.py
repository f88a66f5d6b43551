"""2,000 inputs at the command, in process: no traceback, no message over 2 kB, no hang over 10 s.

What would train stops where training would begin: ``api.sweep`` is called for what it refuses beforehand only.
"""

import contextlib
import copy
import io
import signal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from problems import TINY

from jaxpu import api, cli, config, kinds
from jaxpu.config.strict_yaml import dump_yaml

INPUTS = {"configurations": 700, "bytes of a configuration": 300, "overrides": 400, "score files": 500, "folders": 100}
LONGEST_MESSAGE, LONGEST_SECONDS = 2000, 10


class Trains(Exception):
    """The input is fine: it would train."""


class Hangs(Exception):
    """The input took too long."""


def fuzzed(kind: str):
    return settings(
        max_examples=INPUTS[kind],
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(autouse=True, scope="module")
def nothing_trains():
    def refuse_or_stop(experiment, **options):
        kinds.kind_of(experiment).runs(experiment)
        raise Trains

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "sweep", refuse_or_stop)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def hold(*words: object) -> None:
    """Run the command; whatever is typed, it says what is wrong in a few lines, soon."""

    def hang(*_: object) -> None:
        raise Hangs(words)

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(LONGEST_SECONDS)
    out, err = io.StringIO(), io.StringIO()
    status = None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main([str(word) for word in words])
    except SystemExit as end:
        status = end.code
    except Trains:
        return
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    message = err.getvalue()
    assert status in (0, 1, 2), message
    assert "Traceback" not in message
    assert len(message.encode()) <= LONGEST_MESSAGE, f"{len(message)} characters: {message[:300]}"
    assert status != 2 or message.startswith("jaxpu: "), message[:300]


def paths_of(plain: dict, before: tuple = ()) -> list[tuple]:
    found = []
    for key, value in plain.items():
        found += [(*before, key), *(paths_of(value, (*before, key)) if isinstance(value, dict) else [])]
    return found


OTHERS = [
    {"kind": "ensemble", "ratings": {"n": 40, "classifiers": 3}, "factors": {"dim": 2}, "methods": ["als", "mean"]},
    {"kind": "guided", "training": {"epochs": 2}, "model": {"hidden": [4]}, "teachers": ["plain"], "seeds": 1},
    {
        "kind": "multiclass",
        "data": {"name": "digits"},
        "selection": {"rules": ["last", "val_accuracy"], "default": "last"},
        "methods": ["pn"],
    },
]
FULL = config.to_dict(config.parse(TINY))
PATHS = paths_of(FULL)
OTHER_PATHS = sorted({path for raw in OTHERS for path in paths_of(config.to_dict(config.parse(raw)))} - {*PATHS})
ODD = st.sampled_from(
    [
        None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**30, int("9" * 4000), 0.0, -0.5, 1e-320, 1e308,
        float("inf"), float("-inf"), float("nan"), "", " ", "yes", "010", "1:30", "1e-4", "~", ".inf",
        "[/bold]", "![x](/etc/passwd)",
        "../../x", "/dev/null", "x" * 50_000, "\u202e\U0001f600", "a.b.c", "os:system",
        "jaxpu.losses:nnpu", [], {}, [[]],
        [None], [1, "a"], {"a": 1}, {"": {}}, {"preset": "nnpu"}, ["vpu", "vpu"], [1e-3, 0.001],
        {"start": 0, "end": 1},
        {"training.lr": [1e-3, 1e-3]}, {"seeds": [1]}, {"preset": "nnpu", "gamma": float("nan")}, list(range(3000)),
    ]
)  # fmt: skip
PLAIN = st.recursive(
    ODD | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
CHANGES = st.lists(
    st.tuples(st.sampled_from(PATHS) | st.sampled_from(OTHER_PATHS) | st.tuples(st.text(max_size=8)), ODD | PLAIN),
    min_size=1,
    max_size=3,
)


def changed(base, changes) -> dict:
    plain = copy.deepcopy(base)
    for path, value in changes:
        place = plain
        for key in path[:-1]:
            place = place.setdefault(key, {}) if isinstance(place, dict) else {}
        if isinstance(place, dict):
            place[path[-1]] = value
    return plain


@pytest.mark.slow
def test_configurations(folder):
    @fuzzed("configurations")
    @given(st.sampled_from([TINY, TINY, *OTHERS]), CHANGES)
    def check(base, changes):
        file = folder / "fuzz.yaml"
        with contextlib.suppress(ValueError):  # a number of more digits than Python writes
            file.write_text(dump_yaml(changed(base, changes)), encoding="utf-8", errors="replace")
        hold("run", file, "--out", folder / "out", "--quiet")

    check()


@pytest.mark.slow
def test_bytes_of_a_configuration(folder):
    text = yaml.safe_dump(TINY).encode()
    piece = st.binary(max_size=6) | st.sampled_from(
        [b"{" * 900, b"- " * 900, b"*a", b"&a ", b"!!python/object:os.x ", b"\x00"]
    )

    @fuzzed("bytes of a configuration")
    @given(st.lists(st.tuples(st.integers(0, len(text)), st.integers(0, 8), piece), min_size=1, max_size=4))
    def check(edits):
        raw = bytearray(text)
        for at, cut, new in edits:
            raw[at : at + cut] = new
        (folder / "bytes.yaml").write_bytes(raw)
        hold("run", folder / "bytes.yaml", "--out", folder / "out", "--quiet")

    check()


@pytest.mark.slow
def test_overrides(folder):
    (folder / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    value = ODD.map(lambda v: str(v) if not isinstance(v, int) or v < 10**100 else "9" * 5000) | st.text(max_size=12)
    path = st.sampled_from([".".join(path) for path in PATHS]) | st.text(max_size=12)
    word = st.tuples(path, value).map("=".join) | st.sampled_from(
        ["--seeds", "--seeds=-1", "--out", "--fresh", "--x", "-", "--", "=", "a", "--help=1", "\ud800"]
    )

    @fuzzed("overrides")
    @given(st.lists(word, min_size=1, max_size=3))
    def check(words):
        hold("run", folder / "tiny.yaml", *words, "--quiet", "--out", folder / "out")

    check()


@pytest.mark.slow
def test_score_files(folder):
    rng = np.random.default_rng(0)
    scores, labels = rng.random(40), rng.integers(0, 2, 40)
    table = pl.DataFrame({"score": scores, "label": labels, "epoch": np.arange(40) % 4})
    table.write_csv(folder / "s.csv")
    table.write_parquet(folder / "s.parquet")
    np.savez_compressed(folder / "s.npz", score=scores, label=labels)
    whole = {suffix: (folder / f"s.{suffix}").read_bytes() for suffix in ("csv", "parquet", "npz")}
    cell = st.sampled_from(
        ["nan", "", "inf", "-Infinity", "1e308", "1e999", "x", '"', "0.5", "1", "2", "-1", "\x00", "\ufeff"]
    )
    made = st.lists(st.lists(cell, min_size=1, max_size=4).map(",".join), max_size=6).map("\n".join)
    edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), st.binary(max_size=6)), min_size=1, max_size=4)
    options = st.lists(
        st.sampled_from(
            ["--epoch=epoch", "--epoch=x", "--scores=label", "--labels=nope", "--threshold=nan", "--selected=2"]
        ),
        max_size=2,
        unique=True,
    )

    @fuzzed("score files")
    @given(st.sampled_from(sorted(whole)), edits, made | st.none(), options)
    def check(suffix, edits, text, options):
        raw = bytearray(whole[suffix])
        for share, cut, new in edits:
            at = int(share * len(raw))
            raw[at : at + cut] = new
        if suffix == "csv" and text is not None:
            raw = bytearray(("score,label\n" + text).encode())
        file = folder / f"fuzz[1].{suffix}"
        file.write_bytes(raw)
        hold("diagnose", file, *options)

    check()


@pytest.mark.slow
def test_folders(folder):
    """Folders of whatever: each file is missing, a folder, empty, or holds what another should."""
    content = st.sampled_from(
        [
            None,
            "folder",
            b"",
            b"[]",
            b"{}",
            b"null",
            b"a: 1",
            b"\xff" * 9,
            b"PAR1" * 5,
            dump_yaml(FULL).encode(),
            b"[" * 9000,
        ]
    )

    @fuzzed("folders")
    @given(st.sampled_from(["report", "analyze"]), st.tuples(content, content, content))
    def check(command, contents):
        place = folder / "folder"
        place.mkdir(exist_ok=True)
        for name, held in zip(("config.yaml", "provenance.json", "runs.parquet"), contents, strict=True):
            file = place / name
            file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)
            if held == "folder":
                file.mkdir()
            elif held is not None:
                file.write_bytes(held)
        hold(command, place)

    check()
