"""The page of a study: a text with placeholders, ``configs/<study>/report.md``, filled from its experiments' results.

At its head, between lines of dashes, stand its ``experiments`` (those of ``optional`` may be missing) and ``figures``, each
with its ``experiment``. The text may say, among others::

    {{ value("h1_anchor", "SELECT median(f1) FROM selected WHERE selection = 'last' AND `method.anchor` = 0") }}
    {% call part("h1_anchor", "Does the anchor help?", "heat_map") %} The mechanism. {% endcall %}

A placeholder that finds nothing is an error that names it.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import yaml

from jaxpu import analysis, plots
from jaxpu.config import load_yaml
from jaxpu.plots.frames import METRIC_NAMES, NothingToShow, labelled, metric_name, setting, setting_name, with_point
from jaxpu.plots.kinds import Figure, Frames, Picture
from jaxpu.plots.rules import rule_name
from jaxpu.report import claims, tables
from jaxpu.report import experiment as one
from jaxpu.report.page import PageError, fill, page
from jaxpu.report.text import Markdown, code, listed, mean, number, plain, table
from jaxpu.report.words import verdict_name
from jaxpu.runs import write_text


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
        return yaml.safe_load((self.path(experiment) / "config.yaml").read_bytes())

    def provenance(self, experiment: str) -> dict[str, Any]:
        """Where its numbers are from."""
        return json.loads((self.path(experiment) / "provenance.json").read_text(encoding="utf-8"))

    def frame(self, experiment: str, name: str) -> pl.LazyFrame:
        """One of the frames of an experiment: runs, selected, summary, verdicts, claims, rules or paths."""
        if name == "paths":
            return analysis.paths(self.frame(experiment, "runs").collect()).lazy()
        stem = self.path(experiment) / name
        if stem.with_suffix(".parquet").exists():
            return pl.scan_parquet(stem.with_suffix(".parquet"))
        if stem.with_suffix(".csv").exists():
            return pl.scan_csv(stem.with_suffix(".csv"), infer_schema_length=None)
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
    if not results.done:
        raise PageError(
            f"{where}: none of {listed(results.experiments)} is in {folder}; run scripts/reproduce.py {configs.name}"
        )
    made = _drawn([*_declared(results), *_call(own, "figures", results, [])])
    filling = Placeholders(results, _call(own, "tables", results, {}))
    text = fill(results.text, filling.names(), where)
    pictures = [*made, *filling.pictures.values()]
    target = folder / configs.name
    one.write_pictures(target / "figures", made)
    try:
        write_text(target / "report.html", page(text, pictures))
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
    pictures = []
    for figure in figures:
        try:
            pictures.append(plots.draw(figure))
        except NothingToShow:
            continue  # where the text places it, the page says that it is missing
    return pictures


class Placeholders:
    """What a study's text may ask for; ``pictures`` are the experiments' figures that it placed."""

    def __init__(self, results: Results, own: Mapping[str, pl.DataFrame]) -> None:
        self.results, self.own = results, own
        self.pictures: dict[str, Picture] = {}

    def names(self) -> dict[str, Any]:
        """The placeholders by their names."""
        names = (
            "value",
            "rows",
            "means",
            "numbers",
            "claims",
            "all_claims",
            "verdict",
            "figure",
            "see",
            "head",
            "repeat",
            "part",
            "counts",
            "rules",
        )
        return {name: getattr(self, name) for name in names} | {
            "table": self.table,
            "has_table": self.own.__contains__,
            "done": self.results.done.__contains__,
            "missing": self.missing,
        }

    def value(self, experiment: str, query: str, digits: int = 3) -> str:
        """The one value that a question has; with fixed decimals where it is no count and no word."""
        found = self.results.ask(experiment, query)
        value = found.row(0)[0]
        unknown = value is None or (isinstance(value, float) and not math.isfinite(value))
        if found.shape != (1, 1) or unknown:
            raise PageError(f"{experiment}: {query!r} has {found.rows()[:3]} for an answer, expected one value")
        return (
            number(value, digits)
            if isinstance(value, float)
            else f"{value:,}"
            if isinstance(value, int)
            else str(value)
        )

    def rows(self, experiment: str, query: str, digits: int = 3) -> Markdown:
        """The answer to a question as a table."""
        return _table(self.results.ask(experiment, query), digits)

    def counts(self, experiment: str, query: str) -> str:
        """An answer of words and counts as a phrase: "healthy 3, inverted 1 of 4"."""
        rows = self.results.ask(experiment, query).rows()
        return f"{', '.join(f'{verdict_name(word)} {n}' for word, n in rows)} of {sum(n for _, n in rows)}"

    def rules(self, experiment: str) -> Markdown:
        """The selection rules of an experiment compared."""
        return tables.rules_table(self.results.frame(experiment, "rules").collect())

    def table(self, name: str, digits: int = 3) -> Markdown:
        """A table that the study's own code makes."""
        if name not in self.own:
            raise PageError(f"no table {name!r}; there are {listed(list(self.own)) or 'none'}")
        return _table(self.own[name], digits)

    def means(self, experiment: str, metric: str, selection: str = "", digits: int = 3) -> Markdown:
        """Means with intervals of a metric: a row a method, a column a point of the grid."""
        summary = self.results.frame(experiment, "summary").filter(pl.col("metric") == metric).collect()
        if selection and "selection" in summary.columns:
            summary = summary.filter(pl.col("selection") == selection)
        if summary.is_empty():
            raise PageError(f"{experiment}: no metric {metric!r} under {selection or 'any rule'} in its summary")
        summary = labelled(with_point(summary))
        points = summary["point"].unique(maintain_order=True).to_list()
        found = {(row["method"], row["point"]): row for row in summary.iter_rows(named=True)}
        if len(found) < summary.height:
            raise PageError(f"{experiment}: several rows for a method and point of {metric!r}: name the selection")
        rows = [
            [code(method), *(mean(found.get((method, point)), digits) for point in points)]
            for method in summary["method"].unique(maintain_order=True)
        ]
        return table(["method", *(point or metric_name(metric) for point in points)], rows)

    def numbers(self, experiment: str, metrics: Sequence[str], selection: str = "last") -> Markdown:
        """Means of those of some metrics that an experiment has, a table each."""
        there = self.results.frame(experiment, "summary").select("metric").unique().collect()["metric"]
        tables_ = [
            f"**{plain(metric_name(metric))}**, selected by {plain(rule_name(selection))}:\n\n"
            f"{self.means(experiment, metric, selection)}"
            for metric in metrics
            if metric in there
        ]
        return Markdown("\n\n".join(tables_))

    def claims(self, experiment: str) -> Markdown:
        """The claims of an experiment, each with its test."""
        return claims.claims_table(self._claims(experiment))

    def all_claims(self) -> Markdown:
        """All claims of the study's own experiments that are there, with links to their sections."""
        rows = [
            (claims.claim_text(row), tables.bold(row["verdict"]), claims.measured(row), claims.claimed(row),
             Markdown(f"[{plain(experiment)}](#{experiment})"))
            for experiment in self.results.done
            if (self.results.configs / f"{experiment}.yaml").exists()
            for row in self._claims(experiment).iter_rows(named=True)
        ]  # fmt: skip
        return table(("claim", "verdict", "measured [95 % interval]", "claimed", "experiment"), rows, "llrrl")

    def verdict(self, experiment: str, start: str) -> Markdown:
        """The verdict of the claim whose words begin so, with what was measured."""
        found = [row for row in self._claims(experiment).iter_rows(named=True) if row["claim"].startswith(start)]
        if len(found) != 1:
            raise PageError(f"{experiment}: {len(found)} claims start with {start!r}, expected one")
        return Markdown(f"{tables.bold(found[0]['verdict'])} ({plain(claims.measured(found[0]))})")

    def _claims(self, experiment: str) -> pl.DataFrame:
        return self.results.frame(experiment, "claims").collect()

    def figure(self, name: str, experiment: str = "") -> Markdown:
        """A figure of the study, or with ``experiment`` one that the page of an experiment shows."""
        if not experiment:
            return Markdown(f"![](figure:{name})")
        pictures = {p.name: p for p in one.read_pictures(self.results.path(experiment) / "figures")}
        if name not in pictures:
            raise PageError(f"{experiment} has no figure {name!r}; it has {listed(list(pictures)) or 'none'}")
        named = f"{experiment}-{name}"
        self.pictures[named] = pictures[name]._replace(name=named, section=experiment)
        return Markdown(f"![](figure:{named})")

    def see(self, name: str) -> Markdown:
        """A reference to a figure by its number."""
        return Markdown(f"[](figure:{name})")

    def head(self, experiment: str) -> Markdown:
        """Claim and test, from the comment at the head of an experiment's configuration."""
        text = (self.results.configs / f"{experiment}.yaml").read_text(encoding="utf-8")
        comment = " ".join(line[1:].strip() for line in text.splitlines() if line.startswith("#"))
        found = re.search(r"(Claims?[^:]*): (.*?) Test: (.*?) Expectation", comment)
        if not found:
            raise PageError(f"{experiment}.yaml: expected a comment with Claim: ... Test: ... Expectation: ...")
        claim, said, test = map(plain, found.groups())
        return Markdown(f"**{claim}:** {said}\n\n**Test:** {test}")

    def repeat(self, experiment: str) -> Markdown:
        """The command that repeats an experiment, and where its numbers are from."""
        return one.origin(self.results.provenance(experiment))

    def part(self, experiment: str, heading: str, figure: str = "", *, caller: Callable[[], str]) -> Markdown:
        """A section on one experiment: claim, test, verdicts, the mechanism, a figure, the command; empty if not done."""
        if experiment not in self.results.done and experiment in self.results.optional:
            return Markdown()
        blocks = [
            f"## {plain(heading)} {{#{experiment}}}",
            self.head(experiment),
            self.claims(experiment),
            caller().strip(),
            self.figure(figure, experiment) if figure else "",
            self.repeat(experiment),
        ]
        return Markdown("\n\n".join(block for block in blocks if block))

    def missing(self) -> str:
        """The experiments that have not been run, in a sentence; empty if all have."""
        absent = [name for name in self.results.experiments if name not in self.results.done]
        return f"Not run yet: {listed(absent)}." if absent else ""


def _table(frame: pl.DataFrame, digits: int) -> Markdown:
    rows = [
        [number(cell, digits) if isinstance(cell, float) else setting(cell) for cell in row]
        for row in frame.iter_rows()
    ]
    look = "".join("r" if dtype.is_numeric() else "l" for dtype in frame.dtypes)
    return table([METRIC_NAMES.get(name, setting_name(name)) for name in frame.columns], rows, look)
