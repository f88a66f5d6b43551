"""Where numbers come from: the commit, whether its code was changed, and the versions of what they depend on."""

import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jaxpu
from jaxpu.runs.files import Damaged, read_sealed, write_sealed


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
    """Write provenance.json atomically, with a checksum."""
    write_sealed(folder / "provenance.json", (json.dumps(provenance, indent=2, ensure_ascii=False) + "\n").encode())


def took(provenance: Mapping[str, Any]) -> str:
    """How long compiling and running took, for people.

    >>> took({"compile_seconds": 8.0, "run_seconds": 31.4}), took({"compile_seconds": 20.0, "run_seconds": 700.0})
    ('39 s', '12 min')
    """
    if provenance.get("unfinished"):
        return f"{provenance['unfinished']} more not finished,"
    seconds = provenance["compile_seconds"] + provenance["run_seconds"]
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def read_provenance(folder: Path) -> dict[str, Any] | None:
    """What :func:`write_provenance` wrote, or None if it is missing or damaged."""
    try:
        return json.loads(read_sealed(folder / "provenance.json"))
    except Damaged:
        return None
