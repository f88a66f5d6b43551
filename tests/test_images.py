"""Images from a folder or from OpenML: both ways on small sets made here, and the real ones where they are."""

import numpy as np
import pytest
import sklearn.datasets

from jaxpu.data import FETCHED, describe, images, load


def made(n_train: int = 12, n_test: int = 4) -> images.Images:
    rng = np.random.default_rng(0)
    classes = np.arange(n_train + n_test, dtype=np.int8) % 10
    grey = rng.integers(0, 256, (n_train + n_test, 28, 28), dtype=np.uint8)
    return images.Images(grey[:n_train], classes[:n_train], grey[n_train:], classes[n_train:])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in FETCHED:
        np.savez(tmp_path / f"{name}.npz", **made()._asdict())
    monkeypatch.setenv("JAXPU_DATA_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("name", "positive"), [("mnist", {0, 2, 4, 6, 8}), ("fashion_mnist", {0, 2, 3, 4, 6})])
def test_a_set_from_a_folder(folder, name, positive):
    data, raw = load(name), made()
    assert data.x.shape == (16, 28, 28)
    assert data.x.dtype == np.float32
    assert data.x.flags.c_contiguous
    np.testing.assert_allclose(data.x[0], raw.x_train[0] / 127.5 - 1, atol=1e-6)
    np.testing.assert_array_equal(data.test_rows, [12, 13, 14, 15])
    expected = [int(c in positive) for c in [*raw.y_train, *raw.y_test]]
    assert data.y.tolist() == expected
    assert data.y.dtype == np.int8
    assert data.description == describe(name)


def test_some_rows_are_the_first_and_a_sixth_as_many_of_test(folder):
    some, every = load("mnist", rows=6), load("mnist")
    np.testing.assert_array_equal(some.x, every.x[[0, 1, 2, 3, 4, 5, 12]])
    assert some.test_rows.tolist() == [6]
    for rows in (5, 13):
        with pytest.raises(ValueError, match=f"rows is {rows}, expected 6 to 12"):
            load("mnist", rows=rows)


def test_openml_is_asked_where_the_folder_has_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXPU_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(images, "TRAINING_ROWS", 12)
    raw, asked = made(), []

    def fetch(name, **options):
        asked.append((name, options))
        x = np.concatenate([raw.x_train, raw.x_test]).reshape(16, -1).astype(float)
        return x, np.concatenate([raw.y_train, raw.y_test]).astype(str)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    got = images.read_images("mnist")
    assert asked == [("mnist_784", {"version": 1, "return_X_y": True, "as_frame": False})]
    for mine, theirs in zip(got, raw, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_without_file_and_network_the_error_says_what_to_do(monkeypatch):
    monkeypatch.delenv("JAXPU_DATA_DIR", raising=False)

    def offline(*_, **__):
        raise OSError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)
    with pytest.raises(ValueError, match=r"mnist.npz .*no route to host.*set JAXPU_DATA_DIR"):
        load("mnist")


def test_a_damaged_file_is_named(folder):
    whole = (folder / "mnist.npz").read_bytes()
    (folder / "mnist.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"mnist.npz cannot be read"):
        load("mnist")


@pytest.mark.parametrize(("name", "train_mean"), [("mnist", 0.13066), ("fashion_mnist", 0.28604)])
def test_the_real_set(data_dir, name, train_mean):
    got = images._from_file(data_dir / f"{name}.npz")
    assert got.x_train.shape == (60_000, 28, 28)
    assert got.x_test.shape == (10_000, 28, 28)
    assert got.x_train.mean() / 255 == pytest.approx(train_mean, abs=1e-5)
    assert set(np.unique(got.y_test)) == set(range(10))
