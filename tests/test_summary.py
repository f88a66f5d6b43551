"""Tables from a sweep written by hand: which epochs are kept, what they score, the verdicts, the intervals.

One run is the published trace of seed 5, in which re-thresholded validation predictions chose epoch 2.
"""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from problems import tiny
from scipy import stats as scipy_stats

from jaxpu.analysis import analyze, summary
from jaxpu.config import parse

NAN = float("nan")
ROWS, POSITIVES = 921, 363

# seed 5 of the original code: test rows predicted positive, F1 at the threshold, F1 as that code reported it
SEED_5 = {
    "predicted": [0, 4, 159, 283, 363, 368],
    "test_f1": [0.0, 0.0218, 0.59, 0.7802, 0.8595, 0.87],
    "test_rescue": [0.8112, 0.0218, 0.59, 0.7802, 0.8595, 0.87],
    "val_f1": [0.0, 0.0, 0.3333, 0.75, 0.8966, 0.9333],
    "val_rescue": [0.8667, 0.9333, 0.3333, 0.75, 0.8966, 0.9333],
}
RISING = [0.20, 0.50, 0.70, 0.80, 0.82, 0.84]

RUNS = {
    ("vpudra_softlabel", 4): {"test_f1": RISING, "val_f1": RISING},
    ("vpudra_softlabel", 5): SEED_5,
    ("vpudra_softlabel", 6): {"test_f1": RISING, "val_f1": [0.1, 0.2, 0.3, 0.9, 0.4, 0.4]},  # epoch 4: 0.80
    ("vpudra_softlabel", 7): {"test_f1": RISING, "val_f1": [0.1, 0.2, 0.3, 0.4, 0.9, 0.9]},  # epoch 5: 0.82
    ("pudra", 4): {"test_f1": RISING, "val_f1": RISING},
    ("pudra", 5): {"test_f1": [0.3, 0.6, 0.8, 0.6, 0.85, 0.6], "val_f1": [0.3, 0.6, 0.9, 0.5, 0.5, 0.5]},
    ("pudra", 6): {
        "test_f1": [0.0] * 6,
        "val_f1": [0.0] * 6,
        "predicted": [0] * 6,
        "auc": 0.5,
        "test_rescue": [0.5] * 6,
    },
    ("pudra", 7): {"test_f1": [0.5, 0.6, 0.7, 0.75, 0.9, 0.9], "val_f1": [NAN] * 6},
}
# method, seed -> under val_f1 with patience 4: epoch kept, epochs looked at, F1, regret, verdict
BY_VAL_F1 = {
    ("vpudra_softlabel", 4): (6, 6, 0.84, 0.0, "healthy"),
    ("vpudra_softlabel", 5): (6, 6, 0.87, 0.0, "healthy"),
    ("vpudra_softlabel", 6): (4, 6, 0.80, 0.04, "healthy"),
    ("vpudra_softlabel", 7): (5, 6, 0.82, 0.02, "healthy"),
    ("pudra", 4): (6, 6, 0.84, 0.0, "healthy"),
    ("pudra", 5): (3, 6, 0.80, 0.05, "healthy"),
    ("pudra", 6): (1, 5, 0.0, 0.0, "all_negative"),
    ("pudra", 7): (4, 4, 0.75, 0.15, "healthy"),
}


def recorded(method, seed, *, test_f1, val_f1, predicted=None, test_rescue=None, val_rescue=None, auc=0.95):
    """The columns of one run; counts of hits follow from F1 = 2 TP / (predicted + positives)."""
    f1 = np.array(test_f1)
    predicted = np.full(6, POSITIVES) if predicted is None else np.array(predicted)
    hits = np.round(f1 * (predicted + POSITIVES) / 2)
    return pl.DataFrame(
        {
            "run_id": f"{method} {seed}",
            "dataset": "gaussians",
            "method": method,
            "seed": seed,
            "epochs_run": 6,
            "epoch": np.arange(1, 7),
            "train_loss": [0.9, 0.8, 0.7, 0.65, 0.6, 0.6],
            "train_target": [0.9] * 6 if method == "vpudra_softlabel" else [NAN] * 6,
            "val_oracle_f1_decision": val_f1,
            "val_oracle_f1_rescue": val_f1 if val_rescue is None else val_rescue,
            "test_oracle_f1": f1,
            "test_oracle_f1_decision": f1,
            "test_oracle_f1_rescue": f1 if test_rescue is None else np.array(test_rescue),
            "test_oracle_f1_best": np.maximum(f1, 0.8),
            "test_oracle_f1_quantile": f1,
            "test_oracle_accuracy": (2 * hits + ROWS - POSITIVES - predicted) / ROWS,
            "test_oracle_precision": hits / np.maximum(predicted, 1),
            "test_oracle_recall": hits / POSITIVES,
            "test_oracle_auc": auc,
            "test_oracle_average_precision": 0.9,
            "test_oracle_ece": NAN,
            "test_oracle_brier": 0.1,
            "test_oracle_log_loss": 0.1 * np.arange(1, 7) + seed,
            "test_predicted_positive": predicted / ROWS,
            "test_score_mean": 0.4,
            "test_score_sd": 0.3,
        }
    )


def hand_made(keys=RUNS):
    return pl.concat([recorded(*key, **RUNS[key]) for key in keys])


def experiment(**changes):
    rules = ["val_f1", "val_f1_rescue", "last"]
    selection = {"rules": rules, "default": "val_f1", "patience": 4}
    methods = ["vpudra_softlabel", "pudra"]
    return tiny(**({"methods": methods, "seeds": 4, "first_seed": 4, "selection": selection} | changes))


@pytest.fixture(scope="module")
def tables():
    return summary.tables(hand_made(), experiment())


def chosen(frame, **values):
    return frame.filter(**values)


def row(frame, **values):
    [only] = chosen(frame, **values).iter_rows(named=True)
    return only


@pytest.mark.parametrize("run", BY_VAL_F1, ids=str)
def test_validation_f1_keeps_these_epochs(tables, run):
    method, seed = run
    epoch, looked_at, f1, regret, verdict = BY_VAL_F1[run]
    kept = row(tables.selected, method=method, seed=seed, selection="val_f1")
    assert (kept["epoch"], kept["epochs_run"], kept["verdict"]) == (epoch, looked_at, verdict)
    assert (kept["f1"], kept["regret"]) == pytest.approx((f1, regret))
    assert kept["test_oracle_log_loss"] == pytest.approx(0.1 * epoch + seed), "other columns are of that epoch too"
    assert kept["rule_defined"] == (run != ("pudra", 7))
    assert kept["decision"] == "half"


def test_seed_5_of_the_original_is_an_artefact_of_its_selection(tables):
    kept = row(tables.selected, method="vpudra_softlabel", seed=5, selection="val_f1_rescue")
    assert (kept["epoch"], kept["epochs_run"]) == (2, 6)
    assert kept["f1"] == pytest.approx(0.0218)
    assert kept["regret"] == pytest.approx(0.87 - 0.0218)
    assert kept["verdict"] == "selection_artefact"
    assert "Epoch 2 was selected, with F1 0.022" in kept["explanation"]
    assert row(tables.selected, method="vpudra_softlabel", seed=5, selection="val_f1")["verdict"] == "healthy"
    judged = row(tables.verdicts, method="vpudra_softlabel", selection="val_f1_rescue")
    assert (judged["verdict"], judged["failing"], judged["n"], judged["rate"]) == ("selection_artefact", 1, 4, 0.25)
    assert judged["count"] == 1
    assert (judged["ci_low"], judged["ci_high"]) == pytest.approx(wilson(1, 4))
    assert row(tables.verdicts, method="vpudra_softlabel", selection="val_f1")["verdict"] == "healthy"


def test_only_the_legacy_rule_reports_rescued_predictions(tables):
    f1 = {rule: row(tables.selected, method="pudra", seed=6, selection=rule)["f1"] for rule in ("val_f1", "last")}
    assert f1 == {"val_f1": 0.0, "last": 0.0}
    assert row(tables.selected, method="pudra", seed=6, selection="val_f1_rescue")["f1"] == 0.5


def test_patience_decides_what_a_rule_has_seen():
    impatient = experiment(selection__patience=3)
    kept = row(summary.tables(hand_made(), impatient).selected, method="vpudra_softlabel", seed=5, selection="val_f1")
    assert (kept["epoch"], kept["epochs_run"]) == (6, 6)
    rescued = summary.tables(hand_made(), impatient).selected
    kept = row(rescued, method="vpudra_softlabel", seed=5, selection="val_f1_rescue")
    assert (kept["epoch"], kept["epochs_run"]) == (2, 5)
    assert kept["regret"] == pytest.approx(0.87 - 0.0218), "one yardstick for all rules: the sixth epoch counts"


def test_the_last_epoch_is_the_last(tables):
    last = chosen(tables.selected, selection="last", method="pudra")
    assert last["epoch"].to_list() == [6] * 4
    assert last["f1"].to_list() == pytest.approx([0.84, 0.6, 0.0, 0.9])
    assert last["regret"].to_list() == pytest.approx([0, 0.25, 0, 0])


def wilson(k, n, z=1.959963984540054):
    centre, half = k / n + z * z / (2 * n), z * np.sqrt(k / n * (1 - k / n) / n + z * z / (4 * n * n))
    return (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)


def bootstrap(values, statistic, method):
    interval = scipy_stats.bootstrap(
        (np.array(values),),
        statistic,
        n_resamples=4999,
        confidence_level=0.95,
        method=method,
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(interval.low), float(interval.high)


@pytest.mark.parametrize("method", ["vpudra_softlabel", "pudra"])
def test_the_summary_is_that_of_numpy_and_scipy(tables, method):
    f1 = [BY_VAL_F1[method, seed][2] for seed in range(4, 8)]
    got = row(tables.summary, method=method, selection="val_f1", metric="f1")
    assert (got["dataset"], got["n"], got["threshold"], got["missing"]) == ("gaussians", 4, None, 0)
    assert got["mean"] == pytest.approx(np.mean(f1))
    assert got["median"] == pytest.approx(np.median(f1))
    assert got["sd"] == pytest.approx(np.std(f1, ddof=1))
    assert got["iqm"] == pytest.approx(np.mean(sorted(f1)[1:3]))
    assert (got["ci_low"], got["ci_high"]) == pytest.approx(bootstrap(f1, np.mean, "BCa"))
    assert (got["median_ci_low"], got["median_ci_high"]) == pytest.approx(bootstrap(f1, np.median, "percentile"))
    epochs = [BY_VAL_F1[method, seed][0] for seed in range(4, 8)]
    assert row(tables.summary, method=method, selection="val_f1", metric="epoch")["mean"] == np.mean(epochs)


def test_the_share_of_collapsed_runs_has_a_wilson_interval(tables):
    for method, rule, count in (
        ("pudra", "val_f1", 1),
        ("vpudra_softlabel", "val_f1", 0),
        ("vpudra_softlabel", "val_f1_rescue", 1),
    ):
        got = row(tables.summary, method=method, selection=rule, metric="f1_below")
        assert (got["n"], got["count"], got["mean"], got["threshold"]) == (4, count, count / 4, 0.1)
        assert (got["ci_low"], got["ci_high"]) == pytest.approx(wilson(count, 4), abs=1e-12)


def test_what_is_not_known_is_null_and_counts_no_seed(tables):
    got = row(tables.summary, method="pudra", selection="val_f1", metric="ece")
    assert got["n"] == 0
    assert all(got[name] is None for name in ("mean", "median", "sd", "ci_low", "ci_high", "iqm"))


def test_one_seed_has_a_mean_and_no_interval():
    tables = summary.tables(hand_made([("pudra", 4)]), experiment(methods=["pudra"], seeds=1))
    got = row(tables.summary, selection="val_f1", metric="f1")
    assert (got["n"], got["mean"], got["median"]) == (1, pytest.approx(0.84), pytest.approx(0.84))
    for name in ("sd", "ci_low", "ci_high", "median_ci_low", "median_ci_high"):
        assert np.isnan(got[name]), name
    share = row(tables.summary, selection="val_f1", metric="f1_below")
    assert share["n"] == 1
    assert (share["ci_low"], share["ci_high"]) == pytest.approx(wilson(0, 1), abs=1e-12)


def test_every_run_and_rule_has_its_row_whatever_the_order_of_runs(tables):
    assert tables.selected.height == 8 * 3
    here = [name for column, name in summary.NAMES.items() if column in tables.selected.columns]
    assert {"f1", "accuracy", "auc", "regret"} <= {*here}
    assert "predicted_most" not in here, "that is of many classes"
    others = ["score_mean", "score_sd"]
    assert tables.summary["metric"].unique(maintain_order=True).to_list() == [*here, *others, "f1_below"]
    assert tables.summary.height == 2 * 3 * (len(here) + len(others) + 1)
    assert tables.verdicts.height == 2 * 3
    backwards = summary.tables(hand_made(list(RUNS)[::-1]), experiment())
    keys = ["method", "seed", "selection"]
    assert_frame_equal(backwards.selected.sort(keys), tables.selected.sort(keys))


def test_grid_points_are_typed_columns_from_the_run_to_every_table():
    grid = {"training.lr": [1e-2, 1e-3], "training.initial_p": ["prior"]}
    where = {"training.lr": "1e-3"}
    claims = [{"claim": "c", "of": {"where": where}, "minus": {"where": {"training.lr": 0.01}}, "at_least": 0}]
    cells = experiment(methods=["pudra"], grid=grid, seeds=1, claims=claims)
    runs = pl.concat(
        [
            recorded("pudra", seed, **RUNS["pudra", seed]).with_columns(
                pl.lit(4).alias("seed"),
                pl.lit(lr).alias("training.lr"),
                pl.lit("prior").alias("training.initial_p"),
                run_id=pl.lit(f"{lr} {seed}"),
            )
            for seed, lr in ((4, 0.01), (5, 0.001))
        ]
    )
    found = summary.tables(runs, cells)
    identity = ["dataset", "method", "training.lr", "training.initial_p"]
    assert found.selected.columns[:5] == [*identity, "seed"]
    assert found.summary.columns[:8] == [*identity, "selection", "metric", "threshold", "n"]
    assert found.verdicts.columns[:5] == [*identity, "selection"]
    means = found.summary.filter(selection="val_f1", metric="f1").select("training.lr", "mean", "n")
    assert means.rows() == [(0.01, pytest.approx(0.84), 1), (0.001, pytest.approx(0.80), 1)]
    [row] = found.claims.iter_rows(named=True)
    assert row["estimate"] == pytest.approx(0.80 - 0.84)


def test_rules_are_compared_over_seeds_not_over_runs():
    selected = pl.DataFrame(
        {
            "seed": [0] * 4 + [1] * 4,
            "selection": "last",
            "f1": [0.05, 0.8, 0.9, 0.9, 0.6, 0.7, 0.9, NAN],
            "regret": [0.5, 0.1, 0.0, 0.0, 0.3, 0.1, 0.0, 0.0],
            "verdict": ["selection_artefact"] + ["healthy"] * 7,
        }
    )
    settings = tiny(selection={"rules": ["last"], "default": "last"}).selection
    [row] = summary.compare_rules(selected, settings).iter_rows(named=True)
    assert (row["n_seeds"], row["n_runs"], row["below"], row["artefacts"]) == (2, 8, 2, 1)
    assert row["regret"] == pytest.approx(1.0 / 8)
    assert row["regret_low"] <= 0.1 <= 0.15 <= row["regret_high"], "of the two seeds' means, 0.15 and 0.1"


def test_rules_are_compared_by_name_with_their_validation_set():
    shares = {"data__validation": [0.2, 0.1]}
    nested = {"rule": "val_f1", "validation": 0.1}
    asked = experiment(**shares, selection={"rules": ["val_f1", nested], "default": nested, "patience": 4})
    runs = hand_made().with_columns(pl.col("val_oracle_f1_decision").alias("val@0.1_oracle_f1_decision"))
    found = summary.tables(runs, asked)
    assert found.rules["selection"].to_list() == ["val_f1", "val_f1 on 10 %"]
    assert found.rules.select("rule", "validation").rows() == [("val_f1", None), ("val_f1", 0.1)]
    assert found.rules["regret"][0] == found.rules["regret"][1], "both read the same numbers here"


def test_without_labels_what_needs_them_is_left_out():
    label_free = hand_made().select(pl.exclude("^(test|val)_oracle_.*$")).with_columns(val_proxy_pu_auc=pl.lit(0.5))
    asked = experiment(selection={"rules": ["val_f1", "pu_auc", "last"], "default": "pu_auc", "patience": 4})
    found = summary.tables(label_free, asked)
    assert found.selected["selection"].unique(maintain_order=True).to_list() == ["pu_auc", "last"]
    assert not {"f1", "regret", "verdict", "explanation"} & {*found.selected.columns}
    assert (found.verdicts.height, found.rules.height) == (0, 0)
    metrics = found.summary["metric"].unique(maintain_order=True).to_list()
    assert metrics == ["predicted_positive", "epoch", "epochs_run", "score_mean", "score_sd", "proxy_pu_auc"]


def test_without_labels_verdicts_are_of_what_p_and_u_tell():
    told = {"val_proxy_pu_auc": 0.9, "val_unlabeled_positive": 0.4, "val_unlabeled_mean": 0.4}
    told |= {"val_unlabeled_sd": 0.3, "val_given_prior": 0.4}
    runs = hand_made([("pudra", 4), ("pudra", 5)]).select(pl.exclude("^(test|val)_oracle_.*$"))
    shifted = pl.when(pl.col("seed") == 5).then(0.9).otherwise(pl.col("val_unlabeled_positive"))
    runs = runs.with_columns(**{name: pl.lit(value) for name, value in told.items()})
    runs = runs.with_columns(val_unlabeled_positive=shifted, val_score_mean=pl.lit(0.9))
    asked = experiment(methods=["pudra"], seeds=2, selection={"rules": ["last"], "default": "last"})
    found = summary.tables(runs, asked)
    assert found.selected["verdict"].to_list() == ["healthy", "prior_mismatch"]
    judged = row(found.verdicts, selection="last")
    assert (judged["failing"], judged["n"]) == (1, 2)
    assert row(found.summary, metric="unlabeled_positive")["mean"] == pytest.approx(0.65)
    assert row(found.summary, metric="score_mean")["mean"] == pytest.approx(0.4), "of the test rows, and once"
    [method] = analyze(runs, asked)
    assert method.rows[0].judged.failing.occurred == 1


def test_kinds_without_rules_are_judged_as_recorded_and_share_the_tables():
    asked = parse({"kind": "guided", "teachers": ["plain"], "sees": ["all"], "filters": ["low"], "seeds": 3})
    rows = [
        {"run_id": f"{method} {seed}", "dataset": "digits", "method": method, "teacher": teacher, "sees": sees}
        | {"seed": seed, "epoch": epoch, "auc": auc - 0.1 * (epoch == 1), "f1": 0.9, "kept": None}
        | {"verdict": "inverted" if auc < 0.2 else "healthy", "path": [1.0]}
        for method, teacher, sees in (("none", None, None), ("low", "plain", "all"))
        for seed, auc in enumerate((0.95, 0.9, 0.1) if method == "low" else (0.95, 0.9, 0.92))
        for epoch in (1, 2)
    ]
    found = summary.tables(pl.DataFrame(rows), asked)
    assert found.selected.columns[:6] == ["dataset", "method", "teacher", "sees", "seed", "selection"]
    assert "path" not in found.selected.columns
    assert found.selected["auc"].to_list() == [0.95, 0.9, 0.92, 0.95, 0.9, 0.1], "the last epoch of every run"
    share = row(found.summary, method="low", metric="inverted")
    assert (share["n"], share["count"], share["mean"], share["teacher"]) == (3, 1, pytest.approx(1 / 3), "plain")
    assert (share["ci_low"], share["ci_high"]) == pytest.approx(wilson(1, 3))
    assert "kept" not in found.summary["metric"], "nothing was recorded there"
    mean = row(found.summary, method="none", metric="auc")
    assert (mean["teacher"], mean["n"], mean["mean"]) == (None, 3, pytest.approx(0.95 / 3 + 0.9 / 3 + 0.92 / 3))
    judged = row(found.verdicts, method="low")
    assert (judged["verdict"], judged["failing"], judged["n"], judged["selection"]) == ("inverted", 1, 3, "end")
    assert (found.rules.height, found.claims.height) == (0, 0)
