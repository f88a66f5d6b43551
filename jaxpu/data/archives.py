"""Sets from the archives of their authors, for whom TensorFlow Datasets would want TensorFlow to unpack them."""

import hashlib
import io
import tarfile
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

SIDE, COLOURS = 32, 3


class Archive(NamedTuple):
    """A compressed tar file: where it is, and its SHA-256."""

    url: str
    sha256: str


CIFAR10 = Archive(
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
IMDB = Archive(
    "http://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
    "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
)


def members(archive: Archive) -> Iterator[tuple[str, bytes]]:
    """Names and contents of an archive's files.

    Raises:
        OSError: it cannot be had. ValueError: what came is not the published archive.
    """
    with urllib.request.urlopen(archive.url, timeout=60) as answer:
        raw = answer.read()
    if hashlib.sha256(raw).hexdigest() != archive.sha256:
        raise ValueError(f"{archive.url} gave {len(raw):,} bytes that are not the published archive, or not all of it")
    with tarfile.open(fileobj=io.BytesIO(raw)) as files:
        for member in files:
            if (stream := files.extractfile(member)) is not None:
                yield member.name, stream.read()


def photographs() -> dict[str, np.ndarray]:
    """CIFAR-10 in its authors' order: ``x_train`` (50000, 32, 32, 3), ``y_train``, ``x_test``, ``y_test``."""
    batches = {name.rpartition("/")[2]: raw for name, raw in members(CIFAR10) if name.endswith(".bin")}
    arrays = {}
    for part, prefix in (("train", "data_batch"), ("test", "test_batch")):
        raw = b"".join(batches[name] for name in sorted(batches) if name.startswith(prefix))
        rows = np.frombuffer(raw, np.uint8).reshape(-1, 1 + COLOURS * SIDE * SIDE)  # a label, then colour by colour
        arrays[f"y_{part}"] = rows[:, 0]
        arrays[f"x_{part}"] = rows[:, 1:].reshape(-1, COLOURS, SIDE, SIDE).transpose(0, 2, 3, 1)
    return arrays


def reviews() -> dict[str, list[tuple[str, int]]]:
    """Film reviews and whether they are positive, of ``train`` and ``test``, by name of their files."""
    parts: dict[str, list[tuple[str, str, int]]] = {"train": [], "test": []}
    for name, raw in members(IMDB):
        place = name.split("/")  # aclImdb/train/pos/0_9.txt
        if len(place) == 4 and place[1] in parts and place[2] in ("neg", "pos"):
            parts[place[1]].append((name, raw.decode(), int(place[2] == "pos")))
    return {part: [(text, label) for _, text, label in sorted(found)] for part, found in parts.items()}
