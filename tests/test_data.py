"""The registry of datasets: one contract for every entry, then what is known about each."""

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from jaxpu.config import DataConfig
from jaxpu.data import DATASETS, FETCHED, Dataset, describe, load
from jaxpu.data import prepare as prepare_one

SHA256_X = "f9ce320b207ba6679055b8c626b161093cb793d4f0021371a7af7e086983196b"
SHA256_Y = "9b144b067f1ace8a86c52167b5618b2bcbbf5e52cdab7b869e81f94a0f68672c"
SHIPPED = resources.files("jaxpu.data").joinpath("spambase.npz")
ROOT = Path(__file__).parent.parent


def sha256(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


@pytest.mark.parametrize("name", [name for name in DATASETS if name not in FETCHED])
def test_contract(name: str):
    data = load(name)
    assert isinstance(data, Dataset)
    assert data.name == name
    assert data.x.dtype == np.float32
    assert data.x.flags.c_contiguous
    assert np.isfinite(data.x).all()
    assert data.y.dtype == np.int8
    assert data.y.shape == data.x.shape[:1]
    assert set(np.unique(data.y)) == {0, 1}
    assert re.fullmatch(r"[A-Z][^\n]{20,105}\.", data.description)
    assert data.description == describe(name)
    assert data.source
    assert data.licence
    again = load(name)
    np.testing.assert_array_equal(data.x, again.x)
    np.testing.assert_array_equal(data.y, again.y)


def test_unknown_names_and_options_are_told_the_choices():
    with pytest.raises(ValueError, match=r"unknown dataset 'spam'.*spambase, digits, breast_cancer, gaussians"):
        load("spam")
    with pytest.raises(ValueError, match=r"unknown dataset 'mnst'.*spambase"):
        describe("mnst")
    with pytest.raises(ValueError, match=r"'gaussians' has no option 'dims'.*n, d, pi, separation, seed"):
        load("gaussians", dims=3)
    with pytest.raises(ValueError, match=r"'spambase' has no option 'n'; its options: none"):
        load("spambase", n=3)


def test_importing_the_package_costs_numpy_only():
    code = (
        "import sys, jaxpu.data, jaxpu.data.sampling;"
        "jaxpu.data.load('spambase'), jaxpu.data.load('mixture');"
        "sys.exit(' '.join({'jax', 'sklearn', 'scipy', 'polars', 'pandas'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_spambase_is_the_uci_data():
    data = load("spambase")
    assert data.x.shape == (4601, 57)
    assert np.bincount(data.y).tolist() == [2788, 1813]
    assert sha256(data.x) == SHA256_X
    assert sha256(data.y) == SHA256_Y
    assert data.standardize
    # UCI's first row and the ranges of its documentation: percentages, then run lengths of 1 or more.
    np.testing.assert_allclose(data.x[0, [1, 2, 54, 55, 56]], [0.64, 0.64, 3.756, 61.0, 278.0], rtol=1e-6)
    assert data.x.min() == 0
    assert data.x[:, :54].max() <= 100
    assert data.x[:, 54:].min(axis=0).tolist() == [1, 1, 1]
    assert data.x[:, 54:].max(axis=0).tolist() == [1102.5, 9989, 15841]


def test_spambase_note_names_what_is_shipped():
    note = resources.files("jaxpu.data").joinpath("SPAMBASE.md").read_text(encoding="utf-8")
    shipped = SHIPPED.read_bytes()
    assert len(shipped) <= 160_000
    for fact in (hashlib.sha256(shipped).hexdigest(), SHA256_X, SHA256_Y, "10.24432/C53G6X", "CC BY 4.0"):
        assert fact in note
    for author in ("Hopkins", "Reeber", "Forman", "Suermondt"):
        assert author in note


def test_mushrooms_are_the_uci_data_and_their_note_names_what_is_shipped():
    file = resources.files("jaxpu.data").joinpath("mushrooms.npz")
    with file.open("rb") as stream, np.load(stream) as shipped:
        letters, y = shipped["x"], shipped["y"]
    note = resources.files("jaxpu.data").joinpath("MUSHROOMS.md").read_text(encoding="utf-8")
    facts = (hashlib.sha256(file.read_bytes()).hexdigest(), sha256(letters), sha256(y), "10.24432/C5959T", "CC BY 4.0")
    assert [fact for fact in facts if fact not in note] == []
    assert len(file.read_bytes()) < 30_000
    data = load("mushrooms")
    assert np.bincount(data.y).tolist() == [4208, 3916]
    assert (data.x.sum(axis=1) == 22).all()
    # UCI's first line: p,x,s,n,t,p,f,c,n,k,e,e,s,s,w,w,p,w,o,p,k,s,u; and stalk-root is missing 2480 times
    first = {data.feature_names[j] for j in np.flatnonzero(data.x[0])}
    assert {"cap-shape=x", "odor=p", "spore-print-color=k", "habitat=u"} < first
    assert data.x[:, data.feature_names.index("stalk-root=?")].sum() == 2480


def test_spambase_equals_an_independent_copy():
    folder = os.environ.get("JAXPU_DATA_DIR")
    if not folder or not (Path(folder) / "spambase.npz").is_file():
        pytest.skip("JAXPU_DATA_DIR names no folder with a spambase.npz to compare with")
    data = load("spambase")
    with (
        np.load(Path(folder) / "spambase.npz") as other,
        SHIPPED.open("rb") as stream,
        np.load(stream) as mine,
    ):
        np.testing.assert_array_equal(data.x, other["X"])
        np.testing.assert_array_equal(data.y, other["y"])
        np.testing.assert_array_equal(mine["feature_names"], other["feature_names"])


def test_make_spambase_writes_the_same_bytes_every_time(tmp_path: Path):
    spec = importlib.util.spec_from_file_location("make_spambase", ROOT / "scripts" / "make_spambase.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    with SHIPPED.open("rb") as stream, np.load(stream) as shipped:
        arrays = {name: shipped[name] for name in shipped.files}
    script.write_npz(tmp_path / "made.npz", arrays)
    with np.load(tmp_path / "made.npz") as made:
        assert made.files == ["x", "y", "feature_names"]
        for name in made.files:
            np.testing.assert_array_equal(made[name], arrays[name])
            assert made[name].dtype == arrays[name].dtype
    # Bytes 10 to 13 of a zip file are the time and date of its first member: 1980-01-01 00:00:00.
    assert (tmp_path / "made.npz").read_bytes()[10:14] == bytes([0, 0, 0x21, 0])


def test_digits_and_breast_cancer_have_the_positive_class_they_state():
    digits, masses = load("digits"), load("breast_cancer")
    assert digits.x.shape == (1797, 64)
    assert (digits.x.min(), digits.x.max()) == (0, 1)
    assert digits.y[:10].tolist() == [1, 0] * 5  # the bundled set starts with 0, 1, .., 9
    assert masses.x.shape == (569, 30)
    assert int(masses.y.sum()) == 212
    assert masses.x[masses.y == 1, 0].mean() > masses.x[masses.y == 0, 0].mean()  # malignant nuclei are larger


def test_gaussians_have_the_closed_form_posterior():
    d, pi, separation = 3, 0.3, 1.5
    data = load("gaussians", n=500, d=d, pi=pi, separation=separation, seed=4)
    along = data.x.astype(np.float64).sum(axis=1) / np.sqrt(d)
    logit = separation * along + np.log(pi / (1 - pi))
    assert data.posterior is not None
    np.testing.assert_allclose(data.posterior, 1 / (1 + np.exp(-logit)), rtol=1e-12)
    assert int(data.y.sum()) == 150


def test_gaussians_have_the_stated_auc():
    data = load("gaussians", n=20_000, separation=2.0)
    assert data.posterior is not None
    assert roc_auc_score(data.y, data.posterior) == pytest.approx(norm.cdf(np.sqrt(2)), abs=0.006)


def test_mixture_has_the_posterior_of_its_densities():
    n, d, components, separation = 400, 3, 3, 4.0
    data = load("mixture", n=n, d=d, pi=0.35, components=components, separation=separation, seed=2)
    angles = np.linspace(0, 2 * np.pi, 2 * components, endpoint=False)
    # Neighbours of a regular hexagon are as far apart as they are from its middle.
    centres = separation * np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=1)
    density = np.array([multivariate_normal(centre).pdf(data.x) for centre in centres])
    assert data.posterior is not None
    joint = 0.35 * density[::2].mean(axis=0), 0.65 * density[1::2].mean(axis=0)
    np.testing.assert_allclose(data.posterior, joint[0] / (joint[0] + joint[1]), rtol=1e-9)


@pytest.mark.parametrize("components", [2, 3, 5])
def test_mixture_needs_a_nonlinear_boundary(components: int):
    data = load("mixture", n=4000, components=components, separation=5.0)
    assert data.posterior is not None
    linear = LogisticRegression().fit(data.x, data.y).predict_proba(data.x)[:, 1]
    assert roc_auc_score(data.y, linear) < 0.65
    assert roc_auc_score(data.y, data.posterior) > 0.98


@pytest.mark.parametrize("name", ["gaussians", "mixture"])
def test_posterior_is_calibrated(name: str):
    data = load(name, n=20_000, separation=1.5, seed=1)
    p = data.posterior
    assert p is not None
    bins = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
    for b in np.unique(bins):
        inside = bins == b
        deviation = np.sqrt((p[inside] * (1 - p[inside])).mean() / inside.sum())
        assert abs(data.y[inside].mean() - p[inside].mean()) < 4 * deviation
    logit = np.log(p) - np.log1p(-p)
    distorted = [
        1 / (1 + np.exp(-(scale * logit + shift))) for scale, shift in ((0.8, 0), (1.25, 0), (1, 0.2), (1, -0.2))
    ]
    assert all(log_loss(data.y, p) < log_loss(data.y, other) for other in distorted)


@pytest.mark.parametrize("name", ["gaussians", "mixture"])
def test_seed_changes_the_draw_but_no_count(name: str):
    one, other = load(name, seed=1), load(name, seed=2)
    assert not np.array_equal(one.x, other.x)
    assert not np.array_equal(one.y, other.y)
    assert one.y.sum() == other.y.sum()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gaussians", {"pi": 0.0}, "both classes need a row"),
        ("gaussians", {"n": 1}, "both classes need a row"),
        ("gaussians", {"n": 10, "pi": 0.99}, "10 positives"),
        ("gaussians", {"d": 0}, "d must be at least 1"),
        ("mixture", {"d": 1}, "d must be at least 2"),
        ("mixture", {"components": 1}, "components must be at least 2"),
    ],
)
def test_synthetic_options_out_of_range(name: str, options: dict, message: str):
    with pytest.raises(ValueError, match=message):
        load(name, **options)


def test_prepared_seeds_are_forgotten_and_come_back_the_same(monkeypatch):
    prepare = sys.modules["jaxpu.data.prepare"]  # the name of the module is that of its function
    wanted = DataConfig(name="gaussians", options={"n": 60})
    dataset = load(wanted)
    monkeypatch.setattr(prepare, "_PREPARED", {})
    monkeypatch.setattr(prepare, "MOST_BYTES", 30_000)
    first = prepare_one(wanted, dataset, 0)
    assert prepare_one(wanted, dataset, 0) is first
    for seed in range(1, 300):
        prepare_one(wanted, dataset, seed)
    held = [sum(np.asarray(part).nbytes for part in one.rows) for one in prepare._PREPARED.values()]
    assert 16 <= len(held) < 299
    assert sum(held) <= 30_000
    again = prepare_one(wanted, dataset, 0)
    assert again is not first
    for mine, theirs in zip(again.rows, first.rows, strict=True):
        np.testing.assert_array_equal(mine, theirs)
