"""Tables, words and the page of an experiment: numbers are those of the frames, names are never taken for markup."""

import base64
import io
import json
import re
import sys

import polars as pl
import pytest
from fake_sweep import METHODS, RULES, fake_runs, fake_selected, fake_summary, fake_sweep, fake_verdicts
from pages import Page
from rich.console import Console

from jaxpu import analysis, collapse, methods, plots, report, selection
from jaxpu.plots import rules
from jaxpu.report import answers, claims, experiment, pictures, tables, terminal
from jaxpu.report.text import code, plain
from jaxpu.report.words import DECISIONS, VERDICTS

CONFIG = {
    "name": "quick",
    "description": "Does the soft label collapse?",
    "data": {"name": "spambase"},
    "selection": {"rules": list(RULES), "default": "pu_auc"},
    "methods": list(METHODS),
    "seeds": 8,
}
PROVENANCE = {
    "commit": "3f0c2ad",
    "dirty": False,
    "versions": {"jax": "0.10.2"},
    "run_seconds": 41.2,
    "command": "jaxpu run quick --seeds 8",
    "started": "2026-02-17T10:00:00Z",
}
NAMES = ("selection_story", "final_f1", "failure_rates", "trajectories_f1", "trajectories_auc", "trajectories_positive")
SHOWN = ["pu_auc", "val_f1_rescue", "val_f1"]
FEW = [{"kind": "failure_rates"}]


def frames(runs, selected, summary, verdicts, config=CONFIG, **others):
    made = {"runs": runs, "selected": selected, "summary": summary, "verdicts": verdicts, **others}
    return report.frames_of(made, config)


def page_of(shown, provenance=PROVENANCE, config=CONFIG):
    drawing = experiment.drawn(shown, config)
    return report.page(experiment.text(shown, provenance, config, drawing), drawing.pictures)


@pytest.fixture(scope="module")
def sweep():
    return fake_sweep()


@pytest.fixture(scope="module")
def written(sweep, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    report.write(folder, frames(*sweep), PROVENANCE, CONFIG)
    return folder


# Tables


def test_markdown_holds_the_numbers_of_the_frames(sweep):
    _, _, summary, verdicts = sweep
    text = tables.results(tables.sections(summary, verdicts, SHOWN, "pu", "pu_auc"))
    parts = text.split("### ")[1:]
    assert [part.split("\n")[0].rpartition(",")[0] for part in parts] == [
        "Selected by PU AUC (label-free, the default here)",
        "Selected by validation F1 with legacy rescue (needs true labels)",
        "Selected by validation F1 (needs true labels)",
    ]
    for part, rule in zip(parts, SHOWN, strict=True):
        assert "n = 8 seeds" in part
        rows = [line.split(" | ") for line in part.splitlines() if line.startswith("| `")]
        assert [row[0] for row in rows] == [f"| `{method}`" for method in METHODS]
        for row, method in zip(rows, METHODS, strict=True):
            mine = summary.filter(method=method, selection=rule)
            f1, low, auc = (mine.filter(metric=name).row(0, named=True) for name in ("f1", "f1_below", "auc"))
            assert row[1] == f"{f1['median']:.3f}"
            assert row[2] == f"{f1['mean']:.3f} [{f1['ci_low']:.3f}, {f1['ci_high']:.3f}]"
            ends = f"[{100 * low['ci_low']:.0f}, {100 * low['ci_high']:.0f}]"
            assert row[3] == f"{low['count']}/8 = {100 * low['mean']:.0f} % {ends}"
            assert row[4] == f"{auc['mean']:.3f}"
    assert parts[1].count("**selection artefact** 2/8 |") == 1


def test_metrics_of_the_tables_are_metrics_of_the_summary():
    known = {*analysis.summary.NAMES.values(), "f1_below"}
    assert {column.metric for kind in ("pu", "multiclass") for column in tables.COLUMNS[kind]} <= known
    assert tables.COLUMNS.keys() == tables.NOTES.keys() == plots.kinds.DEFAULTS.keys()


def test_every_metric_of_the_summary_is_on_the_page(sweep):
    summary = pl.concat([sweep[2], sweep[2].filter(metric="auc").with_columns(metric=pl.lit("my_metric"), mean=0.125)])
    shown = frames(sweep[0].clear(), sweep[1], summary, sweep[3])
    text = Page(page_of(shown, config=CONFIG | {"figures": FEW})).text
    assert "my metric" in text
    assert "0.125" in text


def test_one_seed_has_no_interval_and_says_so():
    selected = fake_selected(fake_runs(seeds=1, epochs=4))
    summary, verdicts = fake_summary(selected), fake_verdicts(selected)
    line = tables.lines(summary, verdicts, "val_f1")[0]
    assert re.fullmatch(r"0\.\d{3} \(n = 1\)", line.cells[1])
    assert line.cells[2] == "0/1 = 0 % [0, 79]"
    assert "n = 1 seed\n" in tables.results(tables.sections(summary, verdicts, ["val_f1"]))


def test_missing_metrics_and_verdicts_print_as_dashes(sweep):
    summary = sweep[2].filter(metric="f1").with_columns(pl.lit(None, pl.Float64).alias("median"))
    line = tables.lines(summary, pl.DataFrame(), "last")[0]
    assert (line.cells[0], *line.cells[2:], line.verdict) == ("–", "–", "–", "–")


@pytest.mark.parametrize(
    ("kind", "metrics", "expected"),
    [
        ("ensemble", ("average_precision", "auc", "inverted", "brier", "w_mean", "b"), "0.500 [0.400, 0.600]"),
        ("guided", ("accuracy", "log_loss", "auc", "kept"), "0.500 [0.400, 0.600]"),
        ("multiclass", ("accuracy", "f1", "f1_below", "auc"), "0.500"),
    ],
)
def test_other_kinds_have_columns_of_their_own(kind, metrics, expected):
    row = {"dataset": "d", "method": "m", "selection": "end", "n": 4, "median": 0.25}
    row |= {"mean": 0.5, "ci_low": 0.4, "ci_high": 0.6}
    summary = pl.DataFrame([row | {"metric": metric} for metric in metrics])
    verdicts = pl.DataFrame(
        [{**dict(list(row.items())[:4]), "verdict": "inverted", "rate": 0.5, "count": 2, "failing": 2}]
    )
    [line] = tables.lines(summary, verdicts, "end", kind)
    assert line.cells[0] == expected
    assert line.verdict == "inverted 2/4"
    assert "2/4 = 50 % [40, 60]" in line.cells or kind == "guided"


def test_where_no_true_labels_are_known_tables_hold_what_needs_none(sweep):
    selected = sweep[1].drop("f1", "verdict", "explanation")
    names = ("proxy_pu_accuracy", "proxy_pu_auc", "labeled_positive", "unlabeled_positive", "given_prior")
    summary = pl.concat([sweep[2].filter(metric="auc").with_columns(metric=pl.lit(name)) for name in names])
    shown = frames(sweep[0].clear(), selected, summary, pl.DataFrame())
    text = Page(page_of(shown)).text
    assert "No true labels are known, so there is no F1." in text
    assert "PU accuracy [95 % interval]" in text
    assert "median F1" not in text


def test_terminal_table_fits_100_columns(sweep):
    console = Console(width=100, record=True, file=io.StringIO())
    claims = pl.DataFrame({"claim": ["[red] is a word"], "verdict": "refuted"})
    console.print(terminal.results(frames(*sweep, claims=claims), CONFIG))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 100
    row = next(line for line in lines if "2/8" in line)
    assert row.split()[0] == "vpudra_softlabel"
    assert row.rstrip().endswith("selection artefact 2/8")
    first = next(line for line in lines if line.startswith("vpu "))
    assert f"{sweep[2].filter(method='vpu', selection='pu_auc', metric='f1')['median'][0]:.3f}" in first
    assert "refuted: [red] is a word" in lines


def test_markdown_and_terminal_take_names_as_text():
    bad = "a|b`c*[red]"
    selected = fake_selected(fake_runs(methods=(bad,), seeds=2, epochs=3))
    shown = frames(pl.DataFrame(), selected, fake_summary(selected), fake_verdicts(selected))
    text = tables.results(tables.sections(shown.summary, shown.verdicts, shown.shown))
    rows = [line for line in text.splitlines() if "a\\|b" in line]
    assert rows
    assert all(row.startswith("| `a\\|b'c*[red]` |") for row in rows)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(terminal.results(shown, CONFIG))
    assert bad in console.export_text()


CLAIM = {
    "claim": "a | b <i>", "source": "me", "bound": ">= 0.1", "n": 2, "estimate": 0.5, "ci_low": 0.4, "ci_high": 0.6,
    "p": 0.001, "p_holm": 0.0005, "verdict": "supported",
}  # fmt: skip


@pytest.mark.parametrize("older", [{}, {"question": "mean f1: all"}])
def test_claims_stand_in_tables_of_either_format(older):
    text = claims.claims_table(pl.DataFrame([CLAIM | older]))
    assert "| a \\| b \\<i> (me)" in text
    assert "| 0.500 [0.400, 0.600], n = 2 | ≥ 0.1 | < 0.001 | **supported** |" in text
    assert ("*mean f1\\: all*" in text or "*mean f1: all*" in text) == bool(older)


RULE = {"selection": "val_f1 on 5 %", "rule": "val_f1", "validation": 0.05, "n_seeds": 2, "n_runs": 8, "f1": 0.7}
RULE |= {"regret": 0.125, "regret_low": 0.1, "regret_high": 0.15, "below": 2, "artefacts": 1}


def test_rules_are_compared_from_three_on():
    text = tables.rules_table(pl.DataFrame([RULE] * 3))
    assert text.count("validation F1 on 5 % (needs true labels)") == 3
    assert "| 0.125 [0.100, 0.150] | 2 | 1 | 8 |" in text
    assert tables.rules_table(pl.DataFrame([RULE] * 2)) == ""


def test_claims_and_rules_stand_on_the_page_and_not_without_them(sweep):
    claims, rules_ = pl.DataFrame([CLAIM]), pl.DataFrame([RULE] * 3)
    config = CONFIG | {"figures": FEW}
    page = page_of(frames(*sweep, claims=claims, rules=rules_), config=config)
    assert "a | b &lt;i&gt; (me)" in page
    assert 'class="verdict healthy">supported' in page
    assert "Of 1 claim 1 is supported." in page
    assert "Selection rules compared" in page
    bare = page_of(frames(*sweep), config=config)
    assert "What was claimed" not in bare
    assert "Selection rules compared" not in bare


# Words


def test_every_word_of_the_program_is_explained():
    assert {*VERDICTS} == {verdict.value for verdict in collapse.Verdict}
    assert {*rules.RULE_NAMES} == {*selection.RULES, "end"}
    assert {*DECISIONS} == {*methods.DECISIONS}


def test_headline_tells_artefacts_from_collapse_from_health(sweep):
    selected = sweep[1]
    assert answers.headline(selected, SHOWN) == (
        "Training did not collapse: 2 of 32 runs score F1 below 0.1 under validation F1 with legacy rescue "
        "and none under PU AUC or validation F1; a later epoch of each of these runs is healthy, so the rule "
        "picked a bad epoch."
    )
    assert answers.headline(selected, ["val_f1"]).startswith("No collapse: no run of 32 scores")
    other = selected.with_columns(pl.col("verdict").replace("selection_artefact", "all_negative"))
    assert answers.headline(other, SHOWN).endswith("; the verdicts below say why.")
    constant = selected.filter(selection="val_f1").with_columns(verdict=pl.lit("all_positive"), f1=0.56)
    assert answers.headline(constant, ["val_f1"]).startswith("No run of 32")
    assert "all positive (32)" in answers.headline(constant, ["val_f1"])
    lost = selected.with_columns(f1=float("nan"))
    assert answers.headline(lost, ["val_f1"]).startswith("32 of 32 runs score F1 below 0.1")
    assert "undefined F1 (NaN), 32 times" in answers.headline(lost, ["val_f1"])
    assert "no answer" in answers.headline(pl.DataFrame(), SHOWN)


def test_answers_put_failures_first_with_n_and_interval(sweep):
    first, second = answers.answers(sweep[3].drop("sentence"), SHOWN).splitlines()
    assert first.startswith(
        "- vpudra_softlabel: **selection artefact**; 2 of 8 runs fail under validation F1 with legacy"
    )
    assert "(95 % interval 7 to 59 %)" in first
    assert second.startswith("- vpu, pudra and vpudra_fixed: **healthy**")
    assert "0 of 8 runs each fail (95 % interval 0 to 32 %)" in second
    assert answers.answers(pl.DataFrame(), SHOWN) == ""


# The page


def test_page_is_whole_self_contained_and_accessible(written):
    text = (written / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert len(text) < 3_000_000
    assert len(page.images) == len(page.alts) == len(page.captions) == 6
    assert all(source.startswith("data:image/") for source in page.images)
    assert page.links
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert not {"script", "link", "iframe", "object"} & {*page.tags}
    assert not re.search(r"@import|url\(", text)
    assert len({*page.ids}) == len(page.ids)
    assert all(len(alt) > 40 for alt in page.alts)
    assert [caption.partition(".")[0] for caption in page.captions] == [f"Figure {k}" for k in range(1, 7)]
    assert all(re.search(r"n = \d", caption) for caption in page.captions)
    assert all("interval" in caption for caption in page.captions)
    for source in page.images:
        image = base64.b64decode(source.partition("base64,")[2])
        assert image.startswith((b"<?xml", b"\x89PNG"))
        assert b'href="http' not in image


def test_page_opens_with_its_answer_and_holds_tables_verdicts_command_and_provenance(written, sweep):
    _, selected, summary, verdicts = sweep
    page = Page((written / "report.html").read_text(encoding="utf-8"))
    answer = answers.headline(selected, SHOWN)
    assert 0 < page.text.index(answer) < page.text.index("Contents")
    for rule in SHOWN:
        for line in tables.lines(summary, verdicts, rule):
            assert "".join([line.label, *line.cells, line.verdict]) in re.sub(r"\n", "", page.text)
    for meaning in VERDICTS.values():
        assert meaning in page.text
    for words in (PROVENANCE["command"], "3f0c2ad", "jax 0.10.2", "41.2", CONFIG["description"], "default: pu_auc"):
        assert words in page.text
    assert PROVENANCE["started"] in page.text
    assert "The selected epoch fails, a later one of the same run does not." in page.text


@pytest.mark.parametrize("section", [*experiment.HEADINGS, "a-section-of-nobody"])
def test_a_picture_of_whatever_section_is_on_the_page(sweep, section):
    drawing = experiment.drawn(frames(*sweep, config=CONFIG | {"figures": FEW}), CONFIG | {"figures": FEW})
    added = plots.Picture("added", section, b"<svg>added</svg>", "Caption of the added one.", "It shows.")
    drawing = drawing._replace(pictures=[*drawing.pictures, added])
    page = Page(report.page(experiment.text(frames(*sweep), PROVENANCE, CONFIG, drawing), drawing.pictures))
    assert len(page.captions) == len(drawing.pictures) == 2
    assert any("Caption of the added one." in caption for caption in page.captions)


def test_page_is_the_same_bytes_twice(written, sweep):
    assert page_of(frames(*sweep)) == (written / "report.html").read_text(encoding="utf-8")


def test_names_cannot_become_markup_formulas_or_links():
    bad = "<script>alert('x')</script>$\\frac{ [a](javascript:x) ![i](/etc/passwd) **b** `c` ::: {#id}"
    runs = fake_runs(methods=(bad,), seeds=2, epochs=3, artefacts={(bad, 1)})
    selected = fake_selected(runs).with_columns(explanation=pl.lit("<i>&amp; ![x](figure:final_f1)"))
    provenance = {"command": ["jaxpu", "<run>"], "<k>": {"<v>": ["<w>"]}}
    config = {"name": bad, "description": f"{bad}\n\n# {bad}\n\n- {bad}", "figures": [{"kind": "final_f1"}]}
    shown = frames(runs, selected, fake_summary(selected), fake_verdicts(selected), config)
    page = Page(page_of(shown, provenance, config))
    assert not {"script", "i", "run", "k", "v", "w", "math"} & {*page.tags}
    assert page.text.count(bad) > 4
    assert any(bad in alt for alt in page.alts) or len(page.images) == 1
    assert all(link.startswith("#") for link in page.links)
    assert "<i>&amp; ![x](figure:final_f1)" in page.text


@pytest.mark.parametrize("text", ["1. a", "- a", "+ a", "# a", "> a", "===", "---", "a\\", "``", "&lt;", "|", "[x]: y"])
def test_text_from_outside_stays_text(text):
    page = Page(report.page(f"# t\n\n{plain(text)}\n"))
    assert text in page.text
    assert not {"ol", "li", "blockquote", "hr", "h2", "code", "a"} & {*page.tags}
    assert code(text).count("`") % 2 == 0


@pytest.mark.parametrize("config", [{}, CONFIG])
def test_empty_frames_give_a_page_of_sentences(config):
    empty = pl.DataFrame()
    page = Page(page_of(frames(empty, empty, empty, empty, config), {}, config))
    for words in ("no answer", "there is no table", "was not recorded", "No provenance was recorded"):
        assert words in page.text
    assert not page.images
    asked = config | {"figures": [{"kind": "final_f1"}]}
    said = Page(page_of(frames(empty, empty, empty, empty, asked), {}, asked)).text
    assert "Every seed" in said
    assert "Not recorded, so not shown" in said


def test_the_story_blames_the_rescue_only_where_it_stepped_in(sweep):
    runs, selected, _, _ = sweep
    shown = selected.filter(pl.col("method") == "vpudra_softlabel")
    told = plots.story.story_caption(runs, shown)
    assert "the rescue then moved the threshold" in told
    assert "the worst of 2 selection artefacts among 8 runs" in told
    other = runs.with_columns(val_predicted_positive=pl.lit(0.3))
    assert "rescue then moved" not in plots.story.story_caption(other, shown)


def test_missing_optional_columns_and_nan_do_not_stop_the_page(sweep):
    runs, selected, summary, verdicts = sweep
    runs = runs.drop("val_predicted_positive", "test_oracle_auc", "test_oracle_f1_decision")
    runs = runs.with_columns(test_predicted_positive=float("nan")).filter(pl.col("method") != "pudra")
    selected = selected.drop("explanation", "decision", "test_oracle_auc")
    shown = frames(runs, selected, summary.filter(metric="f1"), verdicts.drop("sentence"))
    drawing = experiment.drawn(shown, CONFIG)
    assert [p.name for p in drawing.pictures] == ["selection_story", "final_f1", "failure_rates", "trajectories_f1"]
    Page(report.page(experiment.text(shown, {}, {}, drawing), drawing.pictures))


def test_long_tables_are_folded_and_capped_on_the_page():
    selected = fake_selected(fake_runs(seeds=3, epochs=2, methods=("vpudra_softlabel",), rates=range(202)))
    config = CONFIG | {"figures": [{"kind": "failure_rates"}]}
    shown = frames(pl.DataFrame(), selected, fake_summary(selected), fake_verdicts(selected))
    page = page_of(shown, config=config)
    assert "197 more have failing runs" in page
    assert page.count("<summary>Selected by") == 3
    assert page.count("2 more rows are in table.md.") == 3
    whole = tables.results(tables.sections(shown.summary, shown.verdicts, shown.shown))
    assert whole.count("`vpudra_softlabel · lr=201`") == 3


def test_ways_recorded_as_lists_become_rows_and_are_drawn():
    run = {"dataset": "d", "ratings.rate": 0.1, "path_b": [0.0, 1.0], "path_update": [1, 10], "path_w_mean": [0.1, 2.0]}
    runs = pl.DataFrame([run | {"method": "als", "seed": seed} for seed in (0, 1)])
    runs = runs.select(
        "dataset", "method", "ratings.rate", "seed", pl.exclude("dataset", "method", "ratings.rate", "seed")
    )
    baseline = runs.with_columns(method=pl.lit("mean"), path_b=[], path_update=[], path_w_mean=[])
    shown = report.frames_of({"runs": pl.concat([runs, baseline], how="vertical_relaxed")}, {"kind": "ensemble"})
    assert shown.paths.select("method", "seed", "update", "w_mean").rows() == [
        ("als", 0, 1, 0.1), ("als", 0, 10, 2.0), ("als", 1, 1, 0.1), ("als", 1, 10, 2.0),
    ]  # fmt: skip
    [picture] = experiment.drawn(shown, {"kind": "ensemble"}).pictures
    assert picture.alternative == "The least w mean is that of als after 1 updates: 0.10"


# Files


def test_write_makes_all_files_and_no_others(written, sweep):
    names = {path.relative_to(written).as_posix() for path in written.rglob("*") if path.is_file()}
    index = json.loads((written / "figures/figures.json").read_text(encoding="utf-8"))
    assert [entry["file"].partition(".")[0] for entry in index] == list(NAMES)
    assert names == {"table.md", "report.html", "figures/figures.json", *(f"figures/{e['file']}" for e in index)}
    table = tables.results(tables.sections(*sweep[2:], SHOWN, "pu", "pu_auc"))
    assert table in (written / "table.md").read_text(encoding="utf-8")
    for picture in pictures.read_pictures(written / "figures"):
        assert picture.alternative
        assert picture.image.startswith(b"\x89PNG" if picture.suffix == "png" else b"<?xml")


def test_a_figure_too_large_for_svg_is_written_as_png(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["jaxpu.plots.figure"], "SVG_LIMIT", 10)
    report.write(tmp_path, frames(*sweep), {}, CONFIG | {"figures": FEW})
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {"failure_rates.png", "figures.json"}
    assert (tmp_path / "figures/failure_rates.png").read_bytes().startswith(b"\x89PNG")


def test_write_removes_a_figure_that_no_longer_applies_and_nothing_else(sweep, tmp_path):
    report.write(tmp_path, frames(*sweep), {}, CONFIG | {"figures": [{"kind": "final_f1"}]})
    (tmp_path / "figures" / "notes.svg").write_text("mine")
    page = report.write(tmp_path, frames(*sweep), {}, CONFIG | {"figures": FEW})
    assert page == tmp_path / "report.html"
    assert {path.name for path in page.with_name("figures").iterdir()} == {
        "failure_rates.svg",
        "figures.json",
        "notes.svg",
    }


def test_only_images_of_the_folder_are_read(tmp_path):
    (tmp_path / "secret.png").write_bytes(b"\x89PNG")
    folder = tmp_path / "figures"
    folder.mkdir()
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "text.png").write_text("no image")
    (folder / "fine.svg").write_text("<svg/>")
    entry = {"section": "s", "caption": "c", "alternative": "a"}
    names = ("../secret.png", "link.png", "text.png", "missing.png", "fine.svg")
    (folder / "figures.json").write_text(json.dumps([entry | {"file": name} for name in names]))
    assert [picture.name for picture in pictures.read_pictures(folder)] == ["fine"]
