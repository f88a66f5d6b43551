"""One run: against a plain NumPy loop, in segments, stopped early, and for every seed the same start."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import LINEAR, first_cell, jitted_train, run_inputs, tiny

from jaxpu import mixup, train
from jaxpu.analysis import replay
from jaxpu.data import plan

FEW_LABELS = LINEAR | {"data__c": 0.1}


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def plain_loop(cell, key, data, static, params, prior):
    """Train a linear model on VPUDRa's objective, in float64, one row of formulas after the other.

    Batches, λ and partners are drawn as ``train`` draws them; all else is written out: forward, gradient,
    L2 and Adam. Returns weights, bias and the number of skipped steps an epoch.
    """
    x = (np.asarray(data.x, float) - np.asarray(data.mean, float)) / np.asarray(data.sd, float)
    theta = np.append(np.asarray(params["head"]["kernel"], float)[:, 0], float(params["head"]["bias"][0]))
    m, v, count, skipped = np.zeros_like(theta), np.zeros_like(theta), 0, []
    method, settings = cell.method, cell.training
    for epoch in range(static.epochs):
        rows, masks = plan.mixed_plan(train.loop._fold(key, train.SHUFFLE, epoch), int(data.n_train), static.batch_size)
        lams = mixup.sample(train.loop._fold(key, train.LAMBDA, epoch), settings.alpha, (len(rows),))
        step_keys = jax.random.split(train.loop._fold(key, train.STEPS, epoch), (len(rows), 3))
        skipped.append(0)
        for step, (places, mask, lam) in enumerate(
            zip(np.asarray(rows), np.asarray(masks), np.asarray(lams), strict=True)
        ):
            labeled = (places < int(data.n_labeled)) & mask
            if not labeled.any():
                skipped[-1] += 1
                continue
            partner = mixup.labeled_positives(
                step_keys[step, 1],
                jnp.asarray(places < data.n_labeled, float),
                mask=jnp.asarray(mask, float),
            )
            features = np.c_[x[np.asarray(data.train)[places]], np.ones(len(places))]
            mixed = lam * features + (1 - lam) * features[np.asarray(partner)]
            p, q = sigmoid(features @ theta), sigmoid(mixed @ theta)
            unlabeled = ~labeled & mask
            by_z = np.where(labeled, -prior * (1 - p) / labeled.sum(), 0) + np.where(
                unlabeled, p * (1 - p) / max(unlabeled.sum(), 1), 0
            )
            mu = lam * p + (1 - lam) * (method.anchor + (1 - method.anchor) * p[np.asarray(partner)])
            slope = (q - mu) * (1 - q) if method.penalty == "point_process" else -2 * (np.log(mu) - np.log(q)) * (1 - q)
            by_mixed = np.where(mask, lam * slope / mask.sum(), 0)
            gradient = features.T @ by_z + mixed.T @ by_mixed + settings.weight_decay * theta
            count += 1
            m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
            theta = theta - settings.lr * (m / (1 - 0.9**count)) / (np.sqrt(v / (1 - 0.999**count)) + 1e-8)
    return theta, skipped


@pytest.mark.parametrize("method", ["vpudra_fixed", "vpudra_softlabel", "soft_logmse", "vpudra_pp"])
def test_training_is_the_plain_loop(method):
    cell = first_cell(tiny(methods=[method], training__weight_decay=0.01, **FEW_LABELS))
    key, data, static, hyper = run_inputs(cell)
    start = train.init(key, data, static, hyper).params
    theta, skipped = plain_loop(cell, key, data, static, start, float(hyper.prior))
    run = jitted_train(key, data, static, hyper)
    got = np.append(np.ravel(run.state.params["head"]["kernel"]), run.state.params["head"]["bias"])
    assert np.abs(theta - np.append(np.ravel(start["head"]["kernel"]), start["head"]["bias"])).max() > 0.1
    np.testing.assert_allclose(got, theta, rtol=2e-4, atol=2e-5)
    steps = plan.steps_per_epoch(int(data.n_train), static.batch_size)
    assert sum(skipped) > 0, "the problem is meant to have batches without a labeled positive"
    np.testing.assert_allclose(run.history["train_skipped"], np.array(skipped) / steps, rtol=1e-6)


def test_changing_numbers_recompiles_nothing():
    base = tiny(**FEW_LABELS)
    jitted_train(*run_inputs(first_cell(base)))
    before = jitted_train._cache_size()
    for change in (
        {"training__lr": 0.1},
        {"training__alpha": 3.0},
        {"training__initial_p": 0.01},
        {"training__weight_decay": 0.0},
        {"data__prior_scale": 0.5},
        {"methods": [{"preset": "vpudra_fixed", "anchor": 0.3, "floor": 0.2, "partner_floor": 0.1}]},
        {"methods": [{"preset": "vpudra_fixed", "anchor": {"start": 1.0, "end": 0.5}, "weight": 0.3}]},
    ):
        key, data, static, hyper = run_inputs(first_cell(tiny(**(FEW_LABELS | change))))
        jitted_train(key, data, static, hyper)
    assert jitted_train._cache_size() == before


def test_a_run_is_the_same_in_one_segment_or_in_many_and_ends_where_it_ends():
    key, data, static, hyper = run_inputs(first_cell(tiny(**FEW_LABELS)))
    whole = jitted_train(key, data, static, hyper)
    advance = jax.jit(functools.partial(train.advance, config=static, epochs=5))
    state = train.init(key, data, static, hyper)
    pieces = []
    for _ in range(3):  # 15 epochs for a run of 12
        state, history = advance(key, state, data, hyper=hyper)
        pieces.append(history)
    assert int(state.epoch) == static.epochs == 12
    for name, values in whole.history.items():
        joined = np.concatenate([piece[name] for piece in pieces])
        assert np.isnan(joined[12:]).all()
        np.testing.assert_allclose(joined[:12], values, rtol=1e-5, atol=1e-6, err_msg=name)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), state.params, whole.state.params)


@pytest.fixture(scope="module")
def long_runs():
    """Twelve epochs with patience 2, of a free run and of the same run with early stop and the best kept."""
    base = {"training__epochs": 12, "training__lr": 0.05, "selection__keep_best": True}
    free_cell = first_cell(tiny(selection__stop=False, **base))
    stopping_cell = first_cell(tiny(selection__stop=True, **base))
    runs = []
    for seed in range(3):
        key, data, static, hyper = run_inputs(free_cell, seed)
        free = jitted_train(key, data, static, hyper)
        key, data, stopping, hyper = run_inputs(stopping_cell, seed)
        runs.append((data, stopping, hyper, free, jitted_train(key, data, stopping, hyper)))
    return runs


def test_a_run_stops_when_all_its_rules_have_and_the_device_agrees_with_the_replay(long_runs):
    lengths = set()
    for _, static, _, free, stopped in long_runs:
        replayed = []
        for place, rule in enumerate(static.rules):
            column = np.asarray(free.history[rule.column])
            kept = replay(column, sign=rule.entry.sign, patience=static.patience, min_delta=static.min_delta)
            replayed.append(kept.epochs_run)
            assert int(stopped.state.best_epoch[place]) == kept.epoch
        assert int(stopped.state.epoch) == max(replayed)
        lengths.add(max(replayed))
        for name, values in stopped.history.items():
            np.testing.assert_array_equal(np.isnan(np.asarray(values)[max(replayed) :]), True)
            expected = free.history[name][: max(replayed)]
            np.testing.assert_allclose(values[: max(replayed)], expected, rtol=1e-5, atol=1e-6, err_msg=name)
    assert min(lengths) < 12, "no run stopped early: the test shows nothing"


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9, float("nan")])] * 2), min_size=1, max_size=25))
def test_rules_followed_on_the_device_are_the_rules_replayed(columns):
    static = first_cell_static()
    values = np.array(columns, np.float32)
    state = train.State({}, {}, (), jnp.zeros((), jnp.int32), jnp.full(2, -jnp.inf), jnp.full(2, -1), None)
    finished_after = None
    for epoch, row in enumerate(values):
        history = {rule.column: jnp.asarray(v) for rule, v in zip(static.rules, row, strict=True)}
        state = follow(state._replace(epoch=jnp.asarray(epoch + 1)), history)
        if finished_after is None and bool(train.finished(state, static)):
            finished_after = epoch + 1
    replays = [
        replay(values[:, place], sign=rule.entry.sign, patience=static.patience, min_delta=static.min_delta)
        for place, rule in enumerate(static.rules)
    ]
    assert [int(e) for e in state.best_epoch] == [r.epoch if r.defined else -1 for r in replays]
    stopped = [r.epochs_run for r in replays]
    if max(stopped) < len(values):
        assert finished_after == max(stopped)


@functools.cache
def first_cell_static():
    base = tiny(training__epochs=40, selection__rules=["val_f1", "nn_risk"], selection__patience=3)
    return run_inputs(first_cell(base))[2]


@jax.jit
def follow(state, history):
    return train.loop._follow_rules(state, history, first_cell_static())


def test_the_best_parameters_are_kept(long_runs):
    evaluate = jax.jit(train.evaluate, static_argnums=2)
    for data, static, hyper, _, stopped in long_runs:
        best = int(stopped.state.best_epoch[static.rules.index(static.keep_best)])
        again = evaluate(stopped.state.kept, data, static, hyper)
        for name in ("val_oracle_auc", "test_oracle_log_loss"):
            np.testing.assert_allclose(again[name], stopped.history[name][best], rtol=1e-5)
        if best < int(stopped.state.epoch) - 1:
            last = evaluate(stopped.state.variables, data, static, hyper)
            assert float(last["test_oracle_log_loss"]) != pytest.approx(float(again["test_oracle_log_loss"]), rel=1e-4)


def test_every_method_of_a_seed_has_the_same_labeled_set_and_start():
    seen = []
    for method in ("vpu", "pudra", "vpudra_softlabel", "pn"):
        key, data, static, hyper = run_inputs(first_cell(tiny(methods=[method])), seed=5)
        start = train.init(key, data, static, hyper).params
        seen.append((np.asarray(data.train), np.asarray(data.n_labeled), np.asarray(data.test), start))
    for other in seen[1:]:
        jax.tree.map(np.testing.assert_array_equal, seen[0], other)


@pytest.mark.parametrize(("initial_p", "starts_at"), [("prior", None), (0.05, 0.05), ("init", 0.5)])
def test_a_run_starts_where_it_is_told(initial_p, starts_at):
    key, data, static, hyper = run_inputs(first_cell(tiny(training__initial_p=initial_p, **FEW_LABELS)))
    bias = float(train.init(key, data, static, hyper).params["head"]["bias"][0])
    p = 1 / (1 + np.exp(-bias))
    if initial_p == "init":
        assert bias != 0
        assert abs(bias) <= 1 / np.sqrt(3)
    else:
        assert p == pytest.approx(float(hyper.prior) if starts_at is None else starts_at, rel=1e-5)


def test_probes_see_the_network_after_each_epoch():
    cell = first_cell(tiny(**FEW_LABELS))
    key, data, static, hyper = run_inputs(cell)
    probes = (
        ("weights", lambda seen: seen.variables.params["head"]["kernel"][:, 0]),
        ("test_mean", lambda seen: jax.nn.sigmoid(seen.logits(seen.x_test)).mean()),
    )
    run = jitted_train(key, data, dataclasses.replace(static, probes=probes), hyper)
    assert run.history["probe_weights"].shape == (12, 3)
    np.testing.assert_allclose(run.history["probe_weights"][-1], run.state.params["head"]["kernel"][:, 0], rtol=1e-6)
    np.testing.assert_allclose(run.history["probe_test_mean"], run.history["test_score_mean"], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["vpu_published", "nnpusb", "pudra_softplus"])
def test_methods_of_other_batches_and_thresholds_learn_too(method):
    # the synthetic problem is nearly separable: a linear classifier gets F1 around 0.93
    cell = first_cell(tiny(methods=[method], data__c=0.5, **LINEAR))
    _, _, static, _ = inputs = run_inputs(cell)
    run = jitted_train(*inputs)
    assert static.batching == ("separate" if method == "vpu_published" else "mixed")
    columns = {"vpu_published": "_max_shift", "nnpusb": "_quantile"}
    np.testing.assert_array_equal(
        run.history["test_oracle_f1_decision"], run.history[f"test_oracle_f1{columns.get(method, '')}"]
    )
    assert float(run.history["test_oracle_f1_decision"][-1]) > 0.7
    assert float(run.history["test_oracle_auc"][-1]) > 0.9


@pytest.mark.slow
def test_both_passes_drop_the_same_units_if_the_method_says_so():
    penalties = {}
    for same in (False, True):
        method = {"preset": "vpu", "same_dropout": same}
        arguments = run_inputs(first_cell(tiny(methods=[method], training__alpha=0.0, training__epochs=2)))
        penalties[same] = np.asarray(jitted_train(*arguments).history["train_penalty"])
    np.testing.assert_array_equal(penalties[True], 0)  # λ = 1: nothing is mixed, μ is p
    assert (penalties[False] > 1e-3).all()
