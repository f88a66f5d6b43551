"""Made-up sweeps in which it is known which run fails and why; their tables, computed without jaxpu."""

import numpy as np
import polars as pl

METHODS = ("vpu", "pudra", "vpudra_fixed", "vpudra_softlabel")
RULES = ("pu_auc", "val_f1_rescue", "val_f1", "last")
ARTEFACTS = {("vpudra_softlabel", 2), ("vpudra_softlabel", 5)}


def fake_runs(methods=METHODS, seeds=8, epochs=20, artefacts=ARTEFACTS, rates=(None,)):
    """Runs whose F1 rises to about 0.87; the ``artefacts`` wrongly look best on validation at epoch 2.

    With ``rates`` they are those of a grid over ``training.lr``.
    """
    random = np.random.default_rng(0)
    parts = []
    for method in methods:
        for rate in rates:
            for seed in range(seeds):
                parts.append(_fake_run(random, method, rate, seed, epochs, (method, seed) in artefacts))
    return pl.concat(parts)


def _fake_run(random, method, rate, seed, epochs, artefact):
    epoch = np.arange(1, epochs + 1)
    top = 0.87 + 0.02 * random.standard_normal()
    f1 = top * (1 - np.exp(-epoch / random.uniform(0.8, 1.6))) + 0.01 * random.standard_normal(epochs)
    test_rescued = f1.copy()
    auc = 0.94 - 0.1 * np.exp(-epoch / 2) + 0.004 * random.standard_normal(epochs)
    val = np.clip(np.round((f1 + 0.04 * random.standard_normal(epochs)) * 37) / 37, 0, 0.95)
    share = 0.39 * (1 - np.exp(-epoch / 1.5))
    val_share, rescued = share.copy(), val.copy()
    if artefact:
        f1[:2], val[:2], val_share[:2], share[:2] = (0.0, 0.0218), 0, 0, (0, 0.004)
        rescued[:2] = 0.867, 0.96
        test_rescued[:2] = 0.81, 0.0218
    f1, test_rescued = np.clip(f1, 0, 1), np.clip(test_rescued, 0, 1)
    return pl.DataFrame(
        {
            "dataset": "spambase",
            "method": method,
            **({} if rate is None else {"training.lr": float(rate)}),
            "seed": seed,
            "epoch": epoch,
            "train_loss": 0.7 - 0.1 * np.log(epoch),
            "test_oracle_f1": f1,
            "test_oracle_f1_decision": f1,
            "test_oracle_f1_rescue": test_rescued,
            "test_oracle_f1_quantile": np.clip(f1 + 0.01, 0, 1),
            "test_oracle_f1_max_shift": np.clip(f1 - 0.01, 0, 1),
            "test_oracle_auc": auc,
            "test_predicted_positive": share,
            "val_oracle_f1": val,
            "val_oracle_f1_decision": val,
            "val_oracle_f1_rescue": rescued,
            "val_proxy_pu_auc": auc - 0.02,
            "val_predicted_positive": val_share,
        }
    )


def fake_selected(runs, rules=RULES):
    criteria = {
        "pu_auc": "val_proxy_pu_auc",
        "val_f1_rescue": "val_oracle_f1_rescue",
        "val_f1": "val_oracle_f1",
    }
    parts = []
    for rule in rules:
        by = criteria.get(rule, "epoch")
        best = runs.sort(by, "epoch", descending=[True, False], maintain_order=True)
        best = best.group_by(*row_of(runs), "seed", maintain_order=True).first()
        parts.append(best.with_columns(selection=pl.lit(rule)))
    order = {method: i for i, method in enumerate(runs["method"].unique(maintain_order=True))}
    failed = pl.col("f1") < 0.1
    return (
        pl.concat(parts)
        .with_columns(pl.col("test_oracle_f1").alias("f1"), epochs_run=pl.lit(20), decision=pl.lit("half"))
        .with_columns(
            verdict=pl.when(failed).then(pl.lit("selection_artefact")).otherwise(pl.lit("healthy")),
            explanation=pl.when(failed)
            .then(pl.lit("The selected epoch fails, a later one of the same run does not."))
            .otherwise(pl.lit("Ranking and threshold are good.")),
        )
        .sort(pl.col("method").replace_strict(order), *row_of(runs)[2:], "seed", maintain_order=True)
        .select(*row_of(runs), "seed", "selection", pl.exclude(*row_of(runs), "seed", "selection"))
    )


def row_of(frame):
    return ["dataset", "method", *(["training.lr"] if "training.lr" in frame.columns else [])]


def wilson(failed, n, z=1.959964):
    p = failed / n
    middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def fake_summary(selected):
    rows = []
    keys = [*row_of(selected), "selection"]
    for key, group in selected.group_by(keys, maintain_order=True):
        for metric, column in (("f1", "f1"), ("auc", "test_oracle_auc")):
            x = group[column].to_numpy()
            half = 1.96 * x.std(ddof=1) / np.sqrt(len(x)) if len(x) > 1 else np.nan
            sd = x.std(ddof=1) if len(x) > 1 else np.nan
            rows.append(
                (
                    *key,
                    metric,
                    len(x),
                    x.mean(),
                    np.median(x),
                    sd,
                    x.mean() - half,
                    x.mean() + half,
                    np.median(x),
                    len(x),
                )
            )
        failed, n = int((group["f1"] < 0.1).sum()), group.height
        rows.append((*key, "f1_below", n, failed / n, np.nan, np.nan, *wilson(failed, n), np.nan, failed))
    names = [*keys, "metric", "n", "mean", "median", "sd", "ci_low", "ci_high", "iqm", "count"]
    return pl.DataFrame(rows, schema=names, orient="row")


def fake_verdicts(selected):
    rows = []
    keys = [*row_of(selected), "selection"]
    for key, group in selected.group_by(keys, maintain_order=True):
        failed, n = int((group["f1"] < 0.1).sum()), group.height
        verdict = "selection_artefact" if failed else "healthy"
        sentence = f"{failed} of {n} runs fail."
        rows.append((*key, verdict, sentence, failed or n, n, failed, failed / n, *wilson(failed, n)))
    names = [*keys, "verdict", "sentence", "count", "n", "failing", "rate", "ci_low", "ci_high"]
    return pl.DataFrame(rows, schema=names, orient="row")


def fake_sweep():
    """Runs, selected, summary and verdicts of four methods with eight seeds."""
    runs = fake_runs()
    selected = fake_selected(runs)
    return runs, selected, fake_summary(selected), fake_verdicts(selected)
