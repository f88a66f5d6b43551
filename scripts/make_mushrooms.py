"""Make jaxpu/data/mushrooms.npz from the copy of UCI Mushroom in Debian's source of xgboost, the same bytes every time.

On Debian, with a line of sources (``deb-src``):

    apt-get source --download-only xgboost
    tar xzf xgboost_*.orig.tar.gz --wildcards '*/agaricus-lepiota.data'
    python scripts/make_mushrooms.py xgboost-*/demo/CLI/binary_classification/agaricus-lepiota.data \
        jaxpu/data/mushrooms.npz
"""

import hashlib
import sys
from pathlib import Path

import numpy as np
from make_spambase import array_digest, write_npz

COLUMNS = [
    "cap-shape", "cap-surface", "cap-color", "bruises", "odor", "gill-attachment", "gill-spacing", "gill-size",
    "gill-color", "stalk-shape", "stalk-root", "stalk-surface-above-ring", "stalk-surface-below-ring",
    "stalk-color-above-ring", "stalk-color-below-ring", "veil-type", "veil-color", "ring-number", "ring-type",
    "spore-print-color", "population", "habitat",
]  # fmt: skip


def read_rows(path: Path) -> dict[str, np.ndarray]:
    """The rows of the file, a letter a cell, as the three arrays that are shipped."""
    rows = [line.split(",") for line in path.read_text(encoding="ascii").split()]
    if {len(row) for row in rows} != {len(COLUMNS) + 1}:
        raise ValueError(f"expected a class and {len(COLUMNS)} attributes a line in {path}")
    return {
        "x": np.array([[ord(letter) for letter in row[1:]] for row in rows], np.uint8),
        "y": np.array([row[0] == "p" for row in rows], np.int8),
        "feature_names": np.array(COLUMNS),
    }


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit("usage: make_mushrooms.py AGARICUS_LEPIOTA_DATA OUTPUT_NPZ")
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    arrays = read_rows(source)
    write_npz(target, arrays)
    for path in (source, target):
        print(f"{path.name}  sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}, {path.stat().st_size} bytes")
    for name in ("x", "y"):
        print(f"  {name} {arrays[name].shape} {arrays[name].dtype}  sha256 {array_digest(arrays[name])}")


if __name__ == "__main__":
    main()
