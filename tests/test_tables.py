"""Tables of somebody's own: what columns are taken for, later rows, and classifiers that take gaps and categories."""

import datetime
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxpu import prior
from jaxpu.tables import columns_of, of_columns, read, signs
from jaxpu.tables.auto import fit_auto
from jaxpu.tables.candidates import WeightedClassifier, candidates
from jaxpu.tables.columns import MOST_CATEGORIES, encode, learn
from jaxpu.tables.dense import dense

DAY = datetime.date(2024, 1, 31)
DAYS = (DAY - datetime.date(1970, 1, 1)).days
KINDS = {
    "number": (["1", "2.5", "-1e3"], "number", [1, 2.5, -1000]),
    "a few words": (["1", "?", *["2"] * 18], "number", [1, np.nan]),
    "decimal commas": (["1,5", "2,25", "1.003,5"], "number", [1.5, 2.25, 1003.5]),
    "infinite": (["1", "inf", *["2"] * 18], "number", [1, np.nan]),
    "truth": (["True", "false", None], "boolean", [1, 0, np.nan]),
    "ISO": (["2024-01-31", "NA"], "date", [DAYS, np.nan]),
    "German": (["31.01.2024", "01.02.2024"], "date", [DAYS, DAYS + 1]),
    "American": (["01/31/2024", "02/01/2024"], "date", [DAYS, DAYS + 1]),
    "with time": (["2024-01-31 12:00", "2024-01-31 00:00"], "date", [DAYS + 0.5, DAYS]),
    "dates": ([DAY, None], "date", [DAYS, np.nan]),
    "words": (["b", "a ", "b", "n/a", None], "category", [0, 1, 0, np.nan, np.nan]),
    "one": (["a", "a"], "constant", None),
    "one and gaps": (["a", "a", None], "category", [0, 0, np.nan]),
    "none": ([None, "NA", "nan"], "empty", None),
    "infinities": ([float("inf"), float("nan")], "empty", None),
    "names": (["p1", "p2", "p3"], "text", None),
    "lists": ([[1], [2]], "other", None),
}


@pytest.mark.parametrize("name", KINDS)
def test_columns_are_what_they_look_like(name):
    cells, kind, values = KINDS[name]
    series = pl.Series(cells, strict=False)
    column = learn("a", series)
    assert column.kind == kind
    if values is not None:
        np.testing.assert_allclose(encode(column, series).values[: len(values)], values, rtol=1e-12)
        assert column.gaps == np.isnan(encode(column, series).values).sum()


@settings(max_examples=15)
@given(st.lists(st.one_of(st.none(), st.text(max_size=4), st.floats(), st.dates().map(str)), min_size=1, max_size=12))
def test_any_cells_are_learned_and_read_again(cells):
    series = pl.Series([None if cell is None else str(cell) for cell in cells], dtype=pl.String)
    column = learn("a", series)
    values = encode(column, series).values
    assert len(values) == len(cells)
    assert not np.isinf(values).any()
    later = encode(column, pl.Series(["never seen", None, "7"]))
    assert np.isnan(later.values[1])


def test_rare_and_unseen_categories_have_codes_of_their_own():
    names = [f"c{k}" for k in range(MOST_CATEGORIES + 5)]
    many = learn("a", pl.Series([*names, *names[:-5], *names[:MOST_CATEGORIES]]))
    assert len(many.categories) == MOST_CATEGORIES
    assert encode(many, pl.Series([names[-1], names[0]])).values[0] == MOST_CATEGORIES
    few = learn("a", pl.Series(["x", "y", "x"]))
    assert encode(few, pl.Series(["z"])) == encode(few, pl.Series(["z"]))._replace(unseen=1)
    assert encode(few, pl.Series(["z"])).values[0] == MOST_CATEGORIES + 1


def frame(n=160, seed=0):
    """Rows of two classes, a third of the positives labeled, with all kinds of columns."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2 == 0
    s = y & (rng.random(n) < 0.4)
    size = rng.normal(np.where(y, 1.5, -1.5))
    columns = {
        "name": [f"p{k}" for k in range(n)],
        "size": [None if rng.random() < 0.1 else f"{v:.4f}" for v in size],
        "noise": rng.normal(size=n).round(3).astype(str).tolist(),
        "colour": np.where(rng.random(n) < 0.8, np.where(y, "red", "blue"), "green").tolist(),
        "seen": [str(DAY + datetime.timedelta(days=int(k))) for k in rng.integers(0, 300, n)],
        "s": np.where(s, "yes", "").tolist(),
    }
    return pl.DataFrame(columns), y


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "mine.csv"
    frame()[0].write_csv(path)
    return path


def test_a_table_is_read_with_its_kinds_and_what_was_done_is_told(written):
    table = read(written, "s", "yes")
    assert [c.kind for c in table.schema.features] == ["number", "number", "category", "date"]
    assert table.schema.identifiers == ("name",)
    assert table.labeled.sum() == (frame()[0]["s"] == "yes").sum()
    assert table.notes == ("'name' is kept as an identifier, and is no feature",)
    named = read(written, "s", identifiers=["noise"])
    assert named.schema.identifiers == ("noise",)
    assert "'name' is text that never repeats, and is left out" in named.notes


def test_later_rows_are_found_by_name_and_what_does_not_fit_is_told(written):
    table = read(written, "s")
    columns = columns_of(frame()[0].drop("s"))
    same = table.schema.encode(columns)
    np.testing.assert_array_equal(same.x, table.x)
    assert same.notes == ()
    turned = table.schema.encode({name: columns[name] for name in reversed(columns)})
    np.testing.assert_array_equal(turned.x, table.x)
    assert turned.notes == ("the columns stand in another order, and were found by name",)
    odd = {**columns, "colour": pl.Series(["pink"] * 160), "size": pl.Series(["big"] * 160), "more": columns["noise"]}
    del odd["noise"]
    told = " ".join(table.schema.encode(odd).notes)
    for said in (
        "missing, and taken for gaps: noise",
        "160 of 160 cells are no number, as 'big'",
        "'pink'",
        "left out: more",
    ):
        assert said in told
    with pytest.raises(ValueError, match="none of the columns that were learned"):
        table.schema.encode({"other": columns["noise"]})


def test_files_as_others_write_them(written, tmp_path):
    expected = read(written, "s").x
    text = written.read_text()
    (tmp_path / "semicolon.csv").write_text(text.replace(",", ";"))
    (tmp_path / "tab.tsv").write_text(text.replace(",", "\t"))
    (tmp_path / "wide.csv").write_bytes(text.encode("utf-16"))
    (tmp_path / "latin.csv").write_bytes(text.replace("green", "grün").encode("latin-1"))
    frame()[0].with_columns(pl.col("size", "noise").cast(pl.Float64), pl.col("seen").str.to_date()).write_parquet(
        tmp_path / "typed.parquet"
    )
    for path in sorted(tmp_path.iterdir()):
        table = read(path, "s", "yes")
        np.testing.assert_allclose(table.x, expected, err_msg=path.name)
    told = read(tmp_path / "latin.csv", "s").notes
    assert any("Windows-1252" in note for note in told)


def test_suspicious_columns_are_told():
    s = np.arange(60) < 20
    columns = {"row": pl.Series(range(60)), "copy": pl.Series(s.astype(int)), "x": pl.Series(np.arange(60) % 7)}
    notes = " ".join(of_columns(columns, s).notes)
    assert "'row' counts the rows" in notes
    assert "'copy' tells labeled from unlabeled rows without a mistake" in notes


def test_candidates_take_gaps_and_unseen_categories_without_a_warning(written):
    table = read(written, "s")
    later = table.x.copy()
    later[:5, 2] = MOST_CATEGORIES + 1
    later[5:9] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in candidates(table).values():
            fitted = model.fit(table.x, table.labeled.astype(int))
            assert np.isfinite(fitted.predict_proba(later)).all()
    k = dense(table.x, table.schema.categories)
    assert np.isfinite(k(later)).all()
    assert k(later).shape[1] == 1 + 1 + 1 + 3 + 1  # a mark of gaps, three colours


def test_weighting_moves_the_odds_from_labeled_to_positive():
    rng = np.random.default_rng(0)
    y = np.arange(400) < 200
    x = rng.normal(np.where(y, 2.0, -2.0))[:, None]
    s = y & (rng.random(400) < 0.3)
    base = prior.default_candidates()["logistic C=0.3"]
    p = WeightedClassifier(base).fit(x, s.astype(int)).predict_proba(x)[:, 1]
    naive = base.fit(x, s.astype(int)).predict_proba(x)[:, 1]
    assert abs(p.mean() - 0.5) < 0.07
    assert naive.mean() < 0.25
    assert ((p > 0.5) == y).mean() > 0.93


def test_rows_are_scored_by_what_has_not_seen_them(written):
    table, y = read(written, "s"), frame()[1]
    found = fit_auto(table, seeds=1)
    assert found.chosen == "Elkan-Noto-weighted boosting"
    assert list(found.auc) == [*candidates(table), found.chosen]
    for member in found.members:
        rows = found.fold == member.fold
        np.testing.assert_allclose(found.scores[0, rows], member(table.x[rows]))
    of_u = ~table.labeled
    assert prior.auc(found.z[of_u], y[of_u]) > 0.85
    p = np.where(y, 0.95, 0.01)
    assert signs.suspicious(-found.z, np.zeros(160), table.labeled).size > 0
    assert not signs.scar(table, found.share, p).impossible


def test_labels_that_depend_on_the_features_are_a_sign_against_scar():
    rng = np.random.default_rng(0)
    y = np.arange(600) < 400
    x = rng.normal(size=(600, 2))
    by_chance, by_features = y & (rng.random(600) < 0.4), y & (x[:, 0] + 0.3 * rng.normal(size=600) > 0)
    p = np.where(y, 1.0, 0.0)
    for s, sign in ((by_chance, False), (by_features, True)):
        table = of_columns(columns_of(x), s)
        share = prior.Share(0.4, 0.3, 0.5, 0.6, s.sum(), (~s).sum())
        assert signs.scar(table, share, p).found is sign
    told = prior.Share(0.9, 0.3, 0.5, 0.6, 100, 500, given=True)
    assert signs.scar(table, told, p).impossible
