"""The kind ``function``: what a function of a key gives for every seed, and the setups of the theory of mixup."""

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import jaxpu
from jaxpu import analysis, config
from jaxpu.analysis.check import check
from jaxpu.config import ConfigError
from jaxpu.theory import job, setups

HERE = "test_function_kind:draws"


def draws(key, *, n: int = 3, scale: float = 1.0, undefined: bool = False):
    """A function of the user: a mean, and the way to it."""
    x = scale * jax.random.normal(key, (n,))
    return {"mean": x.mean() * (jnp.nan if undefined else 1), "place": jnp.arange(n), "sum": x.cumsum()}


def experiment(**changes):
    return config.parse({"kind": "function", "function": HERE, "seeds": 3, **changes})


def test_a_run_is_one_row_of_what_the_function_gives(tmp_path):
    made = experiment(grid={"options.scale": [1, 2.0]}, claims=[CLAIM])
    outcome = jaxpu.sweep(made, folder=tmp_path / "out")
    runs = outcome.runs
    assert runs.columns[:5] == ["run_id", "dataset", "method", "options.scale", "seed"]
    assert runs.height == 6
    wide = runs.pivot("options.scale", index="seed", values="mean")
    np.testing.assert_allclose(wide["2.0"], 2 * wide["1.0"], rtol=1e-12)
    for row in runs.filter(pl.col("options.scale") == 1.0).iter_rows(named=True):
        with jax.enable_x64(True):
            key = jax.random.fold_in(jax.random.key(0), row["seed"])
            assert row["mean"] == pytest.approx(float(jax.random.normal(key, (3,)).mean()), rel=1e-12)
        assert row["path_sum"][-1] == pytest.approx(3 * row["mean"])
    assert analysis.paths(runs)["place"].to_list()[:3] == [0, 1, 2]
    assert analysis.tables(runs, made).claims["verdict"].to_list() == ["supported"]
    again = jaxpu.sweep(experiment(grid={"options.scale": [1, 2.0]}), folder=tmp_path / "out")
    assert again.runs.equals(runs)


CLAIM = {"claim": "Half is less.", "of": {"where": {"options.scale": 2}}, "metric": "mean", "at_most": 100}


def test_a_run_that_is_not_a_number_is_recorded():
    runs = jaxpu.sweep(experiment(options={"undefined": True}, seeds=1)).runs
    assert np.isnan(runs["mean"][0])
    assert runs["path_sum"][0].len() == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"function": "remaindr"}, "did you mean 'remainder'"),
        ({"function": "no_such_module:f"}, "cannot be imported"),
        ({"options": {"scal": 2.0}}, "did you mean 'scale'"),
        ({"options": {"n": 2.5}}, "options.n: expected int, got 2.5"),
        ({"options": {"scale": "wide"}}, "options.scale: expected float"),
        (
            {"function": "remainder", "options": {"beta": [[1], {}]}},
            "options.beta: expected a number, a word or a list",
        ),
        ({"function": "remainder", "options": {"alpha": -1.0}}, "expected both positive"),
        ({"claims": [CLAIM | {"of": {}, "metric": "meen"}]}, "did you mean 'mean'"),
        ({"function": "rare", "options": {"schedule": "cosine"}, "claims": [CLAIM | {"of": {}}]}, "expected one of"),
    ],
)
def test_what_does_not_exist_is_said_before_anything_is_computed(changes, said):
    made = experiment(**changes)
    with pytest.raises(ConfigError, match=said):
        job.runs(made) and check(made)


@pytest.mark.slow
def test_the_setups_give_numbers_and_ways_of_one_length():
    """On shapes alone; what they compute is tested where the functions are."""
    with jax.enable_x64(True):
        for name, function in setups.SETUPS.items():
            shapes = jax.eval_shape(function, jax.random.key(0))
            assert len({shape.shape for shape in shapes.values()}) == 2, name
            assert all(shape.ndim < 2 for shape in shapes.values())
    cell = config.expand(config.parse({"kind": "function", "options": {"alpha": 2}}))[0]
    assert job.static_of(cell).options == (("alpha", 2.0),)
