"""Training with many classes: the same core, against NumPy; data with long tails, and rows from elsewhere."""

import re
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from problems import jitted_train, prepared

from jaxpu import api, cli, collapse, config, models, train
from jaxpu.collapse import Verdict
from jaxpu.config import ConfigError, ModelConfig, TrainingConfig, expand, parse
from jaxpu.data import load, plan, sampling
from jaxpu.methods import Method, Schedule, describe, objective
from jaxpu.metrics import multiclass
from jaxpu.train import job

RAW = {
    "kind": "multiclass",
    "name": "ten",
    "data": {"name": "digits", "validation": [0.2]},
    "model": {"name": "linear"},
    "training": {"epochs": 2, "batch_size": 256, "lr": 0.05, "weight_decay": 0.01},
    "selection": {"rules": ["last", "val_accuracy", "val_f1"], "default": "last", "stop": False},
    "methods": ["pn"],
    "seeds": 2,
    "placement": {"devices": 1, "part": 2},
}
MOVING = {
    "preset": "pn",
    "name": "moving",
    "surrogate": "encouraging",
    "log_end": {"start": 0.2, "end": 0.8},
    "class_weights": "inverse_frequency",
}


def experiment(**changes):
    raw = {name: dict(value) if isinstance(value, dict) else value for name, value in RAW.items()}
    for path, value in changes.items():
        config.put(raw, path.replace("__", "."), value)
    return parse(raw)


def cell(**changes):
    return expand(experiment(**changes))[0]


# Against an independent float64 computation


def softmax(z):
    power = np.exp(z - z.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def pull_of(name: str, p: np.ndarray, log_end: float) -> np.ndarray:
    """s(p), so that the gradient of a row's loss with respect to its logits is -s (1[y] - rest)."""
    if name == "encouraging":
        return np.where(p <= log_end, 1.0, (1 - p) * (1 + p / (1 - log_end)))
    return 1 - p


def trained_by_hand(run_key, data, params, method: Method, training: TrainingConfig):
    """Two epochs of a linear model with Adam and L2 in the gradient, in float64."""
    w, b = (np.asarray(params["head"][name], np.float64) for name in ("kernel", "bias"))
    x, y = np.asarray(data.x, np.float64), np.asarray(data.y)
    rows = np.asarray(data.train)
    classes = np.bincount(y[rows])
    weight_of = len(rows) / (10 * classes) if method.class_weights != "none" else np.ones(10)
    moments = [np.zeros_like(w), np.zeros_like(w), np.zeros_like(b), np.zeros_like(b)]
    step = 0
    for epoch in range(training.epochs):
        key = jax.random.fold_in(jax.random.fold_in(run_key, train.SHUFFLE), epoch)
        places, masks = plan.mixed_plan(key, len(rows), training.batch_size)
        moving = method.options.get("log_end", Schedule(0.75, 0.75))
        log_end = moving.start + (moving.end - moving.start) * epoch / (training.epochs - 1)
        for place, mask in zip(np.asarray(places), np.asarray(masks), strict=True):
            batch = rows[place[mask]]
            z = x[batch] @ w + b
            p = softmax(z)
            own = np.eye(10)[y[batch]]
            p_y = (p * own).sum(axis=1)
            # the margin's gradient: 1 on the own class, -p_j / (1 - p_y) on the others
            others = p * (1 - own) / (1 - p_y)[:, None]
            weights = weight_of[y[batch]]
            pull = weights * pull_of(method.options.get("surrogate", ""), p_y, log_end) / weights.sum()
            gradient = -pull[:, None] * (own - others)
            step += 1
            for i, (value, grad) in enumerate(((w, x[batch].T @ gradient), (b, gradient.sum(axis=0)))):
                grad = grad + training.weight_decay * value
                moments[2 * i] = 0.9 * moments[2 * i] + 0.1 * grad
                moments[2 * i + 1] = 0.999 * moments[2 * i + 1] + 0.001 * grad**2
                mean, square = moments[2 * i] / (1 - 0.9**step), moments[2 * i + 1] / (1 - 0.999**step)
                value -= training.lr * mean / (np.sqrt(square) + 1e-8)
    return w, b


@pytest.mark.parametrize("method", ["pn", MOVING], ids=["cross-entropy", "moving log end, class weights"])
def test_a_run_is_that_of_numpy(method):
    chosen = cell(methods=[method])
    key, data, static, hyper = job.inputs(chosen, 0)
    start = train.init(key, data, static, hyper).params
    w, b = trained_by_hand(key, data, start, chosen.method, chosen.training)
    run = jitted_train(key, data, static, hyper)
    np.testing.assert_allclose(run.state.params["head"]["kernel"], w, atol=2e-4)
    np.testing.assert_allclose(run.state.params["head"]["bias"], b, atol=2e-4)
    z = np.asarray(data.x)[np.asarray(data.test)] @ w + b
    y = np.asarray(data.y)[np.asarray(data.test)]
    assert float(run.history["test_oracle_accuracy"][-1]) == pytest.approx((z.argmax(axis=1) == y).mean(), abs=0.003)
    assert float(run.history["test_oracle_log_loss"][-1]) == pytest.approx(
        -np.log(softmax(z)[np.arange(len(y)), y]).mean(), abs=1e-3
    )


@pytest.mark.slow
def test_what_is_recorded_are_the_metrics_of_the_logits():
    key, data, static, hyper = job.inputs(cell(), 1)
    run = jitted_train(key, data, static, hyper)
    model = models.build(static.model, (64,), static.outputs)
    variables = run.state.variables
    for prefix, rows in (("test", data.test), ("val", data.val)):
        z = model.logits(variables, train.features(data, rows))
        for name, value in multiclass.oracle_metrics(z, data.y[rows]).items():
            assert float(run.history[f"{prefix}_{name}"][-1]) == pytest.approx(float(value), rel=1e-5), name
    np.testing.assert_array_equal(run.history["test_oracle_f1"], run.history["test_oracle_f1_decision"])
    z = model.logits(variables, train.features(data, data.train))
    assert float(run.history["train_accuracy"][-1]) == pytest.approx(float(multiclass.accuracy(z, data.y[data.train])))
    assert (np.asarray(run.history["train_skipped"]) == 0).all()


@pytest.mark.slow
def test_two_classes_trained_as_many_are_the_binary_run():
    """With weights of opposite sign and no weight decay, two logits are one: gradients ± of the same loss."""
    z = jnp.array([2.0, -1.0, 0.3])
    y = jnp.array([1, 0, 0])
    two = jnp.stack([-z / 2, z / 2], axis=1)
    for surrogate in ("logistic", "encouraging", "focal"):
        method = Method("pn", options={"surrogate": surrogate})
        alone, hyper = objective.objective_of([method]), objective.hyper_of(method, TrainingConfig(), 0.4)
        now = objective.at(hyper, 0, 1)
        one, mask = jnp.ones(3), jnp.array([1.0, 1.0, 0.0])
        binary, _ = objective.base_risk(alone, now, z, one, mask, y=y)
        many, _ = objective.base_risk(alone, now, two, one, mask, y=y)
        assert float(binary) == pytest.approx(float(many), rel=1e-6)


# Class weights and schedules as numbers of a method


@pytest.mark.parametrize("weighting", ["none", "inverse_frequency", "effective_number"])
def test_class_weights_come_from_the_training_rows(weighting):
    beta = 0.9 if weighting == "effective_number" else 0.999
    method = Method("pn", class_weights=weighting, effective_beta=beta)
    counts = np.array([100, 10, 1])
    weights = np.asarray(objective.hyper_of(method, TrainingConfig(), float("nan"), counts.tolist()).class_weights)
    effective = (1 - 0.9**counts) / 0.1
    wanted = {
        "none": np.ones(3),
        "inverse_frequency": 111 / (3 * counts),
        "effective_number": (1 / effective) / (1 / effective).mean(),
    }
    np.testing.assert_allclose(weights, wanted[weighting], rtol=1e-5)
    assert ("weighted" in describe(method)) == (weighting != "none")


def test_in_pu_data_the_oracle_weighs_true_classes_and_the_naive_method_labels():
    found = {}
    for preset in ("pn", "pn_naive"):
        raw = {"data": {"name": "gaussians"}, "methods": [{"preset": preset, "class_weights": "inverse_frequency"}]}
        [one] = expand(parse(raw))
        ready = prepared(one.data, 0)
        found[preset] = np.asarray(job.traced_part(one, ready).class_weights)
        rows, labels = ready.rows.train, load("gaussians").y
        positive = labels[rows].sum() if preset == "pn" else int(ready.rows.n_labeled)
        counts = np.array([len(rows) - positive, positive])
        np.testing.assert_allclose(found[preset], len(rows) / (2 * counts), rtol=1e-6)
    assert not np.allclose(found["pn"], found["pn_naive"])


def test_a_method_that_is_no_mean_has_no_class_weights():
    with pytest.raises(ConfigError, match="class_weights is 'inverse_frequency', expected 'none' for 'nnpu'"):
        cell(data={"name": "gaussians"}, methods=[{"preset": "nnpu", "class_weights": "inverse_frequency"}])


@pytest.mark.parametrize(
    ("schedule", "ends"), [("linear", [0.2, 0.35, 0.5, 0.65, 0.8]), ("step", [0.2, 0.2, 0.8, 0.8, 0.8])]
)
def test_the_log_end_moves_over_the_epochs(schedule, ends):
    method = Method("pn", options={"surrogate": "encouraging", "log_end": Schedule(0.2, 0.8, schedule)})
    hyper = objective.hyper_of(method, TrainingConfig(), 0.4)
    found = [objective.at(hyper, epoch, 5).options["log_end"] for epoch in range(5)]
    np.testing.assert_allclose(found, ends, rtol=1e-6)
    assert "encouraging loss up to 0.2 to 0.8" in describe(method)


# Data


def test_splits_keep_the_shares_of_all_classes():
    y = load("digits").classes
    for key in (0, 1):
        parts = sampling.split(y, key, test=0.2, validation=(0.1, 0.3))
        assert sorted(np.concatenate(parts[:3])) == list(range(len(y)))
        rest = np.setdiff1d(np.arange(len(y)), parts.test)
        for part, whole in (
            (parts.test, np.arange(len(y))),
            *((parts.validation[:n], rest) for n in parts.validation_sizes),
        ):
            quota = [Fraction(len(part)) * int(c) / len(whole) for c in np.bincount(y[whole], minlength=10)]
            apart = [abs(int(c) - q) for c, q in zip(np.bincount(y[part], minlength=10), quota, strict=True)]
            assert max(apart) < 1
            assert len(part) == sum(np.bincount(y[part]))


def test_a_long_tail_has_its_profile_and_only_rows_that_were_there():
    y = np.repeat(np.arange(5), [80, 90, 70, 60, 50])
    rows = np.arange(0, len(y), 2)
    for ratio in (1.0, 10.0, 1000.0):
        kept = sampling.long_tail(y, rows, 3, ratio=ratio)
        assert set(kept) <= set(rows)
        assert (np.diff(kept) > 0).all()
        wanted = [max(int(25 * ratio ** (-j / 4) + 1e-9), 1) for j in range(5)]
        assert np.bincount(y[kept]).tolist() == wanted
    assert not np.array_equal(sampling.long_tail(y, rows, 3, ratio=10.0), sampling.long_tail(y, rows, 4, ratio=10.0))
    with pytest.raises(ValueError, match=r"ratio of at least 1.*got 0.5"):
        sampling.long_tail(y, rows, 3, ratio=0.5)
    with pytest.raises(ValueError, match="class 4 has no row"):
        sampling.long_tail(y, np.flatnonzero(y < 4), 3, ratio=2.0)


def test_imbalance_thins_the_training_rows_alone():
    plain, thinned = (prepared(cell(data__imbalance=ratio).data, 0) for ratio in (1, 20))
    assert plain.class_counts == tuple(np.bincount(load("digits").classes[plain.rows.train]))
    least = min(plain.class_counts)
    assert thinned.class_counts == tuple(int(least * 20 ** (-j / 9) + 1e-9) for j in range(10))
    assert set(thinned.rows.train) < set(plain.rows.train)
    for name in ("val", "test"):
        np.testing.assert_array_equal(getattr(plain.rows, name), getattr(thinned.rows, name))
    binary = prepared(parse({"data": {"name": "digits", "imbalance": 10}}).data, 0)
    assert binary.prior == pytest.approx(1 / 11, abs=0.01)


@pytest.mark.slow
def test_rows_from_elsewhere_are_looked_at_and_never_trained_on():
    chosen = cell(data__outside="gaussians", data__name="digits")
    with pytest.raises(ConfigError, match=r"data.outside: rows of gaussians have shape .*expected \(64,\)"):
        prepared(chosen.data, 0)
    elsewhere = cell(data__outside="digits")
    key, data, static, hyper = job.inputs(elsewhere, 0)
    shown = np.concatenate([data.train, data.val, data.test])
    assert len(data.outside) == 1000
    assert not set(shown) & set(np.asarray(data.outside).tolist())
    run, plain = jitted_train(key, data, static, hyper), jitted_train(*job.inputs(cell(), 0))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), run.state.params, plain.state.params)
    model = models.build(static.model, (64,), 10)
    variables = run.state.variables
    z_test, z_out = (model.logits(variables, data.x[rows]) for rows in (data.test, data.outside))
    sure = [np.asarray(jax.nn.softmax(z, axis=1)).max(axis=1) for z in (z_test, z_out)]
    assert float(run.history["test_outside_confidence"][-1]) == pytest.approx(sure[1].mean(), rel=1e-5)
    # the same digits, most of them trained on, are no strangers: the network is surer of them, if anything
    beats = (sure[0][:, None] > sure[1][None]).mean() + 0.5 * (sure[0][:, None] == sure[1][None]).mean()
    assert float(run.history["test_outside_auc"][-1]) == pytest.approx(beats, abs=1e-4)


# Networks for images


@pytest.mark.slow
def test_a_small_convolutional_network_halves_the_image_twice():
    model = models.build(ModelConfig(name="cnn", channels=(4, 6), hidden=(5,), dropout=(0.5,)), (8, 8), 10)
    variables = models.Variables(*model.init(jax.random.key(0), (8, 8)))
    params = variables.params
    shapes = {name: part["kernel"].shape for name, part in params.items()}
    assert shapes == {"conv0": (9, 4), "conv1": (36, 6), "layer0": (2 * 2 * 6, 5), "head": (5, 10)}
    for name, part in params.items():  # torch's bounds, 1 / sqrt(fan in)
        bound = 1 / np.sqrt(shapes[name][0])
        for leaf in part.values():
            assert np.abs(leaf).max() <= bound
        assert np.abs(part["kernel"]).max() > 0.7 * bound
    x = jax.random.normal(jax.random.key(1), (3, 8, 8))
    trained, _ = model.apply(*variables, x, key=jax.random.key(2), train=True)
    assert not np.allclose(trained, model.logits(variables, x)), "dropout"


@pytest.mark.parametrize("shape", [(8, 8), (7, 5), (6, 6, 3)])
def test_its_layers_are_convolutions(shape):
    model = models.build(ModelConfig(name="cnn", channels=(4, 6), hidden=(), dropout=()), shape, 10)
    variables = models.Variables(*model.init(jax.random.key(0), shape))
    params = variables.params
    x = jax.random.normal(jax.random.key(1), (3, *shape))
    z = x if x.ndim == 4 else x[..., None]
    for name in ("conv0", "conv1"):
        kernel = params[name]["kernel"].reshape(3, 3, z.shape[-1], -1)
        layout = ("NHWC", "HWIO", "NHWC")
        z = jax.lax.conv_general_dilated(z, kernel, (2, 2), ((1, 1), (1, 1)), dimension_numbers=layout)
        z = jax.nn.relu(z + params[name]["bias"][None, None, None])
    wanted = z.reshape(3, -1) @ params["head"]["kernel"] + params["head"]["bias"][None]
    np.testing.assert_allclose(model.logits(variables, x), wanted, rtol=1e-4, atol=1e-5)


def test_a_residual_network_of_three_blocks_has_twenty_layers():
    model = models.build(ModelConfig(name="resnet", channels=(8, 16, 32), blocks=3), (8, 8, 3), 10)
    params, _ = jax.jit(model.init, static_argnums=1)(jax.random.key(0), (8, 8, 3))
    layers = [name for name, part in params.items() if "kernel" in part and "shortcut" not in name]
    assert len(layers) == 20
    assert sum("shortcut" in name and "kernel" in part for name, part in params.items()) == 2
    assert all((part["scale"] == 1).all() and (part["bias"] == 0).all() for part in params.values() if "scale" in part)


@pytest.mark.slow
def test_rows_of_a_residual_network_do_not_mix():
    model = models.build(ModelConfig(name="resnet", channels=(8, 16), blocks=1), (8, 8, 3), 10)
    variables, logits = models.start(model, jax.random.key(0), (8, 8, 3)), jax.jit(model.logits)
    x = jax.random.normal(jax.random.key(1), (4, 8, 8, 3))
    np.testing.assert_allclose(logits(variables, x)[:1], logits(variables, x[:1]), rtol=1e-4, atol=1e-5)
    grey = models.build(ModelConfig(name="resnet", channels=(8,), blocks=1), (8, 8))
    assert grey.logits(models.start(grey, jax.random.key(0), (8, 8), 0.5), x[..., 0]).shape == (4,)


def test_convolutions_want_images_and_say_so():
    chosen = cell(model__name="cnn")
    with pytest.raises(ConfigError, match=r"'cnn' wants images.*digits have shape \(64,\).*as_images"):
        api.sweep(experiment(model__name="cnn"))
    model = models.build(chosen.model, (64,), 10)
    with pytest.raises(ValueError, match=r"convolutions want rows of shape \(h, w\)"):
        model.init(jax.random.key(0), (64,))
    images = cell(model__name="cnn", data__options={"as_images": 1})
    assert job.inputs(images, 0)[1].x.shape[1:] == (8, 8)
    np.testing.assert_array_equal(load("digits", as_images=1).x.reshape(-1, 64), load("digits").x)


# What is asked for, and what is told


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"methods": ["vpu"]}, "method 'vpu' is one of positive and unlabeled data"),
        ({"methods": ["pn", "nnpu"]}, "method 'nnpu' is one of positive and unlabeled data"),
        (
            {"selection__rules": ["last", "pu_auc"]},
            r"'pu_auc' wants positive and unlabeled rows; of many classes \['last'",
        ),
        ({"data__imbalance": 0.5}, "data.imbalance"),
        ({"data__c": 0.5}, "data.c is of labeled positives; of many classes it has no effect"),
    ],
)
def test_what_many_classes_do_not_have_is_refused(changes, said):
    with pytest.raises(ConfigError, match=said):
        experiment(**changes)


def test_a_dataset_of_two_classes_is_no_task_of_many():
    with pytest.raises(ConfigError, match=r"kind: breast_cancer has two classes"):
        prepared(cell(data__name="breast_cancer").data, 0)


@pytest.mark.slow
def test_a_sweep_ends_in_tables_of_accuracies(tmp_path, capsys):
    path = tmp_path / "ten.yaml"
    path.write_text(config.dump(experiment(methods=["pn", MOVING])))
    with pytest.raises(SystemExit) as end:
        cli.main(["run", str(path), "--out", str(tmp_path / "out"), "--quiet"])
    assert end.value.code == 0, capsys.readouterr().err
    summary = pl.read_csv(tmp_path / "out" / "summary.csv")
    runs = pl.read_parquet(tmp_path / "out" / "runs.parquet")
    for method in ("pn", "moving"):
        last = runs.filter(method=method, epoch=2)["test_oracle_accuracy"].mean()
        row = summary.filter(method=method, selection="last", metric="accuracy").row(0, named=True)
        assert row["mean"] == pytest.approx(last, rel=1e-6)
        table = (tmp_path / "out" / "table.md").read_text()
        assert f"| `{method}` | {last:.3f} |" in table
    assert "| method | accuracy | mean F1" in table
    assert set(pl.read_csv(tmp_path / "out" / "verdicts.csv")["verdict"]) == {"healthy"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert re.search(r"<th[^>]*>accuracy</th>", page)


# Verdicts


def course(**columns):
    healthy = {
        "oracle_f1": [0.6, 0.7, 0.8],
        "oracle_auc": [0.9, 0.95, 0.96],
        "predicted_most": [0.15, 0.14, 0.12],
        "largest_class": [0.1, 0.1, 0.1],
        "score_sd": [0.2, 0.2, 0.2],
    }
    return healthy | columns


ONE_CLASS = 1 - collapse.Thresholds().one_class * 0.9
"""The largest share of one class, where the largest has 0.1, that is not yet the verdict."""


@pytest.mark.parametrize(
    ("columns", "selected", "verdict"),
    [
        ({}, -1, Verdict.HEALTHY),
        (
            {"predicted_most": [0.1, 0.1, 1.0], "oracle_auc": [0.9, 0.9, 0.5], "oracle_f1": [0.6, 0.6, 0.018]},
            -1,
            Verdict.CONSTANT,
        ),
        ({"predicted_most": [0.1, 0.1, ONE_CLASS + 1e-3], "oracle_f1": [0.6, 0.6, 0.05]}, -1, Verdict.THRESHOLD_SHIFT),
        ({"predicted_most": [0.1, 0.1, ONE_CLASS - 1e-3]}, -1, Verdict.HEALTHY),
        ({"oracle_auc": [0.9, 0.9, 0.6]}, -1, Verdict.WEAK_RANKING),
        ({"oracle_auc": [0.9, 0.9, 0.1], "oracle_f1": [0.6, 0.6, 0.01]}, -1, Verdict.INVERTED),
        ({"score_sd": [0.2, 0.2, np.nan], "oracle_auc": [0.9, 0.9, np.nan]}, -1, Verdict.DIVERGED),
        ({"oracle_auc": [np.nan] * 3}, -1, Verdict.UNDEFINED),
        (
            {"predicted_most": [1.0, 0.1, 0.1], "oracle_auc": [0.5, 0.9, 0.9], "oracle_f1": [0.018, 0.6, 0.7]},
            0,
            Verdict.SELECTION_ARTEFACT,
        ),
    ],
)
def test_verdicts_of_many_classes(columns, selected, verdict):
    found = collapse.diagnose_run(course(**columns), selected)
    assert found.verdict == verdict
    assert "nan" not in found.explanation
    assert "positive" not in found.explanation


def test_a_verdict_says_which_columns_it_lacks():
    columns = course()
    del columns["largest_class"]
    with pytest.raises(ValueError, match=r"missing metrics \['largest_class'\]"):
        collapse.diagnose_run(columns, -1)


@pytest.mark.slow
def test_the_confidence_of_two_classes_is_looked_at_too():
    raw = {"data": {"name": "digits", "outside": "digits"}, "training": {"epochs": 1}, "model": {"name": "linear"}}
    key, data, static, hyper = job.inputs(expand(parse(raw | {"methods": ["pn"]}))[0], 0)
    run = jitted_train(key, data, static, hyper)
    z = models.build(static.model, (64,)).logits(run.state.variables, data.x[data.outside])
    p = np.asarray(jax.nn.sigmoid(z))
    assert float(run.history["test_outside_confidence"][0]) == pytest.approx(np.maximum(p, 1 - p).mean(), rel=1e-5)
