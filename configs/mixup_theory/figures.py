"""What mixup does, drawn: the order of the remainder, errors over time, features over steps, gradients over epochs.

``scripts/reproduce.py`` calls ``figures``.
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from jaxpu.plots import Figure
from jaxpu.plots.style import BLUE, GREEN, INK, PURPLE, QUIET, RED, WIDTH, headline, look
from jaxpu.report.study import Results

FLOWS = {"mixup": RED, "clean": PURPLE, "plain": INK, "switched": BLUE}
SCHEDULES = {"plain": INK, "mixup": RED, "early_stop": BLUE, "easy": GREEN, "hard": PURPLE}
METHODS = {"pn": INK, "pn_mixup": RED, "pn_regmixup": BLUE}
CASES = {
    "500 mixed rows, target outside": (pl.col("options.m") == 500)
    & ~pl.col("options.within")
    & (pl.col("options.label_noise") == 0),
    "100 mixed rows, target outside": pl.col("options.m") == 100,
    "target within the features": pl.col("options.within"),
    "noisy labels": pl.col("options.label_noise") > 0,
}
GRADIENTS = {
    "gradient_norm": "GradNorm, clean loss",
    "gradient_noise": "Noise, clean loss",
    "mixup_gradient_norm": "GradNorm, mixup's loss",
    "mixup_gradient_noise": "Noise, mixup's loss",
}


def figures(results: Results) -> list[Figure]:
    """Of every experiment that is there."""
    drawn = {
        "mixup_expansion": ("order", expansion, "Medians over seeds, with their middle half."),
        "mixup_regression": ("flows", regression, "Medians over seeds, with their middle half."),
        "rare_features": ("features", features, "Medians over seeds, with the range from the least to the largest."),
        "mixup_gradients": ("gradients", gradients, "Medians over seeds, with their range; measured every 20 epochs."),
        "mixup_gradients_fashion": ("gradients_fashion", gradients, "Medians over seeds, with their range."),
    }
    return [
        Figure(name, experiment, functools.partial(_of, results, experiment, draw), note)
        for experiment, (name, draw, note) in drawn.items()
        if experiment in results.done
    ]


def _of(results: Results, experiment: str, draw: Any) -> Canvas:
    return draw(results.frame(experiment, "runs").collect())


def _way(runs: pl.DataFrame, name: str) -> np.ndarray:
    """(seeds, points): a path of every run."""
    return np.array(runs[f"path_{name}"].to_list(), float)


def _line(
    axis: Axes, x: np.ndarray, values: np.ndarray, colour: str, style: str = "-", quantiles: Any = (0.25, 0.75)
) -> Any:
    low, high = np.quantile(values, quantiles, axis=0)
    axis.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    return axis.plot(x, np.median(values, axis=0), style, color=colour, linewidth=1.8)[0]


def expansion(runs: pl.DataFrame) -> Canvas:
    """Draw what the expansion leaves over against the size of the data, with and without the second-order terms."""
    mine = runs.filter(pl.col("options.classes") == 1, pl.col("options.alpha") == 1)
    scale = _way(mine, "scale")[0]
    with look():
        canvas = Canvas(figsize=(WIDTH, 3.2))
        axis = canvas.subplots()
        lines = {
            "without R₂ and R₃": _line(axis, scale, _way(mine, "beyond_first"), RED),
            "with all three": _line(axis, scale, _way(mine, "remainder"), BLUE),
        }
        axis.set(xscale="log", yscale="log", xlabel="size of the data", ylabel="|remainder|")
        orders = [mine[name].median() for name in ("order_two", "order_three")]
        said = (
            f"The remainder is of order {orders[0]:.2f} with R₁ alone and of order {orders[1]:.2f} with all three terms"
        )
        headline(canvas, said, lines)
    return canvas


def regression(runs: pl.DataFrame) -> Canvas:
    """Draw test errors of the flows over time, and the error of who switches then, a panel a case."""
    with look():
        canvas, lines = Canvas(figsize=(WIDTH, 5.2)), {}
        for axis, (title, which) in zip(canvas.subplots(2, 2).flat, CASES.items(), strict=True):
            mine = runs.filter(which)
            time = np.maximum(_way(mine, "time")[0], 0.5)
            for name, colour in FLOWS.items():
                lines[name] = _line(axis, time, _way(mine, name), colour, "--" if name == "switched" else "-")
            top = np.median(_way(mine, "mixup").max(axis=1))
            axis.set(title=title, xscale="log", xlabel="time", ylim=(0, min(1.2 * top, 3)))
        rise = runs.filter(CASES["500 mixed rows, target outside"])["mixup_rise"].median()
        statement = f"With mixup the test error falls and rises again, to {rise:.2f} times its least (500 mixed rows)"
        headline(canvas, statement, lines)
    return canvas


def features(runs: pl.DataFrame) -> Canvas:
    """Draw how well the common and the rare feature are known over the steps, by schedule, guided ones dashed."""
    with look():
        canvas, lines = Canvas(figsize=(WIDTH, 3.4)), {}
        common, rare = canvas.subplots(1, 2)
        for (schedule, guide), mine in runs.group_by("options.schedule", "options.guide", maintain_order=True):
            style = {"none": "-", "train": "--", "all": ":"}[str(guide)]
            step = _way(mine, "step")[0]
            for axis, name in ((common, "common_way"), (rare, "rare_way")):
                line = _line(axis, step, _way(mine, name), SCHEDULES[str(schedule)], style, (0, 1))
            lines[f"{schedule}" + ("" if guide == "none" else f", guide: {guide}")] = line
        common.set(title="common feature, Σ ⟨w, v⟩²", xlabel="step")
        rare.set(title="rare feature, Σ ⟨w, v'⟩²", xlabel="step")
        ends = {
            str(s): runs.filter(pl.col("options.schedule") == s, pl.col("options.guide") == "none") for s in SCHEDULES
        }
        said = ", ".join(
            f"{s.replace('_', ' ')} {ends[s]['rare'].median():.2f}" for s in ("plain", "mixup", "early_stop")
        )
        headline(canvas, f"How well the rare feature is known at the end: {said}", lines)
    return canvas


def gradients(runs: pl.DataFrame) -> Canvas:
    """Draw gradient norms and noise over the epochs, a line a method; along a cosine dashed."""
    with look():
        canvas, lines = Canvas(figsize=(WIDTH, 5.0)), {}
        for axis, (probe, title) in zip(canvas.subplots(2, 2).flat, GRADIENTS.items(), strict=True):
            for name, mine, style in _kinds(runs):
                epochs, values = _looked(mine, f"probe_{probe}")
                lines[name] = _line(axis, epochs, values, METHODS[str(mine["method"][0])], style, (0, 1))
            axis.set(title=title, xlabel="epoch")
            axis.axhline(0, color=QUIET, linewidth=0.8, linestyle=":")
        ends = {name: np.median(_looked(mine, "probe_gradient_norm")[1][:, -1]) for name, mine, _ in _kinds(runs)}
        plain = [name for name in ends if name.split(", ")[0] in ("pn", "pn_mixup") and "cosine" not in name]
        said = ", ".join(f"{name} {ends[name]:.3f}" for name in plain)
        headline(canvas, f"GradNorm of the clean loss at the end: {said}", lines)
    return canvas


def _kinds(runs: pl.DataFrame) -> list[tuple[str, pl.DataFrame, str]]:
    """Methods without the penalty, by schedule of the learning rate where it is swept."""
    if "training.schedule" not in runs.columns:
        return [(str(name), mine, "-") for (name,), mine in runs.group_by("method", maintain_order=True)]
    plain = runs.filter(pl.col("training.directional_penalty") == 0)
    return [
        (f"{name}, {schedule}", mine, "-" if schedule == "constant" else "--")
        for (name, schedule), mine in plain.group_by("method", "training.schedule", maintain_order=True)
    ]


def _looked(runs: pl.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    """The epochs in which a probe was measured, and (seeds, epochs) values."""
    known = runs.filter(pl.col(column).is_finite())
    wide = known.pivot("epoch", index="seed", values=column)
    epochs: Mapping[str, Any] = {name: int(name) for name in wide.columns if name != "seed"}
    order = sorted(epochs, key=lambda name: epochs[name])
    return np.array([epochs[name] for name in order]), wide.select(order).to_numpy()
