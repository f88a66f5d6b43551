"""The library without files: eight seeds on your own rows, or a whole experiment, in one call.

fit(x, s, method=..., prior=...) ──► Fit: scores, probabilities, share of positives, verdicts
sweep(experiment, data=...)      ──► Outcome: runs, provenance
"""

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from jaxpu import config, kinds, own, runs
from jaxpu.config import ConfigError, Experiment, unknown
from jaxpu.data import Dataset
from jaxpu.fitted import Fit
from jaxpu.own import is_auto

if TYPE_CHECKING:
    from jaxpu.runs.engine import Outcome, Progress

Scenario = Literal["case_control", "single_set", "single_set_overlap"]


def set_up(devices: int | None = None, cache: str | Path | None = None) -> None:
    """Let runs go side by side on the cores, and keep compiled programs between processes, as the command does.

    Call it before jax is first used. Each core becomes a device of its own, so that runs are separate single-threaded
    programs, which beats many threads inside small matrix products.

    Args:
        devices: how many devices the CPU is; None = one a core.
        cache: folder of compiled programs, "" for none; None = ``JAXPU_CACHE_DIR``, or ``jaxpu/xla`` in the user's
            cache folder where there is one.
    """
    import jax

    options = cast(Any, jax.config)  # jax adds its options as attributes while it is imported
    flags = os.environ.get("XLA_FLAGS", "")
    if options.jax_num_cpu_devices < 1 and "xla_force_host_platform_device_count" not in flags:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        jax.config.update("jax_num_cpu_devices", devices or cores)
    folder = _cache_folder() if cache is None else str(cache)
    if folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def _cache_folder() -> str:
    if "JAXPU_CACHE_DIR" in os.environ:
        return os.path.expanduser(os.environ["JAXPU_CACHE_DIR"])
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return str((Path(home) if home else Path.home() / ".cache") / "jaxpu" / "xla")
    except RuntimeError:  # neither a home folder nor an entry for the user
        return ""


@dataclasses.dataclass(frozen=True)
class _WithData:
    """A kind of experiment on a dataset that stands in no registry, or with functions that have no name."""

    kind: Any
    options: dict[str, Any]
    dataset: Dataset | None

    def runs(self, experiment: Any) -> Any:
        return self.kind.runs(experiment, self.dataset, **self.options)

    def jobs(self, experiment: Any, found: Any) -> Any:
        return self.kind.jobs(experiment, found, self.dataset)


def sweep(
    experiment: Experiment | Mapping[str, Any],
    *,
    data: Dataset | None = None,
    folder: str | Path | None = None,
    fresh: bool = False,
    watch: "Callable[[Progress], None]" = lambda progress: None,
) -> "Outcome":
    """Run an experiment of any kind: what ``jaxpu run`` does, without its tables and page.

    Args:
        experiment: of any kind, or the mapping that its YAML file would hold.
        data: your own dataset, instead of those that the experiment names.
        folder: where results are kept, and an interrupted experiment goes on; None = in memory.
        fresh: forget what the folder holds. watch: called with the progress.

    Returns:
        ``runs``, a frame with a row an epoch and run, ``provenance``, ``failures``, and ``kept(run_id)``.
        :func:`jaxpu.analysis.tables` makes summaries and verdicts of the runs.

    Raises:
        ConfigError, ResultsError: saying what to do.

    >>> small = {"data": {"name": "gaussians", "options": {"n": 100}}, "training": {"epochs": 1}}
    >>> sweep({**small, "model": {"name": "linear"}, "seeds": 2}).runs.select("method", "seed", "epoch").rows()
    [('vpu', 0, 1), ('vpu', 1, 1)]
    """
    asked: Any = config.parse(experiment) if isinstance(experiment, Mapping) else experiment
    kind: Any = kinds.kind_of(asked)
    if asked.kind in ("pu", "multiclass"):
        asked = asked if data is None else _of_dataset(asked, data)
        kind = _WithData(kind, {"nameless": folder is None}, data)
    elif data is not None:
        raise ConfigError(f"data: an experiment of kind {asked.kind} has data of its own; leave data out")
    return runs.run(asked, kind, None if folder is None else Path(os.path.expanduser(folder)), fresh=fresh, watch=watch)


def _of_dataset(experiment: Experiment, dataset: Dataset) -> Experiment:
    swept = [path for path in experiment.grid_columns if path.startswith("data.name") or path.startswith("data.file")]
    if swept:
        raise ConfigError(f"data: the grid sets {swept[0]}, and one dataset was given; leave one out")
    return dataclasses.replace(experiment, data=dataclasses.replace(experiment.data, name=dataset.name, options={}))


def fit(
    x: Any,
    s: Any = None,
    *,
    y: Any = None,
    method: Any = "auto",
    prior: float | None = None,
    seeds: int | None = None,
    model: Any = None,
    optimizer: Any = None,
    scenario: Scenario = "single_set",
    folder: str | Path | None = None,
    random_state: int = 0,
    **settings: Any,
) -> Fit:
    """Score positive and unlabeled rows, estimate how many are positive, and say what became of the runs.

    "auto" cross-fits classifiers of labeled against unlabeled rows, chooses one without any true label, and scores each
    row by classifiers that have not seen it; it takes tables with strings, dates and gaps. A method's name trains
    networks, one a seed: features are standardised by the training rows, and a tenth of the rows (``validation``) is
    held out to choose the epoch, by a rule that needs no true label.

    Args:
        x: features, an array (n, ...), a data frame, or a :class:`jaxpu.tables.Table`, which has the labels.
        s: observed labels (n,): 1 where a row is labeled positive, else unlabeled; None = drawn from y (networks only).
        y: true labels (n,) if they are known: for metrics and verdicts, never for training.
        method: "auto"; a scikit-learn classifier, or a mapping of several by name, in place of its candidates; the
            name of a preset (``jaxpu list``), a mapping that changes one, or a :class:`jaxpu.methods.Method`.
        prior: π, the share of positives among the unlabeled rows; None = estimated (:func:`jaxpu.prior.bbe`).
        seeds: how many networks (8), or cross-fittings of "auto" (4).
        model: a preset's name, a mapping of settings, a :class:`jaxpu.config.ModelConfig`,
            a Flax module or a pair of functions (init, apply). optimizer: a name, or a function of
            :class:`jaxpu.train.optimizers.Numbers` to an optax transformation.
        scenario: how the labeled rows came about, see :class:`jaxpu.config.DataConfig`.
        folder: where the runs of networks are kept; None = in memory. random_state: of "auto", and of the estimate.
        **settings: of networks: training, data and selection, as in a configuration: ``epochs=20, lr=1e-3``.

    Raises:
        ConfigError: an unknown setting, method or value, with the choices. ValueError: rows that cannot be used.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(200, 2)), np.arange(200) % 2
    >>> x[y == 1] += 3
    >>> s = y * (rng.random(200) < 0.5)
    >>> fitted = fit(x, s, seeds=2)
    >>> fitted.scores.shape, fitted.predict_proba(x[:3]).shape, abs(fitted.share.value - y[s == 0].mean()) < 0.1
    ((2, 200), (3, 2), True)
    >>> fit(x, s, method="nnpu", prior=0.33, seeds=2, model="linear", epochs=2).scores.shape
    (2, 200)
    """
    if is_auto(method):
        idle = {"model": model, "optimizer": optimizer, "folder": folder, **settings}
        if used := [name for name, value in idle.items() if value is not None]:
            raise ConfigError(
                f"fit: {used[0]} is a setting of networks, and method is 'auto'; name a method, or leave it out"
            )
        return own.auto(x, s, y, method, prior, seeds, scenario, random_state)
    groups: dict[str, dict[str, Any]] = {"training": {}, "data": {}, "selection": {}}
    for name, value in settings.items():
        _put(groups, name, value)
    groups["selection"].setdefault("rules", ["pu_accuracy", "last"])
    groups["selection"].setdefault("keep_best", True)
    if y is None:
        groups["data"].setdefault("test", 0.0)
    if optimizer is not None:
        groups["training"]["optimizer"] = optimizer
    rows = own.for_networks(x, s, y)
    groups["data"] |= {"prior": 0.5 if prior is None else prior, "scenario": scenario}
    raw = {**groups, "name": "fit", "methods": [method], "seeds": 8 if seeds is None else seeds, "model": _model(model)}
    experiment = _of_dataset(
        config.parse(raw, where="fit"), rows.dataset
    )  # all is checked before the prior is estimated
    share = own.share_of(rows, prior, random_state)
    experiment = dataclasses.replace(experiment, data=dataclasses.replace(experiment.data, prior=share.value))
    outcome = sweep(experiment, data=rows.dataset, folder=folder)
    if outcome.failures:
        raise runs.ResultsError("; ".join(outcome.failures))
    return own.network_fit(rows, share, experiment, outcome)


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
