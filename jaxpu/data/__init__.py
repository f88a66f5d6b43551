"""Datasets by name, from files and from arrays; positive-unlabeled samples of them; batch plans (``plan``).

    DataConfig ── load ──► Dataset ── prepare ──► rows of one seed: split, labeled, standardised

A registered dataset is a function from keyword options to a `Dataset`. To add one, write such a function (in
``embedded`` or ``synthetic``, or as in ``images``, ``tables`` and ``texts`` when it must be fetched), let the first
line of its docstring say what a row is and which class is positive, and name it in `loading.DATASETS`. What must be
fetched has its origin in `sources.SOURCES` and its way in `fetching.FETCH`. Your own data needs none of this:
`Dataset.from_arrays`, `Dataset.from_file`, or ``data.file`` in a configuration.

What a dataset is, is its content: what is kept goes by `Dataset.content`, and a file that was replaced is read again.
Heavy imports belong inside functions: this package costs NumPy and the configuration, no jax.
"""

from jaxpu.data.content import Arrays, arrays, identity
from jaxpu.data.dataset import Dataset
from jaxpu.data.loading import DATASETS, FETCHED, describe, load
from jaxpu.data.prepare import Prepared, Rows, prepare
from jaxpu.data.sources import SOURCES

__all__ = [
    "DATASETS",
    "FETCHED",
    "SOURCES",
    "Arrays",
    "Dataset",
    "Prepared",
    "Rows",
    "arrays",
    "describe",
    "identity",
    "load",
    "prepare",
]
