"""Figures: the right dots, lines and words for the numbers of a made-up sweep."""

import re

import matplotlib
import numpy as np
import polars as pl
import pytest
from fake_sweep import METHODS, fake_runs, fake_selected, fake_sweep, fake_verdicts

from jaxpu import plots
from jaxpu.analysis import stats
from jaxpu.plots import NothingToShow, frames, kinds, style
from jaxpu.plots.differences import paired_differences

SHOWN = ["pu_auc", "val_f1_rescue", "val_f1"]


@pytest.fixture(scope="module")
def sweep():
    return fake_sweep()


def scatter(axis, label):
    return next(c for c in axis.collections if c.get_label() == label).get_offsets()


def texts(axis):
    return [text.get_text() for text in axis.texts]


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
            median = next(x for x in axis.lines if x.get_label() == "median" and np.mean(x.get_ydata()) == row)
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


def test_of_many_marked_runs_some_are_drawn_and_the_legend_says_so():
    seeds = 200
    runs = pl.DataFrame(
        {"dataset": "d", "method": "m", "seed": np.repeat(np.arange(seeds), 2), "epoch": [1, 2] * seeds}
    )
    runs = runs.with_columns(test_oracle_f1=pl.Series(np.linspace(0, 1, 2 * seeds)))
    few, many = (
        plots.trajectories(runs, "test_oracle_f1", highlight=runs.filter(pl.col("seed") < n)) for n in (40, 200)
    )
    for figure, said in ((few, "run selected at F1 below 0.1"), (many, "run selected at F1 below 0.1 (40 a panel)")):
        [panel] = figure.axes
        assert len(panel.lines) == 1 + 40
        assert panel.lines[-1].get_label() == said


def test_trajectories_hold_median_bands_and_highlighted_runs(sweep):
    runs, selected, _, _ = sweep
    low = selected.filter(pl.col("f1") < 0.1)
    figure = plots.trajectories(runs, "test_oracle_f1", highlight=low.select(frames.run_columns(selected)).unique())
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


@pytest.fixture
def unequal():
    """Three runs of 5, 2 and 2 epochs: those that stop are at 0.1 and 0.2, the one that goes on ends at 0.9."""
    f1 = {0: [0.0, 0.3, 0.5, 0.7, 0.9], 1: [0.0, 0.1], 2: [0.0, 0.2]}
    rows = [("d", "vpu", seed, k + 1, value) for seed, values in f1.items() for k, value in enumerate(values)]
    names = ["dataset", "method", "seed", "epoch", "test_oracle_f1"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_medians_are_over_all_runs_also_those_that_stopped(unequal):
    low = unequal.filter(seed=1).select("dataset", "method", "seed").unique()
    figure = plots.trajectories(unequal, "test_oracle_f1", highlight=low)
    median, stopped = figure.axes[0].lines
    np.testing.assert_allclose(median.get_ydata(), [0.0, 0.2, 0.2, 0.2, 0.2])
    assert list(stopped.get_xdata()) == [1, 2], "a run is drawn as far as it went"
    assert figure.get_suptitle().endswith("ends at 0.20"), "the median of last values"
    ends = figure.axes[0].collections[1].get_paths()[0].vertices
    np.testing.assert_allclose(ends[ends[:, 0] == 5, 1].max(), np.quantile([0.1, 0.2, 0.9], 0.95))


def test_medians_against_epochs_carry_last_values_too(unequal):
    figure = plots.courses(unequal, ["test_oracle_f1"])
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), [0.0, 0.2, 0.2, 0.2, 0.2])
    assert figure.get_suptitle().endswith("0.20")


def test_a_run_that_diverged_is_not_carried_on_from_an_earlier_value(unequal):
    gone = pl.when((pl.col("seed") == 1) & (pl.col("epoch") == 2)).then(float("nan")).otherwise("test_oracle_f1")
    figure = plots.trajectories(unequal.with_columns(test_oracle_f1=gone), "test_oracle_f1")
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata()[-1], np.median([0.9, 0.2]))


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
        (lambda r, s, v: plots.trajectories(r, "test_oracle_f1", rows=["nnpu"]), "None of the rows"),
        (lambda r, s, v: plots.final_f1_strip(s.drop("f1")), "f1"),
        (lambda r, s, v: plots.final_f1_strip(s, ["nn_risk"]), "No run was selected"),
        (lambda r, s, v: plots.final_f1_strip(s.with_columns(f1=float("nan"))), "No finite value of f1"),
        (lambda r, s, v: plots.collapse_rates(v.clear()), "Nothing recorded"),
        (lambda r, s, v: plots.collapse_rates(v, ["nn_risk"]), "No method"),
        (lambda r, s, v: plots.selection_story(r, s.filter(selection="last")), "none to tell"),
        (lambda r, s, v: plots.selection_story(r.filter(method="vpu"), s), "Nothing recorded"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_sentence(sweep, draw, words):
    runs, selected, _, verdicts = sweep
    with pytest.raises(NothingToShow, match=words) as caught:
        draw(runs, selected, verdicts)
    assert str(caught.value).endswith(".")


def test_large_grids_keep_the_worst_rows_and_say_what_is_left_out():
    rates = range(1, 11)
    runs = fake_runs(seeds=6, epochs=4, rates=rates)
    selected = fake_selected(runs)
    figure = plots.final_f1_strip(selected)
    rows = [label.get_text().replace("\n", " ") for label in figure.axes[0].get_yticklabels()]
    assert len(rows) == 24
    assert {f"vpudra_softlabel · lr={rate}" for rate in rates} <= {*rows}
    assert "16 more rows" in figure.get_supxlabel()
    assert len(plots.collapse_rates(fake_verdicts(selected)).axes[0].get_yticks()) == 24
    panels = plots.trajectories(runs, "test_oracle_f1", rows=rows, most=5)
    assert len(panels.axes) == 5
    assert "35 more panels" in panels.get_supxlabel()


def test_rows_name_the_dataset_where_there_are_several():
    columns = {"dataset": ["a", "b"], "method": "vpu", "data.name": ["a", "b"], "data.c": [None, 0.1], "seed": 0}
    assert frames.with_label(pl.DataFrame(columns))["label"].to_list() == ["a · vpu", "b · vpu · c=0.1"]


def test_columns_of_the_grid_are_found_by_their_place_and_labels_are_never_parsed():
    columns = {"dataset": "a", "method": "x=1 y=2", "training.lr": [1e-3, 1e-2], "data.c": 0.1, "seed": 0, "f1": 0.5}
    frame = pl.DataFrame(columns)
    assert frames.grid_columns(frame) == ["training.lr", "data.c"]
    assert frames.varying(frame) == ["training.lr"], "a setting of one value needs no label"
    assert frames.with_label(frame)["label"].to_list() == ["x=1 y=2 · lr=0.001", "x=1 y=2 · lr=0.01"]


def test_the_same_numbers_give_the_same_bytes(sweep):
    selected = sweep[1].filter(pl.col("method") == "vpudra_softlabel")
    for kind in ("svg", "png"):
        first, second = (plots.render(plots.final_f1_strip(selected), kind) for _ in range(2))
        assert first == second
    assert b"<dc:date>" not in plots.render(plots.final_f1_strip(selected))


def test_differences_are_paired_by_seed_and_coloured_by_their_interval():
    rng = np.random.default_rng(0)
    base, noise = rng.normal(0.8, 0.05, 20), rng.normal(0, 0.002, (3, 20))
    scores = {"plain": base, "better": base + 0.01 + noise[0], "worse": base - 0.2 + noise[1], "same": base + noise[2]}
    runs = [
        {"dataset": "a", "method": method, "training.lr": rate, "seed": seed, "test_oracle_accuracy": value}
        for rate in (1, 2)
        for method, values in scores.items()
        for seed, value in enumerate(values if rate == 1 else base)
    ]
    shuffled = pl.DataFrame(runs).sample(fraction=1, shuffle=True, seed=1).sort("training.lr", maintain_order=True)
    figure = paired_differences(
        shuffled.filter(pl.col("training.lr") == 1), "plain", "test_oracle_accuracy", "accuracy"
    )
    [axis] = figure.axes
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert set(names) == {"better", "worse", "same"}
    colours = {}
    for place, name in enumerate(names):
        line, point = axis.lines[2 * place : 2 * place + 2]
        found = stats.paired_difference(scores[name], base)
        np.testing.assert_allclose(point.get_xdata(), [np.mean(scores[name] - base)])
        np.testing.assert_allclose(line.get_xdata(), [found.interval.low, found.interval.high])
        colours[name] = line.get_color()
    assert colours == {"better": style.BLUE, "worse": style.RED, "same": style.QUIET}
    assert figure.get_suptitle() == "Accuracy against plain: ahead is better; behind is worse"
    both = paired_differences(shuffled, "plain", "test_oracle_accuracy", "accuracy")
    assert "of 3 others, ahead of plain are 1 at lr=1, 0 at lr=2" in both.get_suptitle()
    with pytest.raises(NothingToShow, match="There is no oracle"):
        paired_differences(shuffled, "oracle", "test_oracle_accuracy", "accuracy")


GRID = pl.DataFrame(
    {
        "dataset": "gaussians",
        "method": "vpu",
        "data.c": [0.1, 0.1, 0.5, 0.5] * 2,
        "training.lr": [1.0, 2.0] * 4,
        "seed": [0] * 4 + [1] * 4,
        "selection": "last",
        "f1": [0.06, 0.8, 0.9, 0.9, 0.6, 0.7, 0.9, float("nan")],
    }
)


def test_a_heat_map_needs_two_settings_and_counts_runs_without_a_number():
    figure = plots.heat_map(GRID, "last")
    shares, medians = ({text.get_text() for text in axis.texts} for axis in figure.axes)
    assert shares == {"50 %", "0 %"}
    assert medians == {"0.33", "0.75", "0.90"}, "a run without an F1 counts as low, and in no median"
    assert figure.get_suptitle().endswith("c = 0.1, lr = 1: 1 of 2 runs (last epoch)")
    with pytest.raises(NothingToShow, match="fewer than two settings"):
        plots.heat_map(GRID.drop("training.lr"), "last")
    known = GRID.rename({"f1": "auc"}).filter(pl.col("auc").is_not_nan())
    other = plots.heat_map(known, "last", metric="auc", below=0.01)
    assert other.get_suptitle() == "No run of 7 has AUC below 0.01 (last epoch)"


def summary_of(rates, methods=("als", "mean")):
    rows = [
        {"dataset": "d", "method": m, "ratings.rate": rate, "selection": "end", "metric": metric, "mean": value,
         "ci_low": value - 0.1, "ci_high": value + 0.1}
        for k, m in enumerate(methods) for rate in rates
        for metric, value in (("inverted", 1.0 - k), ("average_precision", rate))
    ]  # fmt: skip
    return pl.DataFrame(rows)


def test_summaries_over_a_setting_hold_means_and_intervals():
    figure = plots.over_setting(summary_of([0.1, 0.5]), ["inverted", "average_precision", "brier"])
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["share inverted", "PR-AUC"]
    marks, _, (lines,) = figure.axes[1].containers[0]
    np.testing.assert_allclose(marks.get_ydata(), [0.1, 0.5])
    ends = [[segment[0, 1], segment[1, 1]] for segment in lines.get_segments()]
    np.testing.assert_allclose(ends, [[0.0, 0.2], [0.4, 0.6]], atol=1e-12)
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["0.1", "0.5"]
    assert figure.get_suptitle() == "Inverted in most runs of some point: als"
    with pytest.raises(NothingToShow, match="one numeric setting"):
        plots.over_setting(summary_of([0.1]))


def test_summaries_by_method_have_a_row_a_method_and_a_colour_a_point():
    figure = plots.by_method(summary_of([0.1, 0.5]), ["average_precision"])
    [axis] = figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["als", "mean"]
    assert [c.get_label() for c in axis.containers] == ["rate=0.1", "rate=0.5"]
    np.testing.assert_allclose(axis.containers[1][0].get_xdata(), [0.5, 0.5])
    with pytest.raises(NothingToShow, match="More points"):
        plots.by_method(summary_of(range(9)), ["average_precision"])


def test_courses_are_medians_over_seeds_and_what_has_no_point_is_shown_with_each():
    rows = [
        {"dataset": "d", "method": m, "teacher": t, "seed": seed, "epoch": e, "accuracy": 0.1 * e + level + 0.01 * seed}
        for m, t, level in (("none", None, 0.5), ("high", "plain", 0.1), ("high", "mixup", 0.2))
        for seed in (0, 1, 5) for e in (1, 2)
    ]  # fmt: skip
    figure = plots.courses(pl.DataFrame(rows), ["accuracy"])
    assert len(figure.axes) == 2
    for axis, level in zip(figure.axes, (0.1, 0.2), strict=True):
        lines = {line.get_label(): line.get_ydata() for line in axis.lines}
        np.testing.assert_allclose(lines["none"], [0.61, 0.71])
        np.testing.assert_allclose(lines["high"], [0.11 + level, 0.21 + level])
    assert figure.get_suptitle() == "At the end high (teacher=plain) has the least accuracy: 0.31"
    together = plots.courses(pl.DataFrame(rows), ["accuracy"], rows=False)
    assert [line.get_label() for line in together.axes[0].lines] == [
        "none", "high · teacher=plain", "high · teacher=mixup",
    ]  # fmt: skip


# Kinds


def test_kinds_are_drawn_from_a_configuration_with_name_section_caption_and_alternative(sweep):
    runs, selected, _, verdicts = sweep
    all_frames = plots.Frames(runs=runs, selected=selected, verdicts=verdicts, shown=tuple(SHOWN))
    entries = [
        {"kind": "trajectories", "metric": "train_loss"},
        {
            "kind": "failure_rates",
            "name": "mine",
            "section": "Own words",
            "caption": "So.",
            "alternative": "A <b> & c.",
        },
    ]
    first, second = map(plots.draw, plots.figures_of(entries, all_frames))
    assert (first.name, first.section, first.suffix) == ("trajectories_train_loss", "training", "svg")
    assert first.alternative.startswith("The median training loss ends")
    assert "n = 8" in first.caption
    assert second[0:2] + second[3:] == ("mine", "Own words", "So.", "A <b> & c.")


def test_a_user_s_own_function_is_a_kind(sweep, tmp_path, monkeypatch):
    (tmp_path / "of_mine.py").write_text(
        "from matplotlib.figure import Figure\n"
        "def scatter(frames, *, size=3):\n"
        "    figure = Figure(figsize=(size, 1))\n"
        "    figure.suptitle(f'{frames.selected.height} runs')\n"
        "    return figure\n"
    )
    monkeypatch.chdir(tmp_path)
    [figure] = plots.figures_of([{"kind": "of_mine:scatter", "size": 2}], plots.Frames(selected=sweep[1]))
    drawn = plots.draw(figure)
    assert (drawn.name, drawn.section, drawn.alternative) == ("scatter", "figures", f"{sweep[1].height} runs")


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([{"kind": "heatmap"}], "did you mean 'heat_map'"),
        ([{}], "unknown kind of figure ''"),
        ([{"kind": "nowhere:draw"}], "nowhere"),
        ([{"kind": "heat_map", "metrics": "f1"}], "takes no option 'metrics'; its options are metric, below"),
        ([{"kind": "heat_map"}, {"kind": "heat_map"}], "'heat_map' is there twice"),
    ],
)
def test_what_is_no_figure_is_refused_before_anything_is_drawn(entries, words):
    with pytest.raises(ValueError, match=words):
        plots.figures_of(entries, plots.Frames())


def test_every_kind_has_a_default_experiment_or_is_for_studies_and_all_defaults_exist():
    for kind, entries in kinds.DEFAULTS.items():  # what any function computes, only its author can draw
        assert plots.figures_of(entries, plots.Frames()) or kind == "function"


def test_figures_do_not_depend_on_a_user_s_settings_of_matplotlib(sweep):
    before = plots.render(plots.final_f1_strip(sweep[1]))
    with matplotlib.rc_context({"axes.facecolor": "black", "lines.linewidth": 9, "font.size": 30}):
        assert plots.render(plots.final_f1_strip(sweep[1])) == before


def test_numbers_beside_a_logarithmic_axis_are_plain_and_dollar_signs_in_names_are_text():
    rows = {"dataset": "d", "method": "a$b$", "seed": 0, "epoch": [1, 2], "log_loss": [0.61, 0.12]}
    comments = re.findall(r"<!-- (.*?) -->", plots.render(plots.courses(pl.DataFrame(rows), ["log_loss"])).decode())
    assert {"a$b$", "0.2", "0.5"} <= {*comments}
    assert not [text for text in comments if "mathdefault" in text]
