"""The ``jaxpu`` command. Nothing heavy is imported before it is needed, so help answers at once."""

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import tyro

import jaxpu
from jaxpu.cli import finished
from jaxpu.cli import fit as own
from jaxpu.cli.analyze import Analyze, analyze
from jaxpu.cli.arguments import devices, home, in_order, override, parsed
from jaxpu.cli.data import Data, data
from jaxpu.cli.diagnose import Diagnose, diagnose
from jaxpu.cli.dry import dry_run
from jaxpu.cli.faults import LONGEST, about, cut, in_words
from jaxpu.cli.listing import List, list_all
from jaxpu.cli.screen import Screen


@dataclass(frozen=True)
class Run:
    """Run an experiment, or what is left of it; end with its table and page.

    Runs that are finished are kept, an interrupted one goes on where it stopped. Settings of the
    configuration are changed by key=value words, for example: training.lr=1e-3 methods=[vpu,pudra]

    Exit status: 0 all runs are done, 1 some failed (repeat the command), 2 bad input or no room, 130 interrupted.
    """

    config: Annotated[Path, tyro.conf.Positional]
    """The experiment: a YAML file, or the name of one that comes with jaxpu (jaxpu list)."""
    overrides: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Settings to change: dotted.path=value, the value in YAML."""
    seeds: int | None = None
    """How many seeds, instead of the configuration's number."""
    datasets: tuple[str, ...] = ()
    """Datasets to run it on, instead of the configuration's: their rows of its grid, or those of any other set."""
    out: Path | None = None
    """Results folder; results/<name of the experiment> if not given."""
    shard: str | None = None
    """Run share i, from 0, of n equal shares of the seeds: i/n, for several processes with one --out; then gather."""
    executor: Literal["ray"] | None = None
    """Run in shards on Ray, which starts lost ones again, and gather them; an extra: pip install 'jaxpu[ray]'."""
    address: str | None = None
    """Of Ray's cluster; a local one is started if not given."""
    workers: int | None = None
    """How many shards Ray runs at once."""
    track: Literal["tensorboard", "mlflow", "wandb"] | None = None
    """Send all runs there when they are done, with settings and metrics; an extra: pip install 'jaxpu[mlflow]'."""
    distributed: str | None = None
    """Be one of several processes with one program, for a model too large for one machine: HOST:PORT of process 0, or
    auto under SLURM, Open MPI and on TPU pods. Runs that fit are better dealt out: --shard."""
    process: str | None = None
    """Which of these this is: i/n, from 0. Process 0 writes."""
    fresh: bool = False
    """Forget what the results folder holds and start again."""
    quiet: bool = False
    """Print no progress, only the table."""
    dry_run: bool = False
    """Train nothing: say how many cells, runs and programs there are, and how much memory and time they take."""


VALUED = tuple(f"--{field.name.replace('_', '-')}" for field in fields(Run) if field.default is None)
"""Options of ``jaxpu run`` that are followed by a value."""


@dataclass(frozen=True)
class Report:
    """Write the tables, figures and page of a results folder again, or of what an interrupted run has finished.

    Exit status: 0 done, 1 some runs are missing, 2 the folder cannot be read or written.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """The results folder."""


@dataclass(frozen=True)
class Gather:
    """Put the shards of an experiment together (run --shard), as if one process had run it.

    It ends with the table and the page.

    Exit status: 0 done, 1 shards or runs are missing, 2 shards are of different experiments or cannot be read.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """The results folder that all shards were given."""


@dataclass(frozen=True)
class Version:
    """Print the version, as ``--version`` does.

    Exit status: 0.
    """


_DESCRIPTION = """Train classifiers from positive and unlabeled data over many seeds, and find out why it fails.

Exit status: 0 done; 1 some runs failed or are missing, or diagnosed scores fail; 2 bad input, or what the
machine refuses; 130 interrupted."""

Command = (
    Annotated[own.Fit, tyro.conf.subcommand("fit")]
    | Annotated[own.Score, tyro.conf.subcommand("score")]
    | Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Gather, tyro.conf.subcommand("gather")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Analyze, tyro.conf.subcommand("analyze")]
    | Annotated[Diagnose, tyro.conf.subcommand("diagnose")]
    | Annotated[Data, tyro.conf.subcommand("data")]
    | Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Version, tyro.conf.subcommand("version")]
)


def main(arguments: list[str] | None = None) -> None:
    """Entry point: parse, do, and exit with 0 (done), 1 (some runs failed), 2 (bad input) or 130 (interrupted)."""
    arguments = in_order(sys.argv[1:] if arguments is None else arguments, VALUED)
    if arguments[:1] == ["--version"]:
        arguments = ["version"]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # XLA's log lines are for its developers
    command: Any = None
    try:
        # tyro takes unions of annotated types, which the type system has no way to say
        command = parsed(lambda: tyro.cli(Command, prog="jaxpu", description=_DESCRIPTION, args=arguments))  # pyright: ignore[reportArgumentType, reportCallIssue]
        code = ACTIONS[type(command)](command)
        sys.stdout.flush()
        sys.exit(code)
    except SystemExit:
        raise
    except BrokenPipeError:  # whoever read the output, head for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        _give_up("interrupted", 130)
    except BaseException as error:  # a panic of polars is no Exception
        _explain(error, command)


def _explain(error: BaseException, command: Any) -> NoReturn:
    """End with a line for what was raised, or with its traceback where it is a mistake in the program."""
    from jaxpu.config import ConfigError
    from jaxpu.runs import ResultsError, Unfinished

    if isinstance(error, ConfigError | ResultsError):
        _give_up(str(error), 1 if isinstance(error, Unfinished) else 2)
    words = in_words(error, about(command))
    if words is None:
        raise error
    _give_up(words, 2)


def _give_up(message: str, status: int) -> NoReturn:
    print(f"jaxpu: {cut(message, LONGEST)}", file=sys.stderr)
    sys.exit(status)


def _run(command: Run) -> int:
    from jaxpu import api, config, runs, tracking
    from jaxpu.analysis.check import check

    overrides = dict(override(word) for word in command.overrides)
    if command.seeds is not None:
        overrides["seeds"] = command.seeds
    raw = config.read(command.config, overrides, command.datasets)
    if command.distributed is not None and (command.executor is not None or command.dry_run):
        raise config.ConfigError("--distributed is one run in several processes; leave --executor and --dry-run out")
    # before methods are checked, for which jax is used
    first = api.set_up(devices(raw, command.distributed), address=command.distributed, process=command.process)
    experiment = config.parse(raw, where=str(command.config))
    folder = home(command.out or Path("results") / experiment.name)
    check(experiment)
    if getattr(experiment, "figures", ()):  # what draws takes a while to import
        from jaxpu.report import check_figures

        check_figures(experiment)
    if command.dry_run:
        return dry_run(experiment)
    tracker = None if command.track is None or not first else tracking.named(command.track, folder)
    shard = runs.Shard.parse(command.shard) if command.shard is not None else None
    if shard is not None and command.executor is not None:
        raise config.ConfigError("--executor deals out the shards itself; leave --shard out")
    try:
        with Screen(quiet=command.quiet or not first) as screen:
            options: Any = {"fresh": command.fresh, "watch": screen.show, "track": tracker}
            if command.executor is not None:
                return _on_ray(command, experiment, folder, options)
            outcome = api.sweep(experiment, folder=folder, shard=shard, **options)
    except KeyboardInterrupt:
        words = shlex.join(word for word in sys.argv[1:] if word != "--fresh")
        print(f"\ninterrupted; {folder} keeps what is done. Go on with: jaxpu {words}", file=sys.stderr)
        return 130
    if command.distributed is not None:
        import jax

        jax.distributed.shutdown()  # once all are here: what comes now is process 0's
    return _ended(folder, experiment, outcome, shard) if first else 0  # what fails, fails in all


def _ended(folder: Path, experiment: Any, outcome: Any, shard: Any) -> int:
    if shard is None:
        finished.publish(folder, experiment, outcome.runs, outcome.provenance)
    elif not outcome.failures:
        print(f"shard {shard} is done: {shard.below(folder)}. When all are: jaxpu gather {folder}")
    if outcome.failures:
        failures = "; ".join(outcome.failures)
        print(f"jaxpu: {failures}. Repeat the command to redo them (kept: {folder})", file=sys.stderr)
    return int(bool(outcome.failures))


def _on_ray(command: Run, experiment: Any, folder: Path, options: dict[str, Any]) -> int:
    from jaxpu.executors import on_ray

    finished.publish(folder, *on_ray(experiment, folder, address=command.address, workers=command.workers, **options))
    return 0


def _gather(command: Gather) -> int:
    from jaxpu import api

    finished.publish(home(command.folder), *api.gather(command.folder))
    return 0


def _report(command: Report) -> int:
    finished.stand(command.folder)
    found = finished.read(command.folder)
    finished.publish(command.folder, found.experiment, found.runs, found.provenance)
    return int(found.missing > 0)


def _version(_: Version) -> int:
    print(f"jaxpu {jaxpu.__version__}")
    return 0


ACTIONS: dict[type, Callable[[Any], int]] = {
    own.Fit: own.fit, own.Score: own.score, Run: _run, Gather: _gather, Report: _report, Analyze: analyze,
    Diagnose: diagnose, Data: data, List: lambda _: list_all(), Version: _version,
}  # fmt: skip
"""What each command does; its exit status."""
