"""Own data: arrays, data frames and files become the same dataset, or one line that says what is wrong."""

import csv
import gzip
import io
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as any_array

from jaxpu import data
from jaxpu.config import ConfigError, DataConfig, digest
from jaxpu.data import Dataset, files, loading
from jaxpu.data.labels import coded

X = np.array([[0.5, 1.0], [2.5, -1.0], [0.0, 3.0], [1.5, 1e-3]], np.float32)
Y = np.array([1, 0, 0, 1], np.int8)
FEATURES = any_array(
    np.float32,
    st.tuples(st.integers(2, 9), st.integers(1, 4)),
    elements=st.floats(allow_nan=False, allow_infinity=False, width=32),
)


class Column:
    """A column as pandas has it, which need not be installed."""

    def __init__(self, values: list):
        self._values = np.array(values, dtype=object if None in values or isinstance(values[0], str) else None)

    def __len__(self) -> int:
        return len(self._values)

    def to_numpy(self) -> np.ndarray:
        return self._values

    def to_list(self) -> list:
        return self._values.tolist()

    def isna(self) -> np.ndarray:
        return np.array([value is None for value in self._values])


class Frame:
    """A data frame as pandas has it."""

    def __init__(self, columns: dict[str, list]):
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> Column:
        return Column(self._columns[name])


def write_csv(path: Path, x: np.ndarray, separator: str = ",", **columns) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow([*(f"x{i}" for i in range(x.shape[1])), *columns])
        writer.writerows([*map(float, row), *labels] for row, *labels in zip(x, *columns.values(), strict=True))
    return path


def refused(error, *words: str) -> str:
    """The message, which is one short line that holds the words."""
    message = str(error.value)
    assert "\n" not in message
    assert len(message.encode()) < 2000
    for word in words:
        assert word in message, message
    return message


@given(FEATURES, st.sampled_from(files.SEPARATORS), st.data())
def test_every_way_in_gives_the_same_content(tmp_path_factory, x, separator, draw):
    folder = tmp_path_factory.mktemp("ways")
    y = np.array([0, 1, *draw.draw(st.lists(st.integers(0, 1), min_size=len(x) - 2, max_size=len(x) - 2))], np.int8)
    words = np.where(y == 1, "yes", "no").tolist()
    table = pl.DataFrame({**{f"x{i}": x[:, i] for i in range(x.shape[1])}, "y": words})
    table.write_parquet(folder / "a.parquet")
    plain = write_csv(folder / "a.csv", x, separator, y=words)
    (folder / "a.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    np.savez(folder / "a.npz", x=x.astype(np.float64), y=np.array(words))
    pandas = Frame({**{f"x{i}": x[:, i].tolist() for i in range(x.shape[1])}, "y": words})
    ways = [
        Dataset.from_arrays(x, y),
        Dataset.from_arrays(np.asfortranarray(x), y == 1),
        Dataset.from_arrays(x.tolist(), (2 * y - 1).tolist()),
        Dataset.from_arrays(table, "y", positive="yes"),
        Dataset.from_arrays(pandas, "y", positive="yes"),
        *(Dataset.from_file(folder / name, label="y", positive="yes") for name in os.listdir(folder)),
    ]
    for way in ways:
        np.testing.assert_array_equal(way.x, x)
        np.testing.assert_array_equal(way.truth, y)
        assert way.content == ways[0].content


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\r\0\x85\u2028\u2029"), min_size=1, max_size=8).map(
    str.strip
)


@given(st.lists(NAMES.filter(bool), min_size=3, max_size=5, unique=True))
def test_feature_names_are_kept(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("names") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(
            [names, *[[0, 1, 2, 3, 4][: len(names)]] * 2, [1] * len(names)]
        )
    *features, label = names
    assert Dataset.from_file(path, label=label, positive=1).feature_names == tuple(features)


def test_content_is_of_values_and_not_of_words():
    one = Dataset.from_arrays(X, Y, name="a", feature_names=["p", "q"])
    assert one.content == Dataset.from_arrays(X, Y, name="b", description="another").content
    others = [
        Dataset.from_arrays(X + 1, Y),
        Dataset.from_arrays(X, 1 - Y),
        Dataset.from_arrays(X, s=Y),
        Dataset.from_arrays(X, Y, Y),
        Dataset.from_arrays(X[:, ::-1], Y),
        Dataset.from_arrays(X.reshape(4, 2, 1), Y),
        Dataset.from_arrays(X, Y, test_rows=[0]),
        Dataset.from_arrays(X, Y, standardize=False),
    ]
    assert len({one.content, *(other.content for other in others)}) == 1 + len(others)


def test_arrays_are_neither_shared_nor_written_to():
    mine = X.copy()
    dataset = Dataset.from_arrays(mine, Y)
    before = dataset.content
    mine[0, 0] = 9
    assert dataset.x[0, 0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        dataset.x[0, 0] = 9
    with pytest.raises(ValueError, match="read-only"):
        data.load("spambase").x[0, 0] = 9
    assert dataset.content == before


@pytest.mark.parametrize(
    ("values", "one", "expected"),
    [
        ([True, False], None, [1, 0]),
        ([0, 1], None, [0, 1]),
        ([1, 2, 1], None, [0, 1, 0]),
        ([-1, 1], None, [0, 1]),
        ([0.0, 1.0], None, [0, 1]),
        (["0", " 1 "], None, [0, 1]),
        (["1.0", "0"], None, [1, 0]),
        (["True", "false", "TRUE"], None, [1, 0, 1]),
        (["yes", "no "], "yes", [1, 0]),
        (["yes", "no"], True, [1, 0]),  # as YAML reads yes
        (["y", "n"], False, [0, 1]),
        ([0, 1], True, [0, 1]),
        ([0, 1], "0", [1, 0]),
        ([3, 7], 3.0, [1, 0]),
        ([255, 0], 255, [1, 0]),
        ([np.int8(1), np.float64(0)], None, [1, 0]),
    ],
)
def test_two_values_however_they_are_coded(values, one, expected):
    assert coded(values, one=one).tolist() == expected


@pytest.mark.parametrize(
    ("values", "one", "expected"),
    [
        (["labeled", "unlabeled"], None, [1, 0]),
        (["labelled ", " Unlabelled"], None, [1, 0]),
        (["P", "U", "P"], None, [1, 0, 1]),
        ([1, None, float("nan")], None, [1, 0, 0]),
        (["spam", "", " "], None, [1, 0, 0]),
        ([1, 0], None, [1, 0]),
        ([-1, 1], None, [0, 1]),
        (["a", "b"], "b", [0, 1]),
    ],
)
def test_labelled_or_unlabelled_however_it_is_coded(values, one, expected):
    assert coded(values, one=one, blank=True).tolist() == expected


@pytest.mark.parametrize(
    ("values", "options", "said"),
    [
        ([0, 1, 2, 2], {}, ["3 values", "2 (2 rows)", "0 (1 row)"]),
        (["a", "b", None], {"blank": True}, ["3 values", "blank (1 row)"]),
        (["yes", "Yes", "no"], {"one": "yes"}, ["3 values", "'Yes' (1 row)"]),
        (range(100), {}, ["100 values", "..."]),
        ([1, 1], {}, ["1 value,", "one is not enough"]),
        (["yes", "no"], {}, ["'yes' (1 row), 'no' (1 row)", "which of them means positive (positive: ...)"]),
        ([3, 7], {}, ["which of them means positive"]),
        (["a", "b"], {"blank": True, "meaning": "labeled"}, ["which of them means labeled (labeled: ...)"]),
        (["yes", "no"], {"one": "ja"}, ["holds no 'ja'", "'yes' (1 row)"]),
        ([0, 1, None], {}, ["empty in 1 row, first in row 2"]),
        ([0, "", 1], {"first_row": 1}, ["empty in 1 row, first in row 2 (the first is 1)"]),
        (["a" * 5000, "b"], {}, ["aaa..."]),
    ],
)
def test_labels_that_cannot_be_told_apart(values, options, said):
    with pytest.raises(ValueError) as error:
        coded(values, **options)
    refused(error, *said)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("nan", "is empty or NaN in row 2"),
        ("", "is empty or NaN in row 2"),
        ("NA", "is empty or NaN in row 2"),
        ("-inf", "is -inf in row 2"),
        ("1e300", "too large for 32 bits, in row 2"),
        ("red", "must hold numbers, got 'red' in row 2"),
        ("0,5", "got '0,5' in row 2 (write decimals with a point)"),
        ("2024-01-31", "got '2024-01-31' in row 2"),
    ],
)
def test_a_feature_that_is_no_finite_number_is_named(cell, said, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"age;label\n1.5;0\n{cell};1\n2;1\n")
    with pytest.raises(ValueError) as error:
        Dataset.from_file(path, label="label")
    refused(error, str(path), "feature 'age'", said)


def test_a_value_that_is_no_number_is_named_in_arrays_and_frames():
    nan = X.copy()
    nan[2, 1] = np.nan
    frame = pl.DataFrame({"a": ["x", "y"], "b": [1, 2]})
    for x, said in [
        (nan, ["feature 1 is empty or NaN in row 2 (the first is 0)"]),
        (np.full((3, 2, 2), np.inf), ["value (0, 0) is inf in row 0", "3 rows"]),
        (frame, ["feature 'a' must hold numbers, got 'x' in row 0"]),
        (Frame({"a": [1.0, None]}), ["feature 'a' is empty or NaN in row 1"]),
        (pl.DataFrame({"a": [[1], [2]]}), ["feature 'a' must hold numbers, got List"]),
        ([["a"], ["b"]], ["expected x as numbers"]),
        (X[:, 0], ["shape (n, d)", "(4,)"]),
        (np.zeros((4, 0)), ["(4, 0)"]),
        (X.astype(complex), ["complex"]),
    ]:
        with pytest.raises(ValueError) as error:
            Dataset.from_arrays(x, [0, 1, 1, 0][: len(x) if not isinstance(x, Frame) else 2])
        refused(error, *said)
    with pytest.raises(ValueError, match=r"4 rows of x and 3 in y"):
        Dataset.from_arrays(X, Y[:3])
    with pytest.raises(ValueError, match=r"y of shape \(n,\), got \(4, 1\)"):
        Dataset.from_arrays(X, Y[:, None])
    with pytest.raises(ValueError, match="y, observed labels s, or both"):
        Dataset.from_arrays(X)
    with pytest.raises(ValueError, match="1 labeled rows are negative by their true label, first row 1"):
        Dataset.from_arrays(X, Y, [1, 1, 0, 0])


def test_files_as_other_programs_write_them(tmp_path):
    expected = Dataset.from_arrays(X, Y).content
    rows = "\n".join(",".join(map(repr, [*map(float, x), int(y)])) for x, y in zip(X, Y, strict=True))
    text = f"a,b,y\n{rows}\n"
    written = {
        "bom.csv": b"\xef\xbb\xbf" + text.encode(),
        "crlf.csv": text.replace("\n", "\r\n").encode(),
        "cr.csv": text.replace("\n", "\r").encode(),
        "end.csv": (text + "\n\n").encode(),
        "short.CSV": text.strip().encode(),
        "wide.csv": text.encode("utf-16"),
        "tabs.tsv": text.replace(",", "\t").encode(),
        "bars.txt": text.replace(",", " | ").encode(),
        "quoted.csv": text.replace("a,b,y", '"a","b, or ""c""",y').encode(),
        "gz.csv.gz": gzip.compress(text.encode()),
    }
    for name, raw in written.items():
        (tmp_path / name).write_bytes(raw)
        assert Dataset.from_file(tmp_path / name, label="y").content == expected, name
    assert Dataset.from_file(tmp_path / "quoted.csv", label="y").feature_names == ("a", 'b, or "c"')
    assert Dataset.from_file(tmp_path / "gz.csv.gz", label="y").name == "gz"


def test_a_path_is_no_pattern_and_a_tilde_is_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("s1.csv", "s[1].csv", "s*.csv", "s?.csv", "~s.csv", "a b.csv"):
        write_csv(tmp_path / name, X + ord(name[1]), y=Y)
    for name in ("s[1].csv", "s*.csv", "s?.csv", "~s.csv", "a b.csv"):
        for path in (tmp_path / name, f"~/{name}", str(tmp_path / name)):
            assert Dataset.from_file(path, label="y").x[0, 0] == 0.5 + ord(name[1])
            assert data.load(DataConfig(file=str(path), label="y")).x[0, 0] == 0.5 + ord(name[1])
    (tmp_path / "s[1].csv").unlink()
    with pytest.raises(ValueError, match=r"no file at .*s\[1\]\.csv"):
        Dataset.from_file(tmp_path / "s[1].csv", label="y")


BAD = {
    "none.csv": (None, "no file at"),
    "folder.csv": ("folder", "is a folder"),
    "a.xlsx": (b"a", "expected a file that ends in .csv"),
    "empty.csv": (b"", "is not a CSV: empty"),
    "header.csv": (b"a,y\n", "holds no row"),
    "twice.csv": (b"a,a,y\n1,2,0\n", "has the column 'a' twice"),
    "index.csv": (b",a,y\n0,1,0\n1,1,1\n", "column 1 of 3 has no name"),
    "ragged.csv": (b"a,y\n1,0\n1,2,3\n", "row 2 has 3 cells where the header has 2"),
    "latin.csv": ("ä,y\n1,0\n".encode("latin-1"), "byte 0 is not UTF-8; save it as UTF-8"),
    "only.csv": (b"y\n0\n1\n", "no column is left as a feature"),
    "other.csv": (b"a,label\n0,1\n1,1\n", "there is no column 'y'; there are a, label"),
    "torn.csv.gz": (gzip.compress(b"a,y\n1,0\n" * 99)[:-9], "is damaged"),
    "text.npz": (b"a,y\n1,0\n", "is not an npz"),
    "text.parquet": (b"a,y\n1,0\n", "is not a Parquet file"),
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_cannot_be_used(name, tmp_path):
    raw, said = BAD[name]
    path = tmp_path / name
    if raw == "folder":
        path.mkdir()
    elif raw is not None:
        path.write_bytes(raw)
    with pytest.raises(ValueError) as error:
        Dataset.from_file(path, label="y")
    refused(error, str(path), said)
    with pytest.raises(ConfigError) as error:
        data.load(DataConfig(file=str(path), label="y"))
    refused(error, "data.file: ", said)


def test_only_what_is_wanted_of_an_npz_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name, array in {"x": X, "y": Y, "huge": np.zeros(3), "pickled": np.array([{}])}.items():
            held = io.BytesIO()
            np.save(held, array, allow_pickle=True)
            raw = held.getvalue()
            archive.writestr(f"{name}.npy", raw if name != "huge" else raw.replace(b"(3,)", b"(300000000000,)"))
    assert Dataset.from_file(tmp_path / "a.npz", label="y").content == Dataset.from_arrays(X, Y).content
    for name in ("huge", "pickled"):
        with pytest.raises(ValueError) as error:
            Dataset.from_file(tmp_path / "a.npz", label=name)
        refused(error, "is not an npz of plain arrays")
    with pytest.raises(ValueError, match="has no array 'z'; it has x, y, huge, pickled"):
        Dataset.from_file(tmp_path / "a.npz", label="z")


def samples(folder: Path) -> list[Path]:
    table = pl.DataFrame({"a": [0.5, 1.5, -1.0, 2.0] * 9, "b": [1, 2, 3, 4] * 9, "y": ["no", "yes", "no", "no"] * 9})
    table.write_csv(folder / "a.csv")
    table.write_parquet(folder / "a.parquet")
    np.savez_compressed(folder / "a.npz", x=table.select("a", "b").to_numpy(), y=table["y"].to_numpy().astype(str))
    (folder / "a.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    return sorted(folder.iterdir())


@given(
    st.integers(0, 3),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
    st.floats(0, 1),
    st.booleans(),
)
def test_a_damaged_file_is_one_line(tmp_path_factory, which, changes, end, torn):
    folder = tmp_path_factory.mktemp("fuzz")
    path = samples(folder)[which]
    raw = bytearray(path.read_bytes())
    for place, byte in changes:
        raw[int(place * (len(raw) - 1))] = byte
    path.write_bytes(raw[: int(end * len(raw))] if torn else raw)
    try:
        dataset = Dataset.from_file(path, label="y", positive="yes")
    except ValueError as error:
        message = str(error)
    else:
        message = "none at all" if np.isfinite(dataset.x).all() else ""
    assert re.fullmatch(r"[^\n]{10,1900}", message)


def test_a_replaced_file_gives_new_numbers_in_the_same_process(tmp_path):
    path = tmp_path / "mine.csv"
    config = DataConfig(file=str(path), label="y", test=0.25, validation=(0.3,), c=1.0, scenario="case_control")
    seen = []
    for shift in range(3):
        write_csv(path, np.tile(X, (9, 1)) + shift, y=np.tile(Y, 9))
        dataset = data.load(config)
        prepared = data.prepare(config, dataset, 0)
        seen.append((digest(*data.identity(config, dataset)), dataset.x[0, 0], prepared.rows.mean[0]))
    assert len(set(seen)) == 3
    assert [x for _, x, _ in seen] == [0.5, 1.5, 2.5]
    # an old file is read once, and again when it is another one, though its time and its size are the same
    stamps = []
    for shift in (0, 0, 5):
        if shift or not stamps:
            write_csv(tmp_path / "new.csv", np.tile(X, (9, 1)) + shift, y=np.tile(Y, 9))
            os.utime(tmp_path / "new.csv", (1e9, 1e9))
            (tmp_path / "new.csv").replace(path)
        stamps.append(loading._stamp(path))
        assert data.load(config).x[0, 0] == 0.5 + shift


def test_identity_is_content_and_not_where_it_came_from(tmp_path):
    one = DataConfig(file=str(write_csv(tmp_path / "a.csv", X, y=Y)), label="y")
    other = DataConfig(file=str(write_csv(tmp_path / "b.csv", X, ";", truth=1 + Y)), label="truth", positive=2)
    named = DataConfig(name="gaussians")
    identities = [digest(*data.identity(c, data.load(c))) for c in (one, other, named)]
    assert identities[0] == identities[1] != identities[2]
    changed = DataConfig(file=one.file, label="y", c=0.5)
    assert digest(*data.identity(changed, data.load(changed))) != identities[0]


def test_a_registered_dataset_that_is_replaced_gives_new_numbers(monkeypatch):
    config = DataConfig(name="gaussians", options={"n": 100})
    before = data.prepare(config, data.load(config), 0).rows
    drawn = loading.DATASETS["gaussians"]
    monkeypatch.setitem(loading.DATASETS, "gaussians", lambda *, n: drawn(n=n, seed=7))
    after = data.prepare(config, data.load(config), 0).rows
    assert not np.array_equal(before.train, after.train)


def test_images_in_a_folder_that_are_replaced_give_new_numbers(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXPU_DATA_DIR", str(tmp_path))
    found = []
    for value in (0, 255):
        grey, digits = np.full((20, 4, 4), value, np.uint8), np.arange(20) % 10
        np.savez(tmp_path / "mnist.npz", x_train=grey, y_train=digits, x_test=grey[:5], y_test=digits[:5])
        found.append(data.load("mnist").features()[0, 0, 0])
    assert found == [-1.0, 1.0]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"file": "a.csv"}, "file needs label"),
        ({"label": "y"}, "label names a column or value of data.file"),
        ({"file": "a.csv", "label": "y", "labeled": 1}, "that observed names"),
        ({"file": "a.csv", "observed": "s", "positive": 1, "prior": 0.3}, "that label names"),
        ({"file": "a.csv", "observed": "s"}, "expected a number, the share of positives"),
        ({"file": "a.csv", "label": "y", "options": {"n": 3}}, "options are arguments of a registered dataset"),
        ({"file": "a.csv", "observed": "s", "prior": 0.3, "c": 0.5}, "observed says so already"),
        ({"file": "a.csv", "observed": "s", "prior": 0.3, "mechanism": "sar_pusb"}, "observed says so already"),
    ],
)
def test_settings_that_have_no_effect_or_lack_another(settings, said):
    with pytest.raises(ValueError, match=said):
        DataConfig(**settings)


def test_a_file_gives_the_dataset_its_name_and_no_test_set_without_truth():
    known = DataConfig(file="~/data/my.tar.csv.gz", label="y")
    assert (known.name, known.test, known.truth) == ("my.tar", 0.2, True)
    unknown = DataConfig(file="my.csv", observed="s", prior=0.3, name="hers")
    assert (unknown.name, unknown.test, unknown.truth) == ("hers", 0.0, False)
    assert DataConfig(file="my.csv", observed="s", prior=0.3, test=0.1).test == 0.1
    with pytest.raises(ConfigError, match=r"data\.test: 0 leaves no row to measure on"):
        data.prepare(DataConfig(name="gaussians", test=0), data.load("gaussians"), 0)
