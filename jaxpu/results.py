"""Results on disk: atomic files, finished runs that are never recomputed, and where a number came from.

    results/<experiment>/
      config.yaml  provenance.json  runs.parquet  selected.csv  summary.csv  verdicts.csv  table.md
      figures/  report.html
      parameters/  with selection.keep_best: those of every run's best epoch
      parts/       only while a sweep or a study runs: finished runs, and the state of the unfinished ones

Every file is written beside its place and moved there, so a reader, or a run after a crash, finds an old file
or a new one, never half a file. What is damaged, marked failed or foreign is named, and nothing foreign is
touched.
"""

import contextlib
import dataclasses
import fcntl
import importlib.metadata
import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import jaxpu

# Columns that say which run a row belongs to; all others are recorded numbers. A study has a row a run, a sweep
# one an epoch.
RUN = ("run_id", "dataset", "method", "cell", "seed")
IDENTITY = (*RUN, "epochs_run", "epoch")


# The only files below parts/ that are ever removed: named by a digest, or a temporary file of such a one.
_OURS = re.compile(r"\.?[0-9a-f]{16}\.(parquet|failed\.json|state\.npz)(\.\d+\.tmp)?")


class ResultsError(RuntimeError):
    """A results folder that cannot be used as asked; the message says what to do."""


class NothingFinished(ResultsError):
    """A sweep of which no run finished."""


def atomic_write(path: Path, write: Callable[[Path], Any]) -> None:
    """Call ``write`` on a temporary file beside ``path``, flush it to disk, and move it into place.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> atomic_write(folder / "a.txt", lambda p: p.write_text("whole"))
    >>> [p.name for p in folder.iterdir()], (folder / "a.txt").read_text()
    (['a.txt'], 'whole')
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    atomic_write(path, lambda p: p.write_text(text, encoding="utf-8"))


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a table atomically: parquet or CSV by the name's ending; CSV numbers with six digits."""
    if path.suffix == ".csv":
        atomic_write(path, lambda p: frame.write_csv(p, float_precision=6))
    else:
        atomic_write(path, lambda p: frame.write_parquet(p, compression="zstd", compression_level=12))


def write_parameters(folder: Path, run_id: str, parameters: dict[str, Any]) -> None:
    """Keep a run's parameters, a nested dictionary of arrays, as ``parameters/<run_id>.npz``."""

    def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, np.ndarray]:
        leaves: dict[str, np.ndarray] = {}
        for name, value in tree.items():
            path = f"{prefix}{name}"
            leaves |= flat(value, f"{path}/") if isinstance(value, dict) else {path: np.asarray(value)}
        return leaves

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, **flat(parameters))  # pyright: ignore[reportArgumentType]  # names of arrays, not options

    atomic_write(folder / "parameters" / f"{run_id}.npz", write)


def read_parameters(folder: Path, run_id: str) -> dict[str, Any]:
    """Read what :func:`write_parameters` kept: what ``Model.apply`` takes.

    Raises:
        ResultsError: if the run kept none.
    """
    path = folder / "parameters" / f"{run_id}.npz"
    if not path.exists():
        raise ResultsError(f"{folder} keeps no parameters of run {run_id}; run with selection.keep_best=true")
    tree: dict[str, Any] = {}
    with np.load(path, allow_pickle=False) as stored:
        for name in stored.files:
            *parents, leaf = name.split("/")
            branch = tree
            for parent in parents:
                branch = branch.setdefault(parent, {})
            branch[leaf] = stored[name]
    return tree


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a results folder for one process.

    Raises:
        ResultsError: if another process holds it, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("w")
    except OSError as error:
        raise ResultsError(f"cannot write to {folder}: {error.strerror}; give another --out") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ResultsError(f"{folder} is being written by another run; wait for it, or give --out") from None
        yield


@dataclasses.dataclass(frozen=True)
class Inventory:
    """What a folder already holds: finished runs of this experiment, notes for people, foreign run count."""

    runs: pl.DataFrame | None
    notes: tuple[str, ...]
    foreign_runs: int

    @property
    def done(self) -> set[str]:
        """Identifiers of the finished runs."""
        return set() if self.runs is None else set(self.runs["run_id"].unique())


def take_inventory(folder: Path, wanted: Sequence[str]) -> Inventory:
    """Read the finished runs of a folder and name everything in it that cannot be used.

    A run counts as finished when all its epochs 1 to ``epochs_run`` are there. Damaged files and runs marked
    failed are left for the sweep to redo; rows of runs that are not ``wanted`` are counted as foreign.

    Raises:
        ResultsError: if ``runs.parquet``, which the sweep would replace, is a table of something else.
    """
    return _inventory(folder, _run_files(folder), wanted, IDENTITY)


def take_parts(folder: Path, wanted: Sequence[str]) -> Inventory:
    """What an interrupted study left in ``parts/``: as :func:`take_inventory`, of tables with one row a run."""
    return _inventory(folder, _part_files(folder), wanted, RUN)


def _inventory(folder: Path, paths: Sequence[Path], wanted: Sequence[str], columns: Sequence[str]) -> Inventory:
    known, row = set(wanted), [name for name in ("run_id", "epoch") if name in columns]
    frames, notes, foreign = [], [], 0
    for path in paths:
        frame, problem = _read_runs(path, columns)
        if problem and "is foreign" in problem and path.parent == folder:
            raise ResultsError(f"{folder}: {problem}. Give another --out, or --fresh to replace it")
        if problem:
            notes.append(problem)
        if frame is not None:
            strangers = frame.filter(~pl.col("run_id").is_in(known))["run_id"].n_unique()
            if strangers:
                foreign += strangers
                notes.append(f"{path.name} holds {strangers} runs that this experiment does not ask for")
            frames.append(frame.filter(pl.col("run_id").is_in(known)))
    notes += _failures(folder) + _strangers(folder)
    runs = pl.concat(frames, how="diagonal").unique(row, keep="first", maintain_order=True) if frames else None
    return Inventory(runs if runs is not None and runs.height else None, tuple(notes), foreign)


def _run_files(folder: Path) -> list[Path]:
    whole = folder / "runs.parquet"
    return ([whole] if whole.exists() else []) + _part_files(folder)


def _part_files(folder: Path) -> list[Path]:
    return sorted((folder / "parts").glob("*.parquet"))


def _read_runs(path: Path, columns: Sequence[str] = IDENTITY) -> tuple[pl.DataFrame | None, str | None]:
    try:
        frame = pl.read_parquet(path)
    except Exception as error:  # polars raises many kinds for a file that is not whole parquet
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return None, f"{path.name} is damaged or truncated ({first}); its runs are redone"
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        return None, f"{path.name} is foreign (no column {missing[0]!r}); left alone"
    if "epoch" not in columns:
        return frame, None
    whole = frame.group_by("run_id").agg(
        ok=(pl.col("epoch").sort() == pl.int_range(1, pl.len() + 1)).all() & (pl.col("epochs_run").first() == pl.len())
    )
    bad = whole.filter(~pl.col("ok"))["run_id"].to_list()
    if not bad:
        return frame, None
    return frame.filter(~pl.col("run_id").is_in(bad)), f"{path.name}: {len(bad)} incomplete runs are redone"


def mark_failed(folder: Path, name: str, run_ids: Sequence[str], error: str) -> None:
    """Leave a note that runs failed, so that the next ``jaxpu run`` knows and redoes them."""
    mark = {"run_ids": list(run_ids), "error": error}
    write_text(folder / "parts" / f"{name}.failed.json", json.dumps(mark, indent=1))


def _failures(folder: Path) -> list[str]:
    notes = []
    for path in sorted((folder / "parts").glob("*.failed.json")):
        try:
            mark = json.loads(path.read_text(encoding="utf-8"))
            notes.append(f"{path.name}: {len(mark['run_ids'])} runs had failed ({mark['error']}); they are redone")
        except (ValueError, KeyError, TypeError):
            notes.append(f"{path.name} is damaged; ignored")
    return notes


def clear_failures(folder: Path) -> None:
    """Forget the failure marks, once their runs are being redone."""
    for path in (folder / "parts").glob("*.failed.json"):
        path.unlink()


def _strangers(folder: Path) -> list[str]:
    return [
        f"parts/{path.name} is not a file of jaxpu; left alone"
        for path in sorted((folder / "parts").glob("*"))
        if not _OURS.fullmatch(path.name) and path.suffix != ".parquet"
    ]


def clear_parts(folder: Path) -> None:
    """Remove the working files of a finished sweep; files that are not jaxpu's stay."""
    parts = folder / "parts"
    for path in parts.glob("*"):
        if _OURS.fullmatch(path.name):
            path.unlink()
    with contextlib.suppress(OSError):
        parts.rmdir()


def remove_results(folder: Path) -> None:
    """Remove what a sweep has recorded in a folder, for ``--fresh``."""
    clear_parts(folder)
    (folder / "runs.parquet").unlink(missing_ok=True)


def versions() -> dict[str, str]:
    """Versions of jaxpu, Python and the packages that its numbers depend on."""
    names = ("jax", "jaxlib", "flax", "optax", "numpy", "scipy", "scikit-learn", "polars")
    return {"jaxpu": jaxpu.__version__, "python": platform.python_version()} | {
        name: importlib.metadata.version(name) for name in names
    }


def commit() -> dict[str, Any]:
    """Commit of the checkout that this package runs from, and whether its code differs; Nones elsewhere."""
    package = Path(jaxpu.__file__).parent

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(package), *arguments], capture_output=True, text=True)
        except FileNotFoundError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if git("ls-files", "--error-unmatch", "__init__.py") is None:
        return {"commit": None, "dirty": None}
    return {
        "commit": git("rev-parse", "HEAD"),
        "dirty": bool(git("status", "--porcelain", "--", ".", "../configs")),
    }


def write_provenance(folder: Path, provenance: dict[str, Any]) -> None:
    """Write provenance.json atomically."""
    write_text(folder / "provenance.json", json.dumps(provenance, indent=2, ensure_ascii=False) + "\n")


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Any], pl.DataFrame]:
    """Read a finished results folder: (resolved config, provenance, runs).

    Raises:
        ResultsError: naming the file that is missing or damaged.
    """
    import yaml

    if not folder.is_dir():
        raise ResultsError(f"no results folder at {folder}; make one with: jaxpu run CONFIG --out {folder}")
    for name in ("config.yaml", "provenance.json", "runs.parquet"):
        if not (folder / name).exists():
            raise ResultsError(f"{folder} has no {name}; it is unfinished: repeat its jaxpu run to complete it")
    frame, problem = _read_runs(folder / "runs.parquet")
    if frame is None or problem:
        raise ResultsError(f"{folder}: {problem}; repeat its jaxpu run")
    try:
        config = yaml.safe_load((folder / "config.yaml").read_bytes())
    except yaml.YAMLError:
        raise ResultsError(f"{folder}: config.yaml is damaged; repeat its jaxpu run") from None
    provenance = read_provenance(folder)
    if provenance is None:
        raise ResultsError(f"{folder}: provenance.json is damaged; repeat its jaxpu run")
    return config, provenance, frame


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a configuration that :func:`read_folder` or ``jaxpu run`` left; {} where there is none.

    Raises:
        ResultsError: it is damaged.
    """
    import yaml

    try:
        raw = yaml.safe_load(path.read_bytes()) if path.exists() else {}
    except yaml.YAMLError:
        raw = None
    if not isinstance(raw, dict):
        raise ResultsError(f"{path.parent}: {path.name} is damaged; repeat its jaxpu run")
    return raw


def read_provenance(folder: Path) -> dict[str, Any] | None:
    """What :func:`write_provenance` wrote, or None if it is missing or damaged."""
    try:
        return json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def count_runs(folder: Path) -> int:
    """How many finished runs ``runs.parquet`` holds; 0 if it is missing or damaged."""
    frame, _ = _read_runs(folder / "runs.parquet")
    return 0 if frame is None else frame["run_id"].n_unique()
