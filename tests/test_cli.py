"""The command as people use it: what a run leaves behind, what it says, and how it ends."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jax
import polars as pl
import pytest
import yaml
from polars.testing import assert_frame_equal
from problems import TINY, tiny

import jaxpu
from jaxpu import api, cli, config, ensemble, runs
from jaxpu.cli import arguments
from jaxpu.data import DATASETS
from jaxpu.methods import METHODS
from jaxpu.runs import placement
from jaxpu.selection import RULES

ROOT = Path(__file__).parents[1]
PAIR = "methods=[vpudra_fixed,vpudra_softlabel]"
LEFT_BEHIND = {
    "config.yaml",
    "provenance.json",
    "runs.parquet",
    "selected.csv",
    "summary.csv",
    "verdicts.csv",
    "rules.csv",
    "table.md",
    "report.html",
    "figures",
}
# a runner that starts tests in the background may have SIGINT ignored, and children inherit that
INTERRUPTIBLE = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from jaxpu import cli; cli.main(sys.argv[1:])"
)


def jaxpu_command(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jaxpu", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def called(capsys, *words: object) -> tuple[int, str, str]:
    """The command within this process; an exception other than its exit would be a traceback to the user."""
    with pytest.raises(SystemExit) as end:
        cli.main([str(word) for word in words])
    return end.value.code, *capsys.readouterr()


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """A configuration on disk; only its numbers of seeds and methods are changed by words of the command."""
    path = tmp_path_factory.mktemp("configs") / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


@pytest.fixture(scope="module")
def finished(written) -> tuple[Path, subprocess.CompletedProcess[str]]:
    done = jaxpu_command("run", written, "--seeds", 2, "--out", "out", PAIR, cwd=written.parent)
    return written.parent / "out", done


def test_a_run_leaves_all_it_promises_and_says_where(finished):
    folder, done = finished
    assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.iterdir() if path.name != ".lock"} == LEFT_BEHIND
    assert any((folder / "figures").iterdir())
    assert done.stdout.rstrip().endswith(f"page: {Path('out') / 'report.html'}")
    assert "Selected by validation F1 (needs true labels, the default here), n = 2 seeds" in done.stdout
    assert "4 of 4 runs" in done.stderr
    assert (folder / "report.html").read_text().count("vpudra_softlabel") > 0


def test_the_words_of_the_command_act(finished):
    folder, _ = finished
    resolved = config.parse(yaml.safe_load((folder / "config.yaml").read_text()))
    assert resolved == tiny(seeds=2, methods=["vpudra_fixed", "vpudra_softlabel"])
    seen = pl.read_parquet(folder / "runs.parquet").select("method", "seed").unique().sort("method", "seed").rows()
    assert seen == [(m, s) for m in ("vpudra_fixed", "vpudra_softlabel") for s in (0, 1)]


def test_provenance_says_where_the_numbers_come_from(finished):
    folder, _ = finished
    provenance = json.loads((folder / "provenance.json").read_text())
    assert (provenance["seeds"], provenance["first_seed"], provenance["runs"]) == (2, 0, 4)
    assert {"commit", "dirty", "command"} <= set(provenance)
    assert "--seeds 2" in provenance["command"]
    assert provenance["versions"]["jaxpu"] == jaxpu.__version__
    assert provenance["versions"]["jax"] == jax.__version__
    assert provenance["device"] == jax.devices()[0].device_kind
    assert provenance["placement"][0]["mesh"] == {"run": 1, "batch": 1}
    assert provenance["compile_seconds"] > 0
    assert provenance["run_seconds"] > 0


def test_the_table_is_the_summary(finished):
    folder, _ = finished
    summary = pl.read_csv(folder / "summary.csv")
    columns = [
        "dataset",
        "method",
        "selection",
        "metric",
        "threshold",
        "n",
        "mean",
        "median",
        "sd",
        "ci_low",
        "ci_high",
    ]
    assert summary.columns[: len(columns)] == columns
    numbers = {(r["method"], r["selection"], r["metric"]): r for r in summary.iter_rows(named=True)}
    # sections in the order of the rules, rows in the order of the methods
    results = (folder / "table.md").read_text().partition("## Other measures")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", results, flags=re.MULTILINE)
    expected = [(m, r) for r in ("val_f1", "val_f1_rescue") for m in ("vpudra_fixed", "vpudra_softlabel")]
    assert [method for method, _ in rows] == [method for method, _ in expected]
    for (method, rule), (_, cells) in zip(expected, rows, strict=True):
        median, mean, below, auc, _ = cells.split(" | ")
        f1, collapsed = numbers[method, rule, "f1"], numbers[method, rule, "f1_below"]
        shown = [float(number) for number in re.findall(r"\d\.\d+", f"{median} {mean} {auc}")]
        wanted = [f1["median"], f1["mean"], f1["ci_low"], f1["ci_high"], numbers[method, rule, "auc"]["mean"]]
        assert shown == pytest.approx(wanted, abs=5.1e-4)
        assert below.startswith(f"{collapsed['count']}/2 = {100 * collapsed['mean']:.0f} %")


def test_report_rewrites_the_same_bytes(finished, capsys):
    folder, _ = finished
    before = contents(folder)
    for name in ("selected.csv", "summary.csv", "verdicts.csv", "table.md", "report.html"):
        (folder / name).unlink()
    code, out, _ = called(capsys, "report", folder)
    assert code == 0
    assert f"page: {folder / 'report.html'}" in out
    assert contents(folder) == before


def test_options_that_take_a_value_are_known_as_such_wherever_they_stand():
    fields = {f"--{field.name.replace('_', '-')}": field for field in dataclasses.fields(cli.Run)}
    flags = {name for name, field in fields.items() if field.type in (bool, "bool")}
    assert fields.keys() - flags - {"--config", "--overrides", arguments.SEVERAL} == {*cli.VALUED}
    assert arguments.in_order(["run", "quick", "--track", "mlflow", "a=1"], cli.VALUED)[2:] == [
        "a=1",
        "--track",
        "mlflow",
    ]


def test_nothing_is_lost_where_a_run_dies_after_its_last_epoch(finished, written, tmp_path, capsys, monkeypatch):
    folder, _ = finished
    whole = pl.read_parquet(folder / "runs.parquet")
    words = ("run", written, "--out", tmp_path, "--seeds", 2, PAIR, "--quiet")
    # all runs are in parts/, none gathered yet: with and without what an earlier, smaller sweep had gathered
    monkeypatch.setattr("jaxpu.cli.finished.publish", lambda *_: None)  # the page is another test's
    for earlier in (None, whole.filter(seed=0)):
        runs.write_frame(tmp_path / "parts" / "0123456789abcdef.parquet", whole)
        (tmp_path / "runs.parquet").unlink(missing_ok=True)
        if earlier is not None:
            runs.write_frame(tmp_path / "runs.parquet", earlier)
        assert called(capsys, *words)[0] == 0
        assert_frame_equal(pl.read_parquet(tmp_path / "runs.parquet"), whole)
        assert not (tmp_path / "parts").exists()
    monkeypatch.undo()
    (tmp_path / "provenance.json").unlink()
    assert called(capsys, *words)[0] == 0
    assert called(capsys, "report", tmp_path)[0] == 0


def test_report_wants_a_finished_folder_and_says_what_is_missing(finished, tmp_path, capsys):
    code, _, err = called(capsys, "report", tmp_path / "nowhere")
    assert code == 2
    assert "no results folder at" in err
    assert "jaxpu run" in err
    folder, _ = finished
    for name in ("config.yaml", "provenance.json", "runs.parquet"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    for name, damage in (
        ("provenance.json", b"{"),
        ("config.yaml", b"name: ["),
        ("runs.parquet", (folder / "runs.parquet").read_bytes()[:-20]),
    ):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(damage)
        code, _, err = called(capsys, "report", tmp_path)
        assert (code, f"{name} is damaged" in err) == (2, True), err
        (tmp_path / name).unlink()
        code, _, err = called(capsys, "report", tmp_path)
        assert (code, f"has no {name}; it is unfinished" in err) == (2, True), err
        (tmp_path / name).write_bytes(whole)
    # grown to three seeds and interrupted: what is there is reported, what is missing is said
    grown = runs.read_sealed(folder / "config.yaml").replace(b"seeds: 2", b"seeds: 3")
    runs.write_sealed(tmp_path / "config.yaml", grown)
    code, _, err = called(capsys, "report", tmp_path)
    assert (code, "2 runs of" in err, "are not finished" in err) == (1, True, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["training.lrr=1"], ["tiny.yaml: training.lrr: unknown key", "did you mean 'lr'?", "batch_size"]),
        (["nonsense"], ["expected dotted.path=value, got 'nonsense'"]),
        (["training.lr=["], ["override training.lr: '[' is not a YAML value"]),
        (["methods=[vpi]"], ["tiny.yaml: methods: unknown method 'vpi' (did you mean 'vpu'?)", "nnpu"]),
        (["--seeds", "0"], ["tiny.yaml: seeds:", "greater than or equal to 1"]),
        (["seeds.more=1"], ["override seeds.more: 'seeds' is not a group of settings"]),
        (["data.name=spambas"], ["unknown dataset 'spambas' (did you mean 'spambase'?); choose from spambase"]),
        (["data.options={m: 5}"], ["dataset 'gaussians' has no option 'm'; its options: n, d"]),
        (["data.prior_scale=9"], ["data.prior_scale", "must lie in (0, 1)"]),
        (["placement.devices=99"], ["asks for 99 devices, there are 8"]),
        (["selection.default=last"], ["selection: default rule 'last' is not among the rules"]),
        (["kind=multiclass"], ["tiny.yaml: selection rule 'val_f1_rescue' wants positive and unlabeled rows"]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) and "=" in value[-1] else "",
)
def test_bad_words_end_with_two_a_message_and_no_folder(words, said, written, tmp_path, capsys):
    folder = tmp_path / "out"
    code, _, err = called(capsys, "run", written, "--out", folder, *words)
    assert code == 2
    for text in said:
        assert text in err
    assert max(map(len, err.splitlines())) < 800, "a person reads this"
    assert not folder.exists()


def test_bad_files_end_with_two_a_message_and_no_folder(tmp_path, capsys):
    (tmp_path / "broken.yaml").write_text("training: [")
    (tmp_path / "list.yaml").write_text("- 1")
    (tmp_path / "bytes.yaml").write_bytes(b"name: \xff\xfe")
    (tmp_path / "twice.yaml").write_text("data: {c: 0.1}\nseeds: 3\ndata: {name: digits}\n")
    before = sorted(tmp_path.iterdir())
    for name, said in (
        ("broken.yaml", "broken.yaml is not valid YAML"),
        ("list.yaml", "list.yaml: expected a mapping of keys, got list"),
        ("bytes.yaml", "bytes.yaml is not valid YAML"),
        ("twice.yaml", "twice.yaml is not valid YAML: key 'data' is in line 1 and again in line 3; keep one"),
    ):
        code, _, err = called(capsys, "run", tmp_path / name, "--out", tmp_path / "out")
        assert (code, err.startswith(f"jaxpu: {tmp_path}/{said}")) == (2, True), err
    done = jaxpu_command("run", "missing.yaml", cwd=tmp_path)
    said = "jaxpu: no configuration at missing.yaml, and none of that name; jaxpu list names those that there are\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert sorted(tmp_path.iterdir()) == before


def test_folders_of_others_are_refused_untouched(finished, written, tmp_path, capsys):
    folder, _ = finished
    before = contents(folder)
    code, _, err = called(capsys, "run", written, "--out", folder, "--seeds", 2, PAIR, "training.lr=0.5")
    assert code == 2
    assert (
        "4 runs of another configuration or of other data; nothing was changed. Give another --out, or --fresh" in err
    )
    assert contents(folder) == before
    pl.DataFrame({"mine": [1]}).write_parquet(tmp_path / "runs.parquet")
    before = contents(tmp_path)
    code, _, err = called(capsys, "run", written, "--out", tmp_path)
    assert (code, "runs.parquet is foreign" in err) == (2, True)
    assert contents(tmp_path) == before
    code, _, err = called(capsys, "run", written, "--out", written)
    assert (code, f"cannot write to {written}" in err) == (2, True)


@pytest.mark.slow
def test_failed_runs_end_with_one_and_repeating_redoes_them(written, tmp_path, capsys, monkeypatch):
    whole = placement.Program.compile

    def broken(self, *arguments):
        def out_of_memory(*_):
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: planted")

        return whole(self, *arguments) if self.static.objective.mixup else out_of_memory  # which need not be compiled

    words = ("run", written, "--out", tmp_path, "--seeds", 2, "methods=[vpudra_fixed,pudra]")
    monkeypatch.setattr(placement.Program, "compile", broken)
    code, out, err = called(capsys, *words[:-1], "methods=[pudra]", "--out", tmp_path / "all")
    assert (code, out) == (1, "")
    assert "jaxpu: no run of tiny finished: 2 runs failed: RESOURCE_EXHAUSTED: planted" in err
    code, out, err = called(capsys, *words)
    assert code == 1
    assert "jaxpu: 2 runs failed: RESOURCE_EXHAUSTED: planted. Repeat the command to redo them" in err
    assert "page: " in out, "what did finish is reported"
    monkeypatch.undo()
    code, _, err = called(capsys, *words)
    assert code == 0
    assert "2 of 4 runs are finished already and kept" in err
    assert set(pl.read_csv(tmp_path / "summary.csv")["method"]) == {"vpudra_fixed", "pudra"}


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_going_on_ends_as_if_undisturbed(written, tmp_path, capsys, monkeypatch):
    often = ["placement.segment=1", "placement.checkpoint_seconds=0", "placement.part=2", "placement.devices=1"]
    slow = ["training.epochs=8", *often]
    words = ["run", str(written), "--seeds", "20", "--fresh", *slow]
    command = [sys.executable, "-c", INTERRUPTIBLE, *words]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        for line in started.stderr:
            if re.match(r"\d+ of 20 runs, ", line):
                break
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=60)
    assert started.returncode == 130, err
    assert "Traceback" not in err
    assert out == "", "an interrupted run has no table"
    folder = tmp_path / "results" / "tiny"
    said = re.search(r"interrupted; results/tiny keeps what is done. Go on with: jaxpu (.*)\n", err)
    assert said
    assert said[1].split() == [word for word in words if word != "--fresh"]
    assert not (folder / "runs.parquet").exists()
    monkeypatch.chdir(tmp_path)
    code, _, err = called(capsys, "report", folder)
    assert (code, "are not finished; repeat its jaxpu run" in err) == (1, True), "what is done is shown as it stands"
    assert (folder / "report.html").exists()
    assert runs.read_provenance(folder)["unfinished"] > 0
    code, _, err = called(capsys, *said[1].split())
    assert code == 0, err
    assert re.search(r"\d+ of 20 runs are finished already and kept", err)
    assert re.search("[12] unfinished runs go on where they stopped", err)
    undisturbed = api.sweep(config.load(written, dict(map(arguments.override, [*slow, "seeds=20"])))).runs
    assert_frame_equal(pl.read_parquet(folder / "runs.parquet"), undisturbed)


def test_list_names_everything_there_is():
    done = jaxpu_command("list", cwd=Path.cwd())
    assert done.returncode == 0
    first_words = {line.split()[0] for line in done.stdout.splitlines() if line[:1].strip()}
    assert {*DATASETS, *METHODS, *RULES} <= first_words
    named = {word for line in done.stdout.splitlines() for word in line.replace(",", " ").split()}
    assert {*ensemble.TRAINERS, *ensemble.BASELINES, *ensemble.CONFIDENCE} <= named


def test_a_reader_who_has_seen_enough_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)  # as head does, once it has its lines
    command = [sys.executable, "-m", "jaxpu", "list"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.stderr == ""


@pytest.mark.slow
def test_methods_whose_options_are_tried_when_they_are_read_can_be_run(tmp_path):
    """To try them starts jax, which must have been told of its devices and its cache before."""
    raw = config.to_dict(tiny(methods=[{"preset": "pn", "surrogate": "encouraging", "log_end": 0.5}], seeds=1))
    raw["placement"] |= {"devices": None, "part": None}
    (tmp_path / "tried.yaml").write_text(config.dump(config.parse(raw)))
    done = jaxpu_command("run", tmp_path / "tried.yaml", "--out", tmp_path / "out", "--quiet", cwd=Path.cwd())
    assert done.returncode == 0, done.stderr


def test_version_and_help_need_no_jax():
    code = "import sys; from jaxpu import cli\ntry: cli.main([sys.argv[1]])\nfinally: assert 'jax' not in sys.modules"
    for word, said in (("--version", f"jaxpu {jaxpu.__version__}\n"), ("--help", "Train classifiers from positive")):
        done = subprocess.run([sys.executable, "-c", code, word], capture_output=True, text=True, check=False)
        assert (done.returncode, said in done.stdout, done.stderr) == (0, True, "")


@pytest.mark.slow
def test_the_benchmark_runs_on_chosen_datasets_offline_resumes_and_leaves_its_own_folder_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("JAXPU_DATA_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    small = [
        "methods=[pn_naive]",
        "claims=[]",
        "model.name=linear",
        "training.epochs=1",
        "training.batch_size=2000",
        "--seeds",
        1,
    ]

    def run(*datasets):
        with pytest.raises(SystemExit) as end:
            cli.main([str(w) for w in ("run", ROOT / "configs/benchmark/scar.yaml", *small, "--datasets", *datasets,
                                       "--out", tmp_path / "mine")])  # fmt: skip
        assert end.value.code == 0
        return pl.read_parquet(tmp_path / "mine" / "runs.parquet")

    first = run("mushrooms")
    both = run("mushrooms", "digits")
    assert both["dataset"].to_list() == ["mushrooms", "digits"]
    assert_frame_equal(both.filter(pl.col("dataset") == "mushrooms").select("run_id", "test_oracle_f1"),
                       first.select("run_id", "test_oracle_f1"))  # fmt: skip
    assert not (tmp_path / "results").exists()
    with pytest.raises(SystemExit) as end:
        cli.main(["run", str(ROOT / "configs/benchmark/scar.yaml"), "--datasets", "digist"])
    assert end.value.code == 2
