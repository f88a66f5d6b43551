"""Class weights against scikit-learn and their formulas, and row weights."""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from jaxpu import ensemble, losses


def run(program, *arrays):
    """The compiled program on NumPy arrays, in float64."""
    with jax.enable_x64(True):
        return jax.device_get(jax.jit(program)(*map(jnp.asarray, arrays)))


def test_inverse_frequency_is_that_of_scikit_learn_and_of_the_ensembles():
    def weights(labels, mask, positive):
        of_class = losses.inverse_frequency(labels, 5, mask=mask)
        two = losses.row_weights(losses.inverse_frequency(positive, 2), positive)
        return (
            of_class,
            losses.row_weights(of_class, labels, mask=mask),
            two,
            ensemble.class_weights(positive, mask | 1),
        )

    labels = np.array([2, 0, 0, 3, 0, 2, 0, 0, 3, 3])
    mask = np.arange(10) < 8
    of_class, rows, ours, theirs = run(weights, labels, mask, labels == 2)
    present = np.unique(labels[mask])
    expected = compute_class_weight("balanced", classes=present, y=labels[mask])
    np.testing.assert_allclose(of_class[present], expected, rtol=1e-12)
    np.testing.assert_array_equal(of_class[[1, 4]], 1)
    np.testing.assert_array_equal(rows, np.where(mask, of_class[labels], 0))
    np.testing.assert_array_equal(ours, theirs)
    assert ours[0] == 10 / (2 * 2)
    *_, ours, theirs = run(weights, labels, mask, labels > 5)
    assert (ours == 1).all()
    assert (theirs == 1).all()


def test_effective_number_runs_from_equal_weights_to_inverse_frequency():
    counts = np.array([5000, 0, 40, 3])
    betas = np.array([0.0, 0.9, 0.9999, 1.0])
    weights = run(jax.vmap(losses.effective_number, (None, 0)), counts, betas)
    np.testing.assert_array_equal(weights[0], 1)
    np.testing.assert_array_equal(weights[:, 1], 1)
    np.testing.assert_allclose(weights.sum(axis=1), 4, rtol=1e-12)
    there = counts[counts > 0]
    for beta, of_class in zip(betas[1:3], weights[1:3], strict=True):
        expected = (1 - beta) / (1 - beta**there)
        np.testing.assert_allclose(of_class[counts > 0], 3 * expected / expected.sum(), rtol=1e-9)
    np.testing.assert_allclose(weights[3][counts > 0], 3 * (1 / there) / (1 / there).sum(), rtol=1e-12)


def test_row_weights_of_soft_labels_are_expectations():
    of_class = np.array([1.0, 3.0, 10.0])
    labels = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [np.nan, 0.0, 0.0]])
    weights = run(lambda w, q, mask: losses.row_weights(w, q, mask=mask), of_class, labels, np.arange(3) < 2)
    np.testing.assert_allclose(weights, [2, 10, 0], rtol=1e-12)
    no_class = run(losses.row_weights, of_class, np.array([0, 3, -1]))
    assert np.isnan(no_class).tolist() == [False, True, True]
