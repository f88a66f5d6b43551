"""Networks: initialisation, shapes, dropout."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxpu import models
from jaxpu.config import ModelConfig


def test_torch_initialisation_is_uniform_within_one_over_root_fan_in():
    model = models.build(ModelConfig(hidden=(64, 32)), (25,))
    params = models.start(model, jax.random.key(3), (25,)).params
    for name, fan_in in (("layer0", 25), ("layer1", 64), ("head", 32)):
        bound = 1 / np.sqrt(fan_in)
        drawn = np.concatenate([np.ravel(params[name]["kernel"]), np.ravel(params[name]["bias"])])
        assert np.abs(drawn).max() <= bound
        assert stats.kstest(drawn, "uniform", args=(-bound, 2 * bound)).pvalue > 1e-3
    assert len(np.unique(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)]))) > 3700


def test_lecun_initialisation():
    params, _ = models.build(ModelConfig(hidden=(400,), init="lecun"), (100,)).init(jax.random.key(0), (100,))
    assert np.std(params["layer0"]["kernel"]) == pytest.approx(0.1, rel=0.02)
    assert not params["layer0"]["bias"].any()


@pytest.mark.parametrize("init", ["torch", "lecun"])
def test_an_untrained_network_predicts_about_its_initial_p(init):
    model = models.build(ModelConfig(init=init), (57,))
    start = models.start(model, jax.random.key(1), (57,), 0.2)
    assert float(start.params["head"]["bias"][0]) == pytest.approx(np.log(0.2 / 0.8), abs=1e-6)
    # untrained logits differ from it by the head's small weights only
    p = jax.nn.sigmoid(model.logits(start, jnp.zeros((1, 57))))
    assert float(p[0]) == pytest.approx(0.2, abs=0.05)


def test_the_network_is_the_plain_formula():
    model = models.build(ModelConfig(hidden=(5, 4), dropout=(0.5,)), (3,))
    variables = models.start(model, jax.random.key(0), (3,), 0.4)
    params = variables.params
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    h = x
    for layer in ("layer0", "layer1"):
        h = np.maximum(h @ np.asarray(params[layer]["kernel"]) + np.asarray(params[layer]["bias"]), 0)
    z = h @ np.asarray(params["head"]["kernel"]) + np.asarray(params["head"]["bias"])
    np.testing.assert_allclose(model.logits(variables, jnp.asarray(x)), z[:, 0], rtol=1e-5, atol=1e-6)
    linear = models.build(ModelConfig(name="linear"), (3,))
    variables = models.start(linear, jax.random.key(0), (3,), 0.4)
    w = variables.params
    assert set(w) == {"head"}
    np.testing.assert_allclose(
        linear.logits(variables, jnp.asarray(x)),
        (x @ np.asarray(w["head"]["kernel"]) + np.asarray(w["head"]["bias"]))[:, 0],
        rtol=1e-5,
    )


def dropped(seed, rows, rate):
    return models.dropout(models.dropout_words(jax.random.key(seed), rows, 300), jnp.ones((rows, 300)), rate)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("rows", [200, 201])
def test_dropout_keeps_the_right_share_independently_and_the_mean_exactly(rate, rows):
    kept = np.asarray(dropped(5, rows, rate)) > 0
    n = kept.size
    sd = np.sqrt(rate * (1 - rate) / n)
    assert abs(kept.mean() - (1 - rate)) < 4 * sd
    # one random word decides two rows: they, neighbours, and other seeds must be independent all the same
    half = (rows + 1) // 2
    other = np.asarray(dropped(6, rows, rate)) > 0
    pairs = [
        (kept[: rows - half], kept[half:]),
        (kept[:-1], kept[1:]),
        (kept[:, :-1], kept[:, 1:]),
        (kept, other),
    ]
    for a, b in pairs:
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 4 / np.sqrt(a.size)
    scale = np.unique(np.asarray(dropped(5, rows, rate)))
    keep_probability = round((1 - rate) * 2**16) / 2**16
    np.testing.assert_allclose(scale, [0, 1 / keep_probability], rtol=1e-6)


@pytest.mark.parametrize(("rows", "width"), [(200, 300), (7, 5), (1, 1)])
def test_dropout_words_are_the_bits_of_jax(rows, width):
    for key in (jax.random.key(3), jax.random.fold_in(jax.random.key(0), 2**31 + 5), jax.random.key(3, impl="rbg")):
        wanted = jax.random.bits(key, ((rows + 1) // 2, width), "uint32")
        np.testing.assert_array_equal(models.dropout_words(key, rows, width), wanted)
    keys = jax.random.split(jax.random.key(1), 3)
    together = jax.jit(jax.vmap(lambda key: models.dropout_words(key, rows, width)))(keys)
    alone = [models.dropout_words(key, rows, width) for key in keys]
    np.testing.assert_array_equal(together, np.stack(alone))


def test_relu_with_dropout_is_one_after_the_other_and_so_are_its_derivatives():
    rng = np.random.default_rng(0)
    z = jnp.asarray(rng.normal(size=(9, 40)), jnp.float32).at[0].set(0.0)
    tangent, weights = (jnp.asarray(rng.normal(size=(9, 40)), jnp.float32) for _ in range(2))
    words = models.dropout_words(jax.random.key(2), 9, 40)

    def once(z):
        return models.relu_dropout(z, words, 0.3)

    def twice(z):
        return models.dropout(words, jax.nn.relu(z), 0.3)

    for of in (once, jax.jit(once)):
        forward, wanted = jax.jvp(of, (z,), (tangent,)), jax.jvp(twice, (z,), (tangent,))
        np.testing.assert_array_equal(forward[0], wanted[0])
        np.testing.assert_array_equal(forward[1], wanted[1])
        slopes = [jax.grad(lambda z, f=f: (weights * f(z) ** 2).sum())(z) for f in (of, twice)]
        np.testing.assert_array_equal(*slopes)
    kept = np.asarray(once(z)) > 0  # about 0.7 of the positive ones, and none of the others
    assert not kept[np.asarray(z) <= 0].any()
    assert 0.5 < kept[np.asarray(z) > 0].mean() < 0.9


def test_dropout_is_off_without_a_key_and_differs_between_keys():
    model = models.build(ModelConfig(hidden=(32,), dropout=(0.5,)), (3,))
    variables, x = models.start(model, jax.random.key(0), (3,)), jnp.ones((4, 3))
    still = model.logits(variables, x)
    np.testing.assert_array_equal(still, model.apply(*variables, x, train=True)[0])
    np.testing.assert_array_equal(still, model.apply(*variables, x, key=jax.random.key(1))[0])
    a, b = (model.apply(*variables, x, key=jax.random.key(i), train=True)[0] for i in (1, 2))
    assert not np.allclose(a, b)
    assert not np.allclose(a, still)
