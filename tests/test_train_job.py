"""Training as jobs of the engine: runs do not depend on placement, a program serves its group, identity is content."""

import jax
import numpy as np
import polars as pl
import pytest
from problems import first_cell, jitted_train, run_inputs, tiny

from jaxpu import api, config, data, metrics, models, runs, train
from jaxpu.analysis import replay
from jaxpu.config import ConfigError, ModelConfig
from jaxpu.data import Dataset
from jaxpu.methods import Method
from jaxpu.runs import placement
from jaxpu.train import job

RECORDED = (
    "train_loss",
    "test_oracle_auc",
    "test_oracle_log_loss",
    "val_oracle_f1_rescue",
    "train_p_labeled",
)
FEW = ("train_loss", "test_oracle_log_loss", "test_score_mean", "val_oracle_f1")


def few_columns(variables, data, static, hyper) -> train.History:
    """What an epoch is looked at for where the training is the subject, not the sixty columns of its evaluation."""
    model = models.build(static.model, data.x.shape[1:])
    z_test, z_val = (model.logits(variables, train.features(data, rows)) for rows in (data.test, data.val))
    return {
        "test_oracle_log_loss": metrics.log_loss(z_test, data.y[data.test]),
        "test_score_mean": metrics.score_mean(z_test),
        "val_oracle_f1": metrics.f1(z_val, data.y[data.val]),
    }


@pytest.fixture
def little_evaluation(monkeypatch):
    """Programs of their own, for ``few_columns`` compile in a fraction of the time."""
    monkeypatch.setattr(train.loop, "evaluate", few_columns)
    placement.compiled.cache_clear()
    yield
    placement.compiled.cache_clear()


def numbers(runs: pl.DataFrame, seed: int, columns=RECORDED) -> np.ndarray:
    return runs.filter(pl.col("seed") == seed).select(columns).to_numpy()


@pytest.fixture(scope="module")
def among_64():
    """64 seeds, one after the other on one device: what every other placement is compared with."""
    experiment = tiny(seeds=64, placement__devices=1, placement__kind="map", selection__stop=False)
    return api.sweep(experiment).runs


def check_placement(asked, among_64, seeds, **changes) -> None:
    outcome = api.sweep(tiny(seeds=seeds, selection__stop=False, placement=asked, **changes))
    mesh = outcome.provenance["placement"][0]["mesh"]
    assert mesh == {"run": asked["devices"], "batch": asked.get("row_devices", 1)}
    columns = [name for name in {*RECORDED, *FEW} if name in outcome.runs.columns]
    assert {*columns} >= {*FEW}
    for seed in range(seeds):
        here, there = (numbers(runs, seed, columns) for runs in (outcome.runs, among_64))
        np.testing.assert_allclose(here, there, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
def test_a_run_does_not_depend_on_the_chunks_and_devices_it_runs_on(among_64):
    check_placement({"kind": "chunk", "chunk": 4, "devices": 8, "part": 64}, among_64, 64)


@pytest.mark.slow
@pytest.mark.usefixtures("little_evaluation")
@pytest.mark.parametrize(
    "asked",
    [
        {"kind": "vmap", "devices": 1, "part": 64},
        {"kind": "map", "devices": 2, "segment": 2},
        {"kind": "vmap", "devices": 2, "row_devices": 2},
    ],
    ids=lambda p: " ".join(f"{k}={v}" for k, v in p.items()),
)
def test_a_run_does_not_depend_on_where_it_runs_or_beside_what(asked, among_64):
    last = {"rules": ["last"], "default": "last", "stop": False}
    check_placement(asked, among_64, 64 if asked.get("part") else 6, selection=last)


@pytest.mark.slow
def test_a_seed_alone_is_the_same_seed_among_64(among_64):
    cell = first_cell(tiny(selection__stop=False))
    for seed in (0, 17, 63):
        key, arrays, static, hyper = run_inputs(cell, seed)
        # padded, as it is in a sweep with other label frequencies; the 64 are not
        assert (
            len(arrays.train)
            > int(arrays.n_train)
            == len(data.prepare(cell.data, data.load(cell.data), seed).rows.train)
        )
        run = jitted_train(key, arrays, static, hyper)
        alone = np.stack([run.history[name] for name in RECORDED], axis=1)
        np.testing.assert_allclose(alone, numbers(among_64, seed), rtol=2e-4, atol=2e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("little_evaluation")
def test_one_compilation_a_group_whatever_the_numbers(monkeypatch):
    traced = []
    original = train.advance
    monkeypatch.setattr(train, "advance", lambda *a: traced.append(1) or original(*a))
    experiment = tiny(
        methods=["vpudra_fixed", "vpudra_softlabel", "pudra", "nnpu"],
        selection={"rules": ["last"], "default": "last"},
        grid={"training.lr": [1e-2, 1e-3], "data.prior_scale": [1.0, 0.5], "data.c": [0.3, 0.5]},
        seeds=1,
    )
    outcome = api.sweep(experiment)
    assert len(job.runs(experiment)) == 32
    assert outcome.runs["run_id"].n_unique() == 32
    assert (
        outcome.provenance["programs"] == len(job.jobs(experiment, job.runs(experiment))) == 2
    )  # with and without mixup
    assert len(traced) == 2
    api.sweep(experiment)
    assert len(traced) == 2, "the same process has these programs already"
    losses = outcome.runs.filter(pl.col("epoch") == 2)
    assert losses["train_loss"].n_unique() > 16, "traced numbers must matter"


def test_larger_networks_take_more_memory():
    def taken(shape, **model):
        experiment = tiny(data__name="digits", data__options={"as_images": 1}, model=model)
        static = job.jobs(experiment, job.runs(experiment)[:1])[0].static
        return job._memory(static, {"x": np.zeros((1000, *shape), np.float32)})

    small, large = (taken((28, 28), hidden=[width], dropout=[]) for width in (8, 512))
    assert taken((28, 28), name="linear") <= small < large
    assert models.activations(*network("cnn", (8, 8), channels=(4, 6), hidden=(5,), dropout=())) > 16 * 4 + 4 * 6 + 5
    wide, narrow = (models.activations(*network("resnet", (size, size), channels=(4,), blocks=1)) for size in (16, 8))
    assert wide == pytest.approx(4 * narrow, rel=0.05), "maps grow with the image"


def network(name, shape, **widths):
    return models.build(ModelConfig(name=name, **widths), shape, 10), shape


def prepared_of(settings, seed):
    asked = config.parse({"data": settings}).data
    return data.prepare(asked, data.load(asked), seed)


def test_preparation_is_the_protocol_of_the_seed():
    prepared = prepared_of({"validation": [0.01], "prior": "all"}, 3)
    assert (len(prepared.rows.val), len(prepared.rows.test)) == (37, 921)
    assert prepared.rows.n_labeled == 143
    assert len(prepared.rows.train) == 3643 + 143
    assert prepared.prior == pytest.approx(0.4168, abs=5e-5)
    unlabeled = prepared_of({"validation": [0.01]}, 3)
    assert unlabeled.prior == pytest.approx(0.3939, abs=5e-5)
    np.testing.assert_array_equal(unlabeled.rows.train, prepared.rows.train)
    with pytest.raises(ConfigError, match="unknown dataset 'spambas'"):
        prepared_of({"name": "spambas"}, 0)
    with pytest.raises(ConfigError, match="prior_scale"):
        prepared_of({"prior_scale": 9}, 0)


@pytest.fixture(scope="module")
def nested_and_kept(tmp_path_factory):
    """Two runs with nested validation sets whose best parameters are kept: one program for two tests."""
    rules = ["val_f1", {"rule": "val_f1", "validation": 0.1}, {"rule": "val_f1", "validation": 0.3}]
    experiment = tiny(seeds=2, data__validation=[0.1, 0.3], selection__rules=rules, selection__keep_best=True)
    folder = tmp_path_factory.mktemp("kept")
    return experiment, folder, api.sweep(experiment, folder=folder).runs


@pytest.mark.slow
def test_nested_validation_sets_are_recorded_and_rules_can_read_them(nested_and_kept):
    _, _, found = nested_and_kept
    np.testing.assert_array_equal(found["val_oracle_f1"], found["val@0.1_oracle_f1"])
    assert found["val@0.3_oracle_auc"].is_finite().all()
    assert (found["val@0.3_oracle_log_loss"] != found["val@0.1_oracle_log_loss"]).all()


@pytest.mark.slow
def test_the_parameters_of_the_best_epoch_are_kept_if_asked(nested_and_kept, tmp_path):
    experiment, folder, found = nested_and_kept
    for run in found.partition_by("run_id"):
        best = replay(run["val_oracle_f1"].to_numpy(), patience=2, min_delta=1e-4).epoch
        _, arrays, static, _ = run_inputs(first_cell(experiment), run["seed"][0])
        variables = models.Variables(**runs.read_parameters(folder, run["run_id"][0]))
        logits = models.build(static.model, (3,)).logits(variables, train.features(arrays, arrays.test))
        assert float(jax.nn.sigmoid(logits).mean()) == pytest.approx(run["test_score_mean"][best], rel=1e-5)
    with pytest.raises(runs.ResultsError, match="keep_best=true"):
        runs.read_parameters(tmp_path, "none")


def ids(experiment, dataset=None):
    return [run.run_id for run in job.runs(experiment, dataset)]


def test_identity_is_settings_however_written_and_the_content_of_the_data():
    assert ids(tiny(training__lr=1e-3)) == ids(tiny(training__lr="0.001")) != ids(tiny(training__lr=2e-3))
    assert ids(tiny(grid={"training.lr": [1e-3]})) == ids(tiny(training__lr=1e-3))
    assert ids(tiny(name="other", description="words", placement__kind="vmap", seeds=3)) == ids(tiny())
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = np.arange(60) % 2
    first, same, other = (
        Dataset.from_arrays(values, y, name=name) for values, name in ((x, "a"), (x, "b"), (x + 1, "a"))
    )
    assert ids(tiny(), first) == ids(tiny(), same) != ids(tiny(), other)


@pytest.mark.slow
def test_data_that_was_replaced_is_refused(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    settings = tiny(model={"name": "linear"}, training__epochs=1, seeds=1)
    api.sweep(settings, data=Dataset.from_arrays(x, y), folder=tmp_path)
    with pytest.raises(runs.ResultsError, match="or of other data; nothing was changed"):
        api.sweep(settings, data=Dataset.from_arrays(x + 1, y), folder=tmp_path)


@pytest.mark.slow
def test_a_function_without_a_name_is_for_memory_only(tmp_path):
    def mine(logits, labeled, *, prior, mask=None):
        return (logits**2).mean() + 0 * prior

    experiment = tiny(methods=[Method(mine)], model={"name": "linear"}, training__epochs=1, seeds=1)
    assert api.sweep(experiment).runs.height == 1
    with pytest.raises(ConfigError, match=r"is a lambda, a function inside a function or an object.*without a folder"):
        api.sweep(experiment, folder=tmp_path)


def test_a_method_that_needs_labels_wants_labels():
    s = np.arange(40) % 4 == 0
    dataset = Dataset.from_arrays(np.random.default_rng(0).normal(size=(40, 2)), s=s)
    settings = {"data": {"prior": 0.3, "test": 0.0}, "selection": {"rules": ["last"], "default": "last"}}
    with pytest.raises(ConfigError, match="'pn' learns from true labels, and own has observed ones only"):
        api.sweep({**settings, "methods": ["pn"]}, data=dataset)
    with pytest.raises(ConfigError, match="needs true labels, and only observed ones are known"):
        api.sweep({"data": settings["data"], "methods": ["nnpu"]}, data=dataset)
