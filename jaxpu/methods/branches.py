"""What of methods stands in a compiled program: the risks, each with its choices, and the penalties that are used."""

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxpu.methods.check import asks_for, checked, memory_of
from jaxpu.methods.method import PENALTIES, Memory, Method, Schedule
from jaxpu.methods.risks import RISKS, Function, label, options_of, resolve


class Branch(NamedTuple):
    """A risk with its choices: one branch of a program."""

    risk: Function
    choices: tuple[tuple[str, Any], ...]


@dataclasses.dataclass(frozen=True)
class Objective:
    """The static part of a group of methods.

    Attributes:
        branches: the risks, each with its choices. penalties: of the mixed forward pass; none = there is no such pass.
        memory: what is carried over steps. stages: the most risks that a method takes one after the other.
        pairing: whom rows are mixed with. mixes: how inputs and labels are mixed. plain: whether there is a forward
            pass over the rows as they are.
    """

    branches: tuple[Branch, ...]
    penalties: tuple[str, ...] = ()
    memory: Memory | None = None
    stages: int = 1
    pairing: str = "labeled_positives"
    mixes: str = "none"
    plain: bool = True

    @property
    def mixup(self) -> bool:
        """Whether there is a consistency term, with a mixed forward pass of its own."""
        return bool(self.penalties)

    @property
    def sees_mixed(self) -> bool:
        """Whether a risk asks for a mixed forward pass."""
        return any("mixed" in options_of(branch.risk).context for branch in self.branches)


def branches_of(methods: Iterable[Method]) -> tuple[Branch, ...]:
    """The risks with their choices that the methods use, each once, in an order that is not that of the methods.

    Raises:
        ValueError: a risk or an option that does not exist.

    >>> [branch.risk for branch in branches_of([Method("upu"), Method("pudra"), Method("upu", options={})])]
    ['pudra', 'upu']
    """
    found = dict.fromkeys(branch_of(risk, options) for method in methods for risk, options in method.parts)
    return tuple(sorted(found, key=_order))


def branch_of(risk: Function, options: dict[str, Any]) -> Branch:
    """A risk with all its choices, those that are set and the defaults of the others.

    >>> branch_of("variational", {}).choices
    (('over', 'all'),)
    """
    defaults = options_of(risk).choices
    return Branch(risk, tuple(sorted({name: options.get(name, default) for name, default in defaults.items()}.items())))


def _order(branch: Branch) -> list[str]:
    chosen = [label(value) if callable(value) else str(value) for _, value in branch.choices]
    return [label(branch.risk), *chosen]


def structure_of(method: Method) -> tuple[Any, ...]:
    """What methods must have in common to share a program.

    >>> from jaxpu.methods import METHODS
    >>> structure_of(METHODS["vpu"]) == structure_of(METHODS["soft_anchor"])
    True
    """
    sees = asks_for(method, "mixed")
    mixed = sees or method.mixup or method.mixes != "none"
    shared = method.mixup, mixed and method.pairing, method.batching, memory_of(method), method.mixes, _plain(method)
    return *shared, sees


def _plain(method: Method) -> bool:
    """Whether the rows as they are pass through the network, too."""
    return method.mixes == "none" or method.plain_weight > 0


def objective_of(methods: Iterable[Method]) -> Objective:
    """The static part of methods that share a program.

    Raises:
        ValueError: their structures differ; a risk or an option that does not exist.

    >>> from jaxpu.methods import METHODS
    >>> objective_of([METHODS["vpu"], METHODS["vpudra_pp"]]).penalties
    ('log_mse', 'point_process')
    """
    methods = [checked(method) for method in methods]
    if len({structure_of(method) for method in methods}) != 1:
        raise ValueError(
            "methods of one program have mixup, pairing, batching, memory, mixes and plain passes in common; group "
            "them by structure_of"
        )
    used = {method.penalty for method in methods}
    return Objective(
        branches=branches_of(methods),
        penalties=tuple(name for name in PENALTIES[1:] if name in used),
        memory=memory_of(methods[0]),
        stages=max(len(method.parts) for method in methods),
        pairing=structure_of(methods[0])[1] or "labeled_positives",
        mixes=methods[0].mixes,
        plain=_plain(methods[0]),
    )


def try_out(method: Method) -> None:
    """Let the registered risks of a method look at their options, on shapes alone.

    Raises:
        ValueError: what a risk says to a number out of its range, or a word that does not exist.

    >>> try_out(Method("variational", options={"over": "none"}))
    Traceback (most recent call last):
    ValueError: over is 'none', expected 'all' or 'unlabeled'
    """
    z, labeled = jax.ShapeDtypeStruct((4,), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.float32)
    context = {"prior": 0.5, "y": np.array([1, 0, 0, 0]), "class_weights": np.ones(2, np.float32)}
    for risk, options in method.parts:
        known = options_of(risk)
        own = {name: value for name, value in options.items() if name in known.names}
        for end in ("start", "end") if risk in RISKS else ():
            given = {name: getattr(value, end) if isinstance(value, Schedule) else value for name, value in own.items()}
            wanted = {name: jnp.asarray(value) for name, value in context.items() if name in known.context}
            try:
                jax.eval_shape(functools.partial(resolve(risk), **wanted, **given), z, labeled)
            except ValueError as error:
                raise ValueError(str(error)) from None  # without what jax adds to it
