"""Kinds of figures, to be named in a configuration or a study: ``figures: [{kind: trajectories, metric: train_loss}]``.

A kind is a function of a folder's :class:`Frames` and of keyword options that returns a ``matplotlib`` figure, or a
:class:`Drawn` with its caption. The title of a figure states what is seen and becomes its alternative text. A user's
own function, ``package.module:function``, is as good as ours.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from jaxpu.analysis.metrics import statistic_of
from jaxpu.errors import unknown
from jaxpu.functions import load
from jaxpu.plots.courses import courses
from jaxpu.plots.differences import paired_differences
from jaxpu.plots.figure import Canvas, Drawn, Figure, Frames
from jaxpu.plots.frames import BELOW, metric_name, run_columns, seeds_behind, with_label, worst_rows
from jaxpu.plots.heat import heat_map
from jaxpu.plots.intervals import PANELS, by_method, over_setting
from jaxpu.plots.rates import collapse_rates
from jaxpu.plots.rules import f1_column, rule_name
from jaxpu.plots.story import selection_story, story_caption
from jaxpu.plots.strip import final_f1_strip, strip_caption
from jaxpu.plots.trajectories import trajectories


def _story(frames: Frames) -> Drawn:
    return Drawn(selection_story(frames.runs, frames.selected), story_caption(frames.runs, frames.selected))


def _final_f1(frames: Frames, *, most: int = 24) -> Drawn:
    figure = final_f1_strip(frames.selected, frames.shown, most=most)
    return Drawn(figure, strip_caption(frames.selected, frames.shown))


def _failure_rates(frames: Frames, *, most: int = 24) -> Drawn:
    caption = (
        f"Marks are shares of n = {seeds_behind(frames.selected)} runs, lines their 95 % Wilson intervals. A line that "
        "reaches far from 0 to the right means: nothing failed, but so few seeds do not rule failures out."
    )
    return Drawn(collapse_rates(frames.verdicts, frames.shown, most=most), caption)


def _heat_map(frames: Frames, *, metric: str = "f1", below: float = 0.1, selection: str = "") -> Drawn:
    figure = heat_map(frames.selected, selection or next(iter(frames.shown), ""), metric=metric, below=below)
    n = seeds_behind(frames.selected)
    return Drawn(
        figure,
        f"Each field holds its number, over the seeds (n = {n} a cell). Where the grid has a third setting, its values "
        "count together.",
    )


def _trajectories(frames: Frames, *, metric: str = "", most: int = 16) -> Drawn:
    metric = metric or f1_column(frames.runs, "val_f1")
    rows = worst_rows(with_label(frames.selected, "selection", "f1"), most)[0]
    low = frames.selected.filter(pl.col("selection").is_in(list(frames.shown)), BELOW)
    low = low.select(run_columns(frames.selected)).unique(maintain_order=True)
    figure = trajectories(frames.runs, metric, rows=rows, highlight=low, most=most)
    said = (
        f"{METRIC_NOTES.get(metric, '')} n = {seeds_behind(frames.selected)} seeds a panel; the bands hold the middle"
    )
    return Drawn(
        figure,
        f"{said} 50 % and 90 % of the seeds, the spread of runs and not an interval of the median. Red lines are runs "
        "that a rule shown selects at F1 below 0.1. A run that stopped keeps its last value.".strip(),
    )


METRIC_NOTES = {
    "test_oracle_auc": "AUC judges the ranking without a threshold: where it is high and F1 low, the threshold is at "
    "fault.",
    "test_predicted_positive": "A collapse to one class shows as a line at 0 or at 1.",
    "test_predicted_most": "A collapse to one class shows as a line at 1.",
}

_INTERVALS = "Marks are means over seeds, lines their 95 % intervals (bootstrap; of shares of runs Wilson's)."


def _over_setting(frames: Frames, *, metrics: Sequence[str] = PANELS) -> Drawn:
    return Drawn(over_setting(frames.of_default(frames.summary), metrics), _INTERVALS)


def _by_method(frames: Frames, *, metrics: Sequence[str] = PANELS) -> Drawn:
    return Drawn(by_method(frames.of_default(frames.summary), metrics), _INTERVALS)


def _courses(frames: Frames, *, metrics: Sequence[str], x: str = "epoch", rows: bool = True) -> Drawn:
    frame = frames.paths if x in frames.paths.columns else frames.runs
    return Drawn(courses(frame, metrics, x=x, rows=rows), f"Lines are medians over the seeds, against the {x}.")


def _differences(frames: Frames, *, reference: str, metric: str, without: Sequence[str] = ()) -> Drawn:
    chosen = frames.of_default(frames.selected).filter(~pl.col("method").is_in(list(without)))
    name = metric_name(metric.removeprefix("test_oracle_"))
    rule = rule_name(next(iter(frames.shown), ""))
    return Drawn(
        paired_differences(chosen, reference, metric, name),
        f"Differences from {reference}, paired by seed (n = {seeds_behind(chosen)}), selected by {rule}: "
        f"{statistic_of(metric)}s with their 95 % intervals. Blue is ahead, red behind, grey cannot be told.",
    )


KINDS: dict[str, tuple[Callable[..., Canvas | Drawn], str]] = {
    "selection_story": (_story, "story"),
    "heat_map": (_heat_map, "grid"),
    "over_setting": (_over_setting, "grid"),
    "by_method": (_by_method, "methods"),
    "paired_differences": (_differences, "methods"),
    "final_f1": (_final_f1, "seeds"),
    "failure_rates": (_failure_rates, "seeds"),
    "trajectories": (_trajectories, "training"),
    "courses": (_courses, "training"),
}
"""What draws a kind, and the section of a page that it belongs to."""

DEFAULTS: dict[str, tuple[dict[str, Any], ...]] = {
    "pu": (
        {"kind": "selection_story"},
        {"kind": "heat_map"},
        {"kind": "final_f1"},
        {"kind": "failure_rates"},
        {"kind": "trajectories", "name": "trajectories_f1"},
        {"kind": "trajectories", "metric": "test_oracle_auc", "name": "trajectories_auc"},
        {"kind": "trajectories", "metric": "test_predicted_positive", "name": "trajectories_positive"},
    ),
    "ensemble": (
        {"kind": "over_setting"},
        {"kind": "heat_map", "metric": "auc", "below": 0.2},
        {"kind": "by_method"},
        {"kind": "courses", "x": "update", "metrics": ["w_mean", "b"], "rows": False},
    ),
    "guided": ({"kind": "courses", "metrics": ["accuracy", "log_loss", "kept"]},),
    "function": (),
}
"""The figures of an experiment that asks for none, by its kind; those with nothing to show are left out."""
DEFAULTS["observed"] = DEFAULTS["pu"][3:4]
DEFAULTS["multiclass"] = (*DEFAULTS["pu"][:6], DEFAULTS["pu"][6] | {"metric": "test_predicted_most"})


def figures_of(entries: Sequence[Mapping[str, Any]], frames: Frames) -> list[Figure]:
    """The figures that a configuration asks for.

    Args:
        entries: each with its ``kind``, its options, and perhaps ``name``, ``section``, ``caption``, ``alternative``.
        frames: what they are drawn from.

    Raises:
        ValueError: naming the entry, what was expected and the choices.

    >>> [figure.name for figure in figures_of([{"kind": "trajectories", "metric": "train_loss"}], Frames())]
    ['trajectories_train_loss']
    >>> figures_of([{"kind": "heat_map", "metrik": "f1"}], Frames())
    Traceback (most recent call last):
    ValueError: figure heat_map takes no option 'metrik'; its options are metric, below, selection
    """
    found = [_figure(dict(entry), frames) for entry in entries]
    names = [figure.name for figure in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"figures need names of their own, {twice[0]!r} is there twice: add name: to one of them")
    return found


def _figure(entry: dict[str, Any], frames: Frames) -> Figure:
    kind = str(entry.pop("kind", ""))
    own = {key: str(entry.pop(key, "")) for key in ("name", "section", "caption", "alternative")}
    function, section = KINDS[kind] if kind in KINDS else (_own(kind), "figures")
    options = list(inspect.signature(function).parameters)[1:]
    for name in entry:
        if name not in options:
            raise ValueError(f"figure {kind} takes no option {name!r}; its options are {', '.join(options) or 'none'}")
    metric = entry.get("metric")
    name = own["name"] or "_".join([kind.rpartition(":")[2], *([str(metric)] if metric else [])])
    return Figure(
        name, own["section"] or section, lambda: function(frames, **entry), own["caption"], own["alternative"]
    )


def _own(kind: str) -> Callable[..., Canvas | Drawn]:
    if ":" not in kind:
        raise ValueError(f"{unknown('kind of figure', kind, KINDS)}, or package.module:function")
    return load(kind)
