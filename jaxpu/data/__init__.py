"""Data sets by name, positive-unlabelled sampling (``sampling``) and batch plans (``plan``).

A dataset is a function from keyword options to a `Dataset`. To add one, write such a function (in
``embedded`` or ``synthetic``, or as in ``images`` when it must be fetched), let the first line of
its docstring say what a row is and which class is positive, and name it in `DATASETS`. Heavy imports belong
inside the function: this package costs NumPy and nothing more.
"""

import inspect
from collections.abc import Callable
from typing import Any

from jaxpu.data.dataset import Dataset, first_line
from jaxpu.data.embedded import breast_cancer, digits, spambase
from jaxpu.data.images import cifar10, fashion_mnist, mnist
from jaxpu.data.synthetic import gaussians, mixture

__all__ = ["DATASETS", "FETCHED", "Dataset", "describe", "load"]

DATASETS: dict[str, Callable[..., Dataset]] = {
    "spambase": spambase,
    "digits": digits,
    "breast_cancer": breast_cancer,
    "gaussians": gaussians,
    "mixture": mixture,
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "cifar10": cifar10,
}
"""The datasets by name."""

FETCHED = ("mnist", "fashion_mnist", "cifar10")
"""Those of them that come from ``JAXPU_DATA_DIR`` or the network; see ``images``."""


def load(name: str, **options: Any) -> Dataset:
    """Load a dataset by name.

    Args:
        name: A key of `DATASETS`.
        **options: Keyword options of that dataset's function.

    Returns:
        The dataset, its arrays on the host.

    Raises:
        ValueError: If there is no such dataset, or it has no such option; the message lists the choices.

    Example:
        >>> load("gaussians", n=50, d=3).x.shape
        (50, 3)
        >>> load("spam")
        Traceback (most recent call last):
        ...
        ValueError: unknown dataset 'spam'; choose from spambase, digits, ...
    """
    loader = _loader(name)
    choices = inspect.signature(loader).parameters
    unknown = [option for option in options if option not in choices]
    if unknown:
        known = ", ".join(choices) or "none"
        raise ValueError(f"dataset {name!r} has no option {unknown[0]!r}; its options: {known}")
    return loader(**options)


def describe(name: str) -> str:
    """Say in one sentence what a dataset is, without loading it.

    Raises:
        ValueError: If there is no such dataset; the message lists the choices.

    Example:
        >>> describe("breast_cancer")
        'Breast masses as 30 measurements of cell nuclei; positive = malignant (212 of 569).'
    """
    return first_line(_loader(name).__doc__)


def _loader(name: str) -> Callable[..., Dataset]:
    if name not in DATASETS:
        raise ValueError(f"unknown dataset {name!r}; choose from {', '.join(DATASETS)}")
    return DATASETS[name]
