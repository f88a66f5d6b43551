"""The terms of the loss: the risk and the penalty that the numbers of a run choose among those of its program.

A risk is the very function that stands in :mod:`jaxpu.losses`, or a user's own.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxpu import losses, mixup
from jaxpu.methods.branches import Branch, Objective
from jaxpu.methods.hyper import Hyper
from jaxpu.methods.method import UPDATE
from jaxpu.methods.risks import label, options_of, read_options, resolve
from jaxpu.types import ClassLogits, Labeled, Logits, Mask, Scalar, ScalarLike

Valued: TypeAlias = Callable[[Any], tuple[Scalar, Scalar]]
"""From logits to a value, and 1 where it was clipped."""


class Terms(NamedTuple):
    """A loss and its parts: ``loss = base + weighted penalty``; ``target`` is the mean μ, ``clipped`` 0 or 1."""

    loss: Scalar
    base: Scalar
    penalty: Scalar
    target: Scalar
    clipped: Scalar


def base_risk(
    objective: Objective,
    hyper: Hyper,
    logits: ClassLogits,
    labeled: Labeled,
    mask: Mask,
    mixed: losses.Mixed | None = None,
    **context: Any,
) -> tuple[Scalar, Scalar]:
    """The chosen risk of a batch, and whether it was clipped (0 or 1).

    Args:
        objective: the risks to choose from. hyper: which one, and its numbers, of one epoch (:func:`at`).
        logits: (n,), or (n, k) for a risk that takes them. labeled: (n,) 1 = labeled positive.
        mask: (n,) 1 = the row counts. mixed: the pass over mixed rows, for risks that ask for it.
        context: what else risks may ask for, see :data:`jaxpu.methods.CONTEXT`: ``y``, ``rows``, ``progress``,
            ``memory``, ``forward``, ``weights``; None is not there.

    Raises:
        ValueError: a risk that returns no scalar, or asks for what is not there; one that weighs no rows, and should.

    >>> from jaxpu.config import TrainingConfig
    >>> from jaxpu.methods import METHODS
    >>> from jaxpu.methods.objective import at, hyper_of, objective_of
    >>> z, s, one = jnp.array([2.0, -1.0]), jnp.array([1.0, 0.0]), jnp.ones(2)
    >>> method = METHODS["pudra"]
    >>> risk, _ = base_risk(objective_of([method]), at(hyper_of(method, TrainingConfig(), 0.4), 0, 1), z, s, one)
    >>> round(float(risk), 4)
    0.3197
    """
    weights = jnp.asarray(hyper.class_weights)
    given = {"prior": hyper.prior, "mask": mask, "class_weights": weights, "aux": True, **context}
    given = {name: value for name, value in given.items() if value is not None}
    deaf = [branch.risk for branch in objective.branches if "weights" not in options_of(branch.risk).context]
    if "weights" in given and deaf:
        raise ValueError(f"{label(deaf[0])} weighs no rows; expected a keyword argument 'weights', as losses.pn has it")
    branches = [functools.partial(_valued, branch, hyper.options, given, labeled) for branch in objective.branches]
    if mixed is None:
        return _switch(hyper.risk, branches, logits)
    rest = mixed._replace  # what is differentiated goes through the switch
    seeing = [lambda z, b=b: b(z[0], mixed=rest(logits=z[1])) for b in branches]
    return _switch(hyper.risk, seeing, (logits, mixed.logits))


def _valued(
    branch: Branch, options: dict[str, Any], given: dict[str, Any], labeled: Labeled, logits: Array, **more: Any
) -> tuple[Scalar, Scalar]:
    """One risk as it is called: value and whether it was clipped, in the logits' type."""
    known, given = options_of(branch.risk), given | more
    context = {name: given[name] for name in known.context if name in given}
    numbers = {name: options[name] for name in known.numbers}
    found = resolve(branch.risk)(logits, labeled, **context, **dict(branch.choices), **numbers)
    value, aux = found if isinstance(found, tuple) else (found, {})
    value = jnp.asarray(value)
    if value.shape or set(aux) - {"clipped"}:
        raise ValueError(
            f"{label(branch.risk)} returned a value of shape {value.shape} and {sorted(aux)}, expected a scalar, or "
            "(scalar, {'clipped': 0 or 1}): take the mean over the rows that count"
        )
    dtype = jnp.promote_types(logits.dtype, jnp.float32)
    return value.astype(dtype), jnp.asarray(aux.get("clipped", 0), dtype)


def _switch(index: ScalarLike | np.ndarray, functions: list[Any], z: Any) -> tuple[Scalar, Scalar]:
    """``functions[index](z)`` with its gradient in z, any tree, computed inside the branch; (value, auxiliary).

    Differentiating ``lax.switch`` itself would make every branch return the residuals of all others, most of
    what there is to compile. Here the branch returns value and gradient, and the first-order term that is
    added has the value 0 and that gradient. Second derivatives are lost. One function alone is simply called.
    """
    if len(functions) == 1:
        return functions[0](z)
    branches = [jax.value_and_grad(function, has_aux=True) for function in functions]
    (value, auxiliary), gradient = lax.switch(index, branches, lax.stop_gradient(z))
    moves = jax.tree.map(lambda slope, of: jnp.vdot(slope, of - lax.stop_gradient(of)), gradient, z)
    return value + sum(jax.tree.leaves(moves)), auxiliary


def penalty(
    objective: Objective,
    hyper: Hyper,
    logits: Logits,
    partner: Array,
    logits_mixed: Logits,
    lam: ScalarLike | Array,
    labeled: Labeled,
    mask: Mask,
) -> tuple[Scalar, Scalar]:
    """Weighted mixup consistency term of a batch, and the mean target μ.

    Args:
        objective: the penalties to choose from. hyper: which one, anchor, floors and weight, of one epoch, and whether
            the target is a constant.
        logits: (n,) of the rows. partner: (n,) row numbers of the mixing partners. logits_mixed: (n,) of
            λ x + (1 - λ) x[partner]. lam: λ, scalar or (n,). labeled, mask: (n,).

    The mean runs over all unmasked rows, or the unlabeled ones among them (``mix_unlabeled_only``); over no
    row it is 0.
    """
    log_p = jax.nn.log_sigmoid(logits)
    numbers = {name: getattr(hyper, name) for name in ("anchor", "floor", "partner_floor", "detach")}
    log_mu = mixup.log_target(log_p, log_p[partner], lam, **numbers)
    counts = mask * (1.0 - hyper.mix_unlabeled_only * labeled)
    total = jnp.maximum(counts.sum(), 1.0)
    weight = counts * hyper.weight * jnp.where(hyper.weight_by_lambda > 0, lam, 1.0) / total

    def weighted(name: str) -> Valued:
        return lambda z: (
            (weight * mixup.PENALTIES[name](z[0], jax.nn.log_sigmoid(z[1]))).sum(),
            jnp.zeros(()),
        )

    value, _ = _switch(hyper.penalty, [weighted(name) for name in objective.penalties], (log_mu, logits_mixed))
    return value, (counts * jnp.exp(log_mu)).sum() / total


def updated_memory(objective: Objective, options: dict[str, Any], memory: Any, **context: Any) -> Any:
    """The memory after a step, by the method's own update.

    Args:
        objective: whose memory. options: ``Hyper.options`` of the epoch. memory: what it holds.
        context: what the update may ask for, see :class:`jaxpu.methods.Memory`.

    >>> from jaxpu.methods import Memory
    >>> count = Objective((), memory=Memory(lambda params, n: 0, lambda memory: memory + 1))
    >>> updated_memory(count, {}, 3)
    4
    """
    if objective.memory is None:
        return None
    known = read_options(objective.memory.update, 1, UPDATE)
    numbers = {name: options[name] for name in known.numbers}
    return objective.memory.update(memory, **{name: context[name] for name in known.context}, **numbers)
