"""From a plain mapping to a frozen dataclass; errors name the path, what was expected and what came."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from jaxpu.errors import lines_of, shown, unknown
from jaxpu.settings import ConfigError

Kind = TypeVar("Kind")


def validate(kind: type[Kind], raw: Mapping[str, Any], where: str = "configuration") -> Kind:
    """Validate a plain mapping into a configuration dataclass of any kind.

    Numbers may be written as text (``"1e-4"``); a boolean is no number, nor is a number or a word a boolean.

    Raises:
        ConfigError: naming the path, what was expected and what came.
    """
    try:
        made = TypeAdapter(kind).validate_python(raw)
    except ValidationError as error:
        wrong = [_explain(e, kind) for e in error.errors(include_url=False)]
        raise ConfigError(lines_of(f"{where}: {line}" for line in wrong)) from None
    except RecursionError:
        raise ConfigError(f"{where}: nested too deep") from None
    wrong = list(mistaken(raw, made))
    if wrong:
        raise ConfigError(lines_of(f"{where}: {line}" for line in wrong))
    return made


def mistaken(raw: Any, made: Any, path: str = "") -> Iterator[str]:
    """Where a boolean was taken for a number, or something else for a boolean.

    >>> list(mistaken({"a": True, "b": ["yes"]}, {"a": 1.0, "b": (True,)}))
    ['a: expected a number, got true', "b.0: expected true or false, got 'yes'"]
    """
    if isinstance(raw, Mapping):
        for key, value in raw.items():
            if isinstance(made, Mapping) and key in made:
                yield from mistaken(value, made[key], f"{path}.{key}".lstrip("."))
            elif dataclasses.is_dataclass(made) and isinstance(key, str) and hasattr(made, key):
                yield from mistaken(value, getattr(made, key), f"{path}.{key}".lstrip("."))
    elif isinstance(raw, list | tuple) and isinstance(made, list | tuple):
        for place, (value, of) in enumerate(zip(raw, made, strict=False)):
            yield from mistaken(value, of, f"{path}.{place}".lstrip("."))
    elif isinstance(raw, bool) and isinstance(made, int | float) and not isinstance(made, bool):
        yield f"{path}: expected a number, got {str(raw).lower()}"
    elif isinstance(made, bool) and not isinstance(raw, bool):
        yield f"{path}: expected true or false, got {shown(raw)}"


def _explain(error: Any, kind: type) -> str:
    path = ".".join(str(p)[:80] for p in error["loc"])
    message = error["msg"].removeprefix("Value error, ")
    if not path:  # settings that do not fit together: the message names them, all that came would bury it
        return message
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        *parents, key = error["loc"]
        return f"{path}: {unknown('key', key, [f.name for f in dataclasses.fields(_group_at(parents, kind))])}"
    return f"{path}: {message}, got {shown(error['input'])}"


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


def flat(settings: Any, path: str = "") -> dict[str, Any]:
    """Nested settings by dotted path; what holds none is a value.

    >>> flat({"seeds": 2, "training": {"lr": 0.1}, "options": {}})
    {'seeds': 2, 'training.lr': 0.1, 'options': {}}
    """
    if not isinstance(settings, dict) or not settings:
        return {path: settings}
    return {k: v for key, value in settings.items() for k, v in flat(value, f"{path}.{key}".strip(".")).items()}


def value_at(settings: Any, dotted: str) -> Any:
    """The value at a dotted path of settings, in dataclasses and mappings; None where there is none.

    A name that a group does not have itself is looked up in its ``options``.
    """
    for name in dotted.split("."):
        if isinstance(settings, Mapping):
            settings = settings.get(name)
        elif hasattr(settings, name):
            settings = getattr(settings, name)
        else:
            settings = (getattr(settings, "options", None) or {}).get(name)
    return settings
