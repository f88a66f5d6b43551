"""Figures and report, on made-up sweeps in which it is known which run fails and why."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from jaxpu import collapse, methods, plots, report, selection, summary
from jaxpu.plots import NothingToShow, frames
from jaxpu.report.answers import answers, headline
from jaxpu.report.pictures import Picture, pictures
from jaxpu.report.tables import METRICS, table_lines
from jaxpu.report.words import DECISIONS, VERDICTS

METHODS = ("vpu", "pudra", "vpudra_fixed", "vpudra_softlabel")
RULES = ("pu_auc", "val_f1_rescue", "val_f1", "last")
ARTEFACTS = {("vpudra_softlabel", 2), ("vpudra_softlabel", 5)}


def fake_runs(methods=METHODS, seeds=8, epochs=20, artefacts=ARTEFACTS, cells=("",)):
    """Runs whose F1 rises to about 0.87; the ``artefacts`` wrongly look best on validation at epoch 2."""
    random = np.random.default_rng(0)
    parts = []
    for method in methods:
        for cell in cells:
            for seed in range(seeds):
                parts.append(_fake_run(random, method, cell, seed, epochs, (method, seed) in artefacts))
    return pl.concat(parts)


def _fake_run(random, method, cell, seed, epochs, artefact):
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
            "cell": cell,
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
        best = best.group_by("dataset", "method", "cell", "seed", maintain_order=True).first()
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
        .sort(pl.col("method").replace_strict(order), "cell", "seed", maintain_order=True)
    )


def wilson(failed, n, z=1.959964):
    p = failed / n
    middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


KEYS = ["dataset", "method", "cell", "selection"]


def fake_summary(selected):
    rows = []
    for key, group in selected.group_by(KEYS, maintain_order=True):
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
        rows.append((*key, "f1_below_0.1", n, failed / n, np.nan, np.nan, *wilson(failed, n), np.nan, failed))
    names = [*KEYS, "metric", "n", "mean", "median", "sd", "ci_low", "ci_high", "iqm", "count"]
    return pl.DataFrame(rows, schema=names, orient="row")


def fake_verdicts(selected):
    rows = []
    for key, group in selected.group_by(KEYS, maintain_order=True):
        failed, n = int((group["f1"] < 0.1).sum()), group.height
        verdict = "selection_artefact" if failed else "healthy"
        sentence = f"{failed} of {n} runs fail."
        rows.append((*key, verdict, sentence, n, failed, failed / n, *wilson(failed, n)))
    names = [*KEYS, "verdict", "sentence", "n", "failing", "rate", "ci_low", "ci_high"]
    return pl.DataFrame(rows, schema=names, orient="row")


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
    runs = fake_runs()
    selected = fake_selected(runs)
    return runs, selected, fake_summary(selected), fake_verdicts(selected)


@pytest.fixture(scope="module")
def written(sweep, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    report.write(folder, *sweep, PROVENANCE, CONFIG)
    return folder


def scatter(axis, label):
    return next(c for c in axis.collections if c.get_label() == label).get_offsets()


def texts(axis):
    return [text.get_text() for text in axis.texts]


# Figures


def test_strip_shows_every_seed_once_and_marks_the_low_ones(sweep):
    _, selected, _, _ = sweep
    figure = plots.final_f1_strip(selected)
    assert len(figure.axes) == 2
    for axis, rule, low in zip(figure.axes, ("val_f1_rescue", "val_f1"), (2, 0), strict=True):
        fine, crosses = scatter(axis, "run"), scatter(axis, "run below")
        assert len(crosses) == low
        dots = np.concatenate([fine, crosses])
        for row, method in enumerate(METHODS):
            expected = selected.filter(method=method, selection=rule)["f1"].sort().to_numpy()
            np.testing.assert_array_equal(np.sort(dots[np.abs(dots[:, 1] - row) < 0.5, 0]), expected)
            median = next(
                x for x in axis.lines if x.get_label() == "median" and np.mean(x.get_ydata()) == row
            )
            assert median.get_xdata()[0] == np.median(expected)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(METHODS)
    assert texts(figure.axes[0]) == ["< 0.1", "0/8", "0/8", "0/8", "2/8"]
    assert "2 of 32 under validation F1 with legacy rescue" in figure.get_suptitle()


def test_strip_counts_a_run_without_f1_as_low_and_draws_it_at_zero(sweep):
    _, selected, _, _ = sweep
    lost = (pl.col("method") == "vpu") & (pl.col("seed") == 0)
    figure = plots.final_f1_strip(
        selected.with_columns(f1=pl.when(lost).then(float("nan")).otherwise("f1")), ["val_f1"]
    )
    assert scatter(figure.axes[0], "run below")[:, 0].tolist() == [0.0]
    assert texts(figure.axes[0])[1] == "1/8"


def test_rates_are_those_of_the_frame(sweep):
    verdicts = sweep[3]
    figure = plots.collapse_rates(verdicts, SHOWN)
    axis = figure.axes[0]
    assert len(axis.containers) == 3
    for container, rule in zip(axis.containers, SHOWN, strict=True):
        expected = verdicts.filter(selection=rule)
        marks, _, (lines,) = container
        np.testing.assert_array_equal(marks.get_xdata(), expected["rate"])
        ends = np.array([[segment[0, 0], segment[1, 0]] for segment in lines.get_segments()])
        np.testing.assert_allclose(ends, expected.select("ci_low", "ci_high").to_numpy(), atol=1e-12)
    assert sorted(texts(axis)) == ["0/8"] * 11 + ["2/8"]
    assert figure.get_suptitle().replace("\n", " ").endswith("legacy rescue: 2 of 8 runs (25 %)")
    quiet = plots.collapse_rates(verdicts, ["last"])
    assert quiet.get_suptitle() == "No run has a failing verdict under any rule shown"


def test_trajectories_hold_median_bands_and_highlighted_runs(sweep):
    runs, selected, _, _ = sweep
    low = selected.filter(pl.col("f1") < 0.1)
    figure = plots.trajectories(runs, "test_oracle_f1", highlight=low.select(frames.RUN).unique())
    panels = dict(zip(METHODS, figure.axes, strict=True))
    assert [len(panel.lines) for panel in figure.axes] == [1, 1, 1, 3]
    for method, panel in panels.items():
        values = np.stack(runs.filter(method=method).partition_by("seed", include_key=False), axis=0)
        column = runs.columns.index("test_oracle_f1") - 1  # "seed" was taken out before it
        f1 = values[:, :, column].astype(float)
        np.testing.assert_allclose(panel.lines[0].get_ydata(), np.median(f1, axis=0))
        middle, wide = (c.get_paths()[0].vertices for c in panel.collections)
        for band, ends in ((middle, (0.25, 0.75)), (wide, (0.05, 0.95))):
            at_first = band[band[:, 0] == 1, 1]
            np.testing.assert_allclose([at_first.min(), at_first.max()], np.quantile(f1[:, 0], ends))
        assert texts(panel) == ["n = 8"]
    drawn = {tuple(line.get_ydata()) for line in panels["vpudra_softlabel"].lines[1:]}
    failing = runs.filter(pl.col("method") == "vpudra_softlabel", pl.col("seed").is_in([2, 5]))
    assert drawn == {tuple(run["test_oracle_f1"]) for run in failing.partition_by("seed")}


def test_a_single_seed_has_a_line_and_no_bands(sweep):
    figure = plots.trajectories(sweep[0].filter(seed=0), "test_oracle_auc")
    for panel in figure.axes:
        assert not panel.collections
        assert [line.get_label() for line in panel.lines] == ["the only seed"]
        assert texts(panel) == ["n = 1"]


def test_the_story_is_of_the_worst_artefact_and_marks_both_epochs(sweep):
    runs, selected, _, _ = sweep
    selected = selected.with_columns(
        f1=pl.when((pl.col("seed") == 5) & (pl.col("f1") < 0.1)).then(0.01).otherwise("f1")
    )
    assert plots.artefact_run(selected)["seed"] == 5
    figure = plots.selection_story(runs, selected)
    saw, why, got = figure.axes
    run = runs.filter(method="vpudra_softlabel", seed=5).sort("epoch")
    for axis, columns in (
        (saw, ["val_oracle_f1_rescue", "val_oracle_f1_decision"]),
        (why, ["val_predicted_positive", "test_predicted_positive"]),
        (got, ["test_oracle_f1_rescue", "test_oracle_f1_decision", "test_oracle_auc"]),
    ):
        curves = [line.get_ydata() for line in axis.lines if len(line.get_xdata()) == 20]
        np.testing.assert_array_equal(curves, run.select(columns).to_numpy().T)
        plain = selected.filter(method="vpudra_softlabel", seed=5, selection="val_f1")["epoch"][0]
        upright = [line.get_xdata()[0] for line in axis.lines if len(set(line.get_xdata())) == 1]
        assert upright[:2] == [2, plain]
    assert scatter(saw, "rescued")[:, 0].tolist() == [1, 2]
    assert "takes epoch 2, whose test F1 is 0.01" in re.sub(r"\s", " ", figure.get_suptitle())


def test_an_artefact_of_another_rule_is_told_by_its_own_criterion(sweep):
    runs, selected, _, _ = sweep
    selected = selected.filter(selection="pu_auc").with_columns(
        verdict=pl.when(pl.col("seed") == 3).then(pl.lit("selection_artefact")).otherwise("verdict")
    )
    figure = plots.selection_story(runs, selected)
    run = plots.artefact_run(selected)
    expected = runs.filter(method=run["method"], seed=3).sort("epoch")["val_proxy_pu_auc"]
    np.testing.assert_array_equal(figure.axes[0].lines[-1].get_ydata(), expected)
    assert "PU AUC" in figure.axes[0].get_title(loc="left")


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda r, s, v: plots.trajectories(r.clear(), "test_oracle_f1"), "Nothing recorded"),
        (lambda r, s, v: plots.trajectories(r, "test_oracle_recall"), "test_oracle_recall"),
        (lambda r, s, v: plots.trajectories(r.with_columns(x=float("nan")), "x"), "No finite value of x"),
        (lambda r, s, v: plots.final_f1_strip(s.drop("f1")), "f1"),
        (lambda r, s, v: plots.final_f1_strip(s, ["nn_risk"]), "No run was selected"),
        (lambda r, s, v: plots.final_f1_strip(s.with_columns(f1=float("nan"))), "No finite value of f1"),
        (lambda r, s, v: plots.collapse_rates(v.clear()), "Nothing recorded"),
        (lambda r, s, v: plots.collapse_rates(v, ["nn_risk"]), "No method"),
        (lambda r, s, v: plots.selection_story(r, s.filter(selection="last")), "no such|none to tell"),
        (lambda r, s, v: plots.selection_story(r.filter(method="vpu"), s), "Nothing recorded"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_sentence(sweep, draw, words):
    runs, selected, _, verdicts = sweep
    with pytest.raises(NothingToShow, match=words) as caught:
        draw(runs, selected, verdicts)
    assert str(caught.value).endswith(".")


def test_large_grids_keep_the_worst_rows_and_say_what_is_left_out():
    cells = [f"lr={i}" for i in range(10)]
    runs = fake_runs(seeds=6, epochs=4, cells=cells)
    selected = fake_selected(runs)
    figure = plots.final_f1_strip(selected)
    rows = [label.get_text().replace("\n", " ") for label in figure.axes[0].get_yticklabels()]
    assert len(rows) == 24
    assert {f"vpudra_softlabel · {cell}" for cell in cells} <= {*rows}
    assert "16 more rows" in figure.get_supxlabel()
    assert len(plots.collapse_rates(fake_verdicts(selected)).axes[0].get_yticks()) == 24
    panels = plots.trajectories(runs, "test_oracle_f1", rows=rows, most=5)
    assert len(panels.axes) == 5
    assert "35 more panels" in panels.get_supxlabel()


def test_rows_name_the_dataset_where_there_are_several():
    rows = pl.DataFrame({"dataset": ["a", "b"], "method": ["vpu", "vpu"], "cell": ["", "c=0.1"]})
    assert frames.labelled(rows)["label"].to_list() == ["a · vpu", "b · vpu · c=0.1"]


def test_the_same_numbers_give_the_same_bytes(sweep):
    selected = sweep[1].filter(pl.col("method") == "vpudra_softlabel")
    for kind in ("svg", "png"):
        first, second = (plots.render(plots.final_f1_strip(selected), kind) for _ in range(2))
        assert first == second
    assert b"<dc:date>" not in plots.render(plots.final_f1_strip(selected))


# Tables


def test_markdown_holds_the_numbers_of_the_frames(sweep):
    _, _, table, verdicts = sweep
    text = report.table_markdown(table, verdicts, CONFIG)
    parts = text.split("## ")[1:]
    assert [part.split("\n")[0].split(",")[0] for part in parts] == [
        "Selected by PU AUC (label-free)",
        "Selected by validation F1 with legacy rescue (needs true labels)",
        "Selected by validation F1 (needs true labels)",
    ]
    for part, rule in zip(parts, SHOWN, strict=True):
        assert "n = 8 seeds" in part
        rows = [line.split(" | ") for line in part.splitlines() if line.startswith("| `")]
        assert [row[0] for row in rows] == [f"| `{method}`" for method in METHODS]
        for row, method in zip(rows, METHODS, strict=True):
            mine = table.filter(method=method, selection=rule)
            f1, low, auc = (
                mine.filter(metric=name).row(0, named=True) for name in ("f1", "f1_below_0.1", "auc")
            )
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
    assert (line.median, line.below, line.auc, line.verdict) == ("–", "–", "–", "–")
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
    assert f"{sweep[2].filter(method='vpu', selection='pu_auc', metric='f1')['median'][0]:.3f}" in lines[5]


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
        "Training did not collapse: 2 of 32 runs score F1 below 0.1 under validation F1 with legacy rescue and "
        "none under PU AUC or validation F1; a later epoch of each of these runs is healthy, so the rule "
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
    assert first.lines[0] == (
        "Under validation F1 with legacy rescue: 2 of 8 runs fail (95 % interval 7 to 59 %)."
    )
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
            assert f"{line.label}{line.median}{line.mean}{line.below}{line.auc}{line.verdict}" in page.text
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


def test_missing_optional_columns_and_nan_do_not_stop_the_page(sweep):
    runs, selected, table, verdicts = sweep
    runs = runs.drop("val_predicted_positive", "test_oracle_auc", "test_oracle_f1_decision")
    runs = runs.with_columns(test_predicted_positive=float("nan")).filter(pl.col("method") != "pudra")
    selected = selected.drop("explanation", "decision", "test_oracle_auc")
    drawn = {p.name: p for p in pictures(runs, selected, verdicts.drop("sentence"), SHOWN)}
    assert "test_oracle_auc" in drawn["trajectories_auc"].caption
    assert "No finite value" in drawn["trajectories_positive"].caption
    assert all(
        drawn[name].figure for name in ("selection_story", "final_f1", "failure_rates", "trajectories_f1")
    )
    tables = table.filter(metric="f1"), verdicts.drop("sentence")
    Page(report.html(runs, selected, *tables, {}, {}, drawn=list(drawn.values())))


def test_many_failing_rows_are_capped_on_the_page():
    cells = tuple(f"c={i}" for i in range(20))
    runs = fake_runs(seeds=6, epochs=3, methods=("vpudra_softlabel",), cells=cells)
    selected = fake_selected(runs)
    frames_ = fake_summary(selected), fake_verdicts(selected)
    page = Page(report.html(runs, selected, *frames_, {}, CONFIG, drawn=BLANK))
    assert "8 more" in page.text
    assert page.text.count("vpudra_softlabel · c=19") >= 2  # in both tables all the same


# Files


def test_write_makes_all_files_and_no_others(written, sweep):
    _, _, table, verdicts = sweep
    names = {path.relative_to(written).as_posix() for path in written.rglob("*") if path.is_file()}
    figures = {f"figures/{name}.{kind}" for name in NAMES for kind in ("png", "svg")}
    assert names == {"table.md", "report.html"} | figures
    assert (written / "table.md").read_text(encoding="utf-8") == report.table_markdown(
        table, verdicts, CONFIG
    )
    for name in NAMES:
        assert (written / f"figures/{name}.png").read_bytes().startswith(b"\x89PNG")


def test_write_removes_a_figure_that_no_longer_applies(sweep, tmp_path):
    stale = [tmp_path / "figures" / f"selection_story.{kind}" for kind in ("png", "svg")]
    mine = tmp_path / "figures" / "notes.txt"
    mine.parent.mkdir()
    for path in (*stale, mine):
        path.write_text("old")
    runs, selected, _, _ = sweep
    selected = selected.filter(selection="last").filter(pl.col("method") == "vpu")
    page = report.write(
        tmp_path, runs.clear(), selected, fake_summary(selected), fake_verdicts(selected), {}, {}
    )
    assert page == tmp_path / "report.html"
    assert not any(path.exists() for path in stale)
    assert mine.read_text() == "old"
