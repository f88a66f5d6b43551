"""The identity of settings: a digest of canonical values, the same however they were written."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from jaxpu import functions


def digest(*values: Any) -> str:
    """Sixteen hex digits that change when any of the configuration objects or plain values does.

    A setting at its default does not enter: a new option, whose default is what was done before, leaves the
    identities of recorded runs as they were. Whoever changes a default raises the engine's ``FORMAT``. Nor does it
    matter in which order keys were written, or a number as 1, 1.0 or 1e0.

    Of a function its name enters, not its source; whoever records results adds :func:`jaxpu.functions.identity`.

    >>> from jaxpu.config import DataConfig
    >>> digest(DataConfig()) == digest(DataConfig(c=0.1)), digest(DataConfig()) == digest(DataConfig(c=0.2))
    (True, False)
    >>> digest({"a": 1, "b": [1e-3]}) == digest({"b": (0.001,), "a": 1.0})
    True
    """
    text = json.dumps([_canonical(value) for value in values], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"": type(value).__name__} | {k: _canonical(v) for k, v in _chosen(value).items()}
    if isinstance(value, Mapping):
        return {str(key): _canonical(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | range):
        return [_canonical(entry) for entry in value]
    if callable(value):
        return _of_function(value)
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _chosen(settings: Any) -> dict[str, Any]:
    """The settings that are not at their default."""
    chosen = {}
    for field in dataclasses.fields(settings):
        value, default = getattr(settings, field.name), _default(settings, field)
        if value != default:
            chosen[field.name] = value
    return chosen


def _default(settings: Any, field: "dataclasses.Field[Any]") -> Any:
    described = getattr(type(settings), "__pydantic_fields__", {}).get(field.name)
    if described is not None:
        return described.get_default(call_default_factory=True)
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _of_function(function: Any) -> str:
    """Its name, as a file would name it; one without a name of its own is itself while the process lasts."""
    try:
        return functions.identity(function).partition("@")[0]
    except ValueError:
        return f"{functions.label(function)} {id(function)}"
