"""Regenerate a report and all experiments behind it; what is finished is kept, what was interrupted goes on.

python scripts/reproduce.py failure_analysis             # every experiment, then results/failure_analysis/
python scripts/reproduce.py failure_analysis --report    # the report alone, from the results that are there
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from jaxpu.report.failure import PARTS, write_failure_analysis

ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", choices=["failure_analysis"])
    parser.add_argument("--report", dest="only_report", action="store_true", help="run no experiment")
    arguments = parser.parse_args()
    began = time.monotonic()
    for part in () if arguments.only_report else PARTS:
        print(f"\n=== {part.experiment} ({time.monotonic() - began:.0f} s)", flush=True)
        command = [sys.executable, "-m", "jaxpu", "run", f"configs/{part.experiment}.yaml"]
        done = subprocess.run(command, cwd=ROOT)
        if done.returncode:
            sys.exit(done.returncode)
    print(f"page: {write_failure_analysis(ROOT / 'results', ROOT / 'configs')}")


if __name__ == "__main__":
    main()
