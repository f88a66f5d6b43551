"""One rule of what is positive and which rows count, and numbers held to their ranges, whatever their type."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpu import ensemble, losses, metrics, mixup
from jaxpu.metrics import multiclass

Z = jnp.array([2.0, -1.0, 0.5, -3.0])
LOG_P = jax.nn.log_sigmoid(Z)
TAKERS = {
    "nnpu": lambda labels, mask: losses.nnpu(Z, labels, prior=0.5, mask=mask),
    "nnpu_clip": lambda labels, mask: losses.nnpu_clip(Z, labels, prior=0.5, mask=mask),
    "nnpusb": lambda labels, mask: losses.nnpusb(Z, labels, prior=0.5, mask=mask),
    "upu": lambda labels, mask: losses.upu(Z, labels, prior=0.5, mask=mask),
    "pudra": lambda labels, mask: losses.pudra(Z, labels, prior=0.5, mask=mask),
    "pudra_batch": lambda labels, mask: losses.pudra_batch(Z, labels, mask=mask),
    "pudra_naive": lambda labels, mask: losses.pudra_naive(Z, labels, mask=mask),
    "variational": lambda labels, mask: losses.variational(Z, labels, mask=mask),
    "pn_naive": lambda labels, mask: losses.pn_naive(Z, labels, mask=mask),
    "accuracy": lambda labels, mask: metrics.accuracy(Z, labels, mask=mask),
    "f1": lambda labels, mask: metrics.f1(Z, labels, mask=mask),
    "auc": lambda labels, mask: metrics.auc(Z, labels, mask=mask),
    "average_precision": lambda labels, mask: metrics.average_precision(Z, labels, mask=mask),
    "f1_best": lambda labels, mask: metrics.f1_best(Z, labels, mask=mask),
    "log_loss": lambda labels, mask: metrics.log_loss(Z, labels, mask=mask),
    "brier": lambda labels, mask: metrics.brier(Z, labels, mask=mask),
    "pu_accuracy": lambda labels, mask: metrics.pu_accuracy(Z, labels, prior=0.5, mask=mask),
    "pu_auc": lambda labels, mask: metrics.pu_auc(Z, labels, prior=0.5, mask=mask),
    "undefined_reason": lambda labels, mask: metrics.undefined_reason(labels, mask=mask),
    "labeled_positives": lambda labels, mask: mixup.labeled_positives(jax.random.key(0), labels, mask=mask),
    "within_set": lambda labels, mask: mixup.within_set(jax.random.key(0), labels, mask=mask),
}


def same(a, b):
    return a == b if isinstance(a, str | None) else np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("name", TAKERS)
def test_labels_other_than_0_and_1_are_refused_wherever_they_are_taken(name):
    take = TAKERS[name]
    for labels in ([255, 0, 0, 255], [1, 2, 2, 1], [1, -1, -1, 1], [0.9, 0.0, 0.0, 1.0], [np.nan, 0, 0, 1]):
        with pytest.raises(ValueError, match=r"a label is .*, expected 1 = positive"):
            take(jnp.asarray(labels), None)
    with pytest.raises(ValueError, match=r"mask holds 0\.5"):
        take(jnp.array([1, 0, 0, 1]), jnp.array([1, 1, 0.5, 0]))
    padded = take(jnp.array([1, 0, 0, 77]), jnp.array([1, 1, 1, 0]))  # what padding holds is nobody's concern
    for kind in (bool, np.uint8, np.float32):
        labels = jnp.asarray(np.array([1, 0, 0, 0], kind))
        assert same(take(labels, jnp.array([True, True, True, False])), padded)


def test_traced_labels_are_not_checked_and_1_alone_is_positive():
    for name in ("nnpu", "f1", "auc"):
        traced = jax.jit(lambda labels, take=TAKERS[name]: take(labels, None))
        assert traced(jnp.array([1, 2, 0, 255])) == TAKERS[name](jnp.array([1, 0, 0, 0]), None)


def test_masks_of_many_classes_are_held_to_the_rule_too():
    z = jnp.zeros((2, 3))
    with pytest.raises(ValueError, match="mask holds 2"):
        multiclass.accuracy(z, jnp.array([0, 1]), mask=jnp.array([1, 2]))
    with pytest.raises(ValueError, match="mask holds 2"):
        losses.cross_entropy(z, jnp.array([0, 1]), mask=jnp.array([1, 2]))


def test_soft_labels_are_taken_where_the_formula_allows_them():
    y = jnp.array([0.9, 0.1, 0.5, 0.0])
    np.testing.assert_allclose(losses.pn(Z, jnp.zeros(4), y=y), -np.mean(y * LOG_P + (1 - y) * (LOG_P - Z)), rtol=1e-6)


S, ONES = jnp.array([1, 0, 0, 0]), jnp.ones((2, 2))
OPTIONS = {
    "prior": (lambda v: losses.nnpu(Z, jnp.array([1, 0, 0, 0]), prior=v), (0.0, 1.0, -0.5, np.nan)),
    "beta": (lambda v: losses.nnpu(Z, jnp.array([1, 0, 0, 0]), prior=0.5, beta=v), (-1.0, np.inf, np.nan)),
    "gamma": (lambda v: losses.focal(Z, jnp.array([1, 0, 0, 0]), gamma=v), (-1.0, np.nan)),
    "floor": (lambda v: losses.bonus(Z, jnp.array([1, 0, 0, 0]), floor=v), (-0.1, 1.1)),
    "log_end": (lambda v: losses.encouraging(Z, jnp.array([1, 0, 0, 0]), log_end=v), (-0.1, 1.1, np.nan)),
    "amount": (lambda v: losses.smooth_labels(jnp.array([0, 1]), 2, v), (-0.1, 1.1, np.nan)),
    "effective": (lambda v: losses.effective_number(jnp.array([3, 4]), v), (-0.1, 1.1)),
    "alpha": (lambda v: mixup.sample(jax.random.key(0), v), (-1.0, np.nan)),
    "lam": (lambda v: mixup.log_target(LOG_P, LOG_P, v), (-0.1, 1.5, np.nan)),
    "anchor": (lambda v: mixup.log_target(LOG_P, LOG_P, 0.5, anchor=v), (-0.1, 1.5, np.nan)),
    "target floor": (lambda v: mixup.log_target(LOG_P, LOG_P, 0.5, floor=v), (-1.0, 1.5)),
    "partner_floor": (lambda v: mixup.log_target(LOG_P, LOG_P, 0.5, partner_floor=v), (-1.0, 1.5)),
    **{
        f"{function.__name__} prior": (
            lambda v, function=function: function(Z, S, prior=v),
            (-0.1, 1.1, np.nan),
        )
        for function in (metrics.pu_accuracy, metrics.pu_auc, metrics.nn_risk, metrics.score_summary)
        + (metrics.f1_quantile, metrics.f1_rescue)
    },
    "quantile": (lambda v: metrics.quantile_threshold(Z, prior=v), (-0.1, 1.1, np.nan)),
    "ridge": (lambda v: ensemble.solve_columns(ONES, ONES, ONES, ridge=v), (0.0, -1.0, np.inf, np.nan)),
    "strength": (lambda v: ensemble.class_weights(S, S, strength=v), (-1.0, np.nan)),
    "exponent": (lambda v: ensemble.focal_weights(Z, S, exponent=v), (-1.0, np.nan)),
    "confidence": (lambda v: ensemble.confidence("label_aware", ONES, S[:2], S[:2], alpha=v), (-1.0, np.inf, np.nan)),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_numbers_of_any_kind_are_held_to_their_range_and_traced_ones_are_not(name):
    use, wrong = OPTIONS[name]
    for value in wrong:
        for kind in (float, np.float32, np.float64, jnp.asarray):
            with pytest.raises(ValueError, match="expected a"):
                use(kind(value))
    for kind in (float, np.float32, jnp.asarray):
        use(kind(0.5))
    jax.eval_shape(use, wrong[0])


def test_each_lambda_of_a_batch_is_checked():
    with pytest.raises(ValueError, match=r"lam is 1\.5"):
        mixup.log_target(LOG_P, LOG_P, jnp.array([0.5, 0.1, 1.5, 0.2]))


def test_products_of_counts_do_not_overflow():
    labels = np.zeros(1_100_000, np.int32)
    labels[:1999] = np.arange(1, 2000)
    counts = np.bincount(labels)
    found = jnp.asarray(counts)
    weights = losses.weighting.of_counts(found)
    np.testing.assert_allclose(weights, counts.sum() / (2000 * counts.astype(float)), rtol=1e-6)
    assert (np.asarray(losses.effective_number(found, 0.999)) > 0).all()
