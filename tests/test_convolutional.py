"""The benchmark's networks: layers and parameters of the originals, and one convolution in three ways."""

import functools
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpu import models
from jaxpu.config import ModelConfig
from jaxpu.models.convolutional import NETWORKS, How, convolve, convolve_and_pool, max_pool

SHAPES = {"lenet": (28, 28), "cifar_net": (32, 32, 3), "mri_net": (128, 128)}


def built(name, shape=None, **settings):
    return models.build(ModelConfig(name=name, **settings), shape or SHAPES[name])


# kernels and biases by hand from the originals' layers: convolutions, BatchNorm's scale and bias, dense layers
LAYERS = {
    "lenet": [(5, 1, 10), (5, 10, 20), (320, 50), (50, 1)],
    "cifar_net": [
        (3, 3, 96), "norm", (3, 96, 96), "norm", (3, 96, 96), "norm", (3, 96, 192), "norm", (3, 192, 192), "norm",
        (3, 192, 192), "norm", (192 * 8 * 8, 1000), (1000, 1000), (1000, 1),
    ],
    "mri_net": [
        *(part for a, b in ((1, 32), (32, 64), (64, 128), (128, 256))
          for part in ((3, a, b), "norm", (3, b, b), "norm")),
        (256, 64), (64, 1),
    ],
}  # fmt: skip
# what torch counts in them, worked out by hand from the same layers
TOTAL = {"lenet": 21_381, "cifar_net": 14_291_513, "mri_net": 1_190_113}


@pytest.mark.parametrize("name", NETWORKS)
def test_shapes_and_numbers_of_parameters_are_the_originals(name):
    params, state = models.shapes(built(name), SHAPES[name])
    expected, width = [], 0
    for layer in LAYERS[name]:
        if layer == "norm":
            expected += [(width,)] * 2
        else:
            size, width = layer[0], layer[-1]
            expected += [(size, size, *layer[1:]) if len(layer) == 3 else layer, (width,)]
    found = [leaf.shape for leaf in jax.tree.leaves(params)]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert sum(np.prod(shape) for shape in found) == TOTAL[name]
    norms = sum(layer == "norm" for layer in LAYERS[name])
    assert len(jax.tree.leaves(state)) == 2 * norms, "a running mean and a running variance each"


@pytest.mark.parametrize(
    ("size", "stride", "padding", "shape"), [(5, 1, 0, (9, 8)), (3, 2, 1, (8, 7)), (3, 1, 1, (5, 5))]
)
def test_convolution_is_its_definition_in_every_way_and_so_is_its_gradient(size, stride, padding, shape):
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(2, *shape, 3)), rng.normal(size=(size, size, 3, 4))
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    out = [(length + 2 * padding - size) // stride + 1 for length in shape]
    expected = np.zeros((2, *out, 4))
    for i, j in np.ndindex(*out):
        part = padded[:, i * stride : i * stride + size, j * stride : j * stride + size]
        expected[:, i, j] = np.einsum("nhwc,hwcd->nd", part, kernel)
    weights = rng.normal(size=expected.shape)
    with jax.enable_x64():
        given = jnp.asarray(x), jnp.asarray(kernel)
        gradients = {}
        for how in get_args(How):
            np.testing.assert_allclose(convolve(*given, stride, padding, how), expected, rtol=1e-12, atol=1e-12)
            gradients[how] = jax.grad(
                lambda x, k, how=how: (convolve(x, k, stride, padding, how) * weights).sum(), (0, 1)
            )(*given)
        for how in ("patches", "shifts"):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-11), gradients[how], gradients["lax"])
        direction = rng.normal(size=kernel.shape)
        h, up = 1e-5, lambda k: (convolve(given[0], jnp.asarray(k), stride, padding, "patches") * weights).sum()
        slope = (up(kernel + h * direction) - up(kernel - h * direction)) / (2 * h)
        assert float((gradients["patches"][1] * direction).sum()) == pytest.approx(float(slope), rel=1e-7)


def test_pooling_takes_the_largest_of_four_and_leaves_out_an_odd_edge():
    x = np.random.default_rng(0).normal(size=(2, 5, 4, 3)).astype(np.float32)
    expected = [[x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max(axis=(1, 2)) for j in range(2)] for i in range(2)]
    np.testing.assert_array_equal(max_pool(jnp.asarray(x)), np.moveaxis(np.array(expected), 2, 0))


@pytest.mark.parametrize(("size", "padding", "shape"), [(5, 0, (9, 8)), (3, 1, (6, 7)), (4, 2, (6, 6))])
def test_convolution_with_pooling_in_one_is_one_after_the_other_and_so_is_its_gradient(size, padding, shape):
    rng = np.random.default_rng(0)
    with jax.enable_x64():
        x, kernel = jnp.asarray(rng.normal(size=(2, *shape, 3))), jnp.asarray(rng.normal(size=(size, size, 3, 4)))
        bias = jnp.asarray(rng.normal(size=4))
        in_one = [functools.partial(convolve_and_pool, padding=padding, how=how) for how in get_args(How)]

        def apart(x, kernel, bias):
            return jnp.maximum(max_pool(convolve(x, kernel, 1, padding, "lax")) + bias[None, None, None], 0)

        expected = apart(x, kernel, bias)
        weights = rng.normal(size=expected.shape)
        slopes = [
            jax.jit(jax.grad(lambda x, k, b, f=f: (f(x, k, b) * weights).sum(), (0, 1, 2)))(x, kernel, bias)
            for f in (apart, *in_one)
        ]
        for found, pooled in zip(slopes[1:], in_one, strict=True):
            np.testing.assert_allclose(pooled(x, kernel, bias), expected, rtol=1e-12, atol=1e-12)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-11), found, slopes[0])


@pytest.mark.parametrize("how", get_args(How))
@pytest.mark.parametrize("pixels", [[1, 1, 1, 1], [1, 3, 2, 3], [0, 1, 2, 4]])
def test_equal_outputs_share_the_gradient_of_the_largest(pixels, how):
    x = jnp.array(pixels, float).reshape(1, 2, 2, 1)
    found = jax.grad(lambda x: convolve_and_pool(x, jnp.ones((1, 1, 1, 1)), jnp.zeros(1), how=how).sum())(x)
    largest = np.array(pixels) == max(pixels)
    np.testing.assert_allclose(found.ravel(), largest / largest.sum(), rtol=1e-6)


def test_lenet_is_its_formula():
    model = built("lenet")
    params, state = model.init(jax.random.key(0), (28, 28))
    x = np.random.default_rng(0).normal(size=(2, 28, 28)).astype(np.float32)
    p = jax.tree.map(np.asarray, params)
    h = x[..., None]
    for layer in sorted(name for name in p if name.startswith("conv")):
        kernel, n = p[layer]["kernel"], h.shape[1] - 4
        windows = np.stack([h[:, i : i + n, j : j + n] for i in range(5) for j in range(5)], axis=-2)
        h = np.einsum("nhwkc,kcd->nhwd", windows, kernel.reshape(25, *kernel.shape[2:])) + p[layer]["bias"]
        h = np.maximum(h.reshape(2, n // 2, 2, n // 2, 2, -1).max(axis=(2, 4)), 0)
    (dense,) = (name for name in p if name.startswith("dense"))
    h = np.maximum(h.reshape(2, -1) @ p[dense]["kernel"] + p[dense]["bias"], 0)
    expected = h @ p["head"]["kernel"][:, 0] + p["head"]["bias"][0]
    np.testing.assert_allclose(model.apply(params, state, jnp.asarray(x))[0], expected, atol=1e-5)
    assert state == {}


@pytest.mark.slow
def test_as_in_torch_weights_start_within_one_over_the_root_of_what_comes_in():
    params, _ = built("mri_net", (16, 16)).init(jax.random.key(0), (16, 16))
    for name, leaves in params.items():
        if name.startswith("norm"):
            assert (leaves["scale"] == 1).all()
            assert (leaves["bias"] == 0).all()
        else:
            bound = 1 / np.sqrt(np.prod(leaves["kernel"].shape[:-1]))
            assert 0.8 * bound < float(jnp.abs(leaves["kernel"]).max()) <= bound
            assert float(jnp.abs(leaves["bias"]).max()) <= bound


@pytest.fixture(scope="module")
def slices():
    """A small MRI network with its state, and rows."""
    model = built("mri_net", (16, 16))
    params, state = model.init(jax.random.key(0), (16, 16))
    return (
        jax.jit(model.apply, static_argnames="train"),
        params,
        state,
        jax.random.normal(jax.random.key(1), (8, 16, 16)),
    )


@pytest.mark.slow
def test_training_moves_the_running_statistics_and_drops_activations(slices):
    apply, params, state, x = slices
    key, ones = jax.random.key(2), jnp.ones(8)
    first, moved = apply(params, state, x, key=key, train=True, mask=ones)
    other, _ = apply(params, state, x, key=jax.random.key(3), train=True, mask=ones)
    assert not np.allclose(first, other)
    assert jax.tree.structure(moved) == jax.tree.structure(state)
    changed = jax.tree.map(lambda a, b: bool((a != b).any()), moved, state)
    assert all(jax.tree.leaves(changed))
    means = moved["batch_stats"]["norm1"]["mean"]
    convolved = convolve(x[..., None], params["conv0"]["kernel"], 1, 1) + params["conv0"]["bias"][None, None, None]
    np.testing.assert_allclose(means, 0.1 * convolved.mean(axis=(0, 1, 2)), atol=1e-6)


@pytest.mark.slow
def test_a_rows_logit_depends_on_this_row_alone_outside_of_training_and_padding_on_nothing_in_it(slices):
    apply, params, state, x = slices
    both, same = apply(params, state, x)
    np.testing.assert_allclose(apply(params, state, x[::-1])[0][::-1], both, atol=1e-6)
    jax.tree.map(np.testing.assert_array_equal, same, state)
    mask = (jnp.arange(8) < 5).astype(jnp.float32)
    z, moved = apply(params, state, x, key=jax.random.key(2), train=True, mask=mask)
    z_2, moved_2 = apply(params, state, x.at[5:].set(9.0), key=jax.random.key(2), train=True, mask=mask)
    np.testing.assert_allclose(z[:5], z_2[:5], atol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), moved, moved_2)


def test_images_too_small_and_rows_that_are_none_are_named():
    with pytest.raises(ValueError, match=r"mri_net wants images of at least 16 x 16, got \(8, 8\)"):
        models.shapes(built("mri_net", (8, 8)), (8, 8))
    with pytest.raises(ValueError, match=r"convolutions want rows of shape \(h, w\)"):
        models.shapes(built("lenet", (57,)), (57,))
