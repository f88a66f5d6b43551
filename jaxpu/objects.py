"""Objects of the user, named in a configuration as ``"package.module:name"``."""

import importlib
import sys
from pathlib import Path
from typing import Any


def find(what: str, name: str) -> Any:
    """The object that ``"package.module:name"`` names; modules in the current folder are found, too.

    Args:
        what: what is looked for, for messages: ``"model.module"``. name: as above.

    Raises:
        ValueError: the name has another form, there is no such module, or it has no such object.

    >>> find("training.optimizer", "math:sqrt")(4.0)
    2.0
    >>> find("training.optimizer", "math:cosine")
    Traceback (most recent call last):
    ValueError: training.optimizer: module math has no 'cosine'
    """
    module, colon, attribute = name.partition(":")
    if not (colon and module and attribute):
        raise ValueError(f"{what} is {name!r}, expected 'package.module:name'")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        # a command that is installed does not look into the current folder, python -m does
        here = str(Path.cwd())
        if here in sys.path or error.name not in (module, module.partition(".")[0]):
            raise ValueError(f"{what}: {error}; it is looked for on sys.path") from None
        sys.path.append(here)
        return find(what, name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{what}: module {module} has no {attribute!r}")
        found = getattr(found, part)
    return found
