"""From an experiment to its cells, one method at one grid point each, and whether its claims speak of them."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic.dataclasses import dataclass

from jaxpu.config.claim import STRICT, Claim
from jaxpu.config.errors import ConfigError, unknown
from jaxpu.config.read import parse, put, to_dict
from jaxpu.config.schema import DataConfig, Experiment, ModelConfig, SelectionConfig, TrainingConfig
from jaxpu.methods import Method, named_method


@dataclass(frozen=True, config=STRICT)
class Cell:
    """One method at one grid point: all that its runs share but the seed."""

    method_name: str
    method: Method
    label: str
    data: DataConfig
    model: ModelConfig
    training: TrainingConfig
    selection: SelectionConfig


def expand(experiment: Experiment) -> list[Cell]:
    """All cells of an experiment: methods times grid points, in the order written.

    Raises:
        ConfigError: for a grid path that does not exist or a value that does not fit.

    >>> [c.label for c in expand(parse({"grid": {"training.lr": [1e-3, 1e-4]}}))]
    ['lr=0.001', 'lr=0.0001']
    """
    axes = [[(path, value) for value in values] for path, values in experiment.grid.items()]
    return [_cell(experiment, entry, point) for entry in experiment.methods for point in itertools.product(*axes)]


def check_claims(experiment: Experiment) -> None:
    """Whether every claim speaks of runs that this experiment has; before it trains for an hour.

    Raises:
        ConfigError: naming the claim, what it asks for, and the choices.
    """
    cells = expand(experiment)
    has = {
        "method": {c.method_name for c in cells},
        "dataset": {c.data.name for c in cells},
        "selection": set(experiment.selection.rules),
        "cell": {piece for c in cells for piece in c.label.split()},
    }
    check_names(experiment.claims, has)


def check_names(claims: Sequence[Claim], has: Mapping[str, Collection[str]]) -> None:
    """Whether what claims name is there: ``method``, ``dataset``, ``selection`` and the pieces of a ``cell``.

    Raises:
        ConfigError: naming the claim, what it asks for, and the choices.
    """
    for claim in claims:
        for which in (claim.of, claim.minus) if claim.minus else (claim.of,):
            wanted = {"method": which.method, "dataset": which.dataset, "selection": which.selection}
            asked = [(kind, name) for kind, name in wanted.items() if name is not None]
            for kind, name in [*asked, *(("cell", piece) for piece in which.cell.split())]:
                if name not in has[kind]:
                    raise ConfigError(f"claim {claim.claim!r}: {unknown(kind, name, sorted(has[kind]))}")


def _cell(experiment: Experiment, entry: str | dict[str, Any], point: tuple[tuple[str, Any], ...]) -> Cell:
    raw = {**to_dict(experiment), "grid": {}}
    method = {"preset": entry} if isinstance(entry, str) else dict(entry)
    for path, value in point:
        put({"method": method} if path.startswith("method.") else raw, path, value)
    raw["methods"] = [method]
    resolved = parse(raw, where=f"grid point {dict(point)}")
    name, values = named_method(method)
    label = " ".join(f"{path.rpartition('.')[2]}={value}" for path, value in point)
    return Cell(name, values, label, resolved.data, resolved.model, resolved.training, resolved.selection)
