"""Images from a folder: small sets made here, and the real ones where they are."""

import dataclasses
import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from jaxpu import config, train
from jaxpu.data import arrays, describe, images, load, sources
from jaxpu.train import job


def made(n_train: int = 12, n_test: int = 4) -> images.Images:
    rng = np.random.default_rng(0)
    classes = np.arange(n_train + n_test, dtype=np.int8) % 10
    grey = rng.integers(0, 256, (n_train + n_test, 28, 28), dtype=np.uint8)
    return images.Images(grey[:n_train], classes[:n_train], grey[n_train:], classes[n_train:])


def in_colour(raw: images.Images) -> images.Images:
    """The same with three different colours."""
    red_green_blue = (np.stack([x, x // 2, 255 - x], axis=-1)[:, :16, :16] for x in (raw.x_train, raw.x_test))
    x_train, x_test = red_green_blue
    return raw._replace(x_train=x_train, x_test=x_test)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("mnist", "fashion_mnist", "cifar10"):
        raw = in_colour(made()) if name == "cifar10" else made()
        np.savez(tmp_path / f"{name}.npz", **raw._asdict())
    monkeypatch.setenv("JAXPU_DATA_DIR", str(tmp_path))
    return tmp_path


def as_floats(data):
    """The same set with its features kept as they are."""
    return dataclasses.replace(data, x=data.features(), levels=None)


@pytest.fixture
def both(tmp_path, monkeypatch):
    """What the trainer is given for images as bytes, and for the same as features."""
    np.savez(tmp_path / "mnist.npz", **made(300, 50)._asdict())
    monkeypatch.setenv("JAXPU_DATA_DIR", str(tmp_path))
    settings = {
        "data": {"name": "mnist", "c": 0.3}, "model": {"name": "mlp", "hidden": [8]}, "methods": ["vpudra_softlabel"],
        "training": {"epochs": 2, "batch_size": 64},
    }  # fmt: skip
    [cell], data = config.expand(config.parse(settings)), load("mnist")
    assert data.content == as_floats(data).content, "an experiment's runs are those of before"
    return [job.inputs(cell, 0, dataset=one) for one in (data, as_floats(data))]


def test_bytes_become_the_very_features_in_the_program(both):
    (_, of_bytes, *_), (_, of_floats, *_) = both
    assert (of_bytes.x.dtype, of_floats.x.dtype) == (np.uint8, np.float32)
    rows = jnp.concatenate([of_bytes.train, of_bytes.test])
    np.testing.assert_array_equal(*(jax.jit(train.features)(arrays, rows) for arrays in (of_bytes, of_floats)))
    with pytest.raises(ValueError, match="expected levels where x holds bytes"):
        dataclasses.replace(load("mnist"), levels=None)


@pytest.mark.slow
def test_bytes_train_the_networks_that_features_do(both):
    first, second = (jax.jit(train.train, static_argnums=2)(*given).history for given in both)
    for name, values in first.items():
        np.testing.assert_allclose(values, second[name], rtol=1e-5, atol=1e-7, err_msg=name)


def test_rows_from_elsewhere_are_bytes_where_both_sets_mean_the_same_by_them(folder):
    given = config.DataConfig(name="mnist", outside="fashion_mnist")
    data = load("mnist")
    together = arrays(given, data)
    assert together.x.dtype == np.uint8
    np.testing.assert_array_equal(together.levels, data.levels)
    floats = arrays(given, dataclasses.replace(as_floats(data), name="other", standardize=True))
    assert floats.levels is None
    np.testing.assert_array_equal(floats.x, data.levels[together.x])


@pytest.mark.parametrize(("name", "positive"), [("mnist", {0, 2, 4, 6, 8}), ("fashion_mnist", {0, 2, 3, 4, 6})])
def test_a_set_from_a_folder(folder, name, positive):
    data, raw = load(name), made()
    assert data.x.shape == (16, 28, 28)
    assert data.x.dtype == np.uint8, "images stay bytes"
    np.testing.assert_array_equal(data.features(), images.scaled(np.float32([*raw.x_train, *raw.x_test])))
    assert data.features([3]).dtype == np.float32
    np.testing.assert_allclose(data.features([0])[0], raw.x_train[0] / 127.5 - 1, atol=1e-6)
    np.testing.assert_array_equal(data.test_rows, [12, 13, 14, 15])
    expected = [int(c in positive) for c in [*raw.y_train, *raw.y_test]]
    assert data.y.tolist() == expected
    assert data.y.dtype == np.int8
    assert data.classes.tolist() == [*raw.y_train, *raw.y_test]
    assert data.description == describe(name)


def test_photographs_have_their_colours_last(folder):
    data, raw = load("cifar10", rows=6), in_colour(made())
    assert data.x.shape == (7, 16, 16, 3)
    np.testing.assert_allclose(data.features()[-1], raw.x_test[0] / 127.5 - 1, atol=1e-6)
    assert data.y.tolist() == [int(c in {0, 1, 8, 9}) for c in data.classes]
    of_unit = load("cifar10", rows=6, unit=1)
    np.testing.assert_array_equal(of_unit.features(), data.x.astype(np.float32) / 255)
    assert of_unit.content != data.content


def test_photographs_may_be_jpeg_files_one_after_the_other(tmp_path, monkeypatch):
    raw, arrays = in_colour(made()), {}
    for part in ("train", "test"):
        # JPEG loses what is sharp: plain squares come back nearly as they were
        plain = np.broadcast_to(getattr(raw, f"x_{part}")[:, :1, :1], getattr(raw, f"x_{part}").shape)
        files = []
        for x in plain:
            with io.BytesIO() as file:
                Image.fromarray(np.ascontiguousarray(x)).save(file, "JPEG", quality=95, subsampling=0)
                files.append(file.getvalue())
        arrays |= {f"jpeg_{part}": np.frombuffer(b"".join(files), np.uint8), f"y_{part}": getattr(raw, f"y_{part}")}
        arrays |= {f"offsets_{part}": np.cumsum([0, *map(len, files)]), f"plain_{part}": plain}
    np.savez(tmp_path / "cifar10_jpeg.npz", **arrays)
    monkeypatch.setenv("JAXPU_DATA_DIR", str(tmp_path))
    got = images.read_images("cifar10")
    assert got.x_train.shape == raw.x_train.shape
    for part in ("train", "test"):
        assert np.abs(getattr(got, f"x_{part}").astype(int) - arrays[f"plain_{part}"]).max() <= 4
        np.testing.assert_array_equal(getattr(got, f"y_{part}"), arrays[f"y_{part}"])


def test_some_rows_are_the_first_and_a_sixth_as_many_of_test(folder):
    some, every = load("mnist", rows=6), load("mnist")
    np.testing.assert_array_equal(some.x, every.x[[0, 1, 2, 3, 4, 5, 12]])
    assert some.test_rows.tolist() == [6]
    for rows in (5, 13):
        with pytest.raises(ValueError, match=f"rows is {rows}, expected 6 to 12"):
            load("mnist", rows=rows)


def test_slices_of_brains_are_shrunk_by_means_and_drawn_the_same_every_time(tmp_path, monkeypatch):
    x = np.random.default_rng(0).integers(0, 256, (12, 8, 8), dtype=np.uint8)
    names = np.array(["NonDemented", "VeryMildDemented", "MildDemented", "ModerateDemented"])
    np.savez(tmp_path / "alzheimer_mri.npz", x=x, y=np.arange(12) % 4, classes=names)
    monkeypatch.setenv("JAXPU_DATA_DIR", str(tmp_path))
    every, some = load("alzheimer_mri", size=4), load("alzheimer_mri", rows=5, size=4)
    np.testing.assert_allclose(every.x[3, 1, 2], x[3, 2:4, 4:6].mean() / 127.5 - 1, atol=1e-6)
    assert every.y.tolist() == [1, 0, 0, 0] * 3
    kept = [np.flatnonzero((every.x == row).all(axis=(1, 2)))[0] for row in some.x]
    assert kept == sorted(set(kept))
    np.testing.assert_array_equal(some.y, every.y[kept])
    assert some.content == load("alzheimer_mri", rows=5, size=4).content
    for options, message in (({"size": 3}, "size is 3, expected 8 or"), ({"rows": 13}, "rows is 13, expected 2 to 12")):
        with pytest.raises(ValueError, match=message):
            load("alzheimer_mri", **options)


def test_the_real_digits(data_dir):
    assert sources.found("mnist") == data_dir / "mnist.npz"
    got = images.read_images("mnist")
    assert (got.x_train.shape, got.x_test.shape) == ((60_000, 28, 28), (10_000, 28, 28))
    assert got.x_train.mean() / 255 == pytest.approx(0.13066, abs=1e-5)
    assert set(np.unique(got.y_test)) == set(range(10))


def test_the_real_clothes(data_dir):
    with np.load(data_dir / "fashion_mnist.npz") as arrays:  # its training part takes seconds to unpack
        x, y, y_train = arrays["x_test"], arrays["y_test"], arrays["y_train"]
    assert x.shape == (10_000, 28, 28)
    assert x.mean() / 255 == pytest.approx(0.2868, abs=1e-3)
    assert (np.bincount(y).tolist(), np.bincount(y_train).tolist()) == ([1000] * 10, [6000] * 10)


def test_the_real_photographs(data_dir):
    with np.load(data_dir / "cifar10_jpeg.npz") as arrays:
        first = {"jpeg_train": arrays["jpeg_train"], "offsets_train": arrays["offsets_train"][:2001]}
        assert np.bincount(arrays["y_train"]).tolist() == [5000] * 10
    x = images._pixels(first, "train", 2000)
    assert x.shape == (2000, 32, 32, 3)
    np.testing.assert_allclose(x.mean(axis=(0, 1, 2)) / 255, [0.4914, 0.4822, 0.4465], atol=0.01)
