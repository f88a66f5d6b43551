"""Studies: texts with placeholders, filled from results; and the studies and scripts of this repository."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from fake_sweep import fake_runs, fake_selected, fake_summary, fake_verdicts
from pages import Page

from jaxpu import config, plots, report, runs
from jaxpu.analysis.check import check
from jaxpu.plots import Figure
from jaxpu.report import PageError, Results, write_study

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import reproduce

STUDIES = sorted(path.parent for path in (ROOT / "configs").glob("*/report.md"))
PROVENANCE = {
    "command": "jaxpu run one",
    "commit": "0123456789",
    "dirty": False,
    "runs": 8,
    "seeds": 4,
    "device": "cpu",
}
PROVENANCE |= {"compile_seconds": 1.0, "run_seconds": 2.0}
CLAIMS = [
    {"claim": "It | holds.", "source": "a note", "bound": ">= 0.5", "n": 4, "estimate": 0.5, "ci_low": 0.4,
     "ci_high": 0.6, "p": 0.01, "p_holm": 0.01, "verdict": "refuted"},
    {"claim": "It helps.", "source": "", "bound": "<= 0.1", "n": 4, "estimate": 0.0, "ci_low": 0.0,
     "ci_high": 0.05, "p": 0.0, "p_holm": 0.0, "verdict": "supported"},
]  # fmt: skip
HEAD = "---\nexperiments: [one, two]\noptional: [two]\n---\n# Title\n\nAnswer.\n\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A finished experiment "one" in a folder of results."""
    folder = tmp_path_factory.mktemp("results")
    selected = fake_selected(fake_runs(seeds=4, epochs=4, rates=(0.1, 0.2), methods=("vpu", "pudra"), artefacts=()))
    made = {"selected": selected, "summary": fake_summary(selected), "verdicts": fake_verdicts(selected)}
    made["claims"] = pl.DataFrame(CLAIMS)
    settings = {"name": "one", "selection": {"rules": ["val_f1", "last"], "default": "val_f1"}}
    settings["figures"] = [{"kind": "final_f1"}]
    for name, frame in made.items():
        (folder / "one").mkdir(exist_ok=True)
        frame.write_csv(folder / "one" / f"{name}.csv")
    report.write(folder / "one", report.frames_of(made, settings), PROVENANCE, settings)
    (folder / "one" / "config.yaml").write_text(yaml.safe_dump(settings))
    (folder / "one" / "provenance.json").write_text(json.dumps(PROVENANCE))
    return folder, made


@pytest.fixture
def study(tmp_path, results):
    """What writes the page of a study with a given text."""
    configs = tmp_path / "my_study"
    configs.mkdir()
    (configs / "one.yaml").write_text("# What?\n#\n# Claim (a note): so it is.\n# Test: we look.\n# Expectation: no.\n")

    def write(text, head=HEAD, own=None):
        (configs / "report.md").write_text(head + text)
        return Page(write_study(configs, results[0], own).read_text(encoding="utf-8"))

    return write


def test_values_tables_claims_figures_and_commands_are_those_of_the_frames(study, results):
    selected, summary = results[1]["selected"], results[1]["summary"]
    page = study(
        'Median {{ value("one", "SELECT median(f1) FROM selected WHERE method = \'vpu\' AND `training.lr` = 0.1") }}, '
        '{{ value("one", "SELECT count(*) FROM selected") }} rows, {{ verdict("one", "It helps") }}, '
        '{{ counts("one", "SELECT verdict, count(*) FROM selected GROUP BY verdict") }}.\n\n'
        '{% if done("two") %}NEVER{% endif %}\n\n'
        '{{ means("one", "f1", "val_f1") }}\n\n'
        '{{ rows("one", "SELECT method, max(f1) AS f1 FROM selected GROUP BY method ORDER BY method") }}\n\n'
        '{% call part("one", "The part", "final_f1") %}Because.{% endcall %}\n\n'
        '{% call part("two", "NEVER", "final_f1") %}NEVER{% endcall %}\n\n'
        "## All {#all}\n\n{{ all_claims() }}\n\n{{ missing() }}\n"
    )
    mine = selected.filter(pl.col("method") == "vpu", pl.col("training.lr") == 0.1)
    assert (
        f"Median {mine['f1'].median():.3f}, {selected.height} rows, supported (0.000 [0.000, 0.050], n = 4), "
        in page.text
    )
    assert f"healthy {selected.height} of {selected.height}." in page.text
    for row in summary.filter(metric="f1", selection="val_f1").iter_rows(named=True):
        assert f"{row['mean']:.3f} [{row['ci_low']:.3f}, {row['ci_high']:.3f}]" in page.text
    assert f"{selected.filter(method='pudra')['f1'].max():.3f}" in page.text
    assert page.text.count("0.500 [0.400, 0.600], n = 4") == 2, "in its part, and among all claims"
    assert "It | holds. (a note)" in page.text
    for words in ("Claim (a note): so it is.", "Test: we look.", "Because.", "jaxpu run one", "commit 012345678"):
        assert words in page.text
    assert "NEVER" not in page.text
    assert "Not run yet: two." in page.text
    assert "#one" in page.links
    assert len(page.images) == 1
    assert page.text.index("Answer.") < page.text.index("Contents")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{{ value("one", "SELECT f1 FROM selected WHERE method = \'upu\'") }}', "finds nothing"),
        ('{{ value("one", "SELECT median(f1) FROM selected WHERE method = \'upu\'") }}', "expected one value"),
        ('{{ value("one", "SELECT f1 FROM selected") }}', "expected one value"),
        ('{{ value("one", "SELECT nothing FROM selected") }}', "'SELECT nothing FROM selected' cannot be answered"),
        ('{{ value("one", "SELECT f1 FROM runs") }}', "cannot be answered|finds nothing"),
        ('{{ value("two", "SELECT f1 FROM selected") }}', "no results of 'two'.*there are one"),
        ('{{ means("one", "f2", "last") }}', "no metric 'f2' under last"),
        ('{{ means("one", "f1") }}', "name the selection"),
        ('{{ verdict("one", "It") }}', "2 claims start with 'It', expected one"),
        ('{{ figure("strip", "one") }}', "one has no figure 'strip'; it has final_f1"),
        ('{{ figure("mine") }}', "no figure 'mine'"),
        ('{{ table("mine") }}', "no table 'mine'; there are none"),
        ("{{ see('mine') }}", "no figure 'mine' to refer to"),
        ("{{ valeu('one') }}", "'valeu' is undefined"),
        ("[x](../one/table.md)", "a page stands alone"),
    ],
)
def test_a_placeholder_that_finds_nothing_is_an_error_that_names_it(study, text, words):
    with pytest.raises(PageError, match=rf"(?s)(my_study/report\.md: )?.*{words}"):
        study(text)


def test_a_study_without_a_head_or_without_results_says_so(study):
    with pytest.raises(PageError, match=r"report\.md: expected a head between lines of dashes"):
        study("# Title\n", head="")
    with pytest.raises(PageError, match=r"none of three is in .*; run scripts/reproduce\.py my_study"):
        study("# Title\n", head="---\nexperiments: [three]\n---\n")


def test_a_study_of_scripts_alone_has_its_own_tables_and_says_single_numbers(study):
    class Own:
        @staticmethod
        def tables(results):
            return {"share": pl.DataFrame({"x": [0.25]}), "two": pl.DataFrame({"x": [1, 2]})}

    head = "---\nscripts: [scripts/mine.py]\n---\n"
    assert "A share of 0.250." in study('# Title\n\nA share of {{ said("share") }}.\n', head, Own).text
    with pytest.raises(PageError, match=r"'two' is of shape .2, 1., expected one cell"):
        study('{{ said("two") }}', head, Own)


def test_own_figures_and_tables_appear_whether_or_not_the_text_places_them(study):
    class Own:
        @staticmethod
        def figures(results):
            def drawn(name):
                figure = plots.by_method(results.frames("one").of_default(results.frames("one").summary), ["f1"])
                figure.suptitle(f"{name} says")
                return figure

            return [Figure(name, "mine", lambda name=name: drawn(name), f"Caption {name}.") for name in ("a", "b")]

        @staticmethod
        def tables(results):
            return {"mine": pl.DataFrame({"data.prior_scale": [0.5], "word": ["x_y"]})}

    head = HEAD.replace("---\n#", "figures:\n  - {experiment: one, kind: final_f1, name: c, section: mine}\n---\n#")
    page = study('## Mine {#mine}\n\n{{ figure("b") }}\n\n{{ see("a") }}: {{ table("mine") }}\n', head, Own)
    assert [caption.partition(" ")[2][:12] for caption in page.captions] == [
        "1. Caption b",
        "2. Every dot",
        "3. Caption a",
    ]
    assert page.alts[2] == "a says"
    assert "Figure 3" in page.text
    for words in ("prior scale", "0.500", "x_y"):
        assert words in page.text


def test_the_folder_that_was_named_is_read_and_whole_files_only(tmp_path, results):
    folder = tmp_path / "r[1]*"
    shutil.copytree(results[0], folder)
    one = folder / "one"
    runs.write_sealed(one / "config.yaml", (one / "config.yaml").read_bytes())
    runs.write_provenance(one, PROVENANCE)
    runs.write_frame(one / "runs.parquet", fake_runs(seeds=1, epochs=2))
    configs = tmp_path / "my_study"
    configs.mkdir()
    (configs / "report.md").write_text(HEAD)
    study = Results(configs, folder)
    assert study.ask("one", "SELECT count(*) FROM selected").item() == results[1]["selected"].height
    readers = {
        "config.yaml": lambda: study.config("one"),
        "provenance.json": lambda: study.provenance("one"),
        "runs.parquet": lambda: study.frame("one", "runs").collect(),
    }
    for name, read in readers.items():
        whole = (one / name).read_bytes()
        assert read() is not None
        (one / name).write_bytes(whole.replace(b"1", b"3", 1) if name != "runs.parquet" else b"PAR2" + whole[4:])
        with pytest.raises(PageError, match=f"{name} is damaged .its checksum does not fit.; repeat its jaxpu run"):
            read()


# The studies of this repository


@pytest.mark.slow
@pytest.mark.parametrize("folder", STUDIES, ids=lambda path: path.name)
def test_every_experiment_of_a_study_can_be_run_and_judged(folder):
    study = Results(folder, ROOT / "results")
    for name in study.experiments:
        experiment = config.load(config.find_config(name, [ROOT / "configs"]))
        assert experiment.name == name
        if name not in study.optional:  # whose data must perhaps be fetched
            check(experiment)
        report.check_figures(experiment)
    assert {*study.optional} <= {*study.experiments}
    own = {path.stem for path in folder.glob("*.yaml")} - {"encouraging_cifar", "scar_full"}  # for an accelerator
    assert own <= {*study.experiments}, "an experiment beside the text that the text does not know"


@pytest.mark.parametrize("folder", STUDIES, ids=lambda path: path.name)
def test_every_part_has_claim_and_test_in_the_head_of_its_configuration(folder):
    results_ = Results(folder, ROOT / "results")
    placeholders = report.placeholders.Placeholders(results_, {})
    for part in folder.glob("*.yaml"):
        if f'part("{part.stem}"' in results_.text:
            assert placeholders.head(part.stem).startswith("**Claim")
            assert f"# Command: jaxpu run {part.stem}" in part.read_text()


def test_the_studies_are_those_that_readme_names():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [folder.name for folder in STUDIES] == reproduce.STUDIES
    assert all(f"scripts/reproduce.py {name}" in readme for name in reproduce.STUDIES)


OWN_FIGURES = {
    ("failure_analysis", "penalty_slopes"): ({}, "Both penalties are least at p = μ and push down onl"),
    ("failure_analysis", "fixed_point_curves"): ({}, "The soft label leaves the fixed p"),
    ("failure_analysis", "mean_field_paths"): ({"steps": 50}, "From any start the soft label comes ba"),
    ("failure_analysis", "learning_rates"): ({"points": 20, "steps": 50}, "Up to a step of 2/J″ (dashed) p rests;"),
    ("cf_ensemble", "aggregator_path"): ({}, "Two time scales: the base rate wit"),
    ("cf_ensemble", "phase_plane"): ({}, "Σ w and b move along one line "),
    ("encouraging", "gradient_sizes"): ({}, "Only the bonus pulls as hard at p = 1 as any"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("study_name", "name"), OWN_FIGURES)
def test_own_figures_of_studies_are_drawn_and_say_what_they_show(study_name, name):
    options, statement = OWN_FIGURES[study_name, name]
    draw = getattr(reproduce.own_figures(ROOT / "configs" / study_name), name)
    assert draw(**options).get_suptitle().replace("\n", " ").startswith(statement)


def test_continued_runs_are_drawn_against_what_the_flow_predicts():
    healing = reproduce.own_figures(ROOT / "configs" / "cf_ensemble").healing
    times = {"ranked_at": [50, 80, None], "healthy_at": [500, None, 1], "heal_theory": [100.0, 100.0, 0.0]}
    runs = pl.DataFrame(times | {"ratings.rate": [0.1, 0.1, 0.3], "slow_updates": [600.0] * 3, "auc": [0.0, 0.1, 1.0]})
    figure = healing(runs)
    assert figure.get_suptitle().startswith("Runs turn round 0.65 times")
    assert figure.axes[0].collections[0].get_offsets().tolist() == [[100, 50], [100, 80]]
    with pytest.raises(plots.NothingToShow, match="No run turned round"):
        healing(runs.with_columns(ranked_at=pl.lit(None, pl.Int64)))


def test_figures_of_the_theory_of_mixup_say_the_medians_of_their_runs():
    draw = reproduce.own_figures(ROOT / "configs" / "mixup_theory")
    way, falling = [1.0, 0.5, 0.25], [[1.0, 0.5, 0.6], [1.0, 0.4, 0.8]]
    one = {
        "options.classes": [1, 1],
        "options.alpha": [1.0, 1.0],
        "path_scale": [way] * 2,
        "path_beyond_first": falling,
    }
    found = draw.expansion(
        pl.DataFrame(one | {"path_remainder": falling, "order_two": [2.0] * 2, "order_three": [2.9, 3.0]})
    )
    assert "order 2.00 with R₁ alone and of order 2.95" in found.get_suptitle().replace("\n", " ")
    cases = {"options.m": [500, 100, 500, 500], "options.within": [False, False, True, False]}
    cases |= {"options.label_noise": [0.0, 0.0, 0.0, 0.5], "mixup_rise": [1.5, 9.0, 9.0, 9.0]}
    ways = {f"path_{name}": [way] * 4 for name in ("time", "mixup", "clean", "plain", "switched")}
    found = draw.regression(pl.DataFrame(cases | ways))
    assert "to 1.50 times its least" in found.get_suptitle()
    assert len(found.axes) == 4
    trained = {
        "options.schedule": list(draw.SCHEDULES),
        "options.guide": ["none"] * 5,
        "rare": [0.0, 0.9, 0.8, 0.1, 0.2],
    }
    found = draw.features(pl.DataFrame(trained | {f"path_{n}": [way] * 5 for n in ("step", "common_way", "rare_way")}))
    assert found.get_suptitle().replace("\n", " ").endswith("plain 0.00, mixup 0.90, early stop 0.80")
    looked = [
        (m, seed, epoch, np.nan if epoch == 1 else 0.5)
        for m in ("pn", "pn_mixup")
        for seed in (0, 1)
        for epoch in (1, 2)
    ]
    runs = pl.DataFrame(looked, schema=["method", "seed", "epoch", "probe_gradient_norm"], orient="row")
    runs = runs.with_columns(pl.col("probe_gradient_norm").alias(f"probe_{name}") for name in draw.GRADIENTS)
    assert draw.gradients(runs).get_suptitle().endswith("pn 0.500, pn_mixup 0.500")


def test_the_wheel_has_the_configurations():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"configs": "jaxpu/configs"}


@pytest.mark.parametrize("script", ["readme", "claims"])
def test_what_scripts_write_is_what_the_committed_results_say(script):
    done = subprocess.run(
        [sys.executable, f"scripts/{script}.py", "--check"],
        cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 200
    assert sum(line.startswith("|") for line in lines) <= 30


def test_nothing_below_jaxpu_speaks_of_the_notes_by_number():
    files = [path for path in (ROOT / "jaxpu").rglob("*") if path.suffix in (".py", ".md", ".css", ".html", ".yaml")]
    assert [path.name for path in files if "seed 00" in path.read_text(encoding="utf-8").lower()] == []
