"""The guide: every block of a page is run, Python by doctest, commands here, and the longer scripts in test_shards."""

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import jaxpu
from jaxpu import cli

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (Path(jaxpu.__file__).parent / "guide").glob("*.md")}
BLOCKS = [
    (page, *block) for page in sorted(PAGES) for block in re.findall(r"```(\w*)\n(.*?)```", PAGES[page], re.DOTALL)
]
COMMANDS = {
    page: [line for where, kind, text in BLOCKS if (where, kind) == (page, "sh") for line in text.splitlines()]
    for page in PAGES
}
ASKED = {"first_sweep", "own_loss", "your_csv", "unknown_prior", "which_method", "verdicts", "adding_method"}


def test_all_pages_are_there_and_every_block_is_one_that_is_run():
    assert set(PAGES) == ASKED | {"scale"}
    for page, kind, text in BLOCKS:
        if page == "scale":  # job scripts, which tests/test_shards.py runs
            continue
        assert kind in ("python", "sh"), (page, text)
        if kind == "python":
            assert text.startswith(">>> "), f"{page}: a block of Python that doctest does not see: {text}"
            assert text.endswith("\n\n"), (
                f"{page}: doctest takes the fence for output; end the block with an empty line"
            )
        else:
            assert all(line.startswith("jaxpu ") for line in text.splitlines()), (page, text)
    links = [(page, link) for page, text in PAGES.items() for link in re.findall(r"\]\(([^)#]+)\)", text)]
    assert all(link.removesuffix(".md") in PAGES for _, link in links), links


def run(line: str, *more: str) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([*shlex.split(line)[1:], *more])
    assert end.value.code == 0, line


def test_commands_of_your_csv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ill = rng.random(200) < 0.4
    rows = pl.DataFrame({
        "name": [f"p{k}" for k in range(200)], "marker": rng.normal(np.where(ill, 3.0, 0.0)),
        "smokes": np.where(rng.random(200) < 0.3 + 0.3 * ill, "yes", "no"),
    })  # fmt: skip
    rows.with_columns(diagnosed=pl.Series(np.where(ill & (rng.random(200) < 0.3), "yes", ""))).write_csv("patients.csv")
    rows.head(40).write_csv("new_patients.csv")
    first, second = COMMANDS["your_csv"]
    run(first, "--seeds", "1")
    run(second)
    told = set(re.findall(r"^\| `(\S+)` ", PAGES["your_csv"], re.MULTILINE))
    assert told | {"new_scores.csv"} == {path.name for path in Path("patients").iterdir() if path.name != ".lock"}


@pytest.mark.slow
def test_commands_of_the_first_sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [line] = COMMANDS["first_sweep"]
    run(line, "training.epochs=2", "--seeds", "1", "--quiet", "--track", "tensorboard")
    assert (tmp_path / "results" / "quick" / "report.html").stat().st_size
    assert len(list((tmp_path / "results" / "quick" / "tensorboard").iterdir())) == 4


def test_no_other_page_has_a_command():
    assert {page for page, lines in COMMANDS.items() if lines} == {"first_sweep", "your_csv", "scale"}
