"""Every kind's program is exported for accelerators that this machine lacks: no custom call, no double precision.

An export is StableHLO for a platform and not yet its machine code; what it shows is that nothing in a program asks for
LAPACK, for a library of one vendor, or for numbers that a TPU has not.
"""

import functools
import re

import jax
import numpy as np
import pytest

from jaxpu import config, kinds, linalg
from jaxpu.config import PlacementConfig
from jaxpu.runs import Memory, placement
from jaxpu.runs.engine import precision_of
from jaxpu.runs.pool import Pool
from jaxpu.runs.trees import pack, unpack
from jaxpu.theory import setups

ROWS = {"name": "gaussians", "options": {"n": 60}}
IMAGES = {"name": "digits", "options": {"as_images": 1}}
TRAINING = {"epochs": 2, "batch_size": 16}
NETWORKS = {"data": ROWS, "model": {"hidden": [4]}, "training": TRAINING, "seeds": 1}
CLASSES = {"kind": "multiclass", "data": IMAGES, "training": TRAINING, "methods": ["pn"], "seeds": 1}
CLASSES |= {"selection": {"rules": ["val_accuracy"], "default": "val_accuracy"}}
RATINGS = {
    "kind": "ensemble",
    "ratings": {"n": 40, "classifiers": 4},
    "factors": {"dim": 2},
    "precision": "float32",
    "seeds": 1,
}
EXPERIMENTS = {
    "pu": NETWORKS | {"methods": ["vpu", "vpudra_softlabel", "nnpu"]},
    "pu separate": NETWORKS | {"methods": ["vpu_published"]},
    "BatchNorm": NETWORKS | {"model": {"module": "examples.own_module:Net"}},
    "multiclass cnn": CLASSES | {"model": {"name": "cnn", "channels": [2, 2], "hidden": [4], "dropout": [0.5]}},
    "multiclass resnet": CLASSES | {"model": {"name": "resnet", "channels": [4, 4], "blocks": 1}},
    "als": RATINGS | {"methods": ["als", {"trainer": "als", "stop": True, "name": "stopped"}]},
    "joint": RATINGS | {"methods": ["joint"]},
    "newton": RATINGS | {"methods": [{"trainer": "als", "newton": True}]},
    "baselines": RATINGS | {"methods": ["mean", "weighted_mean", "stacking"]},
    "of runs": RATINGS | {"ratings": {"source": "runs"}, "base": NETWORKS | {"methods": ["vpu"]}, "methods": ["als"]},
    "guided": NETWORKS | {"kind": "guided", "data": ROWS | {"test": 0.4}},
    **{name: {"kind": "function", "function": name, "precision": "float32", "seeds": 1} for name in setups.SETUPS},
}  # fmt: skip


def pools(raw, chunk):
    """The programs of an experiment, not compiled, each with arguments; what runs need of others is what zeros keep."""
    asked = config.parse(raw)
    kind = kinds.kind_of(asked)
    jobs, kept = kind.jobs(asked, kind.runs(asked)), {}
    settings = PlacementConfig(kind="chunk", chunk=chunk, devices=1)

    def needed(run):
        return {run_id: kept[run_id] for run_id in run.needs}

    for job in sorted(jobs, key=lambda job: any(run.needs for run in job.runs)):
        with precision_of(job):
            pool = Pool(job, placement.resolve(settings, job), settings, Memory(), needed, job.runs[0])
        if job.keep:
            state = jax.tree.map(lambda leaf: leaf[0], pool._states)
            one = unpack(pack(job.functions.kept(job.static, state)))  # as the engine hands it on
            kept |= dict.fromkeys((run.run_id for run in job.runs), one)
        yield pool


def exported(pool):
    """The text of one module that serves both accelerators, and no CPU."""
    p = pool.program
    one = functools.partial(placement._segment, p.placement.chunk, p.functions, p.static, p.epochs)
    arguments = (pool._shared, pool._arguments(), pool._states)
    with precision_of(pool.job):
        shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), arguments)
        return jax.export.export(jax.jit(one), platforms=["cuda", "tpu"])(*shapes).mlir_module()


LIBRARY = {
    "complexity": ("cu_", "cusolver", "cublas", "Qr", "Householder", "Eigh"),
    "regression": ("cu_", "cusolver", "cublas", "Qr", "Householder", "Eigh"),
}
"""Studies that train nothing and decompose large matrices: what they ask of a library, XLA's names where it has one."""


def test_every_kind_is_exported():
    assert {raw.get("kind", "pu") for raw in EXPERIMENTS.values()} == set(kinds.KINDS)


LONG = ("guided", "of runs", "BatchNorm", "als")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in EXPERIMENTS]
)
def test_every_program_exports_for_accelerators(name):
    texts = [exported(pool) for pool in pools(EXPERIMENTS[name], 2)]
    assert texts
    for text in texts:
        calls = set(re.findall(r"custom_call @(\w+)", text))
        assert all(any(word in call for word in LIBRARY.get(name, ())) for call in calls), calls
        assert not re.search(r"\bf64\b|xf64>", text)


@pytest.mark.parametrize("size", [1, 2, 3, 11, 24])
def test_small_matrices_need_no_lapack(size):
    draw = np.random.default_rng(size)
    with jax.enable_x64(True):
        for matrix in (
            draw.normal(size=(size, size)),
            np.diag(np.repeat(2.0, size)),
            np.outer(*[draw.normal(size=size)] * 2),
        ):
            symmetric = jax.numpy.asarray(matrix @ matrix.T)
            values, vectors = jax.jit(linalg.jacobi)(symmetric)
            scale = np.abs(symmetric).max()
            np.testing.assert_allclose(values, np.linalg.eigvalsh(symmetric), atol=1e-13 * size * scale)
            np.testing.assert_allclose((vectors * values[None]) @ vectors.T, symmetric, atol=1e-13 * size * scale)
            np.testing.assert_allclose(vectors.T @ vectors, np.eye(size), atol=1e-12)
        definite, right = symmetric + jax.numpy.eye(size), jax.numpy.asarray(draw.normal(size=size))
        wanted = np.linalg.solve(definite, right)
        np.testing.assert_allclose(
            linalg.solve_spd(definite[:, :, None], right[:, None], 0.0)[:, 0], wanted, rtol=1e-10
        )
        np.testing.assert_array_equal(linalg.solve(definite, right), jax.numpy.linalg.solve(definite, right))
