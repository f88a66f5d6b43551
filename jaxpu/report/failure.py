"""The failure analysis: the claims of seed 000 one by one, from the results folders of their experiments.

One Markdown text is the source; the page is the same text, with its figures inside.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import jax.numpy as jnp
import polars as pl
import yaml
from matplotlib.figure import Figure

from jaxpu import theory as mean_field
from jaxpu.config import Cell, expand, parse
from jaxpu.plots import theory
from jaxpu.report.headlines import headlines
from jaxpu.report.parts import Part, claims_summary, finished, not_here, section, words_of, write_report
from jaxpu.report.practice import practice
from jaxpu.results import ResultsError
from jaxpu.sweep import prepare

PARTS = tuple(Part(**part) for part in words_of("failure.yaml"))
"""The parts of the analysis, in its order."""


INTRO = (
    "# Does removing the anchor make training collapse?\n\n"
    "Seed 000 says so, after one run at one seed. Here are its claims, and those that explain what was seen, each "
    "over at least 30 seeds. *Supported* and *refuted* mean that the whole interval lies on one side of what was "
    "claimed, and that p against that bound, after Holm's correction within the experiment, is below 0.05.\n\n"
)


def write_failure_analysis(results: Path, configs: Path) -> Path:
    """Write ``failure_analysis/report.md``, ``report.html`` and their figures from finished experiments.

    Args:
        results: the folder of results folders. configs: the folder of configurations.

    Returns:
        The path of the page.

    Raises:
        ResultsError: none of the experiments is there.
    """
    folder = results / "failure_analysis"
    there = finished(results, PARTS)
    if not there:
        raise ResultsError(f"no experiment of the failure analysis in {results}; run scripts/reproduce.py")
    sections = [INTRO + claims_summary(results, there), *(section(results, configs, part) for part in there)]
    sections += [_theory(results), headlines(results), practice(results), not_here(PARTS, there)]
    return write_report(folder, FIGURES, sections)


FIGURES: dict[str, Callable[[], Figure]] = {
    "penalty_slopes": theory.penalty_slopes,
    "fixed_point_curves": theory.fixed_point_curves,
    "mean_field_paths": theory.mean_field_paths,
    "learning_rates": theory.learning_rates,
}


def _theory(results: Path) -> str:
    figures = "\n\n".join(f"![{name.replace('_', ' ')}](figures/{name}.svg)" for name in FIGURES)
    return (
        "## Loss geometry and mean field\n\n"
        "Drawn from the code that training runs (`jaxpu.theory`), and tested "
        f"against closed forms.\n\n{figures}\n\n{_differences(results)}"
    ).rstrip()


def _differences(results: Path) -> str:
    """Where networks end, against where their mean field rests."""
    path = results / "h1_anchor" / "selected.csv"
    if not path.exists():
        return ""
    selected = pl.read_csv(path).filter(pl.col("selection") == "last")
    means = selected.group_by("cell", maintain_order=True).agg(pl.col("test_score_mean").mean(), pl.col("f1").median())
    experiment = parse(yaml.safe_load((results / "h1_anchor" / "config.yaml").read_bytes()))
    cells = [cell for cell in expand(experiment) if cell.method.anchor in (0.0, 1.0)]
    rests = _fixed_points(cells, experiment.first_seed)
    measured = {cell: numbers for cell, *numbers in means.iter_rows()}
    rows = []
    for cell, rest in zip(cells, rests, strict=True):
        score, f1 = measured[cell.label]
        rows.append(f"| {cell.method.anchor:g} | {cell.data.prior_scale:g} | {rest:.3f} | {score:.3f} | {f1:.3f} |")
    heads = "| anchor | told prior / true | mean field p | mean p of networks | median F1 |\n|---:|---:|---:|---:|---:|"
    return (
        "**Where networks differ.** The mean field has one p; a network has rows that move apart, and mixed rows that "
        "are neither. Mean p on the test rows after 30 epochs, over the seeds of h1_anchor:\n\n"
        f"{heads}\n" + "\n".join(rows)
    )


def _fixed_points(cells: Sequence[Cell], seed: int) -> list[float]:
    """Where the mean field of each cell rests: its only fixed point, at the prior that the cell's methods are told."""
    prepared = [prepare(cell.data, seed) for cell in cells]
    shares = [float(each.rows.n_labeled / each.rows.n_train) for each in prepared]
    settings = mean_field.grid([cell.method for cell in cells], [each.prior for each in prepared], labeled_share=shares)
    lams = jnp.stack([jnp.asarray(mean_field.beta_nodes(cell.training.alpha)) for cell in cells])
    return mean_field.fixed_points(settings, lams).p[:, 0].tolist()
