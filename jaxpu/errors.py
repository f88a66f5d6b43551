"""What is said of a name that there is none of."""

import difflib
from collections.abc import Collection


def unknown(what: str, name: object, choices: Collection[str]) -> str:
    """The message for a name that there is none of: the nearest one, and all that there are.

    >>> unknown("method", "nnpo", ["nnpu", "upu"])
    "unknown method 'nnpo' (did you mean 'nnpu'?); choose from nnpu, upu"
    """
    near = difflib.get_close_matches(str(name), list(choices), n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {name!r}{hint}; choose from {', '.join(choices)}"
