"""What an experiment says while it runs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxpu.runs.engine import Progress


class Screen:
    """Shows an experiment's progress on a terminal, and its notes as lines anywhere."""

    def __init__(self, *, quiet: bool):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.quiet = quiet
        self.console = Console(stderr=True)
        self._printed = 0.0
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("runs,"),
            TextColumn("{task.fields[epochs]} epochs,"),
            TimeElapsedColumn(),
            console=self.console,
            disable=quiet or not self.console.is_terminal,
        )
        self.task = self.bar.add_task("training", total=None, epochs=0)

    def __enter__(self) -> "Screen":
        self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()

    def show(self, progress: "Progress") -> None:
        """Take in what the engine says."""
        if progress.note and not self.quiet:
            self.console.print(progress.note, highlight=False, markup=False)
        share = progress.runs_done / progress.runs_total
        if self.bar.disable and not self.quiet and share >= self._printed + 0.1:  # a log file has no bar
            self._printed = share
            done = f"{progress.runs_done} of {progress.runs_total} runs, {progress.epochs_done} epochs"
            self.console.print(done, highlight=False)
        self.bar.update(
            self.task,
            total=progress.runs_total,
            completed=progress.runs_done,
            epochs=progress.epochs_done,
        )
