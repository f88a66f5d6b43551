"""The registry of risks, methods made of them and of users' functions, stages, memory, and what tells them apart."""

import dataclasses
import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import risks_of_users as users
from contract import check_risk
from problems import LINEAR, first_cell, run_inputs, tiny

from jaxpu import losses, models, train
from jaxpu.config import ConfigError, TrainingConfig, expand, to_dict
from jaxpu.config.read import parse
from jaxpu.methods import (
    METHODS,
    RISKS,
    Method,
    Schedule,
    Stage,
    checked,
    describe,
    memories,
    named_method,
    objective,
    options_of,
    resolve,
    risk_identity,
    skips_without_positives,
)
from jaxpu.train import job

USERS = "risks_of_users"
RNG = np.random.default_rng(3)


# The registry


@pytest.mark.parametrize("name", RISKS)
def test_every_registered_risk_keeps_the_contract(name):
    check_risk(resolve(name))


@pytest.mark.parametrize("risk", users.CARELESS, ids=lambda risk: risk.__name__)
def test_a_careless_risk_is_stopped(risk):
    with pytest.raises(AssertionError):
        check_risk(risk)


@pytest.mark.parametrize("name", RISKS)
def test_every_number_of_a_risk_is_traced_and_matters(name):
    """Some surrogate makes each option count, and no change of it compiles again."""
    known = options_of(name)
    surrogates = list(losses.SURROGATES) if "surrogate" in known.choices else [None]
    z, labeled = jnp.array([4.0, 3.0, -4.0, -3.0]), jnp.array([1, 1, 0, 0])
    apart = 0.1, 0.2
    if {"mixed", "memory"} & {*known.context}:  # rows that are doubted, numbers that thresholds tell apart
        z, apart = jnp.array([2.0, -1.0, 0.7, -0.4]), (0.1, 0.4)
    mixed = losses.Mixed(jnp.array([1.0, -1.0, 2.0, -2.0]), jnp.arange(4)[::-1], 0.3)
    context = {"prior": 0.4, "y": labeled, "mixed": mixed, "progress": 0.8}
    given = {key: value for key, value in context.items() if key in known.context}
    for option, default in known.numbers.items():
        changed = False
        for surrogate in surrogates:
            traces = []
            chosen = given if surrogate is None else given | {"surrogate": surrogate}

            @jax.jit
            def slope(value, chosen=chosen, traces=traces, option=option):
                traces.append(1)
                return jax.value_and_grad(functools.partial(resolve(name), **chosen, **{option: value}))(z, labeled)

            values = [np.append(*jax.tree.map(np.asarray, slope(default / 2 + shift))) for shift in apart]
            assert len(traces) == 1
            changed |= not np.allclose(*values, rtol=1e-4)
        assert changed, option


def test_a_risk_says_what_it_is_and_where_it_is_from():
    for name, risk in RISKS.items():
        assert risk.source
        assert risk.formula in describe(Method(name))
        assert resolve(name).__name__ == name
        assert resolve(name) is getattr(losses, name)
        assert risk.defaults == options_of(name).numbers | options_of(name).choices, "as the signature says"
    assert RISKS["pudra_softplus"].decision_offset == pytest.approx(np.log(np.expm1(0.5)), abs=1e-15)


def test_names_and_presets_are_read_without_jax():
    code = (
        "import sys, jaxpu.methods as m; m.named_method('vpu'); "
        "[m.describe(method) for method in m.METHODS.values()]; "
        "assert 'jax' not in sys.modules; print(len(m.METHODS))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(done.stdout) == len(METHODS)


# What an entry means


def test_options_stand_beside_the_fields_and_are_kept_in_one_form():
    name, method = named_method({"preset": "nnpu", "gamma": "5e-1", "beta": 0, "surrogate": "focal", "focus": 1})
    assert (name, method.options) == ("nnpu", {"gamma": 0.5, "focus": 1.0, "surrogate": "focal"})
    assert named_method({"preset": "nnpu", "gamma": 1})[1] == METHODS["nnpu"], "a default is no change"
    assert named_method({"preset": "nnpu", "options": {"gamma": 0.5}})[1].options == {"gamma": 0.5}
    other = named_method({"preset": "pn_encouraging", "risk": "nnpu", "decision": "quantile"})[1]
    assert (other.risk, other.options, other.decision) == ("nnpu", {}, "quantile")
    assert named_method(Method(users.ranking))[0] == "ranking"
    assert named_method(f"{USERS}:ranking") == ("ranking", Method(f"{USERS}:ranking"))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"preset": "nnpu", "gama": 1}, "'gama' (did you mean 'gamma'?); choose from beta, gamma"),
        ({"preset": "nnpu_clip", "gamma": 1}, "'gamma'"),
        ({"preset": "vpu", "batch_prior": True}, "unknown field of a method, or option of its risk 'variational'"),
        ({"preset": "nnpu", "gamma": -1}, "gamma is -1.0, expected a finite number of at least 0"),
        ({"preset": "nnpu", "gamma": True}, "gamma: True is no finite number"),
        ({"preset": "nnpu", "gamma": "much"}, "gamma: 'much' is no finite number"),
        ({"preset": "nnpu", "gamma": {"start": 1, "end": -1}}, "gamma is -1.0, expected"),
        ({"preset": "nnpu", "gamma": {"begin": 1}}, "is no finite number, and no {start"),
        ({"preset": "pn", "surrogate": "sigmid"}, "surrogate is 'sigmid', expected a function or one of ['sigmoid'"),
        (
            {"preset": "pn", "surrogate": "encouraging", "log_end": 2},
            "log_end is 2.0, expected a number between 0 and 1",
        ),
        ({"preset": "vpu", "anchor": {"start": 0, "end": 2}}, "expected a number between 0 and 1, or a schedule"),
        ({"preset": "nnpu", "class_weights": "inverse_frequency"}, "expected 'none' for 'nnpu'"),
        ({"risk": "nnpo"}, "unknown risk 'nnpo' (did you mean 'nnpu'?)"),
        ({"risk": f"{USERS}:none"}, "expected 'package.module:name'"),
        ({"risk": f"{USERS}:ranking", "gamma": 1}, "'gamma'"),
        ({"preset": "nnpu", "stages": [{"until": 0.5, "risk": "pn"}, {"until": 0.3, "risk": "pn"}]}, "that rise"),
        ({"preset": "nnpu", "stages": [{"until": 0.5, "risk": "pn", "options": {"gamma": 1}}]}, "option of 'pn'"),
        ({}, "unknown method None"),
    ],
)
def test_what_does_not_exist_is_named_with_the_choices(entry, words):
    with pytest.raises(ValueError) as refused:
        named_method(entry)
    assert words in str(refused.value)
    with pytest.raises(ConfigError, match="methods"):
        expand(parse({"methods": [entry]}))


def test_methods_of_every_kind_are_read_back_as_they_were_written():
    entries = [
        {"risk": f"{USERS}:ranking", "margin": 2.0},
        {"preset": "soft_anchor", "name": "stepping", "anchor": {"start": 1.0, "end": 0.0, "schedule": "step"}},
        {"preset": "nnpu", "gamma": {"start": 1.0, "end": 0.0}, "stages": [{"until": 0.5, "risk": "pn_naive"}]},
        {"risk": f"{USERS}:mean_teacher", "memory": f"{USERS}:teacher", "decay": 0.5},
    ]
    experiment = parse({"methods": entries})
    assert parse(to_dict(experiment)) == experiment
    methods = [named_method(entry)[1] for entry in entries]
    assert len({*methods}) == 4
    for method in methods:
        assert checked(method) == method


def test_courses_move_linearly_or_at_half_time_and_constants_not_at_all():
    def along(value, epochs):
        method = Method("nnpu", options={"gamma": value}, anchor=0.1)
        hyper = objective.hyper_of(method, TrainingConfig(), 0.4)
        now = [objective.at(hyper, epoch, epochs) for epoch in range(epochs)]
        np.testing.assert_array_equal([n.anchor for n in now], np.float32(0.1))
        return [float(n.options["gamma"]) for n in now]

    np.testing.assert_allclose(along(Schedule(1.0, 0.5), 5), [1, 0.875, 0.75, 0.625, 0.5], rtol=1e-6)
    assert along(Schedule(1.0, 0.5, "step"), 5) == [1, 1, 0.5, 0.5, 0.5]
    assert along(Schedule(1.0, 0.5), 1) == [1]
    assert along(0.3, 3) == [np.float32(0.3)] * 3


# Identity


def test_what_tells_functions_apart_is_their_name_and_their_source():
    one, other = (risk_identity(Method(risk))["risk"] for risk in (users.ranking, users.ranking_again))
    assert one.startswith(f"{USERS}:ranking@")
    assert one.partition("@")[2] != other.partition("@")[2]
    assert risk_identity(Method(f"{USERS}:ranking"))["risk"] == one
    assert risk_identity(Method("nnpu")) == {"risk": "nnpu"}
    floored = functools.partial(losses.surrogates.bonus, floor=0.1)
    named = risk_identity(Method("pn", options={"surrogate": floored}))
    assert '{"floor": 0.1}' in named["surrogate0"]
    teacher = risk_identity(Method(users.mean_teacher, stages=(Stage(0.5, users.ranking),)))
    assert set(teacher) == {"stage0", "risk"}


@pytest.mark.parametrize("kind", ["lambda", "closure", "object"])
def test_a_function_that_cannot_be_told_from_another_has_no_identity(kind):
    def inside(logits, labeled, *, prior):
        return logits.mean()

    class Called:
        def __call__(self, logits, labeled):
            return logits.mean()

    risk = {"lambda": lambda logits, labeled: logits.mean(), "closure": inside, "object": Called()}[kind]
    with pytest.raises(ValueError, match=r"define it at the top level of a module, or run without a folder"):
        risk_identity(Method(risk))
    assert options_of(risk).numbers == {}


def test_runs_of_one_experiment_are_told_apart_by_the_users_function():
    ids = [
        job.runs(parse({"methods": [{"risk": f"{USERS}:{name}", "name": "mine"}], "seeds": 1}))[0].run_id
        for name in ("ranking", "ranking_again")
    ]
    assert len({*ids}) == 2


# Training


SMALL = LINEAR | {"data__c": 0.5, "training__epochs": 4}


@functools.partial(jax.jit, static_argnums=2)
def parameters_after(key, data, static, hyper):
    """A run without its evaluation, which is most of what there is to compile."""
    state = train.init(key, data, static, hyper)
    state, history = train.advance(key, state, data, static, hyper, static.epochs)
    return state, history


@pytest.fixture
def little_evaluation(monkeypatch):
    monkeypatch.setattr(train.loop, "evaluate", lambda *arguments: {})
    parameters_after.clear_cache()
    yield
    parameters_after.clear_cache()


def trained(entry, together=None, **changes):
    [cell] = expand(tiny(methods=[entry], selection={"rules": ["last"], "default": "last"}, **SMALL | changes))
    return parameters_after(*run_inputs(cell, 0, together))


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


@pytest.mark.usefixtures("little_evaluation")
def test_a_users_function_trains_as_the_registered_one_does():
    mine, _ = trained({"risk": "jaxpu.losses:nnpu", "gamma": 0.5, "surrogate": "logistic"})
    ours, _ = trained({"preset": "nnpu", "gamma": 0.5, "surrogate": "logistic"})
    np.testing.assert_array_equal(flat(mine.params), flat(ours.params))
    _, history = trained({"risk": f"{USERS}:ranking", "margin": 2.0, "hard": False})
    assert np.isfinite(history["train_loss"]).all()
    assert history["train_loss"][-1] < history["train_loss"][0]


@pytest.mark.slow
@pytest.mark.usefixtures("little_evaluation")
def test_a_risk_in_a_group_is_the_risk_alone_to_rounding():
    names = ["nnpu", "upu", "pudra", "vpu_nomixup"]
    together = objective.objective_of([METHODS[name] for name in names])
    for name in names:
        alone, _ = trained(name, training__epochs=1)
        among, _ = trained(name, together, training__epochs=1)
        np.testing.assert_allclose(flat(alone.params), flat(among.params), rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.usefixtures("little_evaluation")
def test_a_stage_is_another_risk_for_the_first_epochs():
    stages = [{"until": 0.5, "risk": "pn_naive", "options": {"surrogate": "savage"}}]
    staged = {"preset": "nnpu", "gamma": 0.5, "stages": stages}
    together = objective.objective_of([named_method(staged)[1], named_method({"preset": "pn_naive"})[1]])
    assert (together.stages, len(together.branches)) == (2, 3)
    [cell] = expand(tiny(methods=[staged], selection={"rules": ["last"], "default": "last"}, **SMALL))
    key, data, static, hyper = run_inputs(cell)
    state, _ = parameters_after(key, data, static, hyper)
    # by hand: two epochs of the one, two of the other, on one state
    steps = train.init(key, data, static, hyper)
    for entry in ({"preset": "pn_naive", "surrogate": "savage"}, {"preset": "nnpu", "gamma": 0.5}):
        part = expand(tiny(methods=[entry], selection={"rules": ["last"], "default": "last"}, **SMALL))[0]
        _, _, alone, numbers = run_inputs(part)
        steps, _ = jax.jit(functools.partial(train.advance, config=alone, epochs=2))(key, steps, data, hyper=numbers)
    np.testing.assert_allclose(flat(state.params), flat(steps.params), rtol=1e-5, atol=1e-6)
    only, _ = trained({"preset": "nnpu", "gamma": 0.5})
    assert np.abs(flat(state.params) - flat(only.params)).max() > 1e-3
    assert "until 50% of the epochs, then" in describe(cell.method)


@pytest.mark.usefixtures("little_evaluation")
def test_an_averaged_teacher_is_carried_over_steps_and_pulls():
    entry = {"risk": f"{USERS}:mean_teacher", "memory": f"{USERS}:teacher"}
    free, _ = trained(entry | {"pull": 0.0})
    plain, _ = trained({"preset": "nnpu", "skip_without_positives": True})
    np.testing.assert_allclose(flat(free.params), flat(plain.params), rtol=1e-6)
    pulled, _ = trained(entry | {"pull": 50.0, "decay": 0.99})
    start = trained(entry | {"pull": 50.0, "decay": 1.0}, training__lr=1e-9)[0]
    assert np.abs(flat(pulled.params) - flat(start.params)).max() < np.abs(flat(free.params) - flat(start.params)).max()
    for decay, expected in ((0.0, pulled_to(entry, 0.0)), (1.0, flat(start.params))):
        state, _ = trained(entry | {"decay": decay})
        np.testing.assert_allclose(flat(state.memory), expected, rtol=1e-4, atol=1e-5)


def pulled_to(entry, decay):
    """Without decay the teacher is the network itself."""
    return flat(trained(entry | {"decay": decay})[0].params)


@pytest.mark.usefixtures("little_evaluation")
def test_pseudo_labels_are_kept_row_by_row():
    entry = {"risk": f"{USERS}:pseudo_labels", "memory": f"{USERS}:said_before", "trust": 0.0}
    [cell] = expand(tiny(methods=[entry], selection={"rules": ["last"], "default": "last"}, **SMALL))
    key, data, static, hyper = run_inputs(cell)
    state, _ = parameters_after(key, data, static, hyper)
    assert state.memory.shape == data.train.shape
    x = train.features(data, data.train)
    p = jax.nn.sigmoid(models.build(static.model, (3,)).logits(state.variables, x))
    real = np.arange(len(data.train)) < int(data.n_train)
    said = np.asarray(state.memory)
    np.testing.assert_array_equal(said[~real], 0.5)
    assert np.corrcoef(said[real], np.asarray(p)[real])[0, 1] > 0.95, "what the network said a few steps ago"
    trusting, _ = trained(entry | {"trust": 2.0})
    assert np.abs(flat(trusting.params) - flat(state.params)).max() > 1e-3


@pytest.mark.usefixtures("little_evaluation")
def test_a_risk_that_asks_for_mixed_rows_trains_as_the_penalty_does():
    mine, _ = trained({"risk": f"{USERS}:anchored"})
    ours, _ = trained("vpudra_fixed")
    np.testing.assert_allclose(flat(mine.params), flat(ours.params), rtol=1e-5, atol=1e-6)
    other, _ = trained({"risk": f"{USERS}:anchored", "alpha": 6.0})
    assert np.abs(flat(other.params) - flat(ours.params)).max() > 1e-4, "its own α"
    assert float(objective.hyper_of(METHODS["dist_pu"], TrainingConfig(), 0.4).alpha) == 6


@pytest.mark.usefixtures("little_evaluation")
def test_doubted_rows_meet_labeled_ones_and_rows_keep_half_of_themselves():
    still, nobody = {"training__lr": 1e-9}, {"lower": 1.0, "upper": 1.0}
    half = [{"until": 0.5, "risk": f"{USERS}:how_mixed", "options": nobody}]
    entry = {"risk": f"{USERS}:how_mixed", "pairing": "boundary_positives", "batching": "separate", "stages": half}
    _, history = trained(entry, **still)
    np.testing.assert_array_equal(history["train_loss"], [0, 0, 1, 1])
    _, history = trained(entry | {"of_lam": 1.0, "alpha": 0.3, "at_least_half": True, "stages": []}, **still)
    assert (history["train_loss"] > 0.6).all(), "λ is 0.5 on average otherwise"


@pytest.mark.parametrize(
    ("methods", "changes", "words"),
    [
        ([{"preset": "nnpu", "at_least_half": True}], {}, "at_least_half has no effect on 'nnpu', which asks for no"),
        ([{"preset": "nnpu", "alpha": 1.0}], {}, "alpha has no effect on 'nnpu', which mixes no rows"),
        (["dist_pu"], {"grid": {"training.alpha": [0.1, 1.0]}}, "training.alpha has no effect on method 'dist_pu'"),
        ([{"preset": "dist_pu", "penalty": "log_mse"}], {}, "'dist_pu' gets mixed rows itself"),
        ([{"preset": "dist_pu", "anchor": 0.5}], {}, "method.anchor has no effect on method 'dist_pu', which has no"),
        ([{"preset": "dist_pu", "mixing": -1}], {}, "mixing is -1.0, expected a finite number of at least 0"),
    ],
)
def test_what_mixing_leaves_without_effect_is_refused(methods, changes, words):
    with pytest.raises(ConfigError) as refused:
        expand(parse({"methods": methods} | changes))
    assert words in str(refused.value)


def test_a_teacher_is_the_plain_mean_at_first_and_then_an_exponential_one():
    said, values = memories.start(jnp.zeros(2), 3), RNG.normal(size=(9, 2))
    expected = np.zeros(2)
    for step, value in enumerate(values):
        said = memories.averaged(said, params=jnp.asarray(value), decay=0.8)
        kept = min(1 - 1 / (step + 1), 0.8)
        expected = kept * expected + (1 - kept) * value
        if step < 5:
            np.testing.assert_allclose(expected, values[: step + 1].mean(axis=0))
    np.testing.assert_allclose(said["params"], expected, rtol=1e-5)


@pytest.mark.parametrize("progress", [0.1, 0.5])
def test_the_labeling_network_takes_a_step_of_adam_and_tells_the_posterior(progress):
    """A linear η by hand in float64: the first step of Adam is the learning rate against the sign of the gradient."""
    x, h, eta = RNG.normal(size=(6, 2)), RNG.normal(size=2), RNG.normal(size=2)
    labeled, mask, rows = np.array([1, 1, 0, 0, 0, 0]), np.array([1, 1, 1, 1, 1, 0]), np.array([4, 2, 0, 5, 6, 0])
    before = memories.unbiased(jnp.asarray(eta, jnp.float32), 8)
    before["posterior"] = jnp.linspace(0.1, 0.8, 8)
    context = {
        "params": jnp.asarray(h),
        "rows": jnp.asarray(rows),
        "labeled": jnp.asarray(labeled),
        "progress": progress,
    }
    after = memories.labeling(before, **context, mask=jnp.asarray(mask), forward=lambda w: jnp.asarray(x) @ w)

    def loss(w):
        s = (1 / (1 + np.exp(-x @ w)))[:5]
        q = np.where(labeled == 1, 1, 1 if progress < 0.25 else np.linspace(0.1, 0.8, 8)[rows])[:5]
        return -(q * np.where(labeled[:5] == 1, np.log(s), np.log(1 - s))).mean()

    slope = np.array([(loss(eta + m) - loss(eta - m)) / 2e-6 for m in 1e-6 * np.eye(2)])
    moved = eta - 3e-4 * slope / (np.abs(slope) + 1e-8)
    np.testing.assert_allclose(after["eta"], moved, rtol=1e-5)
    p, given = 1 / (1 + np.exp(-x @ h)), 1 / (1 + np.exp(-x @ moved))
    expected = np.linspace(0.1, 0.8, 8)
    expected[rows[:5]] = (p * (1 - given) / (p * (1 - given) + 1 - p))[:5]
    np.testing.assert_allclose(after["posterior"], expected, rtol=1e-4)
    ends = losses.lbe_posterior(jnp.array([0.7, 0.7]), jnp.array([-100.0, 100.0]))
    np.testing.assert_allclose(ends, [1 / (1 + np.exp(-0.7)), 0], atol=1e-6)  # nobody is labeled, every positive is


def test_methods_with_and_without_memory_do_not_share_a_program():
    entries = ["nnpu", "upu", {"risk": f"{USERS}:mean_teacher", "memory": f"{USERS}:teacher"}]
    experiment = tiny(methods=entries, seeds=1)
    groups = job.jobs(experiment, job.runs(experiment))
    assert sorted(len(group.runs) for group in groups) == [1, 2]
    assert sorted(len(group.static.objective.branches) for group in groups) == [1, 2]
    with pytest.raises(ValueError, match="group them by structure_of"):
        objective.objective_of([named_method(entry)[1] for entry in entries])


@pytest.mark.usefixtures("little_evaluation")
def test_a_batch_without_labeled_rows_is_a_step_if_the_method_says_so():
    few = {"training__batch_size": 2}
    skipping, history = trained({"preset": "pudra", "skip_without_positives": True}, **few)
    assert float(history["train_skipped"][0]) > 0
    stepping, history = trained("pudra", **few)
    assert float(history["train_skipped"].max()) == 0
    assert np.abs(flat(skipping.params) - flat(stepping.params)).max() > 1e-3


def test_who_skips_a_batch_without_labeled_rows_is_as_in_the_code_that_methods_come_from():
    steps = {name for name, method in METHODS.items() if not skips_without_positives(method)}
    supervised = {"pn", "pn_mse", "pn_mae", "pn_mae_mse", "pn_bonus", "pn_encouraging", "pn_focal", "pn_naive"}
    supervised |= {"pn_mixup", "pn_regmixup", "pn_cutmix"}
    assert steps == supervised | {
        "upu",
        "nnpu",
        "nnpu_clip",
        "nnpusb",
        "pudra",
        "pudra_softplus",
        "dist_pu",
        "cvir",
        "lbe",
    }
    assert skips_without_positives(Method(lambda z, labeled: z.mean()))
    assert not skips_without_positives(Method(lambda z, labeled, *, y: z.mean()))
    warm_up = [{"until": 0.5, "risk": "nnpu"}]
    assert skips_without_positives(
        named_method({"preset": "pudra", "stages": [warm_up[0] | {"risk": "variational"}]})[1]
    )
    assert not skips_without_positives(named_method({"preset": "pudra", "stages": warm_up})[1])
    assert not skips_without_positives(named_method({"preset": "vpu", "skip_without_positives": False})[1])


@pytest.mark.usefixtures("little_evaluation")
def test_the_oracle_does_not_depend_on_how_many_positives_are_labeled():
    [cell] = expand(tiny(methods=["pn"], selection={"rules": ["last"], "default": "last"}, **SMALL))
    key, data, static, hyper = run_inputs(cell)
    ends = []
    for n_labeled in (1, 40):  # with one, most batches have none
        state, history = parameters_after(key, data._replace(n_labeled=jnp.asarray(n_labeled)), static, hyper)
        assert float(history["train_skipped"].max()) == 0
        ends.append(flat(state.params))
    np.testing.assert_array_equal(*ends)


def test_a_risk_that_cannot_be_trained_says_what_it_lacks():
    alone = objective.objective_of([Method(users.one_a_row)])
    now = objective.at(objective.hyper_of(Method(users.one_a_row), TrainingConfig(), 0.4), 0, 1)
    with pytest.raises(ValueError, match=r"one_a_row returned a value of shape \(3,\).*take the mean"):
        objective.base_risk(alone, now, jnp.zeros(3), jnp.ones(3), jnp.ones(3))
    with pytest.raises(ValueError, match=r"argument 'w' has no default.*prior, mask, y"):
        objective.objective_of([Method(lambda z, labeled, *, y=None, w: z.mean())])


def test_numbers_are_of_the_method_and_of_its_program():
    with pytest.raises(ValueError, match="not among the risks of the program"):
        objective.hyper_of(METHODS["nnpu"], TrainingConfig(), 0.4, objective=objective.objective_of([METHODS["upu"]]))
    assert first_cell(tiny(methods=["nnpu"])).method == METHODS["nnpu"]
    order = [METHODS["upu"], METHODS["nnpu"]]
    assert objective.branches_of(order) == objective.branches_of(order[::-1])
    assert dataclasses.replace(METHODS["vpu"]) == METHODS["vpu"]
