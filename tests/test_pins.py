"""Training is what it was: values in double precision recorded from commit 941b0af (scripts/make_pins.py), to 1e-10.

All that knows the library's interfaces stands in the first section, between the two lines of dashes.
"""

import contextlib
import copy
import dataclasses
import functools
import importlib
import json
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml

from jaxpu import config, ensemble, theory, train
from jaxpu import runs as engine
from jaxpu.config import TrainingConfig
from jaxpu.data import sampling
from jaxpu.ensemble import als, job, trainers
from jaxpu.methods import PENALTIES, named_method, objective
from jaxpu.train.job import inputs

GOLDEN = Path(__file__).parent / "golden"
PINS: dict[str, Any] = yaml.safe_load((GOLDEN / "pins.yaml").read_text())
SEEDS: list[int] = PINS["seeds"]
Values = dict[str, np.ndarray]


@contextlib.contextmanager
def double():
    """Double precision throughout: where code asks for single precision by name, it gets double."""
    with jax.enable_x64(True), mock.patch.object(jnp, "float32", jnp.float64):
        yield


def widened(tree):
    """Numbers as they are in single precision, in double precision: equal whether the code rounds them or not."""

    def wide(leaf):
        floating = np.issubdtype(np.asarray(leaf).dtype, np.floating)
        return np.asarray(leaf, np.float32).astype(np.float64) if floating else leaf

    return jax.tree.map(wide, tree)


# -------------------------------------------------------------------------------- the library's interfaces


def numbers_of(hyper: objective.Hyper) -> objective.Hyper:
    """The traced numbers in double precision; the threshold of the softplus ratio is no setting, so it is exact."""
    offset = np.log(np.expm1(0.5)) if hyper.decision_offset else 0.0
    return widened(hyper)._replace(decision_offset=np.float64(offset))


BEFORE = {"skip_without_positives": True, "pairing": "labeled_positives", "detach": True}
"""What every method did then; now it is as in the code that a method comes from."""


@contextlib.contextmanager
def scores_of_all_rows():
    """Then propensity scores were fitted on all rows, not on the training rows alone."""
    module = importlib.import_module("jaxpu.data.prepare")

    def score(dataset, train):
        return sampling.propensity_score(dataset.x, dataset.truth)

    with mock.patch.object(module, "_score", score), mock.patch.object(module, "_PREPARED", {}):
        yield


def settings(raw: dict[str, Any]) -> dict[str, Any]:
    """An experiment in the terms of pins.yaml in those of this code."""
    raw = copy.deepcopy(raw)

    def rule(written: str) -> Any:
        name, at, share = written.partition("@")
        return {"rule": name, "validation": float(share)} if at else name

    raw["kind"] = raw["data"].pop("task", "pu")
    raw["methods"] = [BEFORE | method for method in raw["methods"]]
    selection = raw["selection"]
    return raw | {
        "selection": selection | {"rules": list(map(rule, selection["rules"])), "default": rule(selection["default"])}
    }


def columns_of(history: Values) -> Values:
    """Recorded columns under their names in the pins."""
    old = {"average_precision": "ap"}
    renamed = {k.replace(new, was): v for new, was in old.items() for k, v in history.items() if k.endswith(new)}
    return {k: np.asarray(v) for k, v in (history | renamed).items()}


def pu_histories(runs: list[tuple[dict[str, Any], int]]) -> list[Values]:
    """Every recorded column of runs (settings, seed) that share one program, and sums over their parameters."""
    cells = [config.expand(config.parse(settings(raw)))[0] for raw, _ in runs]
    together = objective.objective_of([cell.method for cell in cells])
    prepared = [inputs(cell, seed, together) for cell, (_, seed) in zip(cells, runs, strict=True)]
    longest = {name: max(len(getattr(data, name)) for _, data, *_ in prepared) for name in ("train", "val_pu")}
    [static] = {static for *_, static, _ in prepared}

    @jax.jit
    def trained(key, data, hyper):
        state = train.init(key, data, static, hyper)
        state = jax.tree.map(lambda v: v.astype(float) if jnp.issubdtype(v.dtype, jnp.floating) else v, state)
        state, history = train.advance(key, state, data, static, hyper, static.epochs)
        return history, state.params, state.kept

    found = []
    for key, data, _, hyper in prepared:
        padded = {name: jnp.pad(getattr(data, name), (0, n - len(getattr(data, name)))) for name, n in longest.items()}
        data = widened(data._replace(**padded))
        history, params, kept = trained(key, data, numbers_of(hyper))
        found.append(columns_of(history) | sums("params", params) | sums("kept", kept))
    return found


def objective_terms(entries: list[dict[str, Any]], batch: Values, counts: tuple[int, ...]) -> list[Values]:
    """Base risk and penalty of one batch, their gradients in its logits, and what else is recorded of them."""
    methods = [named_method(BEFORE | entry)[1] for entry in entries]
    family = objective.Objective(objective.branches_of(methods), PENALTIES[1:])

    @jax.jit
    def terms(hyper):
        logits, mixed, labeled, labels, mask = (jnp.asarray(batch[k]) for k in BATCH[:5])

        now = objective.at(hyper, 0, 2)  # where courses start

        def base(z):
            return objective.base_risk(family, now, z, labeled, mask, y=labels.astype(int))

        def penalty(z, z_mixed):
            partner, lam = jnp.asarray(batch["partner"]), jnp.asarray(batch["lam"])
            return objective.penalty(family, now, z, partner, z_mixed, lam, labeled, mask)

        (risk, clipped), slope = jax.value_and_grad(base, has_aux=True)(logits)
        found = {"base": risk, "clipped": clipped, "base_slope": slope}
        if logits.ndim > 1:
            return found
        (value, target), slopes = jax.value_and_grad(penalty, argnums=(0, 1), has_aux=True)(logits, mixed)
        names = ("penalty", "target", "penalty_slope", "penalty_slope_mixed")
        return found | dict(zip(names, (value, target, *slopes), strict=True))

    found = []
    for method in methods:
        columns = terms(numbers_of(objective.hyper_of(method, TrainingConfig(), 0.4, counts, family)))
        kept = columns if method.mixup else {k: v for k, v in columns.items() if k in ("base", "clipped", "base_slope")}
        found.append({k: np.asarray(v) for k, v in kept.items()})
    return found


def ensemble_rows(raw: dict[str, Any]) -> dict[str, Values]:
    """Of each method at each grid point every recorded column, one entry a seed, and the paths."""
    runs = engine.run(config.parse({"kind": "ensemble", **raw}), job, None).runs
    grid = list(raw.get("grid", {}))
    found: dict[str, Values] = {}
    for (name, *point), rows in runs.group_by("method", *grid, maintain_order=True):
        known = rows.drop("run_id", "dataset", "method", *grid, "seed", "selection")
        columns = {c: known[c].to_numpy().astype(float) for c in known.columns if known[c].dtype.is_numeric()}
        columns |= {c: known[c].to_numpy().astype(str) for c in known.columns if "verdict" in c}
        for column in ("path_update", "path_w_mean", "path_b"):
            columns[column] = known[column].explode().to_numpy().astype(float)
        label = " ".join(f"{path.rpartition('.')[2]}={value}" for path, value in zip(grid, point, strict=True))
        renamed = {"pr_auc": columns["average_precision"], "roc_auc": columns["auc"]}
        found[f"{name} {label}".strip()] = columns | renamed
    return found


def ensemble_functions(problem: Values) -> dict[str, Values]:
    """Trainers' histories, confidences, baselines and the flow on given ratings."""
    r, y, known = (jnp.asarray(problem[k]) for k in ("ratings", "labels", "labeled"))
    start = ensemble.Factors(jnp.asarray(problem["x"]), jnp.asarray(problem["y"]))
    found: dict[str, Values] = {}
    found["confidence"] = {name: ensemble.confidence(name, r, y, known, alpha=0.7) for name in ensemble.CONFIDENCE}
    found["baselines"] = {name: baseline(r, y, known) for name, baseline in ensemble.BASELINES.items()}
    c = found["confidence"]["label_aware"]
    step = ensemble.Step(lr=0.1, class_weights=0.5)
    for name in ("als", "joint"):
        fit = jax.jit(functools.partial(trainers.TRAINERS[name], iterations=12, ridge=0.02, step=step))
        fitted = fit(start, r, c, y, known)
        history = fitted.history
        found[name] = {"loss": history.loss, "w": history.w, "b": history.b, "logits": fitted.logits}
        found[name]["ratings"] = als.reconstruct(fitted.factors)
        if name == "als":
            going = {"labels": y, "labeled": known, "step": step}
            on = ensemble.continue_aggregator(fitted.aggregator, r, **going, updates=50)
            course = ensemble.descend(fitted.aggregator, r, **going, updates=jnp.array([10, 1000]))
            found["continued"] = {"w": on.w, "b": on.b, "descend_w": course.w, "descend_b": course.b}
    theta = jnp.append(jnp.full(r.shape[0], -0.2, r.dtype), 0.5)
    numbers = {"total": 1.5, "bias": -0.1, "bias_lr": 0.5}
    slow = theory.linear_flow(r, y, known, class_weights=step.class_weights, at=-1.0)
    found["flow"] = {
        "critical_rate": theory.critical_rate(10, 0.5, total=1.5, bias_lr=0.5),
        "fast_end": jnp.stack([jnp.asarray(v, r.dtype) for v in theory.fast_end(10, 0.5, 0.1, **numbers)]),
        "flip_time": theory.flip_time(10, 0.5, 0.1, **numbers),
        "rates": slow.rates,
        "direction": slow.direction,
        "flow_at": theory.flow_at(slow, theta, jnp.array([0.0, 1.0, 100.0])),
        "time_scales": theory.time_scales(slow, lr=0.1),
        "healing_time": theory.healing_time(slow, theta),
    }
    return {name: {k: np.asarray(v) for k, v in columns.items()} for name, columns in found.items()}


def meanfield_values(entries: list[dict[str, Any]], priors: list[float], lr: float, alpha: float) -> list[Values]:
    """Slopes on a grid of logits and the course of p of each method at each prior, and of some their fixed points."""
    methods = [named_method(BEFORE | entry)[1] for entry in entries]
    logits = jnp.linspace(-3, 3, 7)
    slopes = jax.jit(jax.vmap(jax.vmap(theory.slope, (0, None, None)), (None, 0, 0)))
    found: list[Values] = [{} for _ in entries]
    for mixup in (False, True):
        which = [i for i, method in enumerate(methods) if method.mixup == mixup]
        points = [(methods[i], prior) for i in which for prior in priors]
        grid = theory.grid(*map(list, zip(*points, strict=True)), lr=lr)
        grid = dataclasses.replace(grid, hyper=widened(grid.hyper))
        lams = jnp.asarray(theory.beta_nodes(alpha, 8) if mixup else np.zeros(0), float)
        lams = jnp.broadcast_to(lams, (len(points), lams.size))
        columns = {"slope": slopes(logits, grid, lams)}
        columns["course"] = theory.iterate(jnp.full(len(points), 0.05), grid, lams, 40)
        for place, i in enumerate(which):
            rows = slice(place * len(priors), (place + 1) * len(priors))
            found[i] = {name: np.asarray(values)[rows] for name, values in columns.items()}
            if entries[i] == {"preset": "vpudra_pp"}:
                fixed = theory.fixed_points(jax.tree.map(lambda v, rows=rows: v[rows], grid), lams[rows])
                found[i] |= {name: np.asarray(values, float) for name, values in fixed._asdict().items()}
    return found


def geometry_values() -> dict[str, Values]:
    """Value, slope and curvature in the logit of every penalty and risk, and where they rest."""
    p = jnp.linspace(0.05, 0.95, 7)
    found: dict[str, Values] = {}
    for name in ("log_mse", "point_process"):
        shape = theory.penalty_shape(name, p[:, None], jnp.array([[0.01, 0.3, 0.9]]))
        found[f"penalty {name}"] = shape_columns(shape)
    for name in PINS["risks"]:
        risk_shape = functools.partial(theory.risk_shape, name)
        found[f"risk {name}"] = shape_columns(risk_shape(p[:, None], jnp.array([[0.1, 0.4]])))
        if name != "variational":  # whose slope is rounding alone
            rests = theory.sign_changes(lambda p, shape=risk_shape: np.asarray(shape(jnp.asarray(p), 0.4).slope))
            found[f"risk {name}"]["rests"] = np.array([[point.p, point.stable] for point in rests])
    return found


def shape_columns(shape) -> Values:
    return {name: np.asarray(getattr(shape, name)) for name in ("value", "slope", "curvature")}


# ------------------------------------------------------------------------------------- what is compared


BATCH = ("logits", "mixed", "labeled", "labels", "mask", "partner", "lam")
pytestmark = pytest.mark.slow  # all together a minute or two: what has moved by mistake is told by CI


def sums(name: str, tree) -> Values:
    """Sum and norm of a tree's leaves, whatever their order; nothing for None."""
    if tree is None:
        return {}
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    norm = np.sqrt(sum((leaf**2).sum() for leaf in leaves))
    return {f"{name}_sum": np.asarray(sum(leaf.sum() for leaf in leaves)), f"{name}_norm": np.asarray(norm)}


def key_of(run: dict[str, Any]) -> str:
    """A run's settings in one line."""
    return " ".join(f"{k}={v if isinstance(v, str) else json.dumps(v).replace(' ', '')}" for k, v in run.items())


def settings_of(group: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """An experiment of one method: what all runs share, then the group, then the run."""
    raw: dict[str, Any] = {"data": {}, "model": {}, **copy.deepcopy(PINS["all"])}
    for part, settings in group["settings"].items():
        raw[part] = {**raw[part], **settings}
    for path, value in run.items():
        if "." in path:
            part, name = path.split(".")
            raw[part] = {**raw[part], name: value}
    return raw | {"methods": [{k: v for k, v in run.items() if "." not in k}]}


def methods_of_pins() -> list[dict[str, Any]]:
    """All presets, and the changed ones of the groups of two classes, each once."""
    runs = [run for name in ("mixed", "plain", "separate") for run in PINS["groups"][name]["runs"]]
    methods = [{"preset": name} for name in PINS["presets"]] + [
        {k: v for k, v in r.items() if "." not in k} for r in runs
    ]
    return list({key_of(method): method for method in methods}.values())


@functools.cache
def recorded() -> dict[str, Values]:
    """All recorded columns by what they are of: one vector, cut as the index says (column: type and shape)."""
    with np.load(GOLDEN / "pins.npz", allow_pickle=False) as file:
        rest, index = file["values"], json.loads(str(file["index"]))
    found: dict[str, Values] = {}
    for name, columns in index.items():
        found[name] = {}
        for column, (kind, *shape) in columns.items():
            if kind == "text":
                found[name][column] = np.array(shape)
            else:
                size = int(np.prod(shape))
                found[name][column], rest = rest[:size].reshape(shape).astype(kind), rest[size:]
    assert not rest.size
    return found


OF_FACTORS = ("brier", "ece", "log_loss", "score_max", "score_mean", "score_min", "score_sd")
"""What changed of runs beside longer ones: their factors went on moving for as long as those of the longest run."""

SEES_THE_BATCH = ("pn", "pn_naive", "pudra_batch")
"""Risks whose mean field changed: it knew neither the share of labeled rows nor that of positives in a batch."""


def check(name: str, found: Values, tolerance: float = 1e-10, but: tuple[str, ...] = ()) -> None:
    """All that was recorded is there, and equal: relatively and absolutely to the tolerance, NaN where NaN was."""
    wanted = {column: values for column, values in recorded()[name].items() if column not in but}
    assert not (missing := sorted(set(wanted) - set(found))), f"{name}: {missing} are no longer there"
    for column, values in wanted.items():
        message = f"{name}: {column}"
        if values.dtype.kind == "U":
            np.testing.assert_array_equal(found[column], values, err_msg=message)
        else:
            np.testing.assert_allclose(found[column], values, rtol=tolerance, atol=tolerance, err_msg=message)


def of_seeds(histories: list[Values]) -> Values:
    return {column: np.stack([history[column] for history in histories]) for column in histories[0]}


def named(table: dict[str, Any]):
    return [pytest.param(name, id=name) for name in table]


@pytest.mark.parametrize("name", named(PINS["groups"]))
def test_training(name):
    group = PINS["groups"][name]
    runs = [(run, seed) for run in group["runs"] for seed in SEEDS]
    with double(), scores_of_all_rows():
        histories = pu_histories([(settings_of(group, run), seed) for run, seed in runs])
    for i, run in enumerate(group["runs"]):
        mine = histories[i * len(SEEDS) : (i + 1) * len(SEEDS)]
        check(f"{name}|{key_of(run)}", of_seeds(mine), group.get("tolerance", 1e-10))


@pytest.mark.parametrize("kind", ["typical", "clipped"])
def test_objectives(kind):
    batch = recorded()[f"batch {kind}"]
    entries = methods_of_pins()
    with double():
        found = objective_terms(entries, batch, (30, 10))
    for entry, terms in zip(entries, found, strict=True):
        check(f"objective {kind}|{key_of(entry)}", terms)


def test_objectives_of_many_classes():
    entries = PINS["groups"]["classes"]["runs"]
    entries = list({key_of(e): e for e in ({k: v for k, v in r.items() if "." not in k} for r in entries)}.values())
    with double():
        found = objective_terms(entries, recorded()["batch classes"], (40, 20, 10))
    for entry, terms in zip(entries, found, strict=True):
        check(f"objective classes|{key_of(entry)}", terms)


@pytest.mark.parametrize("name", named(PINS["ensembles"]))
def test_ensembles(name):
    raw = {k: v for k, v in PINS["ensembles"][name].items() if k != "slow"}
    with double():
        found = ensemble_rows(raw | {"seeds": len(SEEDS), "first_seed": SEEDS[0]})
    for run, columns in found.items():
        check(f"ensemble {name}|{run}", columns, but=OF_FACTORS if run.startswith("gentle") else ())
    wanted = {key.partition("|")[2] for key in recorded() if key.startswith(f"ensemble {name}|")}
    assert wanted == set(found)


def test_ensemble_functions():
    with double():
        found = ensemble_functions(recorded()["problem"])
    for name, columns in found.items():
        check(f"functions|{name}", columns, but=("loss",) if name == "als" else ())  # it had class weights in it


@pytest.mark.slow
def test_meanfield():
    mean = PINS["meanfield"]
    entries = [{"preset": name} for name in PINS["presets"]] + mean["methods"]
    with double():
        found = meanfield_values(entries, mean["priors"], mean["lr"], mean["alpha"])
    for entry, columns in zip(entries, found, strict=True):
        if named_method(entry)[1].risk not in SEES_THE_BATCH:
            check(f"meanfield|{key_of(entry)}", columns)


def test_geometry():
    with double():
        found = geometry_values()
    for name, columns in found.items():
        check(f"geometry|{name}", columns)
