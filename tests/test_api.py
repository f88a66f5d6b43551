"""The library without files: networks on rows of one's own in one call, with what is recorded and judged of them."""

import subprocess
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import polars as pl
import pytest

import jaxpu
from jaxpu import api, own, runs
from jaxpu.config import ConfigError
from jaxpu.data import Dataset
from jaxpu.methods import Method

RNG = np.random.default_rng(0)
Y = (np.arange(240) % 3 == 0).astype(int)
X = RNG.normal(size=(240, 2)) * [1.0, 50.0] + 3.0 * Y[:, None] * [1.0, 50.0]
S = Y * (RNG.random(240) < 0.5)
SETTINGS = {"model": "linear", "epochs": 12, "batch_size": 32, "lr": 0.1, "validation": [0.2], "seeds": 3}
RULES = {"rules": ["pu_accuracy", "last"], "default": "pu_accuracy"}


@pytest.fixture(scope="module")
def fitted():
    return jaxpu.fit(X, S, method="nnpu", prior=0.2, **RULES, **SETTINGS)


def test_scores_rank_rows_and_probabilities_are_their_mean_over_seeds(fitted):
    assert fitted.scores.shape == (3, 240)
    assert all((np.mean(z[Y == 1, None] > z[None, Y == 0])) > 0.95 for z in fitted.scores), "features are standardised"
    p = fitted.predict_proba(X[:7])
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(p[:, 1], (1 / (1 + np.exp(-fitted.scores[:, :7]))).mean(axis=0), rtol=1e-5)
    frame = pl.DataFrame({"a": X[:7, 0], "b": X[:7, 1]})
    np.testing.assert_array_equal(fitted.decision_function(frame), fitted.scores[:, :7])
    with pytest.raises(ValueError, match="expected rows of 2 columns, got 3"):
        fitted.predict_proba(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("n_labeled", "method", "settings", "expected"),
    [
        (16, "nnpu", {}, ({"preset": "nnpu", "batching": "separate"}, "last")),
        (123, "nnpu", {}, ({"preset": "nnpu", "batching": "separate"}, "pu_accuracy")),
        (123, "nnpu", {"validation": [0.01, 0.05]}, ({"preset": "nnpu", "batching": "separate"}, "last")),
        (123, "nnpu", {"batch_size": 1000}, ("nnpu", "pu_accuracy")),
        (250, "nnpu", {}, ("nnpu", "pu_accuracy")),
        (16, "vpu", {}, ("vpu", "last")),
        (16, {"preset": "nnpu"}, {"rules": ["val_f1"]}, ({"preset": "nnpu"}, None)),
    ],
)
def test_few_labeled_rows_are_drawn_apart_and_choose_no_epoch(n_labeled, method, settings, expected):
    s = (np.arange(3000) < n_labeled).astype(int)
    y = (np.arange(3000) < 10 * n_labeled).astype(int)
    for rows in (own.for_networks(np.zeros((3000, 1)), s, None), own.for_networks(np.zeros((3000, 1)), None, y)):
        # of labels that are drawn, a tenth of the positives, as many
        found = own.settings_of(settings, method, 0.1, 1, None, None, "single_set", rows)
        assert (*found["methods"], found["selection"].get("default")) == expected


@pytest.mark.slow
def test_with_few_labeled_rows_nnpu_ranks_positives_above_negatives():
    """Drawn together with U, and with the epoch that two held-out rows like, it ranked them below."""
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 10 == 0
    x = rng.normal(size=(3000, 20))
    x[y, :3] += 2.0
    s = y & (np.cumsum(y) <= 12)
    fitted = jaxpu.fit(x, s.astype(int), method="nnpu", prior=0.1, seeds=4, epochs=20, lr=1e-3)
    assert all(np.mean(z[y, None] > z[None, ~y]) > 0.8 for z in fitted.scores)


def test_the_network_of_the_chosen_epoch_is_the_one_that_predicts(fitted):
    dataset = Dataset.from_arrays(X, s=S)
    cell = jaxpu.config.expand(fitted.experiment)[0]
    for seed, logits in enumerate(fitted.scores):
        rows = jaxpu.data.prepare(cell.data, dataset, seed).rows
        kept = fitted.tables.selected.filter(seed=seed, selection="pu_accuracy")["epoch"].item()
        recorded = fitted.runs.filter(seed=seed, epoch=kept)["val_score_mean"].item()
        assert (1 / (1 + np.exp(-logits[rows.val]))).mean() == pytest.approx(recorded, abs=1e-5)


def test_without_labels_verdicts_are_of_p_and_u_and_nothing_speaks_of_truth(fitted):
    assert fitted.runs["seed"].unique(maintain_order=True).to_list() == [0, 1, 2]
    assert not [name for name in fitted.runs.columns if "oracle" in name]
    assert fitted.verdicts["selection"].to_list() == ["pu_accuracy", "last"]
    assert fitted.verdicts["n"].to_list() == [3, 3]
    assert set(fitted.summary()["metric"]) >= {"epoch"}


def test_the_prior_is_the_share_of_positives_in_u(fitted):
    assert fitted.runs["val_given_prior"].unique().to_list() == pytest.approx([0.2])


@pytest.mark.slow
def test_known_labels_add_metrics_and_change_no_network():
    alone, known = (
        jaxpu.fit(X, S, y=y, method="pudra", prior=0.2, test=test, **SETTINGS | {"seeds": 1, "epochs": 2})
        for y, test in ((None, 0.2), (Y, 0.2))
    )
    np.testing.assert_allclose(known.scores, alone.scores, rtol=1e-4, atol=1e-5)
    assert known.runs["test_oracle_auc"].is_finite().all()


class Normalised(nn.Module):
    """A network with statistics and dropout."""

    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(4)(x))
        return nn.Dense(1)(nn.Dropout(0.1, deterministic=not train)(nn.relu(x)))


def mine(logits, labeled, *, prior, mask=None, slope=1.0):
    return (jnp.logaddexp(0.0, -slope * logits) * labeled).mean() + jax.nn.sigmoid(logits).mean()


@pytest.mark.slow
def test_methods_networks_and_optimisers_of_ones_own():
    found = jaxpu.fit(
        X,
        S,
        method=Method(mine, options={"slope": 2.0}),
        prior=0.2,
        model=Normalised(),
        optimizer=lambda numbers: optax.adamw(numbers.lr, weight_decay=numbers.weight_decay),
        **{name: value for name, value in SETTINGS.items() if name != "model"} | {"seeds": 1, "epochs": 2},
    )
    assert found.scores.shape == (1, 240)
    assert np.isfinite(found.scores).all()


def test_a_folder_keeps_what_memory_does(fitted, tmp_path):
    kept = jaxpu.fit(X, S, method="nnpu", prior=0.2, folder=tmp_path, **RULES, **SETTINGS)
    np.testing.assert_array_equal(kept.scores, fitted.scores)
    assert runs.read_folder(tmp_path)[2].equals(kept.runs)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epocs": 3}, r"unknown setting 'epocs' \(did you mean 'epochs'\?\); choose from alpha,"),
        ({"method": "nnpo"}, r"unknown method 'nnpo' \(did you mean 'nnpu'\?\)"),
        ({"prior": 1.2}, r"data.prior"),
        ({"method": "pn"}, "'pn' learns from true labels, and own has observed ones only"),
        ({"rules": ["val_f1"], "default": "val_f1"}, "needs true labels, and only observed ones are known"),
        ({"s": np.ones(240)}, "s holds 1 value, expected two"),
        ({"model": "forest"}, "model.name"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_is_trained(changes, said):
    with pytest.raises(ValueError, match=said):
        jaxpu.fit(**{"x": X, "s": S, "method": "nnpu", "prior": 0.2, **SETTINGS, **changes})


def test_a_sweep_takes_what_a_file_would_say():
    raw = {"data": {"prior": 0.2, "scenario": "single_set", "test": 0.0}, "model": {"name": "linear"}, "seeds": 1}
    raw |= {"training": {"epochs": 1}, "selection": {"rules": ["last"], "default": "last"}, "methods": ["nnpu"]}
    outcome = jaxpu.sweep(raw, data=Dataset.from_arrays(X, s=S, name="mine"))
    assert outcome.runs["dataset"].to_list() == ["mine"]
    assert outcome.failures == ()
    with pytest.raises(ConfigError, match=r"the grid sets data\.name, and one dataset was given"):
        jaxpu.sweep(raw | {"grid": {"data.name": ["spambase"]}}, data=Dataset.from_arrays(X, s=S))
    with pytest.raises(ConfigError, match="of kind ensemble has data of its own"):
        jaxpu.sweep({"kind": "ensemble"}, data=Dataset.from_arrays(X, s=S))


def test_importing_the_package_is_cheap():
    code = "import sys, jaxpu; print([m for m in ('jax', 'numpy', 'polars') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'train_all'"):
        jaxpu.__getattr__("train_all")


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"JAXPU_CACHE_DIR": "/c"}, "/c"),
        ({"JAXPU_CACHE_DIR": ""}, ""),
        ({"XDG_CACHE_HOME": "/x"}, "/x/jaxpu/xla"),
        ({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/jaxpu/xla"),
    ],
)
def test_compiled_programs_are_kept_where_the_environment_says(environment, folder, monkeypatch):
    for name in ("JAXPU_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert api._cache_folder() == folder


def test_the_example_runs():
    from examples import own_rows

    fitted = own_rows.main(seeds=2)
    x, _, y = own_rows.rows()
    assert fitted.scores.shape == (2, 600)
    assert ((fitted.predict_proba(x)[:, 1] > 0.5) == y).mean() > 0.9
    assert fitted.verdicts["n"].to_list() == [2, 2]
