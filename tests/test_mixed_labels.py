"""Methods that mix inputs and labels, schedules of α as numbers, and epochs without evaluation."""

import functools

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from test_multiclass import softmax

from jaxpu import analysis, api, losses, mixup, train
from jaxpu.config import ConfigError, TrainingConfig, expand, parse
from jaxpu.data import plan
from jaxpu.losses import SURROGATES
from jaxpu.methods import METHODS, Method, describe, named_method, objective
from jaxpu.mixup import SCHEDULES
from jaxpu.train import job, loop, step

RAW = {
    "kind": "multiclass",
    "name": "mixed",
    "data": {"name": "digits", "validation": [0.2], "options": {"as_images": 1}},
    "model": {"name": "linear"},
    "training": {"epochs": 2, "batch_size": 256, "lr": 0.05, "weight_decay": 0.0, "optimizer": "sgd", "alpha": 1.0},
    "selection": {"rules": ["last"], "default": "last", "stop": False},
    "seeds": 1,
    "placement": {"devices": 1, "part": 1},
}


def experiment(*methods, **training):
    return parse(RAW | {"methods": list(methods), "training": RAW["training"] | training})


@pytest.fixture
def unmeasured(monkeypatch):
    """Training without its evaluation, which is most of what there is to compile."""
    monkeypatch.setattr(loop, "evaluate", lambda *arguments: {})


def advanced(method, update=None, **training):
    """(inputs, state, history) of a run of one method."""
    [cell] = expand(experiment(method, **training))
    key, data, static, hyper = job.inputs(cell, 0)
    more = {"update": update} if update else {}
    run = jax.jit(functools.partial(train.advance, config=static, epochs=static.epochs, **more))
    return (key, data, static, hyper), *run(key, train.init(key, data, static, hyper), data, hyper=hyper)


# Against an independent float64 computation


def cut(key, image, other, lam):
    """One image with a box of another, as Yun et al.'s code cuts it, and the share that is left."""
    (h, w), image = image.shape, image.copy()
    row, column = (
        int(jax.random.randint(k, (), 0, size)) for k, size in zip(jax.random.split(key), (h, w), strict=True)
    )
    high, wide = int(h * np.sqrt(1 - lam)) // 2, int(w * np.sqrt(1 - lam)) // 2
    top, bottom, left, right = max(row - high, 0), min(row + high, h), max(column - wide, 0), min(column + wide, w)
    image[top:bottom, left:right] = other[top:bottom, left:right]
    return image, 1 - (bottom - top) * (right - left) / (h * w)


def by_hand(given, method, training, weigh=None):
    """A linear model trained by SGD with momentum, one batch after the other, in float64; weights, bias, losses."""
    key, data, static, _ = given
    params = train.init(*given).params["head"]
    w, b = (np.asarray(params[name], np.float64) for name in ("kernel", "bias"))
    x = np.asarray(train.features(data, data.train), np.float64)
    y, size, speed, losses_of = np.asarray(data.y)[np.asarray(data.train)], static.batch_size, [0.0, 0.0], []
    for epoch in range(static.epochs):
        rows, masks = map(np.asarray, plan.mixed_plan(loop._fold(key, loop.SHUFFLE, epoch), len(x), size, data.n_train))
        shape = (len(rows),) if training.lam_per == "batch" else rows.shape
        lams = np.asarray(mixup.sample(loop._fold(key, loop.LAMBDA, epoch), training.alpha, shape))
        keys = jax.random.split(loop._fold(key, loop.STEPS, epoch), (len(rows), 3))
        of_epoch = []
        for number, (places, mask, lam) in enumerate(zip(rows, masks, lams, strict=True)):
            partner = np.asarray(mixup.shuffle(keys[number, 1], jnp.ones(size), mask=jnp.asarray(mask)))
            images, hot = x[places], np.eye(10)[y[places]]
            if method.mixes == "cutmix":
                box = jax.random.fold_in(keys[number, 1], step.BOX)
                pairs = [cut(box, a, c, float(lam)) for a, c in zip(images, images[partner], strict=True)]
                mixed, lam = np.stack([image for image, _ in pairs]), pairs[0][1]
            else:
                share = np.reshape(lam, (-1, 1, 1)).astype(np.float64)
                mixed = share * images + (1 - share) * images[partner]
            share = np.reshape(lam, (-1, 1))
            passes = [(method.mixed_weight, mixed, share * hot + (1 - share) * hot[partner], mask * 1.0)]
            if weigh is not None:
                passes[0] = (*passes[0][:3], mask * weigh(y[places], y[places][partner]))
            if method.plain_weight:
                passes.append((method.plain_weight, images, hot, mask * 1.0))
            slope_w, slope_b, value = np.zeros_like(w), np.zeros_like(b), 0.0
            for weight, inputs, labels, counts in passes:
                flat, counts = inputs.reshape(size, -1), counts / max(counts.sum(), 1)
                p = softmax(flat @ w + b)
                by_z = weight * counts[:, None] * (p - labels)
                slope_w, slope_b = slope_w + flat.T @ by_z, slope_b + by_z.sum(axis=0)
                value -= weight * (counts * (labels * np.log(p)).sum(axis=1)).sum()
            speed = [0.9 * v + slope for v, slope in zip(speed, (slope_w, slope_b), strict=True)]
            w, b = w - training.lr * speed[0], b - training.lr * speed[1]
            of_epoch.append(value)
        losses_of.append(np.mean(of_epoch))
    return w, b, losses_of


REG = {"preset": "pn_regmixup", "mixed_weight": 0.7}


@pytest.mark.slow
@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(
    ("method", "training"),
    [("pn_mixup", {}), ("pn_mixup", {"lam_per": "row"}), (REG, {"alpha": 20.0}), ("pn_cutmix", {})],
    ids=["mixup", "one λ a row", "RegMixup", "cutmix"],
)
def test_a_run_is_that_of_numpy(method, training):
    given, state, history = advanced(method, **training)
    settings = experiment(method, **training).training
    w, b, values = by_hand(given, named_method(method)[1], settings)
    np.testing.assert_allclose(state.params["head"]["kernel"], w, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(state.params["head"]["bias"], b, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(history["train_loss"], values, rtol=1e-5)
    start = train.init(*given).params["head"]["kernel"]
    assert np.abs(w - np.asarray(start)).max() > 0.05


@pytest.mark.slow
@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("over_rows", [0.0, 1.0])
def test_whoever_weighs_mixed_rows_sees_them_and_rows_of_weight_0_do_not_count(over_rows):
    def weigh(seen):
        pairs = (seen.y != seen.y[seen.partner]).astype(jnp.float32)
        outside = seen.logits(seen.x)  # the network as it is
        return pairs, {"size": jnp.abs(outside).max(), "own": (seen.mask * seen.lam).sum() / seen.mask.sum()}

    update = functools.partial(step.update, weigh=weigh, over_rows=over_rows)
    given, state, history = advanced("pn_mixup", update, epochs=1)
    assert (history["train_kept"] > 0.8).all()
    assert (history["train_kept"] < 1).all()
    assert (history["train_size"] > 0).all()
    settings = experiment("pn_mixup", epochs=1).training
    w, _, values = by_hand(given, METHODS["pn_mixup"], settings, lambda mine, other: 1.0 * (mine != other))
    if not over_rows:
        np.testing.assert_allclose(state.params["head"]["kernel"], w, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(history["train_loss"], values, rtol=1e-5)
    else:  # the same, each update as much smaller as fewer rows enter it
        assert (history["train_loss"] < np.array(values)).all()
        steps = plan.steps_per_epoch(int(given[1].n_train), 256)
        np.testing.assert_allclose(history["train_loss"], np.array(values) * history["train_kept"], rtol=0.1 / steps)


@pytest.mark.usefixtures("unmeasured")
def test_weighing_needs_mixed_rows_and_a_risk_that_weighs():
    update = functools.partial(step.update, weigh=lambda seen: seen.mask)
    with pytest.raises(ValueError, match="expected a method that mixes labels"):
        advanced("pn", update)
    with pytest.raises(ValueError, match="deaf weighs no rows"):
        advanced(Method(deaf, mixes="mixup"), update)


def deaf(logits, labeled, *, y, mask=None):
    """Cross-entropy without weights."""
    return losses.cross_entropy(logits, y, mask=mask)


# Limits


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("mixed", ["pn_mixup", "pn_cutmix"])
def test_without_mixing_it_is_plain_training(mixed):
    """To rounding: margins of all classes are computed otherwise than that of one."""
    _, plain, before = advanced("pn")
    _, state, history = advanced(mixed, alpha=0.0)
    np.testing.assert_allclose(history["train_loss"], before["train_loss"], rtol=1e-6)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-7), state.params, plain.params)


@pytest.mark.slow
@pytest.mark.usefixtures("unmeasured")
def test_with_one_logit_a_row_that_is_so_bit_for_bit_and_with_dropout():
    def trained(method):
        raw = {"data": {"name": "gaussians", "options": {"n": 60}}, "model": {"hidden": [8], "dropout": [0.5]}}
        raw |= {"training": {"epochs": 2, "batch_size": 16, "alpha": 0.0}, "methods": [method]}
        raw |= {"selection": RAW["selection"]}
        key, data, static, hyper = job.inputs(expand(parse(raw))[0], 0)
        run = jax.jit(functools.partial(train.advance, config=static, epochs=2))
        return run(key, train.init(key, data, static, hyper), data, hyper=hyper)

    (plain, before), (state, history) = trained("pn"), trained("pn_mixup")
    jax.tree.map(np.testing.assert_array_equal, state.params, plain.params)
    np.testing.assert_array_equal(history["train_loss"], before["train_loss"])


def test_cutmix_takes_a_box_and_counts_it(monkeypatch):
    x = jax.random.normal(jax.random.key(0), (6, 5, 7, 2))
    partner = jnp.roll(jnp.arange(6), 1)
    lam = jnp.array([1.0, 0.0, 0.3, 0.5, 0.8, 0.95])
    mixed, own = jax.jit(mixup.cutmix)(jax.random.key(4), x, partner, lam)
    taken = np.asarray((mixed != x).all(axis=-1))
    np.testing.assert_allclose(own, 1 - taken.mean(axis=(1, 2)), rtol=1e-6)
    np.testing.assert_array_equal(mixed[0], x[0])
    assert own[0] == 1
    for box, other in zip(np.asarray(taken), np.asarray((x[partner] == mixed).all(axis=-1)), strict=True):
        assert (box == other).all(), "the rest is the row's own"
        assert box.sum() == box.any(axis=1).sum() * box.any(axis=0).sum(), "a rectangle"
    centred = [float(mixup.cutmix(jax.random.key(i), x[..., 0], partner, 0.5)[1]) for i in range(40)]
    assert min(centred) == pytest.approx(1 - 2 * 4 / 35)  # 5 √½ = 3.5 and 7 √½ = 4.9, to even numbers
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # what a user sees
    with pytest.raises(ValueError, match=r"x has shape \(6, 5\), expected images"):
        mixup.cutmix(jax.random.key(4), x[:, :, 0, 0], partner, lam)


# Every loss, and methods of one program


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_mixed_label_has_the_mixed_loss(surrogate):
    draw = np.random.default_rng(0)
    z, lam = (jnp.asarray(draw.uniform(size=size), jnp.float32) for size in ((5, 3), (5,)))
    y, partner = jnp.array([0, 1, 2, 1, 0]), jnp.array([1, 2, 3, 4, 0])
    method = Method("pn", options={"surrogate": surrogate}, mixes="mixup")
    alone, hyper = objective.objective_of([method]), objective.hyper_of(method, TrainingConfig(), 0.4, (1, 1, 1))
    now = objective.at(hyper, 0, 1)
    hot, one = jnp.eye(3)[y], jnp.ones(5)
    whole, _ = objective.base_risk(alone, now, z, one, one, y=mixup.mix(hot, partner, lam))
    each = [[objective.base_risk(alone, now, z, one, one, y=labels, weights=1.0 * (jnp.arange(5) == i))[0]
             for i in range(5)] for labels in (y, y[partner])]  # fmt: skip
    assert float(whole) == pytest.approx(
        float((lam * jnp.stack(each[0]) + (1 - lam) * jnp.stack(each[1])).mean()), rel=1e-5
    )
    rest, _ = objective.base_risk(alone, now, z, one, one, y=y, weights=jnp.array([0.5, 0.0, 0.0, 1.0, 0.0]))
    assert float(rest) == pytest.approx(float(0.5 * each[0][0] + each[0][3]) / 1.5, rel=1e-5)


def test_class_weights_of_mixed_labels_are_mixed():
    z, share, weights = (
        jnp.array([[0.3, -1.0], [0.2, 0.1]]),
        jnp.array([[0.25, 0.75], [1.0, 0.0]]),
        jnp.array([1.0, 3.0]),
    )
    log_p = np.asarray(jax.nn.log_softmax(z))
    each, of_row = -(np.asarray(share) * log_p).sum(axis=1), np.asarray(share @ weights) * [1.0, 0.5]
    found = losses.pn(z, jnp.zeros(2), y=share, class_weights=weights, weights=jnp.array([1.0, 0.5]))
    assert float(found) == pytest.approx((of_row * each).sum() / of_row.sum(), rel=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("unmeasured")
def test_schedules_and_weights_share_a_program_that_computes_what_each_alone_does():
    cells = [expand(experiment("pn_mixup", alpha_schedule=name, epochs=4))[0] for name in SCHEDULES]
    (key, data, static, _), *others = (job.inputs(cell, 0) for cell in cells)
    assert all(other[2] == static for other in others)
    hypers = [job.inputs(cell, 0)[3] for cell in cells]
    traces = []

    @jax.jit
    def trained(hyper):
        traces.append(1)
        state, history = train.advance(key, train.init(key, data, static, hyper), data, static, hyper, 4)
        return history["train_loss"], state.params

    one_by_one = [trained(hyper) for hyper in hypers]
    assert len(traces) == 1
    together = jax.jit(jax.vmap(trained))(jax.tree.map(lambda *leaves: jnp.stack(leaves), *hypers))
    for place, alone in enumerate(one_by_one):
        mine = jax.tree.map(lambda leaf, place=place: leaf[place], together)
        jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), mine, alone)
    assert len({float(losses_of[-1]) for losses_of, _ in one_by_one}) == len(SCHEDULES)
    for epoch in range(4):
        for name, hyper in zip(SCHEDULES, hypers, strict=True):
            now = objective.at(hyper, epoch, 4).alpha
            assert float(now) == pytest.approx(float(mixup.schedule(name, 4, 1.0)[epoch]), rel=1e-6)


# Epochs without evaluation


@pytest.fixture(scope="module")
def every_epoch():
    return api.sweep(measured(1)).runs


def measured(every, segment=5, **selection):
    raw = RAW | {"methods": ["pn_mixup"], "data": {"name": "gaussians", "options": {"n": 90}}, "kind": "pu"}
    chosen = {"rules": ["last", "val_f1"], "default": "last", "stop": False} | selection
    training = RAW["training"] | {"epochs": 7, "batch_size": 16, "evaluate_every": every}
    placed = RAW["placement"] | {"segment": segment}
    return parse(raw | {"selection": chosen, "training": training, "placement": placed, "seeds": 2})


@pytest.mark.slow
@pytest.mark.parametrize(("segment", "patience"), [(2, 10), (7, 3)])
def test_skipped_epochs_are_nan_and_the_others_the_same(every_epoch, segment, patience):
    asked, seen = measured(3, segment, patience=patience), [2, 5, 6]
    frame = api.sweep(asked).runs
    assert frame["epoch"].to_list() == every_epoch["epoch"].to_list()
    for name in (name for name in frame.columns if name.startswith(("train_", "test_", "val"))):
        mine, all_of_them = (f[name].to_numpy().reshape(2, 7) for f in (frame, every_epoch))
        in_steps = name in {f"train_{part}" for part in (*objective.Terms._fields, "skipped")}
        at = list(range(7)) if in_steps else seen
        np.testing.assert_allclose(mine[:, at], all_of_them[:, at], rtol=1e-6, atol=1e-7, err_msg=name)
        assert np.isnan(np.delete(mine, at, axis=1)).all(), name
    selected, _ = analysis.select(frame, asked)
    assert selected["f1"].is_finite().all()
    assert set(selected["epoch"]) <= {3, 6, 7}
    assert set(selected["verdict"]) == {"healthy"}


def test_a_rule_that_would_give_up_before_it_sees_an_epoch_is_refused():
    with pytest.raises(ConfigError, match=r"evaluate_every is 5, and rule 'val_f1' gives up after .* 3 epochs"):
        measured(5, patience=3)
    [cell] = expand(measured(3, rules=["last"]))
    key, data, static, hyper = job.inputs(cell, 0)
    with pytest.raises(ValueError, match="epochs is 4, expected a multiple of evaluate_every, 3"):
        train.advance(key, train.init(key, data, static, hyper), data, static, hyper, 4)


# What is asked for


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"preset": "nnpu", "mixes": "mixup"}, "expected 'none' for 'nnpu': it has no labels to mix"),
        ({"preset": "vpu", "mixes": "mixup"}, "expected 'none' for a method with a penalty or a memory"),
        ({"preset": "pn", "plain_weight": 1.0}, "plain_weight has no effect with mixes 'none'"),
        ({"preset": "pn_mixup", "mixed_weight": 0.0}, "greater than 0"),
    ],
)
def test_what_cannot_be_mixed_is_refused(entry, said):
    with pytest.raises(ValueError, match=said):
        named_method(entry)


def test_what_mixes_has_the_settings_of_mixing_and_no_target():
    for entry in ("pn_mixup", {"preset": "pn", "mixes": "mixup"}, Method("pn", mixes="mixup")):
        assert named_method(entry)[1].pairing == "shuffle"
    again = named_method({"preset": "pn_mixup", "pairing": "labeled_positives"})[1]
    assert expand(parse(RAW | {"methods": [again]}))[0].method.pairing == "labeled_positives"
    swept = parse(RAW | {"methods": ["pn_mixup"], "training": {}, "grid": {"training.alpha": [0.1, 1.0]}})
    assert len(expand(swept)) == 2
    with pytest.raises(ConfigError, match=r"method.anchor has no effect on method 'pn_mixup', which has no penalty"):
        parse(RAW | {"methods": ["pn_mixup"], "grid": {"method.anchor": [0.1, 1.0]}})
    rows = RAW | {"data": {"name": "digits"}, "methods": ["pn_cutmix"]}
    with pytest.raises(
        ConfigError, match=r"'pn_cutmix' cuts boxes out of images, and rows of digits have shape \(64,\)"
    ):
        job.jobs(parse(rows), job.runs(parse(rows)))
    assert describe(METHODS["pn_regmixup"]).endswith("mixed by mixup, + 1 · the same, not mixed")
