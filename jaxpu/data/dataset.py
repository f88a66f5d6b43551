"""What a dataset is: arrays on the host with labels, and where they come from."""

import dataclasses
import functools
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int, Int8, UInt8

AT_ONCE = 4096
"""Rows that are turned from bytes into features at a time, so that memory stays small."""


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """A binary classification problem: raw features, true or observed labels, and where they come from.

    Attributes:
        name: What the dataset is called in tables; of a registered one its key in ``DATASETS``.
        x: Raw features, one row an example. Standardise them on the training part of a split, never here.
        y: True labels, 1 = positive, 0 = negative; ``None`` where nobody knows them.
        s: Observed labels, 1 = labeled positive, 0 = unlabeled; ``None`` where they are drawn from y.
        description: One sentence: what a row is, and which class is the positive one.
        source: Authors, year and DOI; what to cite.
        licence: The licence of the data.
        standardize: Whether the features need zero mean and unit deviation before training.
        test_rows: Row numbers of the official test split, or ``None`` if there is none.
        posterior: The true P(y = 1 | x) of each row, or ``None`` if nobody knows it.
        classes: The class 0 .. k - 1 of each row where there are more than two, or ``None``; y is a summary of it.
        feature_names: A name a feature, or ``None``.
        levels: Where x holds bytes, the feature that each of the 256 stands for, or ``None``. Images stay bytes in
            memory, a quarter of the size; they become features in the step, and where :meth:`features` is asked for.

    The arrays cannot be written to, so that ``content`` stays true.
    """

    name: str
    x: Float32[np.ndarray, "n *features"] | UInt8[np.ndarray, "n *features"]
    y: Int8[np.ndarray, " n"] | None = None
    s: Int8[np.ndarray, " n"] | None = None
    description: str = ""
    source: str = ""
    licence: str = ""
    standardize: bool = True
    test_rows: Int[np.ndarray, " m"] | None = None
    posterior: Float[np.ndarray, " n"] | None = None
    classes: Int8[np.ndarray, " n"] | None = None
    feature_names: tuple[str, ...] | None = None
    levels: Float32[np.ndarray, " 256"] | None = None

    def __post_init__(self) -> None:
        if (self.x.dtype == np.uint8) != (self.levels is not None):
            raise ValueError(f"expected levels where x holds bytes, and nowhere else; x holds {self.x.dtype}")
        for name in ("x", "y", "s", "test_rows", "posterior", "classes", "levels"):
            if (array := getattr(self, name)) is not None:
                view = array.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)
        if self.y is None and self.s is None:
            raise ValueError("expected true labels y, observed labels s, or both; got neither")
        if self.y is not None and self.s is not None and (odd := np.flatnonzero(self.s > self.y)).size:
            raise ValueError(
                f"{odd.size} labeled rows are negative by their true label, first row {odd[0]} (the first is 0): "
                "P must be positive; correct s or y"
            )

    @classmethod
    def from_arrays(cls, x: Any, y: Any = None, s: Any = None, **options: Any) -> "Dataset":
        """A dataset of your own; :func:`jaxpu.data.own.from_arrays` says of which kinds, and names the options.

        >>> Dataset.from_arrays([[0.5], [1.5], [2.5]], s=[1, 0, 0]).s.tolist()
        [1, 0, 0]
        """
        from jaxpu.data import own  # needs this class

        return own.from_arrays(x, y, s, **options)

    @classmethod
    def from_file(cls, path: str | Path, **options: Any) -> "Dataset":
        """A dataset from CSV, Parquet or npz; :func:`jaxpu.data.own.from_file` names the options."""
        from jaxpu.data import own

        return own.from_file(path, **options)

    @property
    def truth(self) -> Int8[np.ndarray, " n"]:
        """The true labels y.

        Raises:
            ValueError: nobody knows them.
        """
        if self.y is None:
            raise ValueError(f"{self.name} has observed labels only, and this needs true ones; give y (data.label)")
        return self.y

    def features(self, rows: Any = slice(None)) -> Float32[np.ndarray, "m *features"]:
        """The features of some rows, or of all, before they are standardised; a copy where x holds bytes.

        >>> Dataset.from_arrays([[1], [2]], [0, 1]).features([1]).tolist()
        [[2.0]]
        """
        return self.x[rows] if self.levels is None else self.levels[self.x[rows]]

    @functools.cached_property
    def content(self) -> str:
        """SHA-256 of all that training can see: two datasets with the same one give the same numbers.

        Names and words do not enter, nor whether features are kept as bytes. Computed when it is first asked for, at
        about a gigabyte a second.

        >>> one, same, other = (Dataset.from_arrays([[v], [0]], [0, 1]).content for v in (1, 1.0, 2))
        >>> one == same, one == other
        (True, False)
        """
        parts = {"x": self.x, "y": self.y, "s": self.s, "test_rows": self.test_rows, "classes": self.classes}
        kinds = {"x": "<f4", "test_rows": "<i8"}
        found = hashlib.sha256(f"standardize={self.standardize}".encode())
        for name, array in parts.items():
            if array is None:
                continue
            kind = np.dtype(kinds.get(name, "|i1"))
            found.update(f";{name}{kind.str}{array.shape}".encode())
            for start in range(0, len(array), AT_ONCE):
                rows = slice(start, start + AT_ONCE)
                part = self.features(rows) if name == "x" else array[rows]
                found.update(np.ascontiguousarray(part, dtype=kind).data)
        return found.hexdigest()


def first_line(docstring: str | None) -> str:
    """The summary line of a docstring, which describes a dataset for its reader and for ``jaxpu list`` alike.

    Example:
        >>> first_line(Dataset.__doc__)
        'A binary classification problem: raw features, true or observed labels, and where they come from.'
    """
    return (docstring or "").strip().partition("\n")[0]
