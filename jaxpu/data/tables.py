"""Tables of categories as indicators: one shipped with jaxpu, one to be fetched."""

from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np
from jaxtyping import Float32, Int, UInt8

from jaxpu.data.dataset import Dataset, first_line
from jaxpu.data.fetching import arrays_of


def mushrooms() -> Dataset:
    """Gilled mushrooms as 117 indicators of 22 attributes; positive = poisonous (3916 of 8124).

    A missing value (of ``stalk-root``) is a category of its own, written "?". ``MUSHROOMS.md`` beside the file says how
    it was made.

    Returns:
        x (8124, 117) of 0 and 1, not to be standardised.

    Example:
        >>> data = mushrooms()
        >>> data.x.shape, int(data.y.sum()), data.feature_names[:2]
        ((8124, 117), 3916, ('cap-shape=b', 'cap-shape=c'))
    """
    file = resources.files("jaxpu.data").joinpath("mushrooms.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        letters, y, names = arrays["x"], arrays["y"], arrays["feature_names"]
    x, features = indicators(letters, names.tolist(), chr)
    return Dataset(
        name="mushrooms",
        x=x,
        y=y,
        description=first_line(mushrooms.__doc__),
        source="Audubon Society Field Guide (1981), Mushroom, donated by J. Schlimmer (1987), UCI, doi:10.24432/C5959T",
        licence="CC BY 4.0",
        standardize=False,
        feature_names=features,
    )


def connect4(*, rows: int | None = None) -> Dataset:
    """Positions of Connect Four after eight moves as 126 indicators; positive = the first player wins (44473 of 67557).

    Args:
        rows: take so many of them at random, always the same ones; None takes all.

    Returns:
        x (n, 126): for each square whether it is blank, the first or the second player's.

    Raises:
        ValueError: the file cannot be had, or there are fewer rows.
    """
    held = arrays_of("connect4")
    kept = chosen(len(held["y"]), rows)
    names = {0: "blank", 1: "x", -1: "o"}
    x, features = indicators(held["X"], held["feature_names"].tolist(), names.get)
    return Dataset(
        name="connect4",
        x=x[kept],
        y=(held["classes"][held["y"]] == "win").astype(np.int8)[kept],
        description=first_line(connect4.__doc__),
        source="Tromp (1995), Connect-4, UCI, doi:10.24432/C59P43",
        licence="CC BY 4.0",
        standardize=False,
        classes=held["y"].astype(np.int8)[kept],
        feature_names=features,
    )


def indicators(
    codes: Int[np.ndarray, "n d"] | UInt8[np.ndarray, "n d"], names: Sequence[str], word: Any
) -> tuple[Float32[np.ndarray, "n k"], tuple[str, ...]]:
    """A column for each value that a categorical column takes, and its name.

    Args:
        codes: the categories. names: of the columns. word: from a code to what it is called.

    >>> x, names = indicators(np.array([[0, 5], [1, 5]]), ["a", "b"], str)
    >>> x.tolist(), names
    ([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], ('a=0', 'a=1', 'b=5'))
    """
    values = [(j, int(value)) for j in range(codes.shape[1]) for value in np.unique(codes[:, j])]
    x = np.empty((len(codes), len(values)), np.float32)
    for place, (j, value) in enumerate(values):
        x[:, place] = codes[:, j] == value
    return x, tuple(f"{names[j]}={word(value)}" for j, value in values)


def chosen(n: int, rows: int | None) -> Int[np.ndarray, " m"]:
    """So many of n row numbers at random, ascending, always the same ones; all if None.

    Raises:
        ValueError: there are not so many.

    >>> chosen(5, 3).tolist(), len(chosen(5, None))
    ([2, 3, 4], 5)
    """
    if rows is None:
        return np.arange(n)
    if not 2 <= rows <= n:
        raise ValueError(f"rows is {rows}, expected 2 to {n}, or none for all")
    return np.sort(np.random.default_rng(0).permutation(n)[:rows])
