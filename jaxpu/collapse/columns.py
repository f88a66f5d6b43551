"""Recorded columns as the rules take them: named, of one shape, in float64."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

Metrics: TypeAlias = Mapping[str, ArrayLike | float]
"""Recorded columns of one split, by their names without its prefix."""

Numbers: TypeAlias = dict[str, Float[np.ndarray, "..."]]
"""What the rules look at, all of one shape."""


def aligned(metrics: Metrics, names: Sequence[str]) -> Numbers:
    """The named columns, those of them that are there.

    Raises:
        ValueError: their shapes differ.

    >>> {name: column.tolist() for name, column in aligned({"oracle_f1": [0.5]}, ["oracle_f1", "oracle_auc"]).items()}
    {'oracle_f1': [0.5]}
    """
    columns = {name: np.asarray(metrics[name], dtype=np.float64) for name in names if name in metrics}
    shapes = {name: column.shape for name, column in columns.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"expected metrics of one shape, one entry an epoch; got {shapes}")
    return columns


def require(metrics: Metrics, needed: Sequence[str], in_words: str) -> None:
    """Check that all columns are there.

    Raises:
        ValueError: naming those that are not, and where to get them.

    >>> require({"oracle_f1": 0.5}, ["oracle_f1"], "oracle_f1")
    """
    missing = [name for name in needed if name not in metrics]
    if missing:
        raise ValueError(
            f"missing metrics {missing}; got {sorted(metrics)}. The verdicts need {in_words}: "
            "recorded columns without their split's prefix, "
            "or what score_metrics(scores, labels) returns"
        )
