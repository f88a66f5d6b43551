"""One flipped bit in any file of a real results folder, of a sweep and of an ensemble: named, refused, and redone."""

import random
import shutil

import pytest
from polars.testing import assert_frame_equal
from problems import TINY

from jaxpu import api, cli, config, runs

FLIPS = 400
SWEEP = config.parse(
    TINY
    | {
        "seeds": 3,
        "selection": TINY["selection"] | {"keep_best": True, "stop": False},
        "placement": {"devices": 1, "part": 2, "segment": 1, "checkpoint_seconds": 0},
    }
)
ENSEMBLE = config.parse(
    {
        "kind": "ensemble",
        "name": "tiny",
        "ratings": {"source": "runs"},
        "factors": {"dim": 2},
        "methods": ["als", "mean"],
        "seeds": 1,
        "base": TINY | {"name": "base", "seeds": 2, "methods": ["pudra"], "training": TINY["training"] | {"epochs": 2}},
    }
)


def interrupted(experiment, folder):
    """A folder with a part of two runs, the working state of the third, and a mark of failed ones."""

    def stop(progress):
        if progress.epochs_done >= 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.sweep(experiment, folder=folder, watch=stop)
    runs.Folder(folder).fail("0123456789abcdef", ["a"], "out of memory")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = tmp_path_factory.mktemp("damage")
    interrupted(SWEEP, made / "interrupted")
    shutil.copytree(made / "interrupted", made / "sweep")
    api.sweep(SWEEP, folder=made / "sweep")
    api.sweep(ENSEMBLE, folder=made / "ensemble")
    return made


def flip(path, bit):
    raw = bytearray(path.read_bytes())
    raw[bit // 8] ^= 1 << bit % 8
    path.write_bytes(raw)


@pytest.mark.slow
def test_no_file_of_a_results_folder_is_read_with_a_flipped_bit(folders):
    chance, kinds = random.Random(0), set()
    for path in sorted(path for path in folders.rglob("*") if path.is_file() and path.name != ".lock"):
        body, raw = runs.read_sealed(path), path.read_bytes()
        assert body
        kinds.add(path.parent.name + "".join(path.suffixes) if path.parent.parent.parent == folders else path.name)
        for bit in chance.sample(range(8 * len(raw)), FLIPS):
            damaged = bytearray(raw)
            damaged[bit // 8] ^= 1 << bit % 8
            with pytest.raises(runs.Damaged):
                runs.files.unseal(path.suffix, bytes(damaged))
    assert kinds == {
        "config.yaml", "provenance.json", "runs.parquet", "parameters.npz", "parts.parquet", "parts.state",
        "parts.failed.json",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sweep", "ensemble"])
def test_damage_is_refused_by_report_and_analyze_and_redone_by_run(folders, kind, tmp_path, capsys):
    experiment, whole, chance = {"sweep": SWEEP, "ensemble": ENSEMBLE}[kind], folders / kind, random.Random(0)
    before = runs.read_folder(whole)[2]
    for name in ("config.yaml", "provenance.json", "runs.parquet"):
        for again in (True, False, False):
            folder = tmp_path / "damaged"
            shutil.copytree(whole, folder)
            flip(folder / name, chance.randrange(8 * (folder / name).stat().st_size))
            for command in ("report", "analyze"):
                with pytest.raises(SystemExit) as end:
                    cli.main([command, str(folder)])
                assert (end.value.code, f"{name} is damaged" in capsys.readouterr().err) == (2, True)
            assert not (folder / "report.html").exists()
            if again:
                notes = []
                redone = api.sweep(experiment, folder=folder, watch=lambda p, notes=notes: notes.append(p.note))
                assert_frame_equal(redone.runs, before)
                assert any(f"{name} is damaged" in note for note in notes)
                assert_frame_equal(runs.read_folder(folder)[2], before)
            shutil.rmtree(folder)
    kept = sorted((whole / "parameters").glob("*.npz"))[0]
    shutil.copytree(whole, tmp_path / "kept")
    flip(tmp_path / "kept" / "parameters" / kept.name, 8 * kept.stat().st_size // 2)
    with pytest.raises(runs.ResultsError, match="no whole parameters of run"):
        runs.read_parameters(tmp_path / "kept", kept.stem)
    assert_frame_equal(api.sweep(experiment, folder=tmp_path / "kept").runs, before)
    assert (tmp_path / "kept" / "parameters" / kept.name).read_bytes() == kept.read_bytes()
