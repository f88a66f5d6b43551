"""How time and memory grow with the number of runs, from 100 to 30,000: training, then tables, figures and page.

    python scripts/bench_scale.py [--most 30000] [--before COMMIT] [--out results/bench/scale.md]

A tiny network (hidden [8], 2 epochs, 200 rows), so that what is measured is everything around the training. Each size
is a process of its own, with an empty results folder; programs are compiled by the first. Wall seconds, so let nothing
else run. With --before, the whole command `jaxpu run` on 10,000 runs, compilation included, of that commit and of this.
"""

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
COMPARED = 10_000
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000)
SEEDS_OF_MANY = 10
SMALL = {
    "name": "scale",
    "data": {"name": "gaussians", "options": {"n": 200}},
    "model": {"hidden": [8]},
    "training": {"epochs": 2},
}


def experiment(runs: int, many: bool) -> dict:
    if not many:
        return SMALL | {"seeds": runs}
    rates = [float(rate) for rate in np.geomspace(1e-4, 1e-1, runs // SEEDS_OF_MANY)]
    return SMALL | {"seeds": SEEDS_OF_MANY, "grid": {"training.lr": rates}}


def measure(runs: int, many: bool) -> dict[str, float]:
    """Seconds and memory of one size; in a process of its own, since memory is the most that a process ever held."""
    from jaxpu import api, config, report

    api.set_up()
    asked = config.parse(experiment(runs, many))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        outcome = api.sweep(asked, folder=folder)
        trained = time.perf_counter()
        most_of_sweep = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        report.publish(Path(folder), asked, outcome.runs, outcome.provenance)
        written = time.perf_counter()
    return {
        "runs": outcome.runs["run_id"].n_unique(),
        "compile": outcome.provenance["compile_seconds"],
        "sweep": trained - began - outcome.provenance["compile_seconds"],
        "publish": written - trained,
        "sweep_mib": most_of_sweep,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_process(runs: int, many: bool) -> dict[str, float]:
    words = [sys.executable, __file__, "--one", str(runs), "many" if many else "one"]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


@contextlib.contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """The files of a commit, for a while."""
    with tempfile.TemporaryDirectory() as folder:
        files = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=files, check=True)
        yield Path(folder)


def whole_command(code: Path, many: bool) -> float:
    """Seconds of ``jaxpu run`` with the code that lies in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "scale.yaml"
        asked.write_text(json.dumps(experiment(COMPARED, many)), encoding="utf-8")  # JSON is YAML
        words = [sys.executable, "-m", "jaxpu", "run", str(asked), "--out", f"{folder}/out"]
        began = time.perf_counter()
        subprocess.run(words, cwd=code, env={**os.environ, "PYTHONPATH": str(code)}, check=True, capture_output=True)
        return time.perf_counter() - began


def before_and_now(commit: str) -> list[str]:
    lines = [
        "",
        f"## The whole command, {COMPARED:,} runs: before and now",
        "",
        f"| | at {commit}, s | now, s | times as fast |",
        "|---|--:|--:|--:|",
    ]
    with checkout(commit) as old:
        for many, words in ((False, "one cell"), (True, f"{COMPARED // SEEDS_OF_MANY:,} cells")):
            then, now = (whole_command(code, many) for code in (old, ROOT))
            lines.append(f"| {words} | {then:.0f} | {now:.0f} | {then / now:.1f} |")
            print(lines[-1], flush=True)
    return lines


def table(found: list[dict[str, float]]) -> list[str]:
    lines = [
        "| runs | training s | tables and page s | the same, ms a run | peak MiB (training alone) |",
        "|--:|--:|--:|--:|--:|",
    ]
    for one in found:
        each = 1e3 * one["publish"] / one["runs"]
        memory = f"{one['mib']:.0f} ({one['sweep_mib']:.0f})"
        lines.append(f"| {one['runs']:,} | {one['sweep']:.1f} | {one['publish']:.1f} | {each:.1f} | {memory} |")
    return lines


def growth(found: list[dict[str, float]], name: str) -> str:
    """The exponent of the growth between 1,000 runs and the most: 1 is linear."""
    kept = [one for one in found if one["runs"] >= 1000]
    if len(kept) < 2:
        return "not measured"
    runs, values = (np.log([one[key] for one in kept]) for key in ("runs", name))
    return f"{np.polyfit(runs, values, 1)[0]:.2f}"


def made_by() -> str:
    """The commit and the version of jax that a number comes from."""
    import jax

    from jaxpu import runs

    made = runs.commit()
    return f"commit {str(made['commit'])[:9]}{' and changes' if made['dirty'] else ''}, jax {jax.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--before", metavar="COMMIT")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("RUNS", "KIND"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(int(given.one[0]), given.one[1] == "many")))
        return
    began = time.perf_counter()
    lines = [
        f"# From {SIZES[0]} to {given.most:,} runs",
        "",
        f"`python scripts/bench_scale.py`: {' '.join(str(__doc__).split('    ')[0].split())}",
    ]
    for many, title in ((False, "One cell, n seeds"), (True, f"n/{SEEDS_OF_MANY} cells, {SEEDS_OF_MANY} seeds each")):
        found = []
        for runs in (size for size in SIZES if size <= given.most):
            found.append(in_process(runs, many))
            print(title, found[-1], flush=True)
        grown = {
            said: growth(found, name)
            for said, name in (("training", "sweep"), ("tables and page", "publish"), ("memory", "mib"))
        }
        exponents = ", ".join(f"{said} {exponent}" for said, exponent in grown.items())
        lines += [
            "",
            f"## {title}",
            "",
            *table(found),
            "",
            f"Exponents of the growth from 1,000 runs on (1 is linear): {exponents}.",
        ]
    lines += before_and_now(given.before) if given.before else []
    seconds = time.perf_counter() - began
    lines += ["", f"Made at {made_by()}, on {os.cpu_count()} cores of a shared machine, in {seconds:.0f} s."]
    text = "\n".join(lines) + "\n"
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
