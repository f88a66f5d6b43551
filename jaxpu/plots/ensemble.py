"""Pictures of ensembles: which settings turn the ranking upside down, when it comes back, and what the flow says."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxpu.plots.frames import NothingToShow
from jaxpu.plots.style import BLUE, GREEN, INK, PURPLE, QUIET, RED, STYLE, WIDTH, headline

COLOURS = (RED, BLUE, PURPLE, GREEN, "#56B4E9", QUIET, "#E69F00", INK)
MARKERS = "osD^vPX*"
PANELS = {"inverted": "share upside down", "pr_auc": "PR-AUC", "brier": "Brier score"}


def settings_of(cell: str | None) -> dict[str, str]:
    """The settings that a cell's label says.

    >>> settings_of("rate=0.1 lr=0.01")
    {'rate': '0.1', 'lr': '0.01'}
    """
    return dict(piece.split("=", 1) for piece in (cell or "").split())


def axes_of(summary: pl.DataFrame) -> dict[str, list[str]]:
    """The settings that vary over a summary's cells, with their values in the order met."""
    found: dict[str, list[str]] = {}
    for cell in summary["cell"].unique(maintain_order=True):
        for name, value in settings_of(cell).items():
            found.setdefault(name, [])
            if value not in found[name]:
                found[name].append(value)
    return {name: values for name, values in found.items() if len(values) > 1}


def over_setting(summary: pl.DataFrame) -> Figure:
    """Draw the share of runs upside down, PR-AUC and Brier score of each method over the one setting that varies.

    Bars are 95 % intervals: Wilson's, and bootstrap of the mean.

    Raises:
        NothingToShow: not just one numeric setting varies, or there are more than eight methods.
    """
    axes, methods = axes_of(summary), summary["method"].unique(maintain_order=True).to_list()
    if len(axes) != 1 or len(methods) > len(COLOURS) or not _numeric(*axes.values()):
        raise NothingToShow("Not one numeric setting with few methods, so nothing to show over it.")
    [(name, values)] = axes.items()
    place = {value: i for i, value in enumerate(values)}
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 3.2))
        for axis, (metric, label) in zip(figure.subplots(1, 3), PANELS.items(), strict=True):
            rows = summary.filter(pl.col("metric") == metric)
            for k, method in enumerate(methods):
                mine = rows.filter(pl.col("method") == method)
                x = [place[settings_of(c)[name]] + 0.06 * (k - len(methods) / 2) for c in mine["cell"]]
                _bars(axis, x, mine, COLOURS[k], MARKERS[k], method)
            axis.set_xticks(range(len(values)), values, rotation=45 if len(values) > 6 else 0)
            axis.set(title=label, xlabel=name)
        handles, names = figure.axes[0].get_legend_handles_labels()
        headline(figure, _most_inverted(summary), dict(zip(names, handles, strict=True)))
    return figure


def by_method(summary: pl.DataFrame) -> Figure:
    """Draw the share upside down, PR-AUC and Brier score: a row a method, a colour a cell.

    Raises:
        NothingToShow: there are more than eight cells, or :func:`over_setting` shows the same.
    """
    methods = summary["method"].unique(maintain_order=True).to_list()
    cells = summary["cell"].unique(maintain_order=True).to_list()
    [*axes] = axes_of(summary).values()
    if len(axes) == 1 and len(methods) <= len(COLOURS) and _numeric(*axes):
        raise NothingToShow("Shown over the setting that varies.")
    if len(cells) > len(COLOURS):
        raise NothingToShow("More cells than can be told apart; the table has them all.")
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.1 + 0.3 * len(methods)))
        panels = figure.subplots(1, 3, sharey=True)
        for axis, (metric, label) in zip(panels, PANELS.items(), strict=True):
            rows = summary.filter(pl.col("metric") == metric)
            for k, cell in enumerate(cells):
                mine = rows.filter(pl.col("cell") == cell) if cell else rows
                y = [methods.index(m) + 0.1 * (k - (len(cells) - 1) / 2) for m in mine["method"]]
                _bars(axis, y, mine, COLOURS[k], MARKERS[k], cell.replace("dataset=", "") if cell else "all", flat=True)
            axis.set(title=label)
        panels[0].set_yticks(range(len(methods)), methods)
        panels[0].set_ylim(len(methods) - 0.5, -0.5)
        handles, names = panels[0].get_legend_handles_labels()
        headline(figure, _most_inverted(summary), dict(zip(names, handles, strict=True)))
    return figure


def over_two_settings(summary: pl.DataFrame) -> Figure:
    """Draw the share of runs upside down over two settings, a panel a method.

    Raises:
        NothingToShow: not just two settings vary.
    """
    axes, methods = axes_of(summary), summary["method"].unique(maintain_order=True).to_list()
    if len(axes) != 2:
        raise NothingToShow("Not two settings, so no map over them.")
    (down, rows), (across, columns) = axes.items()
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.0 + 0.42 * len(rows) * math.ceil(len(methods) / 2)))
        grid = figure.subplots(math.ceil(len(methods) / 2), min(2, len(methods)), squeeze=False)
        for axis, method in zip(grid.flat, methods, strict=False):
            mine = summary.filter(pl.col("method") == method, pl.col("metric") == "inverted")
            image = np.full((len(rows), len(columns)), np.nan)
            for cell, share in mine.select("cell", "mean").iter_rows():
                at = settings_of(cell)
                image[rows.index(at[down]), columns.index(at[across])] = share
            _map(axis, image, rows, columns)
            axis.set(title=method, xlabel=across, ylabel=down)
        headline(figure, f"Share of runs upside down, over {down} and {across}")
    return figure


def healing(runs: pl.DataFrame) -> Figure:
    """Draw when continued runs turned round and when they were healthy, against what the linear flow predicts.

    Raises:
        NothingToShow: no run was continued, or none turned round.
    """
    wanted = {"ranked_at", "healthy_at", "heal_theory", "slow_updates", "cell"}
    if not wanted <= {*runs.columns}:
        raise NothingToShow("No run was continued.")
    rates = runs.with_columns(rate=pl.col("cell").map_elements(lambda c: settings_of(c).get("rate", ""), pl.String))
    turned = rates.filter(pl.col("ranked_at").is_not_null(), pl.col("heal_theory") > 0, pl.col("roc_auc") < 0.5)
    if turned.is_empty():
        raise NothingToShow("No run turned round after its training.")
    names = rates["rate"].unique(maintain_order=True).to_list()
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 3.6))
        ranked, healthy = figure.subplots(1, 2)
        ratio = turned["ranked_at"] / turned["heal_theory"]
        for k, rate in enumerate(names[: len(COLOURS)]):
            look: dict[str, Any] = {"color": COLOURS[k], "marker": MARKERS[k], "alpha": 0.5, "linewidth": 0}
            mine = turned.filter(pl.col("rate") == rate)
            ranked.scatter(mine["heal_theory"], mine["ranked_at"], 14, label=f"rate {rate}", **look)
            done = rates.filter(pl.col("rate") == rate, pl.col("healthy_at").is_not_null())
            healthy.scatter(done["slow_updates"], done["healthy_at"], 14, **look)
        ranked.set(xlabel="predicted: ranking turns round", ylabel="measured, updates")
        healthy.set(xlabel="slow time scale 1 / (η λ), updates", ylabel="verdict healthy, updates")
        for axis in (ranked, healthy):
            axis.set(xscale="log", yscale="log")
            low, high = axis.get_xlim()
            axis.plot([low, high], [low, high], ":", color=QUIET, linewidth=1)
        handles, labels = ranked.get_legend_handles_labels()
        statement = f"Runs turn round {ratio.median():.2f} times the closed form's time after they began (median)"
        headline(figure, statement, dict(zip(labels, handles, strict=True)))
    return figure


def long_paths(paths: pl.DataFrame) -> Figure:
    """Draw mean w, b and ROC-AUC of continued runs against the number of updates, medians over them.

    Raises:
        NothingToShow: no run was continued.
    """
    if "roc_auc" not in paths.columns:
        raise NothingToShow("No run was continued, so there is no path to show.")
    data = paths.filter(pl.col("roc_auc").is_not_null())
    cells = [c for c in data["cell"].unique(maintain_order=True) if _as_published(c)][: len(COLOURS)]
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 3.0))
        for axis, (column, label) in zip(
            figure.subplots(1, 3), {"w_mean": "mean w", "b": "b", "roc_auc": "ROC-AUC"}.items(), strict=True
        ):
            for k, cell in enumerate(cells):
                mine = paths.filter(pl.col("cell") == cell, pl.col(column).is_not_null()).sort("update")
                name = f"rate {settings_of(cell).get('rate', '')}"
                axis.plot(mine["update"], mine[column], color=COLOURS[k], linewidth=1.4, label=name)
            axis.axhline(0 if column != "roc_auc" else 0.5, color=QUIET, linewidth=0.8, linestyle=":")
            axis.set(xscale="log", title=label, xlabel="updates")
        handles, names = figure.axes[0].get_legend_handles_labels()
        statement = "w falls below 0 within a hundred updates and comes back after thousands"
        later = ": the lower the rate, the later" if len(cells) > 1 else ""
        headline(figure, statement + later, dict(zip(names, handles, strict=True)))
    return figure


def _as_published(cell: str) -> bool:
    at = settings_of(cell)
    return at.get("lr", "0.01") == "0.01" and at.get("initial_total", "1.0") == "1.0"


def _bars(
    axis: Axes, place: Sequence[float], rows: pl.DataFrame, colour: str, marker: str, name: str, *, flat: bool = False
) -> None:
    middle, low, high = (rows[c].cast(pl.Float64).to_numpy() for c in ("mean", "ci_low", "ci_high"))
    low, high = np.fmin(np.nan_to_num(low, nan=np.inf), middle), np.fmax(np.nan_to_num(high, nan=-np.inf), middle)
    error = np.stack([middle - low, high - middle])
    look: dict[str, Any] = {"fmt": marker, "color": colour, "markersize": 3.5, "linewidth": 1, "label": name}
    if flat:
        axis.errorbar(middle, place, xerr=error, **look)
    else:
        axis.errorbar(place, middle, yerr=error, **look)
        axis.plot(place, middle, color=colour, linewidth=0.8, alpha=0.6)


def _map(axis: Axes, image: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> None:
    axis.imshow(image, vmin=0, vmax=1, cmap="OrRd", aspect="auto", origin="upper")
    axis.grid(visible=False)
    for (i, j), value in np.ndenumerate(image):
        if np.isfinite(value):
            axis.text(j, i, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.6 else INK, fontsize=8)
    axis.set_xticks(range(len(columns)), columns)
    axis.set_yticks(range(len(rows)), rows)


def _numeric(values: Sequence[str]) -> bool:
    try:
        return bool([float(v) for v in values])
    except ValueError:
        return False


def _most_inverted(summary: pl.DataFrame) -> str:
    shares = summary.filter(pl.col("metric") == "inverted")
    worst = shares.group_by("method", maintain_order=True).agg(pl.col("mean").max())
    upside = worst.filter(pl.col("mean") >= 0.5)["method"].to_list()
    if not upside:
        return "No method turns the ranking upside down in most runs of any cell"
    shown = ", ".join(upside[:4]) + (f" and {len(upside) - 4} more" if len(upside) > 4 else "")
    return f"Upside down in most runs of some cell: {shown}"
