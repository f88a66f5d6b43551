"""``jaxpu analyze``: what failed in a results folder, training or selection, and when."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from jaxpu.cli import finished


@dataclass(frozen=True)
class Analyze:
    """Say what failed in a results folder: training, judged by each run's last epoch, or the selection of epochs.

    Exit status: 0, whatever it says; 2 the folder cannot be read.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """The results folder."""
    worst: int = 3
    """How many failing runs to explain, for each method."""


def analyze(command: Analyze) -> int:
    """Print the analysis of a folder; 0, whatever it says."""
    from jaxpu import analysis
    from jaxpu.report import terminal

    found = finished.read(command.folder)
    terminal.console().print(terminal.analysis(analysis.analyze(found.runs, found.experiment), command.worst))
    return 0
