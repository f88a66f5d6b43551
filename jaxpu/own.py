"""Rows of somebody's own on their way into :func:`jaxpu.fit`: what is given, and what each method takes.

array, frame, Table ─► auto: Table ─► AutoFit
                   └─► for_networks: Dataset, all numbers ─► share_of: π ─► (runs) ─► network_fit
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool
from scipy.sparse import issparse

from jaxpu import config
from jaxpu.config import ConfigError, unknown
from jaxpu.data import Dataset
from jaxpu.data.features import is_frame, plain
from jaxpu.data.labels import coded
from jaxpu.fitted import AutoFit, NetworkFit, of_table
from jaxpu.fitted.networks import cell_of, kept_of
from jaxpu.fitted.scorer import NetworkScorer
from jaxpu.methods import decision_offset
from jaxpu.prior import Cut, Share
from jaxpu.tables import Column, Schema, Table, columns_of, of_columns, sparse_rows
from jaxpu.tables.auto import SEEDS, fit_auto
from jaxpu.tables.dense import Dense, dense


def is_auto(method: Any) -> bool:
    """Whether a method is "auto" or made of scikit-learn's classifiers.

    >>> is_auto("auto"), is_auto("nnpu")
    (True, False)
    """
    if isinstance(method, Mapping):
        return bool(method) and all(hasattr(model, "fit") for model in method.values())
    return method == "auto" if isinstance(method, str) else hasattr(method, "fit")


def models_of(method: Any) -> Mapping[str, Any] | None:
    """The candidates that :func:`is_auto` has found, by name; None for those of "auto".

    >>> models_of("auto")
    """
    if isinstance(method, str):
        return None
    return method if isinstance(method, Mapping) else {type(method).__name__: method}


def auto(
    x: Any,
    s: Any,
    y: Any,
    method: Any,
    prior: float | None,
    seeds: int | None,
    scenario: str,
    random_state: int,
    cut: Cut,
) -> AutoFit:
    """:func:`jaxpu.fit` with ``method="auto"``, or with classifiers of scikit-learn."""
    _check(prior, seeds)
    if scenario == "single_set_overlap":
        raise ConfigError("fit: 'auto' takes the scenarios single_set and case_control, with labeled rows beside U")
    table = x if isinstance(x, Table) else table_of(x, s)
    truth = None if y is None else coded(plain(y, len(table.x), "y"), column="y")
    seeds = SEEDS if seeds is None else seeds
    found = fit_auto(table, given=prior, models=models_of(method), seeds=seeds, random_state=random_state)
    return of_table(table, found, truth, cut)


def _check(prior: Any, seeds: Any) -> None:
    if prior is not None and not (isinstance(prior, int | float | np.number) and 0 < prior < 1):
        raise ConfigError(f"fit: prior is {prior!r}, expected a share strictly between 0 and 1, or None to estimate it")
    if seeds is not None and not (isinstance(seeds, int | np.integer) and seeds >= 1):
        raise ConfigError(f"fit: seeds is {seeds!r}, expected a whole number of at least 1")


def table_of(x: Any, s: Any) -> Table:
    """A table of rows and their observed labels.

    Raises:
        ValueError: x is of another shape than (n, d), or s is missing or does not fit.
    """
    if s is None:
        raise ValueError("s is missing: which rows are labeled? give 1 where a row is, and 0 where nobody knows")
    if issparse(x):
        rows: Any = sparse_rows(x)
        labeled = coded(plain(s, rows.shape[0], "s"), column="s", meaning="labeled", blank=True) == 1
        return Table(Schema(tuple(Column(f"x{k}", "number") for k in range(rows.shape[1])), named=False), rows, labeled)
    if not is_frame(x) and np.ndim(x) != 2:
        raise ValueError(f"'auto' takes tables of shape (n, d), got {np.shape(x)}; name a method of networks")
    return of_columns(columns_of(x), s, named=is_frame(x))


class NetworkRows(NamedTuple):
    """Rows as networks take them.

    Attributes:
        dataset: all numbers. labeled: where a row is of P; where s is drawn for each seed, where it is positive.
        table: what was made of the columns, where there were any. dense: how, where it was more than taking them.
        schema: of the columns; None for rows of another shape.
    """

    dataset: Dataset
    labeled: Bool[np.ndarray, " n"]
    table: Table | None
    dense: Dense | None
    schema: Schema | None


def for_networks(x: Any, s: Any, y: Any) -> NetworkRows:
    """Rows of any kind as a dataset of numbers."""
    if issparse(x):
        raise ConfigError("fit: networks take no sparse rows; give x.toarray(), or take method 'auto'")
    if not isinstance(x, Table) and _numbers(x):
        dataset = Dataset.from_arrays(x, y, s)
        names = dataset.feature_names or [f"x{k}" for k in range(dataset.x.shape[-1])]
        schema = Schema(tuple(Column(name, "number") for name in names), named=dataset.feature_names is not None)
        seen = dataset.s if dataset.s is not None else dataset.truth
        return NetworkRows(dataset, seen == 1, None, None, schema if dataset.x.ndim == 2 else None)
    table = x if isinstance(x, Table) else table_of(x, s)
    made = dense(table.x, table.schema.categories)
    dataset = Dataset.from_arrays(made(table.x), y, table.labeled.astype(np.int8), name=table.name)
    return NetworkRows(dataset, table.labeled, table, made, table.schema)


def _numbers(x: Any) -> bool:
    """Whether rows are numbers without gaps, or at least of a shape that only numbers have."""
    if is_frame(x):
        return all(
            np.asarray(x[name].to_numpy()).dtype.kind in "biuf" and _full(x[name].to_numpy()) for name in x.columns
        )
    array = np.asarray(x)
    return array.ndim != 2 or (array.dtype.kind in "biuf" and _full(array))


def _full(values: Any) -> bool:
    values = np.asarray(values)
    return values.dtype.kind != "f" or not np.isnan(values).any()


def share_of(rows: NetworkRows, given: float | None, random_state: int) -> Share:
    """The share that networks are told: the given one, or the estimate from cross-fitted scores."""
    n_p, n_u = int(rows.labeled.sum()), int((~rows.labeled).sum())
    nan = float("nan")
    if given is not None:
        return Share(given, nan, nan, nan, n_p, n_u, given=True)
    if rows.dataset.s is None:
        raise ConfigError("fit: prior is None, and s is drawn from y for each seed; give prior, or s")
    table = rows.table
    if table is None:
        flat = rows.dataset.x.reshape(len(rows.dataset.x), -1)
        table = of_columns(columns_of(flat), rows.dataset.s)
    share = fit_auto(table, seeds=1, random_state=random_state).share
    if not 0 < share.value < 1:
        raise ConfigError(
            f"fit: the estimated prior is {share.value:g}, and networks take a share strictly between 0 and 1; "
            "give prior, or take method 'auto'"
        )
    return share


def network_fit(rows: NetworkRows, share: Share, experiment: Any, outcome: Any, cut: Cut) -> NetworkFit:
    """Put a fit together from the runs of an experiment."""
    cell = cell_of(experiment)
    seeds_of = outcome.runs.select("seed", "run_id").unique(maintain_order=True).rows()
    kept = kept_of(cell, rows.dataset, [seed for seed, _ in seeds_of], [outcome.kept(run) for _, run in seeds_of])
    detail = f"{len(kept)} networks ({cell.model.name})"
    scorer = NetworkScorer(
        rows.schema,
        share,
        0.0,
        cell.method_name,
        detail,
        cell.model,
        kept,
        float(decision_offset(cell.method)),
        rows.dense,
    )
    return NetworkFit(
        rows.labeled, scorer, rows.table, rows.dataset.y, outcome.runs, experiment, outcome.provenance, rows.dataset
    ).at(cut)


def settings_of(
    settings: Mapping[str, Any],
    method: Any,
    prior: float | None,
    seeds: int | None,
    model: Any,
    optimizer: Any,
    scenario: str,
    rows: NetworkRows,
) -> dict[str, Any]:
    """The arguments of :func:`jaxpu.fit` as the mapping of an experiment; a prior that is not given is one half."""
    groups: dict[str, dict[str, Any]] = {"training": {}, "data": {}, "selection": {}}
    for name, value in settings.items():
        _put(groups, name, value)
    usual, given = {**vars(config.DataConfig()), **vars(config.TrainingConfig())}, groups["data"] | groups["training"]
    share = rows.labeled.mean() * (1 if rows.dataset.s is not None else given.get("c", usual["c"]))
    if "rules" not in groups["selection"]:
        held_out = share * len(rows.labeled) * np.max(given.get("validation", usual["validation"]))
        groups["selection"]["rules"] = ["pu_accuracy", "last"]
        groups["selection"].setdefault("default", "pu_accuracy" if held_out >= FEW_HELD_OUT else "last")
    groups["selection"].setdefault("keep_best", True)
    in_a_batch = share * given.get("batch_size", usual["batch_size"])
    if isinstance(method, str) and method in SUMS and in_a_batch < FEW_IN_A_BATCH:
        method = {"preset": method, "batching": "separate"}
    if rows.dataset.y is None:
        groups["data"].setdefault("test", 0.0)
    if optimizer is not None:
        groups["training"]["optimizer"] = optimizer
    groups["data"] |= {"prior": 0.5 if prior is None else prior, "scenario": scenario}
    number = 8 if seeds is None else seeds
    return {**groups, "name": "fit", "methods": [method], "seeds": number, "model": _model(model)}


SUMS = ("upu", "nnpu", "nnpu_clip", "nnpusb", "pudra")
"""Presets whose risk is a mean over P and a mean over U, so that a batch may hold any number of each."""
FEW_IN_A_BATCH, FEW_HELD_OUT = 16, 10
"""Labeled rows in a batch below which P and U are drawn apart, since nnPU steps uphill where the noise of a mean over
few rows of P makes its estimate negative; and held out, below which the last epoch counts, not the one they like."""
_GIVEN = ("name", "options", "file", "label", "positive", "observed", "labeled", "task", "scenario", "prior")
"""Settings that the arguments of :func:`fit` give, or that have no meaning there."""

GROUPS = {"training": config.TrainingConfig, "data": config.DataConfig, "selection": config.SelectionConfig}


def _put(groups: dict[str, dict[str, Any]], name: str, value: Any) -> None:
    """Put a setting into its group."""
    group_of = {
        field.name: group
        for group, kind in GROUPS.items()
        for field in dataclasses.fields(kind)
        if field.name not in (*_GIVEN, "optimizer")
    }
    if name not in group_of:
        raise ConfigError(f"fit: {unknown('setting', name, sorted(group_of))}")
    groups[group_of[name]][name] = value


def _model(model: Any) -> Any:
    """What was given as a model, as settings."""
    if isinstance(model, config.ModelConfig | Mapping):
        return model
    if model is None or (isinstance(model, str) and ":" not in model):
        return {} if model is None else {"name": model}
    return {"module": model}
