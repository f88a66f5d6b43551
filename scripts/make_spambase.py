"""Make jaxpu/data/spambase.npz from kernlab's copy of UCI Spambase, byte for byte the same every time.

On Debian, with ``pip install rdata`` in a throwaway environment:

    apt-get download r-cran-kernlab
    dpkg -x r-cran-kernlab_*.deb kernlab
    cd kernlab/usr/lib/R/site-library/kernlab/data
    python .../scripts/make_spambase.py spam.rda .../jaxpu/data/spambase.npz
"""

import hashlib
import importlib
import io
import sys
import zipfile
from pathlib import Path

import numpy as np

N_FEATURES = 57


def read_spam(path: Path) -> dict[str, np.ndarray]:
    """Read the data frame ``spam`` of an .rda file as the three arrays that are shipped."""
    rdata = importlib.import_module("rdata")  # needed here only, so no dependency of jaxpu
    frame = rdata.read_rda(path)["spam"]
    columns = [str(name) for name in frame.columns]
    if len(columns) != N_FEATURES + 1 or columns[-1] != "type":
        raise ValueError(f"expected {N_FEATURES} features and 'type' in {path}, got the columns {columns}")
    return {
        # Column-major, because equal values of a column then lie side by side: it compresses better.
        "x": np.asfortranarray(frame[columns[:-1]].to_numpy(np.float32)),
        "y": (frame["type"] == "spam").to_numpy(np.int8),
        "feature_names": np.array(columns[:-1]),
    }


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write a compressed .npz whose bytes depend on the arrays only: ``np.savez`` stores the time of day."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system = 3  # else it records the operating system
            archive.writestr(member, buffer.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)


def array_digest(array: np.ndarray) -> str:
    """The sha256 of an array's values in row-major order, whatever the file's compression."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit("usage: make_spambase.py SPAM_RDA OUTPUT_NPZ")
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    arrays = read_spam(source)
    write_npz(target, arrays)
    print(f"{source}  sha256 {hashlib.sha256(source.read_bytes()).hexdigest()}")
    print(f"{target}  sha256 {hashlib.sha256(target.read_bytes()).hexdigest()}, {target.stat().st_size} bytes")
    for name in ("x", "y"):
        print(f"  {name} {arrays[name].shape} {arrays[name].dtype}  sha256 {array_digest(arrays[name])}")


if __name__ == "__main__":
    main()
