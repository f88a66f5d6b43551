"""Verdicts without true labels: from P, U and the given prior."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxpu import collapse, metrics
from jaxpu.collapse import Verdict

HEALTHY = {
    "proxy_pu_auc": 0.9,
    "unlabeled_positive": 0.4,
    "unlabeled_mean": 0.42,
    "unlabeled_sd": 0.3,
    "given_prior": 0.4,
}

CASES = {
    Verdict.HEALTHY: {},
    Verdict.DIVERGED: {"unlabeled_sd": np.nan},
    Verdict.UNDEFINED: {"proxy_pu_auc": np.nan},
    Verdict.INVERTED: {"proxy_pu_auc": 0.1},
    Verdict.PRIOR_MISMATCH: {"unlabeled_positive": 0.61},
    Verdict.ALL_NEGATIVE: {"unlabeled_positive": 0.0, "proxy_pu_auc": 0.5},
    Verdict.ALL_POSITIVE: {"unlabeled_positive": 1.0, "proxy_pu_auc": 0.5},
    Verdict.CONSTANT: {"unlabeled_positive": 0.8, "proxy_pu_auc": 0.5, "unlabeled_sd": 1e-5},
    Verdict.WEAK_RANKING: {"proxy_pu_auc": 0.6},
}


@pytest.mark.parametrize("verdict", CASES, ids=str)
def test_each_verdict_has_its_case(verdict):
    found = collapse.diagnose_epoch(HEALTHY | CASES[verdict])
    assert found.verdict == verdict
    assert found.explanation
    assert "nan" not in found.explanation
    assert "F1" not in found.explanation


@pytest.mark.parametrize(("q", "fits"), [(0.2, True), (0.19, False), (0.6, True), (0.61, False)])
def test_the_share_predicted_fits_within_half_the_rarer_class(q, fits):
    """π = 0.4: half of min(0.4, 0.6) is 0.2 on either side."""
    found = collapse.diagnose_epoch(HEALTHY | {"unlabeled_positive": q})
    assert (found.verdict == Verdict.HEALTHY) is fits


def test_the_threshold_of_the_prior_is_a_parameter():
    loose = collapse.Thresholds(prior_distance=1.0)
    assert collapse.diagnose_epoch(HEALTHY | {"unlabeled_positive": 0.7}, thresholds=loose).verdict == Verdict.HEALTHY


def run(**changes):
    return {name: np.array(changes.get(name, [value] * 3)) for name, value in HEALTHY.items()}


def test_a_run_that_selects_an_unhealthy_epoch_before_a_healthy_one_is_an_artefact():
    found = collapse.diagnose_run(run(unlabeled_positive=[0.0, 0.4, 0.4]), 0)
    assert found.verdict == Verdict.SELECTION_ARTEFACT
    assert "as far as P and U can tell" in found.explanation


def test_a_run_that_ends_all_positive_with_a_driver_that_went_down_is_self_reinforcing():
    trajectory = run(unlabeled_positive=[0.4, 0.9, 1.0], unlabeled_mean=[0.4, 0.8, 1.0], proxy_pu_auc=[0.9, 0.6, 0.5])
    found = collapse.diagnose_run(trajectory, -1, driver=[1.0, 0.4, 0.1])
    assert found.verdict == Verdict.SELF_REINFORCING
    assert "F1" not in found.explanation


def test_true_labels_take_precedence_where_they_are_known():
    known = {"oracle_f1": 0.0, "oracle_f1_best": 0.6, "oracle_auc": 0.5, "predicted_positive": 0.0}
    found = collapse.diagnose_epoch(HEALTHY | known | {"score_sd": 0.1, "prevalence": 0.4})
    assert found.verdict == Verdict.ALL_NEGATIVE
    assert "label_free" not in found.evidence


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="unlabeled_sd"):
        collapse.diagnose_epoch({name: value for name, value in HEALTHY.items() if name != "unlabeled_sd"})


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.floats(-30, 30, width=32), st.booleans(), st.booleans()), min_size=1, max_size=30),
    st.floats(0.05, 0.95),
)
def test_the_summary_of_scores_is_that_of_numpy(rows, prior):
    z, labeled, mask = (np.array(column) for column in zip(*rows, strict=True))
    found = metrics.score_summary(jnp.array(z), jnp.array(labeled), prior=prior, mask=jnp.array(mask))
    p, u, k = 1 / (1 + np.exp(-z.astype(float))), mask & ~labeled, mask & labeled
    expected = {
        "labeled_positive": (z[k] > 0).mean() if k.any() else np.nan,
        "unlabeled_positive": (z[u] > 0).mean() if u.any() else np.nan,
        "unlabeled_mean": p[u].mean() if u.any() else np.nan,
        "unlabeled_sd": p[u].std() if u.any() else np.nan,
        "given_prior": prior,
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(float(found[name]), value, rtol=1e-5, atol=1e-6, err_msg=name)
