"""Run the experiments of a study and write its page; what is finished is kept, what was interrupted goes on.

python scripts/reproduce.py failure_analysis             # every experiment, then results/failure_analysis/report.html
python scripts/reproduce.py failure_analysis --report    # the page alone, from the results that are there

A study is a folder of configs/ with a report.md: its experiments, and its text with placeholders. Its figures.py, where
it has one, draws what only this study needs.
"""

import argparse
import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

from jaxpu.report import Results, write_study

ROOT = Path(__file__).parents[1]
STUDIES = sorted(path.parent.name for path in (ROOT / "configs").glob("*/report.md"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--report", dest="only_report", action="store_true", help="run no experiment")
    arguments = parser.parse_args()
    configs = ROOT / "configs" / arguments.study
    if not arguments.only_report:
        run(Results(configs, ROOT / "results"))
    print(f"page: {write_study(configs, ROOT / 'results', own_figures(configs))}")


def run(study: Results) -> None:
    """Run every experiment; one that may be missing, since its data must be fetched, is left out where it fails."""
    began = time.monotonic()
    for experiment in study.experiments:
        print(f"\n=== {experiment} ({time.monotonic() - began:.0f} s)", flush=True)
        done = subprocess.run([sys.executable, "-m", "jaxpu", "run", experiment], cwd=ROOT)
        if done.returncode and experiment in study.optional:
            print(f"{experiment} is left out: see the error above")
        elif done.returncode:
            sys.exit(done.returncode)
    for script in study.scripts:
        subprocess.run([sys.executable, script], cwd=ROOT, check=True)


def own_figures(configs: Path) -> ModuleType | None:
    """The study's figures.py, with its folder on the path; None where it has none."""
    path = configs / "figures.py"
    if not path.exists():
        return None
    sys.path.insert(0, str(configs))
    spec = importlib.util.spec_from_file_location(f"{configs.name}_figures", path)
    assert spec is not None  # the file is there
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
