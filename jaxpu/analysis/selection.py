"""Selection rules replayed on recorded trajectories: which epoch each keeps, and what the run scores there.

An epoch improves on the best so far when it beats it by more than ``min_delta``, and a rule stops once ``patience``
epochs have passed without improvement. Training (:mod:`jaxpu.train`) follows the same rules on the device.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float, Int

from jaxpu import collapse
from jaxpu.config import END, AnyExperiment, Cell, Experiment, RuleChoice, expand

RECORDED = ("test_", "train_", "probe_", "val")
"""How the names of recorded numbers begin."""


class Selected(NamedTuple):
    """What a rule did on one trajectory: 0-based epoch kept, and the number of epochs it looked at."""

    epoch: int
    epochs_run: int
    defined: bool


def replay(
    values: Float[np.ndarray, " epochs"],
    *,
    sign: int = 1,
    patience: int | None = None,
    min_delta: float = 0.0,
) -> Selected:
    """Replay one rule on one recorded column.

    An epoch improves when ``sign * value > best + min_delta``; NaN never improves. The rule stops at the
    first epoch that lies ``patience`` epochs after the best. A column without a single number selects the
    last epoch and says ``defined=False``.

    Args:
        values: the column, one value an epoch; only epochs that were run.
        sign: +1 if larger is better, -1 if smaller is better.
        patience: epochs without improvement after which the rule stops; None looks at all epochs.
        min_delta: least improvement that counts.

    Raises:
        ValueError: for an empty trajectory, or a patience below 1.

    >>> replay(np.array([0.87, 0.93, 0.33, 0.75, 0.90, 0.93]), patience=4)
    Selected(epoch=1, epochs_run=6, defined=True)
    >>> replay(np.array([3.0, 1.0, 2.0]), sign=-1)
    Selected(epoch=1, epochs_run=3, defined=True)
    """
    if len(values) == 0:
        raise ValueError("expected a trajectory of at least one epoch, got none; was the run recorded?")
    if patience is not None and patience < 1:
        raise ValueError(f"expected patience >= 1 (or None), got {patience}")
    best, best_epoch = -np.inf, -1
    epoch = 0
    for epoch, value in enumerate(sign * np.asarray(values, dtype=np.float64)):
        if value > best + min_delta:
            best, best_epoch = value, epoch
        if patience is not None and epoch - max(best_epoch, -1) >= patience:
            break
    if best_epoch < 0:
        return Selected(epoch, epoch + 1, False)
    return Selected(best_epoch, epoch + 1, True)


def select(runs: pl.DataFrame, experiment: AnyExperiment) -> tuple[pl.DataFrame, list[collapse.Diagnosis]]:
    """One row a run and rule: the frame ``selected`` of :func:`jaxpu.analysis.summary.tables`.

    Args:
        runs: recorded rows, with ``run_id``, ``dataset``, ``method``, the grid columns and ``seed``; of experiments
            with selection rules one an epoch. Of other kinds each run's last row counts.
        experiment: whose rules apply. A rule that reads what was not recorded is left out.

    Returns:
        The frame, and the diagnosis of each row; none where nothing was recorded to judge by, as without labels.
    """
    identity = ("dataset", "method", *experiment.grid_columns, "seed")
    if not isinstance(experiment, Experiment):
        return _as_recorded(runs, identity)
    cells = {(cell.method_name, *cell.point.values()): cell for cell in expand(experiment)}
    rows: list[dict[str, Any]] = []
    diagnoses: list[collapse.Diagnosis] = []
    for run in runs.partition_by("run_id", maintain_order=True):
        first = run.row(0, named=True)
        cell = cells[tuple(first[name] for name in identity[1:-1])]
        columns = columns_of(run)
        for rule in experiment.selection.rules:
            if rule.column is None or rule.column in columns:
                row, diagnosis = _select_one(columns, cell, rule)
                rows.append({name: first[name] for name in identity} | row)
                diagnoses += [diagnosis] if diagnosis else []
    return pl.DataFrame(rows, infer_schema_length=None), diagnoses


def columns_of(run: pl.DataFrame) -> dict[str, np.ndarray]:
    """The recorded numbers of one run by column, an entry an epoch."""
    names = [name for name, kind in run.schema.items() if name.startswith(RECORDED) and not kind.is_nested()]
    return {name: run[name].to_numpy() for name in names}


def kept_columns(recorded: Iterable[str]) -> list[str]:
    """The recorded columns that ``selected`` has: of test and training, and without labels those of validation.

    >>> kept_columns(["val_oracle_f1", "test_oracle_f1"]), kept_columns(["val_proxy_pu_auc", "val@0.1_proxy_pu_auc"])
    (['test_oracle_f1'], ['val_proxy_pu_auc'])
    """
    names = list(recorded)
    told = ("test_", "train_", "probe_") if any(name.startswith("test_oracle_") for name in names) else RECORDED
    return [name for name in names if name.startswith(told) and not name.startswith("val@")]


def evaluated(columns: dict[str, np.ndarray]) -> Int[np.ndarray, " k"]:
    """Places of the epochs in which the network was evaluated: any number of test or validation is known, or none ever.

    >>> evaluated({"train_loss": np.ones(3), "test_oracle_f1": np.array([np.nan, 0.5, 0.6])}).tolist()
    [1, 2]
    """
    measured = [values for name, values in columns.items() if name.startswith(("test_", "val"))]
    every = np.arange(len(columns["train_loss"]))
    known = every[~np.isnan(measured).all(axis=0)] if measured else every
    return known if len(known) else every


def trajectory(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns of one run as :func:`jaxpu.collapse.diagnose_run` takes them, of the epochs that were evaluated.

    Those of the test rows; where their labels are not known, what P and U tell of the validation rows.
    """
    at = evaluated(columns)
    columns = {name: values[at] for name, values in columns.items()}
    judged = "test_" if "test_oracle_f1" in columns else "val_"
    found = {name.removeprefix(judged): values for name, values in columns.items() if name.startswith(judged)}
    return found | {"loss": columns["train_loss"]}


def _as_recorded(runs: pl.DataFrame, identity: tuple[str, ...]) -> tuple[pl.DataFrame, list[collapse.Diagnosis]]:
    if "run_id" in runs.columns:
        runs = runs.group_by("run_id", maintain_order=True).last()
    if "selection" not in runs.columns:
        runs = runs.with_columns(selection=pl.lit(END))
    scalars = [name for name, kind in runs.schema.items() if not kind.is_nested() and name not in identity]
    selected = runs.select(*identity, "selection", *(name for name in scalars if name not in ("run_id", "selection")))
    words = runs["verdict"] if "verdict" in runs.columns else ()
    return selected, [collapse.Diagnosis(collapse.Verdict(w), (collapse.Verdict(w),), {}, "") for w in words]


def _select_one(
    columns: dict[str, np.ndarray], cell: Cell, choice: RuleChoice
) -> tuple[dict[str, Any], collapse.Diagnosis | None]:
    rule, settings, epochs = choice.entry, cell.selection, len(columns["train_loss"])
    if choice.column is None:
        kept, looked_at, defined = epochs - 1, epochs, True
    else:
        kept, looked_at, defined = replay(
            columns[choice.column], sign=rule.sign, patience=settings.patience, min_delta=settings.min_delta
        )
        at = evaluated(columns)
        kept = kept if defined else int(at[max(np.searchsorted(at, kept, "right") - 1, 0)])
    row: dict[str, Any] = {
        "selection": choice.name,
        "epoch": kept + 1,
        "epochs_run": looked_at,
        "rule_defined": defined,
        "decision": cell.method.decision,
    }
    reported = columns.get(f"test_{rule.reported}")
    if reported is not None:
        row |= {"f1": float(reported[kept]), "regret": float(np.nanmax(reported) - reported[kept])}
    diagnosis = _diagnose(columns, reported, cell, kept, looked_at)
    if diagnosis is not None:
        row |= {"verdict": str(diagnosis.verdict), "explanation": diagnosis.explanation}
    return row | {name: float(columns[name][kept]) for name in kept_columns(columns)}, diagnosis


def _diagnose(
    columns: dict[str, np.ndarray], reported: np.ndarray | None, cell: Cell, kept: int, looked_at: int
) -> collapse.Diagnosis | None:
    # a rule judges the run that it would have trained: later epochs are there for other rules' patience
    trained = {name: values[: max(looked_at, kept + 1)] for name, values in columns.items()}
    at, judged = evaluated(trained), trajectory(trained)
    if reported is not None:
        judged |= {"oracle_f1_decision": reported[at]}
    elif "unlabeled_positive" not in judged:
        return None
    driver = columns["train_target"][at] if cell.method.mixup else None
    return collapse.diagnose_run(judged, int(np.searchsorted(at, kept)), driver=driver, epochs=at + 1)
