"""``jaxpu fit``: from a table with a few labeled rows to ranked scores; ``jaxpu score``: further rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from jaxpu.cli.arguments import home


@dataclass(frozen=True)
class Fit:
    """Score the rows of a table of which some are labeled positive, and estimate how many of the others are.

    Reads CSV (any usual separator and encoding, also .gz) or Parquet; strings, dates, booleans and gaps are taken as
    they are. Writes scores.csv (all rows, the best first), model.skops or .safetensors, summary.json and report.html.

    Exit status: 0 done; 2 the table cannot be used, or the folder not written: one line says why, nothing is written.
    """

    table: Annotated[Path, tyro.conf.Positional]
    """The table: a row an example, with a header."""
    label: str
    """Column that says which rows are labeled positive; the others are unlabeled, and may be blank."""
    positive: str | None = None
    """The value of it that means labeled positive; not needed for 1/0, 1/-1, true/false, or one value and blanks."""
    out: Path | None = None
    """Folder to write to; results/<name of the table> if not given."""
    prior: float | None = None
    """Share of positives among the unlabeled rows, if it is known; else it is estimated."""
    method: str = "auto"
    """auto, or a method of networks (jaxpu list)."""
    seeds: int | None = None
    """How many cross-fittings (4), or networks (8)."""
    budget: int | None = None
    """Where to cut: so many unlabeled rows, which can be looked at, are called positive."""
    precision: float | None = None
    """Where to cut: so large is the estimated share of positives among the rows that are called so."""
    cost_ratio: float | None = None
    """Where to cut: a positive that is missed costs as much as so many false alarms."""
    id: tuple[str, ...] = ()
    """Columns that identify rows: kept in the output, never features. Else text that never repeats is one."""
    score: Path | None = None
    """Another table, whose rows are scored, too: new_scores.csv."""


@dataclass(frozen=True)
class Score:
    """Score the rows of another table by what jaxpu fit, or jaxpu run with kept parameters, has left in a folder.

    Columns are found by name; what is missing, extra or was never seen is said. Writes new_scores.csv into the folder.

    Exit status: 0 done, 2 the folder or the table cannot be used, and nothing is written.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """The folder that was written."""
    table: Annotated[Path, tyro.conf.Positional]
    """The table, with the columns that were learned from."""
    out: Path | None = None
    """File to write; new_scores.csv in the folder if not given."""


def fit(command: Fit) -> int:
    """Fit, write all files, and print what is known; 0."""
    import jaxpu
    from jaxpu import api, tables
    from jaxpu.config import ConfigError
    from jaxpu.fitted import files

    try:
        table = tables.read(home(command.table), command.label, command.positive, command.id)
        more = None if command.score is None else files.read_rows(home(command.score))
        folder = files.checked(home(command.out or Path("results") / table.name))
        if more is not None:
            table.schema.encode(more)  # before hours are spent on what cannot be used
        if command.method != "auto":
            api.set_up()
        asked = {"budget": command.budget, "precision": command.precision, "cost_ratio": command.cost_ratio}
        fitted = jaxpu.fit(table, method=command.method, prior=command.prior, seeds=command.seeds, **asked)
        new = None if more is None else fitted.scorer.rank(more, _identifying(fitted.scorer, more))
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(" ".join(str(error).split())) from None
    written = files.write(folder, fitted, _command(command))
    _say(written)
    if new is not None:
        _write_new(folder / "new_scores.csv", new)
    print(f"page: {folder / 'report.html'}")
    return 0


def score(command: Score) -> int:
    """Score the rows of another table; 0."""
    from jaxpu.config import ConfigError
    from jaxpu.fitted import files, load, swept

    folder, path = home(command.folder), home(command.table)
    try:
        rows = files.read_rows(path)
        if (folder / "config.yaml").exists():
            scored = swept.rank(folder, rows)
        else:
            scorer = load(folder)
            scored = scorer.rank(rows, _identifying(scorer, rows))
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    _write_new(home(command.out) if command.out else folder / "new_scores.csv", scored)
    return 0


def _identifying(scorer: Any, rows: Any) -> Any:
    """The columns of a table that identify its rows."""
    import polars as pl

    known = () if scorer.schema is None else scorer.schema.identifiers
    return pl.DataFrame({name: rows[name] for name in known if name in rows})


def _write_new(path: Path, scored: Any) -> None:
    from jaxpu.runs.files import write_frame

    write_frame(path, scored.frame)
    for note in scored.notes:
        print(f"note: {note}")
    n, all_scores, positive = scored.frame["row"].n_unique(), scored.frame.height, scored.frame["decision"].sum()
    decided = f"{positive} of them called positive"
    if all_scores > n:  # by several methods
        decided = f"{all_scores // n} times each, {positive} of {all_scores} scores call them positive"
    print(f"{n} rows scored, {decided}: {path}")


def _command(command: Fit) -> str:
    """The words that repeat it."""
    import dataclasses
    import shlex

    words = ["jaxpu", "fit", str(command.table), "--label", command.label]
    for field in dataclasses.fields(command):
        value = getattr(command, field.name)
        if field.name not in ("table", "label") and value != field.default:
            words += [
                f"--{field.name.replace('_', '-')}",
                *(map(str, value) if isinstance(value, tuple) else [str(value)]),
            ]
    return shlex.join(words)


def _say(summary: dict[str, Any]) -> None:
    for note in summary["data"]["notes"]:
        print(f"note: {note}")
    print(summary["answer"])
    print(summary["prior"]["statement"])
