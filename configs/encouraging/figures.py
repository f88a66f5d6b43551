"""How large an example's gradient is: by its loss and the probability of its label, and over training.

``scripts/reproduce.py`` calls ``figures``.
"""

import functools
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from well_classified import BINS, QUANTILES, Course, course

from jaxpu.config import expand, parse
from jaxpu.losses import gradient_size
from jaxpu.plots import Figure
from jaxpu.plots.style import BLUE, GREEN, INK, PURPLE, QUIET, RED, WIDTH, headline, look
from jaxpu.report.study import Results

COLOURS = {"cross_entropy": INK, "mse": QUIET, "mae_mse": GREEN, "bonus": RED, "encouraging": BLUE, "focal": PURPLE}
WELL = 0.9
"""A row whose label has at least this probability counts as well classified."""

LOOKED_AT, LR, SEEDS = "encouraging_digits_classes", 0.001, 8
"""The experiment, the learning rate and the number of seeds that are trained once more, with probes."""

NAMES = {"encouraging_75": "encouraging"}
"""Methods of the experiments whose loss has another name in ``COLOURS``."""


def figures(results: Results) -> list[Figure]:
    """Of the losses themselves, and of what was seen over training."""
    found = [Figure("gradient_sizes", "mechanism", gradient_sizes, "From the closed forms, with the losses' defaults.")]
    if LOOKED_AT not in results.done:
        return found
    seen = functools.cache(lambda: courses(results))
    note = f"Ten digits at a learning rate of {LR:g}, {SEEDS} seeds; "
    return found + [
        Figure("pull_over_training", "training", lambda: pull_over_training(seen()), note + "bands are quartiles."),
        Figure("gradient_norms", "training", lambda: gradient_norms(seen()), note + "medians over the seeds."),
        Figure("margins", "training", lambda: margins(seen()), note + "thick: the middle half, thin: the middle 90 %."),
    ]


def courses(results: Results) -> dict[str, Course]:
    """Train the supervised cells of an experiment at one learning rate again, and look at every epoch."""
    cells = expand(parse(results.config(LOOKED_AT), where=LOOKED_AT))
    chosen = {NAMES.get(cell.method_name, cell.method_name): cell for cell in cells if cell.training.lr == LR}
    return {name: course(chosen[name], SEEDS) for name in COLOURS if name in chosen}


def gradient_sizes() -> Canvas:
    """Draw the size s(p) of the gradient of each loss against the probability p of the label, whole and near 1."""
    p = jnp.linspace(0.0, 1.0, 401)
    with look():
        figure = Canvas(figsize=(WIDTH, 2.9))
        whole, near_one = figure.subplots(1, 2)
        for name, colour in COLOURS.items():
            size = gradient_size(name, p)
            whole.plot(p, size, color=colour, label=name)
            near_one.plot(1 - p[:-1], size[:-1], color=colour)
        whole.set(xlabel="p of the label", ylabel="s, size of the gradient", ylim=(-0.02, 1.3))
        near_one.set(xlabel="1 - p", xscale="log", yscale="log", ylim=(1e-3, 2), title="near p = 1, both logarithmic")
        near_one.invert_xaxis()
        handles, names = whole.get_legend_handles_labels()
        statement = (
            "Only the bonus pulls as hard at p = 1 as anywhere; the encouraging loss falls like the cross-entropy"
        )
        headline(figure, statement, dict(zip(names, handles, strict=True)))
    return figure


def pull_over_training(courses: Mapping[str, Course]) -> Canvas:
    """Draw over the epochs how many rows are well classified, their share of the pull, and the median margin.

    Args:
        courses: what was seen of each loss; the names of ``COLOURS``. Lines are medians over the seeds, bands their
            quartiles.
    """
    with look():
        figure = Canvas(figsize=(WIDTH, 2.9))
        share, pull, margin = figure.subplots(1, 3)
        for name, seen in courses.items():
            _band(share, _well(seen.rows), name)
            _band(pull, _well(seen.pull), name)
            _band(margin, seen.margins[:, :, QUANTILES.index(0.5)], name)
        share.set(title=f"share of rows with p ≥ {WELL:g}", xlabel="epoch", ylim=(0, 1))
        pull.set(title="their share of the pull", xlabel="epoch", ylim=(0, 1))
        margin.set(title="median margin", xlabel="epoch")
        handles, names = share.get_legend_handles_labels()
        headline(figure, _statement(courses), dict(zip(names, handles, strict=True)))
    return figure


def gradient_norms(courses: Mapping[str, Course]) -> Canvas:
    """Draw the norm of a row's gradient in all parameters against the probability of its label, halfway and at the end.

    Args:
        courses: what was seen of each loss; the names of ``COLOURS``. Lines are medians over the seeds of the means in
            ten bins of p; a bin that is empty in most seeds is left out.
    """
    middles = (np.arange(BINS) + 0.5) / BINS
    epochs = next(iter(courses.values())).norms.shape[1]
    with look():
        figure = Canvas(figsize=(WIDTH, 2.9))
        halfway, end = figure.subplots(1, 2, sharey=True)
        for axis, epoch in ((halfway, max(epochs // 2, 1)), (end, epochs)):
            for name, seen in courses.items():
                norms = _median_of_known(seen.norms[:, epoch - 1])
                axis.plot(middles, norms, color=COLOURS[name], label=name, marker=".")
            axis.set(title=f"after epoch {epoch}", xlabel="p of the label", xlim=(0, 1), yscale="log")
        halfway.set(ylabel="norm of a row's gradient")
        handles, names = halfway.get_legend_handles_labels()
        headline(figure, _norm_statement(courses), dict(zip(names, handles, strict=True)))
    return figure


def _median_of_known(values: np.ndarray) -> np.ndarray:
    """Median over the seeds, NaN where most know nothing."""
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    medians = [
        np.median(column[ok]) if ok.mean() > 0.5 else np.nan for column, ok in zip(filled.T, known.T, strict=True)
    ]
    return np.array(medians)


def _norm_statement(courses: Mapping[str, Course]) -> str:
    ratios = []
    for name in ("cross_entropy", "encouraging"):
        norms = _median_of_known(courses[name].norms[:, -1])
        ratios.append(f"{norms[-1] / norms[BINS // 2]:.2f} for the {name.replace('_', '-')}")
    return f"In the end the gradient at p > 0.9, as a share of that at p near 0.55: {' and '.join(ratios)} loss"


def margins(courses: Mapping[str, Course]) -> Canvas:
    """Draw the margins of the training rows after the last epoch: their median, middle half and middle 90 %.

    Args:
        courses: what was seen of each loss; the names of ``COLOURS``. The quantiles are medians over the seeds.
    """
    with look():
        figure = Canvas(figsize=(WIDTH, 0.9 + 0.32 * len(courses)))
        axis = figure.subplots()
        for place, (name, seen) in enumerate(courses.items()):
            least, low, middle, high, most = np.median(seen.margins[:, -1], axis=0)
            axis.plot([least, most], [place, place], color=COLOURS[name], linewidth=1.2)
            axis.plot([low, high], [place, place], color=COLOURS[name], linewidth=5, solid_capstyle="butt")
            axis.plot(middle, place, marker="|", color="white", markersize=7)
        axis.axvline(0, color=QUIET, linewidth=0.8)
        axis.set(
            yticks=range(len(courses)),
            yticklabels=list(courses),
            xlabel="margin, log odds of the label",
            xscale="symlog",
        )
        reach = np.abs(axis.get_xlim()).max()
        ticks = [tick for tick in (-100, -10, -3, -1, 0, 1, 3, 10, 100) if abs(tick) <= reach]
        axis.set_xticks(ticks, [f"{tick}" for tick in ticks])
        axis.set_xticks([], minor=True)
        axis.invert_yaxis()
        headline(figure, _margin_statement(courses), {})
    return figure


def _margin_statement(courses: Mapping[str, Course]) -> str:
    low, middle = ({n: np.median(seen.margins[:, -1, q]) for n, seen in courses.items()} for q in (0, 2))
    most, least = max(middle, key=lambda n: middle[n]), min(low, key=lambda n: low[n])
    said = f"The largest margins are those of {most}, {middle[most]:.1f} in the median"
    return f"{said}; the lowest twentieth is deepest with {least}, below {low[least]:.1f}".replace("_", "-")


def _well(shares: np.ndarray) -> np.ndarray:
    """(seeds, epochs): the share in the bins above ``WELL``."""
    return shares[:, :, round(WELL * BINS) :].sum(axis=-1)


def _statement(courses: Mapping[str, Course]) -> str:
    said = []
    for name in ("cross_entropy", "encouraging"):
        rows, pull = (np.median(_well(shares)[:, -1]) for shares in (courses[name].rows, courses[name].pull))
        said.append(f"{100 * pull:.0f} % of the pull of {name.replace('_', '-')} from {100 * rows:.0f} % of its rows")
    return f"Well classified rows at the end of training: {', '.join(said)}"


def _band(axis: Axes, values: np.ndarray, name: str) -> None:
    epochs = np.arange(1, values.shape[1] + 1)
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
    axis.plot(epochs, middle, color=COLOURS[name], label=name, linewidth=1.4)
    axis.fill_between(epochs, low, high, color=COLOURS[name], alpha=0.15, linewidth=0)
