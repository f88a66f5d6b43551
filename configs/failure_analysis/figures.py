"""Loss geometry and the mean field, drawn; and where the mean field rests beside where networks end.

``scripts/reproduce.py`` calls ``figures`` and ``tables``.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from matplotlib.figure import Figure as Canvas

from jaxpu import data, mixup, theory
from jaxpu.config import expand, parse
from jaxpu.methods import METHODS, Method
from jaxpu.plots import Figure
from jaxpu.plots.style import BLUE, GREEN, INK, PURPLE, QUIET, RED, WIDTH, headline, look
from jaxpu.report.study import Results

TARGETS = {0.01: RED, 0.1: PURPLE, 0.5: BLUE, 0.9: GREEN}
TARGETS_CAPTION = (
    "Mean target, p of the labelled positives and of the test rows by epoch, soft label, seeds of softlabel_rate."
)
NOTE = "From the code that training runs, not from runs."


def figures(results: Results) -> list[Figure]:
    """The figures of the section on geometry and mean field, and the targets of softlabel_rate over the epochs."""
    drawn = (penalty_slopes, fixed_point_curves, mean_field_paths, learning_rates)
    found = [
        Figure(draw.__name__, "mean_field", draw, f"{(draw.__doc__ or '').splitlines()[0]} {NOTE}") for draw in drawn
    ]
    if "softlabel_rate" in results.done:
        runs = results.frame("softlabel_rate", "runs").filter(pl.col("method") == "vpudra_softlabel").collect()
        if not runs.is_empty():  # the rows of every epoch may have been left out of the folder
            found.append(Figure("targets", "h3_feedback", lambda: targets(runs), TARGETS_CAPTION))
    return found


def tables(results: Results) -> dict[str, pl.DataFrame]:
    """Where networks end, against the fixed point of their mean field, over the grid of h1_anchor."""
    if "h1_anchor" not in results.done:
        return {}
    selected = results.frame("h1_anchor", "selected").filter(pl.col("selection") == "last").collect()
    point = ["method.anchor", "data.prior_scale"]
    ends = selected.group_by(point, maintain_order=True).agg(pl.col("test_score_mean").mean(), pl.col("f1").median())
    experiment = parse(results.config("h1_anchor"), where="h1_anchor")
    cells = [cell for cell in expand(experiment) if cell.method.anchor in (0.0, 1.0)]
    priors = [float(data.prepare(cell.data, data.load(cell.data), experiment.first_seed).prior) for cell in cells]
    fixed = _fixed([cell.method for cell in cells], priors, cells[0].training.alpha)
    rows = pl.DataFrame(
        {
            "method.anchor": [cell.method.anchor for cell in cells],
            "data.prior_scale": [cell.data.prior_scale for cell in cells],
            "mean field p": fixed,
        }
    )
    found = rows.join(ends, on=point, how="left", maintain_order="left")
    names = {"method.anchor": "anchor", "data.prior_scale": "given prior / true"}
    return {"mean_field": found.rename(names | {"test_score_mean": "mean p of networks", "f1": "median F1"})}


def targets(runs: pl.DataFrame) -> Canvas:
    """Draw target and scores of every epoch that half of the runs have: the median over runs and their middle 80 %."""
    lines = {
        "train_p_labeled": ("p of labelled positives", GREEN),
        "train_target": ("target μ", RED),
        "test_score_mean": ("p of test rows", BLUE),
    }
    there = runs.group_by("epoch").len().filter(pl.col("len") * 2 >= runs["run_id"].n_unique())
    rows = runs.join(there, on="epoch", how="semi")
    with look():
        figure = Canvas(figsize=(WIDTH, 2.6))
        axis = figure.subplots()
        for column, (name, colour) in lines.items():
            spread = {q: pl.col(column).cast(pl.Float64).quantile(q).alias(f"{q}") for q in (0.1, 0.5, 0.9)}
            by_epoch = rows.group_by("epoch").agg(*spread.values()).sort("epoch")
            axis.fill_between(by_epoch["epoch"], by_epoch["0.1"], by_epoch["0.9"], color=colour, alpha=0.2, linewidth=0)
            axis.plot(by_epoch["epoch"], by_epoch["0.5"], color=colour, label=name)
        axis.set(xlabel="epoch", ylabel="mean over rows", ylim=(0, 1))
        axis.legend(loc="upper left", fontsize=8)
        headline(figure, "A loop would take the target down with the scores: the two over training")
    return figure


def penalty_slopes() -> Canvas:
    """Draw the gradient dL/dz of both penalties against p, for four targets μ."""
    p = np.linspace(0.002, 0.998, 400)
    with look():
        figure = Canvas(figsize=(WIDTH, 2.9))
        panels = figure.subplots(1, 2)
        for axis, name in zip(panels, mixup.PENALTIES, strict=True):
            for mu, colour in TARGETS.items():
                slope = theory.penalty_shape(name, jnp.asarray(p), jnp.full(p.size, mu)).slope
                axis.plot(p, slope, color=colour, label=f"μ = {mu:g}")
                axis.plot([mu], [0], "o", color=colour, markersize=4)
            axis.axhline(0, color=QUIET, linewidth=0.8)
            axis.set(xlabel="p", ylabel="dL/dz (above 0: p goes down)", title=name.replace("_", " "))
            axis.set_ylim(-3.2, 9.5) if name == "log_mse" else axis.set_ylim(-0.55, 0.3)
        handles, names = panels[0].get_legend_handles_labels()
        statement = "Both penalties are least at p = μ and push down only above it; at a tiny μ log-MSE pushes hardest"
        headline(figure, statement, dict(zip(names, handles, strict=True)))
    return figure


def fixed_point_curves(prior: float = 0.4, alpha: float = 0.3) -> Canvas:
    """Draw the fixed point of the mean field against the anchor, the floor of the target, and the given prior."""
    # as many points each, so that one program serves all curves
    anchors, floors, priors = np.linspace(0, 1, 20), np.linspace(0, 0.95, 20), np.linspace(0.05, 0.95, 20)
    soft = METHODS["vpudra_softlabel"]
    with look():
        figure = Canvas(figsize=(WIDTH, 2.9))
        by_anchor, by_floor, by_prior = figure.subplots(1, 3)
        for penalty, colour in (("point_process", BLUE), ("log_mse", RED)):
            base = dataclasses.replace(soft, penalty=penalty)
            anchored = [dataclasses.replace(base, anchor=float(a)) for a in anchors]
            floored = [dataclasses.replace(base, floor=float(f)) for f in floors]
            by_anchor.plot(
                anchors, _fixed(anchored, [prior] * 20, alpha), color=colour, label=penalty.replace("_", " ")
            )
            by_floor.plot(floors, _fixed(floored, [prior] * 20, alpha), color=colour)
        for anchor, style in ((0.0, "-"), (1.0, "--")):
            method = dataclasses.replace(soft, anchor=anchor)
            by_prior.plot(
                priors, _fixed([method] * 20, priors.tolist(), alpha), style, color=BLUE, label=f"anchor {anchor:g}"
            )
        for axis, name in ((by_anchor, "anchor a"), (by_floor, "floor of the target")):
            axis.axhline(prior, color=QUIET, linewidth=0.8, linestyle=":")
            axis.set(xlabel=name, ylim=(0, 1))
        by_anchor.set_ylabel("fixed point of p")
        by_anchor.legend(loc="lower right", fontsize=8)
        by_prior.legend(loc="lower right", fontsize=8)
        by_prior.set(xlabel="given prior π", ylim=(0, 1))
        statement = (
            "The soft label leaves the fixed point at p = π; an anchor and a floor both lift it, as a larger π would"
        )
        headline(figure, statement)
    return figure


def mean_field_paths(prior: float = 0.4, alpha: float = 0.3, steps: int = 400, lr: float = 0.5) -> Canvas:
    """Draw p over the steps of the mean field from four starts, for four members of the family."""
    members = {
        "soft label, point process": METHODS["vpudra_softlabel"],
        "anchor, point process": METHODS["vpudra_pp"],
        "variational risk, anchor": METHODS["vpu"],
        "variational risk, soft label": dataclasses.replace(METHODS["vpu"], anchor=0.0),
    }
    starts = np.array([0.001, 0.05, 0.5, 0.95])
    with look():
        figure = Canvas(figsize=(WIDTH, 2.6))
        for axis, (name, method) in zip(figure.subplots(1, 4, sharey=True), members.items(), strict=True):
            settings = theory.grid([method] * len(starts), prior, lr=lr)
            paths = theory.iterate(jnp.asarray(starts), settings, _lams(alpha, len(starts)), steps)
            axis.plot(np.arange(1, steps + 1), np.asarray(paths).T, color=BLUE, linewidth=1.2)
            axis.axhline(prior, color=QUIET, linewidth=0.8, linestyle=":")
            axis.set(title=name, xlabel="step", ylim=(-0.02, 1.02))
            axis.title.set_fontsize(8.5)
        figure.axes[0].set_ylabel("p", color=INK)
        statement = (
            "From any start the soft label comes back to π (dotted); without a level in the risk p stays wherever it is"
        )
        headline(figure, statement)
    return figure


def learning_rates(prior: float = 0.4, alpha: float = 0.3, points: int = 120, steps: int = 600) -> Canvas:
    """Draw p in the last fifty steps against the size of the step, from a start at 0.3: a bifurcation diagram."""
    members = {
        "soft label, point process": METHODS["vpudra_softlabel"],
        "anchor, point process": METHODS["vpudra_pp"],
        "soft label, log-MSE": METHODS["soft_logmse"],
        "anchor, log-MSE": METHODS["vpudra_fixed"],
    }
    rates = np.geomspace(2, 120, points)
    with look():
        figure = Canvas(figsize=(WIDTH, 2.6))
        for axis, (name, method) in zip(figure.subplots(1, 4, sharey=True), members.items(), strict=True):
            settings = theory.grid(method, prior, lr=rates.tolist())
            paths = np.asarray(theory.iterate(jnp.full(points, 0.3), settings, _lams(alpha, points), steps))
            last = paths[:, -50:]
            axis.plot(np.repeat(rates, last.shape[1]), last.ravel(), ".", color=BLUE, markersize=1.5)
            rest = theory.fixed_points(theory.grid([method] * 20, prior), _lams(alpha, 20))
            axis.axvline(float(rest.step_limit[0, 0]), color=RED, linewidth=1, linestyle="--")
            axis.set(title=name, xlabel="step size", xscale="log", ylim=(-0.02, 1.02))
            axis.title.set_fontsize(8.5)
        figure.axes[0].set_ylabel("p, last 50 steps", color=INK)
        headline(figure, "Up to a step of 2/J″ (dashed) p rests; beyond, it swings and then sticks at 1, anchor or not")
    return figure


def _fixed(methods: list[Method], priors: list[float], alpha: float) -> np.ndarray:
    return np.asarray(theory.fixed_points(theory.grid(methods, priors), _lams(alpha, len(methods))).p[:, 0])


def _lams(alpha: float, count: int) -> jax.Array:
    nodes = jnp.asarray(theory.beta_nodes(alpha))
    return jnp.broadcast_to(nodes, (count, nodes.size))
