"""The page of a fit to somebody's own rows: the answer, how sure it is, and what to look at before it is believed."""

import math
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

import polars as pl

from jaxpu.plots import own as pictures
from jaxpu.plots.figure import Figure, Picture, draw
from jaxpu.report.page import fill, page
from jaxpu.report.tables import bold
from jaxpu.report.text import Markdown, block, code, fold, number, plain, table
from jaxpu.report.words import verdict_name

MOST_SUSPICIOUS, MOST_COLUMNS = 20, 60


def own_answer(summary: Mapping[str, Any]) -> str:
    """The answer in a sentence or two.

    >>> prior = {"value": 0.2, "low": 0.1, "high": 0.3, "at_most": 0.4, "few": False, "given": False}
    >>> data = {"unlabeled": 1000, "labeled": 50}
    >>> own_answer({"prior": prior, "data": data, "threshold": {"unlabeled_selected": 180}})[:58]
    'Between 100 and 300 of the 1,000 unlabeled rows are positi'
    """
    prior, n = summary["prior"], summary["data"]["unlabeled"]
    rows = summary["threshold"]["unlabeled_selected"]

    def of(share: float) -> str:
        return f"{round(share * n):,}"

    if prior["given"]:
        first = f"With the share that was given, {of(prior['value'])} of the {n:,} unlabeled rows are positive"
    elif prior["few"]:
        labeled = summary["data"]["labeled"]
        first = (
            f"At most {of(prior['at_most'])} of the {n:,} unlabeled rows are positive; {labeled} labeled rows are too "
            "few to say more"
        )
    else:
        first = (
            f"Between {of(prior['low'])} and {of(prior['high'])} of the {n:,} unlabeled rows are positive, by estimate "
            f"{of(prior['value'])}"
        )
    if not rows:
        return (
            f"{first}; none of them is called positive at this threshold, and all stand in scores.csv, the best first."
        )
    return f"{first}; the {rows:,} of them that are called positive stand in scores.csv, the best first."


def own_page(summary: Mapping[str, Any], frames: Mapping[str, pl.DataFrame]) -> str:
    """The page as HTML.

    Args:
        summary: as ``summary.json`` has it. frames: ``scores``, ``cuts``, ``seeds``, and of "auto" ``drivers``,
            ``suspicious`` and ``calibration``.
    """
    source = resources.files("jaxpu.report").joinpath("own.md").read_text(encoding="utf-8")
    values = {
        "name": summary["data"]["name"],
        "answer": Markdown(f"**{plain(summary['answer'])}**"),
        "facts": _facts(summary),
        "statement": plain(summary["prior"]["statement"]),
        "prior": _prior(summary["prior"], summary["data"]["unlabeled"]),
        "best": _best(frames["scores"]),
        "cuts": _cuts(frames["cuts"]),
        "rule": plain(RULES[summary["threshold"]["rule"]].format(asked=_asked(summary["threshold"]))),
        "cross_fitted": summary["cross_fitted"],
        "stability": plain(_stability(summary)),
        "verdict": _verdicts(summary["verdicts"]),
        "scar": plain(_scar(summary)),
        "candidates": _candidates(summary.get("candidates", [])),
        "suspicious": _suspicious(frames.get("suspicious", pl.DataFrame())),
        "notes": Markdown("\n".join(f"- {plain(note)}" for note in summary["data"]["notes"]) or "Nothing to tell."),
        "columns": _columns(summary["data"]["columns"]),
        "command": block(summary["command"] or "jaxpu.fit(...)"),
        "detail": plain(summary["method"]["detail"]),
        "version": plain(summary["version"]),
    }
    return page(fill(source, values, "own.md"), _pictures(summary, frames))


RULES = {
    "pu_f1": "The default cuts where the estimate of F1 is highest, since the share of positives was estimated and may "
    "be wrong.",
    "quantile": "The default calls the given share of the unlabeled rows positive.",
    "probability": "The default calls a row positive where the networks' mean probability is at least one half.",
    "budget": "The cut is the one that was asked for: {asked}, and as few less as ties make it.",
    "precision": "The cut is the one that was asked for: {asked}. Where none reaches it, no row is called positive.",
    "cost": "The cut is the one that was asked for: {asked}.",
}
CHOICES = {
    "default": "default",
    "budget": "look at {:,.0f} rows",
    "precision": "a precision of at least {:g}",
    "cost": "a missed positive costs {:g} × a false alarm",
}


def _asked(threshold: Mapping[str, Any]) -> str:
    return CHOICES.get(threshold["rule"], "").format(threshold["asked"])


def _pictures(summary: Mapping[str, Any], frames: Mapping[str, pl.DataFrame]) -> list[Picture]:
    stability = summary["stability"]
    wanted: list[tuple[str, str, Callable[[], Any], str, bool]] = [
        (
            "scores", "scores",
            lambda: pictures.score_distributions(frames["scores"], summary["threshold"]["score"]),
            "Where labeled and unlabeled rows lie. Unlabeled rows where no labeled ones lie are negative.",
            True,
        ),
        (
            "calibration", "scores", lambda: pictures.calibration_curve(frames["calibration"]),
            "Eight bins of unlabeled rows of equal size. On the line the probabilities agree with how many labeled "
            "rows have such a probability; that the share of positives is right is taken for granted.",
            frames.get("calibration", pl.DataFrame()).height > 1,
        ),
        (
            "drivers", "drivers", lambda: pictures.column_drivers(frames["drivers"]),
            "How much worse labeled rows are told from unlabeled ones when a column is shuffled, on rows that the "
            "classifier has not seen. Of columns that say the same, each can look unimportant.",
            frames.get("drivers", pl.DataFrame()).height > 0,
        ),
        (
            "stability", "stability",
            lambda: pictures.ranks_of_two(frames["seeds"], stability["top"], stability["shared"]),
            "Every dot is an unlabeled row.",
            frames["seeds"].height > 1,
        ),
    ]  # fmt: skip
    return [draw(Figure(name, section, make, caption)) for name, section, make, caption, there in wanted if there]


def _facts(summary: Mapping[str, Any]) -> str:
    data, method = summary["data"], summary["method"]
    return (
        f"{data['labeled']:,} labeled and {data['unlabeled']:,} unlabeled rows · {method['name']}: {method['detail']}"
    )


def _percent(share: float | None) -> str:
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.1f} %"


def _prior(prior: Mapping[str, Any], n: int) -> Markdown:
    rows = [["given" if prior["given"] else "estimate", *_end(prior["value"], n)]]
    if not prior["given"]:
        rows += [
            ["lower end, if some kind of positive is never found among the negatives", *_end(prior["low"], n)],
            ["upper end", *_end(prior["high"], n)],
        ]
        rows = [] if prior["few"] else rows
        rows.append(["at most, assuming only a random sample of positives", *_end(prior["at_most"], n)])
    return table(["positives among the unlabeled rows", "share", "rows"], rows, "lrr")


def _end(share: float | None, n: int) -> list[str]:
    known = share is not None and math.isfinite(share)
    return [_percent(share), f"{round(share * n):,}" if known and share is not None else "–"]


def _best(scores: pl.DataFrame) -> Markdown:
    """The highest unlabeled rows."""
    return _scored(scores.filter(pl.col("label") == 0).head(10))


def _scored(rows: pl.DataFrame) -> Markdown:
    shown = rows.drop("label", "decision")
    cells = [[number(v) if isinstance(v, float) else str("–" if v is None else v) for v in row] for row in shown.rows()]
    return table([name.replace("_", " ") for name in shown.columns], cells, "r" * shown.width)


def _cuts(cuts: pl.DataFrame) -> Markdown:
    rows = []
    for row in cuts.iter_rows(named=True):
        words = CHOICES[row["rule"]].format(row["asked"])
        counts = [f"{row[name]:,.0f}" for name in ("selected", "false_alarms", "missed")]
        shares = [_percent(row["precision"]), _percent(row["recall"]), number(row["f1"], 2)]
        reached = math.isfinite(row["threshold"])
        told = [number(row["threshold"]), *counts, *shares] if reached else ["not reached", *(6 * ["–"])]
        rows.append([Markdown(f"**{words}**") if row["chosen"] else words, *told])
    head = ["choice", "score from", "rows to look at", "false alarms", "missed", "precision", "recall", "F1"]
    return table(head, rows, "lrrrrrrr")


def _stability(summary: Mapping[str, Any]) -> str:
    found, seeds = summary["stability"], summary["method"]["seeds"]
    if seeds < 2:
        return "One seed tells nothing of stability."
    return (
        f"Of the {found['top']:,} highest unlabeled rows two of {seeds} seeds share {100 * found['shared']:.0f} % on "
        f"average; {found['always']:,} are among them in all {seeds}."
    )


def _verdicts(rows: list[dict[str, Any]]) -> Markdown:
    row = rows[0]
    return Markdown(f"{bold(verdict_name(row['verdict']))} {plain(row.get('sentence') or '')}")


def _scar(summary: Mapping[str, Any]) -> str:
    found = summary.get("scar")
    if not found:
        return "Not looked for: the networks were trained on the rows."
    said = []
    if found["impossible"]:
        said.append(
            "The share that was given is larger than the data allow under this assumption: one of them is wrong."
        )
    if math.isfinite(found["auc"]):
        between = f"{found['auc']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"
        verdict = "a sign that some kinds of positives get labeled rather than others" if found["found"] else "no sign"
        said.append(
            f"Among rows that look surely positive, labeled ones can be told from the {found['rows']:,} others with "
            f"AUC {between}, where a random sample gives about 0.5: {verdict}."
        )
    else:
        said.append("Too few rows look surely positive to see whether labels can be foretold among them.")
    return " ".join(said)


def _candidates(candidates: list[dict[str, Any]]) -> Markdown:
    rows = [[c["name"], number(c["auc"]), "scores the rows" if c["scores"] else ""] for c in candidates]
    return table(["classifier", "AUC, labeled against unlabeled", ""], rows, "lrl") if rows else Markdown()


def _suspicious(rows: pl.DataFrame) -> Markdown:
    if rows.is_empty():
        return plain("No labeled row looks negative.")
    return _scored(rows.head(MOST_SUSPICIOUS))


def _columns(columns: list[dict[str, Any]]) -> Markdown:
    rows = [
        [code(c["name"]), c["kind"], "yes" if c["used"] else "no", c["gaps"], c["distinct"], c["note"]]
        for c in columns[:MOST_COLUMNS]
    ]
    more = f"\n\n{len(columns) - len(rows)} more stand in summary.json." if len(columns) > len(rows) else ""
    told = table(["column", "kind", "feature", "gaps", "values", "note"], rows, "lllrrl")
    return fold(f"All {len(columns)} columns", told + more) if rows else Markdown()
