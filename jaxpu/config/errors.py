"""What is said of a configuration that cannot be used."""

import difflib
from collections.abc import Collection


class ConfigError(ValueError):
    """A configuration that cannot be used; the message says where, what was expected, and the choices."""


def unknown(what: str, name: object, choices: Collection[str]) -> str:
    """The message for a name that there is none of: the nearest one, and all that there are."""
    near = difflib.get_close_matches(str(name), list(choices), n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {name!r}{hint}; choose from {', '.join(choices)}"
