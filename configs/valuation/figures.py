"""The source's figures beside ours, and what r̂ looks like over training, over λ, and at its extremes.

``scripts/reproduce.py`` calls ``figures`` and ``tables``.
"""

import functools
import json
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Canvas

from jaxpu import config, data
from jaxpu.analysis.stats import mean_interval
from jaxpu.plots import Figure
from jaxpu.plots.frames import NothingToShow
from jaxpu.plots.style import BLUE, GREEN, INK, PURPLE, QUIET, RED, WIDTH, headline, look
from jaxpu.report.study import Results

COLOURS = {"none": INK, "teacher": QUIET, "whole": BLUE, "low": GREEN, "high": RED, "random": PURPLE}
SEES = {"all": "method 1: the teacher sees train and test", "train": "method 2: it sees train"}
FASHION = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")

SOURCE = [
    ("plain training", "none", None, 0.8688, 0.51),
    ("teacher, method 1", "teacher", "all", 0.9329, 0.245),
    ("teacher, method 2", "teacher", "train", 0.8727, 0.397),
    ("all pairs, method 1", "whole", "all", None, None),
    ("low, method 1", "low", "all", None, None),
    ("high, method 1", "high", "all", None, None),
    ("all pairs, method 2", "whole", "train", None, None),
    ("low, method 2", "low", "train", None, None),
    ("high, method 2", "high", "train", None, None),
]
"""Accuracy and log-loss of the source, where it gives them."""

NORMS = [
    ("teacher, method 1", "teacher", "all", 18.7557, 0.7590),
    ("all pairs, method 1", "whole", "all", 20.2712, 0.3177),
    ("low, method 1", "low", "all", 19.9560, 0.3635),
    ("teacher, method 2", "teacher", "train", 19.0546, 0.7472),
    ("all pairs, method 2", "whole", "train", 20.2883, 0.3144),
    ("low, method 2", "low", "train", 19.9803, 0.3542),
]
"""Weight norm and mean input gradient of the loss in the source."""


def figures(results: Results) -> list[Figure]:
    """Of every experiment that is there."""
    found = []
    for name in ("guided_digits", "guided_fashion"):
        if name in results.done:
            runs = functools.partial(_runs, results, name)
            seeds = "Medians over seeds, with the range from the least to the largest."
            found.append(Figure(f"accuracy_{name}", name, functools.partial(ways, runs, "accuracy"), seeds))
            found.append(Figure(f"negative_{name}", name, functools.partial(ways, runs, "negative"), seeds))
            found.append(Figure(f"lambda_{name}", name, functools.partial(over_lambda, runs), "Means over seeds."))
    if "guided_fashion" in results.done:
        note = "Above each mixture λ and its classes, below r̂; one student of all pairs with method 1, seed 0."
        found.append(Figure("extremes", "guided_fashion", lambda: extremes(results, "guided_fashion"), note))
    return found


def tables(results: Results) -> dict[str, pl.DataFrame]:
    """The source's numbers beside ours; what scripts/pu_pairs.py wrote, where it did."""
    path = results.folder / "valuation" / "pu_pairs.json"
    pairs = {"pu_pairs": _pairs(json.loads(path.read_text(encoding="utf-8"))["rows"])} if path.exists() else {}
    if "guided_fashion" not in results.done:
        return pairs
    runs = _runs(results, "guided_fashion")
    scores = [_beside(runs, row, ("accuracy", "log_loss"), ("accuracy", "log-loss")) for row in SOURCE]
    columns = ("probe_weight_norm", "probe_input_loss_gradient_norm")
    norms = [_beside(runs, row, columns, ("weight norm", "input gradient")) for row in NORMS]
    return pairs | {"source": pl.DataFrame(scores), "norms": pl.DataFrame(norms)}


def _pairs(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """A row a figure, a column a dataset and method: mean and interval over repeats."""
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        interval = mean_interval(row["repeats"])
        said = f"{np.mean(row['repeats']):.3f} [{interval.low:.3f}, {interval.high:.3f}]"
        found.setdefault(row["what"], {})[f"{row['dataset']}, {row['method']}"] = said
    return pl.DataFrame([{"mean [95 % interval]": what, **cells} for what, cells in found.items()])


def _beside(
    runs: pl.DataFrame, of: tuple[Any, ...], columns: tuple[str, str], heads: tuple[str, str]
) -> dict[str, Any]:
    name, method, sees, first, second = of
    mine = runs.filter(pl.col("method") == method, pl.col("sees").eq_missing(pl.lit(sees)))
    row: dict[str, Any] = {"network": name}
    for column, head, said in zip(columns, heads, (first, second), strict=True):
        row |= {f"{head}, source": said, f"{head}, here": mine[column].median()}
    return row


def _runs(results: Results, name: str) -> pl.DataFrame:
    return results.frame(name, "runs").collect()


def ways(runs: Any, metric: str) -> Canvas:
    """Draw a metric over the epochs, a panel a method of the source, a line a filter."""
    frame = runs()
    with look():
        canvas = Canvas(figsize=(WIDTH, 3.4))
        lines: dict[str, Any] = {}
        for axis, sees in zip(canvas.subplots(1, 2, sharey=True), SEES, strict=True):
            for method, colour in COLOURS.items():
                mine = frame.filter(pl.col("method") == method, (pl.col("sees") == sees) | pl.col("sees").is_null())
                mine = mine.filter(pl.col(f"path_{metric}").list.first().is_not_null())
                if mine.is_empty():
                    continue
                epochs = mine["path_epoch"][0].to_list()
                values = np.array(mine[f"path_{metric}"].to_list(), float)
                lines[method] = axis.plot(epochs, np.median(values, axis=0), color=colour, linewidth=1.8)[0]
                axis.fill_between(epochs, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
            axis.set(title=SEES[sees], xlabel="epoch")
            if metric == "negative":
                axis.axhline(0.5, color=QUIET, linewidth=0.8, linestyle=":")
        headline(canvas, WORDS[metric], lines)
    return canvas


WORDS = {
    "accuracy": "Test accuracy over training, by filter",
    "negative": "Share of pairs on which the teacher is better, r̂ < 0, over training",
}


def over_lambda(runs: Any) -> Canvas:
    """Draw the mean of |r̂| and of r̂ over λ at the end of training."""
    frame = runs()
    with look():
        canvas = Canvas(figsize=(WIDTH, 3.2))
        lines: dict[str, Any] = {}
        panels = canvas.subplots(1, 2, sharey=True)
        for axis, sees in zip(panels, SEES, strict=True):
            for method in ("whole", "low"):
                mine = frame.filter(pl.col("method") == method, pl.col("sees") == sees)
                for column, style in (("lambda_size", "-"), ("lambda_risk", "--")):
                    values = np.array(mine[column].to_list(), float).mean(axis=0)
                    lam = (np.arange(len(values)) + 0.5) / len(values)
                    name = f"{'|r̂|' if style == '-' else 'r̂'} of {method}"
                    lines[name] = axis.plot(lam, values, style, color=COLOURS[method], linewidth=1.8)[0]
            axis.set(title=SEES[sees], xlabel="λ")
            axis.axhline(0, color=QUIET, linewidth=0.8, linestyle=":")
        headline(canvas, "r̂ of mixed pairs over λ, at the end of training", lines)
    return canvas


def extremes(results: Results, experiment: str, each: int = 8) -> Canvas:
    """Draw pairs with the least r̂, the largest, and that nearest to 0, as the mixed pictures that a student sees."""
    runs = _runs(results, experiment).filter(pl.col("method") == "whole", pl.col("sees") == "all").sort("seed")
    row = runs.row(0, named=True)
    try:
        source = data.load(config.parse(results.config(experiment)).data)
    except ValueError as error:
        raise NothingToShow(f"the images are not there: {error}") from None
    assert source.classes is not None  # ten of them
    count = len(row["extreme_risk"]) // 3
    with look():
        canvas = Canvas(figsize=(WIDTH, 5.0))
        panels = canvas.subplots(3, each)
        for line, name in enumerate(("least r̂", "largest r̂", "r̂ nearest 0")):
            for place in range(each):
                at, axis = line * count + place, panels[line, place]
                lam, first, second = (
                    row["extreme_lambda"][at],
                    *(int(row[f"extreme_{n}"][at]) for n in ("row", "partner")),
                )
                one, other = source.features([first, second])
                axis.imshow(lam * one + (1 - lam) * other, cmap="gray", vmin=-1, vmax=1)
                kinds = " / ".join(FASHION[source.classes[one]] for one in (first, second))
                axis.set_title(f"{lam:.2f} {kinds}", fontsize=6)
                axis.set(xticks=[], yticks=[])
                axis.set_xlabel(f"{row['extreme_risk'][at]:.2f}", fontsize=7)
                if not place:
                    axis.set_ylabel(name)
        headline(canvas, "Pairs at the extremes of r̂")
    return canvas
