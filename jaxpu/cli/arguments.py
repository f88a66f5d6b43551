"""What was typed: options may stand between overrides, and what cannot be parsed is said as all errors are."""

import contextlib
import io
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

SEVERAL = "--datasets"
"""The option that is followed by words up to the next option or override."""


def in_order(arguments: Sequence[str], valued: Collection[str] = ()) -> list[str]:
    """The arguments of ``jaxpu run`` with its options behind configuration and overrides; others as they are.

    Args:
        arguments: as they were typed. valued: the options that are followed by a value.

    >>> in_order(["run", "quick", "a=1", "--seeds", "2", "b=3"], ["--seeds"])
    ['run', 'quick', 'a=1', 'b=3', '--seeds', '2']
    >>> in_order(["run", "quick", "--datasets", "digits", "spambase", "a=1"])
    ['run', 'quick', 'a=1', '--datasets', 'digits', 'spambase']
    """
    if arguments[:1] != ["run"]:
        return list(arguments)
    words, options, rest, listed = [], [], iter(arguments[1:]), False
    for word in rest:
        listed = word == SEVERAL or (listed and not word.startswith("-") and "=" not in word)
        if listed:
            options.append(word)
        elif word.startswith("--") and len(word) > 2:
            options += [word, *([value] if word in valued and (value := next(rest, None)) is not None else [])]
        else:
            (options if word.startswith("-") else words).append(word)
    return ["run", *words, *options]


def home(path: Path) -> Path:
    """A path with a leading ``~`` as the home folder, as the readers of files have it."""
    return Path(os.path.expanduser(path))


def parsed(parse: Callable[[], Any]) -> Any:
    """What a parser returns; what it prints when it gives up becomes one line on stderr, and exit status 2."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return parse()
    except SystemExit as end:
        if not end.code:
            raise
        print(f"jaxpu: {_plain(said.getvalue())}; jaxpu --help says what there is", file=sys.stderr)
        sys.exit(2)


def _plain(box: str) -> str:
    """The first statement in a parser's box."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip("│╭╮╰╯ ") for line in box.splitlines()]
    kept: list[str] = []
    for line in lines[1:]:
        if not line.strip("─"):
            break
        kept.append(line)
    return " ".join(" ".join(kept).split())[:300] or "the arguments cannot be read"


def devices(raw: dict[str, Any], distributed: str | None = None) -> int | None:
    """How many devices a configuration that is not checked yet asks of this process; None = a core each.

    >>> devices({"placement": {"devices": 2, "row_devices": 4}}), devices({"placement": {"devices": "many"}})
    (8, None)
    """
    placement = raw.get("placement")
    placement = placement if isinstance(placement, dict) else {}
    asked: list[Any] = [placement.get("devices"), placement.get("row_devices", 1)]
    whole = distributed is None and all(type(count) is int and count > 0 for count in asked)
    return wanted if whole and (wanted := math.prod(asked)) <= MOST_DEVICES else None


MOST_DEVICES = 512
"""A CPU is not split into more; whoever asks for more is told so later."""


def override(word: str) -> tuple[str, Any]:
    """Path and value of a word that changes a setting.

    Raises:
        ConfigError: it is no path and value, with an example.

    >>> override("training.lr=1e-3")
    ('training.lr', 0.001)
    """
    import yaml

    from jaxpu.config import ConfigError, load_yaml

    path, equals, text = word.partition("=")
    if not equals or not path:
        raise ConfigError(f"expected dotted.path=value, got {word!r}; for example training.lr=1e-3")
    try:
        return path, load_yaml(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"override {path}: {text!r} is not a YAML value: {error}") from None
