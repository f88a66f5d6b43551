"""Texts as sentence embeddings of unit length, by all-MiniLM-L6-v2: film reviews and posts of twenty newsgroups."""

import numpy as np

from jaxpu.data.dataset import Dataset, first_line
from jaxpu.data.fetching import arrays_of
from jaxpu.data.sources import Held


def imdb() -> Dataset:
    """Film reviews as sentence embeddings of 384 numbers; positive = the reviewer liked it (half of them).

    Returns:
        x (n, 384), with the official test split; the full set has 25,000 reviews of training and 25,000 of test.

    Raises:
        ValueError: the embeddings cannot be had; what to do.
    """
    held = arrays_of("imdb")
    return _dataset(
        "imdb",
        imdb.__doc__,
        held,
        held["classes"] == "pos",
        "Maas, Daly, Pham, Huang, Ng, Potts (2011), Learning Word Vectors for Sentiment Analysis, ACL",
        "none stated; research use",
    )


def newsgroups20() -> Dataset:
    """Posts of twenty newsgroups as sentence embeddings of 384 numbers; positive = alt, comp, misc and rec.

    Returns:
        x (18846, 384), split by date: 11,314 of training, then 7,532 of test; ``classes`` are the groups.

    Raises:
        ValueError: the embeddings cannot be had; what to do.
    """
    held = arrays_of("newsgroups20")
    first = np.array([name.partition(".")[0] for name in held["classes"].tolist()])
    return _dataset(
        "newsgroups20",
        newsgroups20.__doc__,
        held,
        np.isin(first, ["alt", "comp", "misc", "rec"]),
        "Lang (1995), NewsWeeder: Learning to Filter Netnews, ICML; the version sorted by date",
        "none stated; research use",
    )


def _dataset(name: str, doc: str | None, held: Held, positive: np.ndarray, source: str, licence: str) -> Dataset:
    """Both parts one after the other; ``positive`` says of each class whether it is."""
    classes = np.concatenate([held["y_train"], held["y_test"]]).astype(np.int8)
    n = len(held["y_train"])
    return Dataset(
        name=name,
        x=np.concatenate([held["x_train"], held["x_test"]]).astype(np.float32),
        y=positive[classes].astype(np.int8),
        description=first_line(doc),
        source=source,
        licence=licence,
        standardize=False,
        test_rows=np.arange(n, len(classes)),
        classes=classes if len(positive) > 2 else None,
    )
