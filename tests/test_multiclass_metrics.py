"""Metrics of many classes: scikit-learn is the oracle, and what padding, NaN and missing classes do."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import metrics as sk

from jaxpu import metrics
from jaxpu.metrics import multiclass

FUNCTIONS = {
    name: jax.jit(getattr(multiclass, name))
    for name in ("accuracy", "balanced_accuracy", "macro_f1", "macro_auc", "log_loss", "brier", "ece")
}


def drawn(seed: int, n: int = 60, k: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Logits with ties, and labels in which every class is."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    logits = np.round(2 * rng.standard_normal((n, k)) + 1.5 * np.eye(k)[labels], 1)
    return logits.astype(np.float32), labels


def softmax(z: np.ndarray) -> np.ndarray:
    power = np.exp(z.astype(np.float64) - z.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def expected(z: np.ndarray, y: np.ndarray) -> dict[str, float]:
    p, predicted = softmax(z), z.argmax(axis=1)
    sure, right = p.max(axis=1), predicted == y
    bins = np.ceil(sure * 15).astype(int)
    gaps = [abs(right[bins == b].mean() - sure[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins)]
    return {
        "accuracy": sk.accuracy_score(y, predicted),
        "balanced_accuracy": sk.balanced_accuracy_score(y, predicted),
        "macro_f1": sk.f1_score(y, predicted, average="macro"),
        "macro_auc": np.mean([sk.roc_auc_score(y == c, p[:, c]) for c in np.unique(y)]),
        "log_loss": sk.log_loss(y, p, labels=range(z.shape[1])),
        "brier": ((p - np.eye(z.shape[1])[y]) ** 2).sum(axis=1).mean(),
        "ece": sum(gaps),
    }


@given(st.integers(0, 10_000))
def test_values_are_those_of_scikit_learn(seed):
    z, y = drawn(seed)
    p = np.sort(softmax(z), axis=0)
    apart = np.diff(p, axis=0) / p[1:]
    assume(((apart == 0) | (apart > 5e-7)).all())  # what float32 cannot tell apart is a tie here and none there
    for name, value in expected(z, y).items():
        assert float(FUNCTIONS[name](jnp.asarray(z), jnp.asarray(y))) == pytest.approx(value, abs=2e-6), name


def test_the_auc_is_that_of_scikit_learn_in_one_call():
    z, y = drawn(3)
    whole = sk.roc_auc_score(y, softmax(z), multi_class="ovr", average="macro")
    assert float(multiclass.macro_auc(jnp.asarray(z), jnp.asarray(y))) == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_stands_in_padding_changes_nothing(name):
    z, y = drawn(1)
    padded = np.concatenate([z, np.full((5, 4), np.nan, np.float32)])
    labels, mask = np.append(y, [0, 99, -1, 3, 2]), np.append(np.ones(60), np.zeros(5))
    alone = FUNCTIONS[name](jnp.asarray(z), jnp.asarray(y))
    with_padding = FUNCTIONS[name](jnp.asarray(padded), jnp.asarray(labels), mask=jnp.asarray(mask))
    assert float(alone) == pytest.approx(float(with_padding), rel=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_rows_or_with_nan_it_is_nan(name):
    z, y = drawn(2)
    assert np.isnan(FUNCTIONS[name](jnp.asarray(z), jnp.asarray(y), mask=jnp.zeros(60)))
    z[7, 2] = np.nan
    assert np.isnan(FUNCTIONS[name](jnp.asarray(z), jnp.asarray(y)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_classes_without_rows_do_not_count_and_one_class_alone_has_no_auc():
    z, y = drawn(4)
    two = y < 2
    found = {name: float(f(jnp.asarray(z[two]), jnp.asarray(y[two]))) for name, f in FUNCTIONS.items()}
    # the mean F1 counts classes that are predicted, as scikit-learn does
    assert found == pytest.approx(expected(z[two], y[two]), abs=2e-6)
    one = y == 1
    assert np.isnan(multiclass.macro_auc(jnp.asarray(z[one]), jnp.asarray(y[one])))
    assert np.isfinite(multiclass.accuracy(jnp.asarray(z[one]), jnp.asarray(y[one])))


def test_two_classes_are_the_binary_metrics_of_the_difference():
    z, y = drawn(5, k=2)
    margin = jnp.asarray(z[:, 1] - z[:, 0])
    for many, two in (
        (multiclass.accuracy, metrics.accuracy),
        (multiclass.macro_auc, metrics.auc),
        (multiclass.log_loss, metrics.log_loss),
        (lambda *a: multiclass.brier(*a) / 2, metrics.brier),
    ):
        assert float(many(jnp.asarray(z), jnp.asarray(y))) == pytest.approx(
            float(two(margin, jnp.asarray(y))), abs=1e-6
        )
    np.testing.assert_allclose(multiclass.confidence_logit(jnp.asarray(z)), np.abs(margin), atol=1e-5)
    np.testing.assert_array_equal(multiclass.confidence_logit(margin), np.abs(margin))


def test_all_at_once_under_jit_and_vmap_are_each_alone():
    sets = [drawn(seed) for seed in range(3)]
    z, y = (jnp.asarray(np.stack(part)) for part in zip(*sets, strict=True))
    together = jax.jit(jax.vmap(multiclass.oracle_metrics))(z, y)
    alone = {"oracle_accuracy": "accuracy", "oracle_f1": "macro_f1", "oracle_auc": "macro_auc", "oracle_ece": "ece"}
    for i in range(3):
        for column, name in alone.items():
            assert float(together[column][i]) == pytest.approx(float(FUNCTIONS[name](z[i], y[i])), abs=1e-6)
        predicted = np.bincount(np.asarray(z[i]).argmax(axis=1), minlength=4)
        assert float(together["predicted_most"][i]) == pytest.approx(predicted.max() / 60)
        assert float(together["largest_class"][i]) == pytest.approx(np.bincount(y[i]).max() / 60)
        sure = softmax(np.asarray(z[i])).max(axis=1)
        assert float(together["score_mean"][i]) == pytest.approx(sure.mean(), abs=1e-6)
        assert float(together["score_sd"][i]) == pytest.approx(sure.std(), abs=1e-6)


@pytest.mark.parametrize(
    ("z", "y", "mask"),
    [((5,), (5,), None), ((5, 1), (5,), None), ((5, 3), (4,), None), ((5, 3), (5, 1), None), ((5, 3), (5,), (4,))],
)
def test_other_shapes_are_refused_with_what_came(z, y, mask, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    masked = None if mask is None else np.ones(mask)
    with pytest.raises(ValueError, match=r"expected logits \(n, k\).*got \(5"):
        multiclass.accuracy(jnp.zeros(z), jnp.zeros(y, int), mask=masked)


def test_the_error_needs_a_bin():
    with pytest.raises(ValueError, match="bins=0"):
        multiclass.ece(jnp.zeros((2, 2)), jnp.zeros(2, int), bins=0)
