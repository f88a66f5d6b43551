"""The evidence of own data: draws, what is measured of them, and what the page says was reached."""

import re
import sys
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from threadpoolctl import threadpool_limits

import jaxpu
from jaxpu import prior, runs
from jaxpu.report import Results, write_study

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import own_data
import own_data_methods as methods
import reproduce

SMALL = own_data.Cell("easy", 0.1, 0.37, most=300)


@pytest.fixture(scope="module", autouse=True)
def single():
    """One thread, as the script's processes have."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def page():
    return reproduce.own_figures(ROOT / "configs" / "own_data")


@pytest.fixture(scope="module")
def row():
    """One draw, measured."""
    return own_data.measure(SMALL, 3)[0]


@pytest.mark.parametrize("cell", [SMALL, own_data.Cell("digits", 0.3, 0.6), own_data.SETTINGS[4]])
def test_a_draw_has_the_rows_that_its_cell_asks_for(cell):
    drawn = own_data.draw(cell, 1, 0.3)
    n_u, hidden = int((~drawn.labeled).sum()), int(drawn.y[~drawn.labeled].sum())
    assert drawn.y[drawn.labeled].all()
    assert hidden == round(cell.pi * n_u)
    assert drawn.truth == hidden / n_u == drawn.largest
    assert drawn.labeled.sum() == (cell.n_labeled or max(5, round(cell.c * hidden / (1 - cell.c))))
    assert len({*np.flatnonzero(drawn.labeled)} & {*range(int(drawn.labeled.sum()))}) < drawn.labeled.sum(), "shuffled"
    if cell.dataset != "digits":  # which has equal rows
        assert not {r.tobytes() for r in drawn.x} & {r.tobytes() for r in drawn.fresh_x}
    again, other = own_data.draw(cell, 1, 0.3), own_data.draw(cell, 2, 0.3)
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
    assert not np.array_equal(drawn.x, other.x)


def test_the_grid_is_63_cells_and_names_tell_cells_apart():
    assert len(own_data.CELLS) == 63
    for table in own_data.tables().values():
        named = {(cell.name, seed): (cell, seed) for cell, seed in table.draws}
        assert len(named) == len(table.draws)
    assert sum(cell.gaps > 0 for cell in own_data.MODEL_CELLS) == 3
    gaps = np.isnan(own_data.draw(own_data.MODEL_CELLS[-1], 0, 0.3).fresh_x).mean()
    assert gaps == pytest.approx(0.2, abs=0.01)


def test_negatives_that_look_like_positives_raise_the_largest_share():
    drawn = own_data.draw(own_data.Cell("reducible", 0.1, 0.37), 0)
    assert drawn.largest == pytest.approx(0.37 + 0.1 * 0.63, abs=1e-3)
    alike = (drawn.x[~drawn.y, 0] > 0).mean()
    assert alike == pytest.approx(0.1 * 0.933 + 0.9 * 0.067, abs=0.03)  # Φ(1.5) = .933


def test_what_is_measured_is_what_jaxpu_fit_says(row):
    drawn = own_data.draw(SMALL, 3)
    fitted = jaxpu.fit(drawn.x, drawn.labeled.astype(int), y=drawn.y.astype(int), seeds=1, random_state=3)
    assert row["prior"] == fitted.share.value
    assert (row["shown_low"], row["shown_high"]) == (fitted.share.low, fitted.share.high)
    of_u = ~drawn.labeled
    lost = row["best_f1"] - own_data.f1(fitted.decision[of_u] == 1, drawn.y[of_u])
    assert row["lost_pu_f1_estimated"] == pytest.approx(lost, abs=1e-12)
    told = own_data.calibration_error(fitted.probability[of_u], drawn.y[of_u])
    assert row["ece_isotonic_estimated"] == pytest.approx(told, abs=1e-12)
    assert row["boot_low"] <= row["prior"] + 0.05
    assert row["lost_g"] > row["lost_quantile_true"], "with a tenth labeled g > 1/2 finds nearly nobody"


def test_errors_of_calibration_and_losses_of_f1_are_their_formulas():
    p, y = np.repeat([0.2, 0.8], 50), np.tile([True, False], 50)
    assert own_data.calibration_error(p, y) == pytest.approx(0.3)
    z, rng = np.random.default_rng(0).normal(size=60).round(1), np.random.default_rng(1)
    y = rng.random(60) < 0.4
    by_hand = max(2 * (y & (z >= t)).sum() / (y.sum() + (z >= t).sum()) for t in z)
    assert own_data.max_f1(z, y) == pytest.approx(by_hand, abs=1e-15)
    assert own_data.f1(z > 9, y) == 0


def test_a_bootstrap_that_fits_again_draws_rows_with_frequencies_or_copies(monkeypatch):
    seen = []

    def estimated(x, labeled, seed, weight=None):
        seen.append((len(np.unique(x[:, 0])), len(x), None if weight is None else weight.sum()))
        return prior.Estimate(0.1 * len(seen), prior.CrossFit({}, {}, "", labeled, {}))

    monkeypatch.setattr(own_data, "estimated", estimated)
    monkeypatch.setattr(own_data, "REFITS", 2)
    grouped, copies = own_data.refitted(SMALL, 3)
    n = seen[0][1]
    assert [one[0] < n for one in seen] == [False, True, True, True, True]
    assert all(unique == rows < n and weight == n for unique, rows, weight in seen[1:3])
    assert all(unique < rows == n and weight is None for unique, rows, weight in seen[3:])
    assert (grouped["method"], copies["method"], grouped["prior"], copies["prior"]) == ("grouped", "copies", 0.1, 0.1)
    assert grouped["mean"] == pytest.approx(0.25)
    assert copies["mean"] == pytest.approx(0.45)


def test_a_failure_of_others_is_a_row_and_one_of_ours_stops():
    def fails():
        raise ValueError("no positives\nat all")

    found = own_data.attempt("auc", methods.Method(len, others=True), fails)
    assert (found["auc"], found["error"]) == (None, "ValueError: no positives")
    with pytest.raises(ValueError, match="no positives"):
        own_data.attempt("auc", methods.Method(len), fails)


def test_what_is_finished_is_kept_and_what_failed_is_repeated(tmp_path):
    asked = []

    class Here:
        def submit(self, work, name, cell, seed):
            asked.append(seed)
            future = Future()
            if seed == 1 and len(asked) < 3:
                future.set_exception(ValueError("broken"))
            else:
                future.set_result(([{"cell": cell.name, "seed": seed, "prior": 0.1 * seed}], 0.5))
            return future

    draws = [(SMALL, seed) for seed in (2, 1)]
    assert own_data.run("draws", draws, tmp_path, Here()) == (0.25, 1)
    assert own_data.run("draws", [*draws, (SMALL, 0)], tmp_path, Here()) == (0.5, 0)
    assert asked == [2, 1, 1, 0]
    assert [row["seed"] for row in own_data.written(tmp_path / "draws.csv")] == [0, 1, 2]
    assert own_data.run("draws", draws, tmp_path, Here()) == (0, 0)
    told = own_data.provenance(tmp_path, 2.0)
    runs.write_provenance(tmp_path, told)
    assert own_data.provenance(tmp_path, 3.0)["run_seconds"] == 5.0
    assert told["rows"]["draws"] == 3


@pytest.fixture(scope="module")
def task():
    """Half of 200 unlabeled rows are positive, and there are 100 labeled ones; classes part."""
    rng = np.random.default_rng(0)
    order = rng.permutation(300)
    x = rng.normal(np.where(np.arange(300) < 200, 3.0, -3.0)[:, None], size=(300, 2))
    return methods.Task(x[order], order < 100, 0)


@pytest.mark.parametrize("name", ["bbe", "tedn", "dedpul", "pen_l1", "elkan_noto", "tice"])
def test_estimators_of_ours_are_those_of_the_library(task, name):
    fold = prior.folds(task.labeled, 5, 0)
    expected = prior.estimate_prior(name, task.x, task.labeled, fold, prior.default_candidates(0)).prior
    assert methods.ESTIMATORS[name].run(task) == expected


def test_what_others_say_of_all_rows_becomes_the_share_in_u(task, monkeypatch):
    class Says:
        def __init__(self, **options):
            self.pi = 200 / 300

        def estimate(self, x, y):
            assert y.sum() == 100
            assert np.abs(x.mean(axis=0)).max() < 1e-9, "standardised"
            return self

    monkeypatch.setitem(sys.modules, "pulearn", SimpleNamespace(ScarEMPriorEstimator=Says))
    assert methods.ESTIMATORS["pulearn ScarEM"].run(task) == pytest.approx(0.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, method in methods.ESTIMATORS.items() if method.others])
def test_estimators_of_others_can_be_called(task, name):
    pytest.importorskip({"pulearn": "pulearn", "pu-toolbox": "pu_toolbox"}[name.split()[0]])
    assert 0.1 < methods.ESTIMATORS[name].run(task) < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", [*methods.MODELS, *methods.OTHER_MODELS])
def test_models_rank_rows_that_they_have_not_seen(name):
    pytest.importorskip({"pulearn": "pulearn", "pu-toolbox": "pu_toolbox"}.get(name.split()[0], "numpy"))
    rng = np.random.default_rng(0)
    labeled, y = np.arange(300) < 50, np.arange(300) < 150
    x, fresh = (rng.normal(np.where(y, 2.0, -2.0)[:, None], size=(300, 2)) for _ in range(2))
    found = (methods.MODELS | methods.OTHER_MODELS)[name].run(methods.Task(x, labeled, 0, fresh, y))
    assert prior.auc(np.asarray(found, float), y) > 0.95


# The page


def made(folder: Path, row: dict, auc: float) -> Results:
    """Results of all tables: the draw that was measured, for every cell, and models of a given AUC."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    wanted = own_data.tables()

    def head(cell, seed):
        return {"cell": cell.name, "dataset": cell.dataset, "c": cell.c, "pi": cell.pi, "seed": seed}

    draws = [row | head(*one) | {"prior": row["truth"] + rng.normal(0, 0.02)} for one in wanted["draws"].draws]
    refits = [
        head(*one) | {"method": name, "prior": 0.4, "mean": mean, "low": 0.3, "high": 0.5, "truth": 0.37}
        for one in wanted["refits"].draws for name, mean in (("grouped", 0.41), ("copies", 0.2))
    ]  # fmt: skip
    parts = {"draws": draws, "refits": refits}
    for table, column, names in (("models", "auc", methods.MODELS), ("other_models", "auc", methods.OTHER_MODELS),
                                 ("estimators", "prior", methods.ESTIMATORS)):  # fmt: skip
        parts[table] = [
            head(*one) | {"truth": 0.37, "method": name, "cpu_seconds": 1.0}
            | {column: (auc if name == "jaxpu.fit" else 0.88) + rng.normal(0, 0.001), "error": None}
            for one in wanted[table].draws for name in names
        ]  # fmt: skip
    parts["other_models"][-1] |= {"auc": None, "error": "ValueError: no"}
    for name, rows in parts.items():
        runs.write_frame(folder / f"{name}.csv", pl.DataFrame(rows, infer_schema_length=None))
    return Results(ROOT / "configs" / "own_data", folder.parent)


def test_what_was_reached_is_said_and_what_was_not(page, row, tmp_path):
    results = made(tmp_path / "own_data", row, 0.92)
    text = write_study(ROOT / "configs" / "own_data", results.folder, page).read_text(encoding="utf-8")
    for words in ("What was to be reached", "pulearn ScarEM", "PU bagging", "ValueError: no", "-0.200"):
        assert words in text
    draws, refits, models = (page.read(results, name) for name in ("draws", "refits", "models"))
    found = dict(page.acceptance(draws, refits, models).select("figure", "verdict").rows())
    assert {int(words.split(".")[0]) for words in found} == set(range(1, 14))
    assert found["3. RMSE, 63 cells, 3 seeds"] == found["9. AUC minus that of naive boosting"] == "met"
    assert found["6. Grouped bootstrap: distance of its mean from the estimate"] == "met"
    bad = models.with_columns(pl.when(pl.col("method") == "jaxpu.fit").then(0.87).otherwise("auc").alias("auc"))
    assert [one.row()["verdict"] for one in page._uses(draws, bad)][-3:] == ["missed"] * 3


def test_a_limit_is_met_missed_or_met_within_its_interval(page):
    def verdict(value, low, high, **options):
        return page.Wanted("x", 0.1, page.Measured(value, low, high), **options).row()["verdict"]

    assert verdict(0.05, 0.04, 0.06) == "met"
    assert verdict(0.09, 0.08, 0.11) == "met; its interval reaches beyond"
    assert verdict(0.11, 0.09, 0.12) == "missed"
    assert verdict(0.11, 0.1, 0.12, most=False) == "met"
    assert verdict(0.11, 0.09, 0.12, most=False) == "met; its interval reaches beyond"
    assert verdict(0.09, 0.08, 0.11, most=False) == "missed"
    assert verdict(float("nan"), 0, 0) == "not measured"


def test_figures_that_are_tests_name_tests_that_are_there(page):
    for names in page.TESTED.values():
        for name in names:
            file, function = name.split("::")
            assert re.search(rf"^def {function}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), name
