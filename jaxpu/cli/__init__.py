"""The ``jaxpu`` command. Nothing heavy is imported before it is needed, so help answers at once."""

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import tyro

import jaxpu
from jaxpu.cli import finished
from jaxpu.cli import fit as own
from jaxpu.cli.analyze import Analyze, analyze
from jaxpu.cli.arguments import home, in_order, parsed
from jaxpu.cli.diagnose import Diagnose, diagnose
from jaxpu.cli.faults import LONGEST, cut, in_words
from jaxpu.cli.listing import list_all
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
    out: Path | None = None
    """Results folder; results/<name of the experiment> if not given."""
    fresh: bool = False
    """Forget what the results folder holds and start again."""
    quiet: bool = False
    """Print no progress, only the table."""


@dataclass(frozen=True)
class Report:
    """Write the tables, figures and page of a finished results folder again.

    Exit status: 0 done, 1 some runs are missing, 2 the folder cannot be read or written.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """The results folder."""


@dataclass(frozen=True)
class List:
    """List configurations, datasets, methods and selection rules, and what ensembles are made of.

    Exit status: 0.
    """


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
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Analyze, tyro.conf.subcommand("analyze")]
    | Annotated[Diagnose, tyro.conf.subcommand("diagnose")]
    | Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Version, tyro.conf.subcommand("version")]
)


def main(arguments: list[str] | None = None) -> None:
    """Entry point: parse, do, and exit with 0 (done), 1 (some runs failed), 2 (bad input) or 130 (interrupted)."""
    arguments = in_order(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["--version"]:
        arguments = ["version"]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # XLA's log lines are for its developers
    command: Any = None
    try:
        # tyro takes unions of annotated types, which the type system has no way to say
        command = parsed(lambda: tyro.cli(Command, prog="jaxpu", description=_DESCRIPTION, args=arguments))  # pyright: ignore[reportArgumentType, reportCallIssue]
        code = _do(command)
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
    from jaxpu.runs import NothingFinished, ResultsError

    if isinstance(error, ConfigError | ResultsError):
        _give_up(str(error), 1 if isinstance(error, NothingFinished) else 2)
    words = in_words(error, _about(command))
    if words is None:
        raise error
    _give_up(words, 2)


def _give_up(message: str, status: int) -> NoReturn:
    print(f"jaxpu: {cut(message, LONGEST)}", file=sys.stderr)
    sys.exit(status)


def _about(command: Any) -> str:
    """The file or folder of a command."""
    given = next(
        (getattr(command, name) for name in ("table", "config", "folder", "file") if hasattr(command, name)), "jaxpu"
    )
    return cut(str(given))


def _do(command: Any) -> int:
    if isinstance(command, own.Fit):
        return own.fit(command)
    if isinstance(command, own.Score):
        return own.score(command)
    if isinstance(command, Run):
        return _run(command)
    if isinstance(command, Report):
        return _report(command.folder)
    if isinstance(command, Analyze):
        return analyze(command)
    if isinstance(command, Diagnose):
        return diagnose(command)
    if isinstance(command, List):
        return list_all()
    print(f"jaxpu {jaxpu.__version__}")
    return 0


def _run(command: Run) -> int:
    from jaxpu import api, config
    from jaxpu.analysis.check import check
    from jaxpu.report import check_figures

    overrides = dict(_override(word) for word in command.overrides)
    if command.seeds is not None:
        overrides["seeds"] = command.seeds
    raw = config.read(command.config, overrides)
    api.set_up(_devices(raw))  # before methods are checked, for which jax is used
    experiment = config.parse(raw, where=str(command.config))
    folder = home(command.out or Path("results") / experiment.name)
    check(experiment)
    check_figures(experiment)
    try:
        with Screen(quiet=command.quiet) as screen:
            outcome = api.sweep(experiment, folder=folder, fresh=command.fresh, watch=screen.show)
    except KeyboardInterrupt:
        words = shlex.join(word for word in sys.argv[1:] if word != "--fresh")
        print(f"\ninterrupted; {folder} keeps what is done. Go on with: jaxpu {words}", file=sys.stderr)
        return 130
    _publish(folder, experiment, outcome.runs, outcome.provenance)
    if outcome.failures:
        failures = "; ".join(outcome.failures)
        print(f"jaxpu: {failures}. Repeat the command to redo them (kept: {folder})", file=sys.stderr)
        return 1
    return 0


def _devices(raw: dict[str, Any]) -> int | None:
    """How many devices a configuration asks for that is not checked yet."""
    placement = raw.get("placement")
    devices = placement.get("devices") if isinstance(placement, dict) else None
    return devices if type(devices) is int and 0 < devices <= MOST_DEVICES else None


MOST_DEVICES = 512
"""A CPU is not split into more; whoever asks for more is told so later."""


def _override(word: str) -> tuple[str, Any]:
    import yaml

    from jaxpu.config import ConfigError, load_yaml

    path, equals, text = word.partition("=")
    if not equals or not path:
        raise ConfigError(f"expected dotted.path=value, got {word!r}; for example training.lr=1e-3")
    try:
        return path, load_yaml(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"override {path}: {text!r} is not a YAML value: {error}") from None


def _publish(folder: Path, experiment: Any, recorded: Any, provenance: dict[str, Any]) -> None:
    from jaxpu import report

    report.console().print(report.publish(folder, experiment, recorded, provenance))
    print(f"page: {folder / 'report.html'}")


def _report(folder: Path) -> int:
    found = finished.read(folder)
    _publish(folder, found.experiment, found.runs, found.provenance)
    return int(found.missing > 0)
