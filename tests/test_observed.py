"""Where only observed labels are known: training sees the same, and all that needs true labels is left out."""

import functools

import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from problems import jitted_train, prepared, tiny

from jaxpu import api, config, data, train
from jaxpu.config import ConfigError, DataConfig
from jaxpu.data import Dataset
from jaxpu.methods.objective import Objective, objective_of
from jaxpu.selection import RuleChoice
from jaxpu.train.job import static_part, traced_part

DRAWN = data.load("gaussians", n=150, d=3, separation=3.0)
S = ((DRAWN.truth == 1) & (np.random.default_rng(0).random(150) < 0.4)).astype(np.int8)
RULES = {"selection__rules": ["pu_accuracy", "pu_auc", "last"], "selection__default": "pu_accuracy"}
SETTINGS = {"model": {"name": "linear"}, "training__lr": 0.05, "selection__stop": False, **RULES}


def observed(y: bool) -> Dataset:
    """The same rows, their true labels known or not."""
    return Dataset.from_arrays(DRAWN.x, DRAWN.truth if y else None, S, name="own")


@functools.cache
def history(y: bool, filler: int = 0) -> dict[str, np.ndarray]:
    """A run on observed labels, as a sweep would train it; ``filler`` stands where nobody knows the true labels."""
    [cell] = config.expand(tiny(methods=["vpudra_softlabel"], **SETTINGS))
    settings, dataset = DataConfig(prior=0.25, validation=(0.2,)), observed(y)
    prepared, shared = data.prepare(settings, dataset, 0), data.arrays(settings, dataset)
    labels = jnp.asarray(shared.y, jnp.int32) + filler
    arrays = train.Data(jnp.asarray(shared.x), labels, *map(jnp.asarray, prepared.rows))
    static = train.Config(
        cell.model,
        4,
        48,
        prepared.val_sizes,
        objective_of([cell.method]),
        rules=cell.selection.rules,
        truth=shared.truth,
    )
    run = jitted_train(train.key_of(0), arrays, static, traced_part(cell, prepared))
    return {name: np.asarray(column) for name, column in run.history.items()}


@pytest.mark.slow
def test_a_run_is_the_same_whether_the_true_labels_are_known_or_not():
    known, unknown, otherwise = history(True), history(False), history(False, filler=3)
    assert set(unknown) < set(known)
    for name, column in unknown.items():
        np.testing.assert_array_equal(column, otherwise[name], err_msg=name)  # what stands in place of y is not read
        # another program, which measures more: equal up to the rounding of float32
        np.testing.assert_allclose(column, known[name], rtol=1e-6, atol=1e-6, err_msg=name)
        assert np.isfinite(column).any(), name


@pytest.mark.slow
def test_what_needs_true_labels_is_left_out_and_the_rest_is_there():
    known, unknown = history(True), history(False)
    left_out = set(known) - set(unknown)
    assert {"train_p_positive", "train_p_negative", "test_oracle_f1_decision", "val_oracle_auc"} <= left_out
    assert all("oracle" in name or name in ("train_p_positive", "train_p_negative") for name in left_out)
    proxies = {f"{part}_proxy_{name}" for part in ("train", "val") for name in ("nn_risk", "pu_accuracy", "pu_auc")}
    assert proxies | {"test_predicted_positive", "val_score_sd", "train_p_labeled"} <= set(unknown)


def test_p_is_what_is_labeled_and_u_the_others():
    dataset = observed(False)
    by_scenario = {}
    for scenario in ("single_set", "case_control", "single_set_overlap"):
        rows = data.prepare(DataConfig(prior=0.25, test=0, scenario=scenario), dataset, 3).rows
        n, train_rows = int(rows.n_labeled), rows.train
        assert (S[train_rows[:n]] == 1).all()
        assert (S[train_rows[n:]] == 0).all() or scenario == "single_set_overlap"
        held = rows.val[rows.val_pu]
        assert (S[held[: rows.n_val_labeled]] == 1).all()
        assert len(rows.test) == 0
        assert set(train_rows) | set(rows.val) == set(range(150))
        by_scenario[scenario] = train_rows
    np.testing.assert_array_equal(by_scenario["single_set"], by_scenario["case_control"])
    assert len(by_scenario["single_set_overlap"]) == len(by_scenario["single_set"]) + n


def test_parts_are_stratified_by_what_is_observed():
    counts = set()
    for seed in range(20):
        rows = data.prepare(DataConfig(prior=0.25, test=0.2, validation=(0.2,)), observed(False), seed).rows
        counts.add((int(rows.n_labeled), int(rows.n_val_labeled), int(S[rows.test].sum())))
    assert len(counts) == 1
    share = S.mean()
    assert abs(S[rows.test].mean() - share) < 1 / len(rows.test)
    assert abs(int(rows.n_val_labeled) / len(rows.val) - share) < 1 / len(rows.val)


def test_the_prior_is_the_number_given_or_counted_where_it_can_be():
    unknown, known = observed(False), observed(True)
    given = DataConfig(prior=0.25, prior_scale=2.0, test=0)
    assert data.prepare(given, unknown, 0).prior == 0.5
    prepared = data.prepare(DataConfig(), known, 0)
    unlabeled = prepared.rows.train[prepared.rows.n_labeled :]
    assert prepared.prior == pytest.approx(DRAWN.truth[unlabeled].mean())
    assert data.prepare(DataConfig(prior="all"), known, 0).prior == pytest.approx(
        DRAWN.truth[prepared.rows.train].mean()
    )
    for prior in ("unlabeled", "all"):
        with pytest.raises(ConfigError, match=r"data\.prior: .* counts true labels, and own has observed ones only"):
            data.prepare(DataConfig(prior=prior), unknown, 0)


def test_what_needs_true_labels_is_refused_with_the_choices():
    with pytest.raises(ConfigError, match=r"data\.imbalance: thinning classes out needs true labels"):
        data.prepare(DataConfig(prior=0.25, imbalance=2.0), observed(False), 0)
    with pytest.raises(ConfigError, match="kind: own has two classes"):
        data.prepare(DataConfig(prior=0.25, task="multiclass"), observed(False), 0)
    with pytest.raises(ValueError, match="own has observed labels only, and this needs true ones"):
        observed(False).truth  # noqa: B018, reading it is what is refused
    few = Dataset.from_arrays(DRAWN.x, s=np.arange(150) < 2)
    with pytest.raises(ConfigError, match="no labeled row among 15 of a part; make validation larger"):
        data.prepare(DataConfig(prior=0.25, test=0), few, 0)
    for rule in (RuleChoice("val_f1"), RuleChoice("val_accuracy", 0.2), RuleChoice("val_f1_rescue")):
        with pytest.raises(
            ValueError, match=rf"{rule.name}.*choose from last, pu_accuracy, pu_auc, nn_risk, variational"
        ):
            train.Config(config.ModelConfig(), 1, 1, (("val", 1),), Objective(()), rules=(rule,), truth=False)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("observed") / "mine.parquet"
    seen = np.where(S == 1, "labeled", "")
    pl.DataFrame({**{f"x{i}": DRAWN.x[:, i] for i in range(3)}, "seen": seen}).write_parquet(path)
    return str(path)


def own(table: str, **changes) -> config.Experiment:
    return tiny(data={"file": table, "observed": "seen", "prior": 0.25, "validation": [0.2]}, **SETTINGS | changes)


def test_a_sweep_of_observed_labels(table, tmp_path):
    outcome = api.sweep(own(table, seeds=2), folder=tmp_path)
    assert not outcome.failures
    assert outcome.runs["dataset"].unique().to_list() == ["mine"]
    assert not [name for name in outcome.runs.columns if "oracle" in name or name.startswith("test_")]
    assert outcome.runs.group_by("seed").len()["len"].to_list() == [4, 4]
    alone = data.load(own(table).data)
    np.testing.assert_array_equal(alone.s, S)


def test_default_rules_and_test_rows_are_those_that_need_no_true_labels(table):
    observed = {"file": table, "observed": "seen", "prior": 0.25}
    experiment = config.parse({"data": observed, "grid": {"training.lr": [1e-2, 1e-3]}})
    assert experiment.rules == ("pu_accuracy", "last")
    assert experiment.data.test == 0
    assert {cell.selection for cell in config.expand(experiment)} == {experiment.selection}
    assert config.parse(config.to_dict(experiment)) == experiment
    assert "val_f1" in config.parse({"data": {"file": table, "label": "seen"}}).rules


def test_a_sweep_refuses_what_needs_true_labels_before_it_trains(table, tmp_path):
    for changes, said in [
        (
            {"selection__rules": ["pu_accuracy", "val_f1"]},
            r"selection\.rules: selection rule 'val_f1' needs true labels",
        ),
        ({"methods": ["pn"]}, r"methods: 'pn' learns from true labels"),
    ]:
        with pytest.raises(ConfigError, match=said):
            api.sweep(own(table, **changes), folder=tmp_path / "none")
        assert not (tmp_path / "none").exists()
    [cell] = config.expand(own(table))
    assert static_part(cell, data.load(cell.data), prepared(cell.data, 0)).truth is False


@pytest.mark.slow
def test_the_prior_can_be_estimated_from_p_and_u_of_the_training_rows():
    found = {}
    for scenario in ("single_set", "single_set_overlap"):
        settings = DataConfig(prior="estimate", scenario=scenario, validation=(0.2,))
        known, unknown = (data.prepare(settings, observed(y), 0) for y in (True, False))
        assert known.prior == unknown.prior, "true labels are not read"
        assert known.prior == data.prepare(settings, observed(True), 0).prior
        rows = known.rows
        in_u = rows.train[int(rows.n_labeled) :]
        assert abs(known.prior - DRAWN.truth[in_u].mean()) < 0.12
        found[scenario] = known.prior, len(in_u)
    (alone, n), (both, m) = found["single_set"], found["single_set_overlap"]
    assert both * m == pytest.approx(alone * n + (m - n)), "the labeled rows of U are positive"
    assert config.digest(DataConfig()) == config.digest(DataConfig(prior="unlabeled"))
