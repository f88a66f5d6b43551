"""Functions and classes of the user: found by ``package.module:name``, named for people, told apart by source."""

import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import os
import sys
from typing import Any


@functools.lru_cache(maxsize=256)
def load(path: str) -> Any:
    """What stands at ``package.module:name``; a module may also lie in the current folder.

    Raises:
        ValueError: nothing to import there, and why.

    >>> load("math:sqrt")(4.0)
    2.0
    """
    module, _, name = path.partition(":")
    here = os.getcwd()
    sys.path.append(here)
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"{path!r} cannot be imported ({error}); expected 'package.module:name' of an installed package "
            f"or of a file in {here}"
        ) from None
    finally:
        sys.path.remove(here)


def is_path(name: Any) -> bool:
    """Whether something has the form ``package.module:name``.

    >>> is_path("package.module:name"), is_path("name"), is_path("C:/name")
    (True, False, False)
    """
    module, _, attribute = name.partition(":") if isinstance(name, str) else ("", "", "")
    return all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")])


def label(thing: Any) -> str:
    """The name of a function or an object for people.

    >>> label("nnpu"), label(label)
    ('nnpu', 'jaxpu.functions:label')
    """
    if isinstance(thing, str):
        return thing
    if isinstance(thing, functools.partial):
        return f"partial of {label(thing.func)}"
    thing = inspect.unwrap(thing) if callable(thing) else thing
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{getattr(named, '__module__', '?')}:{named.__qualname__}"


def taken_apart(made: Any) -> tuple[type, dict[str, Any]]:
    """The class of a dataclass, a module of Flax for instance, and what it was made with, which a file can hold.

    >>> import flax.linen as nn
    >>> taken_apart(nn.Dense(3))
    (<class 'flax.linen.linear.Dense'>, {'features': 3})
    """
    fields = [f for f in dataclasses.fields(made) if f.init and f.name not in ("parent", "name")]
    given = {f.name: getattr(made, f.name) for f in fields}
    return type(made), {f.name: v for f in fields if (v := given[f.name]) is not f.default}


def identity(thing: Any) -> str:
    """What tells a function, class or object from all others: its name, and of a user's own a digest of its source.

    The digest sees the function itself, not what it calls. What belongs to jaxpu is told by its name, an object of a
    dataclass by its class and fields.

    Raises:
        ValueError: a lambda, a function inside a function or another object, which cannot be told from another one.

    >>> identity("nnpu"), identity(label)
    ('nnpu', 'jaxpu.functions:label')
    """
    if isinstance(thing, str):
        return identity(load(thing)) if is_path(thing) else thing
    if isinstance(thing, functools.partial):
        return f"{identity(thing.func)}{_told([thing.args, thing.keywords])}"
    if isinstance(thing, tuple):
        return _told([None if part is None else part if isinstance(part, str) else identity(part) for part in thing])
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = [f.name for f in dataclasses.fields(thing) if f.init and f.name not in ("parent", "name")]
        return f"{identity(type(thing))}{_told({name: getattr(thing, name) for name in fields})}"
    name = label(thing)
    if "<" in name or not (isinstance(thing, type) or inspect.isroutine(inspect.unwrap(thing))):
        raise ValueError(
            f"{name} is a lambda, a function inside a function or an object, and results in a folder could not tell it "
            "from another one: define it at the top level of a module, or run without a folder"
        )
    if name.startswith("jaxpu."):
        return name
    try:
        source = inspect.getsource(inspect.unwrap(thing))
    except (OSError, TypeError):
        raise ValueError(
            f"the source of {name} cannot be read, and results in a folder could not tell it from another function: "
            "define it in a file, or run without a folder"
        ) from None
    return f"{name}@{hashlib.sha256(source.encode()).hexdigest()[:16]}"


def _told(values: Any) -> str:
    return json.dumps(values, sort_keys=True, default=identity)
