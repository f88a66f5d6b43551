"""How large rows' gradients are over training: against the closed forms, and the figures made of it."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import LINEAR, first_cell, tiny

from jaxpu import losses, train
from jaxpu.train import job

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import reproduce

figures = reproduce.own_figures(ROOT / "configs" / "encouraging")
BINS, QUANTILES, course = figures.BINS, figures.QUANTILES, figures.course

pytestmark = pytest.mark.slow

METHODS = {
    "cross_entropy": {"preset": "pn"},
    "encouraging": {"preset": "pn", "surrogate": "encouraging", "log_end": 0.6},
    "focal": {"preset": "pn", "surrogate": "focal", "focus": 1.0},
}
OPTIONS = {"cross_entropy": {}, "encouraging": {"log_end": 0.6}, "focal": {"gamma": 1.0}}


@pytest.fixture(scope="module")
def courses():
    cells = {name: first_cell(tiny(methods=[method], **LINEAR)) for name, method in METHODS.items()}
    return cells, {name: course(cell, 2) for name, cell in cells.items()}


def test_shares_and_margins_are_those_of_the_closed_forms(courses):
    cells, seen = courses
    for name, cell in cells.items():
        for seed in range(2):
            key, data, static, hyper = job.inputs(cell, seed)
            params = jax.jit(train.train, static_argnums=2)(key, data, static, hyper).state.params
            x = (np.asarray(data.x, float) - np.asarray(data.mean)) / np.asarray(data.sd)
            z = (x @ np.asarray(params["head"]["kernel"], float)[:, 0] + float(params["head"]["bias"][0]))[data.train]
            margin = np.where(np.asarray(data.y)[data.train] == 1, z, -z)
            p = 1 / (1 + np.exp(-margin))
            pull = np.asarray(losses.gradient_size(name, jnp.asarray(p, jnp.float32), **OPTIONS[name]), float)
            bins = np.minimum((p * BINS).astype(int), BINS - 1)
            for recorded, weight in ((seen[name].rows, np.ones_like(p)), (seen[name].pull, pull)):
                expected = np.bincount(bins, weight, BINS) / weight.sum()
                np.testing.assert_allclose(recorded[seed, -1], expected, atol=2e-4)
            size = pull * np.sqrt(1 + (x[np.asarray(data.train)] ** 2).sum(axis=1))  # of a linear model: s |(x, 1)|
            with np.errstate(invalid="ignore"):
                norms = np.bincount(bins, size, BINS) / np.bincount(bins, minlength=BINS)
            np.testing.assert_allclose(seen[name].norms[seed, -1], norms, rtol=2e-3)
            np.testing.assert_allclose(seen[name].margins[seed, -1], np.quantile(margin, QUANTILES), rtol=1e-3)


def test_the_encouraging_loss_leaves_more_of_the_pull_to_well_classified_rows(courses):
    _, seen = courses
    last = {name: seen[name].pull[:, -1, -1].mean() for name in seen}
    assert last["encouraging"] > 1.2 * last["cross_entropy"] > 1.2 * last["focal"]


def test_the_figure_says_what_it_shows(courses):
    _, seen = courses
    figure = figures.pull_over_training(seen)
    share = 100 * np.median(seen["encouraging"].pull[:, -1, -1:].sum(axis=-1))
    assert f"{share:.0f} % of the pull of encouraging" in figure.get_suptitle()
    assert len(figure.axes[1].lines) == len(METHODS)


def test_the_other_figures_say_what_they_show(courses):
    _, seen = courses
    norms = figures.gradient_norms(seen)
    late = dict(zip(seen, norms.axes[1].lines, strict=True))
    for name, line in late.items():
        np.testing.assert_allclose(line.get_ydata()[-1], np.median(seen[name].norms[:, -1, -1]), rtol=1e-6)
    drawn = figures.margins(seen).axes[0]
    assert [label.get_text() for label in drawn.get_yticklabels()] == list(seen)
    least, most = drawn.lines[0].get_xdata()
    assert (least, most) == tuple(np.median(seen["cross_entropy"].margins[:, -1], axis=0)[[0, -1]])
