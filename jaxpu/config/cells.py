"""From an experiment of any kind to its cells and runs, and whether its claims speak of them."""

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

from jaxpu.config.base import MOST_RUNS, AnyExperiment
from jaxpu.config.claim import Claim, Which
from jaxpu.config.grid import finish, same
from jaxpu.config.identity import digest
from jaxpu.errors import shown, unknown
from jaxpu.settings import ConfigError


def expand(experiment: AnyExperiment) -> list[Any]:
    """All cells of an experiment of any kind, methods times grid points, in the order written.

    Raises:
        ConfigError: for a grid path that does not exist, a value that does not fit, or two equal cells.

    >>> from jaxpu.config import Experiment
    >>> [cell.point for cell in expand(Experiment(grid={"training.lr": ["1e-3", 1]}))]
    [{'training.lr': 0.001}, {'training.lr': 1.0}]
    """
    cells = experiment.cells()
    runs = sum(cell.seeds for cell in cells)
    if runs > MOST_RUNS:
        raise ConfigError(f"{runs:.2g} runs are asked for, expected at most {MOST_RUNS:,}: fewer seeds or values")
    return finish(cells, experiment.grid_columns)


def runs_of(cells: Sequence[Any]) -> list[tuple[Any, int]]:
    """All cells with all their seeds, seed by seed, so that an interrupted experiment has whole seeds of every method.

    >>> from jaxpu.config import Experiment
    >>> e = Experiment(methods=("vpu", "pudra"), seeds=2)
    >>> [(cell.method_name, seed) for cell, seed in runs_of(expand(e))]
    [('vpu', 0), ('pudra', 0), ('vpu', 1), ('pudra', 1)]
    """
    numbers = [_seeds([cell]) for cell in cells]
    seeds = sorted(_seeds(cells))
    return [(cell, seed) for seed in seeds for cell, mine in zip(cells, numbers, strict=True) if seed in mine]


def check_claims(
    experiment: AnyExperiment, metrics: Collection[str] | None = None, verdicts: Collection[str] | None = None
) -> None:
    """Whether every claim speaks of runs and metrics that this experiment has; before it trains for an hour.

    Args:
        experiment: of any kind. metrics, verdicts: the names that there are; None = not looked at.

    Raises:
        ConfigError: naming the claim, what it asks for, and the choices.
    """
    cells = expand(experiment)
    for claim in experiment.claims:
        try:
            _check_names(claim, metrics, verdicts)
            seeds = [_seeds(matching(cells, which, experiment.rules)) for which in claim.sides]
        except ValueError as error:
            raise ConfigError(f"claim {shown(claim.claim)}: {error}") from None
        if seeds[0] != seeds[-1]:
            raise ConfigError(f"claim {shown(claim.claim)}: both sides need the same seeds to be paired")
        if claim.somewhere:
            _check_cells(claim, cells, experiment.rules)


def claims_digest(experiment: AnyExperiment) -> dict[str, str]:
    """What every claim asks for, by its words: a digest that changes with its bound, its cells or their seeds.

    It belongs to the results: compared with that of later claims, it tells what was changed once they were known. Who
    says so and for which item does not enter, nor the words.

    Raises:
        ConfigError: two claims have the same words.
        ValueError: a claim speaks of no cell.
    """
    cells, found = expand(experiment), {}
    for claim in experiment.claims:
        if claim.claim in found:
            raise ConfigError(f"claim {shown(claim.claim)} is made twice; give each its own words")
        matched = [matching(cells, which, experiment.rules) for which in claim.sides]
        runs = [[(c.dataset, c.method_name, c.point, c.first_seed, c.seeds) for c in side] for side in matched]
        asked = dataclasses.replace(claim, claim="", source="", item="")
        found[claim.claim] = digest(asked, experiment.rules[0], runs)
    return found


def _check_cells(claim: Claim, cells: Sequence[Any], rules: Sequence[str]) -> None:
    """Whether each cell of one side has its own on the other."""
    sides = []
    for which in claim.sides:
        named = [c.point | {"method": c.method_name, "dataset": c.dataset} for c in matching(cells, which, rules)]
        sides.append({str({k: v for k, v in sorted(cell.items()) if k not in claim.fixed}) for cell in named})
    if sides[0] != sides[-1]:
        raise ConfigError(f"claim {shown(claim.claim)}: both sides need the same cells, to compare each with its own")


def _check_names(claim: Claim, metrics: Collection[str] | None, verdicts: Collection[str] | None) -> None:
    for verdict in claim.verdicts:
        if verdicts is not None and verdict not in verdicts:
            raise ValueError(unknown("verdict", verdict, verdicts))
    if metrics is not None and not claim.verdicts and claim.metric not in metrics:
        raise ValueError(unknown("metric", claim.metric, metrics))


def matching(cells: Sequence[Any], which: Which, rules: Sequence[str]) -> list[Any]:
    """The cells that one side of a claim speaks of, at least one.

    Raises:
        ValueError: there is none, naming the choices.
    """
    for kind, name, choices in (
        ("method", which.method, [cell.method_name for cell in cells]),
        ("dataset", which.dataset, [cell.dataset for cell in cells]),
        ("selection rule", which.selection and which.selection.name, rules),
    ):
        if name is not None and name not in choices:
            raise ValueError(unknown(kind, name, list(dict.fromkeys(choices))))
    columns = list(cells[0].point)
    for column, wanted in which.where.items():
        if column not in columns:
            raise ValueError(unknown("grid column", column, columns) if columns else f"no grid, so no {shown(column)}")
        values = list(dict.fromkeys(cell.point[column] for cell in cells))
        if not any(same(value, wanted) for value in values):
            raise ValueError(f"no cell has {column} {shown(wanted)}; there are {shown(values)}")
    found = [
        cell
        for cell in cells
        if which.method in (None, cell.method_name)
        and which.dataset in (None, cell.dataset)
        and all(same(cell.point[column], wanted) for column, wanted in which.where.items())
    ]
    if not found:
        raise ValueError(f"no cell is all of {shown(which)}")
    return found


def _seeds(cells: Sequence[Any]) -> set[int]:
    return set().union(*(range(cell.first_seed, cell.first_seed + cell.seeds) for cell in cells))
