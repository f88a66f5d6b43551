"""The one run that explains a selection artefact."""

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jaxpu.plots.frames import F1, IDENTITY, NothingToShow, require, run_columns, with_label
from jaxpu.plots.rules import RESCUE, f1_column, rule_name, watched
from jaxpu.plots.style import BLUE, GREEN, INK, PURPLE, RED, WIDTH, colour_key, headline, look

ONE_CLASS = (0.0, 1.0)
"""Shares predicted positive at which the legacy rescue steps in."""


def artefact_run(selected: pl.DataFrame) -> dict[str, Any]:
    """The run with verdict ``selection_artefact`` and the lowest test F1, those of the legacy rescue first.

    Raises:
        NothingToShow: no run has that verdict under a rule that watches a recorded column.
    """
    require(selected, *IDENTITY, "seed", "selection", "epoch", "f1", "verdict")
    watching = [rule for rule in selected["selection"].unique() if watched(rule)]
    found = with_label(selected).filter(
        pl.col("verdict") == "selection_artefact",
        pl.col("selection").is_in(watching),
        F1.is_not_null(),
    )
    if found.is_empty():
        raise NothingToShow("No run has the verdict selection artefact, so there is none to tell about.")
    return found.sort(pl.col("selection") != RESCUE, "f1", *run_columns(selected), "selection").row(0, named=True)


def selection_story(runs: pl.DataFrame, selected: pl.DataFrame) -> Figure:
    """Draw one run with a selection artefact (``artefact_run``): what the rule saw, why, and what it got.

    Top: the watched column on the validation rows. Middle: the share of rows predicted positive. Bottom: test
    F1 and AUC. For the legacy rule F1 is drawn with and without the rescue, and rings mark the epochs whose
    one-class predictions were rescued. Dashed lines mark the selected epoch and, for the legacy rule, the one
    that validation F1 selects without the rescue.

    Args:
        runs: one row a run and epoch, with the watched column and test F1.
        selected: one row a run and selection rule, with epoch, f1 and verdict.

    Raises:
        NothingToShow: no run has that verdict, or its epochs were not recorded.
    """
    chosen = artefact_run(selected)
    rule = chosen["selection"]
    require(runs, *IDENTITY, "seed", "epoch", watched(rule) or "epoch", "test_oracle_f1")
    same = [pl.col(name).eq_missing(chosen[name]) for name in run_columns(selected)]
    path = runs.filter(same).sort("epoch")
    require(path)
    marks = {"selected": (chosen["epoch"], f1_column(runs, rule), RED)}
    plain = selected.filter(*same, pl.col("selection") == "val_f1")["epoch"].to_list()
    if rule == RESCUE and plain and plain[0] != chosen["epoch"]:
        marks["without the rescue"] = (plain[0], f1_column(runs, "val_f1"), BLUE)
    with look():
        figure = Figure(figsize=(WIDTH, 5.8))
        saw, why, got = figure.subplots(3, 1, sharex=True, height_ratios=(1.2, 0.8, 1.2))
        for panel in (saw, why, got):
            for epoch, _, colour in marks.values():
                panel.axvline(epoch, color=colour, linewidth=1.1, linestyle=(0, (4, 3)), zorder=1)
        _saw(saw, path, rule)
        _why(why, path, chosen["epoch"])
        _got(got, path, rule, marks)
        got.xaxis.set_major_locator(MaxNLocator(integer=True, steps=(1, 2, 5, 10)))
        got.set_xlabel("epoch")
        headline(figure, _statement(chosen, path))
    return figure


def _saw(axis: Axes, path: pl.DataFrame, rule: str) -> None:
    """Draw what the rule watched on the validation rows."""
    axis.set_title(f"What the rule saw on the validation rows: {rule_name(rule)}")
    _lines(axis, path, _f1(path, "val") if rule == RESCUE else {watched(rule) or "": (rule_name(rule), RED)})
    if rule == RESCUE:
        _rings(axis, path, "val")


def _why(axis: Axes, path: pl.DataFrame, epoch: int) -> None:
    """Draw the share of rows predicted positive; write it at the selected epoch, where it may be tiny."""
    names = {"val_predicted_positive": ("validation", GREEN), "test_predicted_positive": ("test", INK)}
    names = {column: look for column, look in names.items() if column in path.columns}
    axis.set_title("Why: share of rows predicted positive (p > 0.5)")
    _lines(axis, path, names)
    at = path.filter(pl.col("epoch") == epoch)
    shares = [f"{name} {100 * at[column][0]:.1f} %" for column, (name, _) in names.items() if at.height]
    if shares:
        _note(axis, epoch, 0.95, f"epoch {epoch}: {', '.join(shares)}", RED, above=False)


def _got(axis: Axes, path: pl.DataFrame, rule: str, marks: dict[str, tuple[int, str, str]]) -> None:
    """Draw test F1 and AUC, and write the F1 of the marked epochs beside the line."""
    axis.set_title("What it got on the test rows")
    f1 = _f1(path, "test") if rule == RESCUE else {f1_column(path, rule): ("F1", INK)}
    _lines(axis, path, f1 | {"test_oracle_auc": ("AUC", PURPLE)})
    if rule == RESCUE:
        _rings(axis, path, "test")
    for name, (epoch, column, colour) in marks.items():
        for value in path.filter(pl.col("epoch") == epoch)[column]:
            axis.plot(epoch, value, "o", color=colour, markersize=8, zorder=5)
            text = f"{name}: epoch {epoch}, test F1 {value:.2f}"
            _note(axis, epoch, value, text, colour, above=value < 0.5)


def _f1(path: pl.DataFrame, split: str) -> dict[str, tuple[str, str]]:
    """F1 of a split with the rescue and without it."""
    with_rescue, plain = f1_column(path, RESCUE, split), f1_column(path, "val_f1", split)
    return {with_rescue: ("F1 with the rescue", RED), plain: ("F1 without", BLUE)}


def _rings(axis: Axes, path: pl.DataFrame, split: str) -> None:
    """Ring the epochs whose predictions were of one class, and hence rescued."""
    column, f1 = f"{split}_predicted_positive", f"{split}_oracle_f1_rescue"
    if column not in path.columns or f1 not in path.columns:
        return
    rescued = path.filter(pl.col(column).is_in(ONE_CLASS))
    look = {"facecolor": "none", "edgecolor": RED, "linewidth": 1.4}
    axis.scatter(rescued["epoch"], rescued[f1], 80, zorder=4, clip_on=False, label="rescued", **look)
    note = "ring: rescued, since\nall rows got one class" if rescued.height else "no epoch was rescued"
    axis.text(1.015, 0.34, note, color=RED, transform=axis.transAxes, va="top")


def _lines(axis: Axes, path: pl.DataFrame, names: dict[str, tuple[str, str]]) -> None:
    """Draw the columns that were recorded against the epoch, and name them beside the panel."""
    names = {column: look for column, look in names.items() if column in path.columns}
    for column, (_, colour) in names.items():
        look = {"color": colour, "linewidth": 1.5, "marker": "o", "markersize": 3}
        known = path.filter(pl.col(column).is_not_nan())  # not every epoch need be evaluated
        axis.plot(known["epoch"], known[column], zorder=3, **look)
    colour_key(axis, dict(names.values()))
    low, high = axis.get_ylim()
    if low >= -0.1 and high <= 1.1:
        axis.set(ylim=(-0.04, 1.06), yticks=(0, 0.5, 1))


def _note(axis: Axes, x: float, y: float, text: str, colour: str, *, above: bool) -> None:
    """Write beside a point, on a white ground so that no line runs through the words."""
    axis.annotate(
        text,
        (x, y),
        (8, 8 if above else -8),
        textcoords="offset points",
        va="bottom" if above else "top",
        color=colour,
        weight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.2},
        zorder=6,
    )


def _statement(chosen: dict[str, Any], path: pl.DataFrame) -> str:
    """Say which epoch was selected, what it scores, and what the best epoch of the same run scores."""
    own = f1_column(path, "val_f1")
    best = path.with_columns(pl.col(own).fill_nan(-1)).sort(own, "epoch", descending=[True, False])
    return (
        f"One run, {chosen['label']} with seed {chosen['seed']}: the rule takes epoch\u00a0{chosen['epoch']}, whose "
        f"test F1 is {chosen['f1']:.2f}; epoch\u00a0{best['epoch'][0]} has {best[own][0]:.2f}"
    )


def story_caption(runs: pl.DataFrame, selected: pl.DataFrame) -> str:
    """What to see in the story, and how many such runs there are."""
    run = artefact_run(selected)
    same_rule = selected.filter(pl.col("selection") == run["selection"])
    artefacts = same_rule.filter(pl.col("verdict") == "selection_artefact").height
    rank = f"the worst of {artefacts} selection artefacts" if artefacts > 1 else "the only selection artefact"
    count = (
        f"This is one run (n = 1, so without an interval), {rank} among {same_rule.height} runs under "
        f"{rule_name(run['selection'])}."
    )
    if not _rescued(runs, run):
        return f"The rule likes an epoch whose test F1 is poor, though a later epoch is healthy. {count}"
    return (
        "At ringed epochs all rows of the split fell into one class; the rescue then moved the threshold, and F1 looks "
        "good. Such an epoch wins on validation. On the test rows a few scores of the same epoch lie above 0.5, so "
        f"that nothing is rescued there, and F1 shows what the predictions are worth. {count}"
    )


def _rescued(runs: pl.DataFrame, run: dict[str, Any]) -> bool:
    """Whether the rescue changed validation and not test at the epoch that the legacy rule selected."""
    columns = ("val_predicted_positive", "test_predicted_positive")
    if run["selection"] != RESCUE or not {*columns} <= {*runs.columns}:
        return False
    same = [pl.col(name).eq_missing(run[name]) for name in (*run_columns(runs), "epoch")]
    shares = runs.filter(same).select(columns)
    return shares.height == 1 and shares.row(0)[0] in ONE_CLASS and 0 < shares.row(0)[1] < 0.5
