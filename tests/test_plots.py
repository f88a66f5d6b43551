"""Figures: the right dots, lines and words for the numbers of a made-up sweep."""

import re

import numpy as np
import polars as pl
import pytest
from fake_sweep import METHODS, fake_runs, fake_selected, fake_sweep, fake_verdicts

from jaxpu import plots
from jaxpu.analysis import stats
from jaxpu.plots import NothingToShow, frames, style
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


def test_differences_are_paired_by_seed_and_coloured_by_their_interval():
    rng = np.random.default_rng(0)
    base, noise = rng.normal(0.8, 0.05, 20), rng.normal(0, 0.002, (3, 20))
    scores = {"plain": base, "better": base + 0.01 + noise[0], "worse": base - 0.2 + noise[1], "same": base + noise[2]}
    runs = [
        {"method": method, "cell": cell, "seed": seed, "test_oracle_accuracy": value}
        for cell in ("lr=1", "lr=2")
        for method, values in scores.items()
        for seed, value in enumerate(values if cell == "lr=1" else base)
    ]
    shuffled = pl.DataFrame(runs).sample(fraction=1, shuffle=True, seed=1).sort("cell", maintain_order=True)
    figure = paired_differences(shuffled.filter(pl.col("cell") == "lr=1"), "plain", "test_oracle_accuracy", "accuracy")
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
        paired_differences(shuffled, "oracle", "accuracy", "accuracy")
