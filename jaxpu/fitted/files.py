"""The folder that ``jaxpu fit`` writes: scores, model, summary and page, all made before the first is written."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import jaxpu
from jaxpu import prior, report
from jaxpu.config import ConfigError
from jaxpu.data import files
from jaxpu.fitted.fit import AutoFit, Fit
from jaxpu.fitted.store import save
from jaxpu.runs.files import ResultsError, locked, write_frame, write_text
from jaxpu.tables import signs

FORMAT = 1


def read_rows(path: Path) -> dict[str, pl.Series]:
    """The columns of a table that is to be scored."""
    if files.ending(path) in files.ARRAYS:
        raise ConfigError(f"{path} holds arrays and no columns with names; give a CSV or a Parquet file")
    return files.read_table(path, [])


def checked(folder: Path) -> Path:
    """A folder that may be written to: a new or empty one, or one that a fit has written.

    Raises:
        ResultsError: it is a file, or holds something else.
    """
    if folder.exists() and not folder.is_dir():
        raise ResultsError(f"{folder} is a file; give another folder as --out")
    others = sorted(p.name for p in folder.iterdir() if p.name != ".lock") if folder.is_dir() else []
    if others and "summary.json" not in others:
        raise ResultsError(f"{folder} holds {others[0]}, which jaxpu fit has not written; give another folder as --out")
    return folder


def write(folder: Path, fitted: Fit, command: str) -> dict[str, Any]:
    """Write ``scores.csv``, the model, ``summary.json`` and ``report.html``.

    Returns:
        The summary, as it stands in ``summary.json``.

    Raises:
        ResultsError: the folder cannot be written.
    """
    summary, frames = summary_of(fitted, command)
    page = report.own_page(summary, frames)
    text = json.dumps(_plain(summary), indent=1, ensure_ascii=False, allow_nan=False)
    with locked(folder):
        save(fitted.scorer, folder)
        write_frame(folder / "scores.csv", frames["scores"])
        write_text(folder / "report.html", page)
        write_text(folder / "summary.json", text + "\n")
    return summary


def summary_of(fitted: Fit, command: str = "") -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    """What is known after a fit, as plain values, and the frames that the page draws."""
    share, labeled = fitted.share, fitted.labeled
    ranked = fitted.ranked()
    top = int((fitted.decision[~labeled] == 1).sum())
    frames = {"scores": ranked, "cuts": cuts(fitted), "seeds": _seeds(fitted)}
    auto = fitted if isinstance(fitted, AutoFit) else None
    summary: dict[str, Any] = {
        "format": FORMAT,
        "version": jaxpu.__version__,
        "command": command,
        "data": _data(fitted),
        "method": {"name": fitted.scorer.method, "detail": fitted.scorer.detail, "seeds": len(fitted.scores)},
        "prior": {**share._asdict(), "few": share.few, "statement": share.statement()},
        "threshold": {
            "score": fitted.threshold,
            "rule": _rule(fitted),
            "asked": fitted.cut.asked,
            "unlabeled_selected": top,
        },
        "stability": signs.stability(fitted.scores, labeled, top)._asdict(),
        "verdicts": fitted.verdicts.to_dicts(),
        "summary": fitted.summary().to_dicts(),
        "cross_fitted": auto is not None,
    }
    summary["answer"] = report.own_answer(summary)
    if auto is None:
        return summary, frames
    more, drawn = _of_auto(auto, ranked)
    return summary | more, frames | drawn


def _of_auto(auto: AutoFit, ranked: pl.DataFrame) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    """What is known of cross-fitted candidates alone."""
    assert auto.table is not None
    found = signs.scar(auto.table, auto.share, auto.probability)
    odd = signs.suspicious(auto.score, auto.probability, auto.labeled)
    frames = {
        "drivers": signs.drivers(auto.table, auto.auto),
        "suspicious": ranked.filter(pl.col("row").is_in((odd + 1).tolist())).reverse(),
        "calibration": calibration(auto),
    }
    summary = {
        "candidates": [
            {"name": name, "auc": area, "scores": name == auto.auto.chosen} for name, area in auto.auto.auc.items()
        ],
        "scar": {**found._asdict(), "found": found.found},
        "suspicious": (odd + 1).tolist(),
        "drivers": frames["drivers"].to_dicts(),
        "calibration": frames["calibration"].to_dicts(),
    }
    return summary, frames


def _data(fitted: Fit) -> dict[str, Any]:
    table = fitted.table
    found: dict[str, Any] = {"rows": len(fitted.labeled), "labeled": int(fitted.labeled.sum())}
    found |= {"unlabeled": int((~fitted.labeled).sum()), "name": "own", "notes": [], "columns": []}
    if table is not None:
        columns = [
            {**{k: v for k, v in vars(c).items() if k != "categories"}, "used": c in table.schema.features}
            for c in table.schema.columns
        ]
        found |= {"name": table.name, "notes": list(table.notes), "columns": columns}
        found |= {"identifiers": list(table.schema.identifiers), "label": table.schema.label}
    return found


def _rule(fitted: Fit) -> str:
    if fitted.cut.rule != "default":
        return fitted.cut.rule
    if not isinstance(fitted, AutoFit):
        return "probability"
    return "quantile" if fitted.share.given else "pu_f1"


def _seeds(fitted: Fit) -> pl.DataFrame:
    """Ranks of the unlabeled rows in each of two seeds; empty with one."""
    scores = fitted.scores[:2, ~fitted.labeled]
    if len(scores) < 2:
        return pl.DataFrame()
    ranks = [np.argsort(np.argsort(-z, kind="stable")) + 1 for z in scores]
    return pl.DataFrame({"first": ranks[0], "second": ranks[1]})


def cuts(fitted: Fit) -> pl.DataFrame:
    """What each choice of a threshold is estimated to do among the unlabeled rows, and to cost.

    Returns:
        ``rule`` (default, budget, precision, cost), ``asked``, whether it is ``chosen``, ``threshold``, ``selected``
        rows, ``precision``, ``recall``, ``f1`` of :func:`jaxpu.prior.performance`; ``false_alarms``, selected rows that
        are negative, and ``missed``, positive rows that are not selected.
    """
    z, labeled, value = fitted.score, fitted.labeled, fitted.share.value
    n_u = int((~labeled).sum())
    budgets = {k for k in (10, 50, 100, 500, 1000, 5000) if k < n_u} or {max(1, n_u // 10)}
    wanted = [fitted.cut, prior.Cut()]
    wanted += [prior.Cut("budget", k) for k in sorted(budgets)]
    wanted += [prior.Cut("precision", share) for share in (0.5, 0.7, 0.8, 0.9, 0.95)]
    wanted += [prior.Cut("cost", ratio) for ratio in (1, 3, 10)]
    rows = []
    for cut in {(one.rule, 0.0 if one.rule == "default" else float(one.asked)): one for one in wanted}.values():
        done = prior.performance(z, labeled, value, fitted.threshold_of(cut))
        right = done.selected * done.precision if done.selected else 0.0
        rows.append(
            {"rule": cut.rule, "asked": float(cut.asked), "chosen": not rows, **done._asdict(),
             "false_alarms": done.selected - right, "missed": max(0.0, value * n_u - right)}
        )  # fmt: skip
    return pl.DataFrame(rows)


BINS = 8


def calibration(fitted: AutoFit) -> pl.DataFrame:
    """Whether probabilities keep what they say of P and U: bins of equal size of the unlabeled rows.

    Of the unlabeled rows of a bin, q_U of all, the share π q_P / q_U is positive under SCAR, q_P being the share of P
    with such probabilities.

    Returns:
        ``predicted``: mean probability. ``expected``: π q_P / q_U, at most 1. ``unlabeled``, ``labeled``: rows.
    """
    p, labeled = fitted.probability, fitted.labeled
    edges = np.unique(np.quantile(p[~labeled], np.linspace(0, 1, BINS + 1)))
    edges[0], edges[-1] = -np.inf, np.inf
    place = np.searchsorted(edges, p, side="left") - 1 if len(edges) > 2 else np.zeros(len(p), int)
    rows = []
    for k in range(max(len(edges) - 1, 1)):
        u, of_p = (place == k) & ~labeled, (place == k) & labeled
        if u.sum():
            ratio = (of_p.sum() / labeled.sum()) / (u.sum() / (~labeled).sum())
            rows.append(
                (float(p[u].mean()), float(min(1.0, fitted.share.value * ratio)), int(u.sum()), int(of_p.sum()))
            )
    return pl.DataFrame(rows, schema=["predicted", "expected", "unlabeled", "labeled"], orient="row")


def _plain(value: Any) -> Any:
    """Values as JSON has them: no NaN, no arrays."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
