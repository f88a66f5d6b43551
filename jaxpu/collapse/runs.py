"""The rules for one run: did training fail, or stop too early, or was the wrong epoch selected?

A run is a trajectory of test metrics, one entry an epoch, and the epoch that a selection rule kept. If the
selected epoch is healthy so is the run, or it is transient. Otherwise the first of the first four rules that
holds is the verdict, and if none does, that of the selected epoch (:mod:`jaxpu.collapse.rules`).

==================  ======================================================================================
verdict             rule
==================  ======================================================================================
stopped_early       collapsed at the last epoch, while a longer run of the same seed is healthy at its end
self_reinforcing    collapsed at the last epoch, and the driver went down with it: it ends at or below
                    driver_share of its reference, and moved together with the mean score
                    (|correlation| ≥ driver_correlation), or was as far down in every epoch: starved from the
                    start there is nothing that it could move together with
diverged            at the selected or the last epoch scores are not finite; or at the last epoch the loss
                    is not, or |loss| exceeds exploding_loss times its least value (or 1)
selection_artefact  the selected epoch is not healthy, and a later one is
transient           the selected and the last epoch are healthy, and lasting_epochs or more in a row were
                    collapsed, after an epoch that was healthy: a run that has not started has not collapsed
==================  ======================================================================================

An artefact asks for a *later* healthy epoch: a run that was healthy once and then collapsed has failed,
whichever epoch was kept. To judge training apart from selection, diagnose with ``selected=-1``, the last
epoch.

The driver is what a run feeds itself: the mean target μ of a soft-label method, the share of examples that
its filter lets through; low means starved. That it goes down with the scores is what a feedback loop looks
like, and not yet a proof of one: only cutting the loop (an anchor, no filter) is.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import ArrayLike

from jaxpu.collapse.epochs import diagnosis_at
from jaxpu.collapse.explanations import explain_run
from jaxpu.collapse.rules import Assessment, Metrics, assess, fallen
from jaxpu.collapse.verdicts import DEFAULT_THRESHOLDS, Diagnosis, Thresholds, Verdict

RUN_ORDER: tuple[Verdict, ...] = (
    Verdict.STOPPED_EARLY,
    Verdict.SELF_REINFORCING,
    Verdict.DIVERGED,
    Verdict.SELECTION_ARTEFACT,
)
"""Precedence where the selected epoch is not healthy: failing training goes before failing selection."""


def diagnose_run(
    trajectory: Metrics | Assessment,
    selected: int,
    *,
    loss: ArrayLike | float | None = None,
    longer: Metrics | None = None,
    driver: ArrayLike | None = None,
    driver_reference: float | None = None,
    epochs: ArrayLike | None = None,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Diagnosis:
    """Say in what way a run fails.

    Args:
        trajectory: Metrics of the epochs trained, arrays (epochs,): those of `assess`, and if they are
            there score_mean (needed with a driver) and loss. Other columns are ignored. Or what `assess` says of
            them, as of many runs at once, with these thresholds.
        selected: Index of the selected epoch, from 0; negative ones count from the end.
        loss: (epochs,) that of training, if the trajectory does not hold it.
        longer: Trajectory of a longer run of the same seed.
        driver: (epochs,) what the run feeds itself, low = starved; if NaN anywhere it tells nothing.
        driver_reference: What the driver would be if nothing were wrong, for example 1 for the share that a
            filter lets through. By default its maximum up to the epoch where the final collapse begins.
        epochs: (epochs,) the numbers that the epochs have elsewhere, to name them by; from 1 if not given.
        thresholds: The numbers that the rules compare with.

    Returns:
        The diagnosis. Evidence: f1, auc and so on are those of the selected epoch, end_… those of the last.

    Raises:
        ValueError: a metric is missing; arrays are not of one shape (epochs ≥ 1,); selected is out of range;
            longer is not longer.

    >>> run = {"oracle_f1": [0.0, 0.02, 0.87], "oracle_f1_best": [0.80, 0.81, 0.88],
    ...        "oracle_auc": [0.90, 0.90, 0.95], "predicted_positive": [0.0, 0.004, 0.4],
    ...        "score_sd": [0.1, 0.1, 0.3], "prevalence": [0.4, 0.4, 0.4]}
    >>> print(diagnose_run(run, selected=1).explanation)
    Epoch 2 was selected, with F1 0.020 at AUC 0.900, but 1 later epoch is healthy, the first being
    epoch 3 with F1 0.870: the selection failed.
    """
    run = _assess(trajectory, thresholds)
    at = _index(selected, run.collapsed.size)
    epoch = diagnosis_at(run, at)
    named = np.arange(1, run.collapsed.size + 1) if epochs is None else _aligned("epochs", epochs, run)
    evidence = epoch.evidence | {"selected_epoch": float(named[at])} | _course(run, at, named)
    if loss is None and not isinstance(trajectory, Assessment):
        loss = trajectory.get("loss")
    if loss is not None:
        evidence |= _loss(_aligned("loss", loss, run))
    if longer is not None:
        evidence |= _longer(_assess(longer, thresholds), run.collapsed.size)
    if driver is not None:
        evidence |= _driver(_aligned("driver", driver, run), run, driver_reference)
    holding = _holding(epoch, evidence, thresholds)
    verdict = _headline(epoch, holding)
    flags = tuple(dict.fromkeys((verdict, *holding, *epoch.flags)))
    return Diagnosis(verdict, flags, evidence, explain_run(verdict, epoch.explanation, evidence))


def onset_epoch(collapsed: ArrayLike, *, lasting: int = 1) -> int | None:
    """Find where a collapse begins.

    Args:
        collapsed: (epochs,) bool, for example from `collapsed_epochs` or f1 < 0.1.
        lasting: How many epochs in a row it must last.

    Returns:
        The first epoch of the first such stretch, counted from 1 as in the recorded column ``epoch``; None if
        there is none (or no epoch at all).

    >>> onset_epoch([True, False, False, True, True], lasting=2)
    4
    """
    starts, lengths = _stretches(np.asarray(collapsed, dtype=bool))
    lasting_starts = starts[lengths >= lasting]
    return int(lasting_starts[0]) + 1 if lasting_starts.size else None


def _headline(epoch: Diagnosis, holding: tuple[Verdict, ...]) -> Verdict:
    if epoch.verdict == Verdict.HEALTHY:
        return Verdict.TRANSIENT if Verdict.TRANSIENT in holding else Verdict.HEALTHY
    return next((verdict for verdict in RUN_ORDER if verdict in holding), epoch.verdict)


def _holding(epoch: Diagnosis, e: Mapping[str, float], thresholds: Thresholds) -> tuple[Verdict, ...]:
    """The run rules that hold, read off the evidence."""
    finite = np.isfinite(e["score_sd"]) and np.isfinite(e["end_score_sd"])
    exploded = "loss_end" in e and not e["loss_growth"] <= thresholds.exploding_loss
    both_healthy = epoch.verdict == Verdict.HEALTHY and e["end_healthy"]
    rules = {
        Verdict.STOPPED_EARLY: e["end_collapsed"] and e.get("longer_healthy", 0.0),
        Verdict.SELF_REINFORCING: e["end_collapsed"] and "driver_end" in e and _went_down(e, thresholds),
        Verdict.DIVERGED: not finite or exploded,
        Verdict.SELECTION_ARTEFACT: epoch.verdict != Verdict.HEALTHY and e["healthy_later"],
        Verdict.TRANSIENT: both_healthy and e["longest_collapse"] >= thresholds.lasting_epochs,
    }
    return tuple(verdict for verdict, holds in rules.items() if holds)


def _went_down(e: Mapping[str, float], thresholds: Thresholds) -> bool:
    down = e["driver_end"] <= thresholds.driver_share * e["driver_reference"]
    together = abs(e["driver_correlation"]) >= thresholds.driver_correlation
    always_down = e["driver_most"] <= thresholds.driver_share * e["driver_reference"]
    return down and (together or always_down)


def _course(run: Assessment, at: int, named: Shaped[np.ndarray, " epochs"]) -> dict[str, float]:
    """What the epochs before and after the selected one were like."""
    f1, healthy, collapsed = run.numbers["f1"], run.flags[Verdict.HEALTHY], run.collapsed
    later = np.flatnonzero(healthy[at + 1 :]) + at + 1
    starts, lengths = _stretches(fallen(run))
    longest = int(np.argmax(lengths)) if lengths.size else None
    return {
        "epochs": float(collapsed.size),
        "last_epoch": float(named[-1]),
        "healthy_epochs": float(healthy.sum()),
        "healthy_later": float(later.size),
        "first_healthy_later": float(named[later[0]]) if later.size else np.nan,
        "first_healthy_later_f1": float(f1[later[0]]) if later.size else np.nan,
        "longest_collapse": 0.0 if longest is None else float(lengths[longest]),
        "longest_collapse_from": np.nan if longest is None else float(named[starts[longest]]),
        "onset_epoch": float(named[_stretches(collapsed)[0][-1]]) if collapsed[-1] else np.nan,
        "end_collapsed": float(collapsed[-1]),
        "end_healthy": float(healthy[-1]),
        "end_f1": float(f1[-1]),
        "end_auc": float(run.numbers["auc"][-1]),
        "end_score_sd": float(run.numbers["score_sd"][-1]),
    }


def _loss(loss: Float[np.ndarray, " epochs"]) -> dict[str, float]:
    size = np.abs(loss)
    least = np.min(size, initial=np.inf, where=np.isfinite(size))
    growth = size[-1] / max(least, 1.0) if np.isfinite(size[-1]) else np.nan
    return {"loss_end": float(loss[-1]), "loss_growth": float(growth)}


def _longer(longer: Assessment, epochs: int) -> dict[str, float]:
    if longer.collapsed.size <= epochs:
        raise ValueError(f"expected longer to have more than {epochs} epochs; got {longer.collapsed.size}")
    return {
        "longer_epochs": float(longer.collapsed.size),
        "longer_f1": float(longer.numbers["f1"][-1]),
        "longer_healthy": float(longer.flags[Verdict.HEALTHY][-1]),
    }


_DRIVER_NAMES = ("driver_end", "driver_reference", "driver_most", "driver_correlation")


def _driver(driver: Float[np.ndarray, " epochs"], run: Assessment, reference: float | None) -> dict[str, float]:
    """Where the driver ends, against what, and whether it moved with the mean score."""
    if "score_mean" not in run.numbers:
        raise ValueError("a driver is compared with the mean score: expected score_mean in the trajectory")
    mean = run.numbers["score_mean"]
    if not (np.isfinite(driver).all() and np.isfinite(mean).all()):
        return dict.fromkeys(_DRIVER_NAMES, float("nan"))
    onset = int(_stretches(run.collapsed)[0][-1]) if run.collapsed[-1] else driver.size - 1
    against = float(driver[: onset + 1].max()) if reference is None else reference
    varies = np.ptp(driver) > 0 and np.ptp(mean) > 0
    return {
        "driver_end": float(driver[-1]),
        "driver_reference": against,
        "driver_most": float(driver.max()),
        "driver_correlation": float(np.corrcoef(driver, mean)[0, 1]) if varies else 0.0,
    }


def _assess(trajectory: Metrics | Assessment, thresholds: Thresholds) -> Assessment:
    run = trajectory if isinstance(trajectory, Assessment) else assess(trajectory, thresholds=thresholds)
    if run.collapsed.ndim != 1 or not run.collapsed.size:
        raise ValueError(f"expected metrics of shape (epochs,), at least one; got {run.collapsed.shape}")
    return run


def _aligned(name: str, values: ArrayLike | float, run: Assessment) -> Float[np.ndarray, " epochs"]:
    column = np.asarray(values, dtype=np.float64)
    if column.shape != run.collapsed.shape:
        raise ValueError(f"expected {name} of shape {run.collapsed.shape}, one entry an epoch; got {column.shape}")
    return column


def _index(selected: int, epochs: int) -> int:
    if not -epochs <= selected < epochs:
        raise ValueError(f"selected must be the index of one of {epochs} epochs; got {selected}")
    return int(selected) % epochs


def _stretches(
    collapsed: Bool[np.ndarray, " epochs"],
) -> tuple[Int[np.ndarray, " stretches"], Int[np.ndarray, " stretches"]]:
    """Start index and length of every stretch of collapsed epochs."""
    edges = np.flatnonzero(np.diff(collapsed.astype(np.int8), prepend=0, append=0))
    return edges[::2], edges[1::2] - edges[::2]
