"""Probes by name and of one's own, against NumPy and finite differences."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import first_cell, run_inputs, tiny

import jaxpu
from jaxpu import config, losses, mixup, models, train
from jaxpu.config import ConfigError
from jaxpu.train import ProbeInput, evaluation, probes

HERE = "test_probes:mean_of_test"  # found because pytest puts tests on the path


def mean_of_test(seen: ProbeInput) -> jax.Array:
    """A probe of the user."""
    return jax.nn.sigmoid(seen.logits(seen.x_test)).mean()


@pytest.fixture(scope="module", params=[1, 3], ids=["one logit", "three classes"])
def seen(request):
    """An untrained network on a training set with padding, and its logits as a function of numpy rows."""
    _, data, static, hyper = run_inputs(first_cell(tiny()))
    data = data._replace(y=data.y if request.param == 1 else jnp.arange(len(data.y)) % 3)
    model = models.build(static.model, (3,), request.param)
    variables = models.start(model, jax.random.key(0), (3,), 0.3)
    return ProbeInput(variables, model, data, hyper, static.objective)


def rows_that_count(seen):
    """Training rows without the padding, and their labels."""
    rows = np.asarray(seen.data.train)[: int(seen.data.n_train)]
    assert len(rows) < len(seen.data.train), "there is padding"
    x = (np.asarray(seen.data.x, float)[rows] - np.asarray(seen.data.mean)) / np.asarray(seen.data.sd)
    return x, np.asarray(seen.data.y)[rows]


def test_the_weight_norm_is_that_of_all_kernels_together(seen):
    kernels = [np.ravel(layer["kernel"]) for layer in seen.variables.params.values()]
    assert float(probes.weight_norm(seen)) == pytest.approx(np.linalg.norm(np.concatenate(kernels)), rel=1e-6)


def test_the_margin_is_the_log_odds_of_the_true_class(seen):
    x, y = rows_that_count(seen)
    z = np.asarray(seen.logits(jnp.asarray(x, jnp.float32)), float)
    if z.ndim == 1:
        margins = np.where(y > 0, z, -z)
    else:
        own = z[np.arange(len(z)), y]
        margins = own - np.log(np.exp(z).sum(axis=1) - np.exp(own))
    assert float(probes.mean_margin(seen)) == pytest.approx(margins.mean(), rel=1e-4)


def test_the_input_gradient_is_that_of_finite_differences(seen):
    x, _ = rows_that_count(seen)
    with jax.enable_x64(True):
        wide = seen._replace(variables=jax.tree.map(lambda a: jnp.asarray(np.asarray(a), jnp.float64), seen.variables))
        logits = lambda x: np.asarray(wide.logits(jnp.asarray(x, jnp.float64))).reshape(len(x), -1)
        top = logits(x).argmax(axis=1)
        steps = [(logits(x + 1e-6 * e) - logits(x - 1e-6 * e))[np.arange(len(x)), top] / 2e-6 for e in np.eye(3)]
    norms = np.sqrt(np.square(steps).sum(axis=0))
    assert float(probes.input_gradient_norm(seen)) == pytest.approx(norms.mean(), rel=1e-3)


@pytest.mark.slow
def test_gradient_norm_and_noise_are_those_of_the_rows(seen):
    x, y = rows_that_count(seen)
    loss = lambda params, x, y: losses.cross_entropy(seen.logits(x[None], params), y[None])
    each = jax.vmap(jax.grad(loss), (None, 0, 0))(seen.variables.params, jnp.asarray(x, jnp.float32), jnp.asarray(y))
    flat = np.concatenate([np.asarray(leaf, float).reshape(len(x), -1) for leaf in jax.tree.leaves(each)], axis=1)
    mean = flat.mean(axis=0)
    assert float(probes.gradient_norm(seen)) == pytest.approx(np.linalg.norm(mean), rel=1e-4)
    noise = np.sqrt(((flat - mean) ** 2).sum(axis=1).mean())
    assert float(probes.gradient_noise(seen)) == pytest.approx(noise, rel=1e-4)
    plain = seen._replace(hyper=seen.hyper._replace(alpha=jnp.float32(0.0)))  # λ = 1
    assert float(probes.mixup_gradient_norm(plain)) == pytest.approx(np.linalg.norm(mean), rel=1e-3)
    assert float(probes.mixup_gradient_noise(plain)) == pytest.approx(noise, rel=1e-3)
    mixed = seen._replace(hyper=seen.hyper._replace(alpha=jnp.float32(1.0)))
    assert 0 < float(probes.mixup_gradient_noise(mixed)) != pytest.approx(noise, rel=1e-2)


def test_alpha_and_q_are_those_of_the_rows_that_count(seen):
    x, y = rows_that_count(seen)
    z = np.asarray(seen.logits(jnp.asarray(x, jnp.float32)), float)
    jacobian = jax.vmap(jax.jacrev(lambda x: seen.logits(x[None])[0].reshape(-1)))(jnp.asarray(x, jnp.float32))
    if z.ndim == 1:
        error = (1 / (1 + np.exp(-z)) - y)[:, None]
    else:
        error = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) - np.eye(3)[y]
    moved = np.einsum("nkp,np->nk", np.asarray(jacobian, float), x.mean(axis=0) - x)
    length = np.linalg.norm(jacobian, axis=2) * np.linalg.norm(x.mean(axis=0) - x, axis=1)[:, None]
    assert float(probes.least_alpha(seen)) == pytest.approx((error * moved / length).min(), rel=1e-3)
    q = (error * moved).sum(axis=1)
    assert float(probes.negative_q(seen)) == pytest.approx((q < 0).mean(), abs=1.5 / len(q))


@pytest.mark.slow
def test_probes_are_recorded_after_every_epoch_by_their_names():
    raw = config.to_dict(tiny(seeds=1, training__epochs=2, model__dropout=[], selection__keep_best=True))
    outcome = jaxpu.sweep({**raw, "probes": ["weight_norm", HERE]})
    assert outcome.runs["probe_weight_norm"].is_finite().all()
    np.testing.assert_allclose(outcome.runs["probe_mean_of_test"], outcome.runs["test_score_mean"], rtol=1e-5)


def test_what_is_no_probe_is_refused_before_training():
    experiment = tiny(probes=["weigth_norm"])
    with pytest.raises(ConfigError, match="did you mean 'weight_norm'"):
        run_inputs(first_cell(experiment))
    with pytest.raises(ValueError, match="weight_norm appears twice"):
        probes.resolve(["weight_norm", "jaxpu.train.probes:weight_norm"])
    with pytest.raises(ValueError, match="no_such_module"):
        probes.resolve(["no_such_module:f"])
    with pytest.raises(ValueError, match="mean_margin needs true labels"):
        probes.resolve(["mean_margin"], truth=False)
    _, _, static, _ = run_inputs(first_cell(tiny(probes=["mean_margin"])))
    assert static.probes == (("mean_margin", probes.mean_margin),)
    assert dataclasses.replace(static, probes=()) == run_inputs(first_cell(tiny()))[2]


@pytest.mark.parametrize("every", [1, 2])
def test_a_probe_sees_the_numbers_of_its_epoch(every, monkeypatch):
    """α falls from epoch to epoch, and the probe has that of the epoch just run; metrics are left out."""
    monkeypatch.setattr(evaluation, "_two_classes", lambda *_: {})
    chosen = {"selection": {"rules": ["last"], "default": "last"}, "model": {"name": "linear"}}
    training = {"training__alpha": 0.8, "training__alpha_schedule": "easy", "training__evaluate_every": every}
    key, data, static, hyper = run_inputs(first_cell(tiny(**chosen, **training)))
    static = dataclasses.replace(static, probes=(("alpha", lambda seen: seen.hyper.alpha),))
    seen = np.asarray(jax.jit(train.train, static_argnums=2)(key, data, static, hyper).history["probe_alpha"])
    at = np.arange(every - 1, 4, every)
    np.testing.assert_allclose(seen[at], mixup.schedule("easy", 4, 0.8)[at], rtol=1e-6)
    assert np.isnan(np.delete(seen, at)).all()
