"""Verdicts in plain words: one or two sentences with the numbers that decided."""

import math
from collections.abc import Callable, Mapping, Sequence

from jaxpu.collapse.verdicts import Verdict

Evidence = Mapping[str, float]


def percent(share: float) -> str:
    """Write a share as a percentage.

    >>> percent(2 / 24)
    '8.3 %'
    """
    return f"{100 * share:.1f} %"


def explain_epoch(flags: Sequence[Verdict], evidence: Evidence) -> str:
    """Explain the first of the flags, and that the scores are constant if that is another of them.

    Args:
        flags: Epoch verdicts that hold, the headline first.
        evidence: Numbers of `diagnose_epoch`.

    >>> explain_epoch([Verdict.DIVERGED], {})
    'Some scores are NaN or infinite.'
    """
    if "predicted_most" in evidence:
        return (_EPOCH | _EPOCH_OF_MANY)[flags[0]](evidence)
    if "label_free" in evidence:
        return (_EPOCH | _EPOCH_LABEL_FREE)[flags[0]](evidence)
    sentence = _EPOCH[flags[0]](evidence)
    if Verdict.CONSTANT in flags[1:]:
        sentence += f" All scores are practically equal (standard deviation {evidence['score_sd']:.2g})."
    return sentence


def explain_run(verdict: Verdict, at_selection: str, evidence: Evidence) -> str:
    """Explain the verdict on a run.

    Args:
        verdict: The headline.
        at_selection: Explanation of the selected epoch, which serves where the verdict is one on an epoch.
        evidence: Numbers of `diagnose_run`.

    >>> explain_run(Verdict.HEALTHY, "Fine.", {"selected_epoch": 3.0, "end_collapsed": 0.0})
    'Epoch 3 was selected. Fine.'
    """
    if verdict in _RUN:
        return (_RUN | (_RUN_LABEL_FREE if "label_free" in evidence else {}))[verdict](evidence)
    sentence = f"Epoch {evidence['selected_epoch']:.0f} was selected. {at_selection}"
    if verdict == Verdict.HEALTHY and evidence["end_collapsed"]:
        sentence += f" From epoch {evidence['onset_epoch']:.0f} to the end the run is collapsed."
    return sentence


def _share_predicted(e: Evidence) -> str:
    """The share predicted positive, unless it is unknown at the decision that F1 belongs to."""
    if math.isnan(e["predicted_positive"]):
        return ""
    return f", with {percent(e['predicted_positive'])} predicted positive where {percent(e['prevalence'])} are"


def _trivial(e: Evidence) -> str:
    return f"always answering positive gives {e['f1_always_positive']:.3f}"


def _one_class(name: str) -> Callable[[Evidence], str]:
    return lambda e: (
        f"Next to all rows are predicted {name}: {percent(e['predicted_positive'])} positive where "
        f"{percent(e['prevalence'])} are. F1 {e['f1']:.3f}, AUC {e['auc']:.3f}; {_trivial(e)}."
    )


_EPOCH: dict[Verdict, Callable[[Evidence], str]] = {
    Verdict.HEALTHY: lambda e: (
        f"The ranking is good (AUC {e['auc']:.3f}) and the threshold uses it: F1 {e['f1']:.3f} of at best "
        f"{e['f1_best']:.3f}; {_trivial(e)}."
    ),
    Verdict.THRESHOLD_SHIFT: lambda e: (
        f"The ranking is good (AUC {e['auc']:.3f}, F1 up to {e['f1_best']:.3f}) but the threshold cuts it "
        f"badly: F1 {e['f1']:.3f}{_share_predicted(e)}."
    ),
    Verdict.INVERTED: lambda e: (
        f"The ranking is inverted: AUC {e['auc']:.3f}, and {1 - e['auc']:.3f} if every score changed its "
        f"sign. F1 {e['f1']:.3f}; {_trivial(e)}."
    ),
    Verdict.ALL_NEGATIVE: _one_class("negative"),
    Verdict.ALL_POSITIVE: _one_class("positive"),
    Verdict.CONSTANT: lambda e: (
        f"All scores are practically equal (standard deviation {e['score_sd']:.2g}), so the predictions are "
        f"noise around the threshold: F1 {e['f1']:.3f}, AUC {e['auc']:.3f}; {_trivial(e)}."
    ),
    Verdict.WEAK_RANKING: lambda e: (
        f"The scores hardly rank: AUC {e['auc']:.3f}. F1 {e['f1']:.3f}, at best {e['f1_best']:.3f}; {_trivial(e)}."
    ),
    Verdict.UNDEFINED: lambda e: (
        "F1 and AUC are undefined: the labels are not of both classes. Evaluate on rows of both."
    ),
    Verdict.DIVERGED: lambda e: "Some scores are NaN or infinite.",
}


_EPOCH_OF_MANY: dict[Verdict, Callable[[Evidence], str]] = {
    Verdict.HEALTHY: lambda e: (
        f"The ranking is good (AUC {e['auc']:.3f}, F1 {e['f1']:.3f}, means over the classes), and the decisions are of "
        "more than one class."
    ),
    Verdict.THRESHOLD_SHIFT: lambda e: (
        f"The ranking is good (AUC {e['auc']:.3f}) but {_most(e)}: F1 {e['f1']:.3f} (means over the classes)."
    ),
    Verdict.INVERTED: lambda e: (
        f"The ranking is inverted: AUC {e['auc']:.3f}, F1 {e['f1']:.3f} (means over the classes)."
    ),
    Verdict.CONSTANT: lambda e: (
        f"The scores hardly rank and {_most(e)}: AUC {e['auc']:.3f}, F1 {e['f1']:.3f} (means over the classes)."
    ),
    Verdict.WEAK_RANKING: lambda e: (
        f"The scores hardly rank: AUC {e['auc']:.3f}, F1 {e['f1']:.3f} (means over the classes)."
    ),
    Verdict.UNDEFINED: lambda e: "AUC is undefined: the labels are of one class. Evaluate on rows of all.",
}


_EPOCH_LABEL_FREE: dict[Verdict, Callable[[Evidence], str]] = {
    Verdict.HEALTHY: lambda e: f"P ranks above U ({_estimated(e)}), and {_share_of_u(e)}; true labels were not asked.",
    Verdict.PRIOR_MISMATCH: lambda e: (
        f"P ranks above U ({_estimated(e)}), but {_share_of_u(e)}: the threshold is off, or the prior is wrong."
    ),
    Verdict.INVERTED: lambda e: f"P ranks below U: {_estimated(e)}.",
    Verdict.ALL_NEGATIVE: lambda e: f"Next to no row is predicted positive: {_share_of_u(e)} ({_estimated(e)}).",
    Verdict.ALL_POSITIVE: lambda e: f"Next to all rows are predicted positive: {_share_of_u(e)} ({_estimated(e)}).",
    Verdict.CONSTANT: lambda e: (
        f"All scores of U are practically equal (standard deviation {e['score_sd']:.2g}, {_estimated(e)})."
    ),
    Verdict.WEAK_RANKING: lambda e: f"P hardly ranks above U: {_estimated(e)}; {_share_of_u(e)}.",
    Verdict.UNDEFINED: lambda e: "Nothing can be said: P or U has no row. Hold out rows of both.",
}


BEYOND = 0.1
"""How far the estimate of an AUC leaves [0, 1] by chance; what is further off contradicts the prior."""


def _estimated(e: Evidence) -> str:
    if e["auc"] > 1 + BEYOND:
        return "P and U are told apart so well that the prior must be smaller"
    if e["auc"] < -BEYOND:
        return "worse than such a prior allows at all"
    return f"AUC estimated from P, U and the prior {e['auc']:.3f}"


def _share_of_u(e: Evidence) -> str:
    predicted, prior = percent(e["predicted_positive"]), percent(e["prevalence"])
    return f"{predicted} of U are predicted positive where the prior says {prior}"


def _most(e: Evidence) -> str:
    return (
        f"{percent(e['predicted_most'])} of the rows are predicted as the same class, where the largest has "
        f"{percent(e['largest_class'])}"
    )


def _later_epochs(e: Evidence) -> str:
    """How many later epochs are healthy, as the start of a clause."""
    count = int(e["healthy_later"])
    return f"{count} later epoch{'s are' if count > 1 else ' is'} healthy"


def _diverged(e: Evidence) -> str:
    where = f"At epoch {e['last_epoch']:.0f}, the last,"
    if not math.isfinite(e.get("loss_end", 0.0)):
        return f"{where} the loss is not finite."
    if "loss_growth" in e and math.isfinite(e["score_sd"]) and math.isfinite(e["end_score_sd"]):
        return f"{where} |loss| has grown to {e['loss_growth']:.3g} times its least value (or 1)."
    return f"Some scores are NaN or infinite, at the selected epoch {e['selected_epoch']:.0f} or at the last."


_RUN: dict[Verdict, Callable[[Evidence], str]] = {
    Verdict.SELECTION_ARTEFACT: lambda e: (
        f"Epoch {e['selected_epoch']:.0f} was selected, with F1 {e['f1']:.3f} at AUC {e['auc']:.3f}, but "
        f"{_later_epochs(e)}, the first being epoch {e['first_healthy_later']:.0f} with F1 "
        f"{e['first_healthy_later_f1']:.3f}: the selection failed."
    ),
    Verdict.TRANSIENT: lambda e: (
        f"Collapsed for {e['longest_collapse']:.0f} epochs from epoch {e['longest_collapse_from']:.0f} on, "
        f"but healthy at the selected epoch {e['selected_epoch']:.0f} (F1 {e['f1']:.3f}) and at the end "
        f"(F1 {e['end_f1']:.3f})."
    ),
    Verdict.STOPPED_EARLY: lambda e: (
        f"Collapsed at epoch {e['last_epoch']:.0f}, the last (F1 {e['end_f1']:.3f}, AUC {e['end_auc']:.3f}), but "
        f"a longer run is healthy at its end, epoch {e['longer_epochs']:.0f} (F1 {e['longer_f1']:.3f}): "
        "training was stopped before it healed."
    ),
    Verdict.SELF_REINFORCING: lambda e: (
        f"Collapsed at the end (F1 {e['end_f1']:.3f}), and what the run feeds itself went down with it: the "
        f"driver ends at {e['driver_end']:.3g} against a reference of {e['driver_reference']:.3g} "
        f"(correlation with the mean score {e['driver_correlation']:.2f})."
    ),
    Verdict.DIVERGED: _diverged,
}


_RUN_LABEL_FREE: dict[Verdict, Callable[[Evidence], str]] = {
    Verdict.SELECTION_ARTEFACT: lambda e: (
        f"Epoch {e['selected_epoch']:.0f} was selected ({_estimated(e)}; {_share_of_u(e)}), but {_later_epochs(e)}, "
        f"the first being epoch {e['first_healthy_later']:.0f}: the selection failed, as far as P and U can tell."
    ),
    Verdict.TRANSIENT: lambda e: (
        f"Collapsed for {e['longest_collapse']:.0f} epochs from epoch {e['longest_collapse_from']:.0f} on, but "
        f"healthy at the selected epoch {e['selected_epoch']:.0f} and at the end, as far as P and U can tell."
    ),
    Verdict.STOPPED_EARLY: lambda e: (
        f"Collapsed at epoch {e['last_epoch']:.0f}, the last (estimated AUC {e['end_auc']:.3f}), but a longer run is "
        f"healthy at its end, epoch {e['longer_epochs']:.0f}: training was stopped before it healed."
    ),
    Verdict.SELF_REINFORCING: lambda e: (
        "Collapsed at the end, and what the run feeds itself went down with it: the driver ends at "
        f"{e['driver_end']:.3g} against a reference of {e['driver_reference']:.3g} (correlation with the mean score "
        f"{e['driver_correlation']:.2f})."
    ),
}
