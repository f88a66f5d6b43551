"""The tables of nine data sets, and figures of what they say.

``scripts/reproduce.py`` calls ``figures`` and ``tables``; what is computed stands in ``nine_sets.py``.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Canvas
from nine_sets import (  # pyright: ignore[reportMissingImports]  # beside this file
    FIXED,
    LOW,
    PLAIN,
    RESCUE,
    SOFT,
    agreement,
    beside,
    by_set,
    by_size,
    failures,
    friedman,
    pooled,
    published,
    ranks,
    regression,
    scored,
    scores,
    share,
    unfinished,
    whole,
)

from jaxpu import config
from jaxpu.analysis.stats.estimates import mean_interval, wilson
from jaxpu.plots import Figure
from jaxpu.plots.frames import NothingToShow
from jaxpu.plots.style import BLUE, GREEN, INK, PURPLE, QUIET, RED, WIDTH, headline, look
from jaxpu.report.study import Results
from jaxpu.selection import RuleChoice


def tables(results: Results) -> dict[str, pl.DataFrame]:
    """The tables that the text places, of the experiments that are there."""
    found = {name: results.frame(name, "selected").collect() for name in results.done}
    made: dict[str, pl.DataFrame] = {}
    scar = scored(found["scar"]) if "scar" in found else None
    if scar is not None:
        both = pl.concat([scar, *(scored(found[name]) for name in ("scar_large",) if name in found)])
        table, apart = beside(both, published()), regression(both, published())
        made |= {
            "beside": by_set(table),
            "scores": scores(both),
            "ranks": ranks(scar),
            "friedman": friedman(scar).with_columns(p=pl.col("p").map_elements("{:.1g}".format, pl.String)),
            "failures": failures(scar),
            "failures_of_sets": failures(both, "dataset"),
            "regression": apart,
            "agreement": agreement(table),
            "originals_at_one": pooled(scar, published()),
            **facts(table, apart),
        }
        if (left := unfinished(results, scar)) is not None:
            made["unfinished"] = left
    if "vary_c" in found:
        frequent = found["vary_c"].filter(pl.col("data.c").is_in([0.1, 0.3, 0.5]))
        made["originals"] = pooled(frequent, published())
    if scar is not None and "connect4_share" in found:
        made["share"] = share(scar, scored(found["connect4_share"]))
    if "validation" in found:
        made["validation"] = by_size(found["validation"])
    return made


def facts(table: pl.DataFrame, apart: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """What the first paragraph says of ``beside`` and ``regression``, each a table of one cell."""
    every = {str(row["rule"]): row for row in apart.filter(pl.col("sets").str.starts_with("all")).iter_rows(named=True)}
    words = {name: "{difference:.2f} [{low:.2f}, {high:.2f}]".format(**row) for name, row in every.items()}
    told = {
        "sets": str(table["dataset"].n_unique()),
        "apart": words[PLAIN],
        "apart_rescue": words[RESCUE],
        "apart_published": f"{every[PLAIN]['published']:.2f}",
        "within": f"{int(table['inside'].sum())} of {table.height}",
    }
    return {name: pl.DataFrame({name: [value]}) for name, value in told.items()}


def figures(results: Results) -> list[Figure]:
    """Ours beside the published runs, the ranks, and failures over the size of the validation set."""
    made = []
    if "scar" in results.done:
        found = [results.frame(name, "selected").collect() for name in ("scar", "scar_large") if name in results.done]
        both = pl.concat(map(scored, found))
        note = f"Means over seeds under {RESCUE}, the range of runs (thin), and 95 % intervals of the mean (thick)."
        made.append(Figure("beside", "scar", lambda: draw_beside(both, published()), note))
        note = "Two methods whose ranks differ by less than the critical difference are not told apart."
        made.append(Figure("ranks", "scar", lambda: draw_ranks(scored(found[0])), note))
    if "validation" in results.done:
        selected = results.frame("validation", "selected").collect()
        rules = config.parse(results.config("validation")).selection.rules
        note = "Three methods together; Wilson's intervals of 95 %."
        made.append(Figure("sizes", "validation", lambda: draw_sizes(selected, rules), note))
    return made


COLOURS = {"vpu": QUIET, "vpudra": PURPLE, FIXED: BLUE, "vpudra_pp": GREEN, SOFT: RED, "pudra": INK}


def draw_beside(selected: pl.DataFrame, known: pl.DataFrame) -> Canvas:
    """A panel a set: what was published as a cross beside what ours have."""
    table = beside(selected, known)
    sets, methods = (table[name].unique(maintain_order=True).to_list() for name in ("dataset", "method"))
    if not sets:
        raise NothingToShow("no set that was published has runs")
    columns = min(3, len(sets))
    lines = -(-len(sets) // columns)
    with look():
        canvas = Canvas(figsize=(WIDTH, 0.8 + (0.5 + 0.21 * len(methods)) * lines))
        panels = np.atleast_1d(canvas.subplots(lines, columns, sharey=True, squeeze=False)).ravel()
        for axis in panels[len(sets) :]:
            axis.remove()
        for axis, dataset in zip(panels, sets, strict=False):
            for row in table.filter(pl.col("dataset") == dataset).iter_rows(named=True):
                mine = (pl.col("dataset") == dataset) & (pl.col("method") == row["method"])
                values = selected.filter(mine & (pl.col("selection") == RESCUE))["f1"].to_numpy()
                place, colour = methods.index(row["method"]), COLOURS.get(row["method"], INK)
                axis.plot([row["lowest"], row["highest"]], [place] * 2, color=colour, linewidth=0.8)
                axis.plot(mean_interval(values), [place] * 2, color=colour, linewidth=3)
                axis.plot(row["mean"], place, "o", color=colour, markersize=4)
                axis.plot(row["published"], place, "x", color=INK, markersize=6, markeredgewidth=1.5)
            axis.set_title(dataset, fontsize=9)
            axis.set_yticks(range(len(methods)), methods)
        panels[0].invert_yaxis()  # the axes are shared
        inside = int(table["inside"].sum())
        headline(canvas, f"{inside} of {table.height} published runs (crosses) lie within the range of ours")
    return canvas


def draw_ranks(selected: pl.DataFrame) -> Canvas:
    """Average ranks on a line a method, and the critical difference from the best."""
    table = ranks(selected)
    best, critical = table["average rank"][0], table["critical difference"][0]
    sets = whole(selected)["dataset"].n_unique()
    with look():
        canvas = Canvas(figsize=(WIDTH, 1.2 + 0.24 * table.height))
        axis = canvas.subplots()
        axis.axvspan(best, best + critical, color=BLUE, alpha=0.12, linewidth=0)
        for place, (_, rank, _, alike) in enumerate(table.iter_rows()):
            axis.plot([1, rank], [place] * 2, color=QUIET, linewidth=0.8)
            axis.plot(rank, place, "o", color=BLUE if alike else INK)
            axis.annotate(f"{rank:.2f}", (rank, place), (6, -3), textcoords="offset points", fontsize=8)
        axis.set_yticks(range(table.height), table["method"].to_list())
        axis.invert_yaxis()
        axis.set_xlim(0.8, table.height + 0.8)
        axis.set_xlabel(
            f"average rank by mean F1 over {sets} sets, 1 = best; shaded: critical difference {critical:.2f}"
        )
        alike = int(table["like_the_best"].sum())
        headline(canvas, f"{alike} of {table.height} methods are not told apart from the best")
    return canvas


def draw_sizes(selected: pl.DataFrame, rules: Sequence[RuleChoice]) -> Canvas:
    """A line a set, a panel a rule: the share of runs below 0.1 over the share of rows that select."""
    with look():
        canvas = Canvas(figsize=(WIDTH, 3.4))
        panels = canvas.subplots(1, 2, sharey=True)
        for axis, rule in zip(panels, (RESCUE, PLAIN), strict=True):
            mine = [choice for choice in rules if choice.rule == rule]
            for place, dataset in enumerate(selected["dataset"].unique(maintain_order=True).to_list()):
                counts = []
                for choice in mine:
                    here = (pl.col("dataset") == dataset) & (pl.col("selection") == choice.name)
                    f1 = selected.filter(here)["f1"].cast(pl.Float64)
                    counts.append((int((f1 < LOW).sum()), len(f1)))
                at = [100 * (choice.validation or 0.01) * 1.03**place for choice in mine]
                rates, ends = np.array([k / n for k, n in counts]), np.array([wilson(k, n) for k, n in counts])
                bars = np.clip([rates - ends[:, 0], ends[:, 1] - rates], 0, None)
                axis.errorbar(at, rates, bars, fmt="o-", markersize=4, linewidth=1, elinewidth=0.8, label=dataset)
            axis.set_xscale("log")
            axis.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
            axis.set_title(rule, fontsize=9)
            axis.set_xlabel("validation rows, % of the training part")
        panels[0].set_ylabel("share of runs with F1 < 0.1")
        panels[0].legend(fontsize=8)
        headline(canvas, "Runs that fail, over the size of the validation set")
    return canvas
