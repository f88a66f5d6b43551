"""``jaxpu diagnose``: the verdict on scores that any program wrote."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    import numpy as np

    from jaxpu.collapse import Diagnosis
    from jaxpu.collapse.files import Scores


@dataclass(frozen=True)
class Diagnose:
    """Judge the scores in a CSV, Parquet or npz file that any program wrote: does the classifier fail, and in what way?

    With one set of scores it is judged as it is. With several epochs (--epoch names their column; in an npz the
    scores have shape (epochs, n)) the run is judged: did training fail, or was the wrong epoch kept?

    Exit status: 0 healthy (or healthy again), 1 the scores fail, 2 the file cannot be read or judged.
    """

    file: Annotated[Path, tyro.conf.Positional]
    """The file: .csv or .parquet with a row an example, or .npz."""
    scores: str = "score"
    """Column or array of the scores, larger = more positive."""
    labels: str = "label"
    """Column or array of the true labels, 0 and 1."""
    observed: str | None = None
    """Column or array of observed labels, 1 = labeled positive and 0 or blank = unlabeled, in place of true ones."""
    prior: float | None = None
    """With --observed: the share of positives among the unlabeled rows; estimated from the scores if not given."""
    epoch: str | None = None
    """Column of the epoch, in a table with a row an example and epoch."""
    selected: str | None = None
    """The epoch that was kept, as the file names it (in an npz from 1); the last if not given."""
    threshold: float = 0.5
    """Scores above it are predicted positive; 0 for logits."""


def diagnose(command: Diagnose) -> int:
    """Print verdict, sentence and evidence; 0 if the classifier is healthy, 1 if it fails."""
    from jaxpu import collapse
    from jaxpu.collapse.files import read_scores
    from jaxpu.config import ConfigError

    if not math.isfinite(command.threshold):
        raise ConfigError(f"--threshold is {command.threshold}, expected a finite number; 0.5 for probabilities")
    try:
        labels = command.observed or command.labels
        names: Any = {"scores": command.scores, "labels": labels, "epoch": command.epoch}
        found = read_scores(command.file, **names, observed=command.observed is not None)
        measured, note = _unlabeled(found, command)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if len(found.scores) == 1 and measured is not None:
        judged = collapse.diagnose_epoch({name: column[0] for name, column in measured.items()})
    elif len(found.scores) == 1:
        judged = collapse.diagnose(found.scores[0], found.labels, threshold=command.threshold)
    else:
        trajectory = measured or collapse.score_trajectory(found.scores, found.labels, threshold=command.threshold)
        whole = all(name.lstrip("-").isdigit() for name in found.epochs)
        numbers = [int(name) for name in found.epochs] if whole else None
        judged = collapse.diagnose_run(trajectory, _selected(found, command), epochs=numbers)
    _print(judged, found, note)
    return int(judged.failing)


def _unlabeled(found: "Scores", command: Diagnose) -> "tuple[dict[str, np.ndarray] | None, str]":
    """What P and U tell of the scores, an entry an epoch, None where true labels are known; and what to say of π."""
    import numpy as np

    from jaxpu.collapse.label_free import measures

    if command.observed is None:
        if command.prior is not None:
            raise ValueError("--prior is for --observed; with true labels it is counted, so leave it out")
        return None, ""
    labeled = np.asarray(found.labels) == 1
    share, note = _share(np.asarray(found.scores[-1], float), labeled) if command.prior is None else (command.prior, "")
    return measures(np.asarray(found.scores, float), labeled, share, threshold=command.threshold), note


def _share(last: "np.ndarray", labeled: "np.ndarray") -> tuple[float, str]:
    """The prior as scores tell it, and what to say of it."""
    import numpy as np

    from jaxpu import prior

    none = "prior: none can be estimated from such scores, and {:.0f} % is taken; --prior gives another"
    if not (np.isfinite(last).all() and np.ptp(last)):
        return 0.5, none.format(50)
    share, area = prior.bbe(last, labeled), prior.auc(last, labeled)
    if area <= 0.5:  # P does not rank above U
        share = max(min(0.5, area), 0.5 / len(last))
        return share, none.format(100 * share)
    share = min(max(share, 0.5 / len(last)), 1 - 0.5 / len(last))
    return share, f"prior: {100 * share:.1f} % of the unlabeled rows, estimated from the scores; --prior gives another"


def _selected(found: "Scores", command: Diagnose) -> int:
    from jaxpu.config import ConfigError

    if command.selected is None:
        return len(found.epochs) - 1
    if command.selected not in found.epochs:
        names = ", ".join(found.epochs[:20]) + (", ..." if len(found.epochs) > 20 else "")
        raise ConfigError(f"{command.file} has no epoch {command.selected!r}; it has {names}")
    return found.epochs.index(command.selected)


def _print(judged: "Diagnosis", found: "Scores", note: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from jaxpu.collapse.explanations import BEYOND

    console = Console(highlight=False)
    epochs, rows = found.scores.shape
    console.print(f"[bold]{judged.verdict}[/]  ({rows} examples" + (f", {epochs} epochs)" if epochs > 1 else ")"))
    console.print(Text(judged.explanation))
    if note:
        console.print(Text(note))
    others = [str(flag) for flag in judged.flags if flag != judged.verdict]
    if others:
        console.print(f"also: {', '.join(others)}")
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in judged.evidence.items():
        beyond = name == "auc" and not -BEYOND <= value <= 1 + BEYOND
        if name == "label_free" or beyond or math.isnan(value):  # what true labels, or another prior, would say
            continue
        table.add_row(name, f"{value:.4g}")
    console.print("", table)
