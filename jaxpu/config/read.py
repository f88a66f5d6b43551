"""From YAML to an experiment and back, and where the configurations are that come with jaxpu."""

import difflib
import importlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from jaxpu.config.base import AnyExperiment
from jaxpu.config.grid import COUNTS, swept
from jaxpu.config.schema import as_dict
from jaxpu.config.strict_yaml import dump_yaml, load_yaml
from jaxpu.config.validate import put, validate
from jaxpu.errors import unknown
from jaxpu.functions import label
from jaxpu.settings import ConfigError

KINDS: dict[str, str] = {
    "pu": "jaxpu.config.experiment:Experiment",
    "multiclass": "jaxpu.config.experiment:Experiment",
    "ensemble": "jaxpu.config.ensemble:EnsembleExperiment",
    "guided": "jaxpu.config.guided:GuidedExperiment",
    "function": "jaxpu.config.function:FunctionExperiment",
}
"""Kind of experiment -> the class of its configuration."""


def load(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Any:
    """Read an experiment of any kind from YAML; ``overrides`` maps dotted paths to values.

    Raises:
        ConfigError: with the file, the path inside it, what was expected, what came.
    """
    return parse(read(path, overrides), where=str(path))


def read(path: str | Path, overrides: Mapping[str, Any] | None = None, datasets: Sequence[str] = ()) -> dict[str, Any]:
    """Read a configuration of whatever kind as a plain mapping, named after its file unless it has a name.

    With ``datasets`` it is about these and no others (:func:`on_datasets`), before ``overrides`` are put in.

    Raises:
        ConfigError: there is no such file, it is not YAML or no mapping, or an override does not fit.
    """
    path = find_config(path)
    try:
        raw = load_yaml(path.read_bytes())  # bytes, so that a file that is no text is a YAMLError
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {str(error)[:500]}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
        raise ConfigError(f"{path}: expected a mapping of keys, got {type(raw).__name__}")
    raw.setdefault("name", path.stem)
    raw = on_datasets(raw, datasets) if datasets else raw
    for dotted, value in (overrides or {}).items():
        _refuse_swept(raw.get("grid"), dotted, value)
        put(raw, dotted, value)
    return raw


def _refuse_swept(grid: Any, dotted: str, value: Any) -> None:
    """An override of what the grid sets would have no effect."""
    rows = grid if isinstance(grid, list) else [grid]
    if dotted.partition(".")[0] == "grid" or not all(isinstance(row, dict) for row in rows):
        return  # what is wrong with it is said when it is validated
    paths = [*swept(grid), *(name for name in COUNTS if isinstance(grid, list) and any(name in row for row in rows))]
    below = [f"{dotted}.{key}" for key in value] if isinstance(value, dict) else []
    for path in paths:
        if path in (dotted, *below) or dotted.startswith(f"{path}."):
            raise ConfigError(f"override {path}: the grid sets it, so this would have no effect; override grid instead")


OF_A_DATASET = ("data.name", "data.options", "data.test", "model", "training", *COUNTS)
"""Settings of a grid's rows that belong to the dataset of the row, and not to what is asked of all."""


def on_datasets(raw: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A configuration on some datasets and no others.

    Of a grid of rows those of the datasets stay. A dataset that has none gets the rows of the first one, without what
    belongs to that dataset: options, network, training, seeds. Claims about a dataset that is left out go with it.

    Args:
        raw: what :func:`read` gives. names: registered datasets, in the order of the table.

    Raises:
        ConfigError: a name stands there twice, or the experiment is about a file.

    >>> rows = [{"data.name": "spambase", "data.c": 0.1}, {"data.name": "mnist", "data.c": 0.1, "model.name": "lenet"}]
    >>> on_datasets({"grid": rows}, ["mnist", "digits"])["grid"]
    [{'data.name': 'mnist', 'data.c': 0.1, 'model.name': 'lenet'}, {'data.name': 'digits', 'data.c': 0.1}]
    """
    if len(set(names)) < len(names):
        raise ConfigError(f"datasets: expected different ones, got {', '.join(names)}")
    own, grid, claims = raw.get("data") or {}, raw.get("grid") or {}, raw.get("claims")
    rows = [grid] if isinstance(grid, Mapping) else grid
    if not isinstance(own, Mapping) or not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        return dict(raw)  # whoever parses it says what is wrong
    if own.get("file"):
        raise ConfigError("datasets: the experiment is about data.file, expected one about registered datasets")
    if isinstance(grid, Mapping):
        chosen: Any = {"data.name": list(names), **{path: v for path, v in grid.items() if path != "data.name"}}
    else:
        chosen = [row for name in names for row in _rows_of(grid, name)]
    replaced = ("name",) if "data.name" in swept(cast(Any, grid)) else ("name", "options")
    claims = [c for c in claims if not _datasets_of(c) - set(names)] if isinstance(claims, list) else claims
    return {
        **raw,
        "data": {name: value for name, value in own.items() if name not in replaced},
        "grid": chosen,
        **({"claims": claims} if "claims" in raw else {}),
    }


def _rows_of(grid: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """The rows of a dataset, or those of the first one as they are for any."""
    own = [dict(row) for row in grid if row.get("data.name") == name]
    if own:
        return own
    first = [row for row in grid if row.get("data.name") == grid[0].get("data.name")]
    found: list[dict[str, Any]] = []
    for row in first:
        shared = {path: v for path, v in row.items() if not any(f"{path}.".startswith(f"{p}.") for p in OF_A_DATASET)}
        if (made := {"data.name": name, **shared}) not in found:
            found.append(made)
    return found


def _datasets_of(claim: Any) -> set[str]:
    """The datasets that a claim names."""
    sides = [claim.get(side) or {} for side in ("of", "minus")] if isinstance(claim, Mapping) else []
    named = [name for side in sides for name in (side.get("dataset"), (side.get("where") or {}).get("data.name"))]
    return {name for name in named if isinstance(name, str)}


def parse(raw: Mapping[str, Any], where: str = "configuration") -> Any:
    """Validate a plain mapping into an experiment of the kind that it names, ``pu`` if none.

    Raises:
        ConfigError: naming the path, what was expected and what came.

    >>> parse({"training": {"lr": "1e-4"}}).training.lr
    0.0001
    """
    kind = raw.get("kind", "pu")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"{where}: kind: {unknown('kind', kind, KINDS)}")
    module, _, name = KINDS[kind].partition(":")
    return validate(getattr(importlib.import_module(module), name), raw, where)


def dump(experiment: AnyExperiment) -> str:
    """The resolved experiment as YAML."""
    return dump_yaml(written(as_dict(experiment)))


def written(value: Any) -> Any:
    """Plain settings as a file has them, functions and objects by their names.

    >>> written({"risk": [max, 0.5]})
    {'risk': ['builtins:max', 0.5]}
    """
    if isinstance(value, dict):
        return {name: written(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [written(entry) for entry in value]
    return value if value is None or isinstance(value, str | int | float) else label(value)


def config_folders() -> list[Path]:
    """Where configurations are looked for by name: ``configs`` here, then those of the wheel, or of the checkout."""
    package = Path(__file__).parents[1]
    checkout = package.parent / "configs" if (package.parent / "pyproject.toml").is_file() else package / "configs"
    places = {folder.resolve(): folder for folder in (checkout, package / "configs", Path("configs"))}
    return [folder for folder in reversed(places.values()) if folder.is_dir()]


def list_configs(folders: Iterable[Path] | None = None) -> dict[str, Path]:
    """The configurations that can be named, ``study/name`` or ``name`` -> file; the first folder's where both have it.

    Args:
        folders: where to look; :func:`config_folders` if not given.
    """
    found: dict[str, Path] = {}
    for folder in config_folders() if folders is None else folders:
        for path in sorted(folder.iterdir()):
            for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                if file.suffix == ".yaml" and file.is_file():
                    found.setdefault(file.relative_to(folder).with_suffix("").as_posix(), file)
    return found


def find_config(name: str | Path, folders: Iterable[Path] | None = None) -> Path:
    """The file of a configuration: a path, ``study/name``, or the name alone where only one study has it.

    Args:
        name: as it was typed; a leading ``~`` is the home folder. folders: as of :func:`list_configs`.

    Raises:
        ConfigError: there is none, or several, naming them.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return path
    known = list_configs(folders)
    wanted = Path(name).as_posix()
    named = [full for full in known if wanted in (full, full.rpartition("/")[2])]
    named = [wanted] if wanted in known else named
    if len(named) == 1:
        return known[named[0]]
    if named:
        raise ConfigError(f"several configurations are named {wanted}: {', '.join(named)}; say which")
    what = f"{path} is a folder, no configuration" if path.is_dir() else f"no configuration at {path}"
    near = difflib.get_close_matches(wanted, [*known, *(full.rpartition("/")[2] for full in known)], n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise ConfigError(f"{what}, and none of that name{hint}; jaxpu list names those that there are")
