"""The page of a study: a text with placeholders, ``configs/<study>/report.md``, filled from its experiments' results.

At its head, between lines of dashes, stand its ``experiments`` (those of ``optional`` may be missing), ``figures``,
each with its ``experiment``, and ``scripts`` to run; a study of scripts alone has no experiments. The text may say
(:mod:`jaxpu.report.placeholders`)::

    {{ value("h1_anchor", "SELECT median(f1) FROM selected WHERE selection = 'last' AND `method.anchor` = 0") }}
    {% call part("h1_anchor", "Does the anchor help?", "heat_map") %} The mechanism. {% endcall %}

A placeholder that finds nothing is an error that names it.
"""

import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from jaxpu import analysis, plots
from jaxpu.config import load_yaml
from jaxpu.plots.figure import Figure, Frames, Picture
from jaxpu.plots.frames import NothingToShow
from jaxpu.report import experiment as one
from jaxpu.report import pictures
from jaxpu.report.page import PageError, fill, page
from jaxpu.report.placeholders import Placeholders
from jaxpu.report.text import listed
from jaxpu.runs import Damaged, read_sealed, write_text


class Results:
    """The finished experiments of a study, read when they are asked for.

    Attributes:
        configs: the study's folder. folder: the folder of results folders.
        experiments: their names, in order. optional: those that may be missing. done: those that are there.
        scripts: what is to be run after them.
    """

    def __init__(self, configs: Path, folder: Path) -> None:
        head, self.text = _split(configs / "report.md")
        self.configs, self.folder = configs, folder
        self.experiments: list[str] = list(head.get("experiments", ()))
        self.optional: list[str] = list(head.get("optional", ()))
        self.scripts: list[str] = list(head.get("scripts", ()))
        self.figures: list[dict[str, Any]] = list(head.get("figures", ()))
        self.done = [name for name in self.experiments if (folder / name / "provenance.json").exists()]

    def path(self, experiment: str) -> Path:
        """The folder of an experiment.

        Raises:
            PageError: it is not there, with what is.
        """
        if experiment not in self.done:
            raise PageError(f"no results of {experiment!r} in {self.folder}; there are {listed(self.done) or 'none'}")
        return self.folder / experiment

    def config(self, experiment: str) -> dict[str, Any]:
        """The resolved configuration of an experiment."""
        return load_yaml(_whole(self.path(experiment) / "config.yaml"))

    def provenance(self, experiment: str) -> dict[str, Any]:
        """Where its numbers are from."""
        return json.loads(_whole(self.path(experiment) / "provenance.json"))

    def frame(self, experiment: str, name: str) -> pl.LazyFrame:
        """One of the frames of an experiment: runs, selected, summary, verdicts, claims, rules or paths."""
        if name == "paths":
            return analysis.paths(self.frame(experiment, "runs").collect()).lazy()
        stem = self.path(experiment) / name
        if stem.with_suffix(".parquet").exists():
            return pl.read_parquet(io.BytesIO(_whole(stem.with_suffix(".parquet")))).lazy()
        if stem.with_suffix(".csv").exists():
            return pl.scan_csv(stem.with_suffix(".csv"), infer_schema_length=None, glob=False)
        return pl.LazyFrame()

    def frames(self, experiment: str) -> Frames:
        """All frames of an experiment."""
        names = [name for name in Frames._fields if name != "shown"]
        return one.frames_of({name: self.frame(experiment, name).collect() for name in names}, self.config(experiment))

    def ask(self, experiment: str, query: str) -> pl.DataFrame:
        """The answer to a question in SQL to the frames of an experiment.

        Raises:
            PageError: it cannot be answered, or nothing is found.
        """
        tables_there = {name: self.frame(experiment, name) for name in Frames._fields if name in query}
        try:
            found = pl.SQLContext(tables_there, eager=True).execute(query)
        except pl.exceptions.PolarsError as error:
            raise PageError(f"{experiment}: {query!r} cannot be answered: {error}") from None
        if found.is_empty():
            raise PageError(f"{experiment}: {query!r} finds nothing")
        return found


def _whole(path: Path) -> bytes:
    """A file with its checksum verified; one that was written before files had any is taken as it is.

    Raises:
        PageError: it is damaged.
    """
    try:
        return read_sealed(path)
    except Damaged as error:
        if error.marked:
            raise PageError(f"{path} is damaged ({error}); repeat its jaxpu run") from None
        return path.read_bytes()


def _split(path: Path) -> tuple[dict[str, Any], str]:
    """The head of a study's text, and the text."""
    match = re.match(r"---\n(.*?)\n---\n(.*)", path.read_text(encoding="utf-8"), re.DOTALL)
    if not match:
        raise PageError(f"{path}: expected a head between lines of dashes with experiments: [...]")
    return load_yaml(match[1]), match[2]


def write_study(configs: Path, folder: Path, own: ModuleType | None = None) -> Path:
    """Write the page of a study from the experiments that are finished.

    Args:
        configs: its folder of configurations with ``report.md``. folder: the folder of results folders.
        own: the study's ``figures.py``: ``figures(results)`` gives a list of :class:`jaxpu.plots.Figure`, and
            ``tables(results)`` frames by their names; both are optional.

    Returns:
        The path of the page, ``<folder>/<name of the study>/report.html``.

    Raises:
        PageError: none of its experiments is there, or a placeholder finds nothing; with its name.
    """
    results = Results(configs, folder)
    where = f"{configs.name}/report.md"
    if results.experiments and not results.done:
        raise PageError(
            f"{where}: none of {listed(results.experiments)} is in {folder}; run scripts/reproduce.py {configs.name}"
        )
    made = _drawn([*_declared(results), *_call(own, "figures", results, [])])
    filling = Placeholders(results, _call(own, "tables", results, {}))
    text = fill(results.text, filling.names(), where)
    shown = [*made, *filling.pictures.values()]
    target = folder / configs.name
    pictures.write_pictures(target / "figures", made)
    try:
        write_text(target / "report.html", page(text, shown))
    except PageError as error:
        raise PageError(f"{where}: {error}") from None
    return target / "report.html"


def _call(own: ModuleType | None, name: str, results: Results, nothing: Any) -> Any:
    function: Callable[[Results], Any] | None = getattr(own, name, None)
    return function(results) if function else nothing


def _declared(results: Results) -> list[Figure]:
    """The figures of the head of the text."""
    found = []
    for entry in results.figures:
        options = dict(entry)
        experiment = options.pop("experiment", "")
        if experiment in results.done or experiment not in results.experiments:
            named = {"section": experiment} | options
            found += plots.figures_of([named], results.frames(experiment))
    return found


def _drawn(figures: Sequence[Figure]) -> list[Picture]:
    found = []
    for figure in figures:
        try:
            found.append(plots.draw(figure))
        except NothingToShow:
            continue  # where the text places it, the page says that it is missing
    return found
