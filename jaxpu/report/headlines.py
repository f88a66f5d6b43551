"""The three headline failures side by side, each with the same diagnosis, so that one learns to tell them apart."""

from pathlib import Path

import polars as pl

from jaxpu.report.tables import plain
from jaxpu.report.words import verdict_name

HEADS = ("failure", "what was seen", "what the same runs do later", "verdicts of these runs")
FILTER_CELL = "teacher=mixup sees=all"
FIGURES = {
    "cf_inverted": ("long_paths", "Seed 003: the ranking turns round, later"),
    "high_filter": ("courses", "Seed 001: the high filter starves its student, and it does not recover"),
}
TELL_APART = """\
- **Selection artefact** (000): the epoch that was kept is bad and a later epoch of the same run is good. Training is
  well; change the rule that selects, or the size of its validation set.
- **Stopped early** (003): the last epoch is bad, upside down, and a longer run of the same seed is good. Train on, or
  set the bias right at the start.
- **Self-reinforcing** (001): the last epoch is bad, and what the run feeds itself (here the share of pairs that its
  filter lets through) is starved. Training on does not help; cutting the loop does, as the same student without the
  filter shows. Where starving and mean p do not move together, the verdict names the symptom: all of one class."""


def headlines(results: Path) -> str:
    """The section of the report, from the results folders that are there; empty if none is.

    Args:
        results: the folder of results folders.
    """
    rows = [row for row in (_artefact(results), _inverted(results), _filter(results)) if row]
    if not rows:
        return ""
    lines = [f"| {' | '.join(map(plain, row))} |" for row in rows]
    figures = [
        f"![{title}](../{name}/figures/{figure}.svg)"
        for name, (figure, title) in FIGURES.items()
        if (results / name / "figures" / f"{figure}.svg").exists()
    ]
    table = "\n".join([f"| {' | '.join(HEADS)} |", "|---|---|---|---|", *lines])
    return "\n\n".join(["## Three failures, one diagnosis", table, TELL_APART, *figures])


def _artefact(results: Path) -> tuple[str, ...] | None:
    path = results / "softlabel_rate" / "selected.csv"
    if not path.exists():
        return None
    selected = pl.read_csv(path).filter(method="vpudra_softlabel", selection="val_f1_rescue")
    low = selected.filter(pl.col("f1") < 0.1)
    seen = f"F1 {low['f1'].median():.3f}, ROC-AUC {low['test_oracle_auc'].median():.3f} in {low.height} of "
    later = f"F1 {(low['f1'] + low['regret']).median():.3f} at their best epoch"
    return "seed 000, soft label, legacy rule", f"{seen}{selected.height} runs", later, _verdicts(selected["verdict"])


def _inverted(results: Path) -> tuple[str, ...] | None:
    path = results / "cf_inverted" / "runs.parquet"
    if not path.exists():
        return None
    runs = pl.read_parquet(path)
    healed = runs.filter(pl.col("healthy_at").is_not_null())
    seen = f"PR-AUC {runs['pr_auc'].median():.3f}, ROC-AUC {runs['roc_auc'].median():.3f} after "
    later = (
        f"{healed.height} of {runs.height} are healthy after {healed['healthy_at'].median():,.0f} updates (median)"
        if healed.height
        else "none is healthy"
    )
    return (
        "seed 003, ensemble without class weights, 10 % positives",
        f"{seen}{runs['iterations'].median():.0f} updates",
        later,
        _verdicts(runs["verdict"]),
    )


def _filter(results: Path) -> tuple[str, ...] | None:
    path = results / "high_filter" / "runs.parquet"
    if not path.exists():
        return None
    runs = pl.read_parquet(path)
    high = runs.filter(method="high", cell=FILTER_CELL)
    plain_accuracy = runs.filter(method="none")["accuracy"].median()
    seen = f"accuracy {high['accuracy'].median():.3f} (without a filter {plain_accuracy:.3f}), ROC-AUC "
    return (
        "seed 001, high filter, teacher with mixup",
        f"{seen}{high['roc_auc'].median():.3f}",
        f"nothing better: this is their last epoch; the filter keeps {high['kept'].median():.2f} of the pairs",
        _verdicts(high["verdict"]),
    )


def _verdicts(column: pl.Series) -> str:
    counts = column.value_counts(sort=True).iter_rows()
    return ", ".join(f"{verdict_name(name)} {count}" for name, count in counts) + f" of {column.len()}"
