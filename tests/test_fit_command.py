"""``jaxpu fit`` and ``jaxpu score``: what they write, what comes back, and forty files that cannot be used."""

import gzip
import io
import json
import re

import jax
import numpy as np
import polars as pl
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from test_tables import frame

import jaxpu
from jaxpu import cli, config, data, prior
from jaxpu.fitted import files, load, store
from jaxpu.methods import Method, decision_offset
from jaxpu.runs import ResultsError
from jaxpu.tables import read

FILES = {"scores.csv", "model.skops", "summary.json", "report.html"}


def called(capsys, *words) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main([str(word) for word in words])
    return end.value.code, *capsys.readouterr()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the command leaves of a table with strings, gaps and dates."""
    where = tmp_path_factory.mktemp("fit")
    frame()[0].write_csv(where / "mine.csv")
    frame(60, seed=1)[0].drop("s").write_csv(where / "new.csv")
    words = ["--label", "s", "--positive", "yes", "--seeds", "2", "--out", where / "out", "--score", where / "new.csv"]
    with pytest.raises(SystemExit) as end:
        cli.main(["fit", str(where / "mine.csv"), *map(str, words)])
    assert end.value.code == 0
    return where


def test_all_files_are_there_and_rank_the_hidden_positives(folder):
    assert {p.name for p in (folder / "out").iterdir() if p.name != ".lock"} == FILES | {"new_scores.csv"}
    scores = pl.read_csv(folder / "out" / "scores.csv")
    assert scores.columns == ["row", "name", "label", "score", "probability", "rank", "decision"]
    assert scores["rank"].to_list() == list(range(1, 161))
    assert scores["score"].is_sorted(descending=True)
    assert sorted(scores["row"].to_list()) == list(range(1, 161))
    assert (scores["name"].str.slice(1).cast(int) + 1 == scores["row"]).all()
    hidden = scores.filter(pl.col("label") == 0).sort("row")
    truth = frame()[1][hidden["row"].to_numpy() - 1]
    assert roc_auc_score(truth, hidden["score"]) > 0.85
    assert np.mean(truth == hidden["decision"].to_numpy()) > 0.7
    assert hidden["probability"].is_between(0, 1).all()


def test_the_summary_says_what_the_page_says(folder):
    summary = json.loads((folder / "out" / "summary.json").read_text())
    share, n = summary["prior"], summary["data"]["unlabeled"]
    assert summary["answer"].startswith(
        f"Between {round(share['low'] * n)} and {round(share['high'] * n)} of the {n} unlabeled rows are positive"
    )
    page = (folder / "out" / "report.html").read_text()
    lead = re.sub(r"<[^>]+>", "", page.partition("<header>")[2].partition("<nav")[0])
    assert summary["answer"] in lead, "the answer stands first"
    assert "At most" in page
    assert "cannot be verified" in page
    assert all(f'id="figure-{name}"' in page for name in ("scores", "calibration", "drivers", "stability"))
    assert summary["drivers"][0]["column"] in ("size", "colour")
    assert len([c for c in summary["candidates"] if c["scores"]]) == 1
    assert summary["verdicts"][0]["n"] == 2
    assert (
        share["low"]
        < frame()[1][pl.read_csv(folder / "out" / "scores.csv").sort("row")["label"] == 0].mean()
        < share["high"]
    )


def test_what_was_saved_gives_the_same_scores(folder, capsys):
    fitted = jaxpu.fit(read(folder / "mine.csv", "s", "yes"), seeds=1)
    scorer = load(folder / "out")
    rows = pl.read_csv(folder / "new.csv", infer_schema=False)
    np.testing.assert_array_equal(scorer.decision_function(rows), fitted.decision_function(rows))
    first = (folder / "out" / "new_scores.csv").read_bytes()
    assert called(capsys, "score", folder / "out", folder / "new.csv")[0] == 0
    assert (folder / "out" / "new_scores.csv").read_bytes() == first
    new = pl.read_csv(io.BytesIO(first))
    assert new.columns == ["row", "name", "score", "probability", "rank", "decision"]
    assert roc_auc_score(frame(60, seed=1)[1][new["row"].to_numpy() - 1], new["score"]) > 0.8


def test_other_columns_are_told_and_matched_by_name(folder, capsys, tmp_path):
    rows = pl.read_csv(folder / "new.csv", infer_schema=False)
    turned = rows.select("seen", "colour", "size", "name").with_columns(pl.lit("1").alias("extra"))
    turned.write_csv(tmp_path / "turned.csv")
    code, out, _ = called(capsys, "score", folder / "out", tmp_path / "turned.csv", "--out", tmp_path / "a.csv")
    assert code == 0
    for said in ("missing, and taken for gaps: noise", "left out: extra", "another order", "60 rows scored"):
        assert said in out
    rows.drop("noise").write_csv(tmp_path / "same.csv")
    assert called(capsys, "score", folder / "out", tmp_path / "same.csv", "--out", tmp_path / "b.csv")[0] == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_model_that_holds_another_type_is_refused(folder, tmp_path):
    from skops import io as skops

    state = skops.loads((folder / "out" / "model.skops").read_bytes(), trusted=store.TRUSTED)
    state["more"] = Odd()
    (tmp_path / "model.skops").write_bytes(skops.dumps(state))
    with pytest.raises(ResultsError, match="Odd, which jaxpu never writes; it was not read"):
        load(tmp_path)
    (tmp_path / "model.skops").write_bytes(b"PK" + bytes(100))
    with pytest.raises(ResultsError, match="damaged"):
        load(tmp_path)
    with pytest.raises(ResultsError, match=r"no model.skops or model.safetensors"):
        load(tmp_path / "none")


class Odd:
    """What no model holds."""


@pytest.mark.slow
def test_networks_by_the_same_door(folder, capsys, tmp_path):
    fitted = jaxpu.fit(
        read(folder / "mine.csv", "s", "yes"), method="nnpu", seeds=2, model="linear", epochs=3, lr=0.05, batch_size=32,
        validation=[0.3],
    )  # fmt: skip
    assert not fitted.share.given
    assert fitted.scores.shape == (2, 160)
    assert fitted.ranked().columns == ["row", "name", "label", "score", "probability", "rank", "decision"]
    store.save(fitted.scorer, tmp_path)
    rows = pl.read_csv(folder / "new.csv", infer_schema=False)
    np.testing.assert_array_equal(load(tmp_path).decision_function(rows), fitted.decision_function(rows))
    assert load(tmp_path).rank(rows).frame.height == 60
    assert (fitted.at(prior.Cut("budget", 20)).decision[~fitted.labeled] == 1).sum() == 20
    written = files.write(tmp_path, fitted, "")
    assert "networks were trained on most of these rows" in (tmp_path / "report.html").read_text()
    assert written["method"]["name"] == "nnpu"


@pytest.mark.slow
def test_a_sweep_that_kept_its_parameters_scores_other_rows(capsys, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    a, b = rng.normal(4 * y - 2.0, size=(2, 60))
    pl.DataFrame({"a": a, "b": b, "y": y}).write_csv(tmp_path / "mine.csv")
    pl.DataFrame({"z": ["?"] * 9, "b": b[:9], "a": a[:9]}).write_csv(tmp_path / "new.csv")
    raw = {
        "data": {"file": str(tmp_path / "mine.csv"), "label": "y"}, "methods": ["pudra_softplus", "vpu"], "seeds": 2,
        "model": {"name": "linear"}, "training": {"epochs": 3, "lr": 0.1}, "selection": {"keep_best": True},
    }  # fmt: skip
    outcome = jaxpu.sweep(raw, folder=tmp_path / "out")
    code, out, _ = called(capsys, "score", tmp_path / "out", tmp_path / "new.csv")
    assert code == 0
    found = pl.read_csv(tmp_path / "out" / "new_scores.csv")
    assert f"9 rows scored, 2 times each, {found['decision'].sum()} of 18 scores call them positive" in out
    assert "left out: z" in out
    assert "found by name" in out

    # the same in NumPy: standardise as in training, w x + b − offset, the mean probability of the seeds
    settings = config.expand(config.parse(raw))[0]
    for method, offset in (("pudra_softplus", decision_offset(Method("pudra_softplus"))), ("vpu", 0.0)):
        p = []
        for seed, run in outcome.runs.filter(method=method).select("seed", "run_id").unique().rows():
            rows = data.prepare(settings.data, data.load(settings.data), seed).rows
            [bias, kernel] = sorted(jax.tree.leaves(outcome.kept(run)["params"]), key=np.size)
            x = (np.stack([a, b], axis=1)[:9] - rows.mean) / rows.sd
            p.append(expit((x @ np.asarray(kernel) + bias).ravel() - offset))
        ours = found.filter(method=method).sort("row")
        np.testing.assert_allclose(ours["probability"], np.mean(p, axis=0), rtol=1e-4)
        np.testing.assert_array_equal(ours["decision"], np.mean(p, axis=0) >= 0.5)
        assert found.filter(method=method)["probability"].is_sorted(descending=True)
    pl.DataFrame({"a": a}).write_csv(tmp_path / "new.csv")
    assert "the table lacks b" in called(capsys, "score", tmp_path / "out", tmp_path / "new.csv")[2]


def test_classifiers_of_ones_own_and_a_given_share():
    rng = np.random.default_rng(0)
    x = rng.normal(np.where(np.arange(200) < 80, 2.0, -2.0)[:, None], size=(200, 2))
    s = np.arange(200) < 40
    found = jaxpu.fit(x, s, method=LogisticRegression(), prior=0.25, seeds=2, y=np.arange(200) < 80)
    assert found.share.given
    assert (found.decision[~s] == 1).sum() == 40
    summary = dict(found.summary().select("metric", "mean").rows())
    assert summary["auc"] > 0.95
    assert found.verdicts["verdict"].to_list() == ["healthy"]
    assert (found.predict(x) == found.predict(x.tolist())).all()
    for options, said in (
        ({"epochs": 3}, "epochs is a setting of networks, and method is 'auto'"),
        ({"prior": 1.5}, "prior is 1.5, expected a share"),
        ({"seeds": 0}, "seeds is 0, expected a whole number"),
        ({"s": None}, "which rows are labeled"),
        ({"x": np.zeros((200, 2, 2))}, "tables of shape"),
    ):
        with pytest.raises(ValueError, match=said):
            jaxpu.fit(**{"x": x, "s": s, **options})


def test_the_cut_that_is_asked_for(tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = np.arange(300) < 120
    x = rng.normal(np.where(y, 1.5, -1.5)[:, None], size=(300, 2))
    s = y & (rng.random(300) < 0.5)

    def fit(**asked):
        return jaxpu.fit(x, s, method=LogisticRegression(), seeds=1, **asked)

    found = fit(budget=30)
    z, share = found.score, found.share.value
    assert (found.decision[~s] == 1).sum() == 30

    def precision(t):  # π R / Pr
        return share * (z[s] >= t).mean() / (z[~s] >= t).mean()

    reached = [t for t in z if precision(t) >= 0.8]
    assert found.at(prior.Cut("precision", 0.8)).threshold == fit(precision=0.8).threshold == min(reached)
    dear = fit(cost_ratio=4)
    np.testing.assert_array_equal(dear.predict(x), dear.predict_proba(x)[:, 1] > 1 / 5)
    frame = files.cuts(dear)
    assert frame["chosen"].to_list() == [True] + [False] * (frame.height - 1)
    assert frame.row(0, named=True)["rule"] == "cost"
    for row in frame.filter(pl.col("threshold").is_finite()).iter_rows(named=True):
        selected = (z[~s] >= row["threshold"]).sum()
        right = min(selected, share * (~s).sum() * (z[s] >= row["threshold"]).mean())
        assert row["false_alarms"] == pytest.approx(selected - right)
        assert row["missed"] == pytest.approx(share * (~s).sum() - right)
    for asked, said in (
        ({"budget": 3, "precision": 0.5}, "budget and precision are given"),
        ({"budget": 2.5}, "budget is 2.5, expected a whole number"),
        ({"precision": 90}, "precision is 90, expected a share"),
        ({"cost_ratio": -1}, "cost_ratio is -1, expected a finite number above 0"),
        ({"cost_ratio": float("nan")}, "cost_ratio is nan, expected a finite number above 0"),
    ):
        with pytest.raises(ValueError, match=said):
            fit(**asked)

    pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "s": s.astype(int)}).write_csv(tmp_path / "mine.csv")
    words = [tmp_path / "mine.csv", "--label", "s", "--seeds", "1", "--out", tmp_path / "out"]
    assert called(capsys, "fit", *words, "--budget", "25")[0] == 0
    assert pl.read_csv(tmp_path / "out" / "scores.csv").filter(pl.col("label") == 0)["decision"].sum() == 25
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["threshold"]["rule"], summary["threshold"]["asked"]) == ("budget", 25)
    assert "--budget 25" in summary["command"]
    assert "<strong>look at 25 rows</strong>" in (tmp_path / "out" / "report.html").read_text()
    code, out, _ = called(capsys, "fit", *words, "--precision", "1", "--prior", "0.01")
    assert code == 0
    assert "none of them is called positive" in out


def test_below_twenty_labels_only_an_upper_bound_is_shown(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(np.where(np.arange(200) < 60, 1.0, -1.0)[:, None], size=(200, 2))
    for labeled, few in ((19, True), (20, False)):
        found = jaxpu.fit(x, np.arange(200) < labeled, method=LogisticRegression(), seeds=1)
        told = files.write(tmp_path / str(labeled), found, "")
        page = (tmp_path / str(labeled) / "report.html").read_text()
        share = told["prior"]
        assert told["answer"].startswith("At most" if few else "Between")
        for text in (told["answer"], share["statement"], page):
            assert ("estimate, " in text or "by estimate" in text) is not few
        assert ("Warning: fewer than 20 rows are labeled" in page) is few
        assert f"At most {100 * share['at_most']:.0f} % of the unlabeled rows" in page


GOOD = "a,b,s\n" + "".join(f"{k % 7},{k % 5},{int(k < 6)}\n" for k in range(20))
LISTS = pl.DataFrame({"a": [[1], [2], [3]], "s": [1, 0, 0]})


def parquet(table: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


BAD = {
    "empty.csv": (b"", "not a CSV"),
    "blanks.csv": (b"\n\n \n", ""),
    "header.csv": (b"a,b,s\n", "holds no row"),
    "one.csv": (b"a,b,s\n1,2,1\n", "1 value, expected two"),
    "no_positives.csv": (b"a,b,s\n1,2,\n2,3,\n", "1 value, expected two"),
    "zeros.csv": (b"a,b,s\n1,2,0\n2,3,0\n", "1 value, expected two"),
    "all_positive.csv": (b"a,b,s\n1,2,1\n2,3,1\n", "1 value, expected two"),
    "one_labeled.csv": (GOOD.replace(",1\n", ",0\n").replace("0,0,0", "0,0,1", 1).encode(), "at least two labeled"),
    "one_unlabeled.csv": (GOOD.replace(",0\n", ",1\n").replace("5,4,1", "5,4,0", 1).encode(), "at least two labeled"),
    "three.csv": (b"a,b,s\n1,2,x\n2,3,y\n3,4,z\n", "3 values, expected two: 'x' (1 row)"),
    "three_with_blank.csv": (
        b"a,b,s\n1,2,yes\n2,3,no\n3,4,\n",
        "3 values, expected two: 'yes' (1 row), 'no' (1 row), blank (1 row)",
    ),
    "which.csv": (b"a,b,s\n1,2,up\n2,3,down\n", "which of them means labeled"),
    "twice.csv": (b"a,a,s\n1,2,1\n2,3,0\n", "column 'a' twice"),
    "unnamed.csv": (b",a,s\n1,2,1\n2,3,0\n", "has no name"),
    "separator.csv": (GOOD.replace(",", "#").encode(), "has one column"),
    "spaces.csv": (b"s\n1\n0\n", "has one column"),
    "ragged.csv": (b"a,b,s\n1,2,1\n1,2,0,9\n", "row 2 has 4 cells where the header has 3"),
    "quotes.csv": (b'a,b,s\n"1,2,1\n2,3,0\n', ""),
    "zero_bytes.csv": (b"a,b,s\n1,\x00,1\n2,3,0\n", "is zero, which no text has"),
    "wide_without_mark.csv": (GOOD.encode("utf-16-le"), "is zero"),
    "random.csv": (np.random.default_rng(0).bytes(3000), "is zero"),
    "controls.csv": (b"a,b,s\n1,\x81\x07\xff,1\n2,3,0\n", "not UTF-8"),
    "picture.csv": (b"\x89PNG\r\n\x1a\n" + bytes(40), "is zero"),
    "sheet.csv": (b"PK\x03\x04" + bytes(60), "is zero"),
    "text.csv": (b"Dear Sir or Madam,\nthank you, and good bye, yours\n", ""),
    "html.csv": (b"<html><body>\n<p>not found</p>\n</body></html>\n", ""),
    "numbers.json": (b'{"a": [1, 2]}', "expected a file that ends in"),
    "sheet.xlsx": (b"PK\x03\x04", "expected a file that ends in"),
    "none": (GOOD.encode(), "expected a file that ends in"),
    "cut.csv.gz": (gzip.compress(GOOD.encode() * 50)[:60], "damaged"),
    "not_zipped.csv.gz": (b"\x1f\x8b" + bytes(20), "damaged"),
    "fake.parquet": (b"PAR1" + bytes(50) + b"PAR1", "not a Parquet file"),
    "cut.parquet": (parquet(frame()[0])[:700], "not a Parquet file"),
    "no_rows.parquet": (parquet(frame()[0].head(0)), "holds no row"),
    "lists.parquet": (parquet(LISTS), "no column is left as a feature: 'a' holds List(Int64)"),
    "arrays.npz": (b"PK\x03\x04", "give a CSV or a Parquet file"),
    "constant.csv": (b"a,b,s\n1,x,1\n1,x,0\n1,x,0\n", "no column is left as a feature: 'a' holds '1' only"),
    "gaps.csv": (b"a,b,s\n,NA,1\nnan,,0\n", "no column is left as a feature: 'a' has no value"),
    "only_text.csv": (b"a,s\nx1,1\nx2,0\nx3,0\n", "no column is left as a feature: 'a' is text that never repeats"),
    "no_label.csv": (GOOD.replace("s", "t", 1).encode(), "unknown column 's'"),
}
WORDS = {
    "missing": (["none.csv", "--label", "s"], "no file at"),
    "folder": ([".", "--label", "s"], "expected a file that ends in"),
    "no such value": (["good.csv", "--label", "s", "--positive", "yes"], "holds no 'yes'"),
    "no such id": (["good.csv", "--label", "s", "--id", "who"], "unknown column 'who'"),
    "id and label": (["good.csv", "--label", "s", "--id", "s"], "named as label and as identifier"),
    "prior": (["good.csv", "--label", "s", "--prior", "1.5"], "prior is 1.5, expected a share"),
    "seeds": (["good.csv", "--label", "s", "--seeds", "0"], "seeds is 0"),
    "budget": (["good.csv", "--label", "s", "--budget", "0"], "budget is 0, expected a whole number of rows"),
    "two cuts": (["good.csv", "--label", "s", "--budget", "5", "--precision", "0.5"], "are given, and there is one"),
    "method": (["good.csv", "--label", "s", "--method", "nnpo"], "did you mean 'nnpu'"),
    "rows": (["good.csv", "--label", "s", "--score", "other.csv"], "none of the columns that were learned"),
    "no rows": (["good.csv", "--label", "s", "--score", "none.csv"], "no file at"),
    "no label": (["good.csv"], "label"),
}


def refused(capsys, said: str, out, *words) -> None:
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    code, _, err = called(capsys, "fit", *words, "--out", out)
    assert code == 2, (words, err)
    assert err.count("\n") == 1, err
    assert said in err, (words, err)
    assert len(err) < 1600
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before, f"{words} has written"


def test_forty_files_that_cannot_be_used_are_a_line_each_and_nothing_is_written_over(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    (out / "summary.json").write_text("{}")
    (out / "scores.csv").write_text("mine")
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "other.csv").write_text("x,y\n1,2\n")
    assert len(BAD) >= 40
    for name, (raw, said) in BAD.items():
        (tmp_path / name).write_bytes(raw)
        refused(capsys, said, out, tmp_path / name, "--label", "s")
    for words, said in WORDS.values():
        refused(capsys, said, out, *words)


def test_a_folder_of_somebody_else_is_left_alone(capsys, tmp_path):
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    refused(
        capsys,
        "holds thesis.txt, which jaxpu fit has not written",
        tmp_path / "out",
        tmp_path / "good.csv",
        "--label",
        "s",
    )
    code, _, err = called(capsys, "fit", tmp_path / "good.csv", "--label", "s", "--out", tmp_path / "good.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "is a file" in err
