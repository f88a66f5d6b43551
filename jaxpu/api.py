"""The library without files: eight seeds on your own rows, or a whole experiment, in one call.

fit(x, s, method=..., prior=...) ──► Fit: scores, probabilities, share of positives, verdicts
sweep(experiment, data=...)      ──► Outcome: runs, provenance; with shard="i/n" a share of its seeds
gather(folder)                   ──► what all shards have left there
"""

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from jaxpu import config, kinds, runs, tracking
from jaxpu.config import ConfigError, Experiment
from jaxpu.data import Dataset

if TYPE_CHECKING:
    import polars as pl

    from jaxpu.fitted import Fit
    from jaxpu.runs.engine import Outcome, Progress

Scenario = Literal["case_control", "single_set", "single_set_overlap"]


def set_up(
    devices: int | None = None,
    cache: str | Path | None = None,
    *,
    address: str | None = None,
    process: str | None = None,
) -> bool:
    """Let runs go side by side on the cores, and keep compiled programs between processes, as the command does.

    Call it before jax is first used. Each core becomes a device of its own, so that runs are separate single-threaded
    programs, which beats many threads inside small matrix products.

    Args:
        devices: how many devices the CPU is; None = one a core.
        cache: folder of compiled programs, "" for none; None = ``JAXPU_CACHE_DIR``, or ``jaxpu/xla`` in the user's
            cache folder where there is one.
        address, process: make this process one of several that train one program (:mod:`jaxpu.runs.processes`):
            HOST:PORT of process 0 and "i/n", or "auto"; all then call the same, in the same order. None = alone.

    Returns:
        Whether this process is the one that reads and writes, which it is where it is alone.

    Raises:
        ConfigError, ResultsError: saying what to do.
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
    if address is None and process is None:
        return True
    from jaxpu.runs import processes

    processes.join(address, process)
    return processes.first()


def _cache_folder() -> str:
    if "JAXPU_CACHE_DIR" in os.environ:
        return os.path.expanduser(os.environ["JAXPU_CACHE_DIR"])
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return str((Path(home) if home else Path.home() / ".cache") / "jaxpu" / "xla")
    except RuntimeError:  # neither a home folder nor an entry for the user
        return ""


def sweep(
    experiment: Experiment | Mapping[str, Any],
    *,
    data: Dataset | None = None,
    folder: str | Path | None = None,
    fresh: bool = False,
    watch: "Callable[[Progress], None]" = lambda progress: None,
    shard: str | runs.Shard | None = None,
    track: tracking.Tracker | None = None,
) -> "Outcome":
    """Run an experiment of any kind: what ``jaxpu run`` does, without its tables and page.

    Args:
        experiment: of any kind, or the mapping that its YAML file would hold.
        data: your own dataset, instead of those that the experiment names.
        folder: where results are kept, and an interrupted experiment goes on; None = in memory.
        fresh: forget what the folder holds. watch: called with the progress.
        shard: "i/n" = only share i, from 0, of n equal shares of the seeds, in its own place below ``folder``, which
            all shares are given; see :func:`gather`.
        track: called with every finished run, its settings and epochs, in the end; see :mod:`jaxpu.tracking`.

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
    if asked.kind in ("pu", "multiclass") and data is not None:
        asked = _of_dataset(asked, data)
    kind = _kind(asked, data, nameless=folder is None)
    where = None if folder is None else Path(os.path.expanduser(folder))
    part = None if shard is None else runs.Shard.parse(shard)
    outcome = runs.run(asked, kind, where, fresh=fresh, watch=watch, shard=part)
    if track is not None:
        tracking.send(outcome.runs, track, asked)
    return outcome


def gather(folder: str | Path, *, data: Dataset | None = None) -> tuple[Any, "pl.DataFrame", dict[str, Any]]:
    """Put the runs of all shards of an experiment together, as if one process had made them: ``jaxpu gather``.

    Args:
        folder: that :func:`sweep` was given with each shard. data: the dataset, if it was given, too.

    Returns:
        The experiment, its runs, bit for bit those of one process, and provenance; runs and provenance are in the
        folder as well.

    Raises:
        ResultsError: naming shards that are missing, unfinished, doubled, or of another experiment.

    >>> import tempfile
    >>> small = {"data": {"name": "gaussians", "options": {"n": 100}}, "training": {"epochs": 1}}
    >>> folder = tempfile.mkdtemp()
    >>> for shard in ("0/2", "1/2"):
    ...     _ = sweep({**small, "model": {"name": "linear"}, "seeds": 2}, folder=folder, shard=shard)
    >>> gather(folder)[1].select("method", "seed", "epoch").rows()
    [('vpu', 0, 1), ('vpu', 1, 1)]
    """
    home = Path(os.path.expanduser(folder))
    experiment = runs.experiment_of(home)
    return experiment, *runs.gather(home, experiment, _kind(experiment, data))


def _kind(experiment: Any, data: Dataset | None, *, nameless: bool = False) -> Any:
    kind = kinds.kind_of(experiment)
    if experiment.kind in ("pu", "multiclass"):
        return kinds.WithData(kind, {"nameless": nameless}, data)
    if data is not None:
        raise ConfigError(f"data: an experiment of kind {experiment.kind} has data of its own; leave data out")
    return kind


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
    budget: int | None = None,
    precision: float | None = None,
    cost_ratio: float | None = None,
    **settings: Any,
) -> "Fit":
    """Score positive and unlabeled rows, estimate how many are positive, and say what became of the runs.

    "auto" cross-fits classifiers of labeled against unlabeled rows, chooses one without any true label, and scores each
    row by classifiers that have not seen it; it takes tables with strings, dates and gaps. A method's name trains
    networks, one a seed: features are standardised by the training rows, and a tenth of the rows (``validation``) is
    held out to choose the epoch, by a rule that needs no true label. Where fewer than 10 labeled rows would be held
    out, the last epoch counts; where a batch would hold fewer than 16, uPU, nnPU and PUDRa draw P and U apart (a
    mapping, ``{"preset": "nnpu", "batching": "mixed"}``, says otherwise).

    Args:
        x: features, an array (n, ...), a data frame, or a :class:`jaxpu.tables.Table`, which has the labels; for "auto"
            sparse rows, too.
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
        budget, precision, cost_ratio: where to cut, one of them: so many unlabeled rows are called positive; so large
            is the estimated share of positives among them; or a missed positive costs so many false alarms.
        **settings: of networks: training, data and selection, as in a configuration: ``epochs=20, lr=1e-3``.

    Raises:
        ConfigError: an unknown setting, method or value, with the choices. ValueError: rows that cannot be used.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(200, 2)), np.arange(200) % 2
    >>> x[y == 1] += 3
    >>> s = y * (rng.random(200) < 0.5)
    >>> fitted = fit(x, s, seeds=2)
    >>> fitted.scores.shape, fitted.predict_proba(x[:3]).shape, bool(abs(fitted.share.value - y[s == 0].mean()) < 0.1)
    ((2, 200), (3, 2), True)
    >>> fit(x, s, method="nnpu", prior=0.33, seeds=2, model="linear", epochs=2).scores.shape
    (2, 200)
    """
    from jaxpu import own  # scikit-learn and all estimators, which experiments do without
    from jaxpu.prior import cut_of

    cut = cut_of(budget, precision, cost_ratio)
    if own.is_auto(method):
        idle = {"model": model, "optimizer": optimizer, "folder": folder, **settings}
        if used := [name for name, value in idle.items() if value is not None]:
            raise ConfigError(
                f"fit: {used[0]} is a setting of networks, and method is 'auto'; name a method, or leave it out"
            )
        return own.auto(x, s, y, method, prior, seeds, scenario, random_state, cut)
    rows = own.for_networks(x, s, y)
    raw = own.settings_of(settings, method, prior, seeds, model, optimizer, scenario, rows)
    # all is checked before the prior is estimated
    experiment = _of_dataset(config.parse(raw, where="fit"), rows.dataset)
    share = own.share_of(rows, prior, random_state)
    experiment = dataclasses.replace(experiment, data=dataclasses.replace(experiment.data, prior=share.value))
    outcome = sweep(experiment, data=rows.dataset, folder=folder)
    if outcome.failures:
        raise runs.ResultsError("; ".join(outcome.failures))
    return own.network_fit(rows, share, experiment, outcome, cut)
