"""What all groups of settings share: how strict they are, types of numbers, and the error that names what is wrong."""

import dataclasses
from collections.abc import Callable, Collection
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic_core import ArgsKwargs

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
"""Nothing unknown, no infinity and no NaN."""

PositiveInt = Annotated[int, Field(strict=True, ge=1)]
Count = Annotated[int, Field(strict=True, ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
AlphaSchedule = Literal["constant", "easy", "hard", "easy_hard_easy", "early_stop"]
"""The names of :data:`jaxpu.mixup.SCHEDULES`."""


class ConfigError(ValueError):
    """A configuration that cannot be used; the message says where, what was expected, and the choices."""


def with_defaults(given: Any, add: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """What a group of settings is made from, by keyword or as a mapping, after ``add``; for validators before it."""
    raw = dict(given.kwargs or {}) if isinstance(given, ArgsKwargs) else given
    if not isinstance(raw, dict):
        return given
    return ArgsKwargs(given.args, add(raw)) if isinstance(given, ArgsKwargs) else add(raw)


def is_default(field: Any, settings: Any) -> bool:
    """Whether a field of settings is as it would be had nobody set it."""
    default = field.default
    return getattr(settings, field.name) == getattr(default, "default", default)


def refuse_idle(settings: Any, idle: Collection[str], beside: str) -> None:
    """Refuse what is set and not read.

    Args:
        settings: a group of them. idle: names of those that are not read. beside: the setting that makes it so.

    Raises:
        ValueError: naming the first.
    """
    for field in dataclasses.fields(settings):
        if field.name in idle and not is_default(field, settings):
            raise ValueError(f"{field.name} has no effect with {beside}; leave it out")
