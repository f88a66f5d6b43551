"""Configurations: what is read, what is refused and how the refusal reads, what a grid expands to."""

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jaxpu import config, mixup
from jaxpu.config import (
    ConfigError,
    DataConfig,
    Experiment,
    ModelConfig,
    TrainingConfig,
    digest,
    dump_yaml,
    expand,
    find_config,
    grid_types,
    list_configs,
    load,
    load_yaml,
    parse,
    runs_of,
    to_dict,
)
from jaxpu.config.schema import OF_NETWORKS, as_dict
from jaxpu.methods import METHODS, Method, Schedule
from jaxpu.runs import FORMAT
from jaxpu.settings import AlphaSchedule


def test_numbers_are_those_of_yaml_1_2(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("seeds: 010\ntraining: {lr: 1e-4, weight_decay: '1e-3'}\ndata: {validation: [1e-2]}\n")
    assert yaml.safe_load(path.read_text())["training"]["lr"] == "1e-4", "PyYAML reads 1.1"
    experiment = load(path)
    assert (experiment.training.lr, experiment.training.weight_decay, experiment.seeds) == (0.0001, 0.001, 10)
    assert experiment.data.validation == (0.01,)
    assert experiment.name == "a"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("010", 10),
        ("-0", 0),
        ("0o10", 8),
        ("0x1F", 31),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("yes", "yes"),
        ("Off", "Off"),
        ("True", True),
        ("1e3", 1000.0),
        ("-.5", -0.5),
        ("+1.", 1.0),
        ("NULL", None),
        ("2001-01-01", "2001-01-01"),
        ("000-13", "000-13"),
        ("=", "="),
    ],
)
def test_scalars_mean_what_yaml_1_2_says_and_are_written_so(text, value):
    read = load_yaml(text)
    assert (read, type(read)) == (value, type(value))
    for plain in (text, value):
        back = load_yaml(dump_yaml([plain]))[0]
        assert (back, type(back)) == (plain, type(plain))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x [1]\nb: *x\n", "alias *x in line 2"),
        ("{a: 1, a: 2}", "key 'a' is in line 1 and again"),
        ("a: " + "[" * 5000, "nested too deep"),
        ("a: " + "9" * 5000, "no integer that can be read"),
        ("!!python/object:os.system {}", "python/object"),
    ],
)
def test_what_yaml_could_do_to_us_is_refused_in_few_words(text, words):
    with pytest.raises(yaml.YAMLError) as caught:
        load_yaml(text)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500


def test_shared_values_are_written_out_as_aliases_would_be_refused():
    shared = [0.1, 0.2]
    assert load_yaml(dump_yaml({"a": shared, "b": shared})) == {"a": shared, "b": shared}


NESTED = {"rule": "val_f1", "validation": 0.2}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"seeds": 3.7}, ["x.yaml: seeds", "integer", "3.7"]),
        ({"seeds": "3"}, ["x.yaml: seeds", "integer", "'3'"]),
        ({"seeds": True}, ["x.yaml: seeds", "integer"]),
        ({"seeds": 0}, ["x.yaml: seeds", "greater than or equal to 1"]),
        ({"trianing": {}}, ["'trianing'", "did you mean 'training'?", "choose from", "selection"]),
        ({"training": {"lrr": 1}}, ["training.lrr", "did you mean 'lr'?", "batch_size"]),
        ({"methods": ["vpudra_fxed"]}, ["methods", "did you mean 'vpudra_fixed'?", "pudra_naive"]),
        ({"methods": [{"preset": "vpu", "anchr": 1}]}, ["methods", "'anchr'", "did you mean 'anchor'?"]),
        ({"methods": [{"preset": "vpu", "anchor": 2}]}, ["methods", "anchor"]),
        ({"methods": ["vpu", "vpu"]}, ["vpu appears twice", "'name'"]),
        ({"methods": []}, ["methods"]),
        ({"data": {"c": 0}}, ["data.c", "greater than 0"]),
        ({"data": {"scenario": "cc"}}, ["data.scenario", "'case_control'", "'single_set'"]),
        (
            {"selection": {"rules": ["lst"], "default": "lst"}},
            ["selection.rules", "did you mean 'last'?", "pu_auc"],
        ),
        ({"selection": {"rules": ["last"], "default": "val_f1"}}, ["default rule 'val_f1'", "['last']"]),
        ({"selection": {"rules": ["last", "last"], "default": "last"}}, ["rules must differ; last appears twice"]),
        ({"selection": {"rules": [NESTED], "default": NESTED}}, ["'val_f1 on 20 %' wants validation share 0.2", "0.1"]),
        ({"selection": {"rules": [{"rule": "last", "validation": 0.1}], "default": "last"}}, ["reads no validation"]),
        ({"selection": {"rules": ["val_f1@0.2"], "default": "last"}}, ["unknown selection rule 'val_f1@0.2'"]),
        ({"kind": "multiclas"}, ["x.yaml: kind", "did you mean 'multiclass'?", "guided"]),
        ({"data": {"task": "multiclass"}}, ["kind: multiclass"]),
        ({"data": {"c": True}}, ["x.yaml: data.c: expected a number, got true"]),
        ({"data": {"c": "yes"}}, ["data.c", "number", "'yes'"]),
        ({"data": {"validation": [True]}}, ["data.validation.0"]),
        ({"selection": {"stop": "yes"}}, ["selection.stop: expected true or false, got 'yes'"]),
        ({"selection": {"stop": 1}}, ["selection.stop: expected true or false, got 1"]),
        ({"methods": [{"preset": "vpu", "anchor": True}]}, ["methods.anchor: True is no finite number"]),
        ({"training": {"lr": float("inf")}}, ["training.lr", "finite", "inf"]),
        ({"training": {"weight_decay": "nan"}}, ["training.weight_decay", "finite"]),
        ({"training": {"lr": 10**5000}}, ["training.lr"]),
        ({"first_seed": 2**31}, ["below 2^31"]),
        ({"seeds": 1_000_000_000}, ["1e+09 runs", "at most 1,000,000"]),
        ({"seeds": 1000, "grid": {"data.c": [0.1] * 2000}}, ["2e+06 runs", "at most 1,000,000"]),
        ({"probes": ["weight_norm", "weight_norm"]}, ["probe", "twice"]),
        ({"placement": {"kind": "map", "chunk": 4}}, ["placement.chunk", "no effect"]),
        ({"name": "x" * 10_000 + "!"}, ["name"]),
        ({"x" * 10_000: 1}, ["unknown key"]),
        ({"model": {"dropout": [1.0]}}, ["model.dropout", "less than 1"]),
        ({"name": "../up"}, ["name"]),
    ],
)
def test_a_bad_configuration_names_the_path_and_the_choices(raw, words):
    with pytest.raises(ConfigError) as caught:
        parse(raw, where="x.yaml")
    for word in words:
        assert word in str(caught.value)
    assert len(str(caught.value)) < 1500


def test_every_mistake_is_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        parse({"seeds": 0, "training": {"epochs": 1.5}, "data": {"c": 7}})
    assert len(str(caught.value).splitlines()) == 3


def test_files_that_are_not_configurations(tmp_path):
    with pytest.raises(ConfigError, match="no configuration at"):
        load(tmp_path / "none.yaml")
    (tmp_path / "list.yaml").write_text("- 1\n")
    with pytest.raises(ConfigError, match="expected a mapping"):
        load(tmp_path / "list.yaml")
    (tmp_path / "broken.yaml").write_text("a: [1\n")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load(tmp_path / "broken.yaml")


def test_overrides_reach_into_groups(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("training: {lr: 1e-4}\n")
    experiment = load(path, {"training.lr": "1e-2", "seeds": 3, "methods": ["pudra"]})
    assert (experiment.training.lr, experiment.seeds, experiment.methods) == (0.01, 3, ("pudra",))
    with pytest.raises(ConfigError, match="not a group"):
        load(path, {"training.lr.x": 1})


def test_a_resolved_configuration_reads_back_equal():
    for raw in (
        {"methods": ["vpu", {"preset": "vpudra_softlabel", "name": "half", "anchor": 0.5}]},
        {"grid": {"training.lr": [1e-3, 1e-4]}},
        {"grid": [{"data.name": "digits", "seeds": 2}, {"training.lr": 1e-3}], "probes": ["weight_norm"]},
        {"selection": {"rules": ["last", NESTED], "default": NESTED}, "data": {"validation": [0.1, 0.2]}},
        {"kind": "multiclass", "methods": ["pn"], "selection": {"rules": ["last"], "default": "last"}},
        {"kind": "ensemble", "grid": {"ratings.rate": [0.1]}},
        {"kind": "guided", "model": {"hidden": [8]}},
        {"claims": [{"claim": "x", "of": {"where": {"data.c": 0.1}, "selection": "last"}, "at_least": 0, "item": "7"}]},
    ):
        experiment = parse(raw)
        assert parse(to_dict(experiment)) == experiment
        assert parse(load_yaml(config.dump(experiment))) == experiment


def test_a_grid_is_the_product_of_its_axes_and_reaches_every_group():
    experiment = parse(
        {
            "methods": ["vpu", "vpudra_softlabel"],
            "grid": {"method.anchor": [0, 0.5], "data.c": [0.1, 0.2], "training.lr": ["1e-3"]},
        }
    )
    cells = expand(experiment)
    assert len(cells) == 8
    assert [c.method_name for c in cells] == ["vpu"] * 4 + ["vpudra_softlabel"] * 4
    assert {(c.method.anchor, c.data.c, c.training.lr) for c in cells} == {
        (a, c, 1e-3) for a in (0, 0.5) for c in (0.1, 0.2)
    }
    assert experiment.grid_columns == ("method.anchor", "data.c", "training.lr")
    assert [tuple(c.point) for c in cells] == [experiment.grid_columns] * 8
    assert [tuple(c.point.values()) for c in cells[:4]] == [(a, c, 0.001) for a in (0.0, 0.5) for c in (0.1, 0.2)]
    with pytest.raises(ConfigError, match=r"grid point.*training.lrr"):
        expand(parse({"grid": {"training.lrr": [1]}}))


def test_a_grid_may_be_rows_of_settings_that_go_together():
    rows = [
        {"data.name": "digits", "training.epochs": 20, "model.hidden": [64], "seeds": 3},
        {"data.name": "spambase", "training.epochs": 40, "first_seed": 5},
        {"data.name": "breast_cancer"},
    ]
    experiment = parse({"grid": rows, "seeds": 2, "training": {"epochs": 7}, "methods": ["vpu", "pudra"]})
    cells = expand(experiment)
    assert experiment.grid_columns == ("data.name", "training.epochs", "model.hidden")
    assert [(c.dataset, c.training.epochs, c.seeds, c.first_seed) for c in cells[:3]] == [
        ("digits", 20, 3, 0),
        ("spambase", 40, 2, 5),
        ("breast_cancer", 7, 2, 0),
    ]
    assert [tuple(c.point.values()) for c in cells[3:]] == [
        ("digits", 20, "[64]"),
        ("spambase", 40, None),
        ("breast_cancer", None, None),
    ]
    assert grid_types(cells) == {"data.name": str, "training.epochs": int, "model.hidden": str}
    runs = [(c.dataset, seed) for c, seed in runs_of(cells) if c.method_name == "vpu"]
    assert runs == [
        ("digits", 0),
        ("breast_cancer", 0),
        ("digits", 1),
        ("breast_cancer", 1),
        ("digits", 2),
        ("spambase", 5),
        ("spambase", 6),
    ]


@pytest.mark.parametrize(
    ("axis", "column"),
    [
        ({"training.initial_p": ["prior", 0.5, "1e-3"]}, ["prior", "0.5", "0.001"]),
        ({"training.lr": [1, "0.5", 2e-1]}, [1.0, 0.5, 0.2]),
        ({"training.batch_size": [8, 16]}, [8, 16]),
        ({"model.hidden": [[8], [8, 4]]}, ["[8]", "[8, 4]"]),
        ({"selection.stop": [True, False]}, [True, False]),
        ({"data.options.n": [100, 200.0]}, [100.0, 200.0]),
    ],
)
def test_a_grid_column_has_one_type(axis, column):
    cells = expand(parse({"grid": axis, "data": {"name": "gaussians"}}))
    values = [next(iter(cell.point.values())) for cell in cells]
    assert values == column
    assert {type(value) for value in values} == {type(column[0])} == {*grid_types(cells).values()}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"grid": {"training.lr": ["1e-3", 0.001]}}, ["'vpu lr=0.001' (cell 1)", "(cell 2)", "equal settings"]),
        ({"grid": [{"data.c": 0.2}, {"data.c": 0.2, "training.lr": 3e-4}]}, ["(cell 1)", "(cell 2)"]),
        ({"methods": ["vpu", {"preset": "vpu", "name": "again"}]}, ["'vpu' (cell 1)", "'again' (cell 2)"]),
        (
            {"methods": ["vpudra_pp", "vpudra_softlabel"], "grid": {"method.anchor": [1.0, 0.0]}},
            ["'vpudra_pp anchor=1'", "'vpudra_softlabel anchor=1'"],
        ),
        ({"methods": ["nnpu", {"preset": "nnpu", "name": "again", "gamma": "1", "surrogate": "sigmoid"}]}, ["'again'"]),
        ({"methods": ["pn", {"preset": "pn", "name": "again", "decision_offset": 0}]}, ["'pn' (cell 1)", "'again'"]),
        ({"methods": ["pn", {"risk": "pn", "name": "again", "skip_without_positives": False}]}, ["'pn'", "'again'"]),
        ({"methods": ["vpu", {"preset": "vpu", "name": "again", "anchor": {"start": 1, "end": 1}}]}, ["'again'"]),
        ({"grid": [{"training.lr": 1e-3, "seeds": 2}, {"training.lr": "0.001", "seeds": 3}]}, ["(cell 1)", "(cell 2)"]),
        ({"grid": [{}, {}]}, ["'vpu' (cell 1) and 'vpu' (cell 2)"]),
        (
            {"kind": "ensemble", "methods": ["als", {"trainer": "als", "name": "b", "iterations": 100}]},
            ["'als'", "'b'"],
        ),
        ({"kind": "ensemble", "grid": {"ratings.rate": [0.1, "1e-1"]}}, ["'als rate=0.1' (cell 1)"]),
        ({"kind": "guided", "filters": ["low", "low"]}, ["low teacher=mixup sees=all"]),
    ],
)
def test_equal_cells_are_refused_by_name_however_they_are_written(raw, words):
    with pytest.raises(ConfigError) as caught:
        expand(parse(raw))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"grid": {"training.lr": []}}, "at least one"),
        ({"grid": {"training.lr": 0.1}}, "expected a list of values for 'training.lr'"),
        ({"grid": []}, "expected a mapping of paths to lists, or rows"),
        ({"grid": [1]}, "expected a mapping of paths to lists, or rows"),
        ({"grid": {"methods": [["pn"], ["upu"]]}}, "unknown setting of a grid 'methods' (did you mean 'method'?)"),
        ({"grid": {"seeds": [2, 3]}}, "unknown setting of a grid 'seeds'"),
        ({"grid": {"training": [{"lr": 1}]}}, "expected one setting, such as training.lr"),
        ({"grid": {"data.task": ["pu", "multiclass"]}}, "unknown setting of a grid"),
        ({"grid": {"ratings.rate": [0.1]}}, "unknown setting of a grid 'ratings'"),
        ({"grid": {"training.lr": [0.1]}, "training": {"lr": 0.2}}, "training.lr is set by the grid"),
        ({"grid": [{"data.c": 0.3}, {"data.c": 0.2}], "data": {"c": 0.4}}, "data.c is set by the grid"),
        ({"grid": [{"data.c": 0.3, "seeds": 2}], "seeds": 3}, "seeds is set by the grid"),
        (
            {"grid": {"method.anchor": [0, 1]}, "methods": [{"preset": "vpu", "anchor": 0.5}]},
            "method.anchor is set by the grid",
        ),
        (
            {"methods": ["vpu", "pudra"], "grid": {"training.alpha": [0.1, 1]}},
            "no effect on method 'pudra', which does not",
        ),
        ({"methods": [{"preset": "nnpu", "anchor": 0.5}]}, "method.anchor has no effect on method 'nnpu'"),
        ({"kind": "ensemble", "grid": {"factors.dim": [2]}, "factors": {"dim": 3}}, "factors.dim is set by the grid"),
        ({"kind": "ensemble", "grid": {"ratings.rate": []}}, "at least one"),
        ({"kind": "ensemble", "methods": [{"trainer": "mean", "lr": 1}]}, "lr has no effect with trainer 'mean'"),
        ({"kind": "ensemble", "methods": [{"trainer": "als", "plateau": 0.5}]}, "plateau has no effect with trainer"),
        ({"kind": "ensemble", "ratings": {"dataset": "digits"}}, "dataset has no effect with source 'synthetic'"),
        ({"methods": [{"preset": "pn", "effective_beta": 0.9}]}, "effective_beta has no effect with class_weights"),
        ({"kind": "guided", "grid": {"training.lr": [0.1]}, "training": {"lr": 0.2}}, "training.lr is set by the grid"),
    ],
)
def test_settings_without_effect_are_refused(raw, words):
    with pytest.raises(ConfigError) as caught:
        parse(raw)
    assert words in str(caught.value)


def test_a_resolved_value_at_its_default_does_not_contradict_the_grid():
    experiment = parse({"grid": {"training.lr": [0.1]}})
    assert to_dict(experiment)["training"]["lr"] == 3e-4
    assert parse(to_dict(experiment)) == experiment


@pytest.mark.parametrize("override", [{"training.lr": 3e-4}, {"training": {"lr": 1}}, {"training.lr.x": 1}])
def test_an_override_of_what_the_grid_sets_is_refused(tmp_path, override):
    path = tmp_path / "a.yaml"
    path.write_text("grid: {training.lr: [0.1, 0.2]}\n")
    with pytest.raises(ConfigError, match=r"override training.lr: the grid sets it, so this would have no effect"):
        load(path, override)
    assert load(path, {"training.epochs": 3, "grid": {"training.lr": [0.3]}}).grid == {"training.lr": [0.3]}
    rows = tmp_path / "b.yaml"
    rows.write_text("grid: [{data.name: digits, seeds: 3}, {training.lr: 0.1}]\n")
    for dotted in ("seeds", "training.lr"):
        with pytest.raises(ConfigError, match=f"override {dotted}: the grid sets it"):
            load(rows, {dotted: 1})


def test_configurations_are_found_by_path_by_study_and_by_a_name_of_their_own(tmp_path, monkeypatch):
    own, shipped = tmp_path / "here" / "configs", tmp_path / "package"
    for file in (own / "a" / "one.yaml", shipped / "a" / "one.yaml", shipped / "b" / "one.yaml", shipped / "two.yaml"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("seeds: 1\n")
    (shipped / "b" / "[x]*.yaml").write_text("seeds: 1\n")
    (shipped / "b" / "notes.md").write_text("")
    folders = [own, shipped]
    assert [*list_configs(folders)] == ["a/one", "b/[x]*", "b/one", "two"]
    assert find_config("a/one", folders) == own / "a" / "one.yaml", "what is here goes first"
    assert find_config("b/one", folders) == shipped / "b" / "one.yaml"
    assert find_config("two", folders) == shipped / "two.yaml"
    assert find_config("[x]*", folders) == shipped / "b" / "[x]*.yaml"
    assert find_config(shipped / "two.yaml", folders) == shipped / "two.yaml"
    with pytest.raises(ConfigError, match="several configurations are named one: a/one, b/one; say which"):
        find_config("one", folders)
    with pytest.raises(
        ConfigError, match=r"no configuration at tow, and none of that name \(did you mean 'two'\?\); jaxpu list"
    ):
        find_config("tow", folders)
    with pytest.raises(ConfigError, match="is a folder, no configuration"):
        find_config(shipped, folders)
    monkeypatch.chdir(own.parent)
    assert find_config("one") == Path("configs/a/one.yaml")
    monkeypatch.setenv("HOME", str(shipped))
    assert find_config("~/two.yaml") == shipped / "two.yaml"


def test_a_digest_changes_with_every_number_and_with_nothing_else():
    base = Experiment()
    assert digest(base) == digest(Experiment())
    changed = [
        parse({"training": {"lr": 1e-3}}),
        parse({"data": {"c": 0.2}}),
        parse({"seeds": 9}),
        parse({"methods": ["pudra"]}),
    ]
    assert len({digest(e) for e in [base, *changed]}) == 5


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": {"name": "linear", "hidden": [8]}}, "hidden has no effect with model.name 'linear'"),
        ({"model": {"name": "resnet", "dropout": [0.5]}}, "dropout has no effect with model.name 'resnet'"),
        ({"model": {"name": "mlp", "channels": [8]}}, "channels has no effect with model.name 'mlp'"),
        ({"model": {"name": "lenet", "blocks": 2}}, "blocks has no effect with model.name 'lenet'"),
        ({"selection": {"rules": ["last"], "default": "last", "patience": 3}}, "patience has no effect with 'last'"),
        (
            {"selection": {"rules": ["last"], "default": "last", "min_delta": 0.1}},
            "min_delta has no effect with 'last'",
        ),
    ],
)
def test_sizes_and_patience_that_nothing_reads_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        parse(settings)


def test_every_network_says_what_it_reads():
    for name in OF_NETWORKS:
        assert parse({"kind": "guided", "model": {"name": name}}).model.name == name
    assert {*OF_NETWORKS} == {*get_args(ModelConfig.__annotations__["name"])}


def test_every_name_of_a_schedule_of_alpha_is_one_of_mixup_s():
    assert get_args(AlphaSchedule) == tuple(mixup.SCHEDULES)


def test_defaults_are_those_that_recorded_runs_were_made_with():
    """Identities leave defaults out: whoever changes one here raises ``jaxpu.runs.FORMAT``, a new one is added."""
    recorded = {
        DataConfig: {
            "name": "spambase",
            "options": {},
            "task": "pu",
            "noise": 0.0,
            "train_prior": None,
            "imbalance": 1.0,
            "outside": "",
            "file": "",
            "label": "",
            "positive": None,
            "observed": "",
            "labeled": None,
            "scenario": "case_control",
            "mechanism": "scar",
            "c": 0.1,
            "test": 0.2,
            "validation": [0.1],
            "prior": "unlabeled",
            "prior_scale": 1.0,
        },
        ModelConfig: {
            "name": "mlp",
            "hidden": [512, 256, 128, 64],
            "dropout": [0.3, 0.3, 0.2],
            "channels": [16, 32],
            "blocks": 3,
            "init": "torch",
            "module": None,
            "arguments": {},
        },
        TrainingConfig: {
            "epochs": 40,
            "batch_size": 256,
            "lr": 3e-4,
            "weight_decay": 1e-4,
            "optimizer": "adam",
            "schedule": "constant",
            "warmup": 0.05,
            "factor": 0.5,
            "every": 20,
            "momentum": 0.9,
            "nesterov": False,
            "b1": 0.9,
            "b2": 0.999,
            "eps": 1e-8,
            "directional_penalty": 0.0,
            "alpha": 0.3,
            "alpha_schedule": "constant",
            "lam_per": "batch",
            "evaluate_every": 1,
            "initial_p": "prior",
        },
        functools.partial(Method, risk="pn"): {
            "risk": "pn",
            "options": {},
            "stages": [],
            "memory": None,
            "class_weights": "none",
            "effective_beta": 0.999,
            "penalty": "none",
            "mixes": "none",
            "plain_weight": 0.0,
            "mixed_weight": 1.0,
            "anchor": 1.0,
            "pairing": "labeled_positives",
            "alpha": None,
            "at_least_half": False,
            "detach": True,
            "same_dropout": False,
            "floor": 0.0,
            "partner_floor": 0.0,
            "weight": 1.0,
            "weight_by_lambda": True,
            "mix_unlabeled_only": False,
            "batching": "mixed",
            "decision": "half",
            "decision_offset": None,
            "skip_without_positives": None,
            "source": "",
        },
    }
    for make, defaults in recorded.items():
        assert as_dict(make()) == defaults
    assert FORMAT == 3


def test_a_new_option_at_its_default_leaves_identities_as_they_were():
    assert digest(DataConfig()) == digest(DataConfig(**as_dict(DataConfig())))
    assert digest(DataConfig()) != digest(ModelConfig()), "both are all defaults, of different things"
    assert digest(METHODS["pn"]) == digest(Method(**as_dict(METHODS["pn"])))


NUMBERS = st.floats(1e-6, 0.9).map(lambda x: float(f"{x:.6g}"))


@given(lr=NUMBERS, c=NUMBERS, n=st.integers(1, 10**6), order=st.randoms())
def test_equal_settings_have_equal_identities_however_they_are_written(lr, c, n, order):
    def shuffled(mapping):
        keys = list(mapping)
        order.shuffle(keys)
        return {key: mapping[key] for key in keys}

    def written(number):
        return order.choice([number, str(number), f"{number:.12e}", np.float64(number)])

    def cell(as_written):
        options = {"n": order.choice([n, float(n), np.int64(n)]) if as_written else n}
        data = {"name": "gaussians", "c": written(c) if as_written else c, "options": options}
        training = {"lr": written(lr) if as_written else lr}
        if as_written:
            data |= {"scenario": "case_control", "prior_scale": 1}
        raw = {"data": data, "training": training}
        [one] = expand(parse(shuffled({key: shuffled(value) for key, value in raw.items()})))
        return one

    [point] = expand(parse({"grid": {"training.lr": [written(lr)]}, "data": as_dict(cell(False).data)}))
    identities = {digest(*one.identity) for one in (cell(False), cell(True), point)}
    assert len(identities) == 1
    assert point.point == {"training.lr": lr}
    [other] = expand(parse({"training": {"lr": lr * 1.01}, "data": as_dict(cell(False).data)}))
    assert digest(*other.identity) not in identities


def test_a_run_is_another_where_something_else_is_recorded_and_not_where_it_is_read_differently():
    def identity(**selection):
        [cell] = expand(parse({"selection": {"rules": ["val_f1", "pu_auc"], "default": "val_f1"} | selection}))
        return digest(*cell.identity)

    assert identity(stop=False) == identity(stop=False, patience=3) == identity(stop=False, default="pu_auc")
    assert identity(stop=False) == identity(rules=["last"], default="last"), "never stops early"
    assert identity() == identity(rules=["pu_auc", "val_f1"])
    different = [identity(), identity(patience=3), identity(rules=["val_f1"]), identity(keep_best=True)]
    different += [identity(keep_best=True, default="pu_auc"), identity(stop=False)]
    assert len(set(different)) == len(different)
    cells = expand(parse({"grid": {"selection.patience": [3, 4]}}))
    assert len({digest(*cell.identity) for cell in cells}) == 2, "each point has runs of its own"
    assert digest(*expand(parse({"probes": ["weight_norm"]}))[0].identity) != digest(*expand(parse({}))[0].identity)


def test_functions_are_known_by_name():
    assert digest(digest) == digest(digest) != digest(expand)


@given(
    st.dictionaries(
        st.sampled_from(["seeds", "name", "grid", "methods", "data", "kind", "claims", "selection", "probes"]),
        st.recursive(
            st.integers() | st.floats() | st.text() | st.none() | st.booleans(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=6,
        ),
    )
)
def test_whatever_comes_is_an_experiment_or_a_clear_error(raw):
    try:
        experiment = parse(raw)
    except ConfigError as refused:
        words = str(refused)
    else:
        words = ""
        assert parse(to_dict(experiment)) == experiment
    assert not words or words.startswith("configuration: ")


def test_presets_are_the_rows_of_the_table():
    # (risk, penalty, anchor, weight by λ): spec of the nine-dataset table
    table = {
        "pudra": ("pudra", "none", 1.0, True),
        "vpu_nomixup": ("variational", "none", 1.0, True),
        "vpu": ("variational", "log_mse", 1.0, True),
        "vpu_published": ("variational", "log_mse", 1.0, False),
        "vpudra": ("pudra_batch", "log_mse", 1.0, True),
        "vpudra_fixed": ("pudra", "log_mse", 1.0, True),
        "vpudra_pp": ("pudra", "point_process", 1.0, True),
        "vpudra_softlabel": ("pudra", "point_process", 0.0, True),
        "soft_logmse": ("pudra", "log_mse", 0.0, True),
        "soft_anchor": ("pudra", "point_process", Schedule(1.0, 0.5), True),
    }
    for name, expected in table.items():
        m = METHODS[name]
        assert (m.risk, m.penalty, m.anchor, m.weight_by_lambda) == expected, name
    assert METHODS["vpu_published"].options == {"over": "unlabeled"}
    assert METHODS["soft_floor"].floor == 0.5
    assert METHODS["soft_partner_floor"].partner_floor == 0.7
    assert METHODS["vpu_published"].weight == 0.3
    assert METHODS["vpu_published"].decision == "max_shift"
    assert METHODS["nnpusb"].decision == "quantile"
    assert all(isinstance(m, Method) and m.source for m in METHODS.values())


def test_configuration_and_help_do_not_import_jax():
    code = "import sys, jaxpu.config, jaxpu.cli, jaxpu.selection; assert 'jax' not in sys.modules, 'jax'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_listed_is_described_without_jax():
    code = (
        "import atexit, sys, jaxpu.cli; atexit.register(lambda: print('jax' in sys.modules)); jaxpu.cli.main(['list'])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.endswith("False\n")


def test_help_answers_within_a_second():
    times = []
    for _ in range(3):  # processor seconds: the machine may be busy, the command must not be
        began = os.times()
        subprocess.run([sys.executable, "-m", "jaxpu", "--help"], check=True, stdout=subprocess.DEVNULL)
        ended = os.times()
        times.append(ended.children_user + ended.children_system - began.children_user - began.children_system)
    assert min(times) < 1.0


def test_an_experiment_runs_on_chosen_datasets_with_their_rows_and_any_other_set_with_what_is_asked_of_all():
    rows = [
        {"data.name": "spambase", "data.c": 0.1, "seeds": 3},
        {"data.name": "spambase", "data.c": 0.5, "training.epochs": 2},
        {"data.name": "mnist", "data.options.rows": 600, "data.c": 0.1, "model.name": "lenet"},
    ]
    claims = [
        {"claim": "a", "of": {"dataset": "mnist"}, "at_least": 0},
        {"claim": "b", "of": {"where": {"data.name": "spambase"}}, "minus": {"method": "vpu"}, "at_least": 0},
        {"claim": "c", "of": {}, "at_least": 0},
    ]
    raw = {"data": {"validation": [0.2]}, "grid": rows, "claims": claims}
    got = config.on_datasets(raw, ["mnist", "digits"])
    of_any = [{"data.name": "digits", "data.c": 0.1}, {"data.name": "digits", "data.c": 0.5}]
    assert got["grid"] == [rows[2], *of_any]
    assert [claim["claim"] for claim in got["claims"]] == ["a", "c"]
    got = config.on_datasets(raw, ["digits", "spambase"])
    assert got["grid"] == [*of_any, *rows[:2]]
    assert [claim["claim"] for claim in got["claims"]] == ["b", "c"]
    assert raw["grid"] == rows, "what was given stays"
    plain = config.on_datasets({"data": {"name": "mnist", "options": {"rows": 600}, "c": 0.3}}, ["digits", "spambase"])
    assert [(cell.data.name, cell.data.options, cell.data.c) for cell in parse(plain).cells()] == [
        ("digits", {}, 0.3),
        ("spambase", {}, 0.3),
    ]
    product = config.on_datasets({"grid": {"data.name": ["mnist"], "data.c": [0.1, 0.2]}}, ["digits"])
    assert product["grid"] == {"data.name": ["digits"], "data.c": [0.1, 0.2]}
    for wrong, message in (({"data": {"file": "a.csv"}}, "about data.file"), ({}, "expected different ones")):
        with pytest.raises(ConfigError, match=message):
            config.on_datasets(wrong, ["digits"] * (1 + (not wrong)))
