"""Acceptance by extension: a loss with a method is one file of at most 30 lines, and the contract test covers it."""

from pathlib import Path

import pytest
from contract import check_risk
from examples import new_loss

from jaxpu import api
from jaxpu.methods import describe, risk_identity


def test_a_new_loss_is_one_short_file_that_keeps_the_contract():
    assert len(Path(new_loss.__file__).read_text().splitlines()) <= 30
    check_risk(new_loss.ranked)
    assert describe(new_loss.METHOD).startswith("Mean hinge over pairs")
    assert "new_loss:ranked@" in risk_identity(new_loss.METHOD)["risk"]


@pytest.mark.slow
def test_it_trains_on_spambase_beside_ours(tmp_path):
    own = {"risk": "examples.new_loss:ranked", "name": "ranked", "margin": 2, "decision": "quantile"}
    outcome = api.sweep(new_loss.SMALL | {"methods": [own, "nnpu"], "seeds": 2}, folder=tmp_path)
    assert not outcome.failures
    last = outcome.runs.filter(outcome.runs["epoch"] == 3)
    assert len(last) == 4
    assert last["test_oracle_auc"].min() > 0.9
    assert last["test_oracle_auc"].n_unique() == 4
    again = api.sweep(new_loss.SMALL | {"methods": [new_loss.METHOD], "seeds": 2})
    of_own = last.filter(last["method"] == "ranked").sort("seed")["test_oracle_auc"]
    alone = again.runs.filter(again.runs["epoch"] == 3).sort("seed")["test_oracle_auc"]
    assert (of_own - alone).abs().max() < 1e-3, "beside another risk, and alone"
