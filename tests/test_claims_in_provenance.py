"""What claims asked for before there were results is recorded with them, and a later change is said."""

import polars as pl
import pytest

from jaxpu import api, config, runs
from jaxpu.report import experiment as pages

ASKED = {"claim": "VPU is right", "of": {"method": "vpu"}, "metric": "test_oracle_accuracy", "at_least": 0.2}


def experiment(seeds, *claims):
    return config.parse(
        {
            "name": "small",
            "data": {"name": "gaussians", "options": {"n": 60}},
            "model": {"name": "linear"},
            "training": {"epochs": 1},
            "selection": {"rules": ["last"], "default": "last"},
            "seeds": seeds,
            "claims": list(claims),
        }
    )


def changes(folder, asked):
    outcome = api.sweep(asked, folder=folder)
    pages.publish(folder, asked, outcome.runs, outcome.provenance)
    return pl.read_csv(folder / "claims.csv")["changed"].fill_null("").to_list()


@pytest.mark.slow
def test_a_bound_that_is_changed_after_results_existed_is_told_also_after_more_seeds(tmp_path):
    asked = experiment(6, ASKED)
    assert changes(tmp_path, asked) == [""]
    assert runs.read_provenance(tmp_path)["claims"] == config.claims_digest(asked)
    reworded = experiment(6, ASKED | {"source": "somebody"})
    assert changes(tmp_path, reworded) == [""]
    lowered = experiment(6, ASKED | {"at_least": 0.1})
    assert changes(tmp_path, lowered) == ["changed after results existed"]
    more = experiment(7, ASKED | {"at_least": 0.1})
    assert changes(tmp_path, more) == ["changed after results existed"]
    added = experiment(7, ASKED, ASKED | {"claim": "VPU is very right"})
    assert changes(tmp_path, added)[1] == "added after results existed"
