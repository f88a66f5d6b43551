"""What a dataset is: arrays on the host with a label, a source and a licence."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int, Int8


class Dataset(NamedTuple):
    """A binary classification problem: raw features, true labels, and where they come from.

    Attributes:
        name: The key in ``DATASETS``.
        x: Raw features, one row an example. Standardise them on the training part of a split, never here.
        y: True labels, 1 = positive, 0 = negative.
        description: One sentence: what a row is, and which class is the positive one.
        source: Authors, year and DOI; what to cite.
        licence: The licence of the data.
        standardize: Whether the features need zero mean and unit deviation before training.
        test_rows: Row numbers of the official test split, or ``None`` if there is none.
        posterior: The true P(y = 1 | x) of each row, or ``None`` if nobody knows it.
        classes: The class 0 .. k - 1 of each row where there are more than two, or ``None``; y is a summary of it.
    """

    name: str
    x: Float32[np.ndarray, "n *features"]
    y: Int8[np.ndarray, " n"]
    description: str
    source: str
    licence: str
    standardize: bool
    test_rows: Int[np.ndarray, " m"] | None = None
    posterior: Float[np.ndarray, " n"] | None = None
    classes: Int8[np.ndarray, " n"] | None = None


def first_line(docstring: str | None) -> str:
    """The summary line of a docstring, which describes a dataset for its reader and for ``jaxpu list`` alike.

    Example:
        >>> first_line(Dataset.__doc__)
        'A binary classification problem: raw features, true labels, and where they come from.'
    """
    return (docstring or "").strip().partition("\n")[0]
