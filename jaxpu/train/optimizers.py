"""Optimisers and learning rates: a name, or a function of the numbers to an optax transformation.

Which optimiser and which schedule is static, their numbers are traced: a sweep over learning rates, momenta or decays
is one compiled program.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax.numpy as jnp
import optax
from jax import Array

from jaxpu.config import TrainingConfig
from jaxpu.config.schema import OF_SCHEDULES
from jaxpu.functions import label, load
from jaxpu.types import Scalar, ScalarLike

Schedule = Callable[[ScalarLike], Scalar]
"""Learning rate of an update, the first being number 0."""


class Numbers(NamedTuple):
    """What an optimiser is made from; all traced.

    Attributes:
        lr: learning rate of every update: ``lr(count)``, by the schedule that is configured.
        weight_decay: L2 coefficient. momentum, b1, b2, eps: as their names say in optax.
        steps: updates of the whole training, if none is skipped.
    """

    lr: Schedule
    weight_decay: ScalarLike
    momentum: ScalarLike
    b1: ScalarLike
    b2: ScalarLike
    eps: ScalarLike
    steps: ScalarLike


class Choice(NamedTuple):
    """The static part: the optimiser and the schedule, and which numbers are given beyond the usual ones."""

    optimizer: str | Callable[[Numbers], optax.GradientTransformation] = "adam"
    schedule: str = "constant"
    nesterov: bool = False
    numbers: tuple[str, ...] = ()


USUAL = Choice()
"""Adam with a constant learning rate."""


def choice(training: TrainingConfig) -> Choice:
    """The static part of the settings.

    >>> choice(TrainingConfig(optimizer="sgd", nesterov=True))
    Choice(optimizer='sgd', schedule='constant', nesterov=True, numbers=('momentum',))
    """
    return Choice(training.optimizer, training.schedule, training.nesterov, tuple(sorted(training.numbers())))


def build(
    chosen: Choice, lr: ScalarLike, weight_decay: ScalarLike, numbers: dict[str, Any], steps: ScalarLike
) -> optax.GradientTransformation:
    """The optimiser.

    Args:
        chosen: which. lr, weight_decay: its main numbers. numbers: the others, as ``TrainingConfig.numbers`` gives
            them. steps: updates of the whole training, which a schedule spreads over. All of them may be traced.

    Raises:
        ValueError: a name that there is none of, or a function that returns no optax transformation.

    >>> adamw = build(Choice("adamw", "cosine"), 0.1, 0.0, {}, 2)
    >>> state, w = adamw.init(jnp.ones(1)), jnp.ones(1)
    >>> for _ in range(3):
    ...     update, state = adamw.update(jnp.ones(1), state, w)
    ...     print(round(float(update[0]), 4))
    -0.1
    -0.05
    -0.0
    """
    values = {name: jnp.asarray(value) for name, value in numbers.items()}
    of_schedule = {name: values[name] for name in OF_SCHEDULES[chosen.schedule]}
    schedule = None if chosen.schedule == "constant" else SCHEDULES[chosen.schedule](lr, steps, **of_schedule)
    if isinstance(chosen.optimizer, str) and chosen.optimizer in _BY_NAME:
        # a plain number needs no count of steps
        rate = optax.scale_by_learning_rate(cast(Any, jnp.asarray(lr) if schedule is None else schedule))
        return _BY_NAME[chosen.optimizer](values, jnp.asarray(weight_decay), chosen.nesterov, rate)
    given: Any = chosen.optimizer
    function = load(given) if isinstance(given, str) else given
    settings = {"momentum": 0.9, **_ADAM} | {name: value for name, value in values.items() if name not in of_schedule}
    rule = schedule or constant(lr, steps)
    made = function(Numbers(rule, jnp.asarray(weight_decay), steps=steps, **settings))
    if not isinstance(made, optax.GradientTransformation):
        raise ValueError(
            f"training.optimizer {label(given)} returned {made!r}, expected an optax.GradientTransformation"
        )
    return made


def constant(lr: ScalarLike, steps: ScalarLike) -> Schedule:
    """The same learning rate for every update.

    >>> float(constant(0.5, 10)(3))
    0.5
    """
    return lambda count: jnp.asarray(lr)


def cosine(lr: ScalarLike, steps: ScalarLike) -> Schedule:
    """Half a cosine, lr · (1 + cos(π t / T)) / 2 at update t of T; 0 from T on.

    Source: Loshchilov and Hutter, SGDR, ICLR 2017, without restarts.

    >>> [round(float(cosine(0.5, 4)(t)), 3) for t in range(6)]
    [0.5, 0.427, 0.25, 0.073, 0.0, 0.0]
    """

    def at(count: ScalarLike) -> Array:
        peak = jnp.asarray(lr)
        done = jnp.asarray(count, peak.dtype) / jnp.maximum(steps, 1)
        return peak * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(done, 1)))

    return at


def warmup_cosine(lr: ScalarLike, steps: ScalarLike, warmup: ScalarLike = 0.0) -> Schedule:
    """A line, lr · (t + 1) / (w + 1), for the first w = warmup · T updates, then half a cosine to 0 over the rest.

    Args:
        lr: its highest value. steps: T. warmup: w as a share of T.

    Source: Goyal et al. 2017, arXiv:1706.02677, section 2.2, for the warm-up.

    >>> [round(float(warmup_cosine(0.5, 8, 0.25)(t)), 3) for t in range(9)]
    [0.167, 0.333, 0.5, 0.467, 0.375, 0.25, 0.125, 0.033, 0.0]
    """
    first = jnp.asarray(warmup) * steps

    def at(count: ScalarLike) -> Array:
        peak = jnp.asarray(lr)
        done = jnp.asarray(count, peak.dtype)
        falling = cosine(lr, steps - first)(jnp.maximum(done - first, 0))
        return jnp.where(done < first, peak * (done + 1) / (first + 1), falling)

    return at


def step(lr: ScalarLike, steps: ScalarLike, every: ScalarLike, factor: ScalarLike = 0.5) -> Schedule:
    """Stairs, lr · factor^⌊t / every⌋ at update t; the factor is 0.5 every 20 epochs in published VPU.

    Args:
        lr: where they start. steps: not used. every: updates of a stair. factor: of one to the next.

    >>> [float(step(0.5, 8, every=2)(t)) for t in range(6)]
    [0.5, 0.5, 0.25, 0.25, 0.125, 0.125]
    """

    def at(count: ScalarLike) -> Array:
        highest = jnp.asarray(lr)
        stair = jnp.floor(jnp.asarray(count, highest.dtype) / every)
        return highest * jnp.asarray(factor, highest.dtype) ** stair

    return at


SCHEDULES: dict[str, Callable[..., Schedule]] = {
    "constant": constant,
    "cosine": cosine,
    "warmup_cosine": warmup_cosine,
    "step": step,
}
"""Learning rates by name: functions of lr, steps and what :data:`jaxpu.config.schema.OF_SCHEDULES` says.

Updates are counted as made: a skipped batch is none.
"""

_ADAM = {"b1": 0.9, "b2": 0.999, "eps": 1e-8}
Rule = Callable[[dict[str, Array], Array, bool, optax.GradientTransformation], optax.GradientTransformation]


def _adam(values: dict[str, Array], decay: Array, nesterov: bool, rate: Any) -> optax.GradientTransformation:
    """Adam with L2 inside the gradient, as torch.optim.Adam's weight_decay (Kingma and Ba 2015)."""
    return optax.chain(optax.add_decayed_weights(decay), optax.scale_by_adam(**_of_adam(values)), rate)


def _adamw(values: dict[str, Array], decay: Array, nesterov: bool, rate: Any) -> optax.GradientTransformation:
    """Adam, and decay · θ outside of its moments, times the learning rate (Loshchilov and Hutter 2019)."""
    return optax.chain(optax.scale_by_adam(**_of_adam(values)), optax.add_decayed_weights(decay), rate)


def _nadam(values: dict[str, Array], decay: Array, nesterov: bool, rate: Any) -> optax.GradientTransformation:
    """Adam with Nesterov's momentum (Dozat 2016), L2 inside the gradient."""
    return optax.chain(optax.add_decayed_weights(decay), optax.scale_by_adam(**_of_adam(values), nesterov=True), rate)


def _sgd(values: dict[str, Array], decay: Array, nesterov: bool, rate: Any) -> optax.GradientTransformation:
    """SGD as torch.optim.SGD: m ← μ m + g, g = gradient + decay · θ; θ moves by -lr m, Nesterov's by -lr (g + μ m)."""
    return optax.chain(optax.add_decayed_weights(decay), optax.trace(values["momentum"], nesterov), rate)


def _of_adam(values: dict[str, Array]) -> dict[str, Any]:
    return {name: values.get(name, usual) for name, usual in _ADAM.items()}


_BY_NAME: dict[str, Rule] = {"adam": _adam, "adamw": _adamw, "nadam": _nadam, "sgd": _sgd}
