"""What the text of a study may ask for, by name; what finds nothing is an error that names it."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from jaxpu.plots.figure import Picture
from jaxpu.plots.frames import METRIC_NAMES, metric_name, setting, setting_name, with_label, with_point
from jaxpu.plots.rules import rule_name
from jaxpu.report import claims, parts, pictures, tables
from jaxpu.report.markup import PageError
from jaxpu.report.text import Markdown, code, fold, listed, mean, number, plain, table
from jaxpu.report.words import verdict_name

if TYPE_CHECKING:
    from jaxpu.report.study import Results


MOST_COLUMNS = 3
"""Points of a grid that stand side by side; more stand below each other, so that a table fits on a page."""


class Placeholders:
    """What a study's text may ask for; ``pictures`` are the experiments' figures that it placed."""

    def __init__(self, results: "Results", own: Mapping[str, pl.DataFrame]) -> None:
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
            "said": self.said,
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

    def said(self, name: str, digits: int = 3) -> str:
        """The one cell of a table that the study's own code makes.

        Raises:
            PageError: there is no such table, or it has more than one cell.
        """
        self.table(name)
        if self.own[name].shape != (1, 1):
            raise PageError(f"table {name!r} is of shape {self.own[name].shape}, expected one cell")
        value = self.own[name].item()
        return number(value, digits) if isinstance(value, float) else setting(value)

    def means(self, experiment: str, metric: str, selection: str = "", digits: int = 3) -> Markdown:
        """Means with intervals of a metric: a row a method, a column a point of the grid, or the other way round."""
        summary = self.results.frame(experiment, "summary").filter(pl.col("metric") == metric).collect()
        if selection and "selection" in summary.columns:
            summary = summary.filter(pl.col("selection") == selection)
        if summary.is_empty():
            raise PageError(f"{experiment}: no metric {metric!r} under {selection or 'any rule'} in its summary")
        summary = with_label(with_point(summary))
        points = summary["point"].unique(maintain_order=True).to_list()
        found = {(row["method"], row["point"]): row for row in summary.iter_rows(named=True)}
        if len(found) < summary.height:
            raise PageError(f"{experiment}: several rows for a method and point of {metric!r}: name the selection")
        methods = summary["method"].unique(maintain_order=True).to_list()
        cells = [[mean(found.get((method, point)), digits) for point in points] for method in methods]
        if len(points) > MOST_COLUMNS:
            rows = [[point or "–", *row] for point, row in zip(points, zip(*cells, strict=True), strict=True)]
            return table([metric_name(metric), *map(code, methods)], rows)
        rows = [[code(method), *row] for method, row in zip(methods, cells, strict=True)]
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
        """The claims of an experiment, each with its test; many of them are folded under how they ended."""
        found = self._claims(experiment)
        body = claims.claims_table(found)
        return fold(claims.ended(found), body) if found.height > tables.LONG else body

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
        there = {p.name: p for p in pictures.read_pictures(self.results.path(experiment) / "figures")}
        if name not in there:
            raise PageError(f"{experiment} has no figure {name!r}; it has {listed(list(there)) or 'none'}")
        named = f"{experiment}-{name}"
        self.pictures[named] = there[name]._replace(name=named, section=experiment)
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
        return parts.origin(self.results.provenance(experiment))

    def part(self, experiment: str, heading: str, figure: str = "", *, caller: Callable[[], str]) -> Markdown:
        """A section on one experiment: claim, test, verdicts, mechanism, figure, command; empty if not done."""
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
