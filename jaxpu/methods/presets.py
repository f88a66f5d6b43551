"""The methods that have a name, and what an entry of ``methods`` in a configuration means."""

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from jaxpu.errors import unknown
from jaxpu.methods.check import checked, known_options
from jaxpu.methods.method import Method, Schedule, Stage
from jaxpu.methods.risks import RISKS, label, resolve

_VPU = "Chen et al., A Variational Approach for Learning from Positive and Unlabeled Data, NeurIPS 2020"
_CODE = "the benchmark code behind the nine-dataset table"
_SOFT_NOTE = "alternative formulations of the nine-dataset table's method"
_WELL_CLASSIFIED = "Zhao et al., AAAI 2022"
_MIXUP = "Zhang et al., mixup: Beyond Empirical Risk Minimization, ICLR 2018"
_REGMIXUP = "Pinto et al., RegMixup: Mixup as a Regularizer, NeurIPS 2022"
_CUTMIX = "Yun et al., CutMix: Regularization Strategy to Train Strong Classifiers, ICCV 2019"
_P_AGAINST_U = Method("cvir", stages=(Stage(0.25, "pn_naive"),), class_weights="inverse_frequency")
_UNDOUBTED = {"lower": 1.0, "upper": 1.0}  # no row is doubted or corrected: P3Mix before its heuristic begins
_P3MIX = Method(
    "p3mix_c",
    stages=(Stage(0.375, "p3mix_c", _UNDOUBTED),),
    pairing="boundary_positives",
    batching="separate",
    alpha=0.5,
    at_least_half=True,
    source=RISKS["p3mix_c"].source,
)
_VPUDRA = Method("pudra", penalty="log_mse", anchor=1.0, source=_CODE)
_SOFT = replace(_VPUDRA, penalty="point_process", anchor=0.0)


def _supervised(surrogate: str, source: str) -> Method:
    return Method("pn", options={"surrogate": surrogate}, source=f"supervised{source}; {_WELL_CLASSIFIED}")


METHODS: dict[str, Method] = {
    "pn": Method("pn", source="supervised oracle: binary cross-entropy on the true labels"),
    "pn_mse": _supervised("savage", ", squared error of p"),
    "pn_mae": _supervised("sigmoid", ", absolute error of p"),
    "pn_mae_mse": _supervised("mae_mse", ", their sum"),
    "pn_bonus": _supervised("bonus", ""),
    "pn_encouraging": _supervised("encouraging", ""),
    "pn_focal": Method("pn", options={"surrogate": "focal"}, source="supervised; Lin et al., ICCV 2017"),
    "pn_mixup": Method("pn", mixes="mixup", source=f"supervised; {_MIXUP}"),
    "pn_regmixup": Method("pn", mixes="mixup", plain_weight=1.0, source=f"supervised; {_REGMIXUP}"),
    "pn_cutmix": Method("pn", mixes="cutmix", source=f"supervised; {_CUTMIX}"),
    "pn_naive": Method("pn_naive", source="binary cross-entropy with U taken as negative"),
    "upu": Method("upu", source="du Plessis et al., ICML 2015"),
    "nnpu": Method("nnpu", source="Kiryo et al., NeurIPS 2017, algorithm 1"),
    "nnpu_clip": Method("nnpu_clip", source="Kiryo et al., NeurIPS 2017, the risk differentiated as written"),
    "nnpusb": Method("nnpusb", decision="quantile", source=RISKS["nnpusb"].source),
    "pudra": Method("pudra", source=_CODE),
    "pudra_softplus": Method("pudra_softplus", source=_CODE),
    "pudra_naive": Method("pudra_naive", source=_CODE),
    "vpu_nomixup": Method("variational", source=_CODE),
    "vpu": Method("variational", penalty="log_mse", source=_CODE),
    "vpu_published": Method(
        "variational",
        options={"over": "unlabeled"},
        penalty="log_mse",
        weight=0.3,
        weight_by_lambda=False,
        mix_unlabeled_only=True,
        pairing="permuted_positives",
        detach=False,
        batching="separate",
        decision="max_shift",
        source=_VPU,
    ),
    "vpudra": replace(_VPUDRA, risk="pudra_batch"),
    "vpudra_fixed": _VPUDRA,
    "vpudra_pp": replace(_VPUDRA, penalty="point_process"),
    "vpudra_softlabel": _SOFT,
    "soft_anchor": replace(_SOFT, anchor=Schedule(1.0, 0.5), source=_SOFT_NOTE),
    "soft_floor": replace(_SOFT, floor=0.5, source=_SOFT_NOTE),
    "soft_partner_floor": replace(_SOFT, partner_floor=0.7, source=_SOFT_NOTE),
    "soft_logmse": replace(_SOFT, penalty="log_mse", source=_SOFT_NOTE),
    "dist_pu": Method(
        "dist_pu",
        stages=(Stage(0.5, "label_distribution"),),
        memory="jaxpu.methods.memories:PSEUDO_LABELS",
        pairing="shuffle",
        alpha=6.0,
        source=RISKS["dist_pu"].source,
    ),
    "p3mix_c": _P3MIX,
    "p3mix_e": replace(
        _P3MIX,
        risk="p3mix_e",
        stages=(Stage(0.125, "p3mix_e", _UNDOUBTED),),
        memory="jaxpu.methods.memories:TEACHER",
    ),
    "lbe": replace(_P_AGAINST_U, risk="lbe", memory="jaxpu.methods.memories:LABELING", source=RISKS["lbe"].source),
    "cvir": replace(_P_AGAINST_U, risk="cvir", source=RISKS["cvir"].source),
}
"""The presets by name: points in the family that the literature uses.

A preset says nothing of the optimiser. The code of VPU's authors trains ``vpu_published`` with ``training: {optimizer:
adam, b1: 0.5, b2: 0.99, weight_decay: 0, schedule: step, factor: 0.5, every: 20}``. Nor does it say of α: mixup and
cutmix are published with ``training: {alpha: 1}``, RegMixup with 10 to 20.
"""

_CHECKED = {"risk", "class_weights", "stages", "memory", "mixes", "penalty", "alpha", "at_least_half"}
FIELDS = tuple(field.name for field in dataclasses.fields(Method) if field.name != "options")


def named_method(entry: "str | Mapping[str, Any] | Method") -> tuple[str, Method]:
    """Resolve an entry of ``methods`` to its name and its numbers.

    Args:
        entry: a preset's name; ``package.module:function``; a :class:`Method`; or a mapping that changes a ``preset``
            or names a ``risk``, with a ``name``, fields of :class:`Method` and options of its risk side by side.

    Raises:
        ValueError: for an unknown preset, field or option, with the choices.

    >>> named_method({"preset": "vpudra_softlabel", "name": "half", "anchor": 0.5})[1].anchor
    0.5
    >>> named_method({"preset": "nnpu", "gamma": 0.5})[1].options
    {'gamma': 0.5}
    """
    if isinstance(entry, Method):
        return _short(entry.risk), _tried(checked(entry))
    changes = as_entry(entry)
    preset = changes.pop("preset", None)
    if preset is None and "risk" in changes:
        name, base = changes.pop("name", _short(changes["risk"])), {}
    elif preset in METHODS:
        name, base = changes.pop("name", preset), _fields(METHODS[preset])
    else:
        raise ValueError(unknown("method", preset, METHODS))
    if changes.get("risk", base.get("risk")) != base.get("risk"):
        base = base | {"options": {}}  # another risk has other options
    if changes.get("mixes", "none") != base.get("mixes", "none"):
        base = {name: value for name, value in base.items() if name != "pairing"}  # its default depends on it
    options = changes.pop("options", {})
    options = {**options, **{key: changes.pop(key) for key in list(changes) if key not in FIELDS}}
    plain = {**base, **changes, "options": {**base.get("options", {}), **options}}
    method = TypeAdapter(Method).validate_python(plain)
    if not options and not changes.keys() & _CHECKED:
        return str(name), method  # nothing that a signature must be read for
    choices = [*known_options(method, method.risk).names, "preset", "name", *FIELDS]
    for key in options:
        if key not in choices:
            raise ValueError(unknown(f"field of a method, or option of its risk {label(method.risk)!r},", key, choices))
    return str(name), _tried(checked(method))


def as_entry(entry: "str | Mapping[str, Any] | Method") -> dict[str, Any]:
    """An entry of ``methods`` as the mapping that it stands for, to change something in it.

    >>> as_entry("nnpu"), as_entry("my_package.risks:mine")
    ({'preset': 'nnpu'}, {'risk': 'my_package.risks:mine'})
    """
    if isinstance(entry, Method):
        usual = _fields(Method(entry.risk, mixes=entry.mixes)) | {"mixes": "none"}
        changed = {name: value for name, value in _fields(entry).items() if value != usual[name]}
        return {"name": _short(entry.risk), "risk": entry.risk, **changed}
    if isinstance(entry, str):
        return {"risk": entry} if ":" in entry else {"preset": entry}
    return dict(entry)


def _fields(method: Method) -> dict[str, Any]:
    return {field.name: getattr(method, field.name) for field in dataclasses.fields(Method)}


def _short(risk: Any) -> str:
    return label(risk).rpartition(":")[2]


def _tried(method: Method) -> Method:
    """The method, after its registered risks have looked at their options: a range, a word that does not exist."""
    from jaxpu.methods.branches import try_out

    try_out(method)
    return method


def describe(method: Method) -> str:
    """A method's objective in one line.

    >>> describe(METHODS["vpudra_softlabel"])
    'π E_P[-log p] + E_U[p] + λ · point_process(μ, p_mix), soft target (a = 0)'
    """
    text = _of_risk(method, method.risk, method.options)
    for stage in reversed(method.stages):
        text = f"{_of_risk(method, stage.risk, stage.options)} until {stage.until:.0%} of the epochs, then {text}"
    if method.class_weights != "none":
        beta = f" (β = {method.effective_beta:g})" if method.class_weights == "effective_number" else ""
        text += f", classes weighted by {method.class_weights.replace('_', ' ')}{beta}"
    if method.mixes != "none":
        mixed = f"{text}, on rows and labels mixed by {method.mixes}"
        weight = "" if method.mixed_weight == 1 else f"{method.mixed_weight:g} · "
        return f"{weight}{mixed}" + (
            f", + {method.plain_weight:g} · the same, not mixed" if method.plain_weight else ""
        )
    if method.alpha is not None:
        text += f", λ ~ Beta({method.alpha:g}, {method.alpha:g})"
    if not method.mixup:
        return text
    weight = "λ" if method.weight_by_lambda else f"{method.weight:g}"
    a = method.anchor
    kind = "anchored" if a == 1 else "soft" if a == 0 else "blended"
    floors = "".join(
        f", {name} >= {value:g}" for name, value in (("μ", method.floor), ("p(partner)", method.partner_floor)) if value
    )
    number = a if isinstance(a, Schedule) else f"{a:g}"
    return f"{text} + {weight} · {method.penalty}(μ, p_mix), {kind} target (a = {number}){floors}"


def _of_risk(method: Method, risk: Any, options: dict[str, Any]) -> str:
    """The formula of a risk, or the first line of its docstring, with its surrogate and the options that are set."""
    if risk in RISKS:
        text, defaults = RISKS[risk].formula, RISKS[risk].defaults
    else:
        known = known_options(method, risk)
        text, defaults = _first_line(resolve(risk)) or label(risk), known.numbers | known.choices
    surrogate = options.get("surrogate", defaults.get("surrogate"))
    if surrogate is not None:
        text += f", {label(surrogate)} loss"
        values = {name: _text(value) for name, value in {**defaults, **options}.items()}
        text += _SURROGATE_OPTION.get(str(surrogate), "").format(**values)
    shown = {name: value for name, value in options.items() if name not in ("surrogate", "log_end", "focus")}
    return text + "".join(f", {name} = {_text(v)}" for name, v in shown.items())


_SURROGATE_OPTION = {
    "encouraging": " up to {log_end}",
    "encouraging_unit": " up to {log_end}",
    "focal": ", γ = {focus}",
}


def _text(value: Any) -> str:
    return label(value) if callable(value) else f"{value:g}" if isinstance(value, float) else str(value)


def _first_line(function: Any) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0].rstrip(".")
