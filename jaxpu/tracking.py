"""Runs sent to a tracker of experiments: TensorBoard, MLflow, Weights & Biases, or a function of your own.

runs, a row an epoch ─► send ─► tracker(run_id, settings, epochs), once a run

A tracker is a function, so another service is ten lines of yours. Those of this module are extras
(``pip install 'jaxpu[mlflow]'``); each finds a run by its identity, so that what was sent is not sent twice.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from jaxpu import config
from jaxpu.config import ConfigError, unknown

Epochs = Sequence[Mapping[str, float]]
Tracker = Callable[[str, Mapping[str, Any], Epochs], None]
"""Called once a run: its identity, its settings by dotted path, and its epochs: ``epoch`` and all that is finite."""

BOOKKEEPING = ("name", "description", "grid", "methods", "claims", "figures", "placement", "seeds", "first_seed")
"""What of an experiment is no setting of a single run."""


def send(runs: pl.DataFrame, tracker: Tracker, experiment: Any = None) -> int:
    """Send finished runs to a tracker.

    Args:
        runs: as :func:`jaxpu.sweep` gives, and ``runs.parquet`` of a results folder holds. tracker: who is called.
        experiment: whose settings are sent with those that differ between runs; None = only the latter.

    Returns:
        How many runs there were.

    >>> frame = pl.DataFrame({"run_id": ["a", "a"], "method": "vpu", "seed": 0, "epoch": [1, 2], "loss": [0.5, None]})
    >>> send(frame, lambda *run: print(*run))
    a {'method': 'vpu', 'seed': 0} [{'epoch': 1, 'loss': 0.5}, {'epoch': 2}]
    1
    """
    common = {} if experiment is None else _settings(experiment)
    names = runs.columns[1 : runs.columns.index("seed") + 1]  # what tells runs apart stands in front
    scalars = [name for name, kind in runs.schema.items() if kind.is_numeric() or kind == pl.Boolean]
    groups = runs.partition_by("run_id", maintain_order=True)
    for rows in groups:
        first = rows.row(0, named=True)
        settings = {**common, **{name: first[name] for name in names if first[name] is not None}}
        epochs = [
            {name: value for name, value in row.items() if value is not None and math.isfinite(value)}
            for row in rows.select(name for name in scalars if name not in names and name != "run_id").rows(named=True)
        ]
        tracker(first["run_id"], settings, epochs)
    return len(groups)


def named(name: str, folder: Path) -> Tracker:
    """The tracker that the command calls by a name, with what it needs next to the results.

    >>> named("tensorflow", Path("x"))
    Traceback (most recent call last):
    jaxpu.settings.ConfigError: unknown tracker 'tensorflow' (did you mean 'tensorboard'?); choose from ...
    """
    if name not in TRACKERS:
        raise ConfigError(unknown("tracker", name, list(TRACKERS)))
    return tensorboard(folder / "tensorboard") if name == "tensorboard" else TRACKERS[name](folder.name)


def tensorboard(folder: str | Path) -> Tracker:
    """Event files, a folder a run: ``tensorboard --logdir FOLDER``. A run whose folder is there is left as it is."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise _missing("tensorboard") from None

    def track(run_id: str, settings: Mapping[str, Any], epochs: Epochs) -> None:
        where = Path(folder).expanduser() / run_id
        if where.exists():
            return
        with SummaryWriter(str(where)) as writer:
            writer.add_text("settings", "\n".join(f"    {name}: {value}" for name, value in settings.items()))
            for step, values in _steps(epochs):
                for name, value in values.items():
                    writer.add_scalar(name, value, step)

    return track


def mlflow(experiment: str = "jaxpu", uri: str | None = None) -> Tracker:
    """Runs of an experiment of MLflow.

    Args:
        experiment: its name there. uri: of the server or store; None = what MLflow takes by itself.
    """
    try:
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise _missing("mlflow") from None
    client = MlflowClient(uri)
    there = client.get_experiment_by_name(experiment)
    where = client.create_experiment(experiment) if there is None else there.experiment_id

    def track(run_id: str, settings: Mapping[str, Any], epochs: Epochs) -> None:
        if client.search_runs([where], f"tags.jaxpu_run = '{run_id}' and attributes.status = 'FINISHED'"):
            return
        run = client.create_run(where, run_name=_title(settings), tags={"jaxpu_run": run_id}).info.run_id
        params = [Param(name, str(value)[:500]) for name, value in settings.items()]
        for k in range(0, len(params), 100):  # of a call MLflow takes 100 settings, and 1,000 numbers
            client.log_batch(run, params=params[k : k + 100])
        metrics = [Metric(name, value, 0, step) for step, values in _steps(epochs) for name, value in values.items()]
        for k in range(0, len(metrics), 1000):
            client.log_batch(run, metrics=metrics[k : k + 1000])
        client.set_terminated(run)

    return track


def wandb(project: str = "jaxpu", **options: Any) -> Tracker:
    """Runs of a project of Weights & Biases; they keep their identity there, and one that is sent again is replaced.

    Args:
        project: its name. **options: of ``wandb.init``: ``entity="me"``, ``mode="offline"``.
    """
    try:
        import wandb as service
    except ImportError:
        raise _missing("wandb") from None

    def track(run_id: str, settings: Mapping[str, Any], epochs: Epochs) -> None:
        named = {"project": project, "id": run_id, "name": _title(settings)}
        run = service.init(config=dict(settings), reinit=True, **named, **options)
        for step, values in _steps(epochs):
            run.log(dict(values), step=step)
        run.finish()

    return track


TRACKERS: dict[str, Callable[..., Tracker]] = {"tensorboard": tensorboard, "mlflow": mlflow, "wandb": wandb}
"""Those that the command knows by name."""


def _missing(extra: str) -> ConfigError:
    return ConfigError(f"the tracker {extra!r} is not installed; pip install 'jaxpu[{extra}]'")


def _title(settings: Mapping[str, Any]) -> str:
    return " ".join(str(settings[name]) for name in ("dataset", "method", "seed") if name in settings)


def _steps(epochs: Epochs) -> list[tuple[int, dict[str, float]]]:
    """The epoch's number and the other values, of each epoch."""
    return [
        (int(values.get("epoch", k + 1)), {name: float(v) for name, v in values.items() if name != "epoch"})
        for k, values in enumerate(epochs)
    ]


def _settings(experiment: Any) -> dict[str, Any]:
    """What is set for all runs, by dotted path."""
    found = config.flat(config.written(config.to_dict(experiment)))
    kept = {path: value for path, value in found.items() if path.partition(".")[0] not in BOOKKEEPING}
    return {
        path: value if isinstance(value, str | int | float) else str(value)
        for path, value in kept.items()
        if value is not None and value != {}
    }
