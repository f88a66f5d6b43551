"""``jaxpu run --dry-run``: what an experiment will cost, from a short calibration."""

import math
from typing import Any


def dry_run(experiment: Any) -> int:
    """Print cells, runs, programs, memory and time; the exit code."""
    from jaxpu import config, kinds
    from jaxpu.runs.forecast import forecast

    cells = len(config.expand(experiment))
    found = forecast(experiment, kinds.kind_of(experiment), least=_least(experiment))
    print(f"{cells} cells, {found.runs} runs, {len(found.programs)} programs")
    for one in found.programs:
        memory = "" if math.isnan(one.bytes) else f", {one.bytes / 2**20:.0f} MiB"
        cost = f"compiled in {one.compile_seconds:.0f} s, {one.epoch_seconds:.3g} s an epoch, {_time(one.seconds())}"
        tried = "not tried, its runs need others" if math.isnan(one.epoch_seconds) else cost
        print(
            f"  {one.dataset}: {one.runs} runs of {_listed(one.methods)}, {one.epochs} epochs, {one.at_once} at once"
            f"{memory}; {tried}"
        )
    low, high = found.range
    compiling = sum(one.compile_seconds for one in found.programs)
    early = f", between {_time(low)} (every run ends early) and {_time(high)} (none does)" if low < high else ""
    untried = sum(math.isnan(one.epoch_seconds) for one in found.programs)
    without = f"; without {untried} programs that were not tried" if untried else ""
    print(
        f"time: about {_time(found.seconds)} of training{early}; programs are compiled in {_time(compiling)}{without}"
    )
    print(f"memory: {found.peak_bytes / 2**20:.0f} MiB in this process")
    return 0


def _least(experiment: Any) -> int | None:
    """Epochs before which no run ends: those of the patience of its rules, up to the end of a segment."""
    selection = getattr(experiment, "selection", None)
    if selection is None or not selection.stop or not all(rule.column for rule in selection.rules):
        return None
    segment = experiment.placement.segment
    return -(-(selection.patience + 1) // segment) * segment


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} methods"


def _time(seconds: float) -> str:
    """A time for people.

    >>> _time(3.2), _time(200), _time(9000)
    ('3 s', '3.3 min', '2.5 h')
    """
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
