"""The registry of risks, and what a risk's signature says: its options, and what else it asks for.

A risk is a function ``risk(logits, labeled, *, prior, mask=None, **options)`` that returns a scalar, one of
:mod:`jaxpu.losses` or a user's own. Its keyword arguments are read once:

- those of :data:`CONTEXT` are given by name: the class prior, the mask, ``y``, the true labels (an oracle asks for
  them), and so on;
- those whose default is a number are options that are traced and can be swept, at their default unless a method sets
  them;
- those whose default is anything else (a word, a bool, a function) are choices, fixed in the compiled program.

Functions are looked up when they are used: to read names needs no jax.

>>> options_of("nnpu").numbers["gamma"], options_of("nnpu").choices["surrogate"]
(1.0, 'sigmoid')
"""

import functools
import hashlib
import importlib
import inspect
import json
import numbers
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from jaxpu.errors import unknown

Function: TypeAlias = str | Callable[..., Any]
"""A function, or where it is: a name of the registry, or ``package.module:function``."""

CONTEXT = {
    "prior": "the class prior π",
    "mask": "(n,) 1 = the row counts, 0 = padding",
    "y": "(n,) the true labels: whoever asks for them is an oracle",
    "class_weights": "(k,) how much a row of each class counts",
    "progress": "the share of the epochs that is done, a scalar",
    "rows": "(n,) places of the batch's rows in the training set",
    "memory": "what the method's memory holds",
    "forward": "a function from parameters to the logits of the batch, without dropout",
    "aux": "True: (value, {'clipped': 0 or 1}) may be returned",
}
"""What a risk may ask for by the name of a keyword argument."""


class Risk(NamedTuple):
    """A registered risk.

    ``function`` is where it is, ``decision_offset`` the logit at which its estimate of p passes 1/2.
    """

    function: str
    formula: str
    source: str
    decision_offset: float = 0.0


_CODE = "the benchmark code behind the nine-dataset table"

RISKS: dict[str, Risk] = {
    "pn": Risk("jaxpu.losses:pn", "mean loss on true labels", "supervised learning: the oracle"),
    "pn_naive": Risk("jaxpu.losses:pn_naive", "mean loss, U as negatives", "supervised learning"),
    "upu": Risk("jaxpu.losses:upu", "π R_P⁺ + R_U⁻ - π R_P⁻", "du Plessis et al., ICML 2015"),
    "nnpu": Risk(
        "jaxpu.losses:nnpu",
        "π R_P⁺ + max(R_U⁻ - π R_P⁻, 0), gradient reversed where clipped",
        "Kiryo et al., NeurIPS 2017, algorithm 1",
    ),
    "nnpu_clip": Risk(
        "jaxpu.losses:nnpu_clip",
        "π R_P⁺ + max(R_U⁻ - π R_P⁻, 0)",
        "Kiryo et al., NeurIPS 2017, the risk differentiated as written",
    ),
    "nnpusb": Risk(
        "jaxpu.losses:nnpusb",
        "π R_P⁺ + max(R_U⁻ - π R_P⁻, 0), gradient reversed where clipped, logistic loss",
        "Kato et al., Learning from Positive and Unlabeled Data with a Selection Bias, ICLR 2019",
    ),
    "pudra": Risk("jaxpu.losses:pudra", "π E_P[-log p] + E_U[p]", _CODE),
    "pudra_softplus": Risk(
        "jaxpu.losses:pudra_softplus",
        "π E_P[-log g] + E_U[g], g = softplus(z)",
        _CODE,
        decision_offset=-0.4327521295671886,  # log(e^½ - 1): there g passes ½
    ),
    "pudra_batch": Risk("jaxpu.losses:pudra_batch", "π E_P[-log p] + E_U[p], π = n_P / n of the batch", _CODE),
    "pudra_naive": Risk("jaxpu.losses:pudra_naive", "E_P[-log p + p] + E_U[p]", _CODE),
    "variational": Risk(
        "jaxpu.losses:variational",
        "log E[p] - E_P[log p]",
        "Chen et al., A Variational Approach for Learning from Positive and Unlabeled Data, NeurIPS 2020",
    ),
}
"""The risks by name: a method says ``risk="nnpu"``."""


class Options(NamedTuple):
    """What a signature says: numbers and choices with their defaults, and the names of :data:`CONTEXT` it asks for."""

    numbers: dict[str, float]
    choices: dict[str, Any]
    context: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The options that a method may set."""
        return [*self.numbers, *self.choices]


def resolve(risk: Function) -> Callable[..., Any]:
    """The function that a risk's name means, or that stands at ``package.module:function``.

    Raises:
        ValueError: no risk of that name, with the choices; nothing to import there.

    >>> resolve("nnpu").__name__
    'nnpu'
    """
    if not isinstance(risk, str):
        return risk
    if risk in RISKS:
        return load(RISKS[risk].function)
    if ":" not in risk:
        raise ValueError(f"{unknown('risk', risk, RISKS)}; a function of your own is 'package.module:function'")
    return load(risk)


@functools.lru_cache(maxsize=256)
def load(path: str) -> Any:
    """What stands at ``package.module:name``; a module may also lie in the current folder.

    Raises:
        ValueError: nothing to import there, and why.

    >>> load("jaxpu.errors:unknown").__name__
    'unknown'
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


def options_of(risk: Function) -> Options:
    """What the signature of a risk says of its options.

    Raises:
        ValueError: an argument that has no default and that nobody gives.

    >>> options_of("variational")
    Options(numbers={}, choices={'over': 'all'}, context=('prior', 'mask'))
    """
    return read_options(resolve(risk), 2)


@functools.lru_cache(maxsize=256)
def read_options(function: Callable[..., Any], positional: int, given: tuple[str, ...] = tuple(CONTEXT)) -> Options:
    """The options of any function behind its first ``positional`` arguments; ``given`` are the names it may ask for.

    Raises:
        ValueError: an argument that has no default and that nobody gives.
    """
    numeric: dict[str, float] = {}
    choices: dict[str, Any] = {}
    context: list[str] = []
    for parameter in list(inspect.signature(function).parameters.values())[positional:]:
        name, default = parameter.name, parameter.default
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in given:
            context.append(name)
        elif default is parameter.empty:
            raise ValueError(
                f"{label(function)}: argument {name!r} has no default; an option has one, and what may be asked for "
                f"without is {', '.join(given)}"
            )
        elif isinstance(default, numbers.Real) and not isinstance(default, bool):
            numeric[name] = float(default)
        else:
            choices[name] = default
    return Options(numeric, choices, tuple(context))


def label(function: Any) -> str:
    """The name of a function for people: a registered name, or ``module:function``.

    >>> label("nnpu"), label(label)
    ('nnpu', 'jaxpu.methods.risks:label')
    """
    if isinstance(function, str):
        return function
    if isinstance(function, functools.partial):
        return f"partial of {label(function.func)}"
    function = inspect.unwrap(function)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}:{name}"


def identity(function: Any) -> str:
    """What tells a function from all others: its name, and of a user's own a digest of its source.

    The digest sees the function itself, not what it calls. Names of the registry, and functions of jaxpu, are told by
    their name.

    Raises:
        ValueError: a lambda, a function inside a function or an object, which cannot be told from another one.

    >>> identity("nnpu"), identity(label)
    ('nnpu', 'jaxpu.methods.risks:label')
    """
    if isinstance(function, str):
        return function if function in RISKS or ":" not in function else identity(load(function))
    if isinstance(function, functools.partial):
        given = json.dumps([function.args, function.keywords], sort_keys=True, default=identity)
        return f"{identity(function.func)}{given}"
    name = label(function)
    if "<" in name or not inspect.isroutine(inspect.unwrap(function)):
        raise ValueError(
            f"{name} is a lambda, a function inside a function or an object, and results in a folder could not tell it "
            "from another one: define it at the top level of a module, or run without a folder"
        )
    if name.startswith("jaxpu."):
        return name
    try:
        source = inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):
        raise ValueError(
            f"the source of {name} cannot be read, and results in a folder could not tell it from another function: "
            "define it in a file, or run without a folder"
        ) from None
    return f"{name}@{hashlib.sha256(source.encode()).hexdigest()[:16]}"
