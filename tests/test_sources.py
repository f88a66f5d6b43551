"""Where sets come from: the folder, the cache, the source; what is damaged or partial is named and not used."""

import gzip
import hashlib
import io
import json
import sys
import tarfile
import types
import urllib.error
import urllib.request
from importlib import resources

import numpy as np
import polars as pl
import pytest
import sklearn.datasets
from PIL import Image
from sklearn.datasets import _openml

from jaxpu import cli
from jaxpu.data import DATASETS, FETCHED, SOURCES, archives, fetching, load, loading, sources

SHIPPED = resources.files("jaxpu.data").joinpath("mushrooms.npz")

TEXT = {"classes": np.array(["neg", "pos"])} | {
    f"{name}_{part}": array
    for part, n in (("train", 6), ("test", 4))
    for name, array in (("x", np.eye(n, 8, dtype=np.float16)), ("y", (np.arange(n) % 2).astype(np.int8)))
}


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """An empty folder of ready files, an empty cache, and no network."""
    monkeypatch.setenv("JAXPU_DATA_DIR", str(tmp_path / "ready"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def offline(request, *_, **__):
        raise urllib.error.URLError(f"no route to host for {request.full_url}")

    monkeypatch.setattr(_openml, "urlopen", offline)
    monkeypatch.setattr(archives.urllib.request, "urlopen", lambda url, timeout: offline(urllib.request.Request(url)))
    monkeypatch.setattr(_openml.time, "sleep", lambda seconds: None)
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    monkeypatch.setattr(loading, "_LOADED", {})
    return tmp_path


def of_size(monkeypatch, name, arrays):
    """The published set is the one given."""
    counts = {part: tuple(np.bincount(y).tolist()) for part, _, y in sources.parts(arrays)}
    monkeypatch.setitem(SOURCES, name, SOURCES[name]._replace(counts=counts, values={}))


def test_every_fetched_set_has_a_source_and_a_way():
    assert set(FETCHED) <= set(SOURCES) <= set(DATASETS)
    assert fetching.FETCH.keys() == SOURCES.keys() - {"alzheimer_mri"}


def test_the_ready_folder_is_looked_at_before_the_cache(nowhere):
    sources.write("imdb", TEXT, sources.cache())
    assert sources.found("imdb") == nowhere / "cache" / "jaxpu" / "data" / "imdb.npz"
    sources.write("imdb", TEXT, nowhere / "ready")
    assert sources.found("imdb") == nowhere / "ready" / "imdb.npz"
    for name, array in sources.read(sources.found("imdb")).items():
        np.testing.assert_array_equal(array, TEXT[name])
    data = load("imdb")
    assert (data.x.shape, data.x.dtype) == ((10, 8), np.float32)
    assert data.y.tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    assert data.test_rows.tolist() == [6, 7, 8, 9]
    assert data.classes is None


def test_posts_are_positive_by_the_first_part_of_their_group(nowhere):
    groups = np.array(["alt.atheism", "comp.graphics", "misc.forsale", "rec.autos", "sci.med", "soc.x", "talk.y"])
    sources.write("newsgroups20", TEXT | {"classes": groups, "y_train": np.arange(1, 7)}, nowhere / "ready")
    data = load("newsgroups20")
    assert data.classes.tolist() == [1, 2, 3, 4, 5, 6, 0, 1, 0, 1]
    assert data.y.tolist() == [1, 1, 1, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("at", [40, 300, -30, -200])
def test_no_flipped_bit_is_accepted(nowhere, at):
    file = sources.write("imdb", TEXT, nowhere / "ready")
    whole = bytearray(file.read_bytes())
    whole[at] ^= 4
    file.write_bytes(whole)
    with pytest.raises(ValueError, match=r"ready/imdb\.npz cannot be read .*remove or replace it, it is not used"):
        load("imdb")


def test_a_partial_file_and_arrays_that_do_not_fit_are_named(nowhere):
    file = sources.write("imdb", TEXT, nowhere / "ready")
    file.write_bytes(file.read_bytes()[:-100])
    file.with_name("imdb.npz.sha256").unlink()
    with pytest.raises(ValueError, match=r"imdb\.npz cannot be read"):
        load("imdb")
    odd = {
        "6 rows and y_train the shape": {"y_train": np.zeros(5, np.int8)},
        "expected arrays x_test": {"x_test": None},
        "class numbers below 2, got 0 to 3": {"y_test": np.arange(4)},
        "not finite": {"x_train": np.full((6, 8), np.nan, np.float16)},
    }
    for message, changed in odd.items():
        np.savez(file, **{name: array for name, array in (TEXT | changed).items() if array is not None})
        with pytest.raises(ValueError, match=message):
            sources.read(file)


def test_without_file_and_network_the_error_says_what_from_where_how_large_and_where_to(nowhere):
    for name, origin in (("connect4", r"OpenML \(data 40668\) \(about 3 MB\)"), ("cifar10", r"TensorFlow .*170 MB")):
        with (
            pytest.raises(ValueError, match=rf"{name} could not be had from {origin}.*With a network: .*jaxpu data f"),
            pytest.warns(UserWarning, match="network error") if name == "connect4" else pytest.MonkeyPatch.context(),
        ):
            load(name)
    with pytest.raises(
        ValueError,
        match=rf'pip install "jaxpu\[text\]".*{nowhere}/cache/jaxpu/data; or put imdb.npz into a folder and '
        rf"set JAXPU_DATA_DIR to it \(now {nowhere}/ready, which is no folder\)",
    ):
        load("imdb")
    with pytest.raises(ValueError, match=r"by hand \(about 30 MB\).*data fetch alzheimer_mri --source PATH"):
        load("alzheimer_mri")


def openml(monkeypatch, number, attributes, rows):
    """What OpenML answers for one table, as its interface does: description, features, qualities, an ARFF file."""
    columns = [f"@ATTRIBUTE {name} {kind}" for name, kind in attributes]
    arff = "\n".join(["@RELATION r", *columns, "@DATA", *rows, ""]).encode()
    about = {
        "id": number, "name": "r", "description": "", "version": "1", "status": "active", "format": "ARFF",
        "file_id": "7", "url": "https://www.openml.org/data/v1/download/7/r.arff",
        "default_target_attribute": attributes[-1][0], "md5_checksum": hashlib.md5(arff).hexdigest(),
    }  # fmt: skip
    features = [
        {
            "index": str(i), "name": name, "data_type": "numeric" if kind == "REAL" else "nominal",
            "is_target": str(i == len(attributes) - 1).lower(), "is_ignore": "false", "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for i, (name, kind) in enumerate(attributes)
    ]  # fmt: skip
    answers = {
        f"data/{number}": {"data_set_description": about},
        "features": {"data_features": {"feature": features}},
        "qualities": {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": str(len(rows))}]}},
    }

    def urlopen(request, *_, **__):
        url = request.full_url
        key = next((key for key in answers if key in url.removeprefix("https://")), None)
        body = arff if "download" in url else json.dumps(answers["features" if "/features/" in url else key]).encode()
        answer = io.BytesIO(gzip.compress(body))
        answer.info = lambda: {"Content-Encoding": "gzip"}
        return answer

    monkeypatch.setattr(_openml, "urlopen", urlopen)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(sources.cache()))


@pytest.mark.parametrize("words", [("b", "o", "x"), ("0", "1", "2")])
def test_connect_four_from_openml(nowhere, monkeypatch, words):
    rng = np.random.default_rng(0)
    pieces = np.stack([rng.permutation([1] * 4 + [-1] * 4 + [0] * 34) for _ in range(60)])
    results = ["2"] * 40 + ["1"] * 15 + ["0"] * 5
    of = {0: words[0], -1: words[1], 1: words[2]}
    kind = "{" + ",".join(words) + "}"
    attributes = [(f"{column}{row}", kind) for column in "abcdefg" for row in range(1, 7)] + [("class", "{0,1,2}")]
    openml(
        monkeypatch, 40668, attributes, [",".join([*map(of.get, p), r]) for p, r in zip(pieces, results, strict=True)]
    )
    of_size(monkeypatch, "connect4", {"X": pieces, "y": np.repeat([0, 1, 2], [40, 15, 5])})
    data = load("connect4")
    held = sources.read(sources.found("connect4"))
    np.testing.assert_array_equal(held["X"], pieces)
    assert held["classes"][held["y"]].tolist() == ["win"] * 40 + ["loss"] * 15 + ["draw"] * 5
    assert data.x.shape == (60, 126)
    assert (data.x.sum(axis=1) == 42).all()
    assert data.y.sum() == 40
    assert data.feature_names[:3] == ("a1=o", "a1=blank", "a1=x")
    some = load("connect4", rows=10)
    assert all((data.x == row).all(axis=1).any() for row in some.x)


def test_mushrooms_from_openml_are_those_shipped(nowhere, monkeypatch):
    with np.load(SHIPPED) as shipped:
        x, y, names = shipped["x"], shipped["y"], shipped["feature_names"].tolist()
    rows, letters = slice(0, 8124, 40), [sorted({chr(v) for v in column} - {"?"}) for column in x.T]
    attributes = [(n, "{" + ",".join(f"'{v}'" for v in of) + "}") for n, of in zip(names, letters, strict=True)]
    cells = [
        [*(v if v == "?" else f"'{v}'" for v in map(chr, row)), f"'{'ep'[k]}'"] for row, k in zip(x, y, strict=True)
    ]
    openml(monkeypatch, 24, [*attributes, ("class", "{'e','p'}")], [",".join(row) for row in cells[rows]])
    got = fetching.from_openml("mushrooms")
    np.testing.assert_array_equal(got["X"], x[rows])
    np.testing.assert_array_equal(got["y"], y[rows])
    assert sources.other_rows("mushrooms", got) == ["all: 204 rows where 8,124 are published"]


def images(n_train=20, n_test=10):
    x = np.random.default_rng(0).integers(0, 256, (n_train + n_test, 28, 28), dtype=np.uint8)
    y = (np.arange(n_train + n_test) % 10).astype(np.uint8)
    return {"x_train": x[:n_train], "y_train": y[:n_train], "x_test": x[n_train:], "y_test": y[n_train:]}


def data_source(arrays, **others):
    """What ``tensorflow_datasets.data_source`` gives, of arrays or of what stands for them."""

    def rows(name, download=True):
        assert not download, "TensorFlow, which unpacks, is not here"
        held = others.get(name, arrays)
        kind = "text" if name == "imdb_reviews" else "image"
        return {
            part: [{kind: x, "label": int(y)} for x, y in zip(held[f"x_{part}"], held[f"y_{part}"], strict=True)]
            for part in ("train", "test")
        }

    return types.SimpleNamespace(data_source=rows)


def test_images_from_tensorflow_datasets_are_kept_and_not_fetched_again(nowhere, monkeypatch):
    arrays = images()
    of_size(monkeypatch, "mnist", arrays)
    with_channel = {name: array[..., None] if name.startswith("x") else array for name, array in arrays.items()}
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", data_source(with_channel))
    data = load("mnist")
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    np.testing.assert_array_equal(load("mnist").x, data.x)
    np.testing.assert_allclose(data.features()[20], arrays["x_test"][0] / 127.5 - 1, atol=1e-6)
    file = sources.found("mnist")
    assert file.with_name("mnist.npz.sha256").read_text().split()[0] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_what_is_not_the_published_set_is_not_kept(nowhere, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", data_source(images()))
    with pytest.raises(
        ValueError, match=r"mnist from .*not the published set \(train: 20 rows where 60,000 .*not kept"
    ):
        load("mnist")
    assert sources.found("mnist") is None


def test_openml_has_grey_images_where_tensorflow_datasets_is_not_installed(nowhere, monkeypatch):
    arrays = images(20, 10_000)
    of_size(monkeypatch, "mnist", arrays)

    def fetch(**options):
        assert options["data_id"] == 554
        x = np.concatenate([arrays["x_train"], arrays["x_test"]]).reshape(-1, 784).astype(float)
        y = np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(str)
        return types.SimpleNamespace(data=x, target=y, feature_names=[])

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    got = fetching.arrays_of("mnist")
    for name, array in arrays.items():
        np.testing.assert_array_equal(got[name], array)


class Encoder:
    """Stands for ``SentenceTransformer``: a text's length and first letters, of unit length."""

    def __init__(self, name):
        assert name == "sentence-transformers/all-MiniLM-L6-v2"

    def encode(self, texts, *, batch_size, normalize_embeddings):
        assert normalize_embeddings
        x = np.array([[len(text), *map(ord, text[:3])] for text in texts], np.float32)
        return x / np.linalg.norm(x, axis=1, keepdims=True)


def archived(monkeypatch, name, files):
    """The archive of a set's authors holds these files, by name."""
    with io.BytesIO() as stream:
        with tarfile.open(fileobj=stream, mode="w:gz") as tar:
            for path, raw in files.items():
                (info := tarfile.TarInfo(path)).size = len(raw)
                tar.addfile(info, io.BytesIO(raw))
        packed = stream.getvalue()
    monkeypatch.setattr(archives, name, getattr(archives, name)._replace(sha256=hashlib.sha256(packed).hexdigest()))
    sent = {getattr(archives, name).url: packed}
    monkeypatch.setattr(archives.urllib.request, "urlopen", lambda url, timeout: io.BytesIO(sent[url]))
    return sent


def test_photographs_come_from_their_authors_without_tensorflow(nowhere, monkeypatch):
    rng = np.random.default_rng(0)
    colours, labels = rng.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8), np.arange(12, dtype=np.uint8) % 10
    rows = [bytes([label]) + image.tobytes() for label, image in zip(labels, colours, strict=True)]
    batches = {"test_batch": rows[10:], **{f"data_batch_{i}": rows[2 * i - 2 : 2 * i] for i in (5, 1, 2, 3, 4)}}
    files = {f"cifar-10-batches-bin/{name}.bin": b"".join(of) for name, of in batches.items()}
    sent = archived(monkeypatch, "CIFAR10", files | {"cifar-10-batches-bin/readme.html": b"x"})
    got = fetching.from_tfds("cifar10")
    np.testing.assert_array_equal(np.concatenate([got["x_train"], got["x_test"]]), np.moveaxis(colours, 1, -1))
    assert [*got["y_train"], *got["y_test"]] == labels.tolist()
    for url, whole in sent.items():
        sent[url] = whole[:-7]
    with pytest.raises(ValueError, match=r"cifar10 could not be had .*cifar-10-binary.tar.gz gave .* not all of it"):
        fetching.fetch("cifar10")


def test_reviews_come_from_their_authors_without_tensorflow(nowhere, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=Encoder))
    names = ("train/pos/1_9", "train/neg/0_2", "train/unsup/7_0", "test/neg/3_1", "test/pos/2_8")
    files = {f"aclImdb/{name}.txt": name.encode() for name in names} | {"aclImdb/train/urls_pos.txt": b"x"}
    archived(monkeypatch, "IMDB", files)
    got = fetching.from_reviews("imdb")
    assert [*got["y_train"], *got["y_test"]] == [0, 1, 0, 1]
    assert got["x_train"].shape == got["x_test"].shape == (2, 4)
    assert archives.reviews()["train"] == [("train/neg/0_2", 0), ("train/pos/1_9", 1)]


def test_texts_are_embedded_once(nowhere, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=Encoder))
    reviews = {"x_train": [b"good", b"awful"], "y_train": [1, 0], "x_test": [b"so so", b"fine"], "y_test": [0, 1]}
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", data_source({}, imdb_reviews=reviews))
    of_size(monkeypatch, "imdb", TEXT | {f"y_{p}": np.array([0, 1]) for p in ("train", "test")} | {
        f"x_{p}": np.zeros((2, 4)) for p in ("train", "test")})  # fmt: skip
    first = load("imdb")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    np.testing.assert_array_equal(load("imdb").x, first.x)
    assert first.y.tolist() == [1, 0, 0, 1]
    np.testing.assert_allclose(np.linalg.norm(first.x, axis=1), 1, atol=1e-3)
    assert first.x[0, 0] == pytest.approx(4 / np.linalg.norm([4, *b"goo"]), abs=1e-4)


def test_posts_come_by_scikit_learn(nowhere, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=Encoder))

    def posts(*, subset, shuffle):
        assert not shuffle
        n = {"train": 4, "test": 2}[subset]
        return types.SimpleNamespace(data=["post"] * n, target=np.arange(n) % 2, target_names=["alt.a", "sci.b"])

    monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", posts)
    got = fetching.from_newsgroups("newsgroups20")
    assert {name: array.shape for name, array in got.items()} == {
        "x_train": (4, 4), "y_train": (4,), "x_test": (2, 4), "y_test": (2,), "classes": (2,)
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["folders", "parquet"])
def test_slices_of_brains_come_from_class_folders_or_parquet(nowhere, monkeypatch, kind):
    rng, rows = np.random.default_rng(0), []
    for i in range(8):
        with io.BytesIO() as file:
            Image.fromarray(rng.integers(0, 256, (16, 16), dtype=np.uint8)).save(file, "PNG")
            rows.append((i % 4, file.getvalue()))
    source = nowhere / "mri"
    if kind == "parquet":
        source.mkdir()
        table = pl.DataFrame(
            {"image": [{"bytes": data, "path": ""} for _, data in rows], "label": [k for k, _ in rows]}
        )
        table[:5].write_parquet(source / "test-0.parquet")
        table[5:].write_parquet(source / "train-0.parquet")
    else:
        for i, (label, data) in enumerate(rows):
            spelt = ["Mild_Demented", "Moderate_Demented", "Non_Demented", "Very_Mild_Demented"][label]
            (source / spelt).mkdir(parents=True, exist_ok=True)
            (source / spelt / f"{i}.png").write_bytes(data)
    monkeypatch.setitem(SOURCES, "alzheimer_mri", SOURCES["alzheimer_mri"]._replace(counts={"": (2, 2, 2, 2)}))
    file = fetching.fetch("alzheimer_mri", source=source)
    held = sources.read(file)
    by_pixels = {held["x"][i].tobytes(): str(held["classes"][held["y"][i]]) for i in range(8)}
    for label, data in rows:
        assert by_pixels[np.asarray(Image.open(io.BytesIO(data))).tobytes()] == fetching.MRI[label]
    assert load("alzheimer_mri", size=8).y.sum() == 2


def test_folders_of_other_classes_are_named(nowhere):
    (nowhere / "mri" / "Cats").mkdir(parents=True)
    (nowhere / "mri" / "Cats" / "1.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"a folder of pictures for each of MildDemented, .*; got Cats"):
        fetching.fetch("alzheimer_mri", source=nowhere / "mri")
    with pytest.raises(ValueError, match="a source is named for alzheimer_mri only"):
        fetching.fetch("imdb", source=nowhere)


def command(*words):
    with pytest.raises(SystemExit) as end:
        cli.main(["data", *words])
    return end.value.code


def test_the_command_lists_checks_and_fetches(nowhere, monkeypatch, capsys):
    sources.write("imdb", TEXT, nowhere / "ready")
    assert command("list") == 0
    listed = capsys.readouterr().out
    assert f"imdb: {nowhere}/ready/imdb.npz (source: TensorFlow" in listed
    assert "cifar10: not here" in listed
    assert "mushrooms: ships with jaxpu" in listed
    assert command("check") == 0
    checked = capsys.readouterr().out
    assert "train: 6 rows where 25,000 are published" in checked
    for name in sources.SHIPPED:
        assert f"{name}.npz: the published values" in checked
    assert command("fetch", "imdb", "spambase") == 0
    assert capsys.readouterr().out.count("already here, whole") == 2
    of_size(monkeypatch, "imdb", TEXT)
    assert command("check", "imdb") == 0
    assert "the published rows and labels" in capsys.readouterr().out
    (nowhere / "ready" / "imdb.npz").write_bytes(b"PK")
    assert command("check", "imdb") == 1
    assert "imdb: DAMAGED" in capsys.readouterr().out
    assert command("fetch", "imdb") == 2
    assert f"{nowhere}/ready/imdb.npz cannot be read" in capsys.readouterr().err
    (nowhere / "ready" / "imdb.npz").unlink()
    sources.write("imdb", TEXT, sources.cache()).write_bytes(b"PK")
    assert command("fetch", "imdb") == 2
    assert "could not be had from" in capsys.readouterr().err, "what is damaged in the cache is fetched again"
    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=Encoder))
    reviews = TEXT | {name: ["review"] * len(TEXT[name]) for name in ("x_train", "x_test")}
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", data_source(reviews))
    assert command("fetch", "imdb") == 0
    assert command("check", "imdb") == 0
    for words, said in ((("fetch",), "name the sets to fetch"), (("list", "imbd"), "did you mean 'imdb'")):
        assert command(*words) == 2
        assert said in capsys.readouterr().err


def test_the_command_fetches_into_a_folder(nowhere, monkeypatch, capsys):
    arrays = images()
    of_size(monkeypatch, "fashion_mnist", arrays)
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", data_source(arrays))
    assert command("fetch", "fashion_mnist", "--out", str(nowhere / "mine")) == 0
    assert sources.read(nowhere / "mine" / "fashion_mnist.npz").keys() == arrays.keys()
    assert sources.found("fashion_mnist") is None


def test_what_is_known_of_the_published_values(data_dir, monkeypatch):
    monkeypatch.setenv("JAXPU_DATA_DIR", str(data_dir))
    for name in ("spambase", "mushrooms", "connect4", "newsgroups20"):
        arrays = sources.read(data_dir / f"{name}.npz")
        assert not sources.other_rows(name, arrays) + sources.other_values(name, arrays)
        arrays |= {"X": arrays["X"][::-1]} if "X" in arrays else {}
        assert bool(sources.other_values(name, arrays)) == (name != "newsgroups20")
