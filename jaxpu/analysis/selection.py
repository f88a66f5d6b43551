"""Selection rules replayed on recorded trajectories: which epoch each keeps, and what the run scores there.

An epoch improves on the best so far when it beats it by more than ``min_delta``, and a rule stops once ``patience``
epochs have passed without improvement. Training (:mod:`jaxpu.train`) follows the same rules on the device.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int

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
    runs, bounds = _together(runs)
    recorded = _Recorded(columns_of(runs))
    rules = [rule for rule in experiment.selection.rules if rule.column is None or rule.column in recorded.columns]
    rows: list[dict[str, Any]] = []
    diagnoses: list[collapse.Diagnosis] = []
    firsts = runs.select(identity)[bounds[:-1]].iter_rows()
    for first, start, end in zip(firsts, bounds[:-1], bounds[1:], strict=True):
        head, cell = dict(zip(identity, first, strict=True)), cells[first[1:-1]]
        for rule in rules:
            row, diagnosis = _select_one(recorded, slice(start, end), cell, rule)
            rows.append(head | row)
            diagnoses += [diagnosis] if diagnosis else []
    return pl.DataFrame(rows, infer_schema_length=None), diagnoses


def _together(runs: pl.DataFrame) -> tuple[pl.DataFrame, list[int]]:
    """The rows of each run next to each other, and where runs begin, and the last one ends."""
    stretches = runs["run_id"].rle_id()
    if runs.height and stretches[-1] + 1 != runs["run_id"].n_unique():
        runs = pl.concat(runs.partition_by("run_id", maintain_order=True))
        stretches = runs["run_id"].rle_id()
    return runs, [*np.flatnonzero(np.diff(stretches.to_numpy(), prepend=-1)).tolist(), runs.height]


class _Recorded:
    """What was recorded of all runs, one behind the other, and what is made of it once for all runs and rules."""

    def __init__(self, columns: dict[str, np.ndarray]):
        self.columns, self.kept = columns, kept_columns(columns)
        self.known = _measured(columns)
        self._assessed: dict[str | None, collapse.Assessment] = {}

    def assessed(self, reported: str | None) -> collapse.Assessment | None:
        """Every epoch by its own numbers, with F1 as reported; None where nothing was recorded to judge by."""
        if reported not in self._assessed:
            judged = _judged(self.columns)
            if reported is None and "unlabeled_positive" not in judged:
                return None
            of_rule = {} if reported is None else {"oracle_f1_decision": self.columns[reported]}
            self._assessed[reported] = collapse.assess(judged | of_rule)
        return self._assessed[reported]

    def evaluated(self, run: slice) -> Int[np.ndarray, " k"]:
        """:func:`evaluated` of a run, from its first epoch."""
        found = np.flatnonzero(self.known[run])
        return found if len(found) else np.arange(run.stop - run.start)


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
    known = np.flatnonzero(_measured(columns))
    return known if len(known) else np.arange(len(columns["train_loss"]))


def _measured(columns: dict[str, np.ndarray]) -> Bool[np.ndarray, " rows"]:
    """Whether any number of test or validation is known."""
    known = np.zeros(len(columns["train_loss"]), bool)
    for name, values in columns.items():
        if name.startswith(("test_", "val")):
            known |= ~np.isnan(values)
    return known


def trajectory(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns of one run as :func:`jaxpu.collapse.diagnose_run` takes them, of the epochs that were evaluated.

    Those of the test rows; where their labels are not known, what P and U tell of the validation rows.
    """
    at = evaluated(columns)
    judged = {name: values[at] for name, values in _judged(columns).items()}
    return judged | {"loss": columns["train_loss"][at]}


def _judged(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    judged = "test_" if "test_oracle_f1" in columns else "val_"
    return {name.removeprefix(judged): values for name, values in columns.items() if name.startswith(judged)}


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
    recorded: _Recorded, run: slice, cell: Cell, choice: RuleChoice
) -> tuple[dict[str, Any], collapse.Diagnosis | None]:
    rule, settings, columns, epochs = choice.entry, cell.selection, recorded.columns, run.stop - run.start
    if choice.column is None:
        kept, looked_at, defined = epochs - 1, epochs, True
    else:
        kept, looked_at, defined = replay(
            columns[choice.column][run], sign=rule.sign, patience=settings.patience, min_delta=settings.min_delta
        )
        at = recorded.evaluated(run)
        kept = kept if defined else int(at[max(np.searchsorted(at, kept, "right") - 1, 0)])
    row: dict[str, Any] = {
        "selection": choice.name,
        "epoch": kept + 1,
        "epochs_run": looked_at,
        "rule_defined": defined,
        "decision": cell.method.decision,
    }
    reported = name if (name := f"test_{rule.reported}") in columns else None
    if reported is not None:
        f1 = columns[reported][run]
        row |= {"f1": float(f1[kept]), "regret": float(np.nanmax(f1) - f1[kept])}
    diagnosis = _diagnose(recorded, run, reported, cell, kept, looked_at)
    if diagnosis is not None:
        row |= {"verdict": str(diagnosis.verdict), "explanation": diagnosis.explanation}
    return row | {name: float(columns[name][run.start + kept]) for name in recorded.kept}, diagnosis


def _diagnose(
    recorded: _Recorded, run: slice, reported: str | None, cell: Cell, kept: int, looked_at: int
) -> collapse.Diagnosis | None:
    assessed = recorded.assessed(reported)
    if assessed is None:
        return None
    # a rule judges the run that it would have trained: later epochs are there for other rules' patience
    at = recorded.evaluated(slice(run.start, run.start + max(looked_at, kept + 1)))
    rows = run.start + at
    driver = recorded.columns["train_target"][rows] if cell.method.mixup else None
    loss = recorded.columns["train_loss"][rows]
    selected = int(np.searchsorted(at, kept))
    return collapse.diagnose_run(assessed.of(rows), selected, loss=loss, driver=driver, epochs=at + 1)
