"""The words of a report, explained: verdicts, measures, selection and decision rules."""

from collections.abc import Sequence

from jaxpu.analysis.summary import COLLAPSED_F1
from jaxpu.collapse import Thresholds
from jaxpu.plots.rules import known, rule_name

GOOD_AUC = Thresholds().good_auc

VERDICTS = {
    "healthy": f"The ranking is good (AUC at least {GOOD_AUC:g}) and the threshold makes use of it.",
    "selection_artefact": "The selected epoch is not healthy, but a later epoch of the same run is healthy. "
    "Training did not collapse; the rule that picked the epoch was misled.",
    "threshold_shift": "The ranking is good, but the threshold cuts it badly: F1 is far below what another "
    "threshold would give, or no better than always answering positive.",
    "prior_mismatch": "P ranks above U, but the share of U predicted positive does not fit the given prior: the "
    "threshold is off, or the prior is wrong. (Judged without true labels.)",
    "all_negative": "Next to no row is predicted positive, and the ranking is not good either.",
    "all_positive": "Next to no row is predicted negative, and the ranking is not good either.",
    "weak_ranking": f"The scores hardly tell positives from negatives (AUC below {GOOD_AUC:g}).",
    "constant": "All rows get practically the same score, so there is nothing to rank by.",
    "inverted": "The ranking is inverted (AUC near 0): positives score below negatives.",
    "transient": "The run collapsed for a while during training and is healthy at its end.",
    "stopped_early": "Collapsed when training stopped, while a longer run with the same seed heals.",
    "self_reinforcing": "Collapsed, and driven there by its own soft targets or filter: low predictions "
    "make low targets, which lower the predictions.",
    "diverged": "Scores or loss became infinite or undefined (NaN), or the loss exploded.",
    "undefined": "F1 and AUC cannot be computed, as the labels are not of both classes.",
}

DECISIONS = {
    "half": "positive at p > 0.5",
    "quantile": "the share π of rows with the highest scores is positive",
    "max_shift": "positive at p above half of the largest p in the training set (published VPU)",
}

TERMS = {
    "run": "One method trained from one seed. The same seed gives every method the same split and the "
    "same labeled positives, so differences between methods are paired.",
    "n": "The number of seeds, hence of runs, behind a figure.",
    "F1": "Harmonic mean of precision and recall on the test rows, with true labels, at the method's own "
    "decision rule. 1 is perfect; 0 means that no positive was found.",
    "failing": "A run with any verdict but healthy or transient. F1 can be well above 0.1 and the run "
    "fail, for instance where everything is predicted positive.",
    f"F1 < {COLLAPSED_F1:g}": "The collapse that was claimed; a run without an F1 counts. For comparison: "
    "guessing at random with the right share of positives scores about π, the share itself.",
    "AUC": "The chance that a random positive scores above a random negative. It judges the ranking alone, "
    "whatever the threshold; 0.5 is chance.",
    "interval": "95 % confidence over seeds, in square brackets. For a share of runs it is Wilson's, "
    "which says how little 0 of n proves when n is small. One seed has no interval of the mean.",
    "selection rule": "How the epoch that counts is picked after training, from the validation rows.",
    "legacy rescue": "Where all rows fall into one class, the old code quietly moved the threshold to the "
    "π-quantile before computing F1. A model that predicts nothing can so look excellent.",
}


def verdict_name(verdict: str) -> str:
    """A verdict as a reader sees it.

    >>> verdict_name("selection_artefact")
    'selection artefact'
    """
    return verdict.replace("_", " ")


CLAIM_VERDICTS = ("supported", "refuted", "undecided")

LOOKS = {verdict_name(word): "verdict" for word in (*VERDICTS, *CLAIM_VERDICTS)} | dict.fromkeys(
    ("healthy", "supported"), "verdict healthy"
)
"""How words that stand in bold are set apart on a page."""


def glossary(rules: Sequence[str]) -> dict[str, str]:
    """Terms of a report that shows these selection rules, with their meanings.

    >>> glossary(["last"])["selected by last epoch"]
    'The last epoch trained.'
    """
    meanings = {rule: found.meaning for rule in rules if (found := known(rule))}
    return TERMS | {
        f"selected by {rule_name(rule)}": f"{text[:1].upper()}{text[1:]}." for rule, text in meanings.items()
    }
