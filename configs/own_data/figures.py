"""What scripts/own_data.py measured, as tables, figures and a list of what was to be reached.

``scripts/reproduce.py`` calls ``figures`` and ``tables``. Intervals are bootstraps over draws (a seed of a cell), those
of shares are Wilson's; that of an RMSE is that of the mean squared error, its ends under the root.
"""

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Canvas

from jaxpu.analysis.stats import mean_interval, paired_difference, wilson
from jaxpu.plots import Figure
from jaxpu.plots.style import BLUE, GREEN, INK, QUIET, RED, WIDTH, headline, look
from jaxpu.report.study import Results

GROUPS = {"below 20": (0, 20), "20 to 59": (20, 60), "60 and more": (60, 10**9)}
"""Labeled rows."""
NAIVE, OURS = "naive boosting", "jaxpu.fit"
NAMED = {"easy c=0.3 π=0.37": 0.03, "spambase c=0.1 π=0.37": 0.075, "mushrooms c=0.1 π=0.1": 0.035}
SPEED, SPAMBASE = "spambase n_P=72 π=0.37", "spambase c=0.1 π=0.37"
RULES = {
    "quantile": "top π of U",
    "pu_f1": "PU-F1: max 2 min(π R, Pr) / (π + Pr)",
    "lee_liu": "Lee and Liu: R² / Pr, no π",
    "half": "p > 1/2, isotonic",
    "g": "g > 1/2, of P against U",
}
TESTED = {
    "1. The same rows in both scenarios: equal π, α and c to 1e-12": (
        "tests/test_prior.py::test_scenarios_differ_in_words_only",
    ),
    '5. The page says "at most"': ("tests/test_fit_command.py::test_the_summary_says_what_the_page_says",),
    "6. A bootstrap of copies is far too low": ("tests/test_prior.py::test_a_bootstrap_of_copies_is_far_too_low",),
    "10. check_estimator, five codings of labels": (
        "tests/test_pu_classifier.py::test_scikit_learns_checks_of_the_default",
        "tests/test_pu_classifier.py::test_five_codings_of_labels",
        "tests/test_prior.py::test_scikit_learns_checks",
    ),
    "11. Strings, None, NaN and unseen categories without a warning": (
        "tests/test_pu_classifier.py::test_frames_with_strings_and_gaps_without_a_warning",
        "tests/test_tables.py::test_candidates_take_gaps_and_unseen_categories_without_a_warning",
    ),
    "12. Saved and loaded: the same scores; unknown types refused": (
        "tests/test_fit_command.py::test_what_was_saved_gives_the_same_scores",
        "tests/test_fit_command.py::test_a_model_that_holds_another_type_is_refused",
    ),
}
"""Figures that are tests and no measurements."""


def read(results: Results, name: str) -> pl.DataFrame | None:
    """A table of scripts/own_data.py, if it is there."""
    path = results.folder / "own_data" / f"{name}.csv"
    return pl.read_csv(path, infer_schema_length=None, glob=False) if path.exists() else None


def tables(results: Results) -> dict[str, pl.DataFrame]:
    """The tables that the text places, of what has been measured."""
    draws, refits, models, others, estimates = (
        read(results, name) for name in ("draws", "refits", "models", "other_models", "estimators")
    )
    found: dict[str, pl.DataFrame] = {}
    if draws is not None:
        grid = cells(draws)
        found |= {"groups": groups(grid), "settings": settings(draws), "worst": worst(grid)}
        found |= {"calibration": calibration(grid), "thresholds": thresholds(grid), "seconds": seconds(draws)}
    if refits is not None:
        found["refits"] = bootstraps(refits)
    if models is not None:
        both = models if others is None else pl.concat([models, others], how="diagonal_relaxed")
        found |= {"models": compared(both), "sets": by_set(models), "failed": failed([both, estimates])}
    if estimates is not None:
        found["estimators"] = estimators(estimates)
    if draws is not None and refits is not None and models is not None:
        reached = acceptance(draws, refits, models)
        found |= {"acceptance": reached, "n_met": one(reached, "met"), "n_missed": one(reached, "missed")}
        found["missed"] = missed(reached)
    return found


def missed(reached: pl.DataFrame) -> pl.DataFrame:
    """The figures that are missed, in words."""
    which = reached.filter(pl.col("verdict") == "missed")["figure"].str.replace(r"^\d+\. ", "")
    return pl.DataFrame({"figures": ["; ".join(which) or "none"]})


def one(reached: pl.DataFrame, word: str) -> pl.DataFrame:
    """How many measured figures are met, or missed."""
    return pl.DataFrame({"n": [int(reached["verdict"].str.starts_with(word).sum())]})


def cells(draws: pl.DataFrame) -> pl.DataFrame:
    """Three seeds of each cell of the grid: seven sets, three c, three π."""
    grid = pl.col("c").is_in([0.05, 0.1, 0.3]) & pl.col("pi").is_in([0.1, 0.37, 0.6])
    named = pl.col("cell").str.contains("c=", literal=True) & (pl.col("dataset") != "reducible")
    return draws.filter(grid, named, pl.col("seed") < 3)


class Measured(NamedTuple):
    """A number with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """As tables have it."""
        if not math.isfinite(self.value):
            return "–"
        known = math.isfinite(self.low)
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]" if known else f"{self.value:.3f}"


def mean(values: Iterable[float]) -> Measured:
    """A mean over draws."""
    numbers = np.array(list(values), float)
    return Measured(float(numbers.mean()) if len(numbers) else math.nan, *map(float, mean_interval(numbers)))


def rmse(error: pl.Series) -> Measured:
    """A root mean squared error over draws."""
    return Measured(*(math.sqrt(max(0.0, end)) for end in mean(error**2)))


def share(inside: pl.Series) -> Measured:
    """How often it holds."""
    yes, n = int(inside.sum()), len(inside)
    return Measured(yes / n if n else math.nan, *map(float, wilson(yes, n)))


def error(frame: pl.DataFrame) -> pl.Series:
    """Estimate minus truth."""
    return frame["prior"] - frame["truth"]


def covers(frame: pl.DataFrame, of: str = "truth", ends: tuple[str, str] = ("low", "high")) -> pl.Series:
    """Whether an interval holds a column; numbers in files have six digits."""
    return (frame[of] >= frame[ends[0]] - 1e-6) & (frame[of] <= frame[ends[1]] + 1e-6)


def parts(grid: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """All draws, those of each c, and those of each group of n_P."""
    found = {"all": grid} | {f"c = {c:g}": grid.filter(pl.col("c") == c) for c in (0.05, 0.1, 0.3)}
    for name, (least, most) in GROUPS.items():
        found[f"n_P {name}"] = grid.filter(pl.col("n_labeled").is_between(least, most, closed="left"))
    few = (pl.col("c") <= 0.1) & (pl.col("pi") == 0.1)
    return found | {"c ≤ 0.1, π = 0.1": grid.filter(few)}


def groups(grid: pl.DataFrame) -> pl.DataFrame:
    """Errors, coverage and width of the default over the grid of cells."""
    return pl.DataFrame([
        {"draws": name, "n": len(part), "RMSE": str(rmse(error(part))), "bias": str(mean(error(part))),
         "coverage": str(share(covers(part))), "width": (part["high"] - part["low"]).mean(),
         "at most u holds": str(share(part["truth"] <= part["at_most"])), "u": part["at_most"].mean()}
        for name, part in parts(grid).items() if len(part)
    ])  # fmt: skip


def worst(grid: pl.DataFrame) -> pl.DataFrame:
    """The error of each data set, over all c and π, and where it is most."""
    rows = []
    for (name,), part in grid.group_by("dataset", maintain_order=True):
        of_cells = part.group_by("cell", maintain_order=True).agg((pl.col("prior") - pl.col("truth")).mean())
        far = of_cells.sort(pl.col("prior").abs(), descending=True).row(0)
        row = {"set": name, "RMSE": str(rmse(error(part))), "bias": str(mean(error(part)))}
        rows.append(row | {"largest mean error": f"{far[1]:+.2f} ({far[0].removeprefix(f'{name} ')})"})
    return pl.DataFrame(rows)


def fifty(draws: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The draws of the settings that have fifty seeds."""
    found = {str(cell): part for (cell,), part in draws.group_by("cell", maintain_order=True)}
    most = max((len(part) for part in found.values()), default=0)
    return {cell: part for cell, part in found.items() if len(part) == most and cell != SPEED}


def settings(draws: pl.DataFrame) -> pl.DataFrame:
    """Errors, coverage and widths on the named settings, with a bootstrap of the scores beside."""
    rows = []
    for cell, part in fifty(draws).items():
        told = {"setting": cell, "n_P": int(part["n_labeled"][0]), "seeds": len(part)}
        told |= {"RMSE": str(rmse(error(part))), "bias": error(part).mean()}
        for of, words in (("truth", ""), ("largest", ", of π*")):
            if of == "truth" or cell.startswith("reducible"):
                boot = share(covers(part, of, ("boot_low", "boot_high")))
                inside = {"coverage": str(share(covers(part, of))), "width": (part["high"] - part["low"]).mean()}
                inside |= {"truth above": (part[of] > part["high"]).mean()}
                rows.append(told | {"setting": cell + words} | inside | {"bootstrap of scores": str(boot)})
    return pl.DataFrame(rows)


def bootstraps(refits: pl.DataFrame) -> pl.DataFrame:
    """Bootstraps that fit again: where their mean lies."""
    words = {"grouped": "a drawn row is one row of a frequency", "copies": "copies, which folds tear apart"}
    return pl.DataFrame([
        {"bootstrap": words[str(name)], "draws": len(part),
         "mean minus estimate": str(mean(part["mean"] - part["prior"])),
         "its 95 % holds the truth": str(share(covers(part)))}
        for (name,), part in refits.group_by("method", maintain_order=True)
    ])  # fmt: skip


def many(grid: pl.DataFrame) -> pl.DataFrame:
    """The draws with at least sixty labeled rows."""
    return grid.filter(pl.col("n_labeled") >= 60)


def calibration(grid: pl.DataFrame) -> pl.DataFrame:
    """Errors of calibration: as the scores are, and after isotonic regression."""
    return pl.DataFrame([
        {"probability": f"{words}, {said} π", "ECE": str(mean(grid[column])),
         "ECE, n_P ≥ 60": str(mean(many(grid)[column]))}
        for name, words in (("raw", "raw odds"), ("isotonic", "isotonic"))
        for said in ("true", "estimated")
        for column in (f"ece_{name}_{said}",)
    ])  # fmt: skip


def thresholds(grid: pl.DataFrame) -> pl.DataFrame:
    """F1 that each rule loses against the best threshold."""
    rows = []
    for rule, words in RULES.items():
        given = [f"lost_{rule}_{said}" for said in ("true", "estimated", "1.3", "0.7")]
        true, estimated, high, low = (name if name in grid.columns else f"lost_{rule}" for name in given)
        of = {"true π": (grid, true), "estimated π": (grid, estimated), "estimated, n_P ≥ 60": (many(grid), estimated)}
        of |= {"13/10 of π": (grid, high), "7/10 of π": (grid, low)}
        rows.append({"rule": words} | {name: str(mean(frame[column])) for name, (frame, column) in of.items()})
    return pl.DataFrame(rows)


def seconds(draws: pl.DataFrame) -> pl.DataFrame:
    """CPU seconds of prior and interval."""
    told = {f"all draws of n_U up to {draws['n_unlabeled'].max():,}": draws}
    speed = draws.filter(pl.col("cell") == SPEED)
    told = {"n = 2,000, d = 57 (Spambase)": speed} | told if len(speed) else told
    return pl.DataFrame([
        {"rows": name, "n": len(part), "mean": part["cpu_seconds"].mean(), "most": part["cpu_seconds"].max()}
        for name, part in told.items()
    ])  # fmt: skip


def estimators(estimates: pl.DataFrame) -> pl.DataFrame:
    """Every estimator on the same draws."""
    rows = []
    for (name,), part in estimates.group_by("method", maintain_order=True):
        known = part.drop_nulls("prior")
        row: dict[str, Any] = {"estimator": name, "n": len(known), "failed": len(part) - len(known)}
        if len(known):
            row |= {"RMSE": str(rmse(error(known))), "bias": str(mean(error(known)))}
            row |= {f"RMSE, c {100 * c:.0f} %": rmse(error(known.filter(pl.col("c") == c))).value for c in _cs(known)}
        rows.append(row | {"CPU seconds": part["cpu_seconds"].mean()})
    return pl.DataFrame(rows, infer_schema_length=None).sort("RMSE", nulls_last=True)


def _cs(frame: pl.DataFrame) -> list[float]:
    return frame["c"].unique().sort().to_list()


def whole(models: pl.DataFrame) -> pl.DataFrame:
    """The draws without gaps."""
    return models.filter(~pl.col("cell").str.contains("with gaps", literal=True))


def gain(models: pl.DataFrame, method: str, over: str = NAIVE) -> Measured:
    """AUC of a method minus that of another on the same draws."""
    key, frames = ["cell", "seed"], []
    for name in (method, over):
        frames.append(models.filter(pl.col("method") == name).select(*key, pl.col("auc").alias(name)).drop_nulls())
    both = frames[0].join(frames[1], on=key) if method != over else frames[0].with_columns(pl.col(over))
    if both.is_empty():
        return Measured(math.nan, math.nan, math.nan)
    found = paired_difference(both[method].to_numpy(), both[over].to_numpy())
    return Measured(float(found.estimate), *map(float, found.interval))


def compared(models: pl.DataFrame) -> pl.DataFrame:
    """AUC on fresh rows of every model, the best first."""
    rows = []
    for (name,), part in models.group_by("method", maintain_order=True):
        full = whole(part).drop_nulls("auc")
        row: dict[str, Any] = {"model": name, "n": len(full), "failed": int(part["auc"].is_null().sum())}
        row |= {"AUC": str(mean(full["auc"])), "minus jaxpu fit": str(gain(whole(models), str(name), OURS))}
        row |= {f"c {100 * c:.0f} %": full.filter(pl.col("c") == c)["auc"].mean() for c in (0.05, 0.1, 0.3)}
        gaps = part.filter(pl.col("cell").str.contains("with gaps", literal=True)).drop_nulls("auc")
        rows.append(row | {"with gaps": str(mean(gaps["auc"])), "CPU seconds": part["cpu_seconds"].mean()})
    return pl.DataFrame(rows, infer_schema_length=None).sort("AUC", descending=True)


def by_set(models: pl.DataFrame) -> pl.DataFrame:
    """AUC of each model on each set."""
    named = models.with_columns(
        pl.when(pl.col("cell").str.contains("with gaps", literal=True))
        .then(pl.col("dataset") + ", gaps")
        .otherwise(pl.col("dataset"))
        .alias("set")
    )
    means = named.group_by("method", "set", maintain_order=True).agg(pl.col("auc").mean())
    return means.pivot("set", index="method", values="auc").rename({"method": "model"})


def failed(frames: Iterable[pl.DataFrame | None]) -> pl.DataFrame:
    """What fails, how often, and what it says."""
    there = [frame.filter(pl.col("error").cast(pl.String).is_not_null()) for frame in frames if frame is not None]
    columns = [pl.col("method"), pl.col("error").cast(pl.String)]
    found = pl.concat([frame.select(columns) for frame in there])
    if found.is_empty():
        return pl.DataFrame({"method": ["none"], "draws": [0], "what it says": ["–"]})
    counted = found.group_by("method", maintain_order=True).agg(pl.len(), pl.col("error").mode().first())
    return counted.rename({"len": "draws", "error": "what it says"})


class Wanted(NamedTuple):
    """A figure that was to be reached."""

    words: str
    limit: float
    measured: Measured
    most: bool = True

    def row(self) -> dict[str, str]:
        """As the page has it."""
        sign = -1.0 if self.most else 1.0
        if not math.isfinite(self.measured.value):
            verdict = "not measured"
        elif sign * self.measured.value < sign * self.limit:
            verdict = "missed"
        else:
            far = self.measured.high if self.most else self.measured.low
            beyond = math.isfinite(far) and sign * far < sign * self.limit
            verdict = "met; its interval reaches beyond" if beyond else "met"
        limit = f"{'≤' if self.most else '≥'} {self.limit:g}"
        return {"figure": self.words, "limit": limit, "measured": str(self.measured), "verdict": verdict}


def acceptance(draws: pl.DataFrame, refits: pl.DataFrame, models: pl.DataFrame) -> pl.DataFrame:
    """What was to be reached, and what was."""
    rows = [one.row() for part in (_priors(draws), _intervals(draws, refits), _uses(draws, models)) for one in part]
    tested = [
        {"figure": words, "limit": "a test", "measured": "; ".join(name.split("::")[1] for name in names),
         "verdict": "tested"}
        for words, names in TESTED.items()
    ]  # fmt: skip
    frame = pl.DataFrame([*rows, *tested])
    order = pl.col("figure").str.extract(r"^(\d+)").cast(pl.Int64)
    return frame.sort(order, maintain_order=True)


def _priors(draws: pl.DataFrame) -> list[Wanted]:
    grid = cells(draws)
    off, most = mean(error(grid)), rmse(error(grid))
    size = (0.0 if off.low <= 0 <= off.high else min(abs(off.low), abs(off.high)), max(abs(off.low), abs(off.high)))
    twenty = draws.filter(pl.col("seed") < 20)
    named = {cell: twenty.filter(pl.col("cell") == cell) for cell in NAMED}
    return [
        *(Wanted(f"2. RMSE, {cell}, 20 seeds", NAMED[cell], rmse(error(part))) for cell, part in named.items()),
        Wanted("3. RMSE, 63 cells, 3 seeds", 0.12, most),
        Wanted("3. Size of the bias", 0.03, Measured(abs(off.value), *size)),
        Wanted("3. RMSE at c = .3", 0.075, rmse(error(grid.filter(pl.col("c") == 0.3)))),
        Wanted(
            "13. CPU seconds, n = 2,000, d = 57",
            3.0,
            mean(draws.filter(pl.col("cell") == SPEED)["cpu_seconds"]),
        ),
    ]


def _intervals(draws: pl.DataFrame, refits: pl.DataFrame) -> list[Wanted]:
    plain = {cell: share(covers(part)) for cell, part in fifty(draws).items() if not cell.startswith("reducible")}
    lowest = min(plain, key=lambda cell: plain[cell].value)
    spambase = draws.filter(pl.col("cell") == SPAMBASE)
    reducible = draws.filter(pl.col("dataset") == "reducible")
    grouped = refits.filter(pl.col("method") == "grouped")
    return [
        Wanted(f"4. Coverage, the lowest of the settings ({lowest})", 0.9, plain[lowest], most=False),
        Wanted("4. Width, Spambase", 0.36, mean(spambase["high"] - spambase["low"])),
        Wanted("5. Coverage of π*, reducible", 0.9, share(covers(reducible, "largest")), most=False),
        Wanted(
            "6. Grouped bootstrap: distance of its mean from the estimate",
            0.05,
            mean((grouped["mean"] - grouped["prior"]).abs()),
        ),
    ]


def _uses(draws: pl.DataFrame, models: pl.DataFrame) -> list[Wanted]:
    grid, full = cells(draws), whole(models)
    mine = models.filter(pl.col("method") == OURS)
    gaps = mine.filter(pl.col("cell").str.contains("with gaps", literal=True))
    return [
        Wanted("7. ECE, isotonic, true π", 0.06, mean(grid["ece_isotonic_true"])),
        Wanted("7. ECE, isotonic, estimated π", 0.11, mean(grid["ece_isotonic_estimated"])),
        Wanted("8. F1 lost: quantile, true π", 0.025, mean(grid["lost_quantile_true"])),
        Wanted("8. F1 lost: PU-F1, estimated π", 0.05, mean(grid["lost_pu_f1_estimated"])),
        Wanted("8. F1 lost: PU-F1, estimated π, n_P ≥ 60", 0.025, mean(many(grid)["lost_pu_f1_estimated"])),
        Wanted("9. AUC on fresh rows", 0.885, mean(whole(mine)["auc"]), most=False),
        Wanted("9. AUC minus that of naive boosting", 0.015, gain(full, OURS), most=False),
        Wanted("9. AUC with 20 % gaps", 0.89, mean(gaps["auc"]), most=False),
    ]


# Figures


def figures(results: Results) -> list[Figure]:
    """Of what has been measured."""
    draws, models = read(results, "draws"), read(results, "models")
    found = []
    if draws is not None:
        note = "Every dot is a draw of one of 63 cells; colour tells the share of positives among the unlabeled rows."
        found.append(Figure("errors", "prior", functools.partial(errors, cells(draws)), note))
        note = "Dots are shares of the seeds of a setting, bars Wilson's 95 %; the line is at 95 %."
        found.append(Figure("coverage", "interval", functools.partial(coverage, draws), note))
    if models is not None:
        note = "Means over draws and their bootstrap's 95 %; a line of dots a model."
        found.append(Figure("models", "models", functools.partial(gains, models), note))
    return found


def errors(grid: pl.DataFrame) -> Canvas:
    """Draw the error of the estimate over the number of labeled rows."""
    with look():
        canvas = Canvas(figsize=(WIDTH, 3.4))
        axis, lines = canvas.subplots(), {}
        for pi, colour in zip((0.1, 0.37, 0.6), (BLUE, GREEN, RED), strict=True):
            mine = grid.filter(pl.col("pi") == pi)
            lines[f"π = {pi:g}"] = axis.scatter(mine["n_labeled"], error(mine), s=16, color=colour, alpha=0.7)
        axis.axhline(0, color=QUIET, linewidth=0.8)
        axis.set(xscale="log", xlabel="labeled rows", ylabel="estimate minus truth")
        told = [f"{rmse(error(part)).value:.2f}" for name, part in parts(grid).items() if name.startswith("n_P")]
        headline(canvas, f"RMSE {', '.join(told)} with fewer than 20, up to 59, and more labeled rows", lines)
    return canvas


def coverage(draws: pl.DataFrame) -> Canvas:
    """Draw the coverage of our interval and of a bootstrap of the scores."""
    settings_, lines = fifty(draws), {}
    ways = {"jaxpu": (BLUE, ("low", "high"), -0.12), "bootstrap of scores": (RED, ("boot_low", "boot_high"), 0.12)}
    with look():
        canvas = Canvas(figsize=(WIDTH, 0.8 + 0.42 * len(settings_)))
        axis = canvas.subplots()
        for name, (colour, ends, shift) in ways.items():
            found = [share(covers(part, ends=ends)) for part in settings_.values()]
            lines[name] = _bars(axis, found, shift, colour)
        axis.axvline(0.95, color=QUIET, linewidth=0.8, linestyle=":")
        axis.set_yticks(range(len(settings_)), list(settings_))
        axis.invert_yaxis()
        axis.set(xlabel="share of draws whose interval holds the truth")
        least = min(share(covers(part)).value for part in settings_.values())
        headline(
            canvas, f"The interval holds the truth in at least {100 * least:.0f} % of the draws of each setting", lines
        )
    return canvas


def gains(models: pl.DataFrame) -> Canvas:
    """Draw the AUC of each model minus that of naive boosting."""
    names = [n for n in models["method"].unique(maintain_order=True) if n not in (NAIVE, "oracle boosting")]
    parts_: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str, float]] = {
        "six sets": (whole, INK, -0.1),
        "Spambase with gaps": (lambda f: f.filter(pl.col("cell").str.contains("with gaps", literal=True)), RED, 0.1),
    }
    with look():
        canvas, lines = Canvas(figsize=(WIDTH, 0.9 + 0.45 * len(names))), {}
        axis = canvas.subplots()
        for name, (kept, colour, shift) in parts_.items():
            lines[name] = _bars(axis, [gain(kept(models), n) for n in names], shift, colour)
        axis.axvline(0, color=QUIET, linewidth=0.8)
        axis.set_yticks(range(len(names)), names)
        axis.invert_yaxis()
        axis.set(xlabel="AUC on fresh rows minus that of naive boosting")
        mine = gain(whole(models), OURS)
        headline(canvas, f"jaxpu.fit gains {mine.value:+.3f} of AUC over naive boosting", lines)
    return canvas


def _bars(axis: Any, found: list[Measured], shift: float, colour: str) -> Any:
    at = np.arange(len(found)) + shift
    value, low, high = (np.array(column) for column in zip(*found, strict=True))
    axis.hlines(at, low, high, color=colour, linewidth=1.4)
    return axis.scatter(value, at, s=22, color=colour, zorder=3)
