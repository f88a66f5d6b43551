"""Acceptance by extension: a dataset from a CSV takes no file of jaxpu."""

from pathlib import Path

import numpy as np

from jaxpu import api, config

HERE = Path(__file__).parent


def test_a_csv_is_a_dataset(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    positive = np.arange(200) < 90
    x = rng.normal(size=(200, 3)) + 2 * positive[:, None]
    checked = np.where(positive & (rng.random(200) < 0.4), "fraud", "")
    lines = [f"{a};{b};{c};{word}" for (a, b, c), word in zip(x, checked, strict=True)]
    (tmp_path / "my.csv").write_text("\n".join(["amount;hour;age;checked", *lines]) + "\n")
    monkeypatch.chdir(tmp_path)
    experiment = config.load(HERE / "csv_dataset.yaml", {"placement.devices": 1})
    assert experiment.rules == ("pu_accuracy", "last")
    outcome = api.sweep(experiment, folder=tmp_path / "results")
    assert not outcome.failures
    last = outcome.runs.filter(outcome.runs["epoch"] == 10)
    assert len(last) == 8
    assert last["val_proxy_pu_auc"].median() > 0.8
