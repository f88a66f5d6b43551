"""Configurations: what is read, what is refused and how the refusal reads, what a grid expands to."""

import functools
import os
import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jaxpu import config
from jaxpu.config import (
    ConfigError,
    DataConfig,
    Experiment,
    ModelConfig,
    TrainingConfig,
    digest,
    expand,
    load,
    parse,
    to_dict,
)
from jaxpu.config.schema import as_dict
from jaxpu.methods import METHODS, Method
from jaxpu.sweep.runs import FORMAT


def test_yaml_reads_1e_4_as_a_string_and_we_as_a_number(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("training: {lr: 1e-4, weight_decay: 1e-3}\ndata: {validation: [1e-2]}\n")
    assert yaml.safe_load(path.read_text())["training"]["lr"] == "1e-4"
    experiment = load(path)
    assert experiment.training.lr == 0.0001
    assert experiment.data.validation == (0.01,)
    assert experiment.name == "a"


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
        ({"selection": {"rules": ["val_f1@0.2"], "default": "val_f1@0.2"}}, ["validation share 0.2", "0.1"]),
        ({"model": {"dropout": [1.0]}}, ["model.dropout", "less than 1"]),
        ({"name": "../up"}, ["name"]),
    ],
)
def test_a_bad_configuration_names_the_path_and_the_choices(raw, words):
    with pytest.raises(ConfigError) as caught:
        parse(raw, where="x.yaml")
    for word in words:
        assert word in str(caught.value)


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
    experiment = parse(
        {
            "methods": ["vpu", {"preset": "vpudra_softlabel", "name": "half", "anchor": 0.5}],
            "grid": {"training.lr": [1e-3, 1e-4]},
        }
    )
    assert parse(to_dict(experiment)) == experiment
    assert parse(yaml.safe_load(config.dump(experiment))) == experiment


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
    assert len({c.label for c in cells[:4]}) == 4
    with pytest.raises(ConfigError, match=r"grid point.*training.lrr"):
        expand(parse({"grid": {"training.lrr": [1]}}))


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


def test_defaults_are_those_that_recorded_runs_were_made_with():
    """Identities leave defaults out: whoever changes one here raises ``sweep.runs.FORMAT``, a new one is added."""
    recorded = {
        DataConfig: {
            "name": "spambase",
            "options": {},
            "task": "pu",
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
            "momentum": 0.9,
            "nesterov": False,
            "b1": 0.9,
            "b2": 0.999,
            "eps": 1e-8,
            "alpha": 0.3,
            "alpha_schedule": "constant",
            "lam_per": "batch",
            "initial_p": "prior",
        },
        functools.partial(Method, base="pn"): {
            "base": "pn",
            "surrogate": "sigmoid",
            "log_end": 0.75,
            "log_end_last": None,
            "log_end_schedule": "linear",
            "focus": 2.0,
            "class_weights": "none",
            "effective_beta": 0.999,
            "batch_prior": False,
            "beta": 0.0,
            "gamma": 1.0,
            "penalty": "none",
            "anchor": 1.0,
            "anchor_end": None,
            "floor": 0.0,
            "partner_floor": 0.0,
            "weight": 1.0,
            "weight_by_lambda": True,
            "mix_unlabeled_only": False,
            "batching": "mixed",
            "decision": "half",
            "source": "",
        },
    }
    for make, defaults in recorded.items():
        assert as_dict(make()) == defaults
    assert FORMAT == 2


def test_a_new_option_at_its_default_leaves_identities_as_they_were():
    assert digest(DataConfig()) == digest(DataConfig(**as_dict(DataConfig())))
    assert digest(DataConfig()) != digest(ModelConfig()), "both are all defaults, of different things"
    assert digest(METHODS["pn"]) == digest(Method(**as_dict(METHODS["pn"])))


@given(
    st.dictionaries(
        st.sampled_from(["seeds", "name", "grid", "methods", "data"]), st.integers() | st.text() | st.none()
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
    # (base, surrogate, batch prior, penalty, anchor, weight by λ): spec of the nine-dataset table
    table = {
        "pudra": ("pudra", False, "none", 1.0, True),
        "vpu_nomixup": ("variational", False, "none", 1.0, True),
        "vpu": ("variational", False, "log_mse", 1.0, True),
        "vpu_published": ("variational_unlabeled", False, "log_mse", 1.0, False),
        "vpudra": ("pudra", True, "log_mse", 1.0, True),
        "vpudra_fixed": ("pudra", False, "log_mse", 1.0, True),
        "vpudra_pp": ("pudra", False, "point_process", 1.0, True),
        "vpudra_softlabel": ("pudra", False, "point_process", 0.0, True),
        "soft_logmse": ("pudra", False, "log_mse", 0.0, True),
    }
    for name, expected in table.items():
        m = METHODS[name]
        assert (m.base, m.batch_prior, m.penalty, m.anchor, m.weight_by_lambda) == expected, name
    assert METHODS["soft_anchor"].anchor_end == 0.5
    assert METHODS["soft_floor"].floor == 0.5
    assert METHODS["soft_partner_floor"].partner_floor == 0.7
    assert METHODS["vpu_published"].weight == 0.3
    assert METHODS["vpu_published"].decision == "max_shift"
    assert METHODS["nnpusb"].decision == "quantile"
    assert all(isinstance(m, Method) and m.source for m in METHODS.values())


def test_configuration_and_help_do_not_import_jax():
    code = "import sys, jaxpu.config, jaxpu.cli, jaxpu.selection; assert 'jax' not in sys.modules, 'jax'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_help_answers_within_a_second():
    times = []
    for _ in range(3):  # processor seconds: the machine may be busy, the command must not be
        began = os.times()
        subprocess.run([sys.executable, "-m", "jaxpu", "--help"], check=True, stdout=subprocess.DEVNULL)
        ended = os.times()
        times.append(ended.children_user + ended.children_system - began.children_user - began.children_system)
    assert min(times) < 1.0
