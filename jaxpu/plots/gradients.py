"""How much an example pulls: by its loss and the probability of its label, and over training."""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxpu.losses import gradient_size
from jaxpu.plots.style import BLUE, GREEN, INK, PURPLE, QUIET, RED, STYLE, WIDTH, headline
from jaxpu.study.well_classified import BINS, QUANTILES, Course

COLOURS = {"cross_entropy": INK, "mse": QUIET, "mae_mse": GREEN, "bonus": RED, "encouraging": BLUE, "focal": PURPLE}
WELL = 0.9
"""A row whose label has at least this probability counts as well classified."""


def gradient_sizes() -> Figure:
    """Draw the size s(p) of the gradient of each loss against the probability p of the label, whole and near 1.

    >>> gradient_sizes().get_suptitle()[:44]
    'Only the bonus pulls as hard at p = 1 as any'
    """
    p = jnp.linspace(0.0, 1.0, 401)
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 2.9))
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


def pull_over_training(courses: Mapping[str, Course]) -> Figure:
    """Draw over the epochs how many rows are well classified, their share of the pull, and the median margin.

    Args:
        courses: what was seen of each loss; the names of ``COLOURS``. Lines are medians over the seeds, bands their
            quartiles.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 2.9))
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
