"""Eight steps of fourteen methods as the code behind the nine-dataset table makes them, to 1e-10 in the logits.

tests/golden/original_steps.npz holds what that code's own trainers did: one start, the same batches, partners and λ
for all methods, in double precision, without dropout. Batch 2 holds no labeled positive.
"""

import functools
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxpu import mixup, models
from jaxpu.config import ModelConfig, TrainingConfig
from jaxpu.methods import METHODS, objective
from jaxpu.train import step
from jaxpu.train.inputs import Config, Data

FILE = Path(__file__).parent / "golden" / "original_steps.npz"
NAMES = ["vpu", "vpudra", "vpudra_fixed", "vpudra_softlabel", "vpudra_pp", "pudra", "vpu_nomixup", "nnpu", "nnpusb"]
NAMES += ["upu", "pudra_naive", "pn", "pn_naive", "pudra_softplus"]
BATCH = 2
"""The batch without a labeled positive."""


@pytest.fixture(scope="module")
def steps():
    with np.load(FILE) as file:
        return {name: file[name] for name in file.files}


def data_of(steps) -> Data:
    n, d = steps["x"].shape
    rows, none = jnp.arange(n), jnp.arange(0)
    counts = (jnp.asarray(steps["n_labeled"]), jnp.asarray(n), jnp.asarray(0), jnp.asarray(0))
    x, y = jnp.asarray(steps["x"]), jnp.asarray(steps["y"])
    return Data(x, y, rows, rows, none, rows, jnp.zeros(d), jnp.ones(d), *counts, none)


def start_of(steps):
    layers = [{part: jnp.asarray(steps[f"{part}{i}"]) for part in ("kernel", "bias")} for i in range(5)]
    return dict(zip(["layer0", "layer1", "layer2", "layer3", "head"], layers, strict=True))


def moved(steps, family, methods):
    """Logits of all rows before and after each step, (methods, 9, n), the losses and which steps were skipped."""
    data, model = data_of(steps), ModelConfig(dropout=())
    config = Config(model, epochs=1, batch_size=64, val_sizes=(), objective=family)
    built = models.build(model, data.x.shape[1:], 1)

    def hyper_of(method):
        numbers = {name: np.float64(steps[name]) for name in ("prior", "lr", "weight_decay")}
        return objective.hyper_of(method, TrainingConfig(), 0.4, objective=family)._replace(**numbers)

    @jax.jit
    def run(hyper, data, start):
        now = objective.at(hyper, 0, 1)
        carry = step.Carry(start, {}, step.optimizer(data, config, now).init(start), None)
        # the partners that are given stand where the key to draw them stands
        unused = jax.random.split(jax.random.key(0), len(steps["lam"]))
        keys = step.StepKeys(unused, jnp.asarray(steps["partner"]), unused)
        update = functools.partial(step.update, data=data, config=config, hyper=now, progress=jnp.asarray(0.0))

        def one(carry, given):
            carry, terms = update(carry, given)
            return carry, (built.logits(models.Variables(carry.params, {}), data.x), terms.terms.loss, terms.skipped)

        before = built.logits(models.Variables(start, {}), data.x)
        given = (jnp.asarray(steps["rows"]), jnp.asarray(steps["mask"]), jnp.asarray(steps["lam"]), keys)
        _, (logits, losses, skipped) = jax.lax.scan(one, carry, given)
        return jnp.concatenate([before[None], logits]), losses, skipped

    return [tuple(map(np.asarray, run(hyper_of(method), data, start_of(steps)))) for method in methods]


def given_partners(key, labeled, *, mask=None):
    return key


@pytest.mark.parametrize("with_mixup", [True, False])
def test_steps_are_those_of_the_original(steps, with_mixup):
    names = [name for name in NAMES if METHODS[name].mixup == with_mixup]
    family = objective.objective_of([METHODS[name] for name in names])
    drawn = mock.patch.dict(mixup.PAIRINGS, labeled_positives=given_partners)
    with jax.enable_x64(True), mock.patch.object(jnp, "float32", jnp.float64), drawn:
        found = moved(steps, family, [METHODS[name] for name in names])
    for name, (logits, losses, skipped) in zip(names, found, strict=True):
        np.testing.assert_allclose(logits, steps[f"logits_{name}"], rtol=0, atol=1e-10, err_msg=name)
        np.testing.assert_array_equal(skipped == 0, steps[f"stepped_{name}"], err_msg=name)
        assert (skipped[BATCH] == 1) == (steps[f"logits_{name}"][BATCH] == steps[f"logits_{name}"][BATCH + 1]).all()
        reported = np.isfinite(steps[f"loss_{name}"]) & (skipped == 0)
        assert reported.sum() >= 7
        known = steps[f"loss_{name}"][reported]
        rounded = (known == known.astype(np.float32)).all()  # the original reports these in single precision
        assert rounded == (name in ("pn", "pn_naive"))
        np.testing.assert_allclose(losses[reported], known, rtol=0, atol=1e-7 if rounded else 1e-10, err_msg=name)
