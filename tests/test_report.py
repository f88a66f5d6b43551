"""Tables, words and the page: their numbers are those of the frames, and names are never taken for markup."""

import base64
import io
import re
import sys
from html.parser import HTMLParser

import polars as pl
import pytest
from fake_sweep import METHODS, RULES, fake_runs, fake_selected, fake_summary, fake_sweep, fake_verdicts
from rich.console import Console

from jaxpu import collapse, methods, report, selection, summary
from jaxpu.plots import frames
from jaxpu.report.answers import answers, headline
from jaxpu.report.pictures import Picture, pictures
from jaxpu.report.tables import METRICS, table_lines
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
    "command": "jaxpu run configs/quick.yaml --seeds 8",
    "started": "2026-02-17T10:00:00Z",
}
NAMES = (
    "selection_story",
    "final_f1",
    "failure_rates",
    "trajectories_f1",
    "trajectories_auc",
    "trajectories_positive",
)
BLANK = [Picture(name, None, b"", "", "not drawn here") for name in NAMES]
SHOWN = ["pu_auc", "val_f1_rescue", "val_f1"]


@pytest.fixture(scope="module")
def sweep():
    return fake_sweep()


@pytest.fixture(scope="module")
def written(sweep, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    report.write(folder, *sweep, PROVENANCE, CONFIG)
    return folder


# Tables


def test_markdown_holds_the_numbers_of_the_frames(sweep):
    _, _, table, verdicts = sweep
    text = report.table_markdown(table, verdicts, CONFIG)
    parts = text.split("## ")[1:]
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
            mine = table.filter(method=method, selection=rule)
            f1, low, auc = (mine.filter(metric=name).row(0, named=True) for name in ("f1", "f1_below_0.1", "auc"))
            assert row[1] == f"{f1['median']:.3f}"
            assert row[2] == f"{f1['mean']:.3f} [{f1['ci_low']:.3f}, {f1['ci_high']:.3f}]"
            ends = f"[{100 * low['ci_low']:.0f}, {100 * low['ci_high']:.0f}]"
            assert row[3] == f"{low['count']}/8 = {100 * low['mean']:.0f} % {ends}"
            assert row[4] == f"{auc['mean']:.3f}"
    assert parts[1].count("selection artefact 2/8 |") == 1


def test_metrics_of_the_table_are_metrics_of_the_summary():
    assert {*METRICS} <= {*summary.SUMMARISED.values(), f"f1_below_{summary.COLLAPSED_F1}"}


def test_one_seed_has_no_interval_and_says_so():
    selected = fake_selected(fake_runs(seeds=1, epochs=4))
    line = table_lines(fake_summary(selected), fake_verdicts(selected), "val_f1")[0]
    assert re.fullmatch(r"0\.\d{3} \(n = 1\)", line.mean)
    assert line.below == "0/1 = 0 % [0, 79]"
    assert "n = 1 seed\n" in report.table_markdown(fake_summary(selected), fake_verdicts(selected))


def test_missing_metrics_and_verdicts_print_as_dashes(sweep):
    table = sweep[2].filter(metric="f1").with_columns(pl.lit(None, pl.Float64).alias("median"))
    line = table_lines(table, pl.DataFrame(), "last")[0]
    assert (line.first, line.below, line.auc, line.verdict) == ("–", "–", "–", "–")
    assert not line.any_below


def test_terminal_table_fits_100_columns(sweep):
    grid = report.table_rich(sweep[2], sweep[3], CONFIG)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(grid)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 100
    row = next(line for line in lines if "2/8" in line)
    assert row.split()[0] == "vpudra_softlabel"
    assert row.rstrip().endswith("selection artefact 2/8")
    first = next(line for line in lines if line.startswith("vpu "))
    assert f"{sweep[2].filter(method='vpu', selection='pu_auc', metric='f1')['median'][0]:.3f}" in first


def test_markdown_and_rich_take_names_as_text():
    bad = "a|b`c*[red]"
    selected = fake_selected(fake_runs(methods=(bad,), seeds=2, epochs=3))
    table, verdicts = fake_summary(selected), fake_verdicts(selected)
    rows = [x for x in report.table_markdown(table, verdicts, {"name": "<b>|x"}).splitlines() if "a\\|b" in x]
    assert rows
    assert all(row.startswith("| `a\\|b'c*[red]` |") for row in rows)
    assert "# &lt;b>\\|x" in report.table_markdown(table, verdicts, {"name": "<b>|x"})
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(report.table_rich(table, verdicts))
    assert bad in console.export_text()


# Words


def test_every_word_of_the_program_is_explained():
    assert {*VERDICTS} == {verdict.value for verdict in collapse.Verdict}
    assert {*frames.RULE_NAMES} == {*selection.RULES}
    assert {*DECISIONS} == {*methods.DECISIONS}


def test_headline_tells_artefacts_from_collapse_from_health(sweep):
    selected = sweep[1]
    assert headline(selected, SHOWN) == (
        "Training did not collapse: 2 of 32 runs score F1 below 0.1 under validation F1 with legacy rescue "
        "and none under PU AUC or validation F1; a later epoch of each of these runs is healthy, so the rule "
        "picked a bad epoch."
    )
    assert headline(selected, ["val_f1"]).startswith("No collapse: no run of 32 scores")
    other = selected.with_columns(pl.col("verdict").replace("selection_artefact", "all_negative"))
    assert headline(other, SHOWN).endswith("; the verdicts below say why.")
    constant = selected.filter(selection="val_f1").with_columns(verdict=pl.lit("all_positive"), f1=0.56)
    assert headline(constant, ["val_f1"]).startswith("No run of 32")
    assert "all positive (32)" in headline(constant, ["val_f1"])
    lost = selected.with_columns(f1=float("nan"))
    assert headline(lost, ["val_f1"]).startswith("32 of 32 runs score F1 below 0.1")
    assert "undefined F1 (NaN), 32 times" in headline(lost, ["val_f1"])
    assert "no answer" in headline(pl.DataFrame(), SHOWN)


def test_answers_put_failures_first_with_n_and_interval(sweep):
    verdicts = sweep[3].drop("sentence")
    first, second = answers(verdicts, SHOWN)
    assert (first.label, first.verdicts) == ("vpudra_softlabel", ("selection_artefact",))
    assert first.lines[0] == ("Under validation F1 with legacy rescue: 2 of 8 runs fail (95 % interval 7 to 59 %).")
    assert second.label == "vpu, pudra and vpudra_fixed"
    assert "0 of 8 runs each fail (95 % interval 0 to 32 %)" in second.lines[0]
    assert answers(pl.DataFrame(), SHOWN) == []


# The page


class Page(HTMLParser):
    """Reads a page strictly: every tag closed in order, and what it would load."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.loads, self.alts, self.captions = [], [], [], [], [], []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attributes = dict(attrs)
        assert not any(name.startswith("on") for name in attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.loads += [attributes[name] for name in ("src", "href", "data", "srcset") if name in attributes]
        if tag == "img":
            self.alts.append(attributes["alt"])
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "figcaption":
            self.captions.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if "figcaption" in self.open:
            self.captions[-1] += data


def test_page_is_whole_self_contained_and_accessible(written):
    text = (written / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert len(text) < 3_000_000
    assert len(page.loads) == len(page.alts) == 6
    assert all(source.startswith("data:image/") for source in page.loads)
    assert not {"script", "link", "iframe", "object"} & {*page.tags}
    assert not re.search(r"@import|url\(", text)
    assert len({*page.ids}) == len(page.ids)
    assert all(len(alt) > 40 for alt in page.alts)
    assert all(re.search(r"n = \d", caption) for caption in page.captions)
    assert all("interval" in caption for caption in page.captions)
    for source in page.loads:
        image = base64.b64decode(source.partition("base64,")[2])
        assert image.startswith((b"<?xml", b"\x89PNG"))
        assert b'href="http' not in image


def test_page_holds_answer_table_verdicts_command_and_provenance(written, sweep):
    _, selected, table, verdicts = sweep
    page = Page((written / "report.html").read_text(encoding="utf-8"))
    assert headline(selected, SHOWN) in page.text
    for rule in SHOWN:
        for line in table_lines(table, verdicts, rule):
            assert f"{line.label}{line.first}{line.mean}{line.below}{line.auc}{line.verdict}" in page.text
    for meaning in VERDICTS.values():
        assert meaning in page.text
    assert PROVENANCE["command"] in page.text
    for words in (
        "3f0c2ad",
        "jax 0.10.2",
        "41.2",
        PROVENANCE["started"],
        CONFIG["description"],
        "default: pu_auc",
    ):
        assert words in page.text
    assert "The selected epoch fails, a later one of the same run does not." in page.text


def test_page_is_the_same_bytes_twice(written, sweep):
    assert report.html(*sweep, PROVENANCE, CONFIG) == (written / "report.html").read_text(encoding="utf-8")


def test_names_cannot_become_markup_or_formulas():
    bad = "<script>alert('x')</script>$\\frac{"
    runs = fake_runs(methods=(bad,), seeds=2, epochs=3, artefacts={(bad, 1)})
    selected = fake_selected(runs).with_columns(explanation=pl.lit("<i>&"))
    provenance = {"command": ["jaxpu", "<run>"], "<k>": {"<v>": ["<w>"]}}
    tables = fake_summary(selected), fake_verdicts(selected)
    page = Page(report.html(runs, selected, *tables, provenance, {"name": bad, "description": bad}))
    assert not {"script", "i", "run", "k"} & {*page.tags}
    assert bad in page.text
    assert any(bad in alt for alt in page.alts)


@pytest.mark.parametrize("config", [{}, CONFIG])
def test_empty_frames_give_a_page_of_sentences(config):
    empty = pl.DataFrame()
    page = Page(report.html(empty, empty, empty, empty, {}, config))
    for words in ("no answer", "there is no table", "Not recorded, so not shown", "was not recorded"):
        assert words in page.text
    assert "img" not in page.tags
    assert "there is no table" in report.table_markdown(empty, empty, config)
    assert report.table_rich(empty, empty, config).row_count == 1


def test_the_story_blames_the_rescue_only_where_it_stepped_in(sweep):
    runs, selected, _, verdicts = sweep
    shown = selected.filter(pl.col("method") == "vpudra_softlabel")
    told = pictures(runs, shown, verdicts, ["val_f1_rescue"])[0].caption
    assert "the rescue then moved the threshold" in told
    assert "the worst of 2 selection artefacts among 8 runs" in told
    other = runs.with_columns(val_predicted_positive=pl.lit(0.3))
    assert "rescue then moved" not in pictures(other, shown, verdicts, ["val_f1_rescue"])[0].caption


def test_missing_optional_columns_and_nan_do_not_stop_the_page(sweep):
    runs, selected, table, verdicts = sweep
    runs = runs.drop("val_predicted_positive", "test_oracle_auc", "test_oracle_f1_decision")
    runs = runs.with_columns(test_predicted_positive=float("nan")).filter(pl.col("method") != "pudra")
    selected = selected.drop("explanation", "decision", "test_oracle_auc")
    drawn = {p.name: p for p in pictures(runs, selected, verdicts.drop("sentence"), SHOWN)}
    assert "test_oracle_auc" in drawn["trajectories_auc"].caption
    assert "No finite value" in drawn["trajectories_positive"].caption
    assert all(drawn[name].figure for name in ("selection_story", "final_f1", "failure_rates", "trajectories_f1"))
    tables = table.filter(metric="f1"), verdicts.drop("sentence")
    Page(report.html(runs, selected, *tables, {}, {}, drawn=list(drawn.values())))


def test_long_tables_are_folded_and_capped_on_the_page():
    cells = tuple(f"c={i}" for i in range(202))
    selected = fake_selected(fake_runs(seeds=3, epochs=2, methods=("vpudra_softlabel",), cells=cells))
    tables = fake_summary(selected), fake_verdicts(selected)
    page = Page(report.html(pl.DataFrame(), selected, *tables, {}, CONFIG, drawn=BLANK))
    assert "194 more" in page.text.partition("Results")[0]
    assert "The table, 202 rows a selection rule" in page.text
    assert page.text.count("2 more rows are in table.md.") == 3
    assert report.table_markdown(*tables, CONFIG).count("`vpudra_softlabel · c=201`") == 3


# Files


def test_write_makes_all_files_and_no_others(written, sweep):
    _, _, table, verdicts = sweep
    names = {path.relative_to(written).as_posix() for path in written.rglob("*") if path.is_file()}
    figures = {f"figures/{name}.svg" for name in NAMES}
    assert names == {"table.md", "report.html"} | figures
    assert (written / "table.md").read_text(encoding="utf-8") == report.table_markdown(table, verdicts, CONFIG)
    for name in NAMES:
        assert (written / f"figures/{name}.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_a_figure_too_large_for_svg_is_written_as_png(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["jaxpu.report.write"], "SVG_LIMIT", 10)
    report.write(tmp_path, *sweep, {}, CONFIG)
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {f"{name}.png" for name in NAMES}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (tmp_path / "figures").iterdir())


def test_write_removes_a_figure_that_no_longer_applies(sweep, tmp_path):
    stale = [tmp_path / "figures" / f"selection_story.{kind}" for kind in ("png", "svg")]
    mine = tmp_path / "figures" / "notes.txt"
    mine.parent.mkdir()
    for path in (*stale, mine):
        path.write_text("old")
    runs, selected, _, _ = sweep
    selected = selected.filter(selection="last").filter(pl.col("method") == "vpu")
    page = report.write(tmp_path, runs.clear(), selected, fake_summary(selected), fake_verdicts(selected), {}, {})
    assert page == tmp_path / "report.html"
    assert not any(path.exists() for path in stale)
    assert mine.read_text() == "old"
