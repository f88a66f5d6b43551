"""``jaxpu run`` and ``jaxpu report`` for experiments on ensembles."""

import sys
from pathlib import Path
from typing import Any


def run_ensemble(raw: dict[str, Any], where: str, out: Path | None, *, fresh: bool, quiet: bool) -> int:
    """Run an experiment of ``kind: ensemble``, and write its tables and page.

    Args:
        raw: the configuration. where: its file, for messages. out: the results folder, or None. fresh: run it again
            even if the folder holds just this experiment, finished. quiet: print no progress.

    Returns:
        The exit status.
    """
    from jaxpu import config, results
    from jaxpu.config.ensemble import EnsembleExperiment, check_ensemble_claims

    experiment = config.validate(EnsembleExperiment, raw, where)
    check_ensemble_claims(experiment)
    folder = out or Path("results") / experiment.name
    from jaxpu import study

    if not fresh and study.finished(folder, experiment):
        print(f"{folder} holds this experiment, finished; --fresh runs it again", file=sys.stderr)
    else:
        study.run(experiment, folder, watch=(lambda line: None) if quiet else _show)
    return report_ensemble(folder, results.read_yaml(folder / "config.yaml"))


def report_ensemble(folder: Path, raw: dict[str, Any]) -> int:
    """Write the tables, figures and page of a finished folder again; the exit status."""
    from rich.console import Console
    from rich.markup import escape

    from jaxpu import config, study
    from jaxpu.config.ensemble import EnsembleExperiment
    from jaxpu.report import ensemble as report

    experiment = config.validate(EnsembleExperiment, raw, str(folder / "config.yaml"))
    outcome = study.read(folder)
    tables = study.tables(outcome.runs, experiment)
    page = report.write(folder, outcome, tables, experiment)
    console = Console() if sys.stdout.isatty() else Console(width=100)
    console.print(report.rich_table(tables))
    for row in tables.claims.iter_rows(named=True):
        console.print(f"[bold]{row['verdict']}[/]: {escape(row['claim'])}", highlight=False)
    print(f"page: {page}")
    return 0


def _show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
