"""What messages are made of: values cut short, and names that there is none of."""

import difflib
import reprlib
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

MOST_LINES, MOST_CHARACTERS = 20, 200

_SHORT = reprlib.Repr()
_SHORT.maxdict, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlevel = 6, 80, 80, 3


def unknown(what: str, name: object, choices: Collection[str]) -> str:
    """The message for a name that there is none of: the nearest one, and all that there are.

    >>> unknown("method", "nnpo", ["nnpu", "upu"])
    "unknown method 'nnpo' (did you mean 'nnpu'?); choose from nnpu, upu"
    """
    near = difflib.get_close_matches(str(name)[:MOST_CHARACTERS], list(choices), n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {shown(name)}{hint}; choose from {', '.join(choices)}"


def shown(value: object) -> str:
    """A value as a message shows it: cut, however long it is.

    >>> shown("abc"), shown([1] * 10_000), len(shown("x" * 10_000)) < 100
    ("'abc'", '[1, 1, 1, 1, 1, 1, ...]', True)
    """
    try:
        text = _SHORT.repr(value)
    except ValueError:  # an integer of more digits than Python writes
        text = f"a number of type {type(value).__name__}"
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


def repeated(names: Iterable[Any]) -> list[Any]:
    """What stands there more than once, in order of first appearance.

    >>> repeated(["b", "a", "b"])
    ['b']
    """
    return [name for name, times in Counter(names).items() if times > 1]


def lines_of(messages: Iterable[str]) -> str:
    """Several messages as one, the first of them where there are many."""
    kept = list(messages)
    more = [f"... and {len(kept) - MOST_LINES} more"] if len(kept) > MOST_LINES else []
    return "\n".join([*kept[:MOST_LINES], *more])
