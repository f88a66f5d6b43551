"""One handler for all that machine, file or parser can refuse: a line with what it was about and what to do."""

import errno
import os
from typing import Any

from jaxpu.errors import MOST_CHARACTERS

LONGEST = 1500
"""Characters of a message; what names files and settings stands first."""

_REMEDIES = {
    errno.ENOSPC: "make room there, or give another folder, and repeat the command: what is done is kept",
    errno.EDQUOT: "make room there, or give another folder, and repeat the command: what is done is kept",
    errno.EACCES: "get permission, or give another folder",
    errno.EPERM: "get permission, or give another folder",
    errno.EROFS: "give another folder, it is read-only",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "give a file",
    errno.ENAMETOOLONG: "give a shorter path",
}


def in_words(error: BaseException, about: str) -> str | None:
    """The message for what was raised; None for what is a mistake in the program and needs its traceback.

    Args:
        error: what was raised. about: the file or folder of the command.

    >>> in_words(OSError(28, "No space left on device", "out/a"), "out").partition(",")[0]
    'out/a: No space left on device; make room there'
    >>> in_words(RecursionError("maximum"), "a.yaml")
    'a.yaml: nested too deep; write it flatter'
    >>> in_words(KeyError("x"), "a.yaml") is None
    True
    """
    home = type(error).__module__.partition(".")[0]
    text = first_line(error)
    if isinstance(error, OSError):
        where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else about
        remedy = _REMEDIES.get(error.errno or 0, "check the path, the disk and your permissions")
        return f"{cut(where)}: {error.strerror or text}; {remedy}"
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in text:
        return f"{about}: memory is full; give less at once: fewer seeds, smaller data, placement.chunk=1"
    if isinstance(error, RecursionError):
        return f"{about}: nested too deep; write it flatter"
    if isinstance(error, OverflowError):
        return f"{about}: a number is too large ({text}); give a smaller one"
    if isinstance(error, UnicodeError):
        return f"{about}: not text in UTF-8 ({text}); check the file"
    if home in ("polars", "pyo3_runtime", "zipfile", "zlib", "lzma", "yaml"):
        return f"{about}: cannot be read or written ({text}); check the file, it may be damaged"
    return None


def about(command: Any) -> str:
    """The file or folder of a command."""
    names = ("table", "config", "folder", "file")
    return cut(str(next((getattr(command, name) for name in names if hasattr(command, name)), "jaxpu")))


def first_line(error: BaseException) -> str:
    """The first line of an error's text, cut."""
    lines = str(error).strip().splitlines()
    return cut(lines[0] if lines else type(error).__name__)


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text that is not longer than that.

    >>> cut("x" * 300)[-5:], len(cut("x" * 300))
    ('xx...', 203)
    """
    return text if len(text) <= most else f"{text[:most]}..."
