"""Markdown put together from what others wrote: text that stays text, tables, and numbers as people read them."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_SIGNS = re.compile(r"[\\`*|$]|(?<!\w)_|_(?!\w)|\](?=[(\[:])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\{(?=#)|^[#>:~]")
"""What Markdown would take for markup where it stands."""


class Markdown(str):
    """Text that is Markdown already; everything else is escaped when it is put into a page."""

    __slots__ = ()


def plain(text: Any) -> Markdown:
    r"""Text from outside, on one line, such that no sign of it is taken for Markdown, HTML or a formula.

    >>> plain("a|b <i> [x](y) $z$ val_f1")
    'a\\|b \\<i> [x\\](y) \\$z\\$ val_f1'
    >>> plain(plain("a*b")), plain("< 0.5 [0.1, 0.9]")
    ('a\\*b', '< 0.5 [0.1, 0.9]')
    """
    if isinstance(text, Markdown):
        return text
    words = " ".join(str(text).split())
    safe = _SIGNS.sub(r"\\\g<0>", words)
    return Markdown(re.sub(r"^(\d*)(?=[-+.)](?:\s|$)|[-=]+$)", r"\1\\", safe))


def paragraphs(text: Any) -> Markdown:
    """Text from outside, with its blank lines as the ends of paragraphs."""
    return Markdown("\n\n".join(plain(part) for part in str(text or "").split("\n\n") if part.strip()))


def code(text: Any) -> Markdown:
    r"""Text from outside as code within a line or a cell.

    >>> code("a|b`c")
    "`a\\|b'c`"
    """
    words = " ".join(str(text).replace("`", "'").split()).replace("|", "\\|")
    return Markdown(f"`{words}`" if words else "")


def block(text: str) -> Markdown:
    """Text from outside as a block of code."""
    return Markdown("\n".join(f"    {line}" for line in text.rstrip().splitlines()))


def fold(summary: str, body: str) -> Markdown:
    """A part that the reader opens."""
    return Markdown(f"::::: fold {plain(summary)}\n\n{body}\n\n:::::") if body else Markdown()


def table(heads: Sequence[Any], rows: Iterable[Sequence[Any]], look: str = "") -> Markdown:
    r"""A table; cells that are no :class:`Markdown` are escaped.

    Args:
        heads: of the columns. rows: their cells.
        look: a letter a column, ``l`` for words at the left, ``r`` for numbers at the right; by default ``lrr...``.

    >>> print(table(["method", "F1"], [["a|b", 0.5]]))
    | method | F1 |
    |---|---:|
    | a\|b | 0.5 |
    """
    sides = (look or "l").ljust(len(heads), "r")
    ruler = "".join("---|" if side == "l" else "---:|" for side in sides[: len(heads)])
    lines = [f"| {' | '.join(map(plain, cells))} |" for cells in (heads, *rows)]
    return Markdown("\n".join([lines[0], f"|{ruler}", *lines[1:]]))


def number(value: float | None, digits: int = 3) -> str:
    """A number with fixed decimals, or a dash for what is not known."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def mean(row: Mapping[str, Any] | None, digits: int = 3) -> str:
    """A mean with its interval.

    >>> mean({"mean": 0.86, "ci_low": 0.84, "ci_high": 0.87, "n": 8})
    '0.860 [0.840, 0.870]'
    >>> mean({"mean": 0.86, "ci_low": float("nan"), "ci_high": float("nan"), "n": 1})
    '0.860 (n = 1)'
    """
    if row is None or number(row["mean"]) == "–":
        return "–"
    low, high = number(row["ci_low"], digits), number(row["ci_high"], digits)
    return f"{number(row['mean'], digits)} " + (f"(n = {row['n']})" if "–" in (low, high) else f"[{low}, {high}]")


def share(row: Mapping[str, Any] | None) -> str:
    """A share of runs with its interval in percent.

    >>> share({"mean": 0.25, "ci_low": 0.0715, "ci_high": 0.5907, "n": 8})
    '2/8 = 25 % [7, 59]'
    """
    if row is None or number(row["mean"]) == "–":
        return "–"
    text = f"{round(row['mean'] * row['n'])}/{row['n']} = {100 * row['mean']:.0f} %"
    low, high = row["ci_low"], row["ci_high"]
    return text if "–" in (number(low), number(high)) else f"{text} [{100 * low:.0f}, {100 * high:.0f}]"


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Join as a sentence does.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return f" {word} ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def slug(text: str) -> str:
    """The id of a heading.

    >>> slug("Why Spambase, and not simple images?")
    'why-spambase-and-not-simple-images'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"
