"""What all groups of settings share: how strict they are, types of numbers, and the error that names what is wrong."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import ConfigDict, Field
from pydantic_core import ArgsKwargs

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
"""Nothing unknown, no infinity and no NaN."""

PositiveInt = Annotated[int, Field(strict=True, ge=1)]
Count = Annotated[int, Field(strict=True, ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]


class ConfigError(ValueError):
    """A configuration that cannot be used; the message says where, what was expected, and the choices."""


def with_defaults(given: Any, add: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """What a group of settings is made from, by keyword or as a mapping, after ``add``; for validators before it."""
    raw = dict(given.kwargs or {}) if isinstance(given, ArgsKwargs) else given
    if not isinstance(raw, dict):
        return given
    return ArgsKwargs(given.args, add(raw)) if isinstance(given, ArgsKwargs) else add(raw)
