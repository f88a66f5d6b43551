"""``jaxpu run`` and ``jaxpu report`` for experiments that are no sweeps of PU methods: what their ``kind`` says."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

KINDS = ("ensemble", "guided")


class _Kind(NamedTuple):
    """One kind of experiment: what runs it, what writes it down."""

    run: Callable[..., Any]
    report: Any


def _kind(name: str) -> _Kind:
    from jaxpu import study
    from jaxpu.report import ensemble, guided

    if name == "ensemble":
        return _Kind(study.run, ensemble)
    return _Kind(study.run_guided, guided)


def run_study(experiment: Any, folder: Path, *, fresh: bool, quiet: bool) -> int:
    """Run an experiment, or what is left of it, and write its tables and page.

    Args:
        experiment: of one of the :data:`KINDS`. folder: the results folder. fresh: run it again even if the folder
            holds it, finished or in part. quiet: print no progress.

    Returns:
        The exit status.
    """
    from jaxpu import results, study

    if not fresh and study.finished(folder, experiment):
        print(f"{folder} holds this experiment, finished; --fresh runs it again", file=sys.stderr)
    else:
        watch = (lambda line: None) if quiet else _show
        _kind(experiment.kind).run(experiment, folder, fresh=fresh, watch=watch)
    return report_study(folder, results.read_yaml(folder / "config.yaml"))


def report_study(folder: Path, raw: dict[str, Any]) -> int:
    """Write the tables, figures and page of a finished folder again; the exit status."""
    from rich.console import Console
    from rich.markup import escape

    from jaxpu import analysis, config, study

    kind = _kind(raw["kind"])
    experiment = config.parse(raw, str(folder / "config.yaml"))
    outcome = study.read(folder)
    tables = analysis.tables(outcome.runs, experiment)
    from jaxpu.cli import _with_cells

    runs, paths = (_with_cells(frame, experiment) for frame in outcome[:2])
    outcome = outcome._replace(runs=runs, paths=paths)
    tables = tables._replace(**{n: _with_cells(getattr(tables, n), experiment) for n in ("summary", "verdicts")})
    page = kind.report.write(folder, outcome, tables, experiment)
    console = Console() if sys.stdout.isatty() else Console(width=100)
    console.print(kind.report.rich_table(tables))
    for row in tables.claims.iter_rows(named=True):
        console.print(f"[bold]{row['verdict']}[/]: {escape(row['claim'])}", highlight=False)
    print(f"page: {page}")
    return 0


def _show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
