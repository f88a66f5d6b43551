"""Figures of a fit to somebody's own rows: scores of labeled and unlabeled rows, stability, drivers, calibration."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from jaxpu.plots.style import BLUE, FAINT, INK, QUIET, RED, WIDTH, headline, look, wrapped


def score_distributions(scores: pl.DataFrame, threshold: float) -> Figure:
    """Histograms of the scores of labeled and unlabeled rows, each of area 1, and the threshold.

    Args:
        scores: ``label`` and ``score``, a row a row.

    >>> frame = pl.DataFrame({"label": [1, 0, 0], "score": [2.0, -1.0, 1.0]})
    >>> score_distributions(frame, 0.0).get_suptitle()
    'The threshold calls 1 of 2 unlabeled rows positive, and 1 of 1 labeled ones'
    """
    z, labeled = scores["score"].to_numpy(), scores["label"].to_numpy() == 1
    low, high = np.quantile(z, [0.002, 0.998])
    edges = np.linspace(low, max(high, low + 1e-9), 41)
    with look():
        figure = Figure(figsize=(WIDTH, 2.9))
        axis = figure.subplots()
        marks = {}
        for of, name, colour in ((~labeled, "unlabeled rows", BLUE), (labeled, "labeled rows", RED)):
            heights, _ = np.histogram(np.clip(z[of], low, high), edges, density=True)
            marks[name] = axis.stairs(heights, edges, color=colour, fill=True, alpha=0.35, linewidth=0)
            axis.stairs(heights, edges, color=colour, linewidth=1.3)
        if np.isfinite(threshold):
            marks["threshold"] = axis.axvline(threshold, color=INK, linewidth=1.5, linestyle="--")
        axis.set(xlabel="score", ylabel="density", xlim=(low, max(high, low + 1e-9)))
        axis.set_yticks([])
        above = z >= threshold
        headline(
            figure,
            f"The threshold calls {int((above & ~labeled).sum()):,} of {int((~labeled).sum()):,} unlabeled rows "
            f"positive, and {int((above & labeled).sum()):,} of {int(labeled.sum()):,} labeled ones",
            marks,
        )
    return figure


def ranks_of_two(seeds: pl.DataFrame, top: int, shared: float) -> Figure:
    """The rank of each unlabeled row in two seeds, near the diagonal where they agree.

    Args:
        seeds: ``first`` and ``second``, ranks. top: how many rows are called positive. shared: mean share in common.
    """
    first, second = (seeds[name].to_numpy() for name in ("first", "second"))
    most = 2000
    rows = np.linspace(0, len(first) - 1, most).round().astype(int) if len(first) > most else np.arange(len(first))
    with look():
        figure = Figure(figsize=(WIDTH, 3.6))
        axis = figure.subplots()
        both = (first[rows] <= top) & (second[rows] <= top)
        axis.scatter(first[rows][~both], second[rows][~both], 8, color=FAINT, linewidth=0)
        marks = {"on top in both": axis.scatter(first[rows][both], second[rows][both], 10, color=BLUE, linewidth=0)}
        axis.axvline(top, color=QUIET, linewidth=1)
        axis.axhline(top, color=QUIET, linewidth=1)
        axis.set(xlabel="rank with one seed", ylabel="rank with another", xlim=(0, len(first)), ylim=(0, len(first)))
        headline(figure, f"Two seeds share {100 * shared:.0f} % of their {top:,} best unlabeled rows", marks)
    return figure


def column_drivers(drivers: pl.DataFrame, most: int = 15) -> Figure:
    """Bars of the columns whose shuffling costs most.

    Args:
        drivers: ``column``, ``loss`` and ``sd``, the most important first.
    """
    shown = drivers.head(most)
    names = [wrapped(name, 30) for name in shown["column"]]
    loss, sd = shown["loss"].to_numpy(), shown["sd"].to_numpy()
    with look():
        figure = Figure(figsize=(WIDTH, 0.9 + 0.27 * len(names)))
        axis = figure.subplots()
        places = np.arange(len(names))
        axis.barh(places, np.maximum(loss, 0), 0.62, color=BLUE, xerr=sd, ecolor=QUIET)
        axis.set_yticks(places, names)
        axis.set(
            ylim=(len(names) - 0.5, -0.5), xlabel="AUC of labeled against unlabeled rows that is lost by shuffling"
        )
        axis.grid(visible=False, axis="y")
        headline(figure, f"{shown['column'][0]} drives the score most" if loss[0] > 0 else "No column alone drives it")
    return figure


def calibration_curve(bins: pl.DataFrame) -> Figure:
    """What the probabilities say of the unlabeled rows, against what P and U say of them under SCAR.

    Args:
        bins: ``predicted``, ``expected``, ``unlabeled``, a row a bin.
    """
    p, found, n = (bins[name].to_numpy() for name in ("predicted", "expected", "unlabeled"))
    error = float(np.average(np.abs(p - found), weights=n))
    with look():
        figure = Figure(figsize=(WIDTH, 3.2))
        axis = figure.subplots()
        axis.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
        axis.plot(p, found, color=BLUE, marker="o", linewidth=1.2)
        axis.set(xlim=(-0.02, 1.02), ylim=(-0.03, 1.05), xlabel="mean probability of a bin of unlabeled rows")
        axis.set_ylabel("share that P and U tell")
        headline(
            figure, f"Probabilities are {100 * error:.0f} points off what labeled and unlabeled rows tell, on average"
        )
    return figure
