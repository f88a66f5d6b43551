"""Selection rules against the original code's own trace, and against a plain loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from jaxpu.analysis.selection import Selected, replay
from jaxpu.selection import RULES, RuleChoice

# Seed 5 of the original code: validation F1 with its rescue, test F1 as it reported it, epochs 1 to 6.
RESCUED_VAL = np.array([0.8667, 0.9333, 0.3333, 0.7500, 0.8966, 0.9333])
REPORTED_TEST = np.array([0.8112, 0.0218, 0.5900, 0.7802, 0.8595, 0.8700])
# The same epochs without the rescue: no validation row was predicted positive in epochs 1 and 2.
PLAIN_VAL = np.array([0.0, 0.0, 0.3333, 0.7500, 0.8966, 0.9333])


def test_the_rescue_selects_the_epoch_of_the_headline_and_plain_f1_does_not():
    rescued = replay(RESCUED_VAL, patience=10, min_delta=1e-4)
    plain = replay(PLAIN_VAL, patience=10, min_delta=1e-4)
    assert rescued == Selected(1, 6, True)
    assert REPORTED_TEST[rescued.epoch] == 0.0218
    assert REPORTED_TEST[plain.epoch] == 0.8700


def slow_replay(values, sign, patience, min_delta):
    """The rule in words: keep the best, stop when it is ``patience`` epochs old."""
    best, kept = -np.inf, None
    for epoch, value in enumerate(values):
        if sign * value > best + min_delta:
            best, kept = sign * value, epoch
        age = epoch - (kept if kept is not None else -1)
        if patience is not None and age >= patience:
            break
    return (kept if kept is not None else epoch), epoch + 1, kept is not None


values = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.20001, 0.5, float("nan")]), min_size=1, max_size=30)


@given(values, st.sampled_from([1, -1]), st.none() | st.integers(1, 12), st.sampled_from([0.0, 1e-4, 0.1]))
def test_replay_is_the_rule_in_words(values, sign, patience, min_delta):
    got = replay(np.array(values), sign=sign, patience=patience, min_delta=min_delta)
    assert tuple(got) == slow_replay(values, sign, patience, min_delta)


def test_patience_counts_epochs_after_the_best():
    # best at epoch 6 of 40, patience 10: the original code ran 16 epochs
    trace = np.concatenate([np.linspace(0.1, 0.6, 6), np.zeros(34)])
    assert replay(trace, patience=10) == Selected(5, 16, True)


def test_undefined_columns_say_so():
    assert replay(np.full(5, np.nan), patience=10) == Selected(4, 5, False)
    with pytest.raises(ValueError, match="at least one epoch"):
        replay(np.array([]))
    with pytest.raises(ValueError, match="patience"):
        replay(np.ones(3), patience=0)


def test_rules_and_their_columns():
    assert set(RULES) == {
        "last",
        "val_f1",
        "val_f1_rescue",
        "val_accuracy",
        "pu_accuracy",
        "pu_auc",
        "nn_risk",
        "variational",
    }
    assert [name for name, rule in RULES.items() if rule.any_task] == ["last", "val_f1", "val_accuracy"]
    assert [name for name, rule in RULES.items() if rule.sign < 0] == ["nn_risk", "variational"]
    label_free = {name for name, rule in RULES.items() if rule.label_free}
    assert label_free == {"last", "pu_accuracy", "pu_auc", "nn_risk", "variational"}
    assert RuleChoice("nn_risk", 0.05).column == "val@0.05_proxy_nn_risk"
    with pytest.raises(ValueError, match="choose from last"):
        _ = RuleChoice("best").column


def test_a_rule_is_written_by_name_or_with_its_validation_set_and_shown_by_one_name():
    rules = TypeAdapter(tuple[RuleChoice, ...])
    written = ["last", {"rule": "val_f1"}, {"rule": "val_f1", "validation": "5e-2"}]
    choices = rules.validate_python(written)
    assert choices == (RuleChoice("last"), RuleChoice("val_f1"), RuleChoice("val_f1", 0.05))
    assert [choice.name for choice in choices] == ["last", "val_f1", "val_f1 on 5 %"]
    assert rules.validate_python(rules.dump_python(choices, mode="json")) == choices
    assert len({*choices, *rules.validate_python(rules.dump_python(choices))}) == 3
    for share in (0, 1, float("nan"), "half"):
        with pytest.raises(ValueError, match="validation"):
            RuleChoice("val_f1", share)
