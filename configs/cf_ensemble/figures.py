"""How an aggregator turns upside down: the linear flow beside one synthetic problem, and when continued runs heal.

``scripts/reproduce.py`` calls ``figures`` and ``tables``.
"""

import functools
import json
from typing import Any, NamedTuple

import jax
import numpy as np
import polars as pl
from jax import numpy as jnp
from matplotlib.figure import Figure as Canvas

from jaxpu import ensemble, metrics, theory
from jaxpu.config.ensemble import RatingsConfig
from jaxpu.ensemble.ratings import problem
from jaxpu.plots import Figure
from jaxpu.plots.frames import NothingToShow, require
from jaxpu.plots.style import BLUE, COLOURS, GREEN, INK, MARKERS, QUIET, RED, WIDTH, headline, look
from jaxpu.report.study import Results

LR, RATE, M, SWEEPS = 0.01, 0.1, 10, 30
RATING_RATE = "ratings.rate"


def figures(results: Results) -> list[Figure]:
    """Of the mechanism, and of the runs that were continued."""
    of_path = "One synthetic problem at 10 % positives: factors of 30 sweeps held fixed, and the aggregator let go."
    found = [
        Figure("aggregator_path", "mechanism", aggregator_path, of_path),
        Figure("phase_plane", "mechanism", phase_plane, f"Left: {of_path} Right: the closed form."),
    ]
    if "cf_transient" in results.done:
        note = "Every mark is a run; on the dotted line the measured time is the predicted one."
        runs = results.frame("cf_transient", "selected")
        found.append(Figure("healing", "cf_transient", lambda: healing(runs.collect()), note))
    return found


def tables(results: Results) -> dict[str, pl.DataFrame]:
    """Quality of single classifiers; what scripts/reference_ensemble.py wrote, where it did."""
    found = {"base": base_quality()}
    path = results.folder / "cf_ensemble" / "reference.json"
    if path.exists():
        fits = pl.DataFrame(json.loads(path.read_text(encoding="utf-8"))["fits"], infer_schema_length=None)
        off = pl.col("largest_difference_from_original_w_b").map_elements(lambda d: f"{d:.0e}", pl.String)
        found["reference"] = fits.with_columns(off).rename({off.meta.output_name(): "off the original's w, b"})
    return found


def base_quality(seeds: int = 100) -> pl.DataFrame:
    """PR-AUC of one classifier alone, on the instances without a label: a row a share of positives."""
    rows = []
    for rate in (0.5, RATE, 0.01):
        problems = [problem(RatingsConfig(rate=rate), seed, "float64") for seed in range(seeds)]
        of_seeds = np.array([_alone(*map(jnp.asarray, each)) for each in problems])
        best = of_seeds.max(axis=1)
        rows.append(
            {"ratings.rate": rate, "mean": of_seeds.mean(), "worst": of_seeds.min(axis=1).mean(), "best": best.mean()}
        )
    return pl.DataFrame(rows)


@jax.jit
def _alone(ratings: jax.Array, labels: jax.Array, labeled: jax.Array) -> jax.Array:
    return jax.vmap(lambda r: metrics.average_precision(r, labels, mask=~labeled))(ratings)


class Path(NamedTuple):
    """An aggregator's course: updates made, Σ w, b, mean p and separation, with what the flow says of the first two."""

    updates: Any
    total: Any
    bias: Any
    mean_p: Any
    separation: Any
    early: Any
    late: Any
    level: Any
    rate: Any


def aggregator_path() -> Canvas:
    """Draw Σ w, b, mean prediction and class separation of one run against the linear flow in closed form."""
    path = one_path()
    with look():
        figure = Canvas(figsize=(WIDTH, 3.1))
        panels, lines = figure.subplots(1, 3), []
        columns = (("Σ w", path.total, 0), ("b", path.bias, 1))
        for axis, (name, measured, k) in zip(panels, columns, strict=False):
            lines = axis.plot(path.updates, measured, color=INK, linewidth=2)
            lines += axis.plot(path.updates, path.early[:, k], "--", color=RED, linewidth=1.3)
            lines += axis.plot(path.updates, path.late[:, k], "--", color=BLUE, linewidth=1.3)
            axis.set(title=name, xscale="log", xlabel="updates")
            axis.set_ylim(measured.min() * 1.25 - 0.4, max(measured.max() * 1.25, 1.2))
            axis.axhline(0, color=QUIET, linewidth=0.8, linestyle=":")
        panels[2].plot(path.updates, path.mean_p, color=INK, linewidth=2)
        panels[2].plot(path.updates, path.separation, color=GREEN, linewidth=2)
        panels[2].axhline(path.rate, color=QUIET, linewidth=0.8, linestyle=":")
        panels[2].axhline(0, color=QUIET, linewidth=0.8, linestyle=":")
        panels[2].set(title="mean p; class separation (green)", ylim=(-0.7, 1.2))
        panels[2].set(xscale="log", xlabel="updates")
        names: dict[str, Any] = dict(zip(("run", "linear flow at p = ½", "linear flow at p = π"), lines, strict=True))
        statement = "Two time scales: the base rate within hundreds of updates, the classes after thousands"
        headline(figure, statement, names)
    return figure


def phase_plane() -> Canvas:
    """Draw the fast phase in the plane of Σ w and b: the conserved line, and where p = π ends it."""
    path = one_path()
    with look():
        figure = Canvas(figsize=(WIDTH, 3.4))
        plane, critical = figure.subplots(1, 2)
        total = np.linspace(-4, 1.4, 50)
        log_odds = np.log(path.rate / (1 - path.rate))
        plane.plot(total, (total - 1) / (M * path.level), "--", color=RED, label="conserved: Σ w - 1 = m μ b")
        plane.plot(total, log_odds - path.level * total, "--", color=BLUE, label="p = π")
        shown = path.updates <= 30_000
        plane.plot(path.total[shown], path.bias[shown], color=INK, linewidth=2, label="run, to 30,000 updates")
        plane.axvspan(-4, 0, color="#fdeee4", linewidth=0, zorder=0)
        plane.set(xlabel="Σ w (shaded: upside down)", ylabel="b", xlim=(-4, 1.4), ylim=(-3.2, 0.3))
        plane.legend(fontsize=8, loc="lower left")
        m = np.geomspace(2, 100, 60)
        for level, colour in ((0.5, INK), (0.25, BLUE), (0.1, GREEN)):
            rates = [float(theory.critical_rate(k, level)) for k in m]
            critical.plot(m, rates, color=colour, label=f"mean rating μ = {level:g}")
        critical.set(xscale="log", xlabel="classifiers m", ylabel="critical share of positives", ylim=(0, 0.52))
        critical.legend(fontsize=8, loc="lower right")
        statement = "Σ w and b move along one line until p = π; m μ decides whether that is beyond Σ w = 0"
        headline(figure, statement)
    return figure


@functools.cache
def one_path(seed: int = 0) -> Path:
    """One synthetic problem at 10 % positives: factors of 30 sweeps held fixed, and the aggregator let go."""
    with jax.enable_x64(True):
        of_ratings, of_factors = jax.random.split(jax.random.key(seed), 2)
        drawn = ensemble.synthetic_ratings(of_ratings, n=500, m=M, rate=RATE)
        known = jnp.arange(500) % 2 == 0
        return Path(*map(np.asarray, _follow(_reconstructed(of_factors, *drawn[:2], known), drawn.labels, known)))


@jax.jit
def _reconstructed(key: jax.Array, ratings: jax.Array, labels: jax.Array, known: jax.Array) -> jax.Array:
    c = ensemble.confidence("label_aware", ratings, labels, known)
    start = ensemble.start_factors(key, ratings.shape, 15)
    sweep = functools.partial(ensemble.als_sweep, ratings=ratings, confidence=c, ridge=0.01)
    return ensemble.reconstruct(jax.lax.fori_loop(0, SWEEPS, lambda _, factors: sweep(factors), start))


@jax.jit
def _follow(ratings: jax.Array, labels: jax.Array, known: jax.Array) -> Path:
    updates = np.unique(np.geomspace(1, 100_000, 80).round().astype(int))
    step = ensemble.Step(lr=LR)
    start = ensemble.start_aggregator(M, labels, known, step, ratings.dtype)
    w, b, _ = ensemble.descend(start, ratings, labels, known, updates=jnp.asarray(updates), step=step)
    rate = (known & (labels > 0)).sum() / known.sum()
    level = (ratings * known[None, :]).sum() / (M * known.sum())
    log_odds = jnp.log(rate / (1 - rate))
    begin, late = (theory.linear_flow(ratings, labels, known, at=z) for z in (0.0, log_odds))
    end = theory.fast_end(M, level, rate)
    first = jnp.append(jnp.full(M, 1 / M), 0.0)
    second = jnp.append(jnp.full(M, end.total / M), end.bias)
    times = jnp.asarray(updates) * LR
    lines = [theory.flow_at(f, s, times) for f, s in ((begin, first), (late, second))]
    near_start, near_end = (jnp.stack([line[:, :-1].sum(1), line[:, -1]], axis=1) for line in lines)
    p = jax.nn.sigmoid(w @ ratings + b[:, None])
    mean_p = (p * known[None, :]).sum(1) / known.sum()
    return Path(jnp.asarray(updates), w.sum(1), b, mean_p, w @ late.direction[:-1], near_start, near_end, level, rate)


def healing(runs: pl.DataFrame) -> Canvas:
    """Draw when continued runs turned round and when they were healthy, against what the linear flow predicts.

    Raises:
        NothingToShow: no run was continued, or none turned round.
    """
    require(runs, "ranked_at", "healthy_at", "heal_theory", "slow_updates", RATING_RATE)
    rates = runs.with_columns(rate=pl.col(RATING_RATE))
    turned = rates.filter(pl.col("ranked_at").is_not_null(), pl.col("heal_theory") > 0, pl.col("auc") < 0.5)
    if turned.is_empty():
        raise NothingToShow("No run turned round after its training.")
    names = rates["rate"].unique(maintain_order=True).to_list()
    with look():
        figure = Canvas(figsize=(WIDTH, 3.6))
        ranked, healthy = figure.subplots(1, 2)
        ratio = turned["ranked_at"] / turned["heal_theory"]
        for k, rate in enumerate(names[: len(COLOURS)]):
            marks: dict[str, Any] = {"color": COLOURS[k], "marker": MARKERS[k], "alpha": 0.5, "linewidth": 0}
            mine = turned.filter(pl.col("rate") == rate)
            ranked.scatter(mine["heal_theory"], mine["ranked_at"], 14, label=f"rate {rate:g}", **marks)
            done = rates.filter(pl.col("rate") == rate, pl.col("healthy_at").is_not_null())
            healthy.scatter(done["slow_updates"], done["healthy_at"], 14, **marks)
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
