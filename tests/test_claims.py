"""Claims: what the interval decides, what is paired with what, and errors before an hour of training."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import tiny
from scipy import stats as scipy_stats

from jaxpu import config
from jaxpu.analysis import claims
from jaxpu.analysis.check import check
from jaxpu.analysis.effects import measure
from jaxpu.analysis.protocol import changed, protocol
from jaxpu.analysis.stats import paired_difference, paired_shares
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
        ({"at_least": 0.052}, "undecided"),
        ({"at_least": 0.1}, "refuted"),
        ({"at_most": 0.1}, "supported"),
        ({"at_most": 0.03}, "refuted"),
        ({"within": 0.1}, "supported"),
        ({"within": 0.05}, "undecided"),
        ({"within": 0.02}, "refuted"),
    ],
)
@pytest.mark.parametrize("statistic", ["mean", "median", None])
def test_a_real_effect_smaller_than_what_was_claimed_refutes_the_claim(bound, verdict, statistic):
    [row] = claims.judge([claim(**bound, statistic=statistic)], PAIR, "val_f1").iter_rows(named=True)
    difference = 0.05 + noise(0) - noise(1)
    assert row["verdict"] == verdict
    assert row["statistic"] == statistic or (statistic is None and row["statistic"] == "median"), "declared for F1"
    assert row["estimate"] == pytest.approx(getattr(np, row["statistic"])(difference))
    assert (row["mean"], row["median"]) == pytest.approx((difference.mean(), np.median(difference)))
    assert row["n"] == SEEDS
    limit = next(iter(bound.values()))
    wanted = paired_difference(difference, np.zeros(SEEDS), limit, statistic=row["statistic"])
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(tuple(wanted.interval))
    other = paired_difference(difference, np.zeros(SEEDS), -limit, statistic=row["statistic"]).p_value
    assert row["p"] == pytest.approx(max(wanted.p_value, other) if "within" in bound else wanted.p_value)


def test_equivalence_is_two_one_sided_tests():
    rng = np.random.default_rng(0)
    values = rng.normal(0.004, 0.01, SEEDS)
    frame = selected({("vpu", (), "val_f1"): 0.8 + values, ("pudra", (), "val_f1"): np.full(SEEDS, 0.8)})
    effect = measure(claim(within=0.01, statistic="mean"), frame, "val_f1")
    skew = scipy_stats.skew(values, bias=False) * (1 / (6 * np.sqrt(SEEDS)) + 4.5 / SEEDS)

    def one_sided(bound, side):  # the statistic without what skewness moves it out by, from its quadratic
        t = side * (values.mean() - bound) / scipy_stats.sem(values)
        by = max(-side * skew, 0)
        roots = np.roots([2 * by, 1, by - t]) if by else [t]
        return scipy_stats.t.sf(max(np.real(roots)), SEEDS - 1)

    assert effect.supports == pytest.approx(2 * max(one_sided(-0.01, 1), one_sided(0.01, -1)))
    assert claims.decide(effect, effect.p_value) == "supported"
    same = selected({("vpu", (), "val_f1"): np.full(SEEDS, 0.8), ("pudra", (), "val_f1"): np.full(SEEDS, 0.8)})
    assert claims.judge([claim(within=0.01)], same, "val_f1")["verdict"].to_list() == ["supported"]


def test_shares_are_exact_binomials():
    f1 = np.full(SEEDS, 0.9)
    f1[:3], f1[3] = 0.02, np.nan
    frame = selected({("vpu", (), "val_f1"): f1})
    low = claim(minus=None, below=0.1, at_least=0.5)
    [row] = claims.judge([low], frame, "val_f1").iter_rows(named=True)
    test = scipy_stats.binomtest(4, SEEDS, 0.5)
    ends = test.proportion_ci(method="exact")
    assert row["estimate"] == 0.1, "a run without an F1 counts"
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((ends.low, ends.high))
    assert row["p"] == pytest.approx(2 * scipy_stats.binomtest(4, SEEDS, 0.5, "less").pvalue)
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
    assert row["estimate"] == pytest.approx(np.median(0.6 + (noise(0) + noise(1)) / 2))
    one = claim(
        of=Which(where={"method.anchor": "0.0", "data.c": 0.5}), minus=Which(where={"method.anchor": 1}), at_most=0.0
    )
    [row] = claims.judge([one], frame, "val_f1").iter_rows(named=True)
    assert row["estimate"] == pytest.approx(np.median(-0.2 + noise(1) - noise(2)))
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


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.8, 0.82, 0.9]), min_size=12, max_size=12),
    st.sampled_from([0.0, 0.1, 0.5, 0.8]),
    st.sampled_from(["mean", "median"]),
)
def test_a_claim_and_its_opposite_never_both_hold(values, bound, statistic):
    frame = selected({("vpu", (), "val_f1"): np.array(values)})
    asked = [claim(minus=None, statistic=statistic, **{side: bound}) for side in ("at_least", "at_most")]
    one, other = (measure(each, frame, "val_f1") for each in asked)
    assert (one.supports, one.refutes) == pytest.approx((other.refutes, other.supports))
    verdicts = {str(claims.decide(effect, effect.p_value)) for effect in (one, other)}
    assert verdicts in ({"supported", "refuted"}, {"undecided"})


def test_a_pooled_share_has_one_number_a_seed():
    """Six cells of a seed that all say the same are one observation, not six."""
    f1 = np.where(np.arange(SEEDS) < 24, 0.0, 0.9)
    cells = {("vpu", (("data.c", c),), "val_f1"): f1 for c in range(6)}
    [row] = claims.judge([claim(minus=None, below=0.1, at_least=0.5)], selected(cells), "val_f1").iter_rows(named=True)
    assert row["n"] == SEEDS
    assert row["estimate"] == 24 / SEEDS
    assert row["verdict"] == "undecided", "144 of 240 independent runs would have supported it"
    assert row["p"] == pytest.approx(scipy_stats.binomtest(24, SEEDS, 0.5).pvalue, rel=0.02)
    nothing = selected({key: np.full(32, 0.9) for key in cells})
    [row] = claims.judge([claim(minus=None, below=0.1, at_least=0.05)], nothing, "val_f1").iter_rows(named=True)
    assert row["ci_high"] == pytest.approx(1 - 0.025 ** (1 / 32))
    assert row["verdict"] == "undecided", "0 of 32 seeds cannot tell 5 %"


def test_somewhere_is_about_the_best_cell():
    def frame(best):
        shifts = (0.0, 0.0, best, -0.1)
        values = {("vpu", (("data.c", c),), "val_f1"): 0.8 + d + noise(c) for c, d in enumerate(shifts)}
        return selected(values | {("pudra", (("data.c", c),), "val_f1"): 0.8 + noise(c + 9) for c in range(4)})

    one = claim(somewhere=True, at_least=0.03)
    [row] = claims.judge([one], frame(0.08), "val_f1", grid_columns=["data.c"]).iter_rows(named=True)
    cells = [frame(0.08).filter(pl.col("data.c") == c) for c in range(4)]
    alone = [measure(claim(at_least=0.03), cell, "val_f1") for cell in cells]
    assert row["verdict"] == "supported"
    assert row["p"] == pytest.approx(4 * alone[2].supports)
    assert row["estimate"] == alone[2].estimate
    assert row["ci_low"] < alone[2].interval.low, "for all cells at once"
    assert row["question"].startswith("median difference of f1, best cell: vpu by val_f1 minus pudra")
    average = claims.judge([claim(at_least=0.03)], frame(0.08), "val_f1", grid_columns=["data.c"])
    assert average["verdict"].to_list() == ["refuted"], "an overall mean does not test it"
    none = claims.judge([claim(somewhere=True, at_least=0.05)], frame(0.0), "val_f1", grid_columns=["data.c"])
    assert none["verdict"].to_list() == ["refuted"]
    assert none["ci_high"][0] == pytest.approx(max(
        measure(claim(at_least=0.05), frame(0.0).filter(pl.col("data.c") == c), "val_f1").interval.high
        for c in range(4)
    ))  # fmt: skip
    mirrored = claim(of=Which(method="pudra"), minus=Which(method="vpu"), somewhere=True, at_most=-0.03)
    [back] = claims.judge([mirrored], frame(0.08), "val_f1", grid_columns=["data.c"]).iter_rows(named=True)
    assert (back["p"], back["ci_low"], back["ci_high"]) == pytest.approx((row["p"], -row["ci_high"], -row["ci_low"]))


def test_where_mean_and_median_disagree_the_table_says_so():
    rare = np.where(np.arange(SEEDS) < 2, 0.0, 0.835)
    verdicts = {("vpu", seed): "all_negative" for seed in (0, 1)}
    frame = selected({("vpu", (), "last"): rare, ("pudra", (), "last"): np.full(SEEDS, 0.8)}, verdicts)
    median, mean = claims.judge(
        [claim(at_least=0.01), claim(at_least=0.01, statistic="mean")], frame, "last"
    ).iter_rows(named=True)
    assert median["verdict"] == "supported"
    assert "mean (-0.00675) and median (0.035) lie on different sides of the bound" in median["note"]
    assert mean["estimate"] == pytest.approx(-0.00675)
    assert "heavy-tailed" in mean["note"]
    for row in (median, mean):
        assert (row["failing_of"], row["failing_minus"]) == (2 / SEEDS, 0.0)


def test_a_verdict_that_flips_with_the_rule_is_marked():
    values = {("vpu", (), "last"): 0.82 + noise(0, 0.002), ("vpu", (), "val_f1"): 0.8 + noise(1, 0.002)}
    values |= {("pudra", (), rule): np.full(SEEDS, 0.8) for rule in ("last", "val_f1")}
    asked = [claim(at_least=0.01), claim(of=Which(method="vpu", selection="val_f1"),
                                         minus=Which(method="vpu", selection="last"), at_most=0.1)]  # fmt: skip
    first, second = claims.judge(asked, selected(values), "last").iter_rows(named=True)
    assert (first["rule"], first["verdict"], first["other_rules"], first["flips"]) == (
        "last", "supported", "val_f1: refuted", True,
    )  # fmt: skip
    assert (second["rule"], second["other_rules"], second["flips"]) == ("val_f1 against last", "", False)


def test_protocol_and_changes_stand_beside_a_verdict():
    one = {"claim": "c", "of": {"where": {"training.lr": 1e-3}}, "at_least": 0.1, "item": "000-13"}
    grid = {"training.lr": [1e-3, 3e-3]}
    then = tiny(grid=grid, claims=[one])
    wanted = {
        "network": "mlp " + "-".join(map(str, then.model.hidden)),
        "lr": "0.001",
        "epochs": f"{then.training.epochs}",
    }
    found = protocol(then.claims[0], then)
    assert {name: found[name] for name in wanted} == wanted
    recorded = config.claims_digest(then)
    for changes, said in (
        ({}, ""),
        ({"item": "000-14", "source": "x"}, ""),
        ({"claim": "in other words"}, ""),
        ({"at_least": 0.2}, "changed after results existed"),
        ({"of": {}}, "changed after results existed"),
        ({"claim": "another", "at_least": 0.3}, "added after results existed"),
    ):
        assert changed(tiny(grid=grid, claims=[one | changes]), recorded) == [said]
    assert changed(tiny(grid=grid, claims=[one], seeds=then.seeds + 1), recorded) == ["changed after results existed"]
    assert changed(then, None) == [""]
    rows = {("vpu", (("training.lr", 1e-3),), "val_f1"): np.full(SEEDS, 0.9)}
    judged = claims.judge(then.claims, selected(rows), "val_f1", protocols=[found], changes=["added"])
    assert judged.select("item", "lr", "changed").row(0) == ("000-13", "0.001", "added")
    with pytest.raises(ConfigError, match="made twice"):
        config.claims_digest(tiny(grid=grid, claims=[one, one]))


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
        ({"at_least": 0.1, "statistic": "mean", "below": 0.1}, "statistic has no effect"),
        ({"at_least": 0.1, "statistic": "mode"}, "statistic.*'mean' or 'median'"),
        ({"within": 0.1}, "needs minus"),
        ({"within": 0, "minus": {}}, "within.*greater than 0"),
        ({"within": 0.1, "minus": {}, "somewhere": True}, "leave one out"),
        ({"below": 0.1, "at_most": 1.5, "minus": {}}, "differ by less than 1"),
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


def test_the_best_cell_is_one_that_both_sides_have():
    rows = [{"data.c": c, "training.epochs": epochs} for c, epochs in ((0.1, 2), (0.3, 2), (0.3, 3))]
    sides = {"of": {"where": {"data.c": 0.3}}, "minus": {"where": {"data.c": 0.1}}}
    one = {"claim": "c", "at_least": 0, "somewhere": True, **sides}
    config.check_claims(tiny(grid=rows[:2], claims=[one]))
    with pytest.raises(ConfigError, match="both sides need the same cells"):
        config.check_claims(tiny(grid=rows, claims=[one]))


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
        assert claims.question(one, "median", "end").startswith("median f1: initial_p=0.5 by end")


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
    assert row["verdict"] == "undecided", f"0 of {SEEDS} against 0 of {SEEDS} may still differ by 0.05"
    assert row["ci_low"] < 0 < row["ci_high"]
