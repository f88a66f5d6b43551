"""The figures of a report, each with what a reader should see in it, its n and its intervals."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from matplotlib.figure import Figure

from jaxpu.analysis.stats import wilson
from jaxpu.analysis.summary import COLLAPSED_F1
from jaxpu.plots import (
    NothingToShow,
    artefact_run,
    collapse_rates,
    final_f1_strip,
    phase_diagram,
    render,
    selection_story,
    trajectories,
)
from jaxpu.plots.frames import BELOW, ROW, RUN, f1_column, labelled, rule_name, worst_rows
from jaxpu.plots.story import ONE_CLASS, RESCUE

PANELS = 16


class Picture(NamedTuple):
    """A figure of a report, drawn; without a figure the caption says why there is none."""

    name: str
    figure: Figure | None
    svg: bytes
    alt: str
    caption: str


def pictures(runs: pl.DataFrame, selected: pl.DataFrame, verdicts: pl.DataFrame, rules: Sequence[str]) -> list[Picture]:
    """Draw all figures of a report; what cannot be drawn gives a picture that says why.

    Args:
        runs: one row a run and epoch.
        selected: one row a run and selection rule.
        verdicts: one row a method, cell and selection rule.
        rules: the selection rules to show, the report's default first.
    """
    n = _seeds(selected)
    story = "Line charts over the epochs of one run: what the rule saw, the share predicted positive, F1."
    strip = "Strip plot of the test F1 of every run, one row a method, one panel a selection rule."
    rates = "Share of runs with a failing verdict for each method and selection rule, with intervals."
    return [
        _picture(
            "selection_story",
            lambda: selection_story(runs, selected),
            story,
            lambda: _story_caption(runs, selected),
        ),
        _picture(
            "final_f1",
            lambda: final_f1_strip(selected, rules),
            strip,
            lambda: _strip_caption(selected, rules, n),
        ),
        _picture(
            "failure_rates",
            lambda: collapse_rates(verdicts, rules),
            rates,
            lambda: (
                f"Marks are shares of n = {n} runs, lines their 95 % Wilson intervals. A line that reaches "
                "far from 0 to the right means: nothing failed, but so few seeds do not rule failures out."
            ),
        ),
        _picture(
            "phase_diagram",
            lambda: phase_diagram(selected, next(iter(rules), "")),
            "Heat maps over two settings of the grid, two for each method.",
            lambda: (
                f"Each field holds its number, over the seeds (n = {n} a cell). Where the grid has a third setting, "
                "its values count together."
            ),
        ),
        *_over_training(runs, selected, rules, n),
    ]


def _over_training(runs: pl.DataFrame, selected: pl.DataFrame, rules: Sequence[str], n: str) -> list[Picture]:
    """Three metrics against the epoch."""
    spread = (
        f"n = {n} seeds a panel; the bands hold the middle 50 % and 90 % of the seeds, the spread of runs "
        "and not an interval of the median."
    )
    f1 = f1_column(runs, "val_f1")
    metrics = {
        f1: "Red lines are the runs that a rule shown selects at F1 below 0.1: do they stay down or recover?",
        "test_oracle_auc": "AUC judges the ranking without a threshold. Where it is high and F1 low, the "
        "threshold is at fault, not the ranking.",
        **_one_class(runs),
    }

    def draw(metric: str) -> Figure:
        rows = worst_rows(labelled(selected, "selection", "f1"), PANELS)[0]
        low = selected.filter(pl.col("selection").is_in(list(rules)), BELOW).select(RUN)
        return trajectories(runs, metric, rows=rows, highlight=low.unique(maintain_order=True), most=PANELS)

    return [
        _picture(
            f"trajectories_{name}",
            lambda metric=metric: draw(metric),
            "Small line charts over the epochs, one a method, with the spread over seeds.",
            lambda text=text: f"{text} {spread}",
        )
        for name, (metric, text) in zip(("f1", "auc", "positive"), metrics.items(), strict=True)
    ]


def _one_class(runs: pl.DataFrame) -> dict[str, str]:
    """The column that shows a collapse to one class, and how it shows."""
    if "test_predicted_most" in runs.columns:
        return {"test_predicted_most": "A collapse to one class shows as a line at 1."}
    return {"test_predicted_positive": "A collapse to one class shows as a line at 0 or at 1."}


def _picture(name: str, draw: Callable[[], Figure], kind: str, caption: Callable[[], str]) -> Picture:
    try:
        figure = draw()
    except NothingToShow as reason:
        return Picture(name, None, b"", "", str(reason))
    alt = f"{figure.get_suptitle()}. {kind}".replace("\n", " ")
    return Picture(name, figure, render(figure), alt, caption())


def _seeds(selected: pl.DataFrame) -> str:
    """The number of seeds of a row: "8", or "7 to 8" where rows differ."""
    if selected.is_empty() or not {*RUN} <= {*selected.columns}:
        return "0"
    counts = selected.group_by(ROW).agg(pl.col("seed").n_unique())["seed"].sort()
    return f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"


def _story_caption(runs: pl.DataFrame, selected: pl.DataFrame) -> str:
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
        "At ringed epochs all rows of the split fell into one class; the rescue then moved the threshold, "
        "and F1 looks good. Such an epoch wins on validation. On the test rows a few scores of the same "
        "epoch lie above 0.5, so that nothing is rescued there, and F1 shows what the predictions are "
        f"worth. {count}"
    )


def _rescued(runs: pl.DataFrame, run: Mapping[str, Any]) -> bool:
    """Whether the rescue changed validation and not test at the epoch that the legacy rule selected."""
    columns = ("val_predicted_positive", "test_predicted_positive")
    if run["selection"] != RESCUE or not {*columns} <= {*runs.columns}:
        return False
    shares = runs.filter(*(pl.col(name) == run[name] for name in (*RUN, "epoch"))).select(columns)
    return shares.height == 1 and shares.row(0)[0] in ONE_CLASS and 0 < shares.row(0)[1] < 0.5


def _strip_caption(selected: pl.DataFrame, rules: Sequence[str], n: str) -> str:
    """What to see in the strip plot, and the row with most runs below the line, with its interval."""
    data = labelled(selected).filter(pl.col("selection").is_in(list(rules)))
    rows = data.group_by("label", "selection", maintain_order=True).agg(BELOW.sum().alias("low"), pl.len())
    label, rule, low, runs = rows.sort("low", descending=True, maintain_order=True).row(0)
    interval = wilson(low, runs)
    where = f"for {label} under {rule_name(rule)}" if low else "for every method and rule"
    return (
        f"Every dot is one run, n = {n} seeds a method; red crosses in the shaded zone are runs with F1 "
        f"below {COLLAPSED_F1:g}, the black bar is the median. The largest share of crosses is {low} of "
        f"{runs} {where} (95 % Wilson interval {100 * interval.low:.0f} to {100 * interval.high:.0f} %)."
    )
