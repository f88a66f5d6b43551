"""The kind ``guided``: the update against a loop in NumPy, what a run records, and what students need."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from jaxpu import collapse, config, data, mixup, models, runs, train
from jaxpu.config import ConfigError
from jaxpu.data import plan
from jaxpu.train import STEPS, loop
from jaxpu.valuation import job

TINY = {
    "kind": "guided",
    "data": {"test": 0.5},
    "model": {"hidden": [16]},
    "training": {"epochs": 4, "lr": 0.2},
    "teachers": ["mixup"],
    "sees": ["all"],
    "seeds": 2,
    "probes": ["weight_norm"],
}


def experiment(**changes):
    return config.parse(TINY | changes)


def job_with(method, asked, made):
    """The job of a method, its arrays on the device."""
    [mine] = [one for one in job.jobs(asked, made) if any(run.columns["method"] == method for run in one.runs)]
    return dataclasses.replace(mine, shared=jax.tree.map(jnp.asarray, mine.shared))


LR, EPOCHS = 0.3, 3
LINEAR = {
    "data": {"name": "gaussians", "options": {"n": 60}, "test": 0.4},
    "model": {"name": "linear"},
    "training": {"epochs": EPOCHS, "batch_size": 8, "lr": LR, "weight_decay": 0.01},
    "seeds": 1,
    "probes": [],
}


@pytest.fixture(scope="module")
def linear():
    """Students of a linear model and a teacher drawn at random, trained by one program: filter -> (state, history)."""
    asked = experiment(**LINEAR)
    made = job.runs(asked)
    students = job_with("low", asked, made)
    shape = students.shared["x"].shape[1:]
    draw = np.random.default_rng(0)
    teacher = jax.tree.map(
        lambda leaf: draw.normal(size=leaf.shape).astype(np.float32), job._nobody(students.static.train, shape)
    )
    key = train.key_of(0)

    @jax.jit
    def trained(own):
        state = job._init(students.static, key, students.shared, own)
        return job._advance(students.static, key, state, students.shared, own, EPOCHS)

    found = {}
    for run in students.runs:
        needed = {run_id: teacher._asdict() for run_id in run.needs}
        own = jax.tree.map(jnp.asarray, students.inputs(run, needed))
        found[run.columns["method"]] = (own, *trained(own))
    return students, key, teacher, found


def log_softmax(z):
    shifted = z - z.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def numpy_student(students, key, teacher, own, name):
    """The loop by hand, on the batches, partners and λ of the run; its weights, and shares kept."""
    static, arrays = students.static.train, job._data(students.shared, own)
    key = jax.random.fold_in(key, job.STUDENTS)
    x, y = (np.asarray(a) for a in (train.features(arrays, arrays.train), arrays.y[arrays.train]))
    start = models.start(models.build(static.model, x.shape[1:], 2), jax.random.fold_in(key, 0), x.shape[1:], jnp.nan)
    w, b = (np.asarray(start.params["head"][part], np.float64) for part in ("kernel", "bias"))
    tw, tb = (np.asarray(teacher.params["head"][part], np.float64) for part in ("kernel", "bias"))
    speed, count, kept = [np.zeros_like(w), np.zeros_like(b)], 0, []
    for epoch in range(EPOCHS):
        rows, mask = map(np.asarray, plan.mixed_plan(loop._fold(key, loop.SHUFFLE, epoch), len(x), 8, arrays.n_train))
        lam = np.asarray(mixup.sample(loop._fold(key, loop.LAMBDA, epoch), own.hyper.alpha, (len(rows),)))
        keys = jax.random.split(loop._fold(key, STEPS, epoch), (len(rows), 3))
        shares = []
        for step, (places, there) in enumerate(zip(rows, mask, strict=True)):
            if not there.any():
                continue
            partner = np.asarray(mixup.shuffle(keys[step, 1], jnp.ones(8), mask=jnp.asarray(there)))
            mixed = lam[step] * x[places] + (1 - lam[step]) * x[places][partner]
            hot = np.eye(2)[y[places]]
            label = lam[step] * hot + (1 - lam[step]) * hot[partner]
            log_p, log_t = log_softmax(mixed @ w + b), log_softmax(mixed @ tw + tb)
            risk = -(label * log_t).sum(1) + (label * log_p).sum(1)
            keep = there * {"low": risk <= 0, "high": risk > 0}.get(name, np.ones(8))
            slope = keep[:, None] * (np.exp(log_p) - label) / max(keep.sum(), 1)
            rate = LR * 0.5 * (1 + np.cos(np.pi * count / (EPOCHS * -(-int(arrays.n_train) // 8))))
            for part, grad in enumerate((mixed.T @ slope + 0.01 * w, slope.sum(0) + 0.01 * b)):
                speed[part] = 0.9 * speed[part] + grad
            w, b, count = w - rate * speed[0], b - rate * speed[1], count + 1
            shares.append(keep.sum() / there.sum())
        kept.append(np.mean(shares))
    return w, kept


@pytest.mark.parametrize("name", ["whole", "low", "high"])
def test_a_student_is_the_plain_loop(linear, name):
    students, key, teacher, found = linear
    own, state, history = found[name]
    w, kept = numpy_student(students, key, teacher, own, name)
    np.testing.assert_allclose(state.params["head"]["kernel"], w, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(history["train_passed"], kept, rtol=1e-5)


@pytest.mark.slow
def test_without_a_learning_rate_low_and_high_share_the_pairs(linear):
    students, key, _, found = linear
    still = {}
    for name in ("low", "high"):
        own = found[name][0]
        own = own._replace(hyper=own.hyper._replace(lr=jnp.zeros(())))
        state = job._init(students.static, key, students.shared, own)
        still[name] = jax.jit(functools.partial(job._advance, students.static, epochs=1))(
            key, state, students.shared, own
        )[1]["train_passed"]
    np.testing.assert_allclose(still["low"] + still["high"], 1.0, rtol=1e-6)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guided")
    return folder, runs.run(experiment(), job, folder).runs


@pytest.mark.slow
def test_a_run_is_one_row_and_teachers_are_runs_too(finished):
    _, frame = finished
    assert frame.columns[:6] == ["run_id", "dataset", "method", "teacher", "sees", "seed"]
    assert frame.filter(seed=0)["method"].to_list() == ["none", "teacher", "whole", "low", "high"]
    assert frame.filter(method="none")["teacher"].null_count() == 2
    end = {method: frame.filter(method=method) for method in frame["method"].unique()}
    for row in frame.iter_rows(named=True):
        assert row["path_epoch"] == [1, 2, 3, 4]
        assert row["path_accuracy"][-1] == row["accuracy"]
        assert row["probe_weight_norm"] > 0
    for method in ("none", "teacher", "whole"):
        assert (end[method]["kept"] == 1).all()
    assert (end["teacher"]["accuracy"] > end["none"]["accuracy"].mean()).all(), "it has seen the rows of the test"
    assert (end["low"]["kept"] > end["high"]["kept"]).all()
    assert (end["high"]["accuracy"] < end["low"]["accuracy"]).all()
    assert set(end["none"]["verdict"]) == {"healthy"}


@pytest.mark.slow
def test_a_seed_alone_is_the_same_seed_among_others_and_another_teacher_changes_nothing(finished):
    _, frame = finished
    alone = runs.run(experiment(seeds=1, first_seed=1, teachers=["plain", "mixup"]), job, None).runs
    mine = alone.filter((pl.col("teacher") == "mixup") | pl.col("teacher").is_null())
    assert_frame_equal(mine, frame.filter(seed=1), rel_tol=1e-4, abs_tol=1e-6)


@pytest.mark.slow
def test_students_have_the_networks_of_their_teachers(finished):
    folder, frame = finished
    asked = experiment()
    made = job.runs(asked)
    students = {run.run_id: run for run in made if run.needs}
    low = frame.filter(method="low", seed=1).row(0, named=True)
    teacher = frame.filter(method="teacher", seed=1).row(0, named=True)
    run = students[low["run_id"]]
    assert run.needs == (teacher["run_id"],)
    of_students = job_with("low", asked, made)
    kept = {teacher["run_id"]: runs.read_parameters(folder, teacher["run_id"])}
    own = jax.tree.map(jnp.asarray, of_students.inputs(run, kept))
    model = models.build(of_students.static.train.model, (64,), 10)
    arrays = job._data(of_students.shared, own)
    logits = model.logits(own.guide.teacher, train.features(arrays, arrays.test))
    accuracy = (np.asarray(logits).argmax(1) == np.asarray(arrays.y)[arrays.test]).mean()
    assert low["teacher_accuracy"] == pytest.approx(accuracy)
    assert accuracy == pytest.approx(teacher["accuracy"])


@pytest.mark.slow
def test_another_loss_and_two_classes():
    changes = {"two_classes": True, "loss": "mae_mse", "filters": ["low"], "seeds": 1, "sees": ["train"]}
    frame = runs.run(experiment(**changes), job, None).runs
    assert frame["prevalence"].is_between(0.45, 0.55).all()
    assert frame.filter(method="none")["average_precision"][0] > 0.7


def test_a_student_that_its_filter_starves_is_self_reinforcing():
    epochs = 6
    history = {f"test_{name}": np.full(epochs, 0.1) for name in ("oracle_ece", "oracle_brier", "oracle_log_loss")}
    history |= {f"test_oracle_{name}": np.full(epochs, 0.05) for name in ("accuracy", "balanced_accuracy", "f1")}
    history |= {"test_oracle_auc": np.full(epochs, 0.5), "test_predicted_most": np.full(epochs, 0.99)}
    history |= {"test_largest_class": np.full(epochs, 0.1), "test_score_sd": np.full(epochs, 0.01)}
    history |= {"test_score_mean": np.linspace(0.5, 0.1, epochs), "train_loss": np.ones(epochs)}
    run = job.runs(experiment())[-1]
    for kept, verdict in ((0.01, "self_reinforcing"), (0.9, str(collapse.Verdict.CONSTANT))):
        row = job.record(run, history | {"train_passed": np.full(epochs, kept), "train_entered": np.full(epochs, kept)})
        assert row["verdict"].to_list() == [verdict]


def test_teachers_are_trained_once_for_all_that_their_students_do():
    rows = [{"guide.draws": 1}, {"guide.draws": 2}, {"student.alpha_schedule": "easy"}, {"student.mixing": "regmixup"}]
    made = job.runs(experiment(grid=rows, filters=["low", "random"], sees=["all", "train"]))
    methods = [run.columns["method"] for run in made if run.seed == 0]
    assert {name: methods.count(name) for name in set(methods)} == {"none": 1, "teacher": 2, "low": 8, "random": 8}
    assert len({run.run_id for run in made}) == len(made)
    assert len({run.needs for run in made if run.needs and run.seed == 0}) == 2


@pytest.fixture(scope="module")
def controls():
    """Filters with one draw and with two, a student that refreshes its teacher, one that is never filtered."""
    rows = [{"guide.draws": 1}, {"guide.draws": 2}, {"guide.refresh": 1}, {"guide.until": 0.5}, {"guide.mean": "batch"}]
    return runs.run(experiment(grid=rows, filters=["whole", "low", "random"], seeds=1), job, None).runs


@pytest.mark.slow
def test_controls_do_what_they_say(controls):
    def of(method, **where):
        found = controls.filter(method=method, **{f"guide.{name}": value for name, value in where.items()})
        return found.row(0, named=True)

    assert of("low", draws=1)["entered"] == pytest.approx(of("low", draws=1)["kept"])
    assert of("low", draws=2)["entered"] > 0.99 > of("low", draws=2)["kept"], "two draws fill the batch"
    whole, batch = of("whole", draws=1), of("whole", mean="batch")
    assert whole["log_loss"] == pytest.approx(batch["log_loss"], rel=1e-5), "where all are kept the mean is the same"
    assert of("low", until=0.5)["kept"] == 1
    assert of("low", refresh=1)["path_kept"][0] == pytest.approx(of("low", draws=1)["path_kept"][0])
    assert of("low", refresh=1)["path_kept"][1] != pytest.approx(of("low", draws=1)["path_kept"][1], abs=1e-3)
    for name in ("negative", "teacher_accuracy", "rho_conflict", "crossing", "tail_lambda"):
        assert np.isfinite(whole[name])
    assert len(whole["lambda_size"]) == 10
    assert len(whole["extreme_risk"]) == 300
    assert whole["extreme_risk"][0] <= whole["extreme_risk"][99] <= 0 <= whole["extreme_risk"][199]


def test_labels_that_are_made_wrong_are_other_classes_of_training_rows_alone():
    source = job._as_classes(data.load("digits"), None, False)
    rows = np.arange(100, 300)
    wrong = job.mislabeled(source, rows, 0.05, 1)
    assert len(wrong.rows) == 10
    assert set(wrong.rows) <= set(rows)
    assert (wrong.labels != source.classes[wrong.rows]).all()
    assert wrong.labels.max() < 10
    assert (wrong.rows != job.mislabeled(source, rows, 0.05, 2).rows).any()


def test_what_has_no_effect_is_refused():
    with pytest.raises(ConfigError, match=r"data.c has no effect"):
        experiment(data={"c": 0.5})
    with pytest.raises(ConfigError, match=r"filters.0: Input should be 'whole', 'low', 'high' or 'random', got 'lwo'"):
        experiment(filters=["lwo"])
