"""Regenerate a report and all experiments behind it; what is finished is kept, what was interrupted goes on.

python scripts/reproduce.py failure_analysis             # every experiment, then results/failure_analysis/
python scripts/reproduce.py failure_analysis --report    # the report alone, from the results that are there
python scripts/reproduce.py cf_ensemble                  # the same for ensembles
python scripts/reproduce.py encouraging                  # and for losses that reward well-classified examples
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from jaxpu.report import cf_ensemble, encouraging, failure
from jaxpu.report.headlines import FIGURES as HEADLINES

ROOT = Path(__file__).parents[1]

REPORTS = {
    "failure_analysis": (
        [*(part.experiment for part in failure.PARTS), *HEADLINES, "high_filter_standard"],
        failure.write_failure_analysis,
    ),
    "encouraging": ([part.experiment for part in encouraging.PARTS], encouraging.write_encouraging),
    # the networks of cf_base are the base classifiers of cf_pu_sweep
    "cf_ensemble": (["cf_base", *(part.experiment for part in cf_ensemble.PARTS)], cf_ensemble.write_cf_ensemble),
}
"""The experiments of each report, and what writes it."""

MAY_LACK_DATA = {
    "why_mnist",
    "encouraging_fashion",
    "encouraging_again",
    "encouraging_fashion_cnn",
    "encouraging_long_tail",
}
"""Experiments on data that must be fetched; a report without them says that they are missing."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", choices=list(REPORTS))
    parser.add_argument("--report", dest="only_report", action="store_true", help="run no experiment")
    arguments = parser.parse_args()
    began = time.monotonic()
    experiments, write = REPORTS[arguments.report]
    for experiment in () if arguments.only_report else experiments:
        print(f"\n=== {experiment} ({time.monotonic() - began:.0f} s)", flush=True)
        command = [sys.executable, "-m", "jaxpu", "run", f"configs/{experiment}.yaml"]
        done = subprocess.run(command, cwd=ROOT)
        if done.returncode and experiment in MAY_LACK_DATA:
            print(f"{experiment} is left out: see the error above")
        elif done.returncode:
            sys.exit(done.returncode)
    if arguments.report == "cf_ensemble":
        subprocess.run([sys.executable, "scripts/reference_ensemble.py"], cwd=ROOT, check=True)
    print(f"page: {write(ROOT / 'results', ROOT / 'configs')}")


if __name__ == "__main__":
    main()
