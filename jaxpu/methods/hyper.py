"""The numbers of a method as the traced arguments of a compiled program."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from jaxpu import losses, mixup
from jaxpu.config import TrainingConfig
from jaxpu.losses import weighting
from jaxpu.methods.branches import Objective, branch_of, objective_of
from jaxpu.methods.check import checked, decision_offset, known_options, skips_without_positives
from jaxpu.methods.method import DECISIONS, Method, Schedule
from jaxpu.methods.risks import Function, label, options_of
from jaxpu.types import ScalarLike


class Moving(NamedTuple):
    """A number along the epochs: from ``start`` to ``end``, evenly, or at half time where ``step`` is not 0."""

    start: Float[Array | np.ndarray, "*stages"] | ScalarLike
    end: Float[Array | np.ndarray, "*stages"] | ScalarLike
    step: Float[Array | np.ndarray, "*stages"] | ScalarLike


class Hyper(NamedTuple):
    """Everything that may differ between runs of one compiled program; all traced.

    ``risk`` indexes the branches, ``penalty`` the penalties, ``decision`` :data:`jaxpu.methods.DECISIONS`; ``until`` is
    the share of the epochs at which each stage ends, infinity for the last; ``options`` are those of all branches by
    name, a number a stage; ``class_weights`` has one entry a class; ``decision_offset`` is taken off logits before
    they are judged; ``optimizer`` is ``TrainingConfig.numbers()``; ``initial_p`` is NaN where the last bias stays as
    drawn; ``alpha_schedule`` indexes :data:`jaxpu.mixup.SCHEDULES`. The others are scalars.

    :func:`at` gives the numbers of one epoch: of ``risk`` and each of ``options`` and of ``anchor`` a scalar, and as
    ``alpha`` what its schedule makes of it.
    """

    risk: Int[Array | np.ndarray, "*stages"] | ScalarLike
    until: Float[Array | np.ndarray, " stages"]
    options: dict[str, Any]
    class_weights: Float[Array | np.ndarray, "*runs k"]
    penalty: ScalarLike
    decision: ScalarLike
    decision_offset: ScalarLike
    prior: ScalarLike
    anchor: Any
    floor: ScalarLike
    partner_floor: ScalarLike
    at_least_half: ScalarLike
    detach: ScalarLike
    same_dropout: ScalarLike
    weight: ScalarLike
    weight_by_lambda: ScalarLike
    mix_unlabeled_only: ScalarLike
    skip_without_positives: ScalarLike
    plain_weight: ScalarLike
    mixed_weight: ScalarLike
    alpha: ScalarLike
    alpha_schedule: ScalarLike
    lr: ScalarLike
    weight_decay: ScalarLike
    directional_penalty: ScalarLike
    optimizer: dict[str, ScalarLike]
    initial_p: ScalarLike


_OF_METHOD = ("floor", "partner_floor", "detach", "same_dropout", "weight", "weight_by_lambda", "mix_unlabeled_only")
_OF_METHOD += ("plain_weight", "mixed_weight", "at_least_half")
_OF_TRAINING = ("lr", "weight_decay", "directional_penalty")
"""What :class:`Hyper` has as a method and the settings of training have it."""


def hyper_of(
    method: Method,
    training: TrainingConfig,
    prior: float,
    class_counts: Sequence[int] = (1, 1),
    objective: Objective | None = None,
) -> Hyper:
    """The traced numbers of a method trained with the given settings and class prior.

    Args:
        method: one of those that ``objective`` is of. training: settings. prior: π; NaN where there is none, with many
            classes. class_counts: the training rows of every class, which class weights come from.
        objective: the program's static part; None = the method's own.

    Raises:
        ValueError: the method is none of the objective's.

    >>> from jaxpu.methods import METHODS
    >>> h = hyper_of(METHODS["vpudra_softlabel"], TrainingConfig(), 0.4)
    >>> float(h.anchor.start), round(float(h.lr), 6)
    (0.0, 0.0003)
    """
    method = checked(method)
    objective = objective or objective_of([method])
    stages, penalties = objective.stages, objective.penalties
    parts = [*method.parts, *[method.parts[-1]] * (stages - len(method.parts))]
    if not {branch_of(*part) for part in parts} <= set(objective.branches):
        raise ValueError(f"{label(method.risk)} is not among the risks of the program: {objective.branches}")
    ends = [stage.until for stage in method.stages]
    values = Hyper(
        risk=np.array([objective.branches.index(branch_of(*part)) for part in parts], np.int32),
        until=np.array(ends + [np.inf] * (stages - len(ends)), np.float32),
        options=_options(method, parts, objective),
        class_weights=_class_weights(method, class_counts),
        penalty=penalties.index(method.penalty) if method.penalty in penalties else 0,
        decision=DECISIONS.index(method.decision),
        decision_offset=decision_offset(method),
        prior=prior,
        anchor=Moving(*(np.asarray(column)[0] for column in _moving([method.anchor]))),
        skip_without_positives=skips_without_positives(method),
        alpha=training.alpha if method.alpha is None else method.alpha,
        alpha_schedule=list(mixup.SCHEDULES).index(training.alpha_schedule),
        optimizer={name: np.float32(value) for name, value in training.numbers().items()},
        initial_p=_initial_p(training, prior),
        **{name: getattr(method, name) for name in _OF_METHOD},
        **{name: getattr(training, name) for name in _OF_TRAINING},
    )
    kinds = {int: np.int32, float: np.float32, bool: np.float32}
    typed: list[Any] = [kinds[type(v)](v) if type(v) in kinds else v for v in values]
    return Hyper(*typed)


def _options(method: Method, parts: list[tuple[Function, dict[str, Any]]], objective: Objective) -> dict[str, Moving]:
    """The numbers of all branches by name, one a stage; 0 where the stage's risk has none of that name."""

    def value(name: str, risk: Function, options: dict[str, Any]) -> float | Schedule:
        known = known_options(method, risk).numbers
        shared = {} if name in options_of(risk).numbers else method.options  # those of the memory
        return options.get(name, shared.get(name, known[name])) if name in known else 0.0

    names = {name: None for branch in objective.branches for name in known_options(method, branch.risk).numbers}
    return {name: _moving([value(name, *part) for part in parts]) for name in sorted(names)}


def _moving(values: Sequence[float | Schedule]) -> Moving:
    schedules = [value if isinstance(value, Schedule) else Schedule(value, value) for value in values]
    columns = ([c.start for c in schedules], [c.end for c in schedules], [c.schedule == "step" for c in schedules])
    return Moving(*(np.array(column, np.float32) for column in columns))


def _class_weights(method: Method, counts: Sequence[int]) -> np.ndarray:
    if method.class_weights == "none":
        weights: Any = np.ones(len(counts))
    elif method.class_weights == "effective_number":
        weights = losses.effective_number(jnp.array(counts), method.effective_beta)
    else:
        weights = weighting.of_counts(jnp.array(counts))
    return np.asarray(weights, np.float32)


def _initial_p(training: TrainingConfig, prior: float) -> float:
    if isinstance(training.initial_p, str):
        return {"prior": prior, "init": float("nan")}[training.initial_p]
    return training.initial_p


def at(hyper: Hyper, epoch: ScalarLike, epochs: int) -> Hyper:
    """The numbers of one epoch, counted from 0: the stage's risk and options, and where schedules are, that of α too.

    >>> method = Method("nnpu", options={"gamma": Schedule(1.0, 0.0)}, anchor=0.5)
    >>> now = at(hyper_of(method, TrainingConfig(), 0.4), 1, 5)
    >>> float(now.options["gamma"]), float(now.anchor), int(now.risk)
    (0.75, 0.5, 0)
    """
    places = jnp.arange(epochs)
    evenly = (places / max(epochs - 1, 1))[epoch]
    at_half_time = jnp.where(places < epochs // 2, 0.0, 1.0)[epoch]

    def number(moving: Moving) -> Any:
        share = jnp.where(jnp.asarray(moving.step) > 0, at_half_time, evenly)
        return moving.start + (moving.end - moving.start) * share  # a constant stays that constant to the bit

    stage = (progress(epoch, epochs) >= jnp.asarray(hyper.until)).sum()
    options = {name: number(moving)[stage] for name, moving in hyper.options.items()}
    alphas = jnp.stack([mixup.schedule(name, epochs, hyper.alpha)[epoch] for name in mixup.SCHEDULES])
    return hyper._replace(
        risk=jnp.asarray(hyper.risk)[stage],
        options=options,
        anchor=number(hyper.anchor),
        alpha=alphas[jnp.asarray(hyper.alpha_schedule)],
    )


def progress(epoch: ScalarLike, epochs: int) -> Float[Array, ""]:
    """The share of the epochs that is done.

    >>> float(progress(1, 4))
    0.25
    """
    return (jnp.asarray(epoch) / epochs).astype(jnp.float32)
