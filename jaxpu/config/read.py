"""From YAML to an :class:`Experiment` and back; errors name the path, what was expected and what came."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import yaml
from pydantic import TypeAdapter, ValidationError

from jaxpu.config.errors import ConfigError, unknown
from jaxpu.config.schema import Experiment, as_dict
from jaxpu.config.strict_yaml import load_yaml
from jaxpu.functions import identity, label

Kind = TypeVar("Kind")


def load(path: str | Path, overrides: dict[str, Any] | None = None) -> Experiment:
    """Read an experiment from YAML; ``overrides`` maps dotted paths to values.

    Raises:
        ConfigError: with the file, the path inside it, what was expected, what came.
    """
    return parse(read(path, overrides), where=str(path))


def read(path: str | Path, overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    """Read a configuration of whatever kind as a plain mapping, named after its file unless it has a name.

    Raises:
        ConfigError: there is no such file, it is not YAML or no mapping, or an override does not fit.
    """
    path = Path(path)
    if not path.is_file():
        raise ConfigError(f"no configuration at {path}; the ones that come with jaxpu are in configs/")
    try:
        raw = load_yaml(path.read_bytes())  # bytes, so that a file that is no text is a YAMLError
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: expected a mapping of keys, got {type(raw).__name__}")
    raw.setdefault("name", path.stem)
    for dotted, value in (overrides or {}).items():
        put(raw, dotted, value)
    return raw


def parse(raw: dict[str, Any], where: str = "configuration") -> Experiment:
    """Validate a plain mapping into an :class:`Experiment`.

    Raises:
        ConfigError: naming the path, what was expected and what came.

    >>> parse({"training": {"lr": "1e-4"}}).training.lr
    0.0001
    """
    return validate(Experiment, raw, where)


def validate(kind: type[Kind], raw: dict[str, Any], where: str = "configuration") -> Kind:
    """Validate a plain mapping into a configuration dataclass of any kind.

    Raises:
        ConfigError: naming the path, what was expected and what came.
    """
    try:
        return TypeAdapter(kind).validate_python(raw)
    except ValidationError as error:
        lines = [_explain(e, kind) for e in error.errors(include_url=False)]
        raise ConfigError("\n".join(f"{where}: {line}" for line in lines)) from None


def _explain(error: Any, kind: type) -> str:
    path = ".".join(str(p) for p in error["loc"])
    message = error["msg"].removeprefix("Value error, ")
    if not path:  # settings that do not fit together: the message names them, all that came would bury it
        return message
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        *parents, key = error["loc"]
        return f"{path}: {unknown('key', key, [f.name for f in dataclasses.fields(_group_at(parents, kind))])}"
    return f"{path}: {message}, got {error['input']!r}"


def _group_at(path: list[str | int], group: Any) -> Any:
    """The dataclass that stands at a path of settings: ``["claims", 0, "of"]`` is a :class:`Which`."""
    for step in path:
        kind = (
            get_args(group)[0] if isinstance(step, int) else {f.name: f.type for f in dataclasses.fields(group)}[step]
        )
        inside = [k for k in get_args(kind) if dataclasses.is_dataclass(k)]
        group = kind if isinstance(step, int) or get_origin(kind) is tuple or not inside else inside[0]
    return group


def put(tree: dict[str, Any], dotted: str, value: Any) -> None:
    """Set the value at a dotted path of a plain mapping.

    Raises:
        ConfigError: something on the way is not a mapping.
    """
    *parents, last = dotted.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"override {dotted}: {parent!r} is not a group of settings")
    tree[last] = value


def to_dict(experiment: Any) -> dict[str, Any]:
    """The experiment as plain data, everything resolved; ``parse(to_dict(e)) == e``."""
    return as_dict(experiment)


def dump(experiment: Any) -> str:
    """The resolved experiment as YAML."""
    return yaml.safe_dump(_written(to_dict(experiment)), sort_keys=False, allow_unicode=True, width=100)


def _written(value: Any) -> Any:
    """Settings as a file has them, functions and objects by their names."""
    if isinstance(value, dict):
        return {name: _written(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_written(entry) for entry in value]
    return value if value is None or isinstance(value, str | int | float) else label(value)


def digest(*values: Any) -> str:
    """Sixteen hex digits that change when any of the configuration objects or plain values does.

    A setting at its default does not enter: a new option, whose default is what was done before, leaves the
    identities of recorded runs as they were. Whoever changes a default raises ``jaxpu.sweep.runs.FORMAT``.

    >>> from jaxpu.config import DataConfig
    >>> digest(DataConfig()) == digest(DataConfig(c=0.1)), digest(DataConfig()) == digest(DataConfig(c=0.2))
    (True, False)
    """
    plain = [_chosen(v) if dataclasses.is_dataclass(v) else v for v in values]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), default=identity)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _chosen(settings: Any) -> dict[str, Any]:
    """The settings that are not at their default, and the kind of thing they are settings of."""
    fields = type(settings).__pydantic_fields__
    chosen = {name: getattr(settings, name) for name in fields}
    chosen = {k: v for k, v in chosen.items() if v != fields[k].get_default(call_default_factory=True)}
    return {"": type(settings).__name__, **{name: as_dict(settings)[name] for name in chosen}}
