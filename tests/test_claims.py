"""Claims: what the interval decides, what is paired with what, and errors before an hour of training."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import tiny
from scipy import stats as scipy_stats

from jaxpu import config
from jaxpu.analysis import claims
from jaxpu.analysis.check import check
from jaxpu.analysis.stats import Interval, paired_shares
from jaxpu.config import Claim, ConfigError, Which

SEEDS = 40


def selected(values: dict[tuple[str, tuple, str], np.ndarray], verdicts: dict | None = None) -> pl.DataFrame:
    """Frames as :func:`jaxpu.analysis.tables` makes them, for f1 by (method, point, rule)."""
    rows = []
    for (method, point, rule), f1 in values.items():
        for seed, value in enumerate(f1):
            verdict = (verdicts or {}).get((method, seed), "healthy")
            row = {"dataset": "gaussians", "method": method, **dict(point), "seed": seed, "selection": rule}
            rows.append(row | {"f1": float(value), "verdict": verdict})
    return pl.DataFrame(rows)


def noise(seed: int, sd: float = 0.02) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, sd, SEEDS)


def claim(**changes) -> Claim:
    given = {"claim": "the anchor helps", "of": Which(method="vpu"), "minus": Which(method="pudra")}
    return Claim(**(given | changes))


PAIR = selected({("vpu", (), "val_f1"): 0.80 + noise(0), ("pudra", (), "val_f1"): 0.75 + noise(1)})


@pytest.mark.parametrize(
    ("bound", "verdict"),
    [
        ({"at_least": 0.03}, "supported"),
        ({"at_least": 0.052}, "not supported"),
        ({"at_least": 0.1}, "refuted"),
        ({"at_most": 0.1}, "supported"),
        ({"at_most": 0.03}, "refuted"),
    ],
)
def test_a_real_effect_smaller_than_what_was_claimed_refutes_the_claim(bound, verdict):
    [row] = claims.judge([claim(**bound)], PAIR, "val_f1").iter_rows(named=True)
    difference = 0.05 + noise(0) - noise(1)
    assert row["verdict"] == verdict
    assert row["estimate"] == pytest.approx(difference.mean())
    assert row["n"] == SEEDS
    limit = next(iter(bound.values()))
    assert row["p"] == pytest.approx(scipy_stats.wilcoxon(difference - limit).pvalue)
    ends = scipy_stats.bootstrap(
        (difference,), np.mean, n_resamples=4999, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((ends.low, ends.high), abs=1e-6)


def test_shares_are_wilson_and_binomial():
    f1 = np.full(SEEDS, 0.9)
    f1[:3], f1[3] = 0.02, np.nan
    frame = selected({("vpu", (), "val_f1"): f1})
    low = claim(minus=None, below=0.1, at_least=0.5)
    [row] = claims.judge([low], frame, "val_f1").iter_rows(named=True)
    test = scipy_stats.binomtest(4, SEEDS, 0.5)
    ends = test.proportion_ci(method="wilson")
    assert row["estimate"] == 0.1, "a run without an F1 counts"
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((ends.low, ends.high))
    assert row["p"] == pytest.approx(test.pvalue)
    assert row["verdict"] == "refuted"


def test_shares_of_verdicts():
    verdicts = {("vpu", seed): "selection_artefact" for seed in range(30)}
    frame = selected({("vpu", (), "val_f1"): np.full(SEEDS, 0.5)}, verdicts)
    artefact = claim(minus=None, verdicts=("selection_artefact", "constant"), at_least=0.5)
    [row] = claims.judge([artefact], frame, "val_f1").iter_rows(named=True)
    assert (row["estimate"], row["verdict"]) == (0.75, "supported")
    assert row["question"] == "share of runs that are selection_artefact or constant: vpu by val_f1"


def test_cells_are_averaged_within_a_seed_so_that_n_counts_seeds():
    frame = selected(
        {
            ("vpu", (("data.c", 0.1), ("method.anchor", 0.0)), "val_f1"): 0.5 + noise(0),
            ("vpu", (("data.c", 0.5), ("method.anchor", 0.0)), "val_f1"): 0.7 + noise(1),
            ("vpu", (("data.c", 0.1), ("method.anchor", 1.0)), "val_f1"): 0.9 + noise(2),
        }
    )
    both = claim(of=Which(where={"method.anchor": 0}), minus=None, at_least=0.4)
    [row] = claims.judge([both], frame, "val_f1").iter_rows(named=True)
    assert row["n"] == SEEDS
    assert row["estimate"] == pytest.approx((0.6 + (noise(0) + noise(1)) / 2).mean())
    one = claim(
        of=Which(where={"method.anchor": "0.0", "data.c": 0.5}), minus=Which(where={"method.anchor": 1}), at_most=0.0
    )
    [row] = claims.judge([one], frame, "val_f1").iter_rows(named=True)
    assert row["estimate"] == pytest.approx((-0.2 + noise(1) - noise(2)).mean())
    assert row["verdict"] == "supported"


def test_values_are_paired_by_seed_whatever_the_order():
    shuffled = PAIR.sample(fraction=1.0, shuffle=True, seed=3)
    one, other = (claims.judge([claim(at_least=0.03)], frame, "val_f1") for frame in (PAIR, shuffled))
    assert one.equals(other)
    with pytest.raises(ConfigError, match="same seeds"):
        claims.judge([claim(at_least=0.0)], PAIR.filter((pl.col("method") == "vpu") | (pl.col("seed") > 3)), "val_f1")


def test_many_claims_are_corrected_for_each_other():
    frame = selected({("vpu", (), "val_f1"): 0.8 + noise(0), ("pudra", (), "val_f1"): 0.793 + noise(1)})
    alone = claims.judge([claim(at_least=0.0)], frame, "val_f1")
    many = claims.judge([claim(at_least=0.0)] * 10, frame, "val_f1")
    assert many["p"][0] == alone["p"][0] == alone["p_holm"][0]
    assert many["p_holm"][0] == pytest.approx(min(10 * many["p"][0], 1.0))


@given(st.floats(-1, 1), st.floats(0, 0.5), st.floats(0, 1), st.floats(-1, 1), st.sampled_from(["at_least", "at_most"]))
def test_a_claim_and_its_opposite_never_both_hold(middle, half, p, bound, side):
    effect = claims.Effect(middle, Interval(middle - half, middle + half), p, 30)
    other = {"at_least": "at_most", "at_most": "at_least"}[side]
    verdicts = {claims.decide(effect, p, claim(**{which: bound})) for which in (side, other)}
    if half > 0:
        assert verdicts not in ({"supported"}, {"refuted"})
    if p >= 0.05:
        assert verdicts == {"not supported"}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "at_least or at_most"),
        ({"at_least": 0.1, "at_most": 0.2}, "at_least or at_most"),
        ({"at_least": 0.1, "below": 0.1, "verdicts": ["constant"]}, "not by both"),
        ({"at_least": 0, "below": 0.1}, "strictly between 0 and 1, got 0"),
        ({"at_least": float("nan")}, "at_least.*finite"),
        ({"at_least": True}, "at_least: expected a number, got true"),
        ({"at_least": 0.1, "verdicts": ["constant"], "metric": "regret"}, "no effect in a claim that counts verdicts"),
        ({"at_least": 0.1, "of": {"cell": "lr=0.1"}}, "cell.*where"),
        ({"at_least": 0.1, "of": {"methd": "vpu"}}, "methd"),
    ],
)
def test_claims_that_cannot_be_tested_are_refused(raw, message):
    with pytest.raises(ConfigError, match=message):
        tiny(claims=[{"claim": "c", "of": {}} | raw])


GRID = {"data.c": [0.1, 0.3], "training.initial_p": ["prior", 0.5]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"of": {"method": "vpudra_fixd"}}, r"unknown method 'vpudra_fixd' \(did you mean 'vpudra_fixed'\?\)"),
        ({"of": {"selection": "last"}}, "unknown selection rule 'last'.*choose from val_f1"),
        ({"of": {"selection": {"rule": "val_f1", "validation": 0.2}}}, "unknown selection rule 'val_f1 on 20 %'"),
        ({"of": {"where": {"data.c": 0.2}}}, r"no cell has data.c 0.2; there are \[0.1, 0.3\]"),
        ({"of": {"where": {"c": 0.1}}}, "unknown grid column 'c'; choose from data.c"),
        ({"of": {"where": {"training.lr": 0.01}}}, "unknown grid column 'training.lr'"),
        ({"of": {"dataset": "spambase"}}, "unknown dataset"),
        ({"minus": {"where": {"data.c": 0.2}}}, "no cell has data.c"),
        ({"verdicts": ["foo"]}, "unknown verdict 'foo'.*selection_artefact"),
        ({"metric": "f2"}, r"unknown metric 'f2'.*test_oracle_auc"),
        ({"metric": "val_oracle_f1"}, "unknown metric 'val_oracle_f1'"),
    ],
)
def test_claims_about_what_there_is_none_of_are_refused_before_training(changes, message):
    bound = {"at_least": 0.5} if "verdicts" in changes else {"at_least": 0}
    with pytest.raises(ConfigError, match=message):
        check(tiny(grid=GRID, claims=[{"claim": "c", "of": {}} | changes | bound]))


@pytest.mark.parametrize(
    "changes",
    [
        {"of": {"where": {"data.c": "1e-1"}}},
        {"of": {"where": {"data.c": 0.1, "training.initial_p": 0.5}, "dataset": "gaussians"}},
        {"of": {"selection": "val_f1"}, "metric": "test_oracle_auc"},
        {"of": {"where": {"data.c": 0.1}}, "minus": {"where": {"data.c": 0.3}}, "metric": "regret"},
        {"of": {}, "metric": "train_loss"},
    ],
)
def test_claims_about_what_there_will_be_are_taken(changes):
    check(tiny(grid=GRID, claims=[{"claim": "c", "at_least": 0} | changes]))


def test_in_rows_a_claim_is_of_a_combination_that_there_is_and_its_sides_have_the_same_seeds():
    rows = [{"data.c": 0.1, "training.epochs": 2, "seeds": 2}, {"data.c": 0.3, "training.epochs": 3}]

    def checked(of, minus=None):
        sides = {"of": {"where": of}} | ({"minus": {"where": minus}} if minus else {})
        config.check_claims(tiny(grid=rows, seeds=3, claims=[{"claim": "c", "at_least": 0, **sides}]))

    checked({"data.c": 0.3, "training.epochs": 3})
    with pytest.raises(ConfigError, match="no cell is all of"):
        checked({"data.c": 0.3, "training.epochs": 2})
    with pytest.raises(ConfigError, match="both sides need the same seeds"):
        checked({"data.c": 0.1}, {"data.c": 0.3})


def test_runs_without_a_setting_are_asked_for_by_null():
    points = ((("teacher", "plain"),), (("teacher", None),))
    frame = selected({("low", point, "end"): np.full(SEEDS, f1) for point, f1 in zip(points, (0.5, 0.9), strict=True)})
    one = claim(of=Which(where={"teacher": None}), minus=Which(where={"teacher": "plain"}), at_least=0.3)
    [row] = claims.judge([one], frame, "end").iter_rows(named=True)
    assert row["estimate"] == pytest.approx(0.4)


def test_a_column_of_text_is_matched_by_numbers_and_words():
    points = ((("training.initial_p", "prior"),), (("training.initial_p", "0.5"),))
    frame = selected({("vpu", point, "end"): np.full(SEEDS, f1) for point, f1 in zip(points, (0.5, 0.9), strict=True)})
    for wanted in (0.5, "0.5"):
        one = claim(of=Which(where={"training.initial_p": wanted}), minus=None, at_least=0.3)
        assert claims.judge([one], frame, "end")["estimate"].to_list() == pytest.approx([0.9])
        assert claims.question(one, "end").startswith("mean f1: initial_p=0.5 by end")


def test_a_claim_about_an_unknown_metric_or_verdict_names_the_choices():
    with pytest.raises(ConfigError, match=r"no metric 'f2'.*f1"):
        claims.judge([claim(metric="f2", at_least=0)], PAIR, "val_f1")
    with pytest.raises(ConfigError, match="no run matches"):
        claims.judge([claim(of=Which(method="nnpu"), at_least=0)], PAIR, "val_f1")


def test_differences_of_shares_are_tangos_and_no_event_is_no_certainty():
    low, fine = np.full(SEEDS, 0.02), np.full(SEEDS, 0.9)
    some = np.where(np.arange(SEEDS) < 12, 0.02, 0.9)
    frame = selected({("vpu", (), "val_f1"): some, ("pudra", (), "val_f1"): fine, ("nnpu", (), "val_f1"): low})

    def judged(minus, **bound):
        [row] = claims.judge(
            [claim(of=Which(method="vpu"), minus=Which(method=minus), below=0.1, **bound)], frame, "val_f1"
        ).iter_rows(named=True)
        return row

    row = judged("pudra", at_least=0.05)
    wanted = paired_shares((some < 0.1).astype(float), np.zeros(SEEDS), 0.05)
    assert (row["ci_low"], row["ci_high"], row["p"]) == pytest.approx((*wanted.interval, wanted.p_value))
    assert row["verdict"] == "supported"
    assert judged("nnpu", at_least=0.05)["verdict"] == "refuted"
    nothing = selected({("vpu", (), "val_f1"): fine, ("pudra", (), "val_f1"): fine})
    [row] = claims.judge([claim(below=0.1, at_least=0.05)], nothing, "val_f1").iter_rows(named=True)
    assert row["verdict"] == "not supported", f"0 of {SEEDS} against 0 of {SEEDS} may still differ by 0.05"
    assert row["ci_low"] < 0 < row["ci_high"]
