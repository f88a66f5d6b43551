"""One contract for everything that is registered: a new method, dataset or rule is covered by its name alone."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import LINEAR, first_cell, jitted_train, prepared, run_inputs, tiny

from jaxpu import config, models, train
from jaxpu.data import DATASETS, FETCHED, describe, load
from jaxpu.methods import METHODS, PENALTIES, RISKS, Schedule, objective, options_of, skips_without_positives
from jaxpu.methods import describe as describe_method
from jaxpu.selection import RULES, RuleChoice
from jaxpu.train import job

SETTINGS = LINEAR | {"data__c": 0.5}
ON_ROWS = [name for name, method in METHODS.items() if method.mixes != "cutmix"]
"""Methods that train on rows of any kind; cutmix is in test_mixed_labels."""


def is_missing(column: str, method: str) -> bool:
    """Whether the column says something that the method does not have."""
    m = METHODS[method]
    has = {"train_penalty": m.mixup or m.mixes != "none", "train_target": m.mixup}
    has["train_base"] = m.mixes == "none" or m.plain_weight > 0
    return not has.get(column, True)


def cell_of(method: str) -> config.Cell:
    return first_cell(tiny(methods=[method], **SETTINGS))


def inputs_of(method: str, seed: int = 0):
    """The inputs of a run, for the program that serves all presets of its structure."""
    structure = objective.structure_of(METHODS[method])
    alike = [other for other in METHODS.values() if objective.structure_of(other) == structure]
    return run_inputs(cell_of(method), seed, objective.objective_of(alike))


@functools.cache
def trained(method: str, seed: int = 0) -> train.Run:
    return jitted_train(*inputs_of(method, seed))


def start_of(method: str) -> models.Params:
    key, data, static, hyper = inputs_of(method)
    return train.init(key, data, static, hyper).params


def largest_change(before: models.Params, after: models.Params) -> float:
    return max(jax.tree.leaves(jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), before, after)))


def test_methods_share_one_program_for_each_way_to_draw_batches():
    experiment = tiny(methods=ON_ROWS, seeds=1, **SETTINGS)
    groups = job.jobs(experiment, job.runs(experiment))
    ways = {
        (m.mixup, m.batching, m.mixes, m.mixes == "none" or m.plain_weight > 0, m.memory)
        for m in (METHODS[n] for n in ON_ROWS)
    }
    found = [(group.static.objective, group.static.batching) for group in groups]
    assert {(one.mixup, batching, one.mixes, one.plain) for one, batching in found} == {way[:-1] for way in ways}
    assert len(groups) == len(ways)
    for group in groups:
        mine = {run.cell.method for run in group.runs}
        assert group.static.objective.branches == objective.branches_of(mine), "the risks that it uses, and no more"
        assert set(group.static.objective.penalties) == {method.penalty for method in mine if method.mixup}


OWN_PROGRAMS = ("p3mix_c", "p3mix_e", "lbe", "dist_pu", "cvir", "pn_regmixup")
"""Methods that share their program with none or one."""


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=pytest.mark.slow) if name in OWN_PROGRAMS else name for name in ON_ROWS]
)
class TestMethod:
    def test_records_numbers_only_where_there_are_some(self, method):
        history = trained(method).history
        for name, values in history.items():
            assert values.shape == (12,), name
            finite = np.isnan(values).all() if is_missing(name, method) else np.isfinite(values).all()
            assert finite, name
        assert set(history) == set(trained("vpu").history), "every method records the same columns"
        # not the estimated AUC: it is unbiased, and so may exceed 1
        shares = [name for name in history if name.endswith(("predicted_positive", "oracle_auc", "_f1", "skipped"))]
        for name in shares:
            assert ((history[name] >= 0) & (history[name] <= 1)).all(), name

    def test_the_loss_is_its_parts_and_training_learns(self, method):
        run = trained(method)
        history = run.history
        parts = sum(history[part] for part in ("train_base", "train_penalty") if not is_missing(part, method))
        np.testing.assert_allclose(history["train_loss"], parts, rtol=1e-5, atol=1e-6)
        assert largest_change(start_of(method), run.state.params) > 0.1
        # a linear classifier has AUC 0.98 on this problem at best, and starts anywhere
        assert float(history["test_oracle_auc"][-1]) > 0.9
        if METHODS[method].mixup:
            assert ((history["train_target"] > 0) & (history["train_target"] <= 1)).all()
            assert np.abs(history["train_penalty"]).max() > 0, "the penalty acts"

    def test_the_rows_and_the_start_of_a_seed_belong_to_the_seed(self, method):
        _, data, _, hyper = inputs_of(method)
        _, of_vpu, _, hyper_of_vpu = inputs_of("vpu")
        jax.tree.map(np.testing.assert_array_equal, data, of_vpu)
        assert float(hyper.prior) == float(hyper_of_vpu.prior)
        jax.tree.map(np.testing.assert_array_equal, start_of(method), start_of("vpu"))

    def test_the_same_key_gives_the_same_run_and_another_key_another(self, method):
        key, data, static, hyper = inputs_of(method)
        first, again = trained(method), jitted_train(key, data, static, hyper)
        jax.tree.map(np.testing.assert_array_equal, first.history, again.history)
        jax.tree.map(np.testing.assert_array_equal, first.state.params, again.state.params)
        other = jitted_train(jax.random.fold_in(key, 1), data, static, hyper)
        assert largest_change(first.state.params, other.state.params) > 1e-3

    def test_its_formula_tells_its_parts(self, method):
        m, text = METHODS[method], describe_method(METHODS[method])
        surrogate = m.options.get("surrogate", options_of(m.risk).choices.get("surrogate"))
        assert ("p_mix" in text) == (m.mixup or "mixed" in options_of(m.risk).context)
        assert RISKS[m.risk].formula in text
        assert surrogate is None or f"{surrogate} loss" in text
        assert ("clipped" in text) == (m.risk in ("nnpu", "nnpusb"))
        for penalty in PENALTIES[1:]:
            assert (f"{penalty}(μ, p_mix)" in text) == (m.penalty == penalty)
        if m.mixup:
            moving = isinstance(m.anchor, Schedule)
            assert (f"a = {m.anchor.start:g} to {m.anchor.end:g}" if moving else f"a = {m.anchor:g}") in text
            assert (f"μ >= {m.floor:g}" in text) == (m.floor > 0)
            assert (f"p(partner) >= {m.partner_floor:g}" in text) == (m.partner_floor > 0)
            assert ("+ λ · " if m.weight_by_lambda else f"+ {m.weight:g} · ") in text
        assert m.source, "where is it from?"


@pytest.mark.slow
def test_no_two_methods_are_the_same_but_in_name():
    plain = [dataclasses.replace(method, source="") for method in METHODS.values()]
    assert len(set(plain)) == len(METHODS)
    params = {name: np.ravel(trained(name).state.params["head"]["kernel"]).tobytes() for name in ON_ROWS}
    assert len(set(params.values())) == len(ON_ROWS), "and each trains in its own way"


@pytest.mark.parametrize("name", [name for name in DATASETS if name not in FETCHED])
class TestDataset:
    def test_is_a_problem_of_two_classes(self, name):
        data = load(name)
        assert data.name == name
        assert data.x.dtype == np.float32
        assert data.y.dtype == np.int8
        assert data.x.ndim >= 2
        assert data.y.shape == data.x.shape[:1]
        assert np.isfinite(data.x).all()
        assert set(np.unique(data.y)) == {0, 1}
        assert data.x.flags.c_contiguous
        varying = data.x.reshape(len(data.x), -1).std(axis=0) > 0
        assert varying.mean() > 0.9, "features that tell nothing"
        if data.posterior is not None:
            assert data.posterior.shape == data.y.shape
            assert abs(data.posterior.mean() - data.y.mean()) < 0.02

    def test_says_what_it_is_and_may_be_used_for(self, name):
        data = load(name)
        assert data.description == describe(name)
        for text in (data.description, data.source, data.licence):
            assert len(text) > 10 or text.startswith("CC")
        assert "\n" not in data.description
        if "positive = " in data.description:  # the count that the sentence states
            stated = data.description.rpartition("(")[2].removesuffix(").").split(" of ")
            assert [int(number) for number in stated] == [int(data.y.sum()), len(data.y)]

    def test_is_the_same_each_time_and_ready_for_the_default_protocol(self, name):
        first, again = load(name), load(name)
        np.testing.assert_array_equal(first.x, again.x)
        np.testing.assert_array_equal(first.y, again.y)
        ready = prepared(config.parse({"data": {"name": name}}).data, 0)
        train_rows = set(ready.rows.train.tolist())
        assert not train_rows & set(ready.rows.val.tolist())
        assert not (train_rows | set(ready.rows.val.tolist())) & set(ready.rows.test.tolist())
        assert first.y[ready.rows.train[: ready.rows.n_labeled]].all(), "labeled rows are positives"
        assert ready.rows.n_labeled > 0
        assert ready.rows.n_val_labeled > 0
        unlabeled = first.y[ready.rows.train[ready.rows.n_labeled :]]
        assert ready.prior == pytest.approx(unlabeled.mean(), abs=1e-6)
        other = prepared(config.parse({"data": {"name": name}}).data, 1)
        assert [np.shape(rows) for rows in other.rows] == [np.shape(rows) for rows in ready.rows]
        assert not np.array_equal(other.rows.test, ready.rows.test) or first.test_rows is not None


@pytest.mark.parametrize("name", RULES)
def test_a_rule_reads_and_reports_recorded_columns(name):
    rule, history = RULES[name], trained("vpu").history
    column = RuleChoice(name).column
    assert column is None or column in history
    assert f"test_{rule.reported}" in history
    assert rule.sign in (1, -1)
    assert rule.label_free == (rule.column is None or rule.column.startswith("proxy_"))
    assert rule.meaning


BASES = {
    "mixed": [
        "pn",
        "pn_naive",
        "upu",
        "nnpu",
        "pudra",
        "pudra_softplus",
        "pudra_naive",
        "nnpu_clip",
        "nnpusb",
        "vpu",
        "vpudra",
        "soft_logmse",
    ],
    "separate": ["vpu_published"],
}


STAGED = {"label_distribution", "cvir"}
"""Risks of presets with several stages."""

SMALL = {
    "model": {"name": "linear"},
    "data__options": {"n": 40, "d": 3},
    "training__epochs": 1,
    "selection": {"rules": ["last"], "default": "last"},
}


@pytest.fixture
def no_evaluation(monkeypatch):
    """Of the whole run only the training is of interest, and evaluation is most of what there is to compile."""
    monkeypatch.setattr(train.loop, "evaluate", lambda *arguments: {})


@pytest.mark.slow
@pytest.mark.usefixtures("no_evaluation")
@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.stages])
def test_methods_of_stages_train_on_two_rows_at_a_time_without_nan(method):
    changed = SMALL | {"training__batch_size": 2, "training__epochs": 4}
    key, data, static, hyper = run_inputs(first_cell(tiny(methods=[method], **changed)))
    run = jax.jit(functools.partial(train.train, config=static))(key, data, hyper=hyper)
    assert np.isfinite(run.history["train_loss"]).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(run.state._replace(best=())))
    assert largest_change(train.init(key, data, static, hyper).params, run.state.params) > 1e-3


@pytest.mark.usefixtures("no_evaluation")
@pytest.mark.parametrize(("batch_size", "batching"), [(1, "mixed"), (2, "mixed"), (3, "mixed"), (1, "separate")])
def test_batches_of_one_two_or_three_rows_train_without_nan(batch_size, batching):
    small = SMALL | {"training__batch_size": batch_size}
    penalised = [METHODS["vpudra"], METHODS["soft_logmse"], METHODS["vpudra_softlabel"]]
    assert {method.penalty for method in penalised} == set(PENALTIES[1:])
    together = objective.Objective(objective.branches_of([METHODS[m] for m in BASES[batching]]), PENALTIES[1:])
    _, _, static, _ = run_inputs(first_cell(tiny(methods=BASES[batching][-1:], **small)), 0, together)
    program = jax.jit(functools.partial(train.train, config=static))
    risks = set()
    for method in BASES[batching]:
        key, data, _, hyper = run_inputs(first_cell(tiny(methods=[method], **small)), 0, together)
        before = train.init(key, data, static, hyper).params
        run = program(key, data, hyper=hyper)
        for name, values in run.history.items():
            assert np.isfinite(values).all(), (method, name)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((run.state.params, run.state.opt_state)))
        assert largest_change(before, run.state.params) > 1e-3
        risks.add(together.branches[int(hyper.risk[0])].risk)
        rows = int(data.n_train)
        if batching == "mixed" and batch_size == 1:  # every batch is one row: P trains, U is skipped or trains too
            skipped = 1 - int(data.n_labeled) / rows if skips_without_positives(METHODS[method]) else 0
            assert float(run.history["train_skipped"][0]) == pytest.approx(skipped)
    if batching == "mixed":
        assert risks == {name for name in RISKS if not {"mixed", "memory"} & {*options_of(name).context}} - STAGED
