"""Real data sets that need no network: one shipped with jaxpu, two with scikit-learn.

Every loader takes keyword options only (none here), and its docstring's first line is the description.
"""

from importlib import resources
from typing import Any

import numpy as np

from jaxpu.data.dataset import Dataset, first_line


def spambase() -> Dataset:
    """E-mails as 57 word, character and capital-run frequencies; positive = spam (1813 of 4601).

    The rows are in UCI's order, all spam first, and 391 of them repeat an earlier one. ``SPAMBASE.md`` beside
    the file says how it was made.

    Returns:
        x (4601, 57), in per cent except for the last three columns; to be standardised.

    Example:
        >>> data = spambase()
        >>> data.x.shape, int(data.y.sum())
        ((4601, 57), 1813)
    """
    file = resources.files("jaxpu.data").joinpath("spambase.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        x, y, names = arrays["x"], arrays["y"], arrays["feature_names"]
    return Dataset(
        name="spambase",
        x=np.ascontiguousarray(x),
        y=y,
        description=first_line(spambase.__doc__),
        source="Hopkins, Reeber, Forman, Suermondt (1999), Spambase, UCI, doi:10.24432/C53G6X",
        licence="CC BY 4.0",
        standardize=True,
        feature_names=tuple(names.tolist()),
    )


def digits(*, as_images: int = 0) -> Dataset:
    """Handwritten digits as 8 x 8 grey values in [0, 1]; positive = even digits (891 of 1797).

    Args:
        as_images: 1 gives x as images, (1797, 8, 8), for convolutions.

    Returns:
        x (1797, 64), the pixel counts 0..16 divided by 16; not to be standardised (some pixels are always 0).

    Example:
        >>> data = digits()
        >>> data.x.shape, float(data.x.max()), int(data.y.sum())
        ((1797, 64), 1.0, 891)
    """
    from sklearn.datasets import load_digits  # takes a second to import

    x, digit = map(np.asarray, load_digits(return_X_y=True))
    return Dataset(
        name="digits",
        x=(x / 16).astype(np.float32).reshape((-1, 8, 8) if as_images else (-1, 64)),
        y=(digit % 2 == 0).astype(np.int8),
        description=first_line(digits.__doc__),
        source="Alpaydin, Kaynak (1998), Optical Recognition of Handwritten Digits, UCI, doi:10.24432/C50P49",
        licence="CC BY 4.0",
        standardize=False,
        classes=digit.astype(np.int8),
    )


def breast_cancer() -> Dataset:
    """Breast masses as 30 measurements of cell nuclei; positive = malignant (212 of 569).

    Scikit-learn codes malignant as 0; here it is the positive class, since it is the one looked for.

    Returns:
        x (569, 30); to be standardised.

    Example:
        >>> data = breast_cancer()
        >>> data.x.shape, int(data.y.sum())
        ((569, 30), 212)
    """
    from sklearn.datasets import load_breast_cancer  # takes a second to import

    held: Any = load_breast_cancer()
    x, benign = held.data, held.target
    return Dataset(
        name="breast_cancer",
        x=x.astype(np.float32),
        y=(benign == 0).astype(np.int8),
        description=first_line(breast_cancer.__doc__),
        source="Wolberg, Mangasarian, Street, Street (1993), Breast Cancer Wisconsin, doi:10.24432/C5DW2B",
        licence="CC BY 4.0",
        standardize=True,
        feature_names=tuple(map(str, held.feature_names)),
    )
