"""``jaxpu diagnose`` and ``analyze``: anybody's scores, any results folder, and a planted failure of each kind."""

import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from problems import first_cell, run_inputs, tiny

from jaxpu import analysis, cli, collapse, data, prior, runs, train
from jaxpu.collapse.files import ScoresError, read_scores
from jaxpu.config import dump
from jaxpu.methods import objective
from jaxpu.train import job

RNG = np.random.default_rng(0)
LABELS = np.arange(200) % 2
GOOD = np.clip(LABELS * 0.6 + 0.2 + RNG.normal(0, 0.1, 200), 0.01, 0.99)
SHIFTED = 0.5 * GOOD


def called(capsys, *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main([str(word) for word in words])
    return end.value.code, *capsys.readouterr()


def csv(path, **columns):
    pl.DataFrame(columns).write_csv(path)
    return path


def test_a_csv_of_scores_is_judged(tmp_path, capsys):
    good = csv(tmp_path / "good.csv", score=GOOD, label=LABELS)
    code, out, _ = called(capsys, "diagnose", good)
    assert (code, out.split()[0]) == (0, "healthy")
    shifted = csv(tmp_path / "shifted.csv", p=SHIFTED, truth=LABELS.astype(bool))
    code, out, _ = called(capsys, "diagnose", shifted, "--scores", "p", "--labels", "truth")
    assert (code, out.split()[0]) == (1, "threshold_shift")
    expected = collapse.diagnose(SHIFTED, LABELS)
    assert " ".join(expected.explanation.split()) in " ".join(out.split())
    logits = csv(tmp_path / "logits.csv", score=np.log(GOOD / (1 - GOOD)), label=LABELS)
    assert called(capsys, "diagnose", logits, "--threshold", "0")[1].split()[0] == "healthy"


@pytest.mark.parametrize(
    ("scores", "words", "verdict"),
    [
        (GOOD, ("--prior", "0.4"), "healthy"),
        (GOOD, (), "healthy"),
        (np.full(200, 0.7), ("--prior", "0.4"), "all_positive"),
        (0.5 * GOOD, ("--prior", "0.4"), "prior_mismatch"),
        (1 - GOOD, ("--prior", "0.4"), "inverted"),
        (np.where(LABELS == 1, np.nan, GOOD), ("--prior", "0.4"), "diverged"),
    ],
)
def test_scores_are_judged_by_observed_labels_alone(scores, words, verdict, tmp_path, capsys):
    observed = LABELS * (np.arange(200) % 4 == 1)  # half of the positives: a third of the others are positive
    one = csv(tmp_path / "one.csv", score=scores, s=observed)
    code, out, _ = called(capsys, "diagnose", one, "--observed", "s", *words)
    assert (code, out.split()[0]) == (int(verdict != "healthy"), verdict)
    np.savez(tmp_path / "run.npz", score=np.stack([np.full(200, 0.1), scores]), s=observed)
    assert called(capsys, "diagnose", tmp_path / "run.npz", "--observed", "s", *words)[1].split()[0] == verdict
    code, _, err = called(capsys, "diagnose", one, "--labels", "s", "--prior", "0.4")
    assert (code, "--prior is for --observed" in err) == (2, True)


def test_priors_that_scores_do_not_allow_are_said_and_estimated_ones_are_allowed(tmp_path, capsys):
    observed = LABELS * (np.arange(200) % 4 == 1)
    words = np.where(observed == 1, "yes", "")  # blank = unlabeled

    def judged(scores, *more):
        code, out, _ = called(
            capsys, "diagnose", csv(tmp_path / "one.csv", score=scores, s=words), "--observed", "s", *more
        )
        return code, " ".join(out.split())

    code, out = judged(GOOD)
    assert (code, out.split()[0]) == (0, "healthy")
    share = prior.bbe(GOOD, observed == 1)
    assert abs(share - 1 / 3) < 0.06
    assert f"prior: {100 * share:.1f} % of the unlabeled rows, estimated from the scores" in out
    assert "nan" not in out
    assert judged(0.01 * GOOD)[1].startswith("prior_mismatch")
    assert "told apart so well that the prior must be smaller" in judged(GOOD, "--prior", "0.9")[1]
    assert judged(1 - GOOD)[1].startswith(
        "inverted (200 examples) P ranks below U: AUC estimated from P, U and the prior 0."
    )
    assert "none can be estimated from such scores" in judged(np.full(200, 0.4))[1]
    three = csv(tmp_path / "three.csv", score=GOOD, s=np.arange(200) % 3)
    assert "3 values, expected two" in called(capsys, "diagnose", three, "--observed", "s")[2]


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_a_run_is_judged_by_the_epoch_that_was_kept(kind, tmp_path, capsys):
    run = np.stack([SHIFTED, GOOD])
    if kind == "csv":
        long = {"score": run.ravel(), "label": np.tile(LABELS, 2), "step": np.repeat(["1", "2"], 200)}
        words = ("diagnose", csv(tmp_path / "run.csv", **long), "--epoch", "step")
    else:
        np.savez(tmp_path / "run.npz", score=run, label=LABELS)
        words = ("diagnose", tmp_path / "run.npz")
    assert called(capsys, *words)[1].split()[0] == "healthy", "the last epoch, if none is named"
    code, out, _ = called(capsys, *words, "--selected", "1")
    assert (code, out.split()[0]) == (1, "selection_artefact")
    code, _, err = called(capsys, *words, "--selected", "3")
    assert (code, "has no epoch '3'; it has 1, 2" in err) == (2, True)


def bad(tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    np.savez(tmp_path / "short.npz", score=GOOD, label=LABELS[:5])
    np.savez(tmp_path / "words.npz", score=np.array(["a"]), label=LABELS)
    (tmp_path / "torn.npz").write_bytes((tmp_path / "short.npz").read_bytes()[:60])
    other = {"score": [0.1, 0.2, 0.3], "label": [0, 1, 0], "epoch": [1, 1, 2]}
    return {
        "no file at": (tmp_path / "none.csv", {}),
        "expected a file that ends in .csv, .tsv, .txt, .parquet, .pq, .npz; got '.xlsx'": (tmp_path / "a.xlsx", {}),
        "is not a CSV": (empty, {}),
        "has no column 'score'; name it with --scores, of p, label": (csv(tmp_path / "p.csv", p=[1], label=[1]), {}),
        "column 'score' must hold numbers, got 'x' in row 2": (
            csv(tmp_path / "x.csv", score=["0.7", "x"], label=[1, 0]),
            {},
        ),
        "'label' is empty in 1 rows": (csv(tmp_path / "null.csv", score=[1, 2], label=[1, None]), {}),
        "must hold 0 and 1 only, got [-1.0]; map the positive class to 1": (
            csv(tmp_path / "minus.csv", score=[0.1, 0.2], label=[-1, 1]),
            {},
        ),
        "every epoch needs the same 2 examples": (csv(tmp_path / "ragged.csv", **other), {"epoch": "epoch"}),
        "holds no row": (csv(tmp_path / "rows.csv", score=pl.Series([], dtype=pl.Float64), label=[]), {}),
        "got (200,) and (5,)": (tmp_path / "short.npz", {}),
        "must be numbers, got <U1": (tmp_path / "words.npz", {}),
        "is not an npz of plain arrays": (tmp_path / "torn.npz", {}),
        "has no array 'p'": (tmp_path / "short.npz", {"scores": "p"}),
        "names a column of a table": (tmp_path / "short.npz", {"epoch": "e"}),
    }


def test_what_cannot_be_judged_is_refused_with_what_to_do(tmp_path, capsys):
    for said, (path, options) in bad(tmp_path).items():
        with pytest.raises(ScoresError) as error:
            read_scores(path, **options)
        assert said in str(error.value)
    code, out, err = called(capsys, "diagnose", tmp_path / "none.csv")
    assert (code, out, err) == (2, "", f"jaxpu: no file at {tmp_path / 'none.csv'}\n")


@pytest.mark.parametrize("spelled", ["nan", "NaN", "-nan", "NA", "null", "", " ", "inf", "-Infinity", "+INF", "1e999"])
def test_a_score_that_is_not_finite_is_a_verdict_however_it_is_spelled(spelled, tmp_path, capsys):
    path = tmp_path / "scores.csv"
    path.write_text(f"score,label\n0.7,1\n{spelled},0\n0.1,0\n")
    code, out, _ = called(capsys, "diagnose", path)
    assert (code, out.split()[0]) == (1, "diverged")


@pytest.mark.parametrize("kind", ["npz", "parquet", "null"])
def test_a_score_that_is_not_finite_is_a_verdict_in_every_file(kind, tmp_path, capsys):
    scores, labels = [0.7, float("nan"), 0.1], [1, 0, 0]
    path = tmp_path / ("a.npz" if kind == "npz" else "a.parquet")
    if kind == "npz":
        np.savez(path, score=scores, label=labels)
    else:
        gap = [None if value != value else value for value in scores] if kind == "null" else scores
        pl.DataFrame({"score": gap, "label": labels}).write_parquet(path)
    assert called(capsys, "diagnose", path)[1].split()[0] == "diverged"


def test_of_an_npz_only_what_is_wanted_is_read(tmp_path, capsys):
    file = tmp_path / "run.npz"
    np.savez(file, score=GOOD, label=LABELS, x=GOOD[:, None])
    with zipfile.ZipFile(file, "a") as archive, archive.open("huge.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    assert read_scores(file).scores.shape == (1, 200)
    assert data.Dataset.from_file(file, label="label").x.shape == (200, 1)
    code, _, err = called(capsys, "diagnose", file, "--scores", "huge")
    assert (code, err.startswith(f"jaxpu: {file} is not an npz of plain arrays")) == (2, True)


def test_the_file_that_was_named_is_judged(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    csv(tmp_path / "s1.csv", score=GOOD, label=LABELS)
    csv(tmp_path / "s[1].csv", score=SHIFTED, label=LABELS)
    for path in (tmp_path / "s[1].csv", "~/s[1].csv"):
        assert called(capsys, "diagnose", path)[1].split()[0] == "threshold_shift"


def test_epochs_are_in_the_order_of_their_numbers_and_keep_their_names(tmp_path):
    epochs = {"10": 0.1, "0": 0.2, "2": 0.3}
    rows = [f"{name},{value},{label}" for name, value in epochs.items() for label in (0, 1)]
    path = tmp_path / "run.csv"
    path.write_text("\n".join(["step,score,label", *rows]))
    found = read_scores(path, epoch="step")
    assert (found.epochs, found.scores[:, 0].tolist()) == (["0", "2", "10"], [0.2, 0.3, 0.1])
    path.write_text("\n".join(["step,score,label", *rows]).replace("10,", "warm-up,"))
    assert read_scores(path, epoch="step").epochs == ["warm-up", "0", "2"], "names that are no numbers: as in the file"


@pytest.mark.parametrize("scale", [1e150, 1e160, 1e308])
def test_finite_scores_of_any_size_are_judged_as_small_ones(scale):
    small, large = (collapse.diagnose(size * (GOOD - 0.5), LABELS, threshold=0.0) for size in (1.0, scale))
    assert (large.verdict, large.evidence["auc"]) == (small.verdict, small.evidence["auc"])
    assert np.isfinite(collapse.score_metrics([-1.7e308, 1.7e308], [0, 1], threshold=0.0)["score_sd"])


def test_a_threshold_is_a_number_and_a_column_stands_once(tmp_path, capsys):
    good = csv(tmp_path / "good.csv", score=GOOD, label=LABELS)
    for value in ("nan", "inf"):
        code, _, err = called(capsys, "diagnose", good, "--threshold", value)
        assert (code, "expected a finite number" in err) == (2, True)
    (tmp_path / "twice.csv").write_text("score,label,score\n1,1,0\n0,0,1\n")
    code, _, err = called(capsys, "diagnose", tmp_path / "twice.csv")
    assert (code, "has the column 'score' twice" in err) == (2, True)


SETTINGS = {"model": {"name": "linear"}, "training__lr": 0.05, "training__epochs": 12, "selection__stop": False}


def recorded(experiment, seeds, change=lambda history: history):
    """Runs trained here and now, as a sweep would record them."""
    cell = first_cell(experiment)
    trained = jax.jit(lambda *inputs: train.train(*inputs[:2], static, inputs[2]).history)
    frames = []
    for seed in range(seeds):
        key, data, static, hyper = run_inputs(cell, seed)
        history = change({name: np.array(column) for name, column in trained(key, data, hyper).items()})
        identity = {"run_id": str(seed), "dataset": "gaussians", "method": cell.method_name, "seed": seed}
        frames.append(pl.DataFrame({**identity, "epochs_run": 12, "epoch": np.arange(1, 13)} | history))
    return pl.concat(frames)


@pytest.mark.slow
def test_a_planted_collapse_and_a_planted_artefact_are_told_apart(monkeypatch):
    experiment = tiny(methods=["vpudra_softlabel"], seeds=3, **SETTINGS)

    def misleading(history):  # the rule likes the second epoch, where the threshold is in the wrong place
        history["val_oracle_f1_decision"][1] = 1.0
        history["test_oracle_f1_decision"][1] = history["test_oracle_f1"][1] = 0.02
        history["test_predicted_positive"][1] = 0.01
        return history

    [artefact] = analysis.analyze(recorded(experiment, 3, misleading), experiment)
    training, selection = artefact.rows[0].judged, artefact.rows[1].judged
    assert (training.failing.occurred, str(selection.verdict)) == (0, "selection_artefact")
    assert "training does not fail (0 of 3 runs at their last epoch), selection does" in artefact.sentence
    assert [seed for seed, rule, _ in artefact.failures if rule == "val_f1"] == [0, 1, 2]

    risk = objective.base_risk

    def pushed_down(alone, hyper, logits, *rest, **context):  # pushes every p to 0, harder than the risk pulls up
        value, clipped = risk(alone, hyper, logits, *rest, **context)
        return value + 20.0 * jnp.square(logits + 8.0).mean(), clipped

    monkeypatch.setattr(objective, "base_risk", pushed_down)
    runs = recorded(tiny(methods=["vpudra_softlabel"], **SETTINGS | {"training__lr": 0.5}), 3)
    assert runs.filter(epoch=12)["test_score_mean"].max() < 0.01
    [collapsed] = analysis.analyze(runs, experiment)
    assert all(row.judged.failing.occurred == 3 for row in collapsed.rows)
    assert "training fails" in collapsed.sentence
    assert "selection_artefact" not in {str(row.judged.verdict) for row in collapsed.rows}


def test_a_results_folder_is_analysed(tmp_path, capsys):
    experiment = tiny(methods=["vpudra_fixed"], seeds=2, **SETTINGS)
    ids = {run.seed: run.run_id for run in job.runs(experiment)}
    known = recorded(experiment, 2).with_columns(run_id=pl.col("seed").replace_strict(ids))
    runs.write_frame(tmp_path / "runs.parquet", known)
    runs.write_sealed(tmp_path / "config.yaml", dump(experiment).encode())
    runs.write_provenance(tmp_path, {})
    code, out, _ = called(capsys, "analyze", tmp_path)
    assert code == 0
    assert "vpudra_fixed: neither training nor selection fails in 2 runs." in " ".join(out.split())
    runs.write_frame(tmp_path / "runs.parquet", known.filter(seed=0))
    code, _, err = called(capsys, "analyze", tmp_path)
    assert (code, "1 runs of" in err, "are not finished" in err) == (0, True, True)
    runs.write_frame(tmp_path / "runs.parquet", known.with_columns(run_id=pl.lit("0" * 16)))
    code, _, err = called(capsys, "analyze", tmp_path)
    assert (code, "1 runs that config.yaml does not ask for" in err) == (2, True)
    code, _, err = called(capsys, "analyze", tmp_path / "none")
    assert (code, "no results folder at" in err) == (2, True)


def test_the_analysis_counts_what_the_summary_counts():
    experiment = tiny(methods=["vpudra_fixed"], seeds=2, **SETTINGS)
    runs = recorded(experiment, 2)
    verdicts = analysis.tables(runs, experiment).verdicts
    [method] = analysis.analyze(runs, experiment)
    for row in method.rows[1:]:
        [known] = verdicts.filter(selection=row.name).iter_rows(named=True)
        assert (known["failing"], known["verdict"]) == (row.judged.failing.occurred, str(row.judged.verdict))
