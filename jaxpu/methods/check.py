"""What a method's functions say of its options: which there are, their defaults, what tells them apart."""

import dataclasses
from typing import Any

from jaxpu.errors import unknown
from jaxpu.functions import identity, label, load
from jaxpu.methods.method import UPDATE, Memory, Method, as_number
from jaxpu.methods.risks import RISKS, Function, Options, options_of, read_options, resolve


def memory_of(method: Method) -> Memory | None:
    """What the method carries over steps, looked up if it is given by name.

    Raises:
        ValueError: what stands there is no :class:`Memory`.

    >>> memory_of(Method("nnpu")) is None
    True
    """
    memory = load(method.memory) if isinstance(method.memory, str) else method.memory
    if memory is not None and not isinstance(memory, Memory):
        raise ValueError(f"memory {method.memory!r} is a {type(memory).__name__}, expected a jaxpu.methods.Memory")
    return memory


def known_options(method: Method, risk: Function) -> Options:
    """The options of one of the method's risks, of its pairing, and of its memory's update.

    Raises:
        ValueError: a function that has an argument nobody gives.

    >>> known_options(Method("pudra"), "pudra").names
    []
    """
    own, memory = options_of(risk), memory_of(method)
    numbers = own.numbers | (pairing_options(method.pairing).numbers if method.pairing in ASKING else {})
    if memory is None:
        return own._replace(numbers=numbers)
    update = read_options(memory.update, 1, UPDATE)
    if update.choices:
        raise ValueError(f"{label(memory.update)}: options of a memory are numbers, got {list(update.choices)}")
    return own._replace(numbers=numbers | update.numbers)


ASKING = ("boundary_positives",)
"""Pairings that look at logits, and have numbers of their own."""


def pairing_options(name: str) -> Options:
    """The numbers of a pairing, which a method that pairs so may set, and whether it asks for ``logits``.

    >>> pairing_options("boundary_positives").numbers["pool"]
    0.1
    """
    return read_options(load("jaxpu.mixup:PAIRINGS")[name], 2, ("mask", "logits"))


def asks_for(method: Method, name: str) -> bool:
    """Whether one of the method's risks asks for something: ``y`` makes it an oracle.

    >>> asks_for(Method("pn"), "y"), asks_for(Method("nnpu"), "y")
    (True, False)
    """
    return any(name in options_of(risk).context for risk, _ in method.parts)


def checked(method: Method) -> Method:
    """The method with its options in one form: numbers are floats, and what is at its default is left out.

    Raises:
        ValueError: an option that none of its functions has, with the choices; a number that is none; class weights
            for a risk that does not ask for them; mixed labels for one that does not ask for labels.

    >>> checked(Method("nnpu", options={"gamma": "0.5", "beta": 0})).options
    {'gamma': 0.5}
    """
    if method.class_weights != "none" and not asks_for(method, "class_weights"):
        raise ValueError(
            f"class_weights is {method.class_weights!r}, expected 'none' for {label(method.risk)!r}: not a plain mean"
        )
    blind = [risk for risk, _ in method.parts if "y" not in options_of(risk).context] if method.mixes != "none" else []
    if blind:
        raise ValueError(f"mixes is {method.mixes!r}, expected 'none' for {label(blind[0])!r}: it has no labels to mix")
    sees = asks_for(method, "mixed")
    if sees and (method.mixup or method.mixes != "none"):
        raise ValueError(f"{label(method.risk)!r} gets mixed rows itself, expected penalty 'none' and mixes 'none'")
    if method.at_least_half and not sees:
        raise ValueError(f"at_least_half has no effect on {label(method.risk)!r}, which asks for no mixed rows")
    if method.alpha is not None and not (sees or method.mixup or method.mixes != "none"):
        raise ValueError(f"alpha has no effect on {label(method.risk)!r}, which mixes no rows; leave it out")
    stages = tuple(
        dataclasses.replace(stage, options=_checked(method, stage.risk, stage.options)) for stage in method.stages
    )
    return dataclasses.replace(method, stages=stages, options=_checked(method, method.risk, method.options))


def _checked(method: Method, risk: Function, options: dict[str, Any]) -> dict[str, Any]:
    known = known_options(method, risk)
    for name in options:
        if name not in known.names:
            raise ValueError(unknown(f"option of {label(risk)!r}", name, known.names or ["(it has none)"]))
    numbers = {name: _number(name, options[name]) for name in known.numbers if name in options}
    choices = {name: options[name] for name in known.choices if name in options}
    changed = {name: value for name, value in numbers.items() if value != known.numbers[name]}
    return changed | {name: value for name, value in choices.items() if value != known.choices[name]}


def _number(name: str, value: Any) -> Any:
    try:
        return as_number(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def risk_identity(method: Method) -> dict[str, str]:
    """What tells the method's functions from all others: name -> identity, for whatever keeps results in a folder.

    A function of one's own has its name and a digest of its source; a registered risk its name alone.

    Raises:
        ValueError: a lambda, a function inside a function or an object: it cannot be told from another one.

    >>> risk_identity(Method("nnpu"))
    {'risk': 'nnpu'}
    """
    found = {f"stage{place}": stage.risk for place, stage in enumerate(method.stages)} | {"risk": method.risk}
    for place, (_, options) in enumerate(method.parts):
        chosen = {f"{name}{place}": value for name, value in options.items() if callable(value)}
        found |= chosen
    memory = memory_of(method)
    if memory is not None:
        found |= {"memory_init": memory.init, "memory_update": memory.update}
    return {name: identity(function) for name, function in found.items()}


def decision_offset(method: Method) -> float:
    """The logit at which the method's p passes 1/2: its own, or that of its risk.

    >>> round(decision_offset(Method("pudra_softplus")), 4)
    -0.4328
    """
    if method.decision_offset is not None:
        return method.decision_offset
    known = RISKS.get(method.risk) if isinstance(method.risk, str) else None
    return known.decision_offset if known else 0.0


def in_one_form(method: Method) -> Method:
    """The method without what it says about itself, and without what it says that would be so anyway.

    >>> in_one_form(Method("pn", decision_offset=0.0)) == Method("pn")
    True
    """
    unsaid = dataclasses.replace(method, source="", decision_offset=None, skip_without_positives=None)
    said: dict[str, Any] = {}
    if method.decision_offset not in (None, decision_offset(unsaid)):
        said["decision_offset"] = method.decision_offset
    if method.skip_without_positives is not None and method.skip_without_positives != skips_without_positives(unsaid):
        said["skip_without_positives"] = method.skip_without_positives
    return dataclasses.replace(unsaid, **said)


def skips_without_positives(method: Method) -> bool:
    """Whether a batch without a labeled positive changes nothing: what the method says, or see :class:`Method`.

    >>> skips_without_positives(Method("pudra")), skips_without_positives(Method("pudra", penalty="log_mse"))
    (False, True)
    """
    if method.skip_without_positives is not None:
        return method.skip_without_positives
    return method.mixup or any(_skips(risk) for risk, _ in method.parts)


def _skips(risk: Function) -> bool:
    function = resolve(risk)
    for entry in RISKS:
        if function is resolve(entry):
            return RISKS[entry].skips
    return "y" not in options_of(risk).context
