"""``jaxpu data``: which sets there are, fetch one, and whether what is here is whole."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from jaxpu.cli.arguments import home


@dataclass(frozen=True)
class Data:
    """List datasets and where they lie, fetch one from its source, or check the files that are here.

    Exit status: 0; check: 1 a file is damaged; 2 a set cannot be fetched.
    """

    do: Annotated[Literal["list", "fetch", "check"], tyro.conf.Positional]
    """list: every set with its file or its source. fetch: get the named sets. check: read every file that is here."""
    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Sets to fetch or check; check takes all if none is named."""
    out: Path | None = None
    """Folder to fetch into; your cache folder if not given. JAXPU_DATA_DIR names one that is looked at first."""
    source: Path | None = None
    """Of alzheimer_mri: a folder of class folders of pictures, a Parquet file, or a folder of such files."""


def data(command: Data) -> int:
    """Do what the command says; the exit code."""
    from jaxpu.config import ConfigError
    from jaxpu.data import SOURCES
    from jaxpu.data.sources import source_of

    try:
        for name in command.names:
            source_of(name)
        for name in command.names if command.do == "fetch" else ():
            print(f"{name}: {_fetched(name, command)}")
    except ValueError as error:
        raise ConfigError(f"data: {error}") from None
    if command.do == "list":
        return _list(command.names or tuple(SOURCES))
    if command.do == "check":
        return max(map(_check, command.names or tuple(SOURCES)))
    if not command.names:
        raise ConfigError(f"data: name the sets to fetch, of {', '.join(SOURCES)}")
    return 0


def _fetched(name: str, command: Data) -> str:
    """Where a set lies now: as it is here, whole, unless it is asked for from or into somewhere; or fetched."""
    from jaxpu.data.fetching import fetch
    from jaxpu.data.sources import cache, found, read

    file = found(name)
    if file is None or command.out or command.source:
        return str(fetch(name, folder=command.out and home(command.out), source=command.source))
    try:
        read(file)
    except ValueError:
        if file.parent != cache():  # it would be looked at first all the same
            raise
        return str(fetch(name))
    return f"{file} (already here, whole)"


def _list(names: tuple[str, ...]) -> int:
    from jaxpu.data import SOURCES
    from jaxpu.data.sources import SHIPPED, found

    for name in names:
        source = SOURCES[name]
        file = "ships with jaxpu" if name in SHIPPED else found(name) or "not here"
        needs = f"; needs {source.needs}" if source.needs else ""
        print(f"{name}: {file} (source: {source.origin}, about {source.megabytes} MB{needs})")
    return 0


def _check(name: str) -> int:
    """Say of one set what its file is; 1 if it is damaged."""
    from jaxpu.data.sources import found, other_rows, other_values, read, source_of

    file = found(name)
    if file is None:
        print(f"{name}: not here")
        return 0
    try:
        arrays = read(file)
    except ValueError as error:
        print(f"{name}: DAMAGED: {error}")
        return 1
    odd = other_rows(name, arrays) + other_values(name, arrays)
    known = "the published values" if source_of(name).values else "the published rows and labels"
    print(f"{name}: undamaged, {file}: {'; '.join(odd) or known}")
    return 0
