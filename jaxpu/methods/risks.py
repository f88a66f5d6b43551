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
import inspect
import numbers
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from jaxpu.errors import unknown
from jaxpu.functions import label, load

Function: TypeAlias = str | Callable[..., Any]
"""A function, or where it is: a name of the registry, or ``package.module:function``."""

CONTEXT = {
    "prior": "the class prior π",
    "mask": "(n,) 1 = the row counts, 0 = padding",
    "y": "(n,) the true labels, soft ones where labels are mixed: whoever asks for them is an oracle",
    "class_weights": "(k,) how much a row of each class counts",
    "weights": "(n,) how much each row counts, beside its class; None = 1 each",
    "progress": "the share of the epochs that is done, a scalar",
    "rows": "(n,) places of the batch's rows in the training set",
    "memory": "what the method's memory holds",
    "forward": "a function from parameters to the logits of the batch, without dropout",
    "mixed": "a pass over mixed rows, a jaxpu.losses.Mixed: whoever asks for it gets one, by the method's pairing",
    "aux": "True: (value, {'clipped': 0 or 1}) may be returned",
}
"""What a risk may ask for by the name of a keyword argument."""


class Risk(NamedTuple):
    """A registered risk.

    ``function`` is where it is, ``decision_offset`` the logit at which its estimate of p passes 1/2, ``skips`` whether
    the code that it is from takes no step on a batch without a labeled positive, ``defaults`` the options that its
    signature has, so that it can be described without jax.
    """

    function: str
    formula: str
    source: str
    decision_offset: float = 0.0
    skips: bool = False
    defaults: Mapping[str, Any] = MappingProxyType({})


_LOGISTIC = {"log_end": 0.75, "focus": 2.0, "surrogate": "logistic"}
_SIGMOID = _LOGISTIC | {"surrogate": "sigmoid"}
_DIST_PU = "Zhao et al., Dist-PU: Positive-Unlabeled Learning from a Label Distribution Perspective, CVPR 2022"
_P3MIX = "Li et al., Who Is Your Right Mixup Partner in Positive and Unlabeled Learning, ICLR 2022"
_CODE = "the benchmark code behind the nine-dataset table"

RISKS: dict[str, Risk] = {
    "pn": Risk("jaxpu.losses:pn", "mean loss on true labels", "supervised learning: the oracle", defaults=_LOGISTIC),
    "pn_naive": Risk("jaxpu.losses:pn_naive", "mean loss, U as negatives", "supervised learning", defaults=_LOGISTIC),
    "upu": Risk("jaxpu.losses:upu", "π R_P⁺ + R_U⁻ - π R_P⁻", "du Plessis et al., ICML 2015", defaults=_SIGMOID),
    "nnpu": Risk(
        "jaxpu.losses:nnpu",
        "π R_P⁺ + max(R_U⁻ - π R_P⁻, 0), gradient reversed where clipped",
        "Kiryo et al., NeurIPS 2017, algorithm 1",
        defaults=_SIGMOID | {"beta": 0.0, "gamma": 1.0},
    ),
    "nnpu_clip": Risk(
        "jaxpu.losses:nnpu_clip",
        "π R_P⁺ + max(R_U⁻ - π R_P⁻, 0)",
        "Kiryo et al., NeurIPS 2017, the risk differentiated as written",
        defaults=_SIGMOID | {"beta": 0.0},
    ),
    "nnpusb": Risk(
        "jaxpu.losses:nnpusb",
        "π R_P⁺ + max(R_U⁻ - π R_P⁻, 0), gradient reversed where clipped, logistic loss",
        "Kato et al., Learning from Positive and Unlabeled Data with a Selection Bias, ICLR 2019",
        defaults={"beta": 0.0, "gamma": 1.0},
    ),
    "pudra": Risk("jaxpu.losses:pudra", "π E_P[-log p] + E_U[p]", _CODE),
    "pudra_softplus": Risk(
        "jaxpu.losses:pudra_softplus",
        "π E_P[-log g] + E_U[g], g = softplus(z)",
        _CODE,
        decision_offset=-0.4327521295671886,  # log(e^½ - 1): there g passes ½
    ),
    "pudra_batch": Risk(
        "jaxpu.losses:pudra_batch", "π E_P[-log p] + E_U[p], π = n_P / n of the batch", _CODE, skips=True
    ),
    "pudra_naive": Risk("jaxpu.losses:pudra_naive", "E_P[-log p + p] + E_U[p]", _CODE, skips=True),
    "variational": Risk(
        "jaxpu.losses:variational",
        "log E[p] - E_P[log p]",
        "Chen et al., A Variational Approach for Learning from Positive and Unlabeled Data, NeurIPS 2020",
        skips=True,
        defaults={"over": "all"},
    ),
    "label_distribution": Risk(
        "jaxpu.losses:label_distribution",
        "|E_P[p] - 1| + |E_U[p] - π| / 2π + μ E_U[H(p)]",
        f"{_DIST_PU}, the warm-up",
        defaults={"entropy": 0.002},
    ),
    "dist_pu": Risk(
        "jaxpu.losses:dist_pu",
        "|E_P[p] - 1| + |E_U[p] - π| / 2π + μ E_U[H(p)] + ν E[H(q_mix, p_mix)] + γ E[H(p_mix)]",
        _DIST_PU,
        defaults={"warm_up": 0.5, "entropy": 0.004, "mixing": 5.0, "mixed_entropy": 0.04},
    ),
    "p3mix_c": Risk(
        "jaxpu.losses:p3mix_c",
        "E_P[H(y_mix, p_mix)] + w E_U[H(y_mix, p_mix)] + β E[H(p_mix)], y = 1 on P and where p is high",
        _P3MIX,
        skips=True,
        defaults={"upper": 0.85, "unlabeled_weight": 0.5, "entropy": 0.05},
    ),
    "p3mix_e": Risk(
        "jaxpu.losses:p3mix_e",
        "E_P[H(s_mix, p_mix)] + w E_U[H(s_mix, p_mix)] + β E[H(p_mix)] + η E[log(1 - t_mix · p_mix)], t a teacher's",
        _P3MIX,
        skips=True,
        defaults={"lower": 0.15, "upper": 0.85, "unlabeled_weight": 1.0, "entropy": 0.01, "early": 0.5},
    ),
    "lbe": Risk(
        "jaxpu.losses:lbe",
        "E[H(q, p)] over the share of rows that fit best, q = 1 on P, p (1 - η) / (p (1 - η) + 1 - p) on U",
        "Gong et al., Instance-Dependent Positive and Unlabeled Learning with Labeling Bias Estimation, TPAMI 2021",
        defaults={"keep": 0.8},
    ),
    "cvir": Risk(
        "jaxpu.losses:cvir",
        "π E_P[-log p] + (1 - π) E_U'[-log(1 - p)], U' = U without its share π of largest p",
        "Garg et al., Mixture Proportion Estimation and PU Learning: A Modern Approach, NeurIPS 2021",
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
